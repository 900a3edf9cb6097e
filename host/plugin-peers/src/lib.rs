//! Peers whose protocol a plugin speaks, such as an HTTP API.
//!
//! The engine sees a peer of this crate as a link with a window. Each message that it sends goes to the plugin of the hook `peer`
//! that serves the peer, on a worker thread, because the plugin waits for the peer's answer. A message whose call did not return
//! when the link ends is uncertain, as one without a response on an SMPP link.
//!
//! The peer's own requests come to [`PluginPeers::router`]: the plugin reads them, and they are answered once the DLRs and messages
//! in them are durable.

mod callbacks;
mod counts;
mod incoming;
mod link;
mod options;
mod peers;
mod plugins;
mod workers;

pub use options::{PeerSecret, PluginPeerOptions};
pub use peers::PluginPeers;
pub use plugins::PeerPlugins;

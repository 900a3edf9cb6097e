//! Peers whose protocol a plugin implements, such as an HTTP API.
//!
//! The engine sees a peer of this crate as a link with a window. Each message that it sends goes to the plugin of the hook `peer`
//! that serves the peer, on a worker thread, because the plugin waits for the peer's response. If a call has not returned
//! when the link ends, its message is uncertain, like a message without a response on an SMPP link.
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

//! Sockets: SMPP towards ESMEs that bind to us and towards SMSCs that we dial, SGIP towards gateways and SPs; one tokio
//! task per connection.
//!
//! A link knows nothing of queues. What it receives becomes [`engine::Event`]s, pushed into the [`doors::Core`] once per
//! socket read; what the engine wants comes as commands through the [`doors::Hub`], one batch per link. The protocol itself is
//! in [`smpp::Session`]; here are the sockets under it, the accounts behind it, and the way between PDUs and messages.
//!
//! * **Nothing is answered before the engine says so.** A positive answer is [`engine::Answer`], which leaves the
//!   engine only after its commit.
//! * **Every message given to a link comes to an [`model::Outcome`]**: not sent if no octet of it was written,
//!   unanswered if it was written and the link closed.
//! * **A connection costs a bounded amount of memory** and cannot hold up another: reading stops when too much waits for
//!   the engine or for the peer, and a peer that does not read is dropped.
#![forbid(unsafe_code)]

mod accounts;
mod backoff;
mod client;
mod clock;
mod lines;
mod link;
mod links;
mod listener;
mod options;
mod outbox;
mod outgoing;
mod place;
mod probe;
mod refusal;
mod reply;
mod scope;
mod server;
mod serving;
mod sgip;
mod shared;
mod socket;
mod state;
mod submission;
mod tls;
mod upstream;

pub use client::PeerError;
pub use doors::ServerTls;
pub use links::{Leftover, Links, ReadyListeners};
pub use options::{
    AccountOptions, BindModes, ClientTls, LinksOptions, ListenerOptions, LongText, PeerOptions, Secret,
};
pub use probe::ProbeStep;
pub use server::ListenError;
pub use sgip::{GatewayOptions, Habits, SgipListenerOptions, SpOptions};
pub use shared::DoorCounts;
pub use smpp::BindMode;
pub use smpp::message_id::MessageIdForm;
pub use state::{LinkBrake, LinkRole, LinkState, Phase, Traffic};
pub use tls::TlsError;

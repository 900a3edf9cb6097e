//! The SMPP, SGIP, CMPP and SMGP links: ESMEs that bind to us, SMSCs that we dial, gateways and SPs; one tokio task
//! per connection.
//!
//! A link has no queues. It turns input into [`engine::Event`]s, which it pushes into the [`ports::EventSink`] once per
//! socket read. The engine's commands arrive through the [`ports::LinkRegistry`], one batch per link. [`smpp::Session`]
//! implements the protocol; this crate has the sockets, the accounts, and the mapping between PDUs and messages.
//!
//! * **No request is answered before the engine answers it.** A positive answer is an [`engine::EngineAnswer`], which
//!   leaves the engine only after its commit.
//! * **Every message that a link gets from the engine has an [`model::Outcome`]**: "not sent" if no octet of it was
//!   written, "unanswered" if it was written and the link closed.
//! * **The memory of a connection is bounded**, and a connection cannot delay another one: the link stops reading when
//!   too many octets wait for the engine or the peer, and disconnects a peer that does not read.
#![forbid(unsafe_code)]

mod accounts;
mod bind_authenticator;
mod bind_probe;
mod content_coding;
mod dlr;
mod esme_requests;
mod gateway_kind;
mod links;
mod listener_kind;
mod message_to_pdu;
mod messages_in_flight;
mod options;
mod partition;
mod pdu_to_message;
mod pending_answers;
mod refusal_status;
mod request_context;
mod request_token;
mod send_queue;
mod sgip;
mod shared;
mod smpp_link;
mod smsc_requests;
mod sp;

pub use gateway_kind::GatewayKind;
pub use links::{Links, PreparedListeners, ShutdownLeftover};
pub use listener_kind::ListenerKind;
pub use options::{LinkAccountOptions, LinksOptions, ListenerOptions, LongText, PeerOptions, Secret};
pub use partition::{PartitionAccountOptions, RemotePeerOptions};
pub use ports::ServerTlsFiles;
pub use ports::link::{
    ClientTls, LinkBlocker, LinkPhase, LinkRole, LinkState, ListenerCounts, ListenerError, PeerError,
    TlsError, Traffic,
};
pub use sgip::{GatewayOptions, SgipListenerOptions, SgipNodeOptions, SgipQuirks, SpOptions};
pub use smpp::BindMode;
pub use smpp::message_id::MessageIdForm;
pub use sp::{SignaturePosition, SpAccountOptions, SpGatewayOptions, SpListenerOptions, SpNodeOptions};

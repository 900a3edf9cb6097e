//! Peers: plugins that implement the protocol of a peer.

use crate::Message;
use crate::bindings::peer::exports::switchyard::hooks::peering;
use std::time::Duration;

pub use crate::bindings::router::switchyard::hooks::types::HttpHeader as Header;
#[doc(hidden)]
pub use peering::Guest;
pub use peering::{
    Attempt, Called, Incoming, Outcome, Receipt, ReceiptState, Refusal, RefusalClass, Request, Response,
    Submitted,
};

/// A plugin for a peer. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables), [`kv`](crate::kv),
/// [`http`](crate::http), [`secrets`](crate::secrets), [`body`](crate::body) and [`details`](crate::details).
pub trait Peer: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    fn configure(document: &str) -> Result<Self, String>;

    /// Submits a message to the peer. May block.
    fn submit(&self, message: &Message, attempt: &Attempt) -> Submitted;

    /// Reads a request to the callback address of the named peer. Anybody can send one, so check a signature or a secret
    /// first. May block.
    fn callback(&self, peer: &str, request: &Request) -> Called;
}

/// The peer has accepted the message with this id; `None`: the peer gives no id.
#[must_use]
pub fn accepted(id: Option<String>) -> Submitted {
    Submitted { outcome: Outcome::Accepted(id), note: None }
}

/// The peer certainly does not have the message; `code` is the peer's own code.
#[must_use]
pub fn refused(class: RefusalClass, code: u32) -> Submitted {
    Submitted { outcome: Outcome::Refused(Refusal { class, code, retry_after: None }), note: None }
}

/// The peer throttles: nothing is submitted to it for this time; `None`: for a time that the appliance chooses.
#[must_use]
pub fn throttled(code: u32, retry_after: Option<Duration>) -> Submitted {
    let retry_after = retry_after.map(crate::milliseconds);
    let refusal = Refusal { class: RefusalClass::Throttled, code, retry_after };
    Submitted { outcome: Outcome::Refused(refusal), note: None }
}

/// The peer may or may not have the message.
#[must_use]
pub fn unsure() -> Submitted {
    Submitted { outcome: Outcome::Unsure, note: None }
}

/// A response to a callback with this status, and without receipts and messages.
#[must_use]
pub fn respond(status: u16) -> Called {
    let response = Response { status, headers: Vec::new(), body: Vec::new() };
    Called { response, receipts: Vec::new(), messages: Vec::new(), note: None }
}

impl Submitted {
    /// The same outcome, with a note for the log.
    #[must_use]
    pub fn because(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

impl Called {
    /// The same answer, with a note for the log.
    #[must_use]
    pub fn because(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// Exports a type as the plugin of a peer.
#[macro_export]
macro_rules! export_peer {
    ($peer:ty) => {
        const _: () = {
            $crate::__configured_guest!($peer, Peer, PeerGuest, |cell| {
                fn submit(
                    message: $crate::Message,
                    attempt: $crate::peer::Attempt,
                ) -> $crate::peer::Submitted {
                    PLUGIN.with(|cell| $crate::Peer::submit(cell.get(), &message, &attempt))
                }

                fn callback(peer: String, request: $crate::peer::Request) -> $crate::peer::Called {
                    PLUGIN.with(|cell| $crate::Peer::callback(cell.get(), &peer, &request))
                }
            });
            $crate::bindings::peer::export_peer_component!(
                Exported with_types_in $crate::bindings::peer
            );
        };
    };
}

//! Calls of plugins of peers, and their results.

use crate::worlds::PluginResponse;
use model::{DlrState, Message, Outcome, PeerMessageId, SubmitTicket, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// A submit attempt at a peer that a plugin serves.
#[derive(Debug, Clone)]
pub struct PeerSubmission {
    /// The peer, by its name in the configuration.
    pub peer: Arc<str>,
    /// The message.
    pub message: Arc<Message>,
    /// Index of the leg in the message's forward verdict.
    pub leg: u8,
    /// The ticket of the attempt.
    pub ticket: SubmitTicket,
    /// Whether a DLR is requested.
    pub want_dlr: bool,
}

/// The outcome of a submit attempt.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The outcome.
    pub outcome: Outcome,
    /// The time for which nothing is submitted to the peer, as the peer requests.
    pub pause: Option<Duration>,
    /// The reason.
    pub note: Option<Box<str>>,
}

/// A request of a peer to the appliance.
#[derive(Debug, Clone, Default)]
pub struct CallbackRequest {
    /// The peer, by its name in the configuration.
    pub peer: Arc<str>,
    /// GET, POST …
    pub method: String,
    /// The path as sent.
    pub path: String,
    /// The query as sent, without the question mark.
    pub query: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The contents of a callback, and the plugin's response.
#[derive(Debug, Clone)]
pub struct CallbackAnswer {
    /// The response.
    pub response: PluginResponse,
    /// The receipts.
    pub receipts: Vec<PeerReceipt>,
    /// Messages from the peer.
    pub messages: Vec<IncomingMessage>,
    /// For the log.
    pub note: Option<Box<str>>,
}

/// A delivery receipt in a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerReceipt {
    /// The peer's id of the message.
    pub id: PeerMessageId,
    /// The subscriber's number, if the peer names it.
    pub subscriber: Option<String>,
    /// The sender, if the peer names it.
    pub sender: Option<String>,
    /// The state.
    pub state: DlrState,
    /// The peer's error code; 0 if there is none.
    pub error: u16,
    /// The time at which the state was reached.
    pub at: Option<Timestamp>,
}

/// A message in a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingMessage {
    /// The sender.
    pub source: String,
    /// The recipient.
    pub destination: String,
    /// The text.
    pub text: String,
}

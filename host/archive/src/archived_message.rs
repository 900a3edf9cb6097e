//! Finished messages as input of a replay.

use crate::trace::{DecodedTrace, decode_trace};
use bytes::Bytes;
use model::{
    Address, DlrRequest, Hook, Lookup, MessageChanges, MessageId, PluginVersion, PriceState, ScreenVerdict,
    SenderRequest, Timestamp, Verdict,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// A finished message: the input of its router and the decision.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedMessage {
    /// The message id.
    pub id: MessageId,
    /// The time of acceptance.
    pub accepted_at: Timestamp,
    /// The time of the verdict, as far as it is known: the acceptance or the last rerouting.
    pub decided_at: Timestamp,
    /// The account or peer that submitted the message.
    pub origin: Arc<str>,
    /// The source address as submitted.
    pub source: Address,
    /// The destination address as submitted.
    pub destination: Address,
    /// SMPP service_type; usually empty.
    pub service_type: SmallVec<[u8; 8]>,
    /// The data coding scheme.
    pub data_coding: u8,
    /// The priority, 0 to 3.
    pub priority: u8,
    /// The length of the text in octets, including a user data header.
    pub length: u32,
    /// Whether the text begins with a user data header.
    pub udhi: bool,
    /// The DLRs requested.
    pub dlr_request: DlrRequest,
    /// The text, if [`crate::ReplayRange::body`] requested it.
    pub body: Option<Bytes>,
    /// The verdict. A message rejected at once is never archived, so a rejection comes from a rerouting. With `resolve`, a
    /// leg names the peer that serves the subscriber, if known.
    pub verdict: Verdict<Arc<str>>,
    /// The pool sender that was requested, without the number that was assigned.
    pub sender: Option<Box<SenderRequest>>,
    /// The router's changes to the message.
    pub changes: Option<Box<MessageChanges>>,
    /// The decision of the screens, if any was bound.
    pub screening: Option<Box<ArchivedScreening>>,
    /// The result of the number lookup, if a lookup was called.
    pub lookup: Option<Arc<Lookup>>,
    /// The price and its settlement; `None` if no biller was called.
    pub price: Option<Box<ArchivedPrice>>,
    /// The recorded calls of receipt policies and of plugins of peers, encoded by `codec`, in the order of the calls.
    pub calls: Vec<(Hook, Bytes)>,
    /// The trace as stored, if [`crate::ReplayRange::trace`] requested it; see [`ArchivedMessage::decoded_trace`].
    pub trace: Option<Bytes>,
    /// The host call log of the router, as written by `hooks`; `None` if the router made no host calls whose results
    /// can vary.
    pub host_calls: Option<Bytes>,
    /// Whether a router was called; false for DLRs created by the appliance, and for messages that no screen let pass.
    pub routed: bool,
    /// Missing information that makes an exact replay impossible.
    pub missing: Option<MissingData>,
}

impl ArchivedMessage {
    /// The decoded trace; `None` if it was not requested or cannot be decoded.
    #[must_use]
    pub fn decoded_trace(&self) -> Option<DecodedTrace> {
        decode_trace(std::str::from_utf8(self.trace.as_ref()?).ok()?)
    }
}

/// The reason why an exact replay is impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MissingData {
    /// An older version archived the message without host calls and prices, and without the types of rewritten addresses; or
    /// a rule redacted its numbers.
    Older,
    /// The content was erased.
    ContentErased,
}

impl MissingData {
    /// A description.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ContentErased => "the content was erased",
            Self::Older => "archived without host call results, by an older version or with redacted numbers",
        }
    }
}

/// The verdict of the screens on a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedScreening {
    /// The verdict.
    pub verdict: ScreenVerdict,
    /// The plugin version that decided.
    pub by: Arc<PluginVersion>,
    /// The changes of the screens.
    pub changes: Option<Box<MessageChanges>>,
    /// Whether a screen replaced the text; the trace has the text as submitted.
    pub has_replaced_text: bool,
    /// The host call log of the screens.
    pub host_calls: Option<Box<[u8]>>,
}

/// The price of a message. Amounts are millionths of the operator's currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedPrice {
    /// The ledger account; `None` if free.
    pub account: Option<Arc<str>>,
    /// The amount.
    pub amount: u64,
    /// Whether the charge is kept if the message fails.
    pub keep_on_failure: bool,
    /// The settlement.
    pub state: PriceState,
    /// The biller.
    pub by: Arc<PluginVersion>,
}

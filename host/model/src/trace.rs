use crate::{
    AdminActionKind, Hook, Imsi, PeerId, PeerMessageId, PluginVersion, PoolName, PoolNumber, QueueActionId,
    Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One timestamped step of a message's trace.
///
/// `P` names peers: their ids while the message is live, their names in the archive. The archive's traces have the same JSON
/// form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step<P = PeerId> {
    /// The time of the step.
    pub at: Timestamp,
    /// The kind of the step.
    #[serde(flatten)]
    pub kind: StepKind<P>,
}

impl<P> Step<P> {
    /// The step with other references to peers.
    #[must_use]
    pub fn map_peers<Q>(&self, to: impl Fn(&P) -> Q) -> Step<Q> {
        Step { at: self.at, kind: self.kind.map_peers(to) }
    }
}

/// The kind of a step. Some JSON names are older than the variants' names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum StepKind<P = PeerId> {
    /// Accepted and durable. Always first; the verdict is in the message itself.
    Accepted,
    /// Sent on a link of this peer.
    Submitted {
        /// The peer.
        peer: P,
        /// The number of the attempt, from 1.
        attempt: u16,
    },
    /// The peer accepted it.
    Responded {
        /// The peer's id of the message, or of its first segment.
        id: PeerMessageId,
    },
    /// The peer refused it.
    Refused {
        /// The protocol's own code.
        code: u32,
    },
    /// It was certainly not sent.
    NotSent,
    /// Sent and never answered.
    Unanswered,
    /// Deferred until its next attempt.
    Deferred {
        /// The time of the next attempt.
        until: Timestamp,
    },
    /// Moved to the next leg.
    NextLeg {
        /// The leg's peer.
        peer: P,
    },
    /// Uncertain, and sent again.
    SentAgain,
    /// The peer was queried (query_sm).
    #[serde(rename = "asked")]
    StatusQueried,
    /// A DLR arrived.
    #[serde(rename = "reported")]
    DlrReceived {
        /// The state, as SMPP message_state.
        state: u8,
        /// The error code.
        error: u16,
    },
    /// Waiting for a DLR; the receipt hook is called if none comes.
    AwaitingDlr {
        /// The time of the call.
        until: Timestamp,
    },
    /// No final DLR came in the time that the receipt hook set.
    DlrOverdue,
    /// The receipt hook ignores the DLR.
    DlrSuspected,
    /// The receipt hook replaced the state and the error code of a DLR.
    DlrRemapped {
        /// The new state, as SMPP message_state.
        state: u8,
        /// The new error code.
        error: u16,
    },
    /// A DLR arrived from the peer of an earlier leg.
    LateDlrReceived {
        /// The peer.
        peer: P,
        /// The state, as SMPP message_state.
        state: u8,
        /// The error code.
        error: u16,
    },
    /// The submitter replaced the text.
    Replaced,
    /// Held, by the routing plugin or after a routing fault.
    Held {
        /// The time of the next routing, at the latest.
        until: Timestamp,
    },
    /// In quarantine until an admin releases or purges it.
    Quarantined,
    /// Routed again after a hold.
    Rerouted {
        /// The first leg's peer.
        peer: P,
    },
    /// The daemon restarted while the message was on a link.
    Recovered,
    /// A plugin decided; the next step shows the result.
    Decided {
        /// The hook.
        hook: Hook,
        /// The plugin version.
        #[serde(flatten)]
        by: Arc<PluginVersion>,
        /// Its note.
        #[serde(default)]
        note: Option<Box<str>>,
    },
    /// A plugin call was recorded for replays. Traces for people do not show it.
    CallRecorded {
        /// The hook: receipt or peer.
        hook: Hook,
        /// A [`crate::RecordedReceiptCall`] or a [`crate::RecordedSubmitCall`], encoded by `codec`.
        record: Box<[u8]>,
    },
    /// As [`StepKind::CallRecorded`], encrypted with the key of the message's content.
    SealedCallRecorded {
        /// The hook: receipt or peer.
        hook: Hook,
        /// The number of the key.
        key: u64,
        /// The record: nonce, encrypted octets and tag.
        record: Box<[u8]>,
    },
    /// Waiting for the resolver.
    Resolving,
    /// The subscriber was found.
    Resolved {
        /// The peer that serves the subscriber.
        peer: P,
        /// The answer was cached.
        cached: bool,
    },
    /// The number has no subscriber.
    UnknownSubscriber {
        /// The answer was cached.
        cached: bool,
    },
    /// The peer did not know the subscriber; the number is resolved again.
    #[serde(rename = "asked_anew")]
    SubscriberRequeried {
        /// The unknown subscriber.
        imsi: Imsi,
    },
    /// Waiting for a subscriber alert.
    AwaitingAlert {
        /// The time of the next attempt, at the latest.
        until: Timestamp,
    },
    /// The handset refused this particular message: other messages to the subscriber go first.
    #[serde(rename = "others_first")]
    MovedBehindOthers {
        /// The time of the next attempt.
        until: Timestamp,
    },
    /// A pool number was leased as its sender.
    #[serde(rename = "sender_taken")]
    SenderLeased {
        /// The pool.
        pool: PoolName,
        /// The number.
        number: PoolNumber,
    },
    /// No pool number was available for its sender.
    #[serde(rename = "no_sender")]
    SenderUnavailable {
        /// The pool.
        pool: PoolName,
    },
    /// Its reservation was captured.
    Charged {
        /// Millionths of the currency unit.
        amount: u64,
    },
    /// Its reservation was released.
    Refunded {
        /// Millionths of the currency unit.
        amount: u64,
    },
    /// An admin acted on it.
    #[serde(rename = "by_hand")]
    AdminAction {
        /// The action.
        #[serde(rename = "deed")]
        action: AdminActionKind,
        /// The admin.
        by: Arc<str>,
        /// The queue action, if it was one.
        #[serde(rename = "order", default, skip_serializing_if = "Option::is_none")]
        queue_action: Option<QueueActionId>,
        /// Its new peer, if that changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        peer: Option<P>,
    },
    /// Its content was erased after its end; see [`crate::ContentErasure`].
    ContentErased {
        /// The admin, or the rule that required it.
        by: Arc<str>,
    },
}

/// Rebuilds steps without a reference to a peer, because their type depends on the type of references.
macro_rules! without_peer {
    ($step:expr, { $($peer_step:pat => $mapped:expr,)* } $($variant:ident $({ $($field:ident),* })?,)*) => {
        match $step {
            $($peer_step => $mapped,)*
            $(StepKind::$variant $({ $($field),* })? => StepKind::$variant $({ $($field: $field.clone()),* })?,)*
        }
    };
}

impl<P> StepKind<P> {
    /// The length of the record in octets, if the step is a recorded call.
    #[must_use]
    pub fn recorded_octets(&self) -> Option<usize> {
        match self {
            Self::CallRecorded { record, .. } | Self::SealedCallRecorded { record, .. } => Some(record.len()),
            _ => None,
        }
    }

    /// Whether the step is for replays only, and not shown.
    #[must_use]
    pub fn is_record(&self) -> bool {
        self.recorded_octets().is_some()
    }

    /// The step with other references to peers.
    #[must_use]
    pub fn map_peers<Q>(&self, to: impl Fn(&P) -> Q) -> StepKind<Q> {
        without_peer!(self, {
            Self::Submitted { peer, attempt } => StepKind::Submitted { peer: to(peer), attempt: *attempt },
            Self::NextLeg { peer } => StepKind::NextLeg { peer: to(peer) },
            Self::LateDlrReceived { peer, state, error } => {
                StepKind::LateDlrReceived { peer: to(peer), state: *state, error: *error }
            },
            Self::Rerouted { peer } => StepKind::Rerouted { peer: to(peer) },
            Self::Resolved { peer, cached } => StepKind::Resolved { peer: to(peer), cached: *cached },
            Self::AdminAction { action, by, queue_action, peer } => StepKind::AdminAction {
                action: *action,
                by: by.clone(),
                queue_action: *queue_action,
                peer: peer.as_ref().map(to),
            },
        }
        Accepted, Responded { id }, Refused { code }, NotSent, Unanswered, Deferred { until }, SentAgain,
        StatusQueried, DlrReceived { state, error }, AwaitingDlr { until }, DlrOverdue, DlrSuspected,
        DlrRemapped { state, error }, Replaced, Held { until }, Quarantined, Recovered,
        Decided { hook, by, note }, CallRecorded { hook, record }, SealedCallRecorded { hook, key, record }, Resolving, UnknownSubscriber { cached }, SubscriberRequeried { imsi },
        AwaitingAlert { until }, MovedBehindOthers { until }, SenderLeased { pool, number },
        SenderUnavailable { pool }, Charged { amount }, Refunded { amount }, ContentErased { by },)
    }
}

/// The time at which the content of a message was erased, from its steps; `None` if it was not erased.
#[must_use]
pub fn content_erased_at<P>(steps: &[Step<P>]) -> Option<Timestamp> {
    steps.iter().rev().find(|step| matches!(step.kind, StepKind::ContentErased { .. })).map(|step| step.at)
}

/// The final state of a message. Every accepted message gets exactly one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum FinalState {
    /// Its DLR reports delivery, or the ESME accepted it.
    Delivered = 1,
    /// The peer accepted it, and no DLR is expected.
    Relayed = 2,
    /// Refused permanently, or its DLR reports a failure.
    Failed = 3,
    /// Its validity expired.
    Expired = 4,
    /// Cancelled by submitter or admin.
    Cancelled = 5,
    /// Rejected after acceptance: by a routing decision after a hold, or by the peer.
    Rejected = 6,
    /// Sent, and its fate remained unknown.
    Unknown = 7,
}

impl FinalState {
    /// All states, in the order of their octets.
    pub const ALL: [Self; 7] = [
        Self::Delivered,
        Self::Relayed,
        Self::Failed,
        Self::Expired,
        Self::Cancelled,
        Self::Rejected,
        Self::Unknown,
    ];

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == octet)
    }

    /// The name used in metrics, JSON and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Relayed => "relayed",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Rejected => "rejected",
            Self::Unknown => "unknown",
        }
    }
}

/// The final record of a message, with its trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FinalRecord {
    /// The final state.
    pub state: FinalState,
    /// The time of the final state.
    pub at: Timestamp,
    /// The last relevant error code; 0 if there was none.
    pub error: u32,
    /// The peer that accepted it, if any.
    pub peer: Option<PeerId>,
    /// The peer's id of the message, or of its first segment.
    pub peer_id: PeerMessageId,
    /// The trace, oldest step first. At most [`FinalRecord::MAX_STEPS`]: the first and the newest are kept.
    pub steps: Vec<Step>,
}

impl FinalRecord {
    /// The maximum number of steps of a trace.
    pub const MAX_STEPS: usize = 64;

    /// The maximum number of recorded calls in a trace: the first are kept.
    pub const MAX_RECORDED_CALLS: usize = 12;

    /// The maximum number of octets of these records.
    pub const MAX_RECORDED_OCTETS: usize = 8_192;

    /// The time at which the content of the message was erased; `None` if it was not erased.
    #[must_use]
    pub fn content_erased_at(&self) -> Option<Timestamp> {
        content_erased_at(&self.steps)
    }
}

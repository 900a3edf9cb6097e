use crate::{
    AdminActionKind, Hook, Imsi, PeerId, PeerMessageId, PluginVersion, PoolName, PoolNumber, QueueActionId,
    Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One timestamped step of a message's trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The time of the step.
    pub at: Timestamp,
    /// The kind of the step.
    pub kind: StepKind,
}

/// The kind of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// Accepted and durable. Always first; the verdict is in the message itself.
    Accepted,
    /// Sent on a link of this peer.
    Submitted {
        /// The peer.
        peer: PeerId,
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
        peer: PeerId,
    },
    /// Uncertain, and sent again.
    SentAgain,
    /// The peer was queried (query_sm).
    StatusQueried,
    /// A DLR arrived.
    DlrReceived {
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
    /// Routed again after a hold.
    Rerouted {
        /// The first leg's peer.
        peer: PeerId,
    },
    /// The daemon restarted while the message was on a link.
    Recovered,
    /// A plugin decided; the next step shows the result.
    Decided {
        /// The hook.
        hook: Hook,
        /// The plugin version.
        by: Arc<PluginVersion>,
        /// Its note.
        note: Option<Box<str>>,
    },
    /// Waiting for the resolver.
    Resolving,
    /// The subscriber was found.
    Resolved {
        /// The peer that serves the subscriber.
        peer: PeerId,
        /// The answer was cached.
        cached: bool,
    },
    /// The number has no subscriber.
    UnknownSubscriber {
        /// The answer was cached.
        cached: bool,
    },
    /// The peer did not know the subscriber; the number is requeried.
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
    MovedBehindOthers {
        /// The time of the next attempt.
        until: Timestamp,
    },
    /// A pool number was leased as its sender.
    SenderLeased {
        /// The pool.
        pool: PoolName,
        /// The number.
        number: PoolNumber,
    },
    /// No pool number was available for its sender.
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
    AdminAction {
        /// The action.
        action: AdminActionKind,
        /// The admin.
        by: Arc<str>,
        /// The queue action, if it was one.
        queue_action: Option<QueueActionId>,
        /// Its new peer, if that changed.
        peer: Option<PeerId>,
    },
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
    /// Sent, and its fate was never learnt.
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
}

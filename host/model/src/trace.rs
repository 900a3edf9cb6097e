use crate::{DecidedBy, Deed, Hook, Imsi, OrderId, PeerId, PeerMessageId, PoolName, PoolNumber, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One stamped step of a message's way; all of them together are its trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: StepKind,
}

/// What happened to a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// Accepted and durable. Always first; the verdict is in the message itself.
    Accepted,
    /// Given to a link of this peer. `attempt` counts from 1.
    Submitted {
        /// The peer.
        peer: PeerId,
        /// Which attempt.
        attempt: u16,
    },
    /// The peer took it.
    Responded {
        /// The peer's id of the (first part of the) message.
        id: PeerMessageId,
    },
    /// The peer refused it, with the protocol's code.
    Refused {
        /// The protocol's own code.
        code: u32,
    },
    /// It certainly never left.
    NotSent,
    /// Written and never answered.
    Unanswered,
    /// Waiting to be tried again at the given time.
    Deferred {
        /// Until when.
        until: Timestamp,
    },
    /// The next leg is tried.
    NextLeg {
        /// The leg's peer.
        peer: PeerId,
    },
    /// Doubt was settled by sending again.
    SentAgain,
    /// The peer was asked (query_sm).
    Asked,
    /// A receipt came.
    Reported {
        /// The state it told, as SMPP message_state.
        state: u8,
        /// Its error code.
        error: u16,
    },
    /// The text was replaced by the submitter.
    Replaced,
    /// Held: by the routing plugin's wish, or because it failed.
    Held {
        /// Until when it is held at most, before it is routed again.
        until: Timestamp,
    },
    /// Routed again after a hold.
    Rerouted {
        /// The first leg's peer.
        peer: PeerId,
    },
    /// The daemon was started again while the message was on its way.
    Recovered,
    /// A plugin decided what the next step shows.
    Decided {
        /// The question.
        hook: Hook,
        /// The plugin version.
        by: Arc<DecidedBy>,
        /// Its note.
        note: Option<Box<str>>,
    },
    /// It waits for the subscriber behind its number to be found.
    Resolving,
    /// The subscriber was found.
    Resolved {
        /// The peer that serves the subscriber.
        peer: PeerId,
        /// The answer was remembered, not asked for.
        cached: bool,
    },
    /// The number has no subscriber.
    UnknownSubscriber {
        /// The answer was remembered, not asked for.
        cached: bool,
    },
    /// The peer did not know the subscriber that was found; the number is asked about once more.
    AskedAnew {
        /// The subscriber it did not know.
        imsi: Imsi,
    },
    /// It waits until the subscriber is heard of, at most until the given time.
    AwaitingAlert {
        /// Until when.
        until: Timestamp,
    },
    /// The handset refused this message: it waits to be tried again at the given time, and other messages to the subscriber
    /// go first.
    OthersFirst {
        /// Until when.
        until: Timestamp,
    },
    /// It got a number of a pool for its sender, and has it until it ends.
    SenderTaken {
        /// The pool.
        pool: PoolName,
        /// The number.
        number: PoolNumber,
    },
    /// It was to have a number of a pool for its sender, and none was to be had.
    NoSender {
        /// The pool.
        pool: PoolName,
    },
    /// What was reserved for it was captured.
    Charged {
        /// Millionths of the house's currency.
        amount: u64,
    },
    /// What was reserved for it was given back.
    Refunded {
        /// Millionths of the house's currency.
        amount: u64,
    },
    /// An admin has done something with it.
    ByHand {
        /// What.
        deed: Deed,
        /// Who.
        by: Arc<str>,
        /// By an order about many, where it was.
        order: Option<OrderId>,
        /// Where it goes now, where that has changed.
        peer: Option<PeerId>,
    },
}

/// How a message ended. Every accepted message gets exactly one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum FinalState {
    /// The receipt says delivered, or the ESME took it.
    Delivered = 1,
    /// The peer took it and no receipt is to come.
    Relayed = 2,
    /// Refused for good, or its receipt says undeliverable.
    Failed = 3,
    /// Its validity ended first.
    Expired = 4,
    /// Cancelled by submitter or admin.
    Cancelled = 5,
    /// Rejected after acceptance: by a routing decision after a hold, or by the peer.
    Rejected = 6,
    /// Handed over, and it was never learnt what became of it.
    Unknown = 7,
}

impl FinalState {
    /// All of them, in the order of their octets.
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

    /// The word used in metrics, JSON and logs.
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

/// The end of a message, with all the steps that led to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Final {
    /// How it ended.
    pub state: FinalState,
    /// When.
    pub at: Timestamp,
    /// The last error code that mattered, 0 where there was none.
    pub error: u32,
    /// The peer that took it, where one did.
    pub peer: Option<PeerId>,
    /// The peer's id of the (first part of the) message.
    pub peer_id: PeerMessageId,
    /// Its steps, oldest first. At most [`Final::MAX_STEPS`]: the first and the newest are kept.
    pub steps: Vec<Step>,
}

impl Final {
    /// How many steps a trace keeps.
    pub const MAX_STEPS: usize = 64;
}

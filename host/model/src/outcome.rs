use crate::PeerMessageId;
use std::fmt;

/// The class of a refusal; it decides whether a retry makes sense.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorClass {
    /// A retry may succeed: system error, no receiver bound.
    Temporary,
    /// A retry on this leg cannot succeed.
    Permanent,
    /// The peer throttles (SMPP 0x58): the peer waits, not the message.
    Throttled,
    /// The peer's queue is full (SMPP 0x14); handled like throttling.
    QueueFull,
    /// The subscriber is not reachable now.
    Absent,
    /// The handset's memory is full.
    MemoryFull,
    /// The handset refuses this particular message and may take others: other messages to the subscriber go first,
    /// and the message has few attempts.
    ThisMessage,
    /// The peer does not know the subscriber: the number is resolved again if the resolver's answer may be outdated;
    /// otherwise the error is permanent.
    UnknownSubscriber,
    /// The number belongs to another subscriber now: it is resolved again, even if the resolver's answer is fresh.
    NumberMoved,
}

impl ErrorClass {
    /// All classes. Records name a class by its index.
    pub const ALL: [Self; 9] = [
        Self::Temporary,
        Self::Permanent,
        Self::Throttled,
        Self::QueueFull,
        Self::Absent,
        Self::MemoryFull,
        Self::ThisMessage,
        Self::UnknownSubscriber,
        Self::NumberMoved,
    ];

    /// The name, as plugins write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Temporary => "temporary",
            Self::Permanent => "permanent",
            Self::Throttled => "throttled",
            Self::QueueFull => "queue-full",
            Self::Absent => "absent",
            Self::MemoryFull => "memory-full",
            Self::ThisMessage => "this-message",
            Self::UnknownSubscriber => "unknown-subscriber",
            Self::NumberMoved => "number-moved",
        }
    }
}

/// The outcome of one submit attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The peer accepted it. One id per segment sent; an id may be empty.
    Accepted {
        /// The ids, in the order of the segments.
        ids: Vec<PeerMessageId>,
    },
    /// The peer refused it.
    Refused {
        /// The class of the error.
        class: ErrorClass,
        /// The protocol's own code: an SMPP command_status, for instance.
        code: u32,
        /// Ids of segments accepted before the refusal; these are not sent again.
        taken: Vec<PeerMessageId>,
    },
    /// It was certainly not sent: the link closed before an octet of it was written.
    NotSent,
    /// It was sent and not answered in time, or its link closed. The message is uncertain and never sent again
    /// silently.
    Unanswered {
        /// Ids of segments that were accepted before.
        taken: Vec<PeerMessageId>,
        /// Ids that DLRs will use for the unanswered segments, in protocols where the sender chooses them.
        known: Vec<PeerMessageId>,
    },
}

/// The ticket of a submit attempt, durable before it is sent. A repetition of an uncertain attempt keeps its ticket,
/// so that a link can use the same sequence number and the peer can recognise the repetition. Every other attempt has a new
/// ticket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SubmitTicket {
    /// The time of the first attempt with this ticket.
    pub at: crate::Timestamp,
    /// The number of that attempt, from 1.
    pub attempt: u16,
}

/// The reason why a submission was refused. Links map it to a status of their protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The account's or the appliance's queue is full, or the disk is nearly full: try again later (SMPP 0x14).
    QueueFull,
    /// The account's rate limit is exceeded (SMPP 0x58).
    Throttled,
    /// The day quota of the account, or of a tenant above it, is exhausted (as [`Refusal::Throttled`]).
    QuotaExceeded,
    /// No route, or the routing plugin rejected it; the reason decides the code.
    Rejected(crate::RejectReason),
    /// The scheduled time is not acceptable (SMPP 0x61).
    BadSchedule,
    /// The validity had already expired (SMPP 0x62).
    Expired,
    /// Unknown message, or not this account's (SMPP 0x0C).
    UnknownMessage,
    /// The message's state does not allow a cancel, a replacement or a query (SMPP 0x11, 0x13, 0x67).
    WrongState,
    /// Internal fault; nothing was accepted (SMPP 0x08).
    Internal,
    /// The appliance is shutting down; nothing was accepted.
    ShuttingDown,
    /// The idempotency key was used before, for another submission (SGIP 1.2 §3.4: error 9).
    KeyReused,
    /// The account's memory for idempotency keys is full.
    KeysFull {
        /// Seconds until the oldest key expires.
        retry_after: u32,
    },
}

impl Refusal {
    /// The name used in JSON, metrics and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::Throttled => "throttled",
            Self::QuotaExceeded => "quota-exceeded",
            Self::Rejected(reason) => reason.name(),
            Self::BadSchedule => "bad-schedule",
            Self::Expired => "expired",
            Self::UnknownMessage => "unknown-message",
            Self::WrongState => "wrong-state",
            Self::Internal => "internal",
            Self::ShuttingDown => "shutting-down",
            Self::KeyReused => "key-reused",
            Self::KeysFull { .. } => "keys-full",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::QueueFull => "queue full",
            Self::Throttled => "rate limit exceeded",
            Self::QuotaExceeded => "the messages of the day are used up (messages-per-day)",
            Self::Rejected(reason) => return write!(f, "rejected: {reason}"),
            Self::BadSchedule => "schedule not acceptable",
            Self::Expired => "validity has already expired",
            Self::UnknownMessage => "unknown message",
            Self::WrongState => "the message's state does not allow it",
            Self::Internal => "internal fault",
            Self::ShuttingDown => "shutting down",
            Self::KeyReused => "the idempotency key was used before for another submission",
            Self::KeysFull { retry_after } => {
                return write!(
                    f,
                    "the memory for the account's idempotency keys is full (idempotency-memory): retry in \
                     {retry_after} s, or submit without a key"
                );
            }
        };
        f.write_str(text)
    }
}

use crate::PeerMessageId;
use std::fmt;

/// What kind of refusal a peer gave; decides whether trying again makes sense.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorClass {
    /// May work later: system error, no receiver bound.
    Temporary,
    /// Will not work on this leg.
    Permanent,
    /// Too fast: the peer, not the message, is to wait (SMPP 0x58).
    Throttled,
    /// The peer's queue for us is full (SMPP 0x14); handled like throttling.
    QueueFull,
    /// The subscriber is not reachable now.
    Absent,
    /// The handset's memory is full.
    MemoryFull,
    /// The handset refuses this message and may take the next one: others to the subscriber go first, and the message has
    /// few attempts.
    ThisMessage,
    /// The peer does not know the subscriber: the number is asked about once more, if its answer can have been an old one;
    /// otherwise it is permanent.
    UnknownSubscriber,
    /// The number has been seen to be another subscriber's: it is asked about once more, however new its answer is.
    NumberMoved,
}

/// How one attempt to hand a message to a peer ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The peer took it. One id per part that was sent; an id may be empty.
    Accepted {
        /// Ids by part, in the order of the parts.
        ids: Vec<PeerMessageId>,
    },
    /// The peer said no.
    Refused {
        /// What kind of no.
        class: ErrorClass,
        /// The protocol's own code: an SMPP command_status, for instance.
        code: u32,
        /// Parts taken before the refusal, with their ids: they are not sent again.
        taken: Vec<PeerMessageId>,
    },
    /// It certainly never left: the link closed before a byte of it was written.
    NotSent,
    /// It was written and not answered in time, or its link closed: nobody knows. Never silently sent again.
    Unanswered {
        /// Parts that were answered positively before.
        taken: Vec<PeerMessageId>,
        /// Ids under which a receipt will speak of the unanswered parts, in protocols where the sender chooses them.
        known: Vec<PeerMessageId>,
    },
}

/// Names one hand-over of a message, durably and before it leaves. A repetition that settles a doubt has the ticket of
/// the hand-over that it repeats, so that a link can give it the same sequence number and the peer can tell that it
/// has it already; any other attempt has a ticket of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ticket {
    /// When the hand-over was first made.
    pub at: crate::Timestamp,
    /// Its attempt, from 1.
    pub attempt: u16,
}

/// Why a submission was not accepted. Links turn it into the protocol's own answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The account's or the appliance's queue is full, or the disk nearly so: try again later (SMPP 0x14).
    QueueFull,
    /// Over the account's rate (SMPP 0x58).
    Throttled,
    /// No route, or the routing plugin said no (its reason decides the code).
    Rejected(crate::RejectReason),
    /// The scheduled time is not acceptable (SMPP 0x61).
    BadSchedule,
    /// The validity ended before it began (SMPP 0x62).
    Expired,
    /// Unknown message, or not this account's (SMPP 0x0C).
    UnknownMessage,
    /// The message is in a state in which it cannot be cancelled, replaced or asked for (SMPP 0x11, 0x13, 0x67).
    WrongState,
    /// A fault of ours; nothing was accepted (SMPP 0x08).
    Internal,
    /// The appliance is shutting down; nothing was accepted.
    ShuttingDown,
    /// The submission's key was used before, for another submission (SGIP 1.2 §3.4: error 9).
    KeyReused,
    /// The account has as many idempotency keys as it may; in so many seconds the oldest is forgotten.
    KeysFull {
        /// Seconds.
        retry_after: u32,
    },
}

impl Refusal {
    /// The word by which programs know it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::Throttled => "throttled",
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
            Self::Throttled => "over the agreed rate",
            Self::Rejected(reason) => return write!(f, "rejected: {reason}"),
            Self::BadSchedule => "schedule not acceptable",
            Self::Expired => "validity has already ended",
            Self::UnknownMessage => "unknown message",
            Self::WrongState => "the message's state does not allow it",
            Self::Internal => "internal fault",
            Self::ShuttingDown => "shutting down",
            Self::KeyReused => "the key was used before for another submission",
            Self::KeysFull { retry_after } => {
                return write!(
                    f,
                    "the memory for the account's idempotency keys is full (idempotency-memory): a new key is taken in \
                     {retry_after} s, a submission without a key at once"
                );
            }
        };
        f.write_str(text)
    }
}

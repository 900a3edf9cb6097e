use crate::{ErrorClass, Message, PeerId, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// An event of a message at a peer, for statistics. It is not durable.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerObservation {
    /// The peer.
    pub peer: PeerId,
    /// The submitter of the message.
    pub origin: PeerId,
    /// The time.
    pub at: Timestamp,
    /// The message, if its content is in memory.
    pub message: Option<Arc<Message>>,
    /// The kind of event.
    pub kind: ObservationKind,
}

/// The kind of an event at a peer: the end of a submit attempt, the end of the wait for a DLR, or a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservationKind {
    /// The peer accepted it.
    Accepted,
    /// The peer refused it.
    Refused(ErrorClass),
    /// The peer did not answer.
    Unanswered,
    /// Its DLR reports delivery.
    Delivered {
        /// From the submit attempt to the DLR.
        after: Duration,
    },
    /// Its DLR reports another final state, or no DLR came in time.
    Failed {
        /// From the submit attempt to the DLR; `None` if no DLR came in time.
        after: Option<Duration>,
    },
    /// An integrator reports that it led to a conversion.
    Converted,
}

use crate::{ErrorClass, PeerId, PluginVersion};
use std::sync::Arc;
use std::time::Duration;

/// A failed attempt: the input of the delivery policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The number of the attempt, from 1, over all legs.
    pub number: u16,
    /// The index of the leg, and the number of legs.
    pub leg: (u8, u8),
    /// The peer.
    pub peer: PeerId,
    /// The class of the error.
    pub class: ErrorClass,
    /// The protocol's own code.
    pub code: u32,
    /// The time since the message was accepted.
    pub age: Duration,
    /// The remaining validity.
    pub left: Duration,
}

/// The next step after a failed attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextStep {
    /// Retry this leg after a delay; zero: at once, at the message's old place in the queue.
    RetryAfter(Duration),
    /// Try the next leg; if there is none, the message fails.
    NextLeg,
    /// Wait for a subscriber alert, at most this long; then retry.
    AwaitAlert(Duration),
    /// Fail the message.
    Fail,
}

/// Advice about a peer as a whole.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PeerAdvice {
    /// Send it nothing for this long.
    pub pause: Option<Duration>,
    /// From now on, at most this many messages per second. A lower configured rate stays.
    pub rate: Option<f64>,
    /// From now on, at most this many unanswered messages over all its links.
    pub window: Option<u32>,
}

/// A delivery policy's decision.
#[derive(Clone, PartialEq, Debug)]
pub struct DeliveryDecision {
    /// The next step.
    pub step: NextStep,
    /// The advice about the peer.
    pub advice: PeerAdvice,
    /// The plugin version that decided.
    pub by: Arc<PluginVersion>,
    /// Its note, for the trace.
    pub note: Option<Box<str>>,
}

use crate::{DecidedBy, ErrorClass, PeerId};
use std::sync::Arc;
use std::time::Duration;

/// A failed attempt, as a delivery policy is told of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Attempts made so far, this one included, over all legs.
    pub number: u16,
    /// The leg's index, and how many legs there are.
    pub leg: (u8, u8),
    /// The peer that was tried.
    pub peer: PeerId,
    /// What kind of failure it was.
    pub class: ErrorClass,
    /// The protocol's own code.
    pub code: u32,
    /// How long ago the message was accepted.
    pub age: Duration,
    /// How long it is still valid.
    pub left: Duration,
}

/// What is to follow a failed attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextStep {
    /// Try this leg again after a while; zero: at once, at the message's old place in the queue.
    RetryAfter(Duration),
    /// Try the next leg; where there is none, the message fails.
    NextLeg,
    /// Wait until the subscriber is heard of, but no longer than this; then try again.
    AwaitAlert(Duration),
    /// Give up.
    Fail,
}

/// What a delivery policy advises about a peer as a whole.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PeerAdvice {
    /// Send it nothing for so long.
    pub pause: Option<Duration>,
    /// From now on, at most so many messages a second. A configured rate that is lower stays.
    pub rate: Option<f64>,
    /// From now on, at most so many unanswered messages over all its links.
    pub window: Option<u32>,
}

/// A delivery policy's decision.
#[derive(Clone, PartialEq, Debug)]
pub struct Next {
    /// What is to follow.
    pub step: NextStep,
    /// What it means for the peer.
    pub advice: PeerAdvice,
    /// The plugin version that decided.
    pub by: Arc<DecidedBy>,
    /// Its note, for the trace.
    pub note: Option<Box<str>>,
}

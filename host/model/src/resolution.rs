use crate::{AddressBytes, DecidedBy, PeerId};
use std::sync::Arc;
use std::time::Duration;

/// An international mobile subscriber identity: at most 15 decimal digits (3GPP TS 23.003 §2.2).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Imsi(pub AddressBytes);

/// What a resolver knows of a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subscriber {
    /// It is ours.
    Found {
        /// Who stands behind the number.
        imsi: Imsi,
        /// The peer that serves the subscriber; `None`: the leg's own.
        peer: Option<PeerId>,
        /// How long the answer holds; `None`: as long as the host's default.
        valid: Option<Duration>,
    },
    /// There is no such subscriber.
    Unknown {
        /// How long the answer holds; `None`: as long as the host's default.
        valid: Option<Duration>,
    },
    /// It could not be found out now.
    TryLater {
        /// When to ask again; `None`: the host's default.
        after: Option<Duration>,
    },
}

/// A resolver's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolution {
    /// The answer.
    pub subscriber: Subscriber,
    /// The plugin version that gave it.
    pub by: Arc<DecidedBy>,
    /// Its note, for the trace.
    pub note: Option<Box<str>>,
}

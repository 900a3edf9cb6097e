use crate::{AddressBytes, PeerId, PluginVersion};
use std::sync::Arc;
use std::time::Duration;

/// An international mobile subscriber identity: at most 15 decimal digits (3GPP TS 23.003 §2.2).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Imsi(pub AddressBytes);

/// A resolver's result for a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subscriber {
    /// The number has a subscriber.
    Found {
        /// The subscriber.
        imsi: Imsi,
        /// The peer that serves the subscriber; `None`: the leg's own.
        peer: Option<PeerId>,
        /// How long the answer may be cached; `None`: the host's default.
        valid: Option<Duration>,
    },
    /// The number has no subscriber.
    Unknown {
        /// How long the answer may be cached; `None`: the host's default.
        valid: Option<Duration>,
    },
    /// The resolver cannot answer now.
    TryLater {
        /// The delay before the next query; `None`: the host's default.
        after: Option<Duration>,
    },
}

/// A resolver's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolution {
    /// The result.
    pub subscriber: Subscriber,
    /// The plugin version that answered.
    pub by: Arc<PluginVersion>,
    /// Its note, for the trace.
    pub note: Option<Box<str>>,
}

use crate::Timestamp;
use std::sync::Arc;

/// An event of the appliance (not of a message) for event sinks. It is written to the journal with the messages, so that
/// sinks get it in order, and also after a crash. No table stores it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The kind.
    pub kind: NoticeKind,
    /// Unique for ever; a repeated delivery has the same id.
    pub id: Arc<str>,
    /// The time of the event.
    pub at: Timestamp,
    /// The details: a JSON object of at most 60,000 octets.
    pub data: Arc<str>,
}

impl Notice {
    /// The longest `data`, in octets.
    pub const MAX_DATA: usize = 60_000;
}

/// The kind of a notice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum NoticeKind {
    /// A plugin failed too often.
    Fault = 0,
    /// The plugins of a hook were changed.
    Exchange = 1,
    /// A version of the configuration is in force.
    Configuration = 2,
}

impl NoticeKind {
    /// All kinds, in the order of their octets.
    pub const ALL: [Self; 3] = [Self::Fault, Self::Exchange, Self::Configuration];

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == octet)
    }
}

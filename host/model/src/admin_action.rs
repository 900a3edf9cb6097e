/// An action of an admin, or of a queue action, on one message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum AdminActionKind {
    /// Released from a hold.
    Resumed = 1,
    /// Moved to another peer.
    Rerouted = 2,
    /// Cancelled.
    Cancelled = 3,
    /// It was uncertain, and is submitted again.
    SentAgain = 4,
    /// It was uncertain, and has ended as unknown.
    GivenUp = 5,
    /// Retried at once.
    Retried = 6,
    /// Released from quarantine: it is routed.
    Released = 7,
    /// Purged from quarantine: it ended as rejected.
    Purged = 8,
}

impl AdminActionKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Resumed,
        Self::Rerouted,
        Self::Cancelled,
        Self::SentAgain,
        Self::GivenUp,
        Self::Retried,
        Self::Released,
        Self::Purged,
    ];

    /// The name used in the archive's traces.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::Rerouted => "rebound",
            Self::Cancelled => "cancelled",
            Self::SentAgain => "sent_again",
            Self::GivenUp => "given_up",
            Self::Retried => "retried",
            Self::Released => "released",
            Self::Purged => "purged",
        }
    }

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == octet)
    }
}

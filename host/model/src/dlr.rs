use crate::{PeerMessageId, Timestamp};
use serde::{Deserialize, Serialize};

/// The message state in a DLR (SMPP message_state, 3.4 §5.2.28; 0 and 9 are 5.0).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum DlrState {
    /// Waiting for its scheduled time.
    Scheduled = 0,
    /// In delivery.
    Enroute = 1,
    /// Delivered.
    Delivered = 2,
    /// Its validity has expired.
    Expired = 3,
    /// Deleted by its submitter or an admin.
    Deleted = 4,
    /// Cannot be delivered.
    Undeliverable = 5,
    /// Accepted on behalf of the subscriber.
    Accepted = 6,
    /// Unknown.
    Unknown = 7,
    /// Rejected.
    Rejected = 8,
    /// Skipped.
    Skipped = 9,
}

impl DlrState {
    /// From the wire octet of message_state.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Some(match octet {
            0 => Self::Scheduled,
            1 => Self::Enroute,
            2 => Self::Delivered,
            3 => Self::Expired,
            4 => Self::Deleted,
            5 => Self::Undeliverable,
            6 => Self::Accepted,
            7 => Self::Unknown,
            8 => Self::Rejected,
            9 => Self::Skipped,
            _ => return None,
        })
    }

    /// The name, as plugins and policy documents write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Enroute => "enroute",
            Self::Delivered => "delivered",
            Self::Expired => "expired",
            Self::Deleted => "deleted",
            Self::Undeliverable => "undeliverable",
            Self::Accepted => "accepted",
            Self::Unknown => "unknown",
            Self::Rejected => "rejected",
            Self::Skipped => "skipped",
        }
    }

    /// Whether it is a final state.
    #[must_use]
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Scheduled | Self::Enroute)
    }
}

/// A DLR that a peer sent for a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dlr {
    /// The peer's message id, in the form of the link's setting; empty if the DLR has none.
    pub id: PeerMessageId,
    /// The state; [`DlrState::Unknown`] if the DLR has none.
    pub state: DlrState,
    /// It is an intermediate notification.
    pub intermediate: bool,
    /// The operator's error code; 0 if there is none.
    pub error: u16,
    /// SMPP network_error_code, if given.
    pub network_error: Option<[u8; 3]>,
    /// The operator's done date, if given and readable.
    pub done_at: Option<Timestamp>,
    /// The DLR's source (the handset), the value only. With `to` it matches a message whose submit response, and so
    /// whose id, was lost.
    pub from: crate::AddressBytes,
    /// The DLR's destination (the sender of the message), the value only.
    pub to: crate::AddressBytes,
}

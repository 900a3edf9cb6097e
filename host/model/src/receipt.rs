use crate::{PeerMessageId, Timestamp};
use serde::{Deserialize, Serialize};

/// The state a receipt tells of (SMPP message_state, 3.4 §5.2.28; 0 and 9 are 5.0).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum ReceiptState {
    /// Waiting for its scheduled time.
    Scheduled = 0,
    /// On its way.
    Enroute = 1,
    /// Delivered.
    Delivered = 2,
    /// Its validity ended first.
    Expired = 3,
    /// Deleted by its submitter or an admin.
    Deleted = 4,
    /// Cannot be delivered.
    Undeliverable = 5,
    /// Taken over on behalf of the subscriber.
    Accepted = 6,
    /// Nobody knows.
    Unknown = 7,
    /// Rejected.
    Rejected = 8,
    /// Skipped on purpose.
    Skipped = 9,
}

impl ReceiptState {
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

    /// Whether nothing more is to be expected after it.
    #[must_use]
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Scheduled | Self::Enroute)
    }
}

/// A receipt that a peer sent for a message of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// The peer's id, in the form of the link's setting; empty where the receipt named none.
    pub id: PeerMessageId,
    /// What became of the message; [`ReceiptState::Unknown`] where the receipt did not say.
    pub state: ReceiptState,
    /// Not the last word.
    pub intermediate: bool,
    /// The operator's error code, 0 where there is none.
    pub error: u16,
    /// SMPP network_error_code, where given.
    pub network_error: Option<[u8; 3]>,
    /// The operator's done date, where given and readable.
    pub done_at: Option<Timestamp>,
    /// The receipt's source (the handset) and destination (the sender of the message), values only: with them a
    /// receipt finds a message whose answer, and so whose id, was lost.
    pub from: crate::AddressBytes,
    /// See `from`.
    pub to: crate::AddressBytes,
}

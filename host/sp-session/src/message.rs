//! Messages and status reports in the form that both protocols share.

use crate::SpFields;
use bytes::Bytes;

/// The text of a PDU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Content {
    /// The coding: `Msg_Fmt` of CMPP, `MsgFormat` of SMGP.
    pub format: u8,
    /// The octets, including a user data header.
    pub octets: Bytes,
    /// Whether they begin with a user data header.
    pub udhi: bool,
    /// The segment number, if the PDU has one; `None` for a text in one PDU.
    pub part: Option<SegmentNumber>,
}

/// The segment of a long text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentNumber {
    /// Number of segments, from 2.
    pub total: u8,
    /// This segment, from 1.
    pub number: u8,
}

/// An SP's message for subscribers: Submit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Submission {
    /// The number that the handset shows: access code and extension.
    pub source: Bytes,
    /// The subscribers' numbers; at least one.
    pub destinations: Vec<Bytes>,
    /// The text.
    pub content: Content,
    /// Whether the SP wants a status report. `None`: a billing record that no handset receives.
    pub wants_report: Option<bool>,
    /// The priority, from 0 (low) to 3.
    pub priority: u8,
    /// TP-PID.
    pub protocol_id: u8,
    /// End of the validity: `YYMMDDhhmmsstnnp`, or empty.
    pub valid_until: Bytes,
    /// Earliest time of delivery: `YYMMDDhhmmsstnnp`, or empty.
    pub deliver_at: Bytes,
    /// Fields that no other protocol has.
    pub fields: SpFields,
}

/// A subscriber's message for an SP: Deliver.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    /// The gateway's id of this PDU.
    pub id: Bytes,
    /// The subscriber's number.
    pub source: Bytes,
    /// The SP's access code with extension.
    pub destination: Bytes,
    /// The text.
    pub content: Content,
    /// TP-PID.
    pub protocol_id: u8,
    /// Fields that no other protocol has: service and `LinkID`.
    pub fields: SpFields,
    /// Time when the gateway received it, `YYYYMMDDhhmmss`; only in SMGP.
    pub received: Bytes,
}

/// The gateway's status report on a submission: a Deliver that is marked as a report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpStatusReport {
    /// The gateway's id of this PDU.
    pub id: Bytes,
    /// The id of the submission from its answer: as text in received reports, as octets in sent ones.
    pub submission: Bytes,
    /// The subscriber's number.
    pub subscriber: Bytes,
    /// The number that the submission came from.
    pub source: Bytes,
    /// The service of the submission.
    pub service: Bytes,
    /// The state, at most seven characters; see [`crate::state_of`].
    pub word: Bytes,
    /// The network's code, 0 to 999; only SMGP has a field for it.
    pub error: u16,
    /// Time of the submission in China, `YYMMDDhhmm`.
    pub submitted: Bytes,
    /// Time of the state in China, `YYMMDDhhmm`.
    pub done: Bytes,
}

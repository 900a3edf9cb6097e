use crate::{Address, MessageId, PeerId, PeerMessageId, ReceiptState, Routed, Timestamp, Verdict};
use bytes::Bytes;

/// How urgent a message is, 0 (bulk) to 3 (very urgent), as SMPP 3.4 §5.2.14 has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Priority(u8);

impl Priority {
    /// How many levels there are.
    pub const LEVELS: usize = 4;

    /// A priority from a wire octet; what is above 3 counts as 3.
    #[must_use]
    pub fn new(level: u8) -> Self {
        Self(level.min(3))
    }

    /// The level, 0 to 3.
    #[must_use]
    pub fn level(self) -> u8 {
        self.0
    }
}

/// Which receipts the submitter asked for (SMPP registered_delivery, §5.2.17).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReceiptRequest {
    /// A receipt when the message was delivered.
    pub on_success: bool,
    /// A receipt when it finally was not.
    pub on_failure: bool,
    /// Notices on the way as well (intermediate notification).
    pub intermediate: bool,
}

impl ReceiptRequest {
    /// No receipts of any kind.
    pub const NONE: Self = Self { on_success: false, on_failure: false, intermediate: false };
    /// A receipt for either outcome.
    pub const FINAL: Self = Self { on_success: true, on_failure: true, intermediate: false };

    /// Whether any receipt at all is wanted.
    #[must_use]
    pub fn any(self) -> bool {
        self.on_success || self.on_failure || self.intermediate
    }

    /// Packs the three answers into bits 0, 1 and 2.
    #[must_use]
    pub fn bits(self) -> u8 {
        u8::from(self.on_success) | u8::from(self.on_failure) << 1 | u8::from(self.intermediate) << 2
    }

    /// Reads what [`ReceiptRequest::bits`] packed.
    #[must_use]
    pub fn from_bits(bits: u8) -> Self {
        Self { on_success: bits & 1 != 0, on_failure: bits & 2 != 0, intermediate: bits & 4 != 0 }
    }
}

/// The user data of a message, as the sender encoded it; a relay never changes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Text {
    /// The octets: SMPP short_message or message_payload, UDH included where `udhi` says so.
    pub octets: Bytes,
    /// Data coding scheme (SMPP §5.2.19).
    pub data_coding: u8,
    /// The octets begin with a user data header.
    pub udhi: bool,
    /// The sender used message_payload; over 254 octets there is no other way.
    pub payload: bool,
}

impl Text {
    /// Short messages that the text makes on the air, at least 1 (3GPP TS 23.040 §9.2.3.24.1): of the default alphabet 160
    /// characters fit one and 153 each of several, of others 140 and 134 octets. A text that has a user data header of its
    /// own is one.
    #[must_use]
    pub fn parts(&self) -> u16 {
        // 3GPP TS 23.038 §4: the groups whose alphabet is the default one; SMPP's 0 is the network's default.
        let packed = match self.data_coding {
            0x00 | 0x01 => true,
            0xf0..=0xff => self.data_coding & 0x04 == 0,
            _ => false,
        };
        let (one, each) = if packed { (160, 153) } else { (140, 134) };
        let length = self.octets.len();
        if self.udhi || length <= one {
            return 1;
        }
        u16::try_from(length.div_ceil(each)).unwrap_or(u16::MAX)
    }
}

/// What a message is for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// An ordinary short message: MT from an account to the network, or MO the other way.
    #[default]
    Text,
    /// A receipt of ours for an accepted message, on its way back to the submitter.
    Receipt(Box<ReceiptText>),
}

/// What a receipt of ours says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiptText {
    /// The message it speaks of.
    pub of: MessageId,
    /// What became of it.
    pub state: ReceiptState,
    /// Not the last word (SMPP intermediate notification).
    pub intermediate: bool,
    /// The network's error code, 0 where there is none; three decimal digits in the text form.
    pub error: u16,
    /// The peer's SMPP network_error_code, where it gave one: type and code.
    pub network_error: Option<[u8; 3]>,
    /// When the message was accepted.
    pub submitted_at: Timestamp,
    /// When it reached its state, by the operator's clock where the operator told.
    pub done_at: Timestamp,
    /// Parts in all, and parts delivered.
    pub parts: (u16, u16),
    /// Which part it speaks of, from 1; 0 for the message as a whole.
    pub part: u16,
    /// The upstream's id of the message, for the record.
    pub peer_id: PeerMessageId,
}

/// One short message and all that its acceptance fixed. Immutable but for [replacement](https://smpp.org) of its
/// text by its submitter; what changes as it moves is in the engine and in the `progress` table.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// Given by the engine at acceptance; zero before.
    pub id: MessageId,
    /// What it is for.
    pub kind: Kind,
    /// The peer it came from; the account that pays for it and gets its receipts.
    pub origin: PeerId,
    /// Who sent it, as the submitter wrote it.
    pub source: Address,
    /// Who is to get it, as the submitter wrote it.
    pub destination: Address,
    /// SMPP service_type, at most 5 octets; mostly empty.
    pub service_type: Bytes,
    /// SMPP protocol_id / TP-PID.
    pub protocol_id: u8,
    /// esm_class bits 5-2 (message type) and 7 (reply path) as submitted, the UDHI bit left out.
    pub esm_class: u8,
    /// Urgency.
    pub priority: Priority,
    /// Receipts wanted.
    pub receipts: ReceiptRequest,
    /// One waiting message of the same origin, source, destination and service, the newest, is to be replaced.
    pub replace_if_present: bool,
    /// The id of the submission to several destinations (SMPP submit_multi) that it is part of: the id of the first message that
    /// was accepted of it. Set by the engine at acceptance; `None` for a message that was submitted alone. A receipt of ours has
    /// that of the message it speaks of.
    pub submission: Option<MessageId>,
    /// The user data.
    pub text: Text,
    /// SMPP TLVs that are passed on as they came: each two octets tag, two octets length, value.
    pub tlvs: Bytes,
    /// When it was accepted; set by the engine.
    pub accepted_at: Timestamp,
    /// Not to be delivered before (SMPP schedule_delivery_time).
    pub scheduled: Option<Timestamp>,
    /// Not to be delivered after. Always set: the account's default where the submitter gave none.
    pub expires_at: Timestamp,
    /// How it was routed: legs in order, plugin version and note. Its ranks and weights are settled by the engine.
    pub routed: Routed,
}

/// The messages of a submission to several destinations have ids in this range: from the submission's id on, fewer than so many.
/// SMPP submit_multi names at most 254 destinations.
pub const SUBMISSION_IDS: u64 = 256;

impl Message {
    /// The id by which the submitter knows the message: that of its submission, where it was submitted with others, otherwise
    /// its own. For a receipt of ours, the id by which the submitter knows the message it speaks of.
    #[must_use]
    pub fn submitters_id(&self) -> MessageId {
        self.submission.unwrap_or(match &self.kind {
            Kind::Text => self.id,
            Kind::Receipt(receipt) => receipt.of,
        })
    }

    /// The source and destination that it shows on a leg (index into its forward verdict). As source goes first what the leg
    /// says, then the number that it has from a pool, then what the submitter wrote.
    #[must_use]
    pub fn addresses_on(&self, leg: u8) -> (&Address, &Address) {
        let leg = match &self.routed.verdict {
            Verdict::Forward(legs) => legs.get(usize::from(leg)),
            Verdict::Hold(_) | Verdict::Reject(_) => None,
        };
        let given = || self.routed.sender.as_ref()?.given.as_ref();
        let source = leg.and_then(|leg| leg.source.as_ref()).or_else(given).unwrap_or(&self.source);
        let destination = leg.and_then(|leg| leg.destination.as_ref()).unwrap_or(&self.destination);
        (source, destination)
    }
}

#[cfg(test)]
mod tests {
    use super::Text;
    use bytes::Bytes;

    #[test]
    fn parts_are_counted_as_the_air_counts_them() {
        let parts = |octets: usize, data_coding: u8, udhi: bool| {
            Text { octets: Bytes::from(vec![b'x'; octets]), data_coding, udhi, payload: false }.parts()
        };
        assert_eq!([0, 1, 160, 161, 306, 307].map(|n| parts(n, 0, false)), [1, 1, 1, 2, 2, 3]);
        assert_eq!([140, 141, 268, 269].map(|n| parts(n, 8, false)), [1, 2, 2, 3]);
        assert_eq!(parts(141, 4, false), 2);
        assert_eq!(parts(140, 8, true), 1);
        assert_eq!(parts(160, 0xf1, false), 1);
        assert_eq!(parts(160, 0xf5, false), 2);
    }
}

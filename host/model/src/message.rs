use crate::{Address, DlrState, MessageId, PeerId, PeerMessageId, RoutingDecision, SealedContent, Timestamp};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The direction of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From an account to the network.
    Mt,
    /// From the network to an account.
    Mo,
}

impl Direction {
    /// All directions.
    pub const ALL: [Self; 2] = [Self::Mt, Self::Mo];

    /// The name in the archive and the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mt => "mt",
            Self::Mo => "mo",
        }
    }

    /// The direction of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|direction| direction.name() == name)
    }
}

/// The priority of a message, 0 (bulk) to 3 (very urgent), as in SMPP 3.4 §5.2.14.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Priority(u8);

impl Priority {
    /// The number of levels.
    pub const LEVELS: usize = 4;

    /// The priority of a wire octet; values above 3 count as 3.
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

/// The DLRs that the submitter requests (SMPP registered_delivery, §5.2.17).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DlrRequest {
    /// A DLR on delivery.
    pub on_success: bool,
    /// A DLR on final failure.
    pub on_failure: bool,
    /// Intermediate notifications.
    pub intermediate: bool,
}

impl DlrRequest {
    /// No DLRs.
    pub const NONE: Self = Self { on_success: false, on_failure: false, intermediate: false };
    /// A DLR for either final outcome.
    pub const FINAL: Self = Self { on_success: true, on_failure: true, intermediate: false };

    /// Whether any DLR is requested.
    #[must_use]
    pub fn any(self) -> bool {
        self.on_success || self.on_failure || self.intermediate
    }

    /// The three flags as bits 0, 1 and 2.
    #[must_use]
    pub fn bits(self) -> u8 {
        u8::from(self.on_success) | u8::from(self.on_failure) << 1 | u8::from(self.intermediate) << 2
    }

    /// Parses the output of [`DlrRequest::bits`].
    #[must_use]
    pub fn from_bits(bits: u8) -> Self {
        Self { on_success: bits & 1 != 0, on_failure: bits & 2 != 0, intermediate: bits & 4 != 0 }
    }
}

/// The user data of a message, as the sender encoded it; the relay does not change it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Text {
    /// The octets: SMPP short_message or message_payload, including the UDH if `udhi` is set.
    pub octets: Bytes,
    /// Data coding scheme (SMPP §5.2.19).
    pub data_coding: u8,
    /// The octets begin with a user data header (UDH).
    pub udhi: bool,
    /// The sender used message_payload; texts over 254 octets require it.
    pub payload: bool,
}

impl Text {
    /// The number of segments on the air, at least 1 (3GPP TS 23.040 §9.2.3.24.1). In the default alphabet, one
    /// segment has 160 characters and each of several 153; otherwise 140 and 134 octets. A text with a user data
    /// header of its own is one segment.
    #[must_use]
    pub fn segment_count(&self) -> u16 {
        // 3GPP TS 23.038 §4: the groups of the default alphabet; SMPP's 0 is the network's default.
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

/// The kind of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum MessageKind {
    /// A short message: MT from an account to the network, or MO the other way.
    #[default]
    Text,
    /// A DLR for an accepted message, on its way to the submitter.
    Dlr(Box<DlrContent>),
}

/// The content of a DLR for a submitter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DlrContent {
    /// The message.
    pub of: MessageId,
    /// Its state.
    pub state: DlrState,
    /// It is an intermediate notification.
    pub intermediate: bool,
    /// The network's error code, 0 if there is none; three decimal digits in the text form.
    pub error: u16,
    /// The peer's SMPP network_error_code, if given: type and code.
    pub network_error: Option<[u8; 3]>,
    /// The time of acceptance.
    pub submitted_at: Timestamp,
    /// The time of the state, by the operator's clock if the operator sent it.
    pub done_at: Timestamp,
    /// The number of segments, and of delivered segments.
    pub segments: (u16, u16),
    /// The segment that it reports on, from 1; 0 for the whole message.
    pub segment: u16,
    /// The peer's id of the message, for the record.
    pub peer_id: PeerMessageId,
}

/// One short message, as accepted. It does not change, except when its submitter replaces the text or routing
/// changes; its delivery state is in the engine and in table `progress`.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// Assigned by the engine at acceptance; zero before.
    pub id: MessageId,
    /// The kind.
    pub kind: MessageKind,
    /// The peer or account that submitted it, which pays for it and gets its DLRs.
    pub origin: PeerId,
    /// The source address, as submitted.
    pub source: Address,
    /// The destination address, as submitted.
    pub destination: Address,
    /// SMPP service_type, at most 5 octets; mostly empty.
    pub service_type: Bytes,
    /// SMPP protocol_id / TP-PID.
    pub protocol_id: u8,
    /// esm_class bits 5-2 (message type) and 7 (reply path) as submitted, without the UDHI bit.
    pub esm_class: u8,
    /// The priority.
    pub priority: Priority,
    /// The requested DLRs.
    pub dlr_request: DlrRequest,
    /// Replaces the newest waiting message of the same origin, source, destination and service type.
    pub replace_if_present: bool,
    /// The id of its submission to several destinations (SMPP submit_multi): the id of the first accepted message.
    /// Set by the engine at acceptance; `None` for a message that was submitted alone. A DLR has the submission id of its
    /// message.
    pub submission: Option<MessageId>,
    /// The user data.
    pub text: Text,
    /// SMPP TLVs that are passed on unchanged: each two octets tag, two octets length, value.
    pub tlvs: Bytes,
    /// Fields of other protocols that SMPP does not have, such as SGIP's charging fields, in the form of TLVs with private
    /// tags. The front ends of these protocols read them. A DLR has the fields of its message. No SMPP link sends them.
    pub protocol_fields: Bytes,
    /// The encrypted content, if its reader does not have the key: then there is no text, and there are no host calls.
    /// Encoding the message again keeps the content. A message with encrypted content is never submitted.
    pub sealed: Option<Box<SealedContent>>,
    /// The time of acceptance; set by the engine.
    pub accepted_at: Timestamp,
    /// The earliest delivery time (SMPP schedule_delivery_time).
    pub scheduled: Option<Timestamp>,
    /// The end of the validity. Always set: the account's default if the submitter gave none.
    pub expires_at: Timestamp,
    /// The routing decision: legs in order, plugin version and note. The engine orders the legs by rank and weight.
    pub routed: RoutingDecision,
}

/// The size of the id range of a submission to several destinations, from its id on. SMPP submit_multi names at most
/// 254 destinations.
pub const SUBMISSION_IDS: u64 = 256;

impl Message {
    /// A text message before acceptance: without an id, with normal priority, and without all optional fields.
    #[must_use]
    pub fn new(
        origin: PeerId,
        source: Address,
        destination: Address,
        text: Text,
        expires_at: Timestamp,
        routed: RoutingDecision,
    ) -> Self {
        Self {
            id: MessageId::default(),
            kind: MessageKind::Text,
            origin,
            source,
            destination,
            service_type: Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            dlr_request: DlrRequest::NONE,
            replace_if_present: false,
            submission: None,
            text,
            tlvs: Bytes::new(),
            protocol_fields: Bytes::new(),
            sealed: None,
            accepted_at: Timestamp::default(),
            scheduled: None,
            expires_at,
            routed,
        }
    }

    /// The id by which the submitter knows the message: the id of its submission if it was submitted with others, otherwise
    /// its own id. For a DLR, the submission id of its message.
    #[must_use]
    pub fn submission_id(&self) -> MessageId {
        self.submission.unwrap_or(match &self.kind {
            MessageKind::Text => self.id,
            MessageKind::Dlr(dlr) => dlr.of,
        })
    }

    /// The source and destination on a leg (index into the forward verdict). The source is the leg's, otherwise the leased
    /// pool number, otherwise the submitter's.
    #[must_use]
    pub fn addresses_on(&self, leg: u8) -> (&Address, &Address) {
        let leg = self.routed.verdict.leg(leg);
        let given = || self.routed.sender.as_ref()?.leased.as_ref();
        let source = leg.and_then(|leg| leg.source.as_ref()).or_else(given).unwrap_or(&self.source);
        let destination = leg.and_then(|leg| leg.destination.as_ref()).unwrap_or(&self.destination);
        (source, destination)
    }

    /// The TLVs on the way out: as submitted, with the changes of the routing decision.
    #[must_use]
    pub fn outgoing_tlvs(&self) -> Bytes {
        match &self.routed.changes {
            Some(changes) => changes.apply_to_tlvs(&self.tlvs),
            None => self.tlvs.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Text;
    use bytes::Bytes;

    #[test]
    fn segments_are_counted_as_on_the_air() {
        let count = |octets: usize, data_coding: u8, udhi: bool| {
            Text { octets: Bytes::from(vec![b'x'; octets]), data_coding, udhi, payload: false }
                .segment_count()
        };
        assert_eq!([0, 1, 160, 161, 306, 307].map(|n| count(n, 0, false)), [1, 1, 1, 2, 2, 3]);
        assert_eq!([140, 141, 268, 269].map(|n| count(n, 8, false)), [1, 2, 2, 3]);
        assert_eq!(count(141, 4, false), 2);
        assert_eq!(count(140, 8, true), 1);
        assert_eq!(count(160, 0xf1, false), 1);
        assert_eq!(count(160, 0xf5, false), 2);
    }
}

use crate::{ErrorClass, Message, MessageId, Outcome, PeerMessageId, Timestamp, put_tlv, tlvs};

/// The tags of its fields among [`crate::Message::protocol_fields`].
const ATTEMPT: u16 = 0x1700;
const OUTCOME: u16 = 0x1701;

/// A submit attempt of another partition that a message of this partition carries out, because the links to the peer are
/// here. It is in the protocol fields of the message, of its outcomes and of its DLRs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteAttempt {
    /// The id of the message in the other partition.
    pub id: MessageId,
    /// The attempt number of the ticket. A repetition has the same number.
    pub attempt: u16,
    /// Segments that the peer has from earlier attempts.
    pub taken: u16,
    /// When the other partition accepted the message.
    pub accepted_at: Timestamp,
}

impl RemoteAttempt {
    /// Appends it to protocol fields: 8 id, 2 attempt, 2 taken, 8 time, all big-endian.
    pub fn append_to(self, fields: &mut Vec<u8>) {
        let mut value = Vec::with_capacity(20);
        value.extend_from_slice(&self.id.0.to_be_bytes());
        value.extend_from_slice(&self.attempt.to_be_bytes());
        value.extend_from_slice(&self.taken.to_be_bytes());
        value.extend_from_slice(&self.accepted_at.0.to_be_bytes());
        put_tlv(fields, ATTEMPT, &value);
    }

    /// The protocol fields of a message, with this attempt in place of one that the message itself carries out.
    #[must_use]
    pub fn added_to(self, fields: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(fields.len() + 24);
        for (tag, value) in tlvs(fields).filter(|(tag, _)| ![ATTEMPT, OUTCOME].contains(tag)) {
            put_tlv(&mut out, tag, value);
        }
        self.append_to(&mut out);
        out
    }

    /// Reads it from protocol fields, if it is among them.
    #[must_use]
    pub fn read(fields: &[u8]) -> Option<Self> {
        let (_, value) = tlvs(fields).find(|(tag, _)| *tag == ATTEMPT)?;
        let value: &[u8; 20] = value.try_into().ok()?;
        let (id, rest) = value.split_first_chunk::<8>()?;
        let (attempt, rest) = rest.split_first_chunk::<2>()?;
        let (taken, rest) = rest.split_first_chunk::<2>()?;
        let (accepted_at, _) = rest.split_first_chunk::<8>()?;
        Some(Self {
            id: MessageId(u64::from_be_bytes(*id)),
            attempt: u16::from_be_bytes(*attempt),
            taken: u16::from_be_bytes(*taken),
            accepted_at: Timestamp(u64::from_be_bytes(*accepted_at)),
        })
    }
}

impl Message {
    /// Id and time of the acceptance by the partition of the message. They are the same for all attempts at the home of the
    /// peer.
    #[must_use]
    pub fn first_acceptance(&self) -> (MessageId, Timestamp) {
        let attempt = RemoteAttempt::read(&self.protocol_fields);
        attempt.map_or((self.id, self.accepted_at), |attempt| (attempt.id, attempt.accepted_at))
    }
}

impl Outcome {
    /// Appends it to the protocol fields of a DLR that reports the outcome of a [`RemoteAttempt`].
    pub fn append_to(&self, fields: &mut Vec<u8>) {
        let mut value = Vec::new();
        self.encode(&mut value);
        put_tlv(fields, OUTCOME, &value);
    }

    /// Reads it from protocol fields, if it is among them.
    #[must_use]
    pub fn read(fields: &[u8]) -> Option<Self> {
        Self::decode(tlvs(fields).find(|(tag, _)| *tag == OUTCOME)?.1)
    }

    /// Appends its octets: 1 kind, then with a refusal 1 class and 4 code (big-endian), then lists of ids: 1 count, each 1
    /// length, octets. A list has at most 255 ids of at most 255 octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Accepted { ids } => {
                out.push(0);
                put_ids(out, ids);
            }
            Self::Refused { class, code, taken } => {
                let class = ErrorClass::ALL.iter().position(|known| known == class).unwrap_or(0);
                out.extend_from_slice(&[1, u8::try_from(class).unwrap_or(0)]);
                out.extend_from_slice(&code.to_be_bytes());
                put_ids(out, taken);
            }
            Self::NotSent => out.push(2),
            Self::Unanswered { taken, known } => {
                out.push(3);
                put_ids(out, taken);
                put_ids(out, known);
            }
        }
    }

    /// Decodes the octets of [`Outcome::encode`]; `None` if they are invalid.
    #[must_use]
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let (kind, mut rest) = octets.split_first()?;
        let outcome = match kind {
            0 => Self::Accepted { ids: take_ids(&mut rest)? },
            1 => {
                let (class, after) = rest.split_first()?;
                let (code, after) = after.split_first_chunk::<4>()?;
                rest = after;
                Self::Refused {
                    class: *ErrorClass::ALL.get(usize::from(*class))?,
                    code: u32::from_be_bytes(*code),
                    taken: take_ids(&mut rest)?,
                }
            }
            2 => Self::NotSent,
            3 => Self::Unanswered { taken: take_ids(&mut rest)?, known: take_ids(&mut rest)? },
            _ => return None,
        };
        rest.is_empty().then_some(outcome)
    }
}

fn put_ids(out: &mut Vec<u8>, ids: &[PeerMessageId]) {
    let ids = &ids[..ids.len().min(usize::from(u8::MAX))];
    out.push(u8::try_from(ids.len()).unwrap_or(u8::MAX));
    for id in ids {
        let octets = &id.0[..id.0.len().min(usize::from(u8::MAX))];
        out.push(u8::try_from(octets.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(octets);
    }
}

fn take_ids(rest: &mut &[u8]) -> Option<Vec<PeerMessageId>> {
    let (count, mut after) = rest.split_first()?;
    let mut ids = Vec::with_capacity(usize::from(*count));
    for _ in 0..*count {
        let (length, octets) = after.split_first()?;
        let (id, left) = octets.split_at_checked(usize::from(*length))?;
        ids.push(PeerMessageId::new(id));
        after = left;
    }
    *rest = after;
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_and_its_outcome_are_among_other_fields() {
        let attempt = RemoteAttempt {
            id: MessageId::first_of(3),
            attempt: 7,
            taken: 2,
            accepted_at: Timestamp(1_795_000_000_007),
        };
        let mut fields = Vec::new();
        put_tlv(&mut fields, 0x1501, b"other");
        attempt.append_to(&mut fields);
        assert_eq!((RemoteAttempt::read(&fields), Outcome::read(&fields)), (Some(attempt), None));
        let ids = |ids: &[&[u8]]| ids.iter().map(|id| PeerMessageId::new(id)).collect::<Vec<_>>();
        for outcome in [
            Outcome::Accepted { ids: ids(&[b"", b"a7", &[255; 255]]) },
            Outcome::Refused { class: ErrorClass::NumberMoved, code: 0x58, taken: ids(&[b"x"]) },
            Outcome::NotSent,
            Outcome::Unanswered { taken: Vec::new(), known: ids(&[b"1", b"2"]) },
        ] {
            let mut with = fields.clone();
            outcome.append_to(&mut with);
            assert_eq!(RemoteAttempt::read(&with), Some(attempt));
            assert_eq!(Outcome::read(&with), Some(outcome.clone()));
            let mut octets = Vec::new();
            outcome.encode(&mut octets);
            for cut in 0..octets.len() {
                assert_eq!(Outcome::decode(&octets[..cut]), None, "{outcome:?} {cut}");
            }
        }
        assert_eq!(Outcome::decode(&[9]), None);
    }

    #[test]
    fn an_attempt_takes_the_place_of_the_one_before() {
        let attempt = |id| RemoteAttempt { id, attempt: 1, taken: 0, accepted_at: Timestamp(7) };
        let mut fields = Vec::new();
        attempt(MessageId(1)).append_to(&mut fields);
        put_tlv(&mut fields, 0x15F0, b"fee");
        Outcome::NotSent.append_to(&mut fields);
        let mut expected = Vec::new();
        put_tlv(&mut expected, 0x15F0, b"fee");
        attempt(MessageId(2)).append_to(&mut expected);
        assert_eq!(attempt(MessageId(2)).added_to(&fields), expected);
    }
}

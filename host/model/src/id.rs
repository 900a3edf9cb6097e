use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The id of an accepted message: unique for ever, ascending with time.
///
/// Submitters see it as decimal digits (ten digits for the first nine billion messages, which most ESMEs can store), the
/// same in the submit response, the DLR and every query.
///
/// Bits 46 to 52 are the partition of the cluster that accepted the message. So all ids are exact as doubles, which readers
/// of JSON and CSV use, and positive in SQL. A partition has 2^46 ids, for 70 trillion messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub u64);

impl MessageId {
    /// The first id of a new appliance: the smallest with ten digits.
    pub const FIRST: Self = Self(1_000_000_000);

    /// The last partition.
    pub const LAST_PARTITION: u8 = 127;

    /// The bits below the partition.
    const NUMBER_BITS: u32 = 46;

    /// The first id of a partition, which is at most [`Self::LAST_PARTITION`].
    #[must_use]
    pub const fn first_of(partition: u8) -> Self {
        Self(((partition as u64) << Self::NUMBER_BITS) | Self::FIRST.0)
    }

    /// The partition that accepted the message; beyond [`Self::LAST_PARTITION`] if the appliance never assigned the id.
    #[must_use]
    pub fn partition(self) -> u8 {
        u8::try_from(self.0 >> Self::NUMBER_BITS).unwrap_or(u8::MAX)
    }

    /// The id without its partition in base 36, at most 8 characters up to 2.8 trillion: for links older than SMPP 3.4.
    #[must_use]
    pub fn short(self) -> String {
        let mut digits = Vec::new();
        let mut rest = self.0 & ((1 << Self::NUMBER_BITS) - 1);
        loop {
            let digit = u32::try_from(rest % 36).unwrap_or(0);
            digits.push(char::from_digit(digit, 36).unwrap_or('0').to_ascii_uppercase());
            rest /= 36;
            if rest == 0 {
                break;
            }
        }
        digits.iter().rev().collect()
    }

    /// Parses the output of [`MessageId::short`] for a message of this partition.
    #[must_use]
    pub fn from_short(text: &str, partition: u8) -> Option<Self> {
        if text.is_empty() || !text.bytes().all(|c| c.is_ascii_alphanumeric()) {
            return None;
        }
        let number = u64::from_str_radix(text, 36).ok().filter(|number| number >> Self::NUMBER_BITS == 0)?;
        Some(Self((u64::from(partition) << Self::NUMBER_BITS) | number))
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}", self.0)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A message id that is not a decimal number of 64 bits.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a message id: expected decimal digits, such as 1000000042")]
pub struct ParseMessageIdError(pub String);

impl FromStr for MessageId {
    type Err = ParseMessageIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || !text.bytes().all(|c| c.is_ascii_digit()) {
            return Err(ParseMessageIdError(text.to_owned()));
        }
        text.parse().map(Self).map_err(|_| ParseMessageIdError(text.to_owned()))
    }
}

/// The id of a peer: an SMSC that the appliance dials, an account whose ESMEs bind to the appliance, or a core network.
///
/// [`crate::Directory`] has the name. Ids are durable and never reused, not even after the peer was removed from the
/// configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PeerId(pub u32);

/// The id of one connection. Never reused while the process runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkId(pub u64);

/// A peer's id of a message, as raw octets in the form of the peer's link setting.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PeerMessageId(pub SmallVec<[u8; 22]>);

impl PeerMessageId {
    /// From raw octets (copied).
    #[must_use]
    pub fn new(raw: &[u8]) -> Self {
        Self(SmallVec::from_slice(raw))
    }
}

impl fmt::Debug for PeerMessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// An idempotency key: makes it safe to repeat a submission. It comes from HTTP's header, the twelve octets of an
/// SGIP sequence number, or the digest of what a handset submits.
///
/// A second submission of the same origin with the same key gets the first one's answer if its content is the same;
/// otherwise it is refused with [`crate::Refusal::KeyReused`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyKey {
    /// The key, any octets; at most 255.
    pub octets: SmallVec<[u8; 24]>,
    /// A digest of the content. It distinguishes a repetition from another submission with the same key.
    pub digest: u64,
    /// The submitter chose the key and relies on it: if it cannot be stored, the submission is refused. If the key is a
    /// protocol's sequence number, the submission is accepted nevertheless. Not stored.
    pub required: bool,
    /// How long after its acceptance a submission counts as repeated, if that is shorter than keys are stored.
    /// Afterwards the key names a new submission. Not stored: each caller passes it.
    pub lifetime: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip() {
        for id in [MessageId::FIRST, MessageId(9_999_999_999), MessageId((1 << 46) - 1)] {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(MessageId::from_short(&id.short(), 0), Some(id));
        }
        assert_eq!(MessageId(u64::MAX).to_string().parse(), Ok(MessageId(u64::MAX)));
        assert_eq!(MessageId::FIRST.to_string().len(), 10);
        assert!(MessageId(2_821_109_907_455).short().len() <= 8);
        assert!("".parse::<MessageId>().is_err());
        assert!("+1".parse::<MessageId>().is_err());
        assert!("99999999999999999999".parse::<MessageId>().is_err());
    }

    #[test]
    fn an_id_of_each_partition_is_exact_in_json_and_sql_and_has_a_short_form() {
        let mut before = MessageId(0);
        for partition in 0..=MessageId::LAST_PARTITION {
            let first = MessageId::first_of(partition);
            let last = MessageId(MessageId::first_of(partition).0 | ((1 << 46) - 1));
            assert!(before < first && first < last);
            before = last;
            for id in [first, last] {
                assert_eq!(id.partition(), partition);
                assert_eq!(id.0 as f64 as u64, id.0, "exact in a double");
                assert!(id.0 < 1 << 53 && i64::try_from(id.0).is_ok());
                assert_eq!(id.to_string().parse(), Ok(id));
                assert_eq!(MessageId::from_short(&id.short(), partition), Some(id));
            }
            assert!(first.short().len() <= 8);
        }
        assert_eq!(MessageId::first_of(0), MessageId::FIRST);
        assert_eq!(MessageId(u64::MAX).partition(), u8::MAX);
        assert_eq!(MessageId::from_short("ZZZZZZZZZZ", 1), None, "the partition is not in it");
    }
}

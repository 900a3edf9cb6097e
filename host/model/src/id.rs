use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The id of an accepted message: unique for ever, ascending with time.
///
/// Submitters see it as decimal digits (ten of them for the first ten thousand million messages, which most ESMEs can
/// store), the same in the submit response, the DLR and every query.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub u64);

impl MessageId {
    /// The first id of a new appliance: the smallest with ten digits.
    pub const FIRST: Self = Self(1_000_000_000);

    /// The id in base 36, at most 8 characters up to 2.8 million million: for links older than SMPP 3.4.
    #[must_use]
    pub fn short(self) -> String {
        let mut digits = Vec::new();
        let mut rest = self.0;
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

    /// Parses what [`MessageId::short`] returned.
    #[must_use]
    pub fn from_short(text: &str) -> Option<Self> {
        (!text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric()))
            .then(|| u64::from_str_radix(text, 36).ok().map(Self))
            .flatten()
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

/// The id of a peer: an SMSC that we dial, an account whose ESMEs bind to us, or a core network.
///
/// [`crate::Directory`] knows the name. Ids are durable and never reused, not even after the peer was removed from
/// the configuration.
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
    /// A digest of the content, which tells a repetition from another submission under the same key.
    pub digest: u64,
    /// The submitter chose the key and relies on it: if it cannot be stored, the submission is refused. For a
    /// protocol's sequence number the submission is accepted all the same. Not stored.
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
        for id in [MessageId::FIRST, MessageId(9_999_999_999), MessageId(u64::MAX)] {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(MessageId::from_short(&id.short()), Some(id));
        }
        assert_eq!(MessageId::FIRST.to_string().len(), 10);
        assert!(MessageId(2_821_109_907_455).short().len() <= 8);
        assert!("".parse::<MessageId>().is_err());
        assert!("+1".parse::<MessageId>().is_err());
        assert!("99999999999999999999".parse::<MessageId>().is_err());
    }
}

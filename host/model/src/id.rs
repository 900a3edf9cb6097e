use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Our name for an accepted message: unique for ever, growing with time.
///
/// Submitters see it as decimal digits (ten of them for the first ten thousand million messages, the shape that
/// most ESMEs can store), the same characters in the answer, the receipt and every query.
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

    /// Reads what [`MessageId::short`] wrote.
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

/// The other end of a set of links: an SMSC that we dial, or an account whose ESMEs bind to us.
///
/// A small number in memory and on disk; [`crate::Directory`] knows the name. Never given out twice, also not after
/// its peer was removed from the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PeerId(pub u32);

/// One connection, for as long as it lives. Never reused while the process runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkId(pub u64);

/// The id that a peer gave to a message, as raw octets in the form of the peer's link setting.
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

/// A submitter's own name for a submission, so that it may safely be repeated: an idempotency key of HTTP, the twelve
/// octets of an SGIP sequence number, or the digest of what a handset submits.
///
/// A second submission of the same origin with the same key is not a new one: it gets the first one's answer if its
/// content is the same, and is refused ([`crate::Refusal::KeyReused`]) if not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmissionKey {
    /// The name, in any octets; at most 255.
    pub octets: SmallVec<[u8; 24]>,
    /// A digest of the content, by which a repetition is told from another submission under the same name.
    pub digest: u64,
    /// Whether its submitter chose it and counts on it: if it cannot be remembered, the submission is refused. A sequence
    /// number of a protocol is no such key: its submission is accepted all the same. Not written down.
    pub required: bool,
    /// For how long after its acceptance a submission counts as the same, where that is shorter than keys are remembered.
    /// After that time the same key names a new submission. Not written down: whoever asks says it.
    pub lifetime: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_what_they_write() {
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

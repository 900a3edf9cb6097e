use crate::{Address, PoolName, PoolNumber};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A router's wish: the message is to have a number of a pool for its sender, from its acceptance, or its being routed
/// again, until it ends. It counts with a forward verdict only.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SenderWish {
    /// The pool.
    pub pool: PoolName,
    /// Who is to stand in the pool as the one who has the number. May be empty.
    pub holder: Box<str>,
    /// The user that [`crate::Strategy::Sticky`] looks at; where it is empty, the holder is.
    pub user: Box<str>,
    /// What for. May be empty.
    pub reason: Box<str>,
    /// After this long the pool takes the number back, whether the message has ended or not.
    pub lease: Option<Duration>,
    /// What is to become of the message where no number is to be had.
    pub otherwise: NoSender,
    /// The number that the message has got, as it is shown on legs that name no source of their own.
    pub given: Option<Address>,
}

/// What is to become of a message for which its pool has no number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum NoSender {
    /// It is refused; the submitter may try again.
    #[default]
    Reject = 0,
    /// It goes out under the sender that it came with.
    KeepSender = 1,
    /// It waits for its turn, and is routed again then.
    Hold = 2,
}

impl NoSender {
    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        [Self::Reject, Self::KeepSender, Self::Hold].into_iter().find(|known| *known as u8 == octet)
    }

    /// The word used in WIT, JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::KeepSender => "keep-sender",
            Self::Hold => "hold",
        }
    }
}

impl PoolNumber {
    /// The number as an address: digits after a plus sign are an international number (TON 1, NPI 1), digits alone one of
    /// unknown type (TON 0, NPI 1), as in texts that come by HTTP; anything else stays as it is written (TON 0, NPI 0).
    #[must_use]
    pub fn address(self) -> Address {
        let text = self.to_string();
        let digits = text.strip_prefix('+').unwrap_or(&text);
        if digits.is_empty() || !digits.bytes().all(|octet| octet.is_ascii_digit()) {
            return Address::new(0, 0, text.as_bytes());
        }
        Address::new(u8::from(text.starts_with('+')), 1, digits.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_pools_as_senders() {
        let address = |text: &str| text.parse::<PoolNumber>().map(PoolNumber::address);
        assert_eq!(address("+8613800138000"), Ok(Address::international("8613800138000")));
        assert_eq!(address("8613800138000"), Ok(Address::new(0, 1, b"8613800138000")));
        assert_eq!(address("10655"), Ok(Address::new(0, 1, b"10655")));
        for other in ["*100#", "+", "1+2", "+49*1"] {
            assert_eq!(address(other), Ok(Address::new(0, 0, other.as_bytes())));
        }
    }

    #[test]
    fn what_becomes_of_it_reads_what_it_writes() {
        for octet in 0..=u8::MAX {
            assert!(NoSender::from_octet(octet).is_none_or(|known| known as u8 == octet));
        }
        assert_eq!(NoSender::from_octet(2), Some(NoSender::Hold));
    }
}

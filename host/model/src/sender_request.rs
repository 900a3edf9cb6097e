use crate::{Address, PoolName, PoolNumber};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A router's request for a pool number as the sender. The number is leased when the message is accepted or routed
/// again, until it ends. It applies to a forward verdict only.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SenderRequest {
    /// The pool.
    pub pool: PoolName,
    /// The holder in the pool. May be empty.
    pub holder: Box<str>,
    /// The user for [`crate::Strategy::Sticky`]; if empty, the holder counts.
    pub user: Box<str>,
    /// The reason. May be empty.
    pub reason: Box<str>,
    /// The lease time; afterwards the pool releases the number, even if the message has not ended.
    pub lease: Option<Duration>,
    /// The treatment of the message if no number is available.
    pub otherwise: SenderFallback,
    /// The leased number, for legs without a source of their own.
    pub leased: Option<Address>,
}

/// The treatment of a message for which its pool has no number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum SenderFallback {
    /// It is refused; the submitter may try again.
    #[default]
    Reject = 0,
    /// It is sent with the submitter's source.
    KeepSender = 1,
    /// It is held, and routed again when a number becomes available.
    Hold = 2,
}

impl SenderFallback {
    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        [Self::Reject, Self::KeepSender, Self::Hold].into_iter().find(|known| *known as u8 == octet)
    }

    /// The name used in WIT, JSON and reports.
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
    /// The number as an address: digits after a plus sign are an international number (TON 1, NPI 1), digits alone
    /// have an unknown type (TON 0, NPI 1), as texts submitted by HTTP do; anything else is unchanged (TON 0, NPI 0).
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
    fn fallbacks_round_trip() {
        for octet in 0..=u8::MAX {
            assert!(SenderFallback::from_octet(octet).is_none_or(|known| known as u8 == octet));
        }
        assert_eq!(SenderFallback::from_octet(2), Some(SenderFallback::Hold));
    }
}

use crate::digits;
use std::fmt;
use std::str::FromStr;

/// International mobile subscriber identity: 6 to 15 decimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Imsi {
    /// ASCII digits, zeros behind them.
    digits: [u8; Self::MOST],
    length: u8,
}

/// This is no IMSI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an IMSI has 6 to 15 decimal digits and nothing else")]
pub struct ImsiError;

impl Imsi {
    const LEAST: usize = 6;
    const MOST: usize = 15;

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let digits = self.digits.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(digits).unwrap_or_default()
    }

    /// Reads swapped BCD.
    pub(crate) fn from_bcd(octets: &[u8]) -> Option<Self> {
        if octets.len() * 2 > Self::MOST + 1 {
            return None;
        }
        digits::decode(octets)?.parse().ok()
    }

    pub(crate) fn to_bcd(self) -> Vec<u8> {
        // Every decimal digit has a half octet.
        digits::encode(self.as_str().as_bytes()).unwrap_or_default()
    }
}

impl FromStr for Imsi {
    type Err = ImsiError;

    fn from_str(text: &str) -> Result<Self, ImsiError> {
        let count = text.len();
        if !(Self::LEAST..=Self::MOST).contains(&count) || !text.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(ImsiError);
        }
        let mut digits = [0; Self::MOST];
        digits[..count].copy_from_slice(text.as_bytes());
        Ok(Self { digits, length: u8::try_from(count).map_err(|_| ImsiError)? })
    }
}

impl fmt::Display for Imsi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for Imsi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Imsi({})", self.as_str())
    }
}

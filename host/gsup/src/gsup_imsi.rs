use crate::bcd;
use std::fmt;
use std::str::FromStr;

/// An IMSI (international mobile subscriber identity): 6 to 15 decimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GsupImsi {
    /// ASCII digits, padded with zeros.
    digits: [u8; Self::MAX_LEN],
    length: u8,
}

/// The text is not a valid IMSI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an IMSI consists of 6 to 15 decimal digits")]
pub struct GsupImsiError;

impl GsupImsi {
    const MIN_LEN: usize = 6;
    const MAX_LEN: usize = 15;

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let digits = self.digits.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(digits).unwrap_or_default()
    }

    /// Decodes swapped BCD.
    pub(crate) fn from_bcd(octets: &[u8]) -> Option<Self> {
        if octets.len() * 2 > Self::MAX_LEN + 1 {
            return None;
        }
        bcd::decode(octets)?.parse().ok()
    }

    pub(crate) fn to_bcd(self) -> Vec<u8> {
        // Every decimal digit can be encoded.
        bcd::encode(self.as_str().as_bytes()).unwrap_or_default()
    }
}

impl FromStr for GsupImsi {
    type Err = GsupImsiError;

    fn from_str(text: &str) -> Result<Self, GsupImsiError> {
        let count = text.len();
        if !(Self::MIN_LEN..=Self::MAX_LEN).contains(&count)
            || !text.bytes().all(|digit| digit.is_ascii_digit())
        {
            return Err(GsupImsiError);
        }
        let mut digits = [0; Self::MAX_LEN];
        digits[..count].copy_from_slice(text.as_bytes());
        Ok(Self { digits, length: u8::try_from(count).map_err(|_| GsupImsiError)? })
    }
}

impl fmt::Display for GsupImsi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for GsupImsi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Imsi({})", self.as_str())
    }
}

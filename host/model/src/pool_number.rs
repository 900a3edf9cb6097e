use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A pool number: 1 to 16 characters of `0`–`9`, `+`, `*` and `#`, as written.
///
/// Stored in eight octets, four bits per character from the left: numbers are ordered as their texts, and common
/// prefixes are found by leading zeros. The value 0 ends a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolNumber(u64);

/// The characters by value, from 1, in the order of their octets.
const CHARACTERS: &[u8] = b"#*+0123456789";

impl PoolNumber {
    /// The maximum number of characters.
    pub const MAX_LEN: usize = 16;

    /// The eight octets, for a record's key; they are ordered as the numbers.
    #[must_use]
    pub fn octets(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Parses the output of [`PoolNumber::octets`]; `None` for other octets.
    #[must_use]
    pub fn from_octets(octets: [u8; 8]) -> Option<Self> {
        let value = u64::from_be_bytes(octets);
        let mut ended = false;
        for shift in (0..16).rev() {
            let character = (value >> (shift * 4)) & 15;
            if character as usize > CHARACTERS.len() || (ended && character != 0) {
                return None;
            }
            ended |= character == 0;
        }
        (value != 0).then_some(Self(value))
    }

    /// The number as written, in a buffer of the caller; avoids an allocation.
    #[must_use]
    pub fn as_text(self, buffer: &mut [u8; Self::MAX_LEN]) -> &[u8] {
        let mut length = 0;
        for (octet, shift) in buffer.iter_mut().zip((0..16).rev()) {
            let place = ((self.0 >> (shift * 4)) & 15) as usize;
            let Some(character) = place.checked_sub(1).and_then(|place| CHARACTERS.get(place)) else { break };
            *octet = *character;
            length += 1;
        }
        buffer.get(..length).unwrap_or_default()
    }

    /// The length of the common prefix.
    #[must_use]
    pub fn common_prefix(self, other: Self) -> u32 {
        let length = (64 - self.0.trailing_zeros()).div_ceil(4);
        ((self.0 ^ other.0).leading_zeros() / 4).min(length)
    }

    /// Whether it begins with another number.
    #[must_use]
    pub fn begins_with(self, other: Self) -> bool {
        let length = (64 - other.0.trailing_zeros()).div_ceil(4);
        self.common_prefix(other) == length
    }

    /// The first 16 valid characters of a text, for comparisons only (a callee, for instance). Other characters are
    /// skipped.
    #[must_use]
    pub fn beginning_of(text: &str) -> Option<Self> {
        let known = text.bytes().filter(|octet| CHARACTERS.contains(octet)).take(Self::MAX_LEN);
        let known: Vec<u8> = known.collect();
        pack(&known)
    }
}

fn pack(octets: &[u8]) -> Option<PoolNumber> {
    if octets.is_empty() || octets.len() > PoolNumber::MAX_LEN {
        return None;
    }
    let mut value = 0;
    for octet in octets {
        let place = match octet {
            b'0'..=b'9' => octet - b'0' + 4,
            b'+' => 3,
            b'*' => 2,
            b'#' => 1,
            _ => return None,
        };
        value = (value << 4) | u64::from(place);
    }
    Some(PoolNumber(value << (4 * (PoolNumber::MAX_LEN - octets.len()))))
}

/// The text is not a pool number.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a pool number: expected 1 to 16 characters of 0-9, +, * and #, such as 8613800138000")]
pub struct ParsePoolNumberError(pub String);

impl FromStr for PoolNumber {
    type Err = ParsePoolNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        pack(text.as_bytes()).ok_or_else(|| ParsePoolNumberError(text.to_owned()))
    }
}

impl fmt::Display for PoolNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; Self::MAX_LEN];
        let text = self.as_text(&mut buffer).iter();
        text.copied().map(char::from).try_for_each(|character| fmt::Write::write_char(f, character))
    }
}

impl fmt::Debug for PoolNumber {
    /// Hides all but the first four and last two characters: the only form that may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_string();
        let masked = text.chars().enumerate();
        let masked = masked.map(|(i, c)| if i < 4 || i + 2 >= text.len() { c } else { '*' });
        f.write_str(&masked.collect::<String>())
    }
}

/// The state of a number in its pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum NumberState {
    /// Not leased, and usable.
    #[serde(rename = "idle+up")]
    IdleUp,
    /// Not leased, and not usable.
    #[serde(rename = "idle+down")]
    IdleDown,
    /// Leased.
    #[serde(rename = "busy+up")]
    BusyUp,
    /// Leased, and not usable afterwards.
    #[serde(rename = "busy+down")]
    BusyDown,
}

impl NumberState {
    /// The state as the older system wrote it, `idle+up` for instance.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IdleUp => "idle+up",
            Self::IdleDown => "idle+down",
            Self::BusyUp => "busy+up",
            Self::BusyDown => "busy+down",
        }
    }
}

impl fmt::Display for NumberState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for NumberState {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::IdleUp, Self::IdleDown, Self::BusyUp, Self::BusyDown]
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or(())
    }
}

/// An event of a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberEvent {
    /// It is added to the pool.
    Add,
    /// It is removed from the pool.
    Del,
    /// It becomes usable.
    Reg,
    /// It becomes unusable.
    Unreg,
    /// It is leased.
    Call,
    /// Its lease is released.
    Hangup,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(text in "[0-9+*#]{1,16}", other in "[0-9+*#]{1,16}") {
            let number: PoolNumber = text.parse().unwrap();
            let second: PoolNumber = other.parse().unwrap();
            prop_assert_eq!(number.to_string(), text.clone());
            prop_assert_eq!(PoolNumber::from_octets(number.octets()), Some(number));
            prop_assert_eq!(number.cmp(&second), text.cmp(&other));
            let common = text.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(number.common_prefix(second) as usize, common);
            prop_assert_eq!(number.begins_with(second), text.starts_with(&other));
        }

        #[test]
        fn any_octets_are_a_number_or_none(octets: [u8; 8]) {
            if let Some(number) = PoolNumber::from_octets(octets) {
                prop_assert_eq!(number.to_string().parse(), Ok(number));
            }
        }
    }

    #[test]
    fn invalid_numbers_are_refused() {
        for text in ["", "12345678901234567", "12 34", "abc", "１２"] {
            assert!(text.parse::<PoolNumber>().is_err(), "{text}");
        }
        assert_eq!(PoolNumber::beginning_of("+49 (30) 12345"), "+493012345".parse().ok());
        assert_eq!(PoolNumber::beginning_of("sip"), None);
    }
}

use model::{Address, AddressBytes};
use std::fmt;
use std::str::FromStr;

/// A subscriber's number: the digits of an international number, without the plus sign.
///
/// Numbers are compared digit by digit; how a subscriber may write one is the business of [`crate::Numbering`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Number(AddressBytes);

/// Not a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no number: write 3 to 20 digits with a plus sign in front, such as +16195550123")]
pub struct ParseNumberError(pub String);

/// Type of number of senders that are names (SMPP 3.4 §5.2.5).
const ALPHANUMERIC: u8 = 5;

impl Number {
    /// The digits of an address, if it is a number: names that look like one are none.
    #[must_use]
    pub fn digits_of(address: &Address) -> Option<&[u8]> {
        let digits = address.value.strip_prefix(b"+").unwrap_or(&address.value);
        let is_number = address.ton != ALPHANUMERIC
            && !digits.is_empty()
            && digits.len() <= 20
            && digits.iter().all(u8::is_ascii_digit);
        is_number.then_some(digits)
    }

    /// Whether an address is this number.
    #[must_use]
    pub fn is(&self, address: &Address) -> bool {
        Self::digits_of(address) == Some(&self.0)
    }

    /// Its digits.
    #[must_use]
    pub fn digits(&self) -> &[u8] {
        &self.0
    }

    /// It as an address: international, E.164.
    #[must_use]
    pub fn address(&self) -> Address {
        Address::new(1, 1, &self.0)
    }

    /// The form that may be logged.
    #[must_use]
    pub fn masked(&self) -> String {
        self.address().masked()
    }
}

impl FromStr for Number {
    type Err = ParseNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix('+').unwrap_or_default();
        if !(3..=20).contains(&digits.len()) || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return Err(ParseNumberError(text.to_owned()));
        }
        Ok(Self(AddressBytes::from_slice(digits.as_bytes())))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Digits only; see `from_str`.
        write!(f, "+{}", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

/// How subscribers write numbers: short codes, numbers without area code, national and international forms. The appliance
/// brings its number plan.
pub trait Numbering: Send + Sync {
    /// The address that `typed` stands for when `caller` dials it.
    ///
    /// # Errors
    /// Why it is none, and what would be one, for the caller.
    fn read(&self, typed: &str, caller: &Number) -> Result<Address, String>;
}

/// What was typed, without what people put between digits.
#[must_use]
pub fn bare(typed: &str) -> String {
    typed.chars().filter(|c| !matches!(c, ' ' | '-' | '.' | '(' | ')' | '/')).collect()
}

/// No plan at all: numbers go on as they were typed, without what people put between digits.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsTyped;

impl Numbering for AsTyped {
    fn read(&self, typed: &str, _caller: &Number) -> Result<Address, String> {
        let bare = bare(typed);
        let digits = bare.strip_prefix('+').unwrap_or(&bare);
        if !(3..=20).contains(&digits.len()) || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return Err(format!("{typed:?} is no number: write 3 to 20 digits, with or without + in front"));
        }
        Ok(Address::new(u8::from(bare.starts_with('+')), 1, digits.as_bytes()))
    }
}

/// An address for people: international numbers with their plus sign.
pub(crate) fn shown(address: &Address) -> String {
    let text = address.text();
    if address.ton == 1 && Number::digits_of(address).is_some() && !text.starts_with('+') {
        return format!("+{text}");
    }
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_and_names_are_none() {
        let number: Number = "+16195550123".parse().unwrap();
        assert_eq!(number.to_string(), "+16195550123");
        for (ton, value, is) in [
            (1, "16195550123", true),
            (0, "16195550123", true),
            (0, "+16195550123", true),
            (5, "16195550123", false),
            (1, "1619555012", false),
            (1, "16195550123 ", false),
        ] {
            assert_eq!(number.is(&Address::new(ton, 1, value.as_bytes())), is, "{ton} {value}");
        }
        for bad in ["", "+", "+12", "16195550123", "+1619555o123", "+123456789012345678901"] {
            assert!(bad.parse::<Number>().is_err(), "{bad}");
        }
        assert!(!format!("{number:?}").contains("16195550123"), "a number in full may not be logged");
    }

    #[test]
    fn as_typed_takes_what_people_put_between_digits() {
        let caller: Number = "+16195550123".parse().unwrap();
        let read = |typed| AsTyped.read(typed, &caller);
        assert_eq!(read("+1 (619) 555-0199").unwrap(), Address::new(1, 1, b"16195550199"));
        assert_eq!(read("4711").unwrap(), Address::new(0, 1, b"4711"));
        assert!(read("mother").is_err() && read("12").is_err() && read("1+23").is_err());
    }

    #[test]
    fn addresses_are_shown_with_their_plus() {
        assert_eq!(shown(&Address::international("16195550123")), "+16195550123");
        assert_eq!(shown(&Address::new(0, 1, b"4711")), "4711");
        assert_eq!(shown(&Address::new(5, 0, b"ACME")), "ACME");
    }
}

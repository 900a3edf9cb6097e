use model::{Address, AddressBytes};
use std::fmt;
use std::str::FromStr;

/// A subscriber number: the digits of an international number, without the plus sign.
///
/// Numbers are compared digit by digit. [`crate::NumberParser`] parses other forms.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberNumber(AddressBytes);

/// The text is not a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a number: write 3 to 20 digits with a plus sign in front, such as +16195550123")]
pub struct ParseNumberError(pub String);

/// Type of number of senders that are names (SMPP 3.4 §5.2.5).
const ALPHANUMERIC: u8 = 5;

impl SubscriberNumber {
    /// The digits of an address if it is a number; an alphanumeric address is not.
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
    pub fn matches(&self, address: &Address) -> bool {
        Self::digits_of(address) == Some(&self.0)
    }

    /// The digits.
    #[must_use]
    pub fn digits(&self) -> &[u8] {
        &self.0
    }

    /// The international E.164 address.
    #[must_use]
    pub fn address(&self) -> Address {
        Address::new(1, 1, &self.0)
    }

    /// The masked form for logs.
    #[must_use]
    pub fn masked(&self) -> String {
        self.address().masked()
    }
}

impl FromStr for SubscriberNumber {
    type Err = ParseNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix('+').unwrap_or_default();
        if !(3..=20).contains(&digits.len()) || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return Err(ParseNumberError(text.to_owned()));
        }
        Ok(Self(AddressBytes::from_slice(digits.as_bytes())))
    }
}

impl fmt::Display for SubscriberNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Digits only; see `from_str`.
        write!(f, "+{}", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for SubscriberNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

/// Parses numbers as subscribers dial them: short codes, local, national and international forms. Implemented by the
/// appliance with its number plan.
pub trait NumberParser: Send + Sync {
    /// The address of a number that `caller` dials.
    ///
    /// # Errors
    /// A message for the caller, if the number is invalid.
    fn parse(&self, typed: &str, caller: &SubscriberNumber) -> Result<Address, String>;
}

/// Removes spaces and punctuation between digits.
#[must_use]
pub fn strip_separators(typed: &str) -> String {
    typed.chars().filter(|c| !matches!(c, ' ' | '-' | '.' | '(' | ')' | '/')).collect()
}

/// A parser without a number plan: only removes separators.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiteralNumbers;

impl NumberParser for LiteralNumbers {
    fn parse(&self, typed: &str, _caller: &SubscriberNumber) -> Result<Address, String> {
        let strip_separators = strip_separators(typed);
        let digits = strip_separators.strip_prefix('+').unwrap_or(&strip_separators);
        if !(3..=20).contains(&digits.len()) || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return Err(format!(
                "{typed:?} is not a number: write 3 to 20 digits, with or without + in front"
            ));
        }
        Ok(Address::new(u8::from(strip_separators.starts_with('+')), 1, digits.as_bytes()))
    }
}

/// Formats an address for display: international numbers with a plus sign.
pub(crate) fn display_number(address: &Address) -> String {
    let text = address.text();
    if address.ton == 1 && SubscriberNumber::digits_of(address).is_some() && !text.starts_with('+') {
        return format!("+{text}");
    }
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphanumeric_senders_are_not_numbers() {
        let number: SubscriberNumber = "+16195550123".parse().unwrap();
        assert_eq!(number.to_string(), "+16195550123");
        for (ton, value, is) in [
            (1, "16195550123", true),
            (0, "16195550123", true),
            (0, "+16195550123", true),
            (5, "16195550123", false),
            (1, "1619555012", false),
            (1, "16195550123 ", false),
        ] {
            assert_eq!(number.matches(&Address::new(ton, 1, value.as_bytes())), is, "{ton} {value}");
        }
        for bad in ["", "+", "+12", "16195550123", "+1619555o123", "+123456789012345678901"] {
            assert!(bad.parse::<SubscriberNumber>().is_err(), "{bad}");
        }
        assert!(!format!("{number:?}").contains("16195550123"), "a number in full may not be logged");
    }

    #[test]
    fn literal_numbers_ignore_separators() {
        let caller: SubscriberNumber = "+16195550123".parse().unwrap();
        let read = |typed| LiteralNumbers.parse(typed, &caller);
        assert_eq!(read("+1 (619) 555-0199").unwrap(), Address::new(1, 1, b"16195550199"));
        assert_eq!(read("4711").unwrap(), Address::new(0, 1, b"4711"));
        assert!(read("mother").is_err() && read("12").is_err() && read("1+23").is_err());
    }

    #[test]
    fn international_addresses_are_displayed_with_plus() {
        assert_eq!(display_number(&Address::international("16195550123")), "+16195550123");
        assert_eq!(display_number(&Address::new(0, 1, b"4711")), "4711");
        assert_eq!(display_number(&Address::new(5, 0, b"ACME")), "ACME");
    }
}

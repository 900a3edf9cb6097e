use crate::Address;
use std::borrow::Cow;

/// The display of subscribers' numbers (MSISDN, IMSI, sender and recipient of a message) to a caller.
///
/// The API, and so the console and the command line, follow one rule: callers who may read message texts see unmasked numbers
/// in every answer, all other callers see masked numbers. Logs are always masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberDisplay {
    /// Whole.
    Whole,
    /// All but the first four and last two characters are asterisks.
    Masked,
}

impl NumberDisplay {
    /// The value of an address. Octets that are not UTF-8 appear as replacement characters.
    #[must_use]
    pub fn address(self, address: &Address) -> String {
        self.text(address.text())
    }

    /// A number that is text already.
    #[must_use]
    pub fn text<'a>(self, number: impl Into<Cow<'a, str>>) -> String {
        let number = number.into();
        match self {
            Self::Whole => number.into_owned(),
            Self::Masked => mask(&number),
        }
    }
}

/// A number with all but the first four and last two characters replaced by asterisks. A masked number stays as it is.
pub(crate) fn mask(number: &str) -> String {
    let count = number.chars().count();
    number.chars().enumerate().map(|(i, c)| if i < 4 || i + 2 >= count { c } else { '*' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_or_masked() {
        let address = Address::international("4917012345678");
        assert_eq!(NumberDisplay::Whole.address(&address), "4917012345678");
        assert_eq!(NumberDisplay::Masked.address(&address), "4917*******78");
        assert_eq!(NumberDisplay::Masked.text("4917*******78"), "4917*******78");
        assert_eq!(NumberDisplay::Masked.text("10655"), "10655");
    }
}

use crate::{Address, AddressBytes, PluginVersion};
use std::sync::Arc;

/// A number to look up.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LookupNumber {
    /// Its decimal digits, without a plus sign.
    pub digits: AddressBytes,
    /// It begins with a country code: its type of number is 1 (SMPP 3.4 §5.2.5), or it had a plus sign.
    pub international: bool,
}

impl LookupNumber {
    /// The maximum number of digits of a number that is looked up.
    const MAX_DIGITS: usize = 20;

    /// The number of an address; `None` if the value is not 1 to 20 digits after an optional plus sign.
    #[must_use]
    pub fn of(address: &Address) -> Option<Self> {
        let (digits, plus) = match address.value.strip_prefix(b"+") {
            Some(digits) => (digits, true),
            None => (&*address.value, false),
        };
        let is_number =
            (1..=Self::MAX_DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        is_number.then(|| Self {
            digits: AddressBytes::from_slice(digits),
            international: plus || address.ton == 1,
        })
    }

    /// The digits as a text.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.digits).unwrap_or_default()
    }
}

/// The outcome of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum LookupResult {
    /// There was no answer, or the plugin failed.
    Failed = 0,
    /// Nothing is known of the number.
    Unknown = 1,
    /// The number has attributes.
    Found = 2,
}

impl LookupResult {
    /// All results.
    pub const ALL: [Self; 3] = [Self::Failed, Self::Unknown, Self::Found];

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|result| *result as u8 == octet)
    }

    /// The name used in JSON and traces.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Found => "found",
        }
    }
}

/// The result of the lookup of a message's number, and its origin, for the routers, the trace and replays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// The outcome of the lookup.
    pub result: LookupResult,
    /// The attributes of the number: names as for [`crate::MessageChanges::is_attribute_name`], and values.
    pub attributes: Vec<(Box<str>, Box<str>)>,
    /// The plugin version that answered or failed; the last one if none knows the number.
    pub by: Arc<PluginVersion>,
    /// The plugin's note, or the reason of a failure.
    pub note: Option<Box<str>>,
    /// The answer was cached.
    pub cached: bool,
    /// The host's answers to the plugins, for replays; only for the messages that waited for the lookup.
    pub host_calls: Option<Box<[u8]>>,
}

impl Lookup {
    /// The value of an attribute of the number.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value)
    }
}

#[cfg(test)]
mod tests {
    use super::LookupNumber;
    use crate::Address;

    #[test]
    fn numbers_are_looked_up_and_names_are_not() {
        let number = |ton, value: &[u8]| {
            LookupNumber::of(&Address::new(ton, 1, value))
                .map(|number| (number.text().to_owned(), number.international))
        };
        let known = |digits: &str, international| Some((digits.to_owned(), international));
        assert_eq!(number(1, b"4915112345"), known("4915112345", true));
        assert_eq!(number(0, b"+4915112345"), known("4915112345", true));
        assert_eq!(number(2, b"015112345"), known("015112345", false));
        for no_number in [&b""[..], b"+", b"Shop", b"49 151", &[b'1'; 21]] {
            assert_eq!(number(1, no_number), None, "{no_number:?}");
        }
    }
}

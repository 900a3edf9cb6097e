//! Values that policy documents share: times, prices, prefixes, lists of names, and error messages.
//!
//! All documents are TOML. Errors name the line, the mistake, and the correction.

mod attributes;
mod names;
mod number;
mod price;
#[cfg(feature = "schema")]
pub mod schema;
mod time;

pub use attributes::{AttributeConditions, MessageAttributes};
pub use names::Names;
pub use number::digits_of;
pub use price::{Millionths, price};
pub use time::{Time, time};

use serde::de::DeserializeOwned;
use std::ops::Range;

/// The longest prefix that the host's tables accept.
pub const MAX_PREFIX_DIGITS: usize = 30;

/// Parses a document.
///
/// # Errors
/// Line, column, the mistake and the expected input, as reported by the TOML parser.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
}

/// The line, from 1, on which a part of the document starts.
#[must_use]
pub fn line(text: &str, span: Range<usize>) -> usize {
    text.bytes().take(span.start).filter(|octet| *octet == b'\n').count() + 1
}

/// Checks a prefix against the rules of the host's tables.
///
/// # Errors
/// The correction.
pub fn check_prefix(prefix: &str) -> Result<(), String> {
    if prefix.len() > MAX_PREFIX_DIGITS || !prefix.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(format!(
            "prefix {prefix:?} is not at most {MAX_PREFIX_DIGITS} decimal digits; leave out the plus sign, and write \"\" for \
             every destination"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one() {
        let text = "a\nb\n\nc";
        assert_eq!([0, 1, 2, 4, 5, 99].map(|start| line(text, start..start)), [1, 1, 2, 3, 4, 4]);
    }

    #[test]
    fn prefixes_are_digits() {
        check_prefix("").unwrap();
        check_prefix(&"1".repeat(30)).unwrap();
        assert!(check_prefix("+86").unwrap_err().contains("plus sign"));
        assert!(check_prefix(&"1".repeat(31)).is_err());
        assert!(check_prefix("٣").is_err());
    }
}

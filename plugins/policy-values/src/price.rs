use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use std::fmt;

/// The highest price in a document, in millionths: a million of the currency.
const MAX_PRICE: u64 = 1_000_000_000_000;

/// A price in currency units as people write it: `"0.035"` is 35,000 millionths. It is a string, because a binary
/// fraction would round it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millionths(pub u64);

/// Parses a price.
///
/// # Errors
/// The correction.
pub fn price(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "{text:?} is not a price: write currency units with at most six decimals, such as \"0.035\" or \"12\""
        )
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|octet| octet.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 6 {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let millionths: u64 = format!("{decimals:0<6}").parse().map_err(|_| wrong())?;
    whole
        .checked_mul(1_000_000)
        .and_then(|price| price.checked_add(millionths))
        .filter(|price| *price <= MAX_PRICE)
        .ok_or_else(|| format!("{text:?} is above the highest price, 1000000"))
}

impl<'de> Deserialize<'de> for Millionths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = Millionths;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a price in quotes, such as \"0.035\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Millionths, E> {
                price(text).map(Millionths).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prices_are_exact() {
        for (text, millionths) in [
            ("0", 0),
            ("0.035", 35_000),
            ("12", 12_000_000),
            ("0.000001", 1),
            ("1.5", 1_500_000),
            ("1000000", MAX_PRICE),
        ] {
            assert_eq!(price(text), Ok(millionths), "{text}");
        }
        for text in [
            "",
            ".",
            ".5",
            "5.",
            "-1",
            "1e3",
            "0.0000001",
            "1,5",
            "1 ",
            "1000000.000001",
            "99999999999999999999",
        ] {
            assert!(price(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_written_price_is_read(millionths in 0..=MAX_PRICE) {
            let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
            prop_assert_eq!(price(&text), Ok(millionths));
        }

        #[test]
        fn any_text_is_a_price_or_refused(text in ".{0,40}") {
            if let Ok(millionths) = price(&text) {
                prop_assert!(millionths <= MAX_PRICE);
            }
        }
    }
}

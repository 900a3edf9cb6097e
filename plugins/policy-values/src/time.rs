use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use std::fmt;
use std::time::Duration;

/// The longest time in a document: a year.
const MAX_TIME: Duration = Duration::from_secs(366 * 86_400);

/// A time as in the appliance's configuration: `"500ms"`, `"30s"`, `"5m"`, `"1h"`, `"2d"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

/// Parses a time.
///
/// # Errors
/// The correction.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: write a number and ms, s, m, h or d, such as \"30s\"");
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number
        .checked_mul(factor)
        .map(Duration::from_millis)
        .filter(|time| *time <= MAX_TIME)
        .ok_or_else(|| format!("{text:?} is longer than 366d"))
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time in quotes, such as \"30s\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                time(text).map(Time).map_err(E::custom)
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
    fn times_have_a_unit() {
        for (text, milliseconds) in [
            ("0s", 0),
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "5", "s", "-1s", "1.5h", "1 h", "1h30m", "999999999999999999999s", "367d"] {
            assert!(time(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_refused(text in "[0-9]{0,24}[a-z ]{0,3}") {
            if let Ok(time) = time(&text) {
                prop_assert!(time <= MAX_TIME);
            }
        }
    }
}

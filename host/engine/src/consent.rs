//! Who has told whom to stop.

use crate::Consent;
use model::AddressBytes;
use rustc_hash::FxHashSet;

/// All that are stopped.
#[derive(Debug, Default)]
pub(crate) struct Consents {
    stopped: FxHashSet<Consent>,
}

impl Consents {
    pub(crate) fn is_stopped(&self, consent: &Consent) -> bool {
        !self.stopped.is_empty() && self.stopped.contains(consent)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stopped.is_empty()
    }

    /// Says whether this changed anything.
    pub(crate) fn set(&mut self, consent: Consent, stop: bool) -> bool {
        if stop { self.stopped.insert(consent) } else { self.stopped.remove(&consent) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Consent> {
        self.stopped.iter()
    }
}

/// The pair in the form in which it is compared: the same subscriber is written with and without `+`, `00`, a trunk
/// prefix or the country code of home, and the same sender name in small and capital letters.
pub(crate) fn comparable(sender: &[u8], subscriber: &[u8], country: &str) -> Consent {
    Consent { sender: normal(sender, country), subscriber: normal(subscriber, country) }
}

fn normal(number: &[u8], country: &str) -> AddressBytes {
    if number.iter().any(u8::is_ascii_alphabetic) || !number.is_ascii() {
        return number.iter().map(u8::to_ascii_lowercase).collect();
    }
    let digits: AddressBytes = number.iter().copied().filter(u8::is_ascii_digit).collect();
    let international = number.starts_with(b"+") || digits.starts_with(b"00");
    let mut rest: &[u8] = &digits;
    if let Some(without) = rest.strip_prefix(b"00") {
        rest = without;
    }
    // Short codes may begin like a country code: only what is long enough to be a subscriber's number loses it.
    const SUBSCRIBER: usize = 7;
    match rest.strip_prefix(country.as_bytes()) {
        Some(home) if !country.is_empty() && (international || home.len() >= SUBSCRIBER + 2) => rest = home,
        _ => {
            if !international
                && let Some(national) = rest.strip_prefix(b"0")
                && national.len() >= SUBSCRIBER
            {
                rest = national;
            }
        }
    }
    AddressBytes::from_slice(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_subscriber_however_written() {
        for same in ["8613012345678", "+8613012345678", "008613012345678", "13012345678", "013012345678"] {
            assert_eq!(normal(same.as_bytes(), "86").as_slice(), b"13012345678", "{same}");
        }
        assert_eq!(normal(b"106559", "86").as_slice(), b"106559");
        assert_eq!(normal(b"861065", "86").as_slice(), b"861065", "a short code keeps its digits");
        assert_eq!(normal(b"+4915112345678", "86").as_slice(), b"4915112345678");
        assert_eq!(normal(b"ACME", ""), normal(b"acme", ""));
        assert_eq!(normal(b"", "86").as_slice(), b"");
    }

    #[test]
    fn stop_and_start() {
        let mut consents = Consents::default();
        let pair = comparable(b"10655", b"8613012345678", "86");
        assert!(!consents.is_stopped(&pair));
        assert!(consents.set(pair.clone(), true) && !consents.set(pair.clone(), true));
        assert!(consents.is_stopped(&comparable(b"10655", b"13012345678", "86")));
        assert!(consents.set(pair.clone(), false) && !consents.is_stopped(&pair) && consents.is_empty());
    }
}

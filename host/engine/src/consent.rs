//! Who has told whom to stop.

use crate::Consent;
use model::AddressBytes;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// All that are stopped, by subscriber; his senders in order.
#[derive(Debug, Default)]
pub(crate) struct Consents {
    stopped: FxHashMap<AddressBytes, SmallVec<[AddressBytes; 1]>>,
}

impl Consents {
    pub(crate) fn is_stopped(&self, consent: &Consent) -> bool {
        self.stopped_by(&consent.subscriber).binary_search(&consent.sender).is_ok()
    }

    /// The senders that a subscriber has told to stop.
    pub(crate) fn stopped_by(&self, subscriber: &AddressBytes) -> &[AddressBytes] {
        self.stopped.get(subscriber).map_or(&[], |senders| senders)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stopped.is_empty()
    }

    /// Says whether this changed anything.
    pub(crate) fn set(&mut self, consent: Consent, stop: bool) -> bool {
        let Consent { sender, subscriber } = consent;
        if stop {
            let senders = self.stopped.entry(subscriber).or_default();
            let place = senders.binary_search(&sender);
            if let Err(place) = place {
                senders.insert(place, sender);
            }
            return place.is_err();
        }
        let Some(senders) = self.stopped.get_mut(&subscriber) else { return false };
        let Ok(place) = senders.binary_search(&sender) else { return false };
        senders.remove(place);
        if senders.is_empty() {
            self.stopped.remove(&subscriber);
        }
        true
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Consent> {
        self.stopped.iter().flat_map(|(subscriber, senders)| {
            let consent =
                |sender: &AddressBytes| Consent { sender: sender.clone(), subscriber: subscriber.clone() };
            senders.iter().map(consent)
        })
    }
}

/// All that a number can be written as that compares as `normal`: the way back from the form in which numbers are compared.
pub(crate) fn spellings(normal: &AddressBytes, country: &str) -> impl Iterator<Item = String> {
    let number = String::from_utf8_lossy(normal).into_owned();
    let fronts = ["", "+", "00", "0"].map(str::to_owned);
    let home = ["", "+", "00"].map(|front| format!("{front}{country}"));
    let home = home.into_iter().filter(|_| !country.is_empty());
    let country = country.to_owned();
    let same = normal.clone();
    let texts = fronts.into_iter().chain(home).map(move |front| format!("{front}{number}"));
    texts.filter(move |text| self::normal(text.as_bytes(), &country) == same)
}

/// The pair in the form in which it is compared: the same subscriber is written with and without `+`, `00`, a trunk
/// prefix or the country code of home, and the same sender name in small and capital letters.
pub(crate) fn comparable(sender: &[u8], subscriber: &[u8], country: &str) -> Consent {
    Consent { sender: normal(sender, country), subscriber: normal(subscriber, country) }
}

pub(crate) fn normal(number: &[u8], country: &str) -> AddressBytes {
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
    fn every_way_to_write_a_number() {
        let all = |number: &[u8], country: &str| {
            let mut all: Vec<String> = spellings(&normal(number, country), country).collect();
            all.sort();
            all
        };
        let home = ["+13012345678", "+8613012345678", "0013012345678", "008613012345678", "013012345678"];
        assert_eq!(all(b"+8613012345678", "86"), [&home[..], &["13012345678", "8613012345678"]].concat());
        assert_eq!(all(b"10655", "86"), ["+10655", "+8610655", "0010655", "008610655", "10655"]);
        assert_eq!(all(b"ACME", "86"), ["acme"]);
        for spelling in all(b"4915112345678", "86") {
            assert_eq!(normal(spelling.as_bytes(), "86").as_slice(), b"4915112345678", "{spelling}");
        }
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

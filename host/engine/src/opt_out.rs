//! Opt-outs: subscribers who told a sender to stop.

use model::{AddressBytes, OptOut};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// All opt-outs, by subscriber; the senders in order.
#[derive(Debug, Default)]
pub(crate) struct OptOuts {
    stopped: FxHashMap<AddressBytes, SmallVec<[AddressBytes; 1]>>,
}

impl OptOuts {
    pub(crate) fn is_opted_out(&self, opt_out: &OptOut) -> bool {
        self.senders_stopped_by(&opt_out.subscriber).binary_search(&opt_out.sender).is_ok()
    }

    /// The senders that a subscriber opted out of.
    pub(crate) fn senders_stopped_by(&self, subscriber: &AddressBytes) -> &[AddressBytes] {
        self.stopped.get(subscriber).map_or(&[], |senders| senders)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stopped.is_empty()
    }

    /// Adds or removes an opt-out. Returns whether this changed anything.
    pub(crate) fn set(&mut self, opt_out: OptOut, stop: bool) -> bool {
        let OptOut { sender, subscriber } = opt_out;
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = OptOut> {
        self.stopped.iter().flat_map(|(subscriber, senders)| {
            let opt_out =
                |sender: &AddressBytes| OptOut { sender: sender.clone(), subscriber: subscriber.clone() };
            senders.iter().map(opt_out)
        })
    }
}

/// All spellings of a number that normalise to `normalised`.
pub(crate) fn spellings(normalised: &AddressBytes, country: &str) -> impl Iterator<Item = String> {
    let number = String::from_utf8_lossy(normalised).into_owned();
    let fronts = ["", "+", "00", "0"].map(str::to_owned);
    let home = ["", "+", "00"].map(|front| format!("{front}{country}"));
    let home = home.into_iter().filter(|_| !country.is_empty());
    let country = country.to_owned();
    let same = normalised.clone();
    let texts = fronts.into_iter().chain(home).map(move |front| format!("{front}{number}"));
    texts.filter(move |text| self::normalised_number(text.as_bytes(), &country) == same)
}

/// The normalised pair: a subscriber may be written with and without `+`, `00`, a trunk prefix or the home country
/// code, and a sender name in upper and lower case.
pub(crate) fn normalised_pair(sender: &[u8], subscriber: &[u8], country: &str) -> OptOut {
    OptOut { sender: normalised_number(sender, country), subscriber: normalised_number(subscriber, country) }
}

pub(crate) fn normalised_number(number: &[u8], country: &str) -> AddressBytes {
    if number.iter().any(u8::is_ascii_alphabetic) || !number.is_ascii() {
        return number.iter().map(u8::to_ascii_lowercase).collect();
    }
    let digits: AddressBytes = number.iter().copied().filter(u8::is_ascii_digit).collect();
    let international = number.starts_with(b"+") || digits.starts_with(b"00");
    let mut rest: &[u8] = &digits;
    if let Some(without) = rest.strip_prefix(b"00") {
        rest = without;
    }
    // Short codes may begin like a country code: only a number of a subscriber's length loses it.
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
    fn spellings_of_one_subscriber_compare_equal() {
        for same in ["8613012345678", "+8613012345678", "008613012345678", "13012345678", "013012345678"] {
            assert_eq!(normalised_number(same.as_bytes(), "86").as_slice(), b"13012345678", "{same}");
        }
        assert_eq!(normalised_number(b"106559", "86").as_slice(), b"106559");
        assert_eq!(normalised_number(b"861065", "86").as_slice(), b"861065", "a short code keeps its digits");
        assert_eq!(normalised_number(b"+4915112345678", "86").as_slice(), b"4915112345678");
        assert_eq!(normalised_number(b"ACME", ""), normalised_number(b"acme", ""));
        assert_eq!(normalised_number(b"", "86").as_slice(), b"");
    }

    #[test]
    fn all_spellings_of_a_number() {
        let all = |number: &[u8], country: &str| {
            let mut all: Vec<String> = spellings(&normalised_number(number, country), country).collect();
            all.sort();
            all
        };
        let home = ["+13012345678", "+8613012345678", "0013012345678", "008613012345678", "013012345678"];
        assert_eq!(all(b"+8613012345678", "86"), [&home[..], &["13012345678", "8613012345678"]].concat());
        assert_eq!(all(b"10655", "86"), ["+10655", "+8610655", "0010655", "008610655", "10655"]);
        assert_eq!(all(b"ACME", "86"), ["acme"]);
        for spelling in all(b"4915112345678", "86") {
            assert_eq!(
                normalised_number(spelling.as_bytes(), "86").as_slice(),
                b"4915112345678",
                "{spelling}"
            );
        }
    }

    #[test]
    fn opt_out_and_opt_in() {
        let mut opt_outs = OptOuts::default();
        let pair = normalised_pair(b"10655", b"8613012345678", "86");
        assert!(!opt_outs.is_opted_out(&pair));
        assert!(opt_outs.set(pair.clone(), true) && !opt_outs.set(pair.clone(), true));
        assert!(opt_outs.is_opted_out(&normalised_pair(b"10655", b"13012345678", "86")));
        assert!(opt_outs.set(pair.clone(), false) && !opt_outs.is_opted_out(&pair) && opt_outs.is_empty());
    }
}

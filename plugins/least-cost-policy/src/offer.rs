use crate::document::Offer as OfferEntry;
use policy_values::price;
use std::time::Duration;

/// A peer's price for one segment of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The peer.
    pub peer: String,
    /// Cost of a segment, in millionths.
    pub cost: u32,
    /// 0 to 100, 100 is best.
    pub quality: u8,
    /// Maximum wait of a message before the next leg is tried.
    pub longest_wait: Option<Duration>,
}

impl Offer {
    pub(crate) fn check(entry: OfferEntry) -> Result<Self, String> {
        let OfferEntry { peer, cost, quality, longest_wait } = entry;
        Self::new(&peer, cost.0, quality)
            .map(|offer| Self { longest_wait: longest_wait.map(|time| time.0), ..offer })
    }

    fn new(peer: &str, cost: u64, quality: u8) -> Result<Self, String> {
        if peer.is_empty() {
            return Err("an offer has an empty `peer`".to_owned());
        }
        if quality > 100 {
            return Err(format!(
                "the offer of {peer:?} has quality {quality}; it is 0 to 100, and 100 is best"
            ));
        }
        let cost = u32::try_from(cost)
            .map_err(|_| format!("the offer of {peer:?} costs more than a leg may, 4294.967295 a part"))?;
        Ok(Self { peer: peer.to_owned(), cost, quality, longest_wait: None })
    }

    /// Parses the offers of a row of the appliance's table: peer, cost and quality separated by blanks, offers
    /// separated by semicolons: `north 0.012 95; south 0.010 80`.
    ///
    /// # Errors
    /// The malformed offer.
    pub fn row(value: &str) -> Result<Vec<Self>, String> {
        let mut offers = Vec::new();
        for text in value.split(';').map(str::trim).filter(|text| !text.is_empty()) {
            let wrong =
                || format!("{text:?} is not an offer; write PEER COST QUALITY, such as \"north 0.012 95\"");
            let mut words = text.split_ascii_whitespace();
            let (Some(peer), Some(cost), quality, None) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                return Err(wrong());
            };
            let quality = quality.map_or(Ok(100), str::parse).map_err(|_| wrong())?;
            if offers.iter().any(|offer: &Self| offer.peer == peer) {
                return Err(format!("peer {peer:?} has two offers; keep one"));
            }
            offers.push(Self::new(peer, price(cost)?, quality)?);
        }
        Ok(offers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_are_offers() {
        let offer =
            |peer: &str, cost, quality| Offer { peer: peer.to_owned(), cost, quality, longest_wait: None };
        assert_eq!(
            Offer::row(" north 0.012 95;south  0.01 ; ").unwrap(),
            [offer("north", 12_000, 95), offer("south", 10_000, 100)]
        );
        assert_eq!(Offer::row("").unwrap(), []);
        for (row, expected) in [
            ("north", "not an offer"),
            ("north 0.1 95 x", "not an offer"),
            ("north 0.1 good", "not an offer"),
            ("north cheap 95", "not a price"),
            ("north 0.1 101", "0 to 100"),
            ("north 5000 95", "more than a leg may"),
        ] {
            assert!(Offer::row(row).unwrap_err().contains(expected), "{row:?}");
        }
    }

    proptest! {
        #[test]
        fn any_row_is_read_or_refused(row in "([a-z0-9.; ]|0\\.01|95){0,40}") {
            if let Ok(offers) = Offer::row(&row) {
                prop_assert!(offers.iter().all(|offer| !offer.peer.is_empty() && offer.quality <= 100));
            }
        }
    }
}

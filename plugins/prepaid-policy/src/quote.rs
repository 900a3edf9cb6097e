use crate::{Policy, Tariff, Terms};
use policy_values::price;

/// The maximum amount for one message that the host accepts, in millionths.
pub const MAX_AMOUNT: u64 = 1_000_000_000_000;

/// The price of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quote {
    /// Free of charge.
    Free,
    /// A charge.
    Charge {
        /// The account that is charged.
        account: String,
        /// In millionths, for all segments together; 1 to [`MAX_AMOUNT`].
        amount: u64,
        /// Whether the charge is kept even if the message fails.
        keep_on_failure: bool,
        /// For the trace.
        note: String,
    },
    /// A refusal.
    Refuse {
        /// The reason, for the trace.
        note: String,
    },
}

/// The longest prefix of a destination in a tariff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceMatch {
    /// Number of digits of the prefix.
    pub length: u32,
    /// Its price, in millionths; the error is a table value that is not a price.
    pub price: Result<u64, String>,
}

impl PriceMatch {
    /// A match in an appliance table; parses the price.
    #[must_use]
    pub fn row(length: u32, value: &str) -> Self {
        Self { length, price: price(value.trim()) }
    }

    /// The longer match; between equal lengths the first, so that a document can correct a table.
    #[must_use]
    pub fn longer(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(first), Some(second)) => Some(if second.length > first.length { second } else { first }),
            (first, second) => first.or(second),
        }
    }
}

impl Policy {
    /// The price of a message of `origin`. `find_price` finds the price of its destination in the tariff with the given
    /// index.
    pub fn quote(
        &self,
        origin: &str,
        parts: u16,
        find_price: impl FnOnce(usize, &Tariff) -> Option<PriceMatch>,
    ) -> Quote {
        let refuse = |note: String| Quote::Refuse { note };
        let (tariff, ledger) = match self.terms(origin) {
            None => return refuse("the account has no tariff".to_owned()),
            Some(Terms::Free) => return Quote::Free,
            Some(Terms::Refuse) => return refuse("the account is refused".to_owned()),
            Some(Terms::Charge { tariff, ledger }) => (*tariff, ledger.as_deref()),
        };
        let Some(list) = self.tariffs.get(tariff) else {
            return refuse("the account has no tariff".to_owned());
        };
        let Some(found) = find_price(tariff, list) else {
            return refuse(format!("tariff {} has no price for this destination", list.name));
        };
        let part_price = match found.price {
            Ok(price) => price,
            Err(what) => return refuse(format!("tariff {}: in the appliance's table, {what}", list.name)),
        };
        let parts = u64::from(parts.max(1));
        let amount = part_price.saturating_mul(parts);
        if amount == 0 {
            return Quote::Free;
        }
        if amount > MAX_AMOUNT {
            return refuse(format!("tariff {}: {parts} parts cost more than a message may", list.name));
        }
        Quote::Charge {
            account: ledger.unwrap_or(origin).to_owned(),
            amount,
            keep_on_failure: !list.refund_on_failure,
            note: format!("tariff {}, prefix of {} digits, {parts} at {part_price}", list.name, found.length),
        }
    }
}

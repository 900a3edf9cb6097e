use crate::{Policy, Tariff, Terms};
use policy_words::price;

/// The most that the host takes for one message, in millionths.
pub const MOST: u64 = 1_000_000_000_000;

/// What a message is to cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quote {
    /// Nothing.
    Free,
    /// An amount.
    Charge {
        /// Who pays it.
        account: String,
        /// Millionths, for all parts together; 1 to [`MOST`].
        amount: u64,
        /// It is paid though the message fails.
        keep_on_failure: bool,
        /// For the trace.
        note: String,
    },
    /// It is refused.
    Refuse {
        /// Why, for the trace.
        note: String,
    },
}

/// What a tariff's prefixes say of a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Digits of the prefix.
    pub length: u32,
    /// Its price, in millionths; or the value of the appliance's table that is none.
    pub price: Result<u64, String>,
}

impl Found {
    /// A row of an appliance's table, whose value is to be a price.
    #[must_use]
    pub fn row(length: u32, value: &str) -> Self {
        Self { length, price: price(value.trim()) }
    }

    /// The longer of two; the first where they are equally long, so that a document may correct a table.
    #[must_use]
    pub fn longer(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(first), Some(second)) => Some(if second.length > first.length { second } else { first }),
            (first, second) => first.or(second),
        }
    }
}

impl Policy {
    /// What a message of `origin` costs. `look` finds the price of its destination in the tariff of the given index.
    pub fn quote(
        &self,
        origin: &str,
        parts: u16,
        look: impl FnOnce(usize, &Tariff) -> Option<Found>,
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
        let Some(found) = look(tariff, list) else {
            return refuse(format!("tariff {} has no price for this destination", list.name));
        };
        let a_part = match found.price {
            Ok(price) => price,
            Err(what) => return refuse(format!("tariff {}: in the appliance's table, {what}", list.name)),
        };
        let parts = u64::from(parts.max(1));
        let amount = a_part.saturating_mul(parts);
        if amount == 0 {
            return Quote::Free;
        }
        if amount > MOST {
            return refuse(format!("tariff {}: {parts} parts cost more than a message may", list.name));
        }
        Quote::Charge {
            account: ledger.unwrap_or(origin).to_owned(),
            amount,
            keep_on_failure: !list.refund_on_failure,
            note: format!("tariff {}, prefix of {} digits, {parts} at {a_part}", list.name, found.length),
        }
    }
}

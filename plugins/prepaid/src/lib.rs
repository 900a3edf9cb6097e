//! The default biller: the longest prefix of the destination gives the price per segment, in the account's tariff.

use prepaid_policy::{Policy, PriceMatch, Quote as PolicyQuote};
use switchyard_sdk::{Biller, FirstLeg, Message, Quote, charge, free, refuse, tables};

/// The handles of a tariff's tables.
struct PriceTables {
    /// The tariff's own prices; a row's value is the index of its price.
    own: Option<u32>,
    /// The appliance's table.
    shared: Option<u32>,
}

struct Prepaid {
    policy: Policy,
    /// In the order of the policy's tariffs.
    tables_by_tariff: Vec<PriceTables>,
}

impl Biller for Prepaid {
    fn configure(document: &str) -> Result<Self, String> {
        let policy = Policy::parse(document)?;
        let mut tables_by_tariff = Vec::with_capacity(policy.tariffs.len());
        for tariff in &policy.tariffs {
            let rows: Vec<tables::Row> = tariff
                .prices
                .iter()
                .zip(0..)
                .map(|((key, _), value)| tables::Row { key: key.clone(), value })
                .collect();
            let of_tariff = |what: String| format!("tariff {:?}: {what}", tariff.name);
            let own = match rows.is_empty() {
                true => None,
                false => Some(tables::define_prefixes(&tariff.name, &rows).map_err(of_tariff)?),
            };
            let shared = tariff.table.as_deref().map(tables::open).transpose().map_err(of_tariff)?;
            tables_by_tariff.push(PriceTables { own, shared });
        }
        Ok(Self { policy, tables_by_tariff })
    }

    fn price(&self, message: &Message, _leg: Option<&FirstLeg>) -> Quote {
        let policy_quote = self.policy.quote(&message.origin, message.parts, |index, tariff| {
            let tariff_tables = self.tables_by_tariff.get(index)?;
            let own = tariff_tables
                .own
                .and_then(|table| tables::match_destination(table, u32::MAX))
                .and_then(|found| {
                    let (_, price) = tariff.prices.get(found.value as usize)?;
                    Some(PriceMatch { length: found.length, price: Ok(*price) })
                });
            let shared = tariff_tables.shared.and_then(|table| {
                let destination = &message.destination.value;
                let digits = destination.strip_prefix('+').unwrap_or(destination);
                let found = tables::get_prefix(table, digits)?;
                Some(PriceMatch::row(found.length, &found.value))
            });
            PriceMatch::longer(own, shared)
        });
        match policy_quote {
            PolicyQuote::Free => free(),
            PolicyQuote::Refuse { note } => refuse().because(note),
            PolicyQuote::Charge { account, amount, keep_on_failure, note } => {
                let quote = charge(account, amount).because(note);
                if keep_on_failure { quote.kept_on_failure() } else { quote }
            }
        }
    }
}

switchyard_sdk::export_biller!(Prepaid);

//! The policy document of `prepaid`: the tariff of each account, and the price of a message.

mod document;
mod quote;

pub use quote::{MAX_AMOUNT, PriceMatch, Quote};

use document::{Account as AccountEntry, Document, Tariff as TariffEntry};
use policy_values::{check_prefix, line, read};
use std::collections::HashMap;

/// Maximum length of a ledger account's name, in octets.
const MAX_LEDGER_OCTETS: usize = 64;

/// A price list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tariff {
    /// Its name, for notes.
    pub name: String,
    /// Whether a failed message is refunded.
    pub refund_on_failure: bool,
    /// An appliance table with further prices.
    pub table: Option<String>,
    /// Prefix and price of a segment, in millionths; each prefix once.
    pub prices: Vec<(String, u64)>,
}

/// The terms for an account's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Terms {
    /// Free of charge.
    Free,
    /// Refused.
    Refuse,
    /// Charged by the tariff with this index, to this ledger account, or by default to the origin's own.
    Charge { tariff: usize, ledger: Option<String> },
}

/// The checked document.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The price lists.
    pub tariffs: Vec<Tariff>,
    accounts: HashMap<String, Terms>,
    default: Option<Terms>,
}

impl Policy {
    /// Parses and checks a document.
    ///
    /// # Errors
    /// The line, the mistake, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        if document.default_tariff.is_none() && document.account.is_empty() {
            return Err(
                "the document has neither a `default-tariff` nor an [[account]]: every message would be \
                        refused. Add one of them, and a [[tariff]]"
                    .to_owned(),
            );
        }
        let mut tariffs: Vec<Tariff> = Vec::new();
        for tariff in document.tariff {
            let at = line(text, tariff.span());
            let tariff = check_tariff(tariff.into_inner()).map_err(|what| format!("line {at}: {what}"))?;
            if tariffs.iter().any(|other| other.name == tariff.name) {
                return Err(format!(
                    "line {at}: there are two tariffs of the name {:?}; keep one",
                    tariff.name
                ));
            }
            tariffs.push(tariff);
        }
        let by_name: HashMap<&str, usize> =
            tariffs.iter().enumerate().map(|(index, tariff)| (tariff.name.as_str(), index)).collect();
        let tariff_index = |name: &str| {
            by_name.get(name).copied().ok_or_else(|| {
                let mut names: Vec<_> = by_name.keys().copied().collect();
                names.sort_unstable();
                format!("there is no [[tariff]] of the name {name:?}; there is: {}", names.join(", "))
            })
        };
        let default = match &document.default_tariff {
            None => None,
            Some(name) => {
                let at = line(text, name.span());
                let tariff = tariff_index(name.get_ref())
                    .map_err(|what| format!("line {at}: `default-tariff`: {what}"))?;
                Some(Terms::Charge { tariff, ledger: None })
            }
        };
        let default_tariff = match default {
            Some(Terms::Charge { tariff, .. }) => Some(tariff),
            _ => None,
        };
        let mut accounts = HashMap::new();
        let mut lines = HashMap::new();
        for account in document.account {
            let at = line(text, account.span());
            let account = account.into_inner();
            let terms = check_account(&account, tariff_index, default_tariff)
                .map_err(|what| format!("line {at}: {what}"))?;
            for name in account.name.0 {
                if name.is_empty() {
                    return Err(format!("line {at}: an account's name is empty"));
                }
                if let Some(first) = lines.insert(name.clone(), at) {
                    return Err(format!(
                        "line {at}: account {name:?} has its [[account]] at line {first} already; keep one"
                    ));
                }
                accounts.insert(name, terms.clone());
            }
        }
        Ok(Self { tariffs, accounts, default })
    }

    pub(crate) fn terms(&self, origin: &str) -> Option<&Terms> {
        self.accounts.get(origin).or(self.default.as_ref())
    }
}

fn check_tariff(tariff: TariffEntry) -> Result<Tariff, String> {
    let name = tariff.name;
    if name.is_empty() {
        return Err("a tariff's `name` is empty".to_owned());
    }
    if tariff.prices.is_empty() && tariff.table.is_none() {
        return Err(format!(
            "tariff {name:?} has no price: write [tariff.prices] with \"prefix\" = \"price\", or name a `table`"
        ));
    }
    if tariff.table.as_deref() == Some("") {
        return Err(format!(
            "tariff {name:?} has an empty `table`; leave it out, or name one of the appliance's"
        ));
    }
    for prefix in tariff.prices.keys() {
        check_prefix(prefix).map_err(|what| format!("tariff {name:?}: {what}"))?;
    }
    let prices = tariff.prices.into_iter().map(|(prefix, price)| (prefix, price.0)).collect();
    Ok(Tariff { name, refund_on_failure: tariff.refund_on_failure, table: tariff.table, prices })
}

fn check_account(
    account: &AccountEntry,
    tariff_index: impl Fn(&str) -> Result<usize, String>,
    default_tariff: Option<usize>,
) -> Result<Terms, String> {
    let is_charged = account.tariff.is_some() || account.ledger.is_some();
    match (account.free, account.refuse) {
        (true, true) => return Err("an account cannot be `free` and `refuse`; keep one".to_owned()),
        (true, false) | (false, true) if is_charged => {
            return Err(
                "an account that is `free` or `refuse` is not charged: leave out `tariff` and `ledger`"
                    .to_owned(),
            );
        }
        (true, false) => return Ok(Terms::Free),
        (false, true) => return Ok(Terms::Refuse),
        (false, false) => {}
    }
    if let Some(ledger) = &account.ledger
        && (ledger.is_empty() || ledger.len() > MAX_LEDGER_OCTETS)
    {
        return Err(format!(
            "`ledger` has {} octets; a ledger account's name has 1 to {MAX_LEDGER_OCTETS}",
            ledger.len()
        ));
    }
    let tariff = match &account.tariff {
        Some(name) => tariff_index(name)?,
        None => default_tariff
            .ok_or_else(|| "this account has no `tariff`, and the document no `default-tariff`".to_owned())?,
    };
    Ok(Terms::Charge { tariff, ledger: account.ledger.clone() })
}

#[cfg(test)]
mod tests;

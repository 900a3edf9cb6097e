//! The policy document of `prepaid`: which account has which tariff, and what a message costs by it.

mod document;
mod quote;

pub use quote::{Found, MOST, Quote};

use document::{Account as WrittenAccount, Document, Tariff as WrittenTariff};
use policy_words::{check_prefix, line, read};
use std::collections::HashMap;

/// Octets of a ledger account's name at most.
const LEDGER: usize = 64;

/// A price list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tariff {
    /// Its name, for notes.
    pub name: String,
    /// A message that fails is not paid for.
    pub refund_on_failure: bool,
    /// A table of the appliance's that has prices too.
    pub table: Option<String>,
    /// Prefix and price of a part, in millionths; each prefix once.
    pub prices: Vec<(String, u64)>,
}

/// What is done with an account's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Terms {
    /// They cost nothing.
    Free,
    /// They are refused.
    Refuse,
    /// They are charged by the tariff of this index, to this ledger account, or to the origin's own.
    Charge { tariff: usize, ledger: Option<String> },
}

/// The document, checked.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The price lists.
    pub tariffs: Vec<Tariff>,
    accounts: HashMap<String, Terms>,
    default: Option<Terms>,
}

impl Policy {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// The line, what is wrong there, and what would be right.
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
        let known = |name: &str| {
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
                let tariff =
                    known(name.get_ref()).map_err(|what| format!("line {at}: `default-tariff`: {what}"))?;
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
            let terms = check_account(&account, known, default_tariff)
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

fn check_tariff(tariff: WrittenTariff) -> Result<Tariff, String> {
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
    account: &WrittenAccount,
    known: impl Fn(&str) -> Result<usize, String>,
    default_tariff: Option<usize>,
) -> Result<Terms, String> {
    let charged = account.tariff.is_some() || account.ledger.is_some();
    match (account.free, account.refuse) {
        (true, true) => return Err("an account cannot be `free` and `refuse`; keep one".to_owned()),
        (true, false) | (false, true) if charged => {
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
        && (ledger.is_empty() || ledger.len() > LEDGER)
    {
        return Err(format!(
            "`ledger` has {} octets; a ledger account's name has 1 to {LEDGER}",
            ledger.len()
        ));
    }
    let tariff = match &account.tariff {
        Some(name) => known(name)?,
        None => default_tariff
            .ok_or_else(|| "this account has no `tariff`, and the document no `default-tariff`".to_owned())?,
    };
    Ok(Terms::Charge { tariff, ledger: account.ledger.clone() })
}

#[cfg(test)]
mod tests;

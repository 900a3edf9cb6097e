//! What messages were to cost, and what they would.

use crate::candidate::PriceVerdict;
use crate::report::{AccountPrice, PriceReport, Sums};
use archive::ArchivedMessage;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;

/// Accounts that are told apart, at most: those that are met first.
const ACCOUNTS: usize = 10_000;

/// Prices of a batch, or of all batches so far.
#[derive(Debug, Default)]
pub(crate) struct PriceTally {
    total: Sums,
    same: u64,
    dearer: u64,
    cheaper: u64,
    new_refusals: u64,
    /// In the order in which accounts were met.
    accounts: Vec<(Arc<str>, Sums)>,
    index: FxHashMap<Arc<str>, usize>,
    /// Of accounts beyond the most that are told apart.
    other: Sums,
}

impl PriceTally {
    pub(crate) fn count(&mut self, message: &ArchivedMessage, judged: &PriceVerdict) {
        let was = message.price.as_deref();
        let (old, payer) = was.map_or((0, None), |price| (price.amount, price.account.as_ref()));
        let (new, new_payer) = match judged {
            PriceVerdict::Charge { account, amount } => (*amount, Some(account)),
            PriceVerdict::Free => (0, None),
            PriceVerdict::Refuse => {
                self.new_refusals += 1;
                (0, None)
            }
        };
        self.total.add(&Sums { messages: 1, old, new });
        match new {
            new if new == old => self.same += 1,
            new if new > old => self.dearer += 1,
            _ => self.cheaper += 1,
        }
        match (payer, new_payer) {
            (Some(payer), Some(new_payer)) if payer == new_payer => {
                self.account(payer).add(&Sums { messages: 1, old, new });
            }
            _ => {
                if let Some(payer) = payer {
                    self.account(payer).add(&Sums { messages: 1, old, new: 0 });
                }
                if let Some(payer) = new_payer {
                    self.account(payer).add(&Sums { messages: 1, old: 0, new });
                }
            }
        }
    }

    fn account(&mut self, name: &Arc<str>) -> &mut Sums {
        let at = match self.index.get(name) {
            Some(at) => *at,
            None if self.accounts.len() < ACCOUNTS => {
                self.index.insert(name.clone(), self.accounts.len());
                self.accounts.push((name.clone(), Sums::default()));
                self.accounts.len() - 1
            }
            None => usize::MAX,
        };
        match self.accounts.get_mut(at) {
            Some((_, sums)) => sums,
            None => &mut self.other,
        }
    }

    /// Takes in a batch that comes after all that it has.
    pub(crate) fn add(&mut self, batch: &Self) {
        self.total.add(&batch.total);
        self.same += batch.same;
        self.dearer += batch.dearer;
        self.cheaper += batch.cheaper;
        self.new_refusals += batch.new_refusals;
        for (name, sums) in &batch.accounts {
            self.account(name).add(sums);
        }
        self.other.add(&batch.other);
    }

    /// With the accounts that differ most, and all others in one.
    pub(crate) fn report(mut self, most: usize) -> PriceReport {
        let mut accounts = std::mem::take(&mut self.accounts);
        accounts.sort_by_cached_key(|(name, sums)| (Reverse(sums.new.abs_diff(sums.old)), name.clone()));
        for (_, sums) in accounts.split_off(accounts.len().min(most)) {
            self.other.add(&sums);
        }
        PriceReport {
            total: self.total,
            same: self.same,
            dearer: self.dearer,
            cheaper: self.cheaper,
            new_refusals: self.new_refusals,
            accounts: accounts
                .into_iter()
                .map(|(account, sums)| AccountPrice { account: account.to_string(), sums })
                .collect(),
            other: self.other,
        }
    }
}

impl Sums {
    /// Sums stay where they are rather than turn over.
    fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.old = self.old.saturating_add(other.old);
        self.new = self.new.saturating_add(other.new);
    }
}

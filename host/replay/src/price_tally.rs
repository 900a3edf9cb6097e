//! Sums of archived and candidate prices.

use crate::candidate::CandidatePrice;
use api::{AccountPrice, PriceReport, PriceSums};
use archive::ArchivedMessage;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;

/// Maximum number of accounts with their own sums: the first ones that occur.
const MAX_ACCOUNTS: usize = 10_000;

/// Prices of a batch, or of all batches so far.
#[derive(Debug, Default)]
pub(crate) struct PriceTally {
    total: PriceSums,
    same: u64,
    dearer: u64,
    cheaper: u64,
    new_refusals: u64,
    /// In the order of first occurrence.
    accounts: Vec<(Arc<str>, PriceSums)>,
    index: FxHashMap<Arc<str>, usize>,
    /// Sums of all further accounts.
    other: PriceSums,
}

impl PriceTally {
    pub(crate) fn count(&mut self, message: &ArchivedMessage, decision: &CandidatePrice) {
        let was = message.price.as_deref();
        let (old, payer) = was.map_or((0, None), |price| (price.amount, price.account.as_ref()));
        let (new, new_payer) = match decision {
            CandidatePrice::Charge { account, amount } => (*amount, Some(account)),
            CandidatePrice::Free => (0, None),
            CandidatePrice::Refuse => {
                self.new_refusals += 1;
                (0, None)
            }
        };
        add(&mut self.total, &PriceSums { messages: 1, old, new });
        match new {
            new if new == old => self.same += 1,
            new if new > old => self.dearer += 1,
            _ => self.cheaper += 1,
        }
        match (payer, new_payer) {
            (Some(payer), Some(new_payer)) if payer == new_payer => {
                add(self.account(payer), &PriceSums { messages: 1, old, new });
            }
            _ => {
                if let Some(payer) = payer {
                    add(self.account(payer), &PriceSums { messages: 1, old, new: 0 });
                }
                if let Some(payer) = new_payer {
                    add(self.account(payer), &PriceSums { messages: 1, old: 0, new });
                }
            }
        }
    }

    fn account(&mut self, name: &Arc<str>) -> &mut PriceSums {
        let at = match self.index.get(name) {
            Some(at) => *at,
            None if self.accounts.len() < MAX_ACCOUNTS => {
                self.index.insert(name.clone(), self.accounts.len());
                self.accounts.push((name.clone(), PriceSums::default()));
                self.accounts.len() - 1
            }
            None => usize::MAX,
        };
        match self.accounts.get_mut(at) {
            Some((_, sums)) => sums,
            None => &mut self.other,
        }
    }

    /// Adds the next batch.
    pub(crate) fn add(&mut self, batch: &Self) {
        add(&mut self.total, &batch.total);
        self.same += batch.same;
        self.dearer += batch.dearer;
        self.cheaper += batch.cheaper;
        self.new_refusals += batch.new_refusals;
        for (name, sums) in &batch.accounts {
            add(self.account(name), sums);
        }
        add(&mut self.other, &batch.other);
    }

    /// The report, with the accounts that differ most; all others are combined.
    pub(crate) fn report(mut self, most: usize) -> PriceReport {
        let mut accounts = std::mem::take(&mut self.accounts);
        accounts.sort_by_cached_key(|(name, sums)| (Reverse(sums.new.abs_diff(sums.old)), name.clone()));
        for (_, sums) in accounts.split_off(accounts.len().min(most)) {
            add(&mut self.other, &sums);
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

/// Sums saturate instead of overflowing.
fn add(sums: &mut PriceSums, other: &PriceSums) {
    sums.messages += other.messages;
    sums.old = sums.old.saturating_add(other.old);
    sums.new = sums.new.saturating_add(other.new);
}

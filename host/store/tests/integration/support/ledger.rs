//! The expected ledger.

use model::{
    Balance, Batch, LedgerChange, LedgerOperation, MessageId, OperationRecord, RecoveredRecord, Settlement,
    Timestamp,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Store;

/// One name is a prefix of another: their operations must stay separate.
const ACCOUNTS: [&str; 4] = ["a", "aa", "b", "ü"];

/// The ledger part of a batch, without serial numbers.
#[derive(Debug, Clone)]
pub(crate) struct LedgerChanges {
    balances: Vec<(&'static str, Balance)>,
    operations: Vec<(LedgerOperation, Balance)>,
    settlements: Vec<Settlement>,
    settled: Option<u64>,
}

fn account() -> impl Strategy<Value = &'static str> {
    select(&ACCOUNTS[..])
}

fn balance() -> impl Strategy<Value = Balance> {
    any::<(i64, u64, u64, i64, u64)>().prop_map(|(balance, reserved, captured, funded, credit)| Balance {
        balance,
        reserved,
        captured,
        funded,
        credit,
    })
}

fn operation() -> impl Strategy<Value = LedgerOperation> {
    let change = prop_oneof![
        any::<u64>().prop_map(|credit| LedgerChange::Limit { credit }),
        any::<i64>().prop_map(|amount| LedgerChange::Fund { amount }),
    ];
    ("\\PC{1,16}", account(), change, "\\PC{0,40}", "\\PC{0,40}").prop_map(
        |(key, account, change, actor, reason)| LedgerOperation {
            key: key.into(),
            account: account.into(),
            change,
            actor: actor.into(),
            reason: reason.into(),
        },
    )
}

fn settlement() -> impl Strategy<Value = Settlement> {
    (account(), any::<(u64, u64, bool, u64)>()).prop_map(|(account, (message, amount, captured, at))| {
        Settlement {
            serial: 0,
            message: MessageId(message),
            account: account.into(),
            amount,
            captured,
            at: Timestamp(at),
        }
    })
}

pub(crate) fn ledger_changes() -> impl Strategy<Value = LedgerChanges> {
    (
        vec((account(), balance()), 0..3),
        vec((operation(), balance()), 0..3),
        vec(settlement(), 0..4),
        option::of(0_u64..4),
    )
        .prop_map(|(balances, operations, settlements, settled)| LedgerChanges {
            balances,
            operations,
            settlements,
            settled,
        })
}

/// The tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LedgerReference {
    balances: BTreeMap<Arc<str>, Balance>,
    operations: BTreeMap<u64, OperationRecord>,
    settlements: BTreeMap<u64, Settlement>,
    settled: Option<u64>,
}

impl LedgerReference {
    /// Numbers a draft, and adds it to a batch.
    pub(crate) fn put(&self, changes: LedgerChanges, batch: &mut Batch) {
        batch.balances = changes.balances.into_iter().map(|(name, balance)| (name.into(), balance)).collect();
        let first = self.operations.keys().next_back().map_or(1, |last| last + 1);
        batch.operations = (first..)
            .zip(changes.operations)
            .map(|(serial, (operation, balance))| OperationRecord {
                serial,
                operation,
                at: Timestamp(serial * 7),
                balance,
            })
            .collect();
        let last = self.settlements.keys().next_back().copied().or(self.settled).unwrap_or(0);
        batch.settlements =
            (last + 1..).zip(changes.settlements).map(|(serial, one)| Settlement { serial, ..one }).collect();
        batch.settled =
            changes.settled.map(|more| self.settled.unwrap_or(0) + more).filter(|upto| *upto <= last);
    }

    pub(crate) fn apply(&mut self, batch: &Batch) {
        self.balances.extend(batch.balances.iter().cloned());
        self.operations.extend(batch.operations.iter().map(|one| (one.serial, one.clone())));
        self.settlements.extend(batch.settlements.iter().map(|one| (one.serial, one.clone())));
        if let Some(upto) = batch.settled {
            self.settled = Some(upto);
            self.settlements = self.settlements.split_off(&(upto + 1));
        }
    }

    /// Adds a recovered record.
    pub(crate) fn found(&mut self, found: RecoveredRecord) {
        match found {
            RecoveredRecord::Balance(name, balance) => {
                self.balances.insert(name, balance);
            }
            RecoveredRecord::Operation(record) => {
                self.operations.insert(record.serial, record);
            }
            RecoveredRecord::BillerNotified(upto) => self.settled = Some(upto),
            RecoveredRecord::Settlement(settlement) => {
                self.settlements.insert(settlement.serial, settlement);
            }
            _ => {}
        }
    }

    /// Compares the audit of each account with its operations, newest first, in pages of any size.
    pub(crate) fn compare_audit(&self, store: &Store) -> Result<(), String> {
        for account in ACCOUNTS.into_iter().chain(["never was"]) {
            let mut wanted: Vec<_> =
                self.operations.values().filter(|one| &*one.operation.account == account).cloned().collect();
            wanted.reverse();
            let mut found: Vec<OperationRecord> = Vec::new();
            loop {
                let before = found.last().map(|last| last.serial);
                let page = store.operations(account, before, 2).map_err(|error| error.to_string())?;
                if page.is_empty() {
                    break;
                }
                found.extend(page);
            }
            if found != wanted {
                return Err(format!("audit of {account}: found {found:?}, wanted {wanted:?}"));
            }
        }
        Ok(())
    }
}

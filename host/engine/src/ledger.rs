//! The ledger: amounts reserved when a message is accepted, and captured or released when it ends, in the message's
//! own transaction.

use crate::LedgerAnswer;
use model::{Balance, Charge, LedgerChange, LedgerOperation, Moment, Now, OperationRecord, Settlement};
use rustc_hash::FxHashMap;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// The longest key or account name, in octets.
const MAX_NAME: usize = 64;

/// Delay before a failed notification is repeated.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// All ledger accounts, the keys of their operations, and the settlements to report.
///
/// `balance + reserved + captured = funded` holds for every account at every moment, and `balance >= -credit`.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) accounts: HashMap<Arc<str>, Account>,
    /// Accounts changed since the last batch.
    changed: Vec<Arc<str>>,
    /// Keyed digest of an operation's key → digest of its content. Digests, because operations are kept for ever.
    idempotency_keys: FxHashMap<u128, u64>,
    seed: u64,
    next_operation: u64,
    pub(crate) biller_queue: BillerQueue,
}

#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) balance: Balance,
    changed: bool,
}

/// Settlements of which the biller has not been notified, oldest first.
#[derive(Debug)]
pub(crate) struct BillerQueue {
    pub(crate) waiting: VecDeque<Settlement>,
    /// The last serial number of the pending notification.
    pub(crate) in_flight: Option<u64>,
    /// The last serial number reported since the start.
    pub(crate) last_reported: u64,
    pub(crate) next: u64,
    pub(crate) pause: Duration,
    /// No notification before this time.
    pub(crate) not_before: Moment,
}

impl Default for BillerQueue {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            in_flight: None,
            last_reported: 0,
            next: 1,
            pause: FIRST_PAUSE,
            not_before: Moment(0),
        }
    }
}

impl Ledger {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, next_operation: 1, ..Self::default() }
    }

    fn balance_mut(&mut self, name: &Arc<str>) -> Option<&mut Balance> {
        let account = self.accounts.get_mut(name)?;
        if !account.changed {
            account.changed = true;
            self.changed.push(name.clone());
        }
        Some(&mut account.balance)
    }

    /// Whether a charge can be reserved now, in each of its accounts.
    pub(crate) fn can_reserve(&self, charge: &Charge) -> bool {
        charge.accounts().all(|account| self.balance_after(account, charge.amount).is_some())
    }

    /// An account's balance after the reservation of an amount; `None` if it is not possible.
    fn balance_after(&self, account: &str, amount: u64) -> Option<i64> {
        let balance = &self.accounts.get(account)?.balance;
        let left = balance.balance.checked_sub_unsigned(amount)?;
        let covered = amount <= Charge::MAX && i128::from(left) >= -i128::from(balance.credit);
        covered.then_some(left)
    }

    /// Reserves an amount in each account of a charge. Returns false and changes nothing if an account is unknown or cannot
    /// pay.
    pub(crate) fn reserve(&mut self, charge: &Charge) -> bool {
        if !self.can_reserve(charge) {
            return false;
        }
        for account in charge.accounts() {
            let left = self.balance_after(account, charge.amount);
            if let (Some(left), Some(balance)) = (left, self.balance_mut(account)) {
                balance.balance = left;
                // The sum of reserved and captured amounts is the difference of two i64: it fits.
                balance.reserved += charge.amount;
            }
        }
        true
    }

    /// Ends a reservation in each account of a charge: captures or releases it.
    pub(crate) fn release(&mut self, charge: &Charge, capture: bool) {
        for account in charge.accounts() {
            let Some(balance) = self.balance_mut(account) else { continue };
            balance.reserved = balance.reserved.saturating_sub(charge.amount);
            if capture {
                balance.captured += charge.amount;
            } else {
                balance.balance = balance.balance.saturating_add_unsigned(charge.amount);
            }
        }
    }

    fn digests(&self, operation: &LedgerOperation) -> (u128, u64) {
        let hash = |salt: u64, of: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(self.seed ^ salt);
            of(&mut hasher);
            hasher.finish()
        };
        let key = |hasher: &mut DefaultHasher| operation.key.hash(hasher);
        let content = |hasher: &mut DefaultHasher| {
            operation.account.hash(hasher);
            match operation.change {
                LedgerChange::Limit { credit } => (0_u8, credit).hash(hasher),
                LedgerChange::Fund { amount } => (1_u8, amount).hash(hasher),
            }
        };
        (u128::from(hash(1, &key)) << 64 | u128::from(hash(2, &key)), hash(3, &content))
    }

    /// Applies a balance operation, unless it was applied before; returns the record to write.
    pub(crate) fn operate(
        &mut self,
        operation: LedgerOperation,
        now: Now,
    ) -> Result<OperationRecord, LedgerAnswer> {
        let named = |name: &str| (1..=MAX_NAME).contains(&name.len());
        if !named(&operation.key) || !named(&operation.account) {
            return Err(LedgerAnswer::BadName);
        }
        let known = self.accounts.get(&operation.account).map(|account| account.balance);
        let (key, content) = self.digests(&operation);
        if let Some(before) = self.idempotency_keys.get(&key) {
            return Err(match known {
                Some(balance) if *before == content => LedgerAnswer::Repeated { balance },
                _ => LedgerAnswer::KeyReused,
            });
        }
        let balance = match (&operation.change, known) {
            (LedgerChange::Limit { credit }, known) => {
                Balance { credit: *credit, ..known.unwrap_or_default() }
            }
            (LedgerChange::Fund { .. }, None) => return Err(LedgerAnswer::UnknownAccount),
            (LedgerChange::Fund { amount }, Some(balance)) => {
                let sums = (balance.balance.checked_add(*amount), balance.funded.checked_add(*amount));
                let (Some(left), Some(funded)) = sums else {
                    return Err(LedgerAnswer::WouldExceed { balance });
                };
                Balance { balance: left, funded, ..balance }
            }
        };
        if i128::from(balance.balance) < -i128::from(balance.credit) {
            return Err(LedgerAnswer::WouldExceed { balance: known.unwrap_or_default() });
        }
        self.accounts.entry(operation.account.clone()).or_default();
        if let Some(account) = self.balance_mut(&operation.account) {
            *account = balance;
        }
        self.idempotency_keys.insert(key, content);
        let serial = self.next_operation;
        self.next_operation += 1;
        Ok(OperationRecord { serial, operation, at: now.wall, balance })
    }

    /// Takes the changed accounts, for the batch.
    pub(crate) fn take_changed(&mut self) -> Vec<(Arc<str>, Balance)> {
        let names = std::mem::take(&mut self.changed);
        names
            .into_iter()
            .filter_map(|name| {
                let account = self.accounts.get_mut(&name)?;
                account.changed = false;
                let balance = account.balance;
                Some((name, balance))
            })
            .collect()
    }

    pub(crate) fn recover_balance(&mut self, name: Arc<str>, balance: Balance) {
        self.accounts.insert(name, Account { balance, changed: false });
    }

    pub(crate) fn recover_operation(&mut self, record: &OperationRecord) {
        let (key, content) = self.digests(&record.operation);
        self.idempotency_keys.insert(key, content);
        self.next_operation = self.next_operation.max(record.serial + 1);
    }

    pub(crate) fn recover_settled(&mut self, upto: u64) {
        self.biller_queue.next = self.biller_queue.next.max(upto + 1);
    }

    pub(crate) fn recover_settlement(&mut self, settlement: Settlement) {
        self.biller_queue.next = self.biller_queue.next.max(settlement.serial + 1);
        self.biller_queue.waiting.push_back(settlement);
    }
}

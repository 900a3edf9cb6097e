//! The ledger: amounts reserved when a message is accepted, and captured or released when it ends, in the message's
//! own transaction.

use crate::engine::Engine;
use crate::slab::{Slot, flag};
use crate::timer::Timer;
use crate::{EngineAnswer, EngineCommand, LedgerAnswer, Output, ReplyTo};
use model::{
    Balance, Charge, FinalRecord, FinalState, LedgerChange, LedgerOperation, Moment, Now, OperationRecord,
    Refusal, RejectReason, RoutingDecision, Settlement, Step, StepKind,
};
use rustc_hash::FxHashMap;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of settlements per notification of the biller.
const NOTIFY_BATCH: usize = 500;

/// The longest key or account name, in octets.
const MAX_NAME: usize = 64;

/// Delay before a failed notification is repeated; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// All ledger accounts, the keys of their operations, and the settlements to report.
///
/// `balance + reserved + captured = funded` holds for every account at every moment, and `balance >= -credit`.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    accounts: HashMap<Arc<str>, Account>,
    /// Accounts changed since the last batch.
    touched: Vec<Arc<str>>,
    /// Keyed digest of an operation's key → digest of its content. Digests, because operations are kept for ever.
    idempotency_keys: FxHashMap<u128, u64>,
    seed: u64,
    next_operation: u64,
    biller_queue: BillerQueue,
}

#[derive(Debug, Default)]
struct Account {
    balance: Balance,
    touched: bool,
}

/// Settlements that the biller was not notified of, oldest first.
#[derive(Debug)]
struct BillerQueue {
    waiting: VecDeque<Settlement>,
    /// The last serial number of the pending notification.
    in_flight: Option<u64>,
    /// The last serial number reported since the start.
    last_reported: u64,
    next: u64,
    pause: Duration,
    /// No notification before this time.
    not_before: Moment,
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

    fn touch(&mut self, name: &Arc<str>) -> Option<&mut Balance> {
        let account = self.accounts.get_mut(name)?;
        if !account.touched {
            account.touched = true;
            self.touched.push(name.clone());
        }
        Some(&mut account.balance)
    }

    /// Whether a charge can be reserved now.
    pub(crate) fn can_reserve(&self, charge: &Charge) -> bool {
        self.balance_after(charge).is_some()
    }

    /// The account's balance after the reservation; `None` if it is not possible.
    fn balance_after(&self, charge: &Charge) -> Option<i64> {
        let balance = &self.accounts.get(&charge.account)?.balance;
        let left = balance.balance.checked_sub_unsigned(charge.amount)?;
        let covered = charge.amount <= Charge::MAX && i128::from(left) >= -i128::from(balance.credit);
        covered.then_some(left)
    }

    /// Reserves an amount. Returns false and changes nothing if the account is unknown or cannot pay.
    fn reserve(&mut self, charge: &Charge) -> bool {
        let Some(left) = self.balance_after(charge) else { return false };
        if let Some(balance) = self.touch(&charge.account) {
            balance.balance = left;
            // The sum of reserved and captured amounts is the difference of two i64: it fits.
            balance.reserved += charge.amount;
        }
        true
    }

    /// Ends a reservation: captures or releases it.
    fn release(&mut self, charge: &Charge, capture: bool) {
        let Some(balance) = self.touch(&charge.account) else { return };
        balance.reserved = balance.reserved.saturating_sub(charge.amount);
        if capture {
            balance.captured += charge.amount;
        } else {
            balance.balance = balance.balance.saturating_add_unsigned(charge.amount);
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
    fn operate(&mut self, operation: LedgerOperation, now: Now) -> Result<OperationRecord, LedgerAnswer> {
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
        if let Some(account) = self.touch(&operation.account) {
            *account = balance;
        }
        self.idempotency_keys.insert(key, content);
        let serial = self.next_operation;
        self.next_operation += 1;
        Ok(OperationRecord { serial, operation, at: now.wall, balance })
    }

    /// Takes the changed accounts, for the batch.
    pub(crate) fn take_touched(&mut self) -> Vec<(Arc<str>, Balance)> {
        let names = std::mem::take(&mut self.touched);
        names
            .into_iter()
            .filter_map(|name| {
                let account = self.accounts.get_mut(&name)?;
                account.touched = false;
                let balance = account.balance;
                Some((name, balance))
            })
            .collect()
    }

    pub(crate) fn recover_balance(&mut self, name: Arc<str>, balance: Balance) {
        self.accounts.insert(name, Account { balance, touched: false });
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

/// Whether the end of a message captures its reservation; otherwise it is released.
fn is_captured(state: FinalState, handed_over: bool, keep_on_failure: bool) -> bool {
    match state {
        FinalState::Delivered | FinalState::Relayed | FinalState::Unknown => true,
        FinalState::Failed | FinalState::Expired => keep_on_failure && handed_over,
        FinalState::Cancelled | FinalState::Rejected => false,
    }
}

impl Engine {
    /// Reserves the price of a message, if it has one.
    pub(crate) fn reserve(&mut self, routed: &RoutingDecision) -> Result<(), Refusal> {
        let charge = routed.quote.as_ref().and_then(|quote| quote.charge.as_ref());
        match charge {
            Some(charge) if !self.ledger.reserve(charge) => {
                self.totals.unpaid += 1;
                Err(Refusal::Rejected(RejectReason::NoCredit))
            }
            _ => Ok(()),
        }
    }

    /// Releases the reservation of a message that is refused after all.
    pub(crate) fn release_reservation(&mut self, routed: &RoutingDecision) {
        if let Some(charge) = routed.quote.as_ref().and_then(|quote| quote.charge.as_ref()) {
            self.ledger.release(charge, false);
        }
    }

    /// Captures or releases the reservation of a message that ends; its content must be cached.
    pub(crate) fn close_reservation(&mut self, slot: Slot, ended: &mut FinalRecord, out: &mut Output) {
        let entry = &mut self.slab[slot];
        if !entry.has(flag::PRICED) {
            return;
        }
        let message = entry.message.clone();
        let quote = message.as_ref().and_then(|message| message.routed.quote.as_ref());
        let Some(charge) = quote.and_then(|quote| quote.charge.as_ref()) else { return };
        entry.set(flag::PRICED, false);
        let captured = is_captured(ended.state, entry.attempts > 0, charge.keep_on_failure);
        let id = entry.id;
        self.ledger.release(charge, captured);
        let amount = charge.amount;
        let kind = if captured { StepKind::Charged { amount } } else { StepKind::Refunded { amount } };
        ended.steps.push(Step { at: ended.at, kind });
        if charge.settle {
            let serial = self.ledger.biller_queue.next;
            self.ledger.biller_queue.next += 1;
            let account = charge.account.clone();
            let settlement = Settlement { serial, message: id, account, amount, captured, at: ended.at };
            self.ledger.biller_queue.waiting.push_back(settlement.clone());
            out.batch.settlements.push(settlement);
        }
    }

    pub(crate) fn ledger_operation(
        &mut self,
        now: Now,
        operation: LedgerOperation,
        reply: ReplyTo,
        out: &mut Output,
    ) {
        let answer = match self.ledger.operate(operation, now) {
            Ok(record) => {
                let balance = record.balance;
                out.batch.operations.push(record);
                LedgerAnswer::Done { balance }
            }
            Err(answer) => answer,
        };
        out.commands.push(EngineCommand::Answer { to: reply, answer: EngineAnswer::Ledger(answer) });
    }

    /// Notifies the biller of settlements, if one is bound and idle.
    pub(crate) fn notify_biller(&mut self, now: Now, out: &mut Output) {
        let biller_queue = &mut self.ledger.biller_queue;
        let idle = biller_queue.in_flight.is_none() && biller_queue.not_before <= now.mono;
        if !self.settings.biller || !idle || biller_queue.waiting.is_empty() {
            return;
        }
        let settlements: Vec<_> = biller_queue.waiting.iter().take(NOTIFY_BATCH).cloned().collect();
        biller_queue.in_flight = settlements.last().map(|last| last.serial);
        biller_queue.last_reported = biller_queue.last_reported.max(biller_queue.in_flight.unwrap_or(0));
        out.commands.push(EngineCommand::NotifyBiller { settlements });
    }

    /// Applies the result of a notification. A notification to a previous biller may still be answered.
    pub(crate) fn biller_notified(&mut self, now: Now, upto: u64, ok: bool, out: &mut Output) {
        let biller_queue = &mut self.ledger.biller_queue;
        if biller_queue.in_flight == Some(upto) {
            biller_queue.in_flight = None;
        } else if !ok {
            return;
        }
        if !ok {
            biller_queue.not_before = now.mono + biller_queue.pause;
            biller_queue.pause = (biller_queue.pause * 2).min(MAX_PAUSE);
            self.timers.set(biller_queue.not_before, Timer::NotifyBiller);
            return;
        }
        biller_queue.pause = FIRST_PAUSE;
        let upto = upto.min(biller_queue.last_reported);
        if biller_queue.waiting.front().is_none_or(|first| first.serial > upto) {
            return;
        }
        while biller_queue.waiting.front().is_some_and(|first| first.serial <= upto) {
            biller_queue.waiting.pop_front();
        }
        out.batch.settled = out.batch.settled.max(Some(upto));
    }

    /// Another biller, or none, was bound: unanswered notifications are repeated.
    pub(crate) fn biller_changed(&mut self) {
        let biller_queue = &mut self.ledger.biller_queue;
        biller_queue.in_flight = None;
        biller_queue.not_before = Moment(0);
        biller_queue.pause = FIRST_PAUSE;
    }

    /// All ledger accounts, in no order.
    pub fn balances(&self) -> impl Iterator<Item = (&Arc<str>, Balance)> {
        self.ledger.accounts.iter().map(|(name, account)| (name, account.balance))
    }

    /// One ledger account.
    #[must_use]
    pub fn balance(&self, account: &str) -> Option<Balance> {
        self.ledger.accounts.get(account).map(|account| account.balance)
    }

    /// The number of settlements that the biller has not accepted yet.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.ledger.biller_queue.waiting.len()
    }
}

//! Money: what is reserved when a message is accepted, and captured or given back when it ends, in the message's own
//! transaction.

use crate::engine::Engine;
use crate::slab::{Slot, flag};
use crate::timer::Timer;
use crate::{Answer, Command, LedgerAnswer, OperationRecord, Output, ReplyTo};
use model::{
    Balance, Charge, Final, FinalState, LedgerChange, LedgerOperation, Moment, Now, Refusal, RejectReason,
    Routed, Settlement, Step, StepKind,
};
use rustc_hash::FxHashMap;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// How many ends of charges a biller is told of at a time.
const SETTLE_RUN: usize = 500;

/// The longest key or account name, in octets.
const LONGEST_NAME: usize = 64;

/// How long after a refusal the biller is told again; doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// All ledger accounts, the keys of what was done to them, and the ends that a biller is to be told of.
///
/// `balance + reserved + captured = funded` holds for every account at every moment, and `balance >= -credit`.
#[derive(Debug, Default)]
pub(crate) struct Money {
    accounts: HashMap<Arc<str>, Account>,
    /// Accounts that were touched since the last batch.
    touched: Vec<Arc<str>>,
    /// Keyed digest of an operation's key → digest of its content. Digests, since operations are kept for ever.
    keys: FxHashMap<u128, u64>,
    seed: u64,
    next_operation: u64,
    told: Told,
}

#[derive(Debug, Default)]
struct Account {
    balance: Balance,
    touched: bool,
}

/// What the biller has not been told of, oldest first.
#[derive(Debug)]
struct Told {
    waiting: VecDeque<Settlement>,
    /// The last serial number of the batch that the biller has.
    in_flight: Option<u64>,
    /// The last serial number that it was ever given since the start.
    given: u64,
    next: u64,
    pause: Duration,
    /// It is told nothing before.
    not_before: Moment,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            in_flight: None,
            given: 0,
            next: 1,
            pause: FIRST_PAUSE,
            not_before: Moment(0),
        }
    }
}

impl Money {
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

    /// Whether a charge could be reserved now.
    pub(crate) fn can_reserve(&self, charge: &Charge) -> bool {
        self.left_after(charge).is_some()
    }

    /// What the account's balance would be with the charge reserved; `None` if it may not be.
    fn left_after(&self, charge: &Charge) -> Option<i64> {
        let balance = &self.accounts.get(&charge.account)?.balance;
        let left = balance.balance.checked_sub_unsigned(charge.amount)?;
        let covered = charge.amount <= Charge::MOST && i128::from(left) >= -i128::from(balance.credit);
        covered.then_some(left)
    }

    /// Sets an amount aside; false where the account is unknown or cannot pay it, and then nothing has changed.
    fn reserve(&mut self, charge: &Charge) -> bool {
        let Some(left) = self.left_after(charge) else { return false };
        if let Some(balance) = self.touch(&charge.account) {
            balance.balance = left;
            // What is reserved and captured is the difference of two i64: it fits.
            balance.reserved += charge.amount;
        }
        true
    }

    /// Ends a reservation.
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

    /// Does a balance operation, unless it was done before; gives back what is to be written.
    fn operate(&mut self, operation: LedgerOperation, now: Now) -> Result<OperationRecord, LedgerAnswer> {
        let named = |name: &str| (1..=LONGEST_NAME).contains(&name.len());
        if !named(&operation.key) || !named(&operation.account) {
            return Err(LedgerAnswer::BadName);
        }
        let known = self.accounts.get(&operation.account).map(|account| account.balance);
        let (key, content) = self.digests(&operation);
        if let Some(before) = self.keys.get(&key) {
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
        self.keys.insert(key, content);
        let serial = self.next_operation;
        self.next_operation += 1;
        Ok(OperationRecord { serial, operation, at: now.wall, balance })
    }

    /// Takes what is to be written of the accounts that were touched.
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
        self.keys.insert(key, content);
        self.next_operation = self.next_operation.max(record.serial + 1);
    }

    pub(crate) fn recover_settled(&mut self, upto: u64) {
        self.told.next = self.told.next.max(upto + 1);
    }

    pub(crate) fn recover_settlement(&mut self, settlement: Settlement) {
        self.told.next = self.told.next.max(settlement.serial + 1);
        self.told.waiting.push_back(settlement);
    }
}

/// Whether the end of a message captures what was reserved for it, or gives it back.
fn captures(state: FinalState, handed_over: bool, keep_on_failure: bool) -> bool {
    match state {
        FinalState::Delivered | FinalState::Relayed | FinalState::Unknown => true,
        FinalState::Failed | FinalState::Expired => keep_on_failure && handed_over,
        FinalState::Cancelled | FinalState::Rejected => false,
    }
}

impl Engine {
    /// Reserves what a message is to cost, if it costs anything.
    pub(crate) fn reserve(&mut self, routed: &Routed) -> Result<(), Refusal> {
        let charge = routed.quote.as_ref().and_then(|quote| quote.charge.as_ref());
        match charge {
            Some(charge) if !self.money.reserve(charge) => {
                self.totals.unpaid += 1;
                Err(Refusal::Rejected(RejectReason::NoCredit))
            }
            _ => Ok(()),
        }
    }

    /// Undoes [`Engine::reserve`] of a message that is refused after all.
    pub(crate) fn unreserve(&mut self, routed: &Routed) {
        if let Some(charge) = routed.quote.as_ref().and_then(|quote| quote.charge.as_ref()) {
            self.money.release(charge, false);
        }
    }

    /// Captures or gives back what is reserved for a message that ends; its content must be in memory.
    pub(crate) fn settle_charge(&mut self, slot: Slot, ended: &mut Final, out: &mut Output) {
        let entry = &mut self.slab[slot];
        if !entry.has(flag::PRICED) {
            return;
        }
        let message = entry.message.clone();
        let quote = message.as_ref().and_then(|message| message.routed.quote.as_ref());
        let Some(charge) = quote.and_then(|quote| quote.charge.as_ref()) else { return };
        entry.set(flag::PRICED, false);
        let captured = captures(ended.state, entry.attempts > 0, charge.keep_on_failure);
        let id = entry.id;
        self.money.release(charge, captured);
        let amount = charge.amount;
        let kind = if captured { StepKind::Charged { amount } } else { StepKind::Refunded { amount } };
        ended.steps.push(Step { at: ended.at, kind });
        if charge.settle {
            let serial = self.money.told.next;
            self.money.told.next += 1;
            let account = charge.account.clone();
            let settlement = Settlement { serial, message: id, account, amount, captured, at: ended.at };
            self.money.told.waiting.push_back(settlement.clone());
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
        let answer = match self.money.operate(operation, now) {
            Ok(record) => {
                let balance = record.balance;
                out.batch.operations.push(record);
                LedgerAnswer::Done { balance }
            }
            Err(answer) => answer,
        };
        out.commands.push(Command::Answer { to: reply, answer: Answer::Ledger(answer) });
    }

    /// Tells the biller how charges ended, if there is one, it is not busy and there is something to tell.
    pub(crate) fn tell_biller(&mut self, now: Now, out: &mut Output) {
        let told = &mut self.money.told;
        let idle = told.in_flight.is_none() && told.not_before <= now.mono;
        if !self.settings.biller || !idle || told.waiting.is_empty() {
            return;
        }
        let settlements: Vec<_> = told.waiting.iter().take(SETTLE_RUN).cloned().collect();
        told.in_flight = settlements.last().map(|last| last.serial);
        told.given = told.given.max(told.in_flight.unwrap_or(0));
        out.commands.push(Command::Settle { settlements });
    }

    /// The biller has taken a batch, or could not. A batch of before an exchange of billers may still be answered.
    pub(crate) fn settled(&mut self, now: Now, upto: u64, ok: bool, out: &mut Output) {
        let told = &mut self.money.told;
        if told.in_flight == Some(upto) {
            told.in_flight = None;
        } else if !ok {
            return;
        }
        if !ok {
            told.not_before = now.mono + told.pause;
            told.pause = (told.pause * 2).min(LONGEST_PAUSE);
            self.timers.set(told.not_before, Timer::Settle);
            return;
        }
        told.pause = FIRST_PAUSE;
        let upto = upto.min(told.given);
        if told.waiting.front().is_none_or(|first| first.serial > upto) {
            return;
        }
        while told.waiting.front().is_some_and(|first| first.serial <= upto) {
            told.waiting.pop_front();
        }
        out.batch.settled = out.batch.settled.max(Some(upto));
    }

    /// Another biller, or none: what the last one has not answered is told again.
    pub(crate) fn biller_changed(&mut self) {
        let told = &mut self.money.told;
        told.in_flight = None;
        told.not_before = Moment(0);
        told.pause = FIRST_PAUSE;
    }

    /// All ledger accounts, in no order.
    pub fn balances(&self) -> impl Iterator<Item = (&Arc<str>, Balance)> {
        self.money.accounts.iter().map(|(name, account)| (name, account.balance))
    }

    /// One ledger account.
    #[must_use]
    pub fn balance(&self, account: &str) -> Option<Balance> {
        self.money.accounts.get(account).map(|account| account.balance)
    }

    /// Ends of charges that the biller has not yet taken.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.money.told.waiting.len()
    }
}

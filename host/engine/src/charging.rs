//! Charges of messages: reserved at acceptance, captured or released at the end, and reported to the biller.

use crate::engine::Engine;
use crate::ledger::FIRST_PAUSE;
use crate::slab::{Slot, flag};
use crate::timer::Timer;
use crate::{EngineAnswer, EngineCommand, LedgerAnswer, Output, ReplyTo};
use model::{
    Balance, Charge, FinalRecord, FinalState, LedgerOperation, Moment, Now, PeerId, RejectReason,
    RoutingDecision, Settlement, Step, StepKind,
};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of settlements per notification of the biller.
const NOTIFY_BATCH: usize = 500;

/// The longest delay before a failed notification is repeated; the delay doubles up to it.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Whether the end of a message captures its reservation; otherwise it is released.
fn is_captured(state: FinalState, handed_over: bool, keep_on_failure: bool) -> bool {
    match state {
        FinalState::Delivered | FinalState::Relayed | FinalState::Unknown => true,
        FinalState::Failed | FinalState::Expired => keep_on_failure && handed_over,
        FinalState::Cancelled | FinalState::Rejected => false,
    }
}

impl Engine {
    /// Adds the tenants above the submitter that are charged too. A price above the configured maximum is refused.
    pub(crate) fn charge_tenants(&self, submitter: PeerId, charge: &mut Charge) -> Result<(), RejectReason> {
        let Some(peer) = self.peers.get(submitter.0 as usize) else { return Ok(()) };
        let branch = &peer.settings.branch;
        if branch.max_price.is_some_and(|most| charge.amount > most) {
            return Err(RejectReason::PriceTooHigh);
        }
        // The biller may have named the account of a tenant: it pays once.
        charge.tenants = branch.charged.iter().filter(|tenant| **tenant != charge.account).cloned().collect();
        Ok(())
    }

    /// Reserves the price of a message, if it has one: in the account that the biller names and in the accounts of the
    /// tenants above the submitter, in all of them or in none.
    pub(crate) fn reserve(
        &mut self,
        submitter: PeerId,
        routed: &mut RoutingDecision,
    ) -> Result<(), RejectReason> {
        let Some(charge) = routed.quote.as_mut().and_then(|quote| quote.charge.as_mut()) else {
            return Ok(());
        };
        self.charge_tenants(submitter, charge)?;
        if self.ledger.reserve(charge) {
            return Ok(());
        }
        self.totals.unpaid += 1;
        Err(RejectReason::NoCredit)
    }

    /// Releases the reservation of a message that is refused after it was reserved.
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

//! The biller: prices, and the end of charges.

use super::{Hooks, describe_fault};
use crate::batch::BatchQuestion;
use crate::chain::ChainOutcome;
use crate::fault_examples::{FailedQuestion, LazyMessageId, NewFault};
use crate::host_call_log::HostCallLog;
use crate::worlds::{Biller, PriceQuestion};
use api::OnFault;
use model::{Hook, Leg, Message, RejectReason, RoutingDecision, Settlement, Timestamp, Verdict};

impl Hooks {
    /// Prices a message with a forward verdict. Sets the quote of `routed`, or replaces its verdict if the biller
    /// refuses the message or fails.
    pub fn price(&self, message: &Message, routed: &mut RoutingDecision, now: Timestamp) {
        let Verdict::Forward(legs) = &routed.verdict else { return };
        if !self.biller.is_bound() {
            return;
        }
        let message_id = LazyMessageId::resume(routed.fault_message_id.take());
        let question = PriceQuestion { message, leg: priced_leg(legs), changes: routed.changes.as_deref() };
        let outcome = self.biller.ask(question, now, &mut HostCallLog::Off, &message_id);
        routed.fault_message_id = message_id.into_shared();
        self.apply_quote(outcome, routed, now);
    }

    /// Prices messages that are routed together, in order: the prices are those of [`Hooks::price`], at less cost. Each
    /// message's own decision is changed.
    pub fn price_many(&self, messages: &mut [&mut Message], now: Timestamp) {
        if !self.biller.is_bound() {
            return;
        }
        let mut priced: Vec<&mut &mut Message> =
            messages.iter_mut().filter(|one| matches!(one.routed.verdict, Verdict::Forward(_))).collect();
        let ids: Vec<LazyMessageId> = priced
            .iter_mut()
            .map(|message| LazyMessageId::resume(message.routed.fault_message_id.take()))
            .collect();
        let mut asked: Vec<BatchQuestion<'_, Biller>> = priced
            .iter()
            .zip(&ids)
            .map(|(message, message_id)| {
                let leg = match &message.routed.verdict {
                    Verdict::Forward(legs) => priced_leg(legs),
                    _ => None,
                };
                let question = PriceQuestion { message, leg, changes: message.routed.changes.as_deref() };
                BatchQuestion { question, message_id, call_log: HostCallLog::Off }
            })
            .collect();
        let outcomes = self.biller.ask_many(&mut asked, now);
        drop(asked);
        for ((message, outcome), message_id) in priced.into_iter().zip(outcomes).zip(ids) {
            message.routed.fault_message_id = message_id.into_shared();
            self.apply_quote(outcome, &mut message.routed, now);
        }
    }

    fn apply_quote(&self, outcome: ChainOutcome<Biller>, routed: &mut RoutingDecision, now: Timestamp) {
        match outcome {
            ChainOutcome::Decided(price, generation) => match price.quote {
                Ok(quote) => routed.quote = Some(Box::new(quote)),
                Err(note) => {
                    routed.verdict = Verdict::Reject(RejectReason::NoCredit);
                    routed.by = generation.by.clone();
                    routed.note = note;
                }
            },
            ChainOutcome::Fault(fault, generation) => {
                routed.verdict = match &generation.binding.on_fault {
                    OnFault::Reject => Verdict::Reject(RejectReason::Fault),
                    OnFault::Pass => return,
                    OnFault::Hold | OnFault::Peer(_) => Verdict::Hold(now + self.options.hold_for),
                };
                routed.by = generation.by.clone();
                routed.note = Some(describe_fault(&fault));
            }
            // `on-fault = "pass"`: after a fault the message is free.
            ChainOutcome::Undecided { .. } => {}
        }
    }

    /// Reports settlements to the biller. May block.
    ///
    /// # Errors
    /// The reason why the biller failed or refused; the caller reports the settlements again later.
    pub fn settle(&self, settlements: &[Settlement], now: Timestamp) -> Result<(), String> {
        let chain = self.biller.chain();
        let Some(biller) = chain.generations.first() else { return Err("no biller is bound".to_owned()) };
        match biller.settle(settlements, now) {
            Ok(result) => result,
            Err(fault) => {
                let question = FailedQuestion::Settle(settlements.to_vec());
                let new = NewFault {
                    details: biller.fault_details(fault.clone(), now, question, Vec::new()),
                    description: format!("how charges ended: {}", settlements.len()),
                    shared_id: LazyMessageId::default()
                        .shared(settlements.first().map(|first| first.message)),
                };
                self.deps.reporter.examples.add(Hook::Biller, new);
                crate::chain::report_fault(biller, &fault, &self.deps.reporter);
                Err(describe_fault(&fault).into())
            }
        }
    }

    /// Explains the price of a message with a forward verdict, without effects.
    pub fn explain_price(&self, message: &Message, routed: &mut RoutingDecision, now: Timestamp) {
        let Verdict::Forward(legs) = &routed.verdict else { return };
        let question = PriceQuestion { message, leg: priced_leg(legs), changes: routed.changes.as_deref() };
        let outcome = self.biller.chain().explain(question, now, |_, _| ());
        self.apply_quote(outcome, routed, now);
    }
}

/// The leg that determines the price: the first ranked leg that needs no resolver.
fn priced_leg(legs: &[Leg]) -> Option<&Leg> {
    legs.iter().filter(|leg| !leg.resolve).min_by_key(|leg| leg.rank)
}

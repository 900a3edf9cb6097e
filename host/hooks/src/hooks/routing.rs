//! Calls before a message is accepted: screens, lookups and routers.

use super::{Hooks, LookupStep, RoutingStep, ScreeningStep, describe_fault};
use crate::Fault;
use crate::batch::BatchQuestion;
use crate::chain::ChainOutcome;
use crate::fault_examples::LazyMessageId;
use crate::host_call_log::HostCallLog;
use crate::worlds::{Decision, Lookup as LookupWorld, NumberAnswer, Router, Screen, ScreenDecision};
use api::OnFault;
use model::{
    Leg, Lookup, LookupNumber, LookupResult, Message, MessageChanges, PluginVersion, RejectReason,
    RoutingDecision, ScreenVerdict, Screening, Timestamp, Verdict,
};
use std::sync::Arc;
use std::time::Duration;

impl Hooks {
    /// Screens a message, and sets its text if a screen replaced it. `Ok(None)` if no screen is bound. The error is a
    /// decision that replaces the routing, because a screen failed and its binding requires it.
    ///
    /// # Errors
    /// See above. If the decision holds the message, it is screened when it is routed again.
    pub fn screen(
        &self,
        message: &mut Message,
        now: Timestamp,
    ) -> Result<Option<Box<Screening>>, Box<RoutingDecision>> {
        if !self.screen.is_bound() {
            return Ok(None);
        }
        let message_id = LazyMessageId::resume(message.routed.fault_message_id.take());
        let mut call_log = self.new_call_log();
        let outcome = self.screen.ask(message, now, &mut call_log, &message_id);
        message.routed.fault_message_id = message_id.into_shared();
        self.conclude_screening(outcome, message, call_log, now)
    }

    /// Screens messages that wait together, in order: the results are those of [`Hooks::screen`], at less cost.
    #[must_use]
    pub fn screen_many(
        &self,
        messages: &mut [&mut Message],
        now: Timestamp,
    ) -> Vec<Result<Option<Box<Screening>>, Box<RoutingDecision>>> {
        if !self.screen.is_bound() {
            return messages.iter().map(|_| Ok(None)).collect();
        }
        let resume =
            |message: &mut &mut Message| LazyMessageId::resume(message.routed.fault_message_id.take());
        let ids: Vec<LazyMessageId> = messages.iter_mut().map(resume).collect();
        let mut asked: Vec<BatchQuestion<'_, Screen>> = messages
            .iter()
            .zip(&ids)
            .map(|(message, message_id)| BatchQuestion {
                question: &**message,
                message_id,
                call_log: self.new_call_log(),
            })
            .collect();
        let outcomes = self.screen.ask_many(&mut asked, now);
        let logs: Vec<HostCallLog> = asked.into_iter().map(|one| one.call_log).collect();
        let each = outcomes.into_iter().zip(logs).zip(ids).zip(messages);
        let screenings = each.map(|(((outcome, call_log), message_id), message)| {
            message.routed.fault_message_id = message_id.into_shared();
            self.conclude_screening(outcome, message, call_log, now)
        });
        screenings.collect()
    }

    fn conclude_screening(
        &self,
        outcome: ChainOutcome<Screen>,
        message: &mut Message,
        call_log: HostCallLog,
        now: Timestamp,
    ) -> Result<Option<Box<Screening>>, Box<RoutingDecision>> {
        let (decision, by) = match outcome {
            ChainOutcome::Decided(decision, generation) => (decision, generation.by.clone()),
            ChainOutcome::Undecided { last, fault, answer } => {
                let Some(last) = last else { return Ok(None) };
                let note = fault.map(|fault| describe_fault(&fault));
                let passed = ScreenDecision { verdict: ScreenVerdict::Pass, changes: None, text: None, note };
                (answer.unwrap_or(passed), last.by.clone())
            }
            ChainOutcome::Fault(fault, generation) => {
                let verdict = match &generation.binding.on_fault {
                    OnFault::Reject => Verdict::Reject(RejectReason::Fault),
                    OnFault::Hold | OnFault::Pass | OnFault::Peer(_) => {
                        Verdict::Hold(now + self.options.hold_for)
                    }
                };
                let by = generation.by.clone();
                return Err(Box::new(RoutingDecision::new(verdict, by).with_note(describe_fault(&fault))));
            }
        };
        let ScreenDecision { verdict, changes, text, note } = decision;
        Ok(Some(Box::new(Screening {
            verdict,
            by,
            note,
            changes,
            submitted_text: text.map(|text| std::mem::replace(&mut message.text, text)),
            host_calls: call_log.into_record(),
        })))
    }

    /// Explains the screening of a message, without effects: the result of each screen, up to the one that decides, and
    /// the resulting decision. See [`Hooks::screen`].
    ///
    /// # Errors
    /// As for [`Hooks::screen`].
    #[expect(clippy::type_complexity, reason = "the steps, and the answer of `screen`")]
    pub fn explain_screening(
        &self,
        message: &mut Message,
        now: Timestamp,
    ) -> (Vec<ScreeningStep>, Result<Option<Box<Screening>>, Box<RoutingDecision>>) {
        let mut steps = Vec::new();
        let outcome = self.screen.chain().explain(message, now, |by, outcome| {
            steps.push(ScreeningStep { by: by.clone(), outcome: outcome.clone() });
        });
        (steps, self.conclude_screening(outcome, message, HostCallLog::Preview, now))
    }

    /// Looks up a number. Returns the result and its lifetime. May block. A fault of a plugin whose binding does not pass
    /// the question on is a failed lookup. `None` if no lookup is bound.
    #[must_use]
    pub fn look_up(&self, number: &LookupNumber, now: Timestamp) -> Option<(Lookup, Duration)> {
        let mut call_log = self.new_call_log();
        let outcome = self.lookup.ask(number, now, &mut call_log, &LazyMessageId::default());
        let (lookup, lifetime) = conclude_lookup(outcome)?;
        Some((Lookup { host_calls: call_log.into_record(), ..lookup }, lifetime))
    }

    /// Explains the lookup of a number, without effects: the result of each lookup, up to the one that knows the number, and
    /// the combined result.
    #[must_use]
    pub fn explain_lookup(&self, number: &LookupNumber, now: Timestamp) -> (Vec<LookupStep>, Option<Lookup>) {
        let mut steps = Vec::new();
        let outcome = self.lookup.chain().explain(number, now, |by, outcome| {
            steps.push(LookupStep { by: by.clone(), outcome: outcome.clone() });
        });
        (steps, conclude_lookup(outcome).map(|(lookup, _)| lookup))
    }

    /// Routes a message. This never fails: on a fault, the binding's `on-fault` decides.
    #[must_use]
    pub fn route(&self, message: &Message, now: Timestamp) -> RoutingDecision {
        let message_id = LazyMessageId::resume(message.routed.fault_message_id.clone());
        let mut routed = self.ask_routers(message, now, &message_id);
        routed.fault_message_id = message_id.into_shared();
        routed
    }

    fn ask_routers(&self, message: &Message, now: Timestamp, message_id: &LazyMessageId) -> RoutingDecision {
        let mut call_log = self.new_call_log();
        let outcome = self.router.ask(message, now, &mut call_log, message_id);
        self.conclude(outcome, message, call_log, now)
    }

    /// Routes messages that wait together, in order: the decisions are those of [`Hooks::route`], at less cost.
    #[must_use]
    pub fn route_many(&self, messages: &[&Message], now: Timestamp) -> Vec<RoutingDecision> {
        let resume = |message: &&Message| LazyMessageId::resume(message.routed.fault_message_id.clone());
        let ids: Vec<LazyMessageId> = messages.iter().map(resume).collect();
        let mut asked: Vec<BatchQuestion<'_, Router>> = messages
            .iter()
            .zip(&ids)
            .map(|(question, message_id)| BatchQuestion {
                question: *question,
                message_id,
                call_log: self.new_call_log(),
            })
            .collect();
        let outcomes = self.router.ask_many(&mut asked, now);
        let logs: Vec<HostCallLog> = asked.into_iter().map(|one| one.call_log).collect();
        let each = outcomes.into_iter().zip(logs).zip(ids).zip(messages);
        let decisions = each.map(|(((outcome, call_log), message_id), message)| {
            let mut routed = self.conclude(outcome, message, call_log, now);
            routed.fault_message_id = message_id.into_shared();
            routed
        });
        decisions.collect()
    }

    /// Converts the outcome of the router chain into a routing decision.
    fn conclude(
        &self,
        outcome: ChainOutcome<Router>,
        message: &Message,
        call_log: HostCallLog,
        now: Timestamp,
    ) -> RoutingDecision {
        match outcome {
            ChainOutcome::Decided(Decision { verdict, sender, changes, note }, generation) => {
                let verdict = verdict.unwrap_or(Verdict::Reject(RejectReason::NoRoute));
                let changes = match verdict {
                    Verdict::Forward(_) => with_screened(changes, message),
                    _ => None,
                };
                let by = generation.by.clone();
                RoutingDecision {
                    note,
                    sender,
                    changes,
                    host_calls: call_log.into_record(),
                    ..RoutingDecision::new(verdict, by)
                }
            }
            ChainOutcome::Fault(fault, generation) => {
                let verdict = match &generation.binding.on_fault {
                    OnFault::Hold | OnFault::Pass => Verdict::Hold(now + self.options.hold_for),
                    OnFault::Reject => Verdict::Reject(RejectReason::Fault),
                    OnFault::Peer(peer) => match self.deps.environment.directory.load().id(peer) {
                        Some(peer) => Verdict::Forward(vec![Leg::to(peer)]),
                        None => Verdict::Hold(now + self.options.hold_for),
                    },
                };
                RoutingDecision::new(verdict, generation.by.clone()).with_note(describe_fault(&fault))
            }
            ChainOutcome::Undecided { last, fault, .. } => {
                let note = match (&last, &fault) {
                    (None, _) => "no router is bound".into(),
                    (_, None) => "no router decided".into(),
                    (_, Some(fault)) => {
                        format!("no router decided; {}", describe_fault(fault)).into_boxed_str()
                    }
                };
                let by = last.map_or_else(|| self.no_plugin.clone(), |last| last.by.clone());
                let routed = RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), by).with_note(note);
                RoutingDecision { host_calls: call_log.into_record(), ..routed }
            }
        }
    }

    /// Explains the routing of a message: the result of each router of the live chain, up to the one that decides, and
    /// the final decision. Counts, records and samples nothing.
    #[must_use]
    pub fn explain(&self, message: &Message, now: Timestamp) -> (Vec<RoutingStep>, RoutingDecision) {
        let mut steps = Vec::new();
        let outcome = self.router.chain().explain(message, now, |by, outcome| {
            steps.push(RoutingStep { by: by.clone(), outcome: outcome.clone() });
        });
        (steps, self.conclude(outcome, message, HostCallLog::Preview, now))
    }
}

/// The changes of the screens, extended by the changes of the routers, which take precedence.
pub(crate) fn with_screened(
    changes: Option<Box<MessageChanges>>,
    message: &Message,
) -> Option<Box<MessageChanges>> {
    let screened = message.routed.screening.as_ref().and_then(|screening| screening.changes.clone());
    match (screened, changes) {
        (Some(mut screened), Some(changes)) => {
            screened.extend(*changes);
            Some(screened)
        }
        (screened, changes) => screened.or(changes),
    }
}

/// The result of a chain of lookups, and its lifetime. `None` for an empty chain.
fn conclude_lookup(outcome: ChainOutcome<LookupWorld>) -> Option<(Lookup, Duration)> {
    let failed = |fault: Option<&Fault>, by: Arc<PluginVersion>| Lookup {
        result: LookupResult::Failed,
        attributes: Vec::new(),
        by,
        note: fault.map(describe_fault),
        cached: false,
        host_calls: None,
    };
    let (answer, by) = match outcome {
        ChainOutcome::Decided(answer, generation) => (answer, generation.by.clone()),
        ChainOutcome::Fault(fault, generation) => {
            return Some((failed(Some(&fault), generation.by.clone()), Duration::ZERO));
        }
        ChainOutcome::Undecided { last, fault, answer } => {
            let by = last?.by.clone();
            match (answer, fault) {
                // A plugin that failed might have known the number.
                (_, Some(fault)) => return Some((failed(Some(&fault), by), Duration::ZERO)),
                (Some(answer), None) => (answer, by),
                (None, None) => return Some((failed(None, by), Duration::ZERO)),
            }
        }
    };
    let NumberAnswer { result, attributes, lifetime, note } = answer;
    Some((Lookup { result, attributes, by, note, cached: false, host_calls: None }, lifetime))
}

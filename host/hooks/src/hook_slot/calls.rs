//! Questions to the live chain and to the candidate on trial.

use super::HookSlot;
use crate::batch::BatchQuestion;
use crate::binding::TrialMode;
use crate::chain::{Chain, ChainOutcome};
use crate::fault_examples::LazyMessageId;
use crate::generation::Generation;
use crate::host_call_log::HostCallLog;
use crate::shadow::comparable_answer;
use crate::worlds::World;
use model::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl<W: World> HookSlot<W> {
    /// Asks the canary for its share of the traffic, and the live chain otherwise or if the canary fails. A shadow
    /// candidate gets a copy of the question.
    pub(crate) fn ask(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        call_log: &mut HostCallLog,
        message_id: &LazyMessageId,
    ) -> ChainOutcome<W> {
        let live = self.live.load();
        let reporter = &self.deps.reporter;
        let Some(candidate) = &live.candidate else {
            return live.chain.ask(question, now, call_log, reporter, message_id);
        };
        if let TrialMode::Canary { share } = candidate.record.mode {
            let is_fit = candidate.chain.serves(question)
                && !candidate.chain.applicable(question).any(|generation| generation.watch.tripped());
            if is_fit && W::canary_bucket(question) < share {
                candidate.asked.fetch_add(1, Relaxed);
                // A canary's `on-fault` does not apply during the trial. A fault in a plugin that it shares with the
                // live chain is handled as in the live chain.
                let own = |one: &Arc<Generation<W>>| !live.chain.contains(one);
                match candidate.chain.ask_with_strict(question, now, call_log, (reporter, message_id), own) {
                    ChainOutcome::Fault(fault, faulty) if own(&faulty) => {
                        candidate.failed.fetch_add(1, Relaxed);
                        if !W::may_repeat_question(&fault) {
                            return ChainOutcome::Fault(fault, faulty);
                        }
                    }
                    outcome => return outcome,
                }
                *call_log = call_log.restarted();
            } else {
                candidate.bypassed.fetch_add(1, Relaxed);
            }
        }
        let outcome = live.chain.ask(question, now, call_log, reporter, message_id);
        if let Some(shadow) = &candidate.shadow {
            shadow.ask(question, now, call_log, message_id, comparable_answer(&outcome));
        }
        outcome
    }

    /// Asks one generation, which answered an earlier question of the same call. A shadow candidate gets a copy of the question.
    pub(crate) fn ask_generation(
        &self,
        generation: &Arc<Generation<W>>,
        question: W::Question<'_>,
        now: Timestamp,
    ) -> ChainOutcome<W> {
        let (call_log, message_id) = (&mut HostCallLog::Off, &LazyMessageId::default());
        let chain = Chain::new(vec![generation.clone()]);
        let outcome = chain.ask(question, now, call_log, &self.deps.reporter, message_id);
        let live = self.live.load();
        if let Some(shadow) = live.candidate.as_ref().and_then(|candidate| candidate.shadow.as_ref()) {
            shadow.ask(question, now, call_log, message_id, comparable_answer(&outcome));
        }
        outcome
    }

    /// Like [`HookSlot::ask`] for each question, in order.
    pub(crate) fn ask_many(
        &self,
        asked: &mut [BatchQuestion<'_, W>],
        now: Timestamp,
    ) -> Vec<ChainOutcome<W>> {
        let live = self.live.load();
        let candidate = live.candidate.as_deref();
        if candidate.is_some_and(|candidate| candidate.shadow.is_none()) {
            // A canary may share counters with the live chain, so the order between the two shows.
            let each = |one: &mut BatchQuestion<'_, W>| {
                self.ask(one.question, now, &mut one.call_log, one.message_id)
            };
            return asked.iter_mut().map(each).collect();
        }
        let outcomes = live.chain.ask_many(asked, now, &self.deps.reporter);
        if let Some(shadow) = candidate.and_then(|candidate| candidate.shadow.as_ref()) {
            for (one, outcome) in asked.iter().zip(&outcomes) {
                shadow.ask(one.question, now, &one.call_log, one.message_id, comparable_answer(outcome));
            }
        }
        outcomes
    }
}

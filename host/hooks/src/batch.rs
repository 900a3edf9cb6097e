//! Batches: evaluates many questions at a time with the plugins of a chain. The outcomes are the same as one by one.
//!
//! A plugin that takes batches gets all questions with one call, and then one call for each question, without copied
//! arguments. So each question has its own deadline, imports and log of host calls, and a fault ends only one question: the
//! others continue with another instance.

use crate::Fault;
use crate::chain::{Chain, ChainOutcome, Evaluation};
use crate::chain_positions::BatchPositions;
use crate::fault_examples::LazyMessageId;
use crate::fault_reporter::FaultReporter;
use crate::generation::Generation;
use crate::host_call_log::HostCallLog;
use crate::worlds::World;
use model::Timestamp;
use std::time::Instant;

/// Maximum number of questions that an instance gets at a time. It limits their memory in the instance.
pub(crate) const MAX_BATCH: usize = 64;
/// Minimum number of questions in a batch. Below it, the call that loads the batch costs more than it saves (`cargo xtask
/// bench hooks --only calls`).
pub(crate) const MIN_BATCH: usize = 4;

/// A question of a batch, and its log of host calls.
pub(crate) struct BatchQuestion<'q, W: World> {
    pub(crate) question: W::Question<'q>,
    pub(crate) message_id: &'q LazyMessageId,
    pub(crate) call_log: HostCallLog,
}

/// A question during the evaluation of a chain.
struct OpenQuestion<'a, 'q, W: World> {
    asked: &'a mut BatchQuestion<'q, W>,
    evaluation: Evaluation<'q, 'q, W>,
    outcome: Option<ChainOutcome<W>>,
}

impl<W: World> Chain<W> {
    /// Like [`Chain::ask`] for each question, in order.
    pub(crate) fn ask_many(
        &self,
        asked: &mut [BatchQuestion<'_, W>],
        now: Timestamp,
        reporter: &FaultReporter,
    ) -> Vec<ChainOutcome<W>> {
        if asked.len() < MIN_BATCH || !self.positions.accepts_batches() {
            let each = |one: &mut BatchQuestion<'_, W>| {
                self.ask(one.question, now, &mut one.call_log, reporter, one.message_id)
            };
            return asked.iter_mut().map(each).collect();
        }
        let mut all: Vec<OpenQuestion<'_, '_, W>> =
            asked.iter_mut().map(|asked| OpenQuestion::new(asked, now)).collect();
        let questions: Vec<W::Question<'_>> = all.iter().map(|one| one.evaluation.question).collect();
        let positions = BatchPositions::of(self, &questions);
        for (position, generation) in positions.generations(self) {
            let is_open = |(n, one): &(usize, &mut OpenQuestion<'_, '_, W>)| {
                one.outcome.is_none() && positions.is_asked(*n, position)
            };
            let mut open: Vec<&mut OpenQuestion<'_, '_, W>> =
                all.iter_mut().enumerate().filter(is_open).map(|(_, one)| one).collect();
            if open.is_empty() {
                continue;
            }
            generation.ask_many(&mut open, now, reporter, |one, answer| {
                let OpenQuestion { asked, evaluation, outcome } = one;
                *outcome = evaluation.next(generation, answer, &asked.call_log, reporter, false);
            });
        }
        let outcomes = all.into_iter().map(|one| match one.outcome {
            Some(outcome) => outcome,
            None => self.undecided(one.evaluation),
        });
        outcomes.collect()
    }
}

impl<'a, 'q, W: World> OpenQuestion<'a, 'q, W> {
    fn new(asked: &'a mut BatchQuestion<'q, W>, now: Timestamp) -> Self {
        let evaluation = Evaluation {
            question: asked.question,
            now,
            message_id: asked.message_id,
            earlier: None,
            fault: None,
            call: None,
        };
        Self { asked, evaluation, outcome: None }
    }
}

impl<W: World> Generation<W> {
    /// Asks all questions, in order, and calls `each` with each answer.
    fn ask_many<'a, 'q>(
        &self,
        mut open: &mut [&mut OpenQuestion<'a, 'q, W>],
        now: Timestamp,
        reporter: &FaultReporter,
        mut each: impl FnMut(&mut OpenQuestion<'a, 'q, W>, Result<W::Answer, Fault>),
    ) {
        while self.accepts_batches && open.len() >= MIN_BATCH {
            let end = open.len().min(MAX_BATCH);
            match self.ask_batch(&mut open[..end], now, reporter, &mut each) {
                // Without an instance, or without a batch in it, each question has its own fault.
                0 => break,
                answered => open = &mut open[answered..],
            }
        }
        for one in open {
            let OpenQuestion { asked, evaluation, .. } = &mut **one;
            evaluation.call = reporter.begin_call();
            let answer = self.ask(asked.question, evaluation.earlier.as_ref(), now, &mut asked.call_log);
            each(one, answer);
        }
    }

    /// Asks the questions on one instance, until a question makes it unusable. Returns the number of asked questions.
    fn ask_batch<'a, 'q>(
        &self,
        open: &mut [&mut OpenQuestion<'a, 'q, W>],
        now: Timestamp,
        reporter: &FaultReporter,
        each: &mut impl FnMut(&mut OpenQuestion<'a, 'q, W>, Result<W::Answer, Fault>),
    ) -> usize {
        let mut begun = Instant::now();
        let Ok(mut instance) = self.take_instance() else { return 0 };
        let questions: Vec<(W::Question<'_>, Option<&W::Answer>)> =
            open.iter().map(|one| (one.asked.question, one.evaluation.earlier.as_ref())).collect();
        // Loading is not a decision: it counts nothing.
        let loaded = self.work_on(&mut instance, now, &mut HostCallLog::Discard, |instance| {
            W::load(self, instance, &questions).map(Ok)
        });
        drop(questions);
        if loaded.is_err() {
            return 0;
        }
        for (index, one) in (0_u32..).zip(open.iter_mut()) {
            let OpenQuestion { asked: BatchQuestion { question, call_log, .. }, evaluation, .. } = &mut **one;
            evaluation.call = reporter.begin_call();
            let answer = self.work_on(&mut instance, now, call_log, |instance| {
                W::prepare(instance.store.data_mut(), *question, evaluation.earlier.as_ref());
                W::ask_loaded(self, instance, index, *question)
            });
            let ended = Instant::now();
            let (answer, lost) = match answer {
                Ok(answer) => (answer, false),
                Err(fault) => (Err(fault), true),
            };
            self.count_call(ended - begun, answer.as_ref().err());
            begun = ended;
            each(one, answer);
            if lost {
                return index as usize + 1;
            }
        }
        self.put_back(instance);
        open.len()
    }
}

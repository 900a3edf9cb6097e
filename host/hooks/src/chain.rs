//! Chains: generations that are called one after the other.

use crate::Fault;
use crate::call_observer::CallStart;
use crate::chain_positions::ChainPositions;
use crate::fault_examples::{LazyMessageId, NewFault};
use crate::fault_reporter::FaultReporter;
use crate::generation::Generation;
use crate::host_answer::HostAnswer;
use crate::host_call_log::HostCallLog;
use crate::worlds::World;
use api::{OnFault, UnknownReference};
use model::{PluginVersion, Timestamp};
use std::sync::Arc;
use std::time::Instant;

/// The plugins of a hook, in the order of evaluation.
pub(crate) struct Chain<W: World> {
    pub(crate) generations: Vec<Arc<Generation<W>>>,
    pub(crate) positions: Arc<ChainPositions>,
}

impl<W: World> Clone for Chain<W> {
    fn clone(&self) -> Self {
        Self { generations: self.generations.clone(), positions: self.positions.clone() }
    }
}

/// The outcome of the evaluation of a chain.
pub(crate) enum ChainOutcome<W: World> {
    /// A plugin decided.
    Decided(W::Answer, Arc<Generation<W>>),
    /// A plugin failed, and its binding does not pass the question to the next one.
    Fault(Fault, Arc<Generation<W>>),
    /// No plugin decided.
    Undecided {
        /// The last plugin that the question concerns.
        last: Option<Arc<Generation<W>>>,
        /// The last fault of a plugin that passed the question on.
        fault: Option<Fault>,
        /// The combined answer of the plugins.
        answer: Option<W::Answer>,
    },
}

/// The evaluation of a chain for one question.
pub(crate) struct Evaluation<'q, 'i, W: World> {
    pub(crate) question: W::Question<'q>,
    pub(crate) now: Timestamp,
    pub(crate) message_id: &'i LazyMessageId,
    /// The answer of the plugins so far, which did not decide.
    pub(crate) earlier: Option<W::Answer>,
    /// The last fault of a plugin that passed the question on.
    pub(crate) fault: Option<Fault>,
    /// The start of the call of the next plugin, if calls are observed.
    pub(crate) call: Option<CallStart>,
}

impl<W: World> Evaluation<'_, '_, W> {
    /// Continues with the answer of the next plugin. Returns the outcome if it ends the evaluation. A fault of a `strict`
    /// plugin ends it.
    pub(crate) fn next(
        &mut self,
        generation: &Arc<Generation<W>>,
        answer: Result<W::Answer, Fault>,
        call_log: &HostCallLog,
        reporter: &FaultReporter,
        strict: bool,
    ) -> Option<ChainOutcome<W>> {
        if let (Some(call), Some(observer)) = (self.call.take(), &reporter.calls) {
            let call = call.end(W::HOOK, &generation.by, answer.as_ref().err());
            observer.observe(self.message_id.shared(W::message_id(self.question)), call);
        }
        match answer {
            Ok(answer) => {
                let decides = W::decides(&answer);
                let answer = W::after(self.earlier.take(), answer);
                if decides {
                    return Some(ChainOutcome::Decided(answer, generation.clone()));
                }
                self.earlier = Some(answer);
            }
            Err(fault) => {
                let new = NewFault {
                    details: generation.fault_details(
                        fault.clone(),
                        self.now,
                        W::failed_question(self.question),
                        HostAnswer::all(call_log),
                    ),
                    description: W::describe_question(
                        self.question,
                        &generation.environment.directory.load(),
                    ),
                    shared_id: self.message_id.shared(W::message_id(self.question)),
                };
                reporter.examples.add(W::HOOK, new);
                report_fault(generation, &fault, reporter);
                if generation.binding.on_fault != OnFault::Pass || strict {
                    return Some(ChainOutcome::Fault(fault, generation.clone()));
                }
                self.fault = Some(fault);
            }
        }
        None
    }
}

impl<W: World> Chain<W> {
    pub(crate) fn new(generations: Vec<Arc<Generation<W>>>) -> Self {
        let positions = Arc::new(ChainPositions::of(&generations));
        Self { generations, positions }
    }

    /// The plugins that a question concerns, in order.
    pub(crate) fn applicable<'c>(
        &'c self,
        question: W::Question<'_>,
    ) -> impl DoubleEndedIterator<Item = &'c Arc<Generation<W>>> {
        let (all, some) = match self.positions.applicable(W::account(question)) {
            None => (&self.generations[..], Vec::new()),
            Some(positions) => (&[][..], positions),
        };
        let some = some.into_iter().filter_map(|position| self.generations.get(position));
        all.iter().chain(some).filter(move |one| W::serves(&one.binding, question))
    }

    /// References of its policies to names that do not exist at present.
    pub(crate) fn unknown(&self) -> Vec<UnknownReference> {
        let of = |one: &Arc<Generation<W>>| {
            let plugin = one.by.plugin.clone();
            one.unknown().into_iter().map(move |one| UnknownReference {
                plugin: plugin.clone(),
                kind: one.kind,
                name: one.name,
            })
        };
        self.generations.iter().flat_map(of).collect()
    }

    /// Asks each plugin until one decides. A fault ends the evaluation unless the binding says `pass`.
    pub(crate) fn ask(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        call_log: &mut HostCallLog,
        reporter: &FaultReporter,
        message_id: &LazyMessageId,
    ) -> ChainOutcome<W> {
        self.ask_with_strict(question, now, call_log, (reporter, message_id), |_| false)
    }

    /// Like [`Chain::ask`], but a fault of a `strict` plugin always ends the evaluation.
    pub(crate) fn ask_with_strict(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        call_log: &mut HostCallLog,
        (reporter, message_id): (&FaultReporter, &LazyMessageId),
        strict: impl Fn(&Arc<Generation<W>>) -> bool,
    ) -> ChainOutcome<W> {
        let mut evaluation = Evaluation { question, now, message_id, earlier: None, fault: None, call: None };
        for generation in self.applicable(question) {
            evaluation.call = reporter.begin_call();
            let answer = generation.ask(question, evaluation.earlier.as_ref(), now, call_log);
            if let Some(outcome) = evaluation.next(generation, answer, call_log, reporter, strict(generation))
            {
                return outcome;
            }
        }
        self.undecided(evaluation)
    }

    pub(crate) fn undecided(
        &self,
        Evaluation { question, earlier, fault, .. }: Evaluation<'_, '_, W>,
    ) -> ChainOutcome<W> {
        ChainOutcome::Undecided {
            last: self.applicable(question).next_back().cloned(),
            fault,
            answer: earlier,
        }
    }

    /// Asks each plugin until one decides, without effects: counts nothing and reports no faults. Calls `each` with
    /// every result.
    pub(crate) fn explain(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        mut each: impl FnMut(&Arc<PluginVersion>, &Result<W::Answer, Fault>),
    ) -> ChainOutcome<W> {
        let (mut earlier, mut last_fault) = (None, None);
        for generation in self.applicable(question) {
            let outcome = generation.ask(question, earlier.as_ref(), now, &mut HostCallLog::Preview);
            each(&generation.by, &outcome);
            match outcome {
                Ok(answer) => {
                    let decides = W::decides(&answer);
                    let answer = W::after(earlier.take(), answer);
                    if decides {
                        return ChainOutcome::Decided(answer, generation.clone());
                    }
                    earlier = Some(answer);
                }
                Err(fault) if generation.binding.on_fault == OnFault::Pass => last_fault = Some(fault),
                Err(fault) => return ChainOutcome::Fault(fault, generation.clone()),
            }
        }
        let last = self.applicable(question).next_back().cloned();
        ChainOutcome::Undecided { last, fault: last_fault, answer: earlier }
    }

    /// Prepares as many warm instances as another chain had.
    pub(crate) fn warm_like(&self, other: &Self) {
        let most = other.generations.iter().map(|one| one.peak_concurrency()).max().unwrap_or_default();
        self.generations.iter().for_each(|one| one.warm(most));
    }

    /// Whether a binding of the chain is asked the question.
    pub(crate) fn serves(&self, question: W::Question<'_>) -> bool {
        self.applicable(question).next().is_some()
    }

    /// The generation that is asked the question first.
    pub(crate) fn serving(&self, question: W::Question<'_>) -> Option<&Arc<Generation<W>>> {
        self.applicable(question).next()
    }

    /// Whether a generation is part of the chain.
    pub(crate) fn contains(&self, generation: &Arc<Generation<W>>) -> bool {
        let is_member = || self.generations.iter().any(|one| Arc::ptr_eq(one, generation));
        self.positions.contains(generation).unwrap_or_else(is_member)
    }
}

/// Logs a fault, and requests a rollback if the plugin fails too often.
pub(crate) fn report_fault<W: World>(generation: &Generation<W>, fault: &Fault, reporter: &FaultReporter) {
    let binding = &generation.binding;
    if let Some(why) = generation.watch.fault(binding.tolerance, fault, Instant::now()) {
        tracing::error!(
            hook = W::HOOK.name(),
            plugin = binding.plugin,
            version = binding.version,
            why,
            "too many faults"
        );
        generation.set_fault_reason(why);
        reporter.request_rollback(W::HOOK);
    } else if generation.may_log() {
        tracing::warn!(
            hook = W::HOOK.name(),
            plugin = binding.plugin,
            version = binding.version,
            kind = fault.kind.name(),
            what = fault.what,
            report = fault.report.as_deref().unwrap_or_default(),
            "plugin fault"
        );
    }
}

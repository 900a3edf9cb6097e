//! Tallies of one batch of messages.

use crate::candidate::{Candidate, CandidateDecision, CandidateVerdict, RepeatedCall};
use crate::price_tally::PriceTally;
use crate::{compare, verdict_text};
use api::{DifferenceExample, RequestDifference};
use archive::ArchivedMessage;
use model::Verdict;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The counts of a batch, and its differences in the order of the messages.
#[derive(Debug, Default)]
pub(crate) struct BatchTally {
    pub(crate) messages: u64,
    pub(crate) same: u64,
    pub(crate) exact: u64,
    pub(crate) new_rejects: u64,
    pub(crate) new_faults: u64,
    pub(crate) unrouted: u64,
    pub(crate) damaged: u64,
    /// The reasons of inexact decisions, in the order of first occurrence.
    pub(crate) inexact: Vec<(Cow<'static, str>, u64)>,
    /// In the order of first occurrence.
    pub(crate) groups: Vec<GroupTally>,
    pub(crate) prices: Option<Box<PriceTally>>,
}

/// Messages with the same archived verdict and the same candidate verdict, which differ.
#[derive(Debug)]
pub(crate) struct GroupTally {
    /// Both verdicts, as written by [`verdict_text::write`].
    pub(crate) verdict_text: Box<str>,
    pub(crate) count: u64,
    pub(crate) exact: u64,
    /// The messages with the lowest ids.
    pub(crate) examples: Vec<DifferenceExample>,
}

/// Compares batches on one thread.
pub(crate) struct Comparer {
    candidate: Arc<dyn Candidate>,
    /// Maximum number of examples of a group.
    examples: usize,
    /// Text of the current difference, and the index of each group in the tally.
    verdict_text: String,
    index: FxHashMap<Box<str>, usize>,
}

impl Comparer {
    pub(crate) fn new(candidate: Arc<dyn Candidate>, examples: usize) -> Self {
        Self { candidate, examples, verdict_text: String::new(), index: FxHashMap::default() }
    }

    /// Compares all messages of a batch; `None` if `cancelled` is set before the end.
    pub(crate) fn compare_batch(
        &mut self,
        messages: &mut [ArchivedMessage],
        cancelled: &dyn Fn() -> bool,
    ) -> Option<BatchTally> {
        let mut tally = BatchTally::default();
        self.index.clear();
        for message in messages {
            if cancelled() {
                return None;
            }
            let candidate = &*self.candidate;
            // Unwind safe: see below.
            if let Some(calls) = catch_unwind(AssertUnwindSafe(|| candidate.repeat_calls(message)))
                .unwrap_or_else(|_| Some(vec![RepeatedCall::panicked()]))
            {
                tally.unrouted += u64::from(calls.is_empty());
                for call in calls {
                    self.count_call(&mut tally, message, call);
                }
                continue;
            }
            candidate.select_decision(message);
            if !message.routed {
                tally.unrouted += 1;
                continue;
            }
            // Unwind safe: a candidate that panicked only affects its own state; ours is not shared with it.
            let decision = catch_unwind(AssertUnwindSafe(|| candidate.decide(message)))
                .unwrap_or_else(|_| CandidateDecision::new(CandidateVerdict::Fault(Cow::Borrowed("panic"))));
            self.count(&mut tally, message, decision);
        }
        Some(tally)
    }

    fn count_call(&mut self, tally: &mut BatchTally, message: &ArchivedMessage, call: RepeatedCall) {
        tally.messages += 1;
        let exact = count_exact(tally, call.inexact_because);
        let has_fault = call.candidate.is_err();
        let candidate = call.candidate.unwrap_or_else(|kind| format!("fault {kind}"));
        if call.recorded == candidate && call.request.is_empty() && !has_fault {
            tally.same += 1;
            return;
        }
        tally.new_faults += u64::from(has_fault);
        self.verdict_text.clear();
        self.verdict_text.push_str(&call.recorded);
        self.verdict_text.push(verdict_text::SEPARATOR);
        self.verdict_text.push_str(&candidate);
        let request = call.request;
        self.add_example(tally, message, call.note, request, exact);
    }

    fn count(&mut self, tally: &mut BatchTally, message: &ArchivedMessage, decision: CandidateDecision) {
        tally.messages += 1;
        let missing = message.missing.map(|missing| Cow::Borrowed(missing.name()));
        let exact = count_exact(tally, missing.or_else(|| decision.inexact_because.clone()));
        if let Some(price) = &decision.price {
            tally.prices.get_or_insert_default().count(message, price);
        }
        if compare::is_same(message, &decision) {
            tally.same += 1;
        } else {
            self.count_difference(tally, message, decision, exact);
        }
    }

    fn count_difference(
        &mut self,
        tally: &mut BatchTally,
        message: &ArchivedMessage,
        decision: CandidateDecision,
        exact: bool,
    ) {
        match decision.verdict {
            CandidateVerdict::Decided(Verdict::Reject(_))
                if !matches!(message.verdict, Verdict::Reject(_)) =>
            {
                tally.new_rejects += 1;
            }
            CandidateVerdict::Fault(_) => tally.new_faults += 1,
            _ => {}
        }
        verdict_text::write(&mut self.verdict_text, message, &decision);
        self.add_example(tally, message, decision.note, Vec::new(), exact);
    }

    /// Counts a message for the group of the current text.
    fn add_example(
        &mut self,
        tally: &mut BatchTally,
        message: &ArchivedMessage,
        note: Option<Box<str>>,
        request: Vec<RequestDifference>,
        exact: bool,
    ) {
        let at = match self.index.get(self.verdict_text.as_str()) {
            Some(at) => *at,
            None => {
                let verdict_text: Box<str> = self.verdict_text.as_str().into();
                self.index.insert(verdict_text.clone(), tally.groups.len());
                tally.groups.push(GroupTally { verdict_text, count: 0, exact: 0, examples: Vec::new() });
                tally.groups.len() - 1
            }
        };
        let Some(group) = tally.groups.get_mut(at) else { return };
        group.count += 1;
        group.exact += u64::from(exact);
        if group.examples.len() < self.examples {
            group.examples.push(DifferenceExample {
                id: message.id,
                accepted_at: message.accepted_at,
                origin: message.origin.to_string(),
                source: message.source.text().into_owned(),
                destination: message.destination.text().into_owned(),
                note: note.map(String::from),
                exact,
                request,
            });
        }
    }
}

/// Counts a decision as exact, or by the reason why it is not.
fn count_exact(tally: &mut BatchTally, inexact_because: Option<Cow<'static, str>>) -> bool {
    let Some(reason) = inexact_because else {
        tally.exact += 1;
        return true;
    };
    match tally.inexact.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, count)) => *count += 1,
        None => tally.inexact.push((reason, 1)),
    }
    false
}

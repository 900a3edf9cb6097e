//! What the messages of one batch come to.

use crate::candidate::{Candidate, Judged, Judgement};
use crate::prices::PriceTally;
use crate::report::Example;
use crate::{compare, words};
use archive::{ArchivedMessage, ArchivedVerdict};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Counts of a batch, and its differences in the order of the messages.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) messages: u64,
    pub(crate) same: u64,
    pub(crate) exact: u64,
    pub(crate) new_rejects: u64,
    pub(crate) new_faults: u64,
    pub(crate) unrouted: u64,
    pub(crate) damaged: u64,
    /// Why messages were not exact; in the order in which reasons were met.
    pub(crate) inexact: Vec<(Cow<'static, str>, u64)>,
    /// In the order in which they were met.
    pub(crate) groups: Vec<GroupTally>,
    pub(crate) prices: Option<Box<PriceTally>>,
}

/// Messages that were decided in one way and would be in another.
#[derive(Debug)]
pub(crate) struct GroupTally {
    /// From and to, as [`words::write`] has them.
    pub(crate) words: Box<str>,
    pub(crate) count: u64,
    pub(crate) exact: u64,
    /// Those with the lowest ids.
    pub(crate) examples: Vec<Example>,
}

/// Judges batches on one thread.
pub(crate) struct Judge {
    candidate: Arc<dyn Candidate>,
    /// Examples of a group, at most.
    examples: usize,
    /// Words of the difference at hand; and where its group is in the tally.
    words: String,
    index: FxHashMap<Box<str>, usize>,
}

impl Judge {
    pub(crate) fn new(candidate: Arc<dyn Candidate>, examples: usize) -> Self {
        Self { candidate, examples, words: String::new(), index: FxHashMap::default() }
    }

    /// All messages of a batch; `None` when `cancelled` says so among them.
    pub(crate) fn batch(
        &mut self,
        messages: &[ArchivedMessage],
        cancelled: &dyn Fn() -> bool,
    ) -> Option<Tally> {
        let mut tally = Tally::default();
        self.index.clear();
        for message in messages {
            if cancelled() {
                return None;
            }
            if !message.routed {
                tally.unrouted += 1;
                continue;
            }
            let candidate = &*self.candidate;
            // What a candidate leaves behind is its own business; nothing of ours is in its hands.
            let judged = catch_unwind(AssertUnwindSafe(|| candidate.judge(message)))
                .unwrap_or_else(|_| Judged::new(Judgement::Fault(Cow::Borrowed("panic"))));
            self.count(&mut tally, message, judged);
        }
        Some(tally)
    }

    fn count(&mut self, tally: &mut Tally, message: &ArchivedMessage, judged: Judged) {
        tally.messages += 1;
        let lacking = message.lacking.map(|lacking| Cow::Borrowed(lacking.name()));
        let exact = match lacking.or_else(|| judged.inexact_because.clone()) {
            None => {
                tally.exact += 1;
                true
            }
            Some(reason) => {
                match tally.inexact.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, count)) => *count += 1,
                    None => tally.inexact.push((reason, 1)),
                }
                false
            }
        };
        if let Some(price) = &judged.price {
            tally.prices.get_or_insert_default().count(message, price);
        }
        if compare::same(message, &judged) {
            tally.same += 1;
        } else {
            self.differs(tally, message, judged, exact);
        }
    }

    fn differs(&mut self, tally: &mut Tally, message: &ArchivedMessage, judged: Judged, exact: bool) {
        match judged.verdict {
            Judgement::Reject(_) if !matches!(message.verdict, ArchivedVerdict::Reject(_)) => {
                tally.new_rejects += 1;
            }
            Judgement::Fault(_) => tally.new_faults += 1,
            _ => {}
        }
        words::write(&mut self.words, message, &judged);
        let at = match self.index.get(self.words.as_str()) {
            Some(at) => *at,
            None => {
                let words: Box<str> = self.words.as_str().into();
                self.index.insert(words.clone(), tally.groups.len());
                tally.groups.push(GroupTally { words, count: 0, exact: 0, examples: Vec::new() });
                tally.groups.len() - 1
            }
        };
        let Some(group) = tally.groups.get_mut(at) else { return };
        group.count += 1;
        group.exact += u64::from(exact);
        if group.examples.len() < self.examples {
            group.examples.push(Example {
                id: message.id,
                accepted_at: message.accepted_at,
                origin: message.origin.to_string(),
                source: message.source.masked(),
                destination: message.destination.masked(),
                note: judged.note.map(String::from),
                exact,
            });
        }
    }
}

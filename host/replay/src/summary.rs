//! Tallies of batches, put together in the order of the batches.

use crate::pace::{Pace, Times};
use crate::report::{Ended, Group, Inexact, Other, Report};
use crate::tally::{GroupTally, Tally};
use crate::words::BETWEEN;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::time::Duration;

/// Reasons for inexactness that are told apart, at most.
const REASONS: usize = 100;

/// What all batches so far come to. Which groups are told apart is a matter of who comes first; so batches must come in
/// their order.
#[derive(Debug)]
pub(crate) struct Summary {
    /// Groups that are told apart, at most.
    most: usize,
    /// Examples of a group, at most.
    examples: usize,
    counts: Tally,
    index: FxHashMap<Box<str>, usize>,
    other: Other,
}

impl Summary {
    pub(crate) fn new(most: usize, examples: usize) -> Self {
        Self {
            most,
            examples,
            counts: Tally::default(),
            index: FxHashMap::default(),
            other: Other::default(),
        }
    }

    /// Takes in a batch that comes after all that it has.
    pub(crate) fn add(&mut self, batch: Tally) {
        let counts = &mut self.counts;
        counts.messages += batch.messages;
        counts.same += batch.same;
        counts.exact += batch.exact;
        counts.new_rejects += batch.new_rejects;
        counts.new_faults += batch.new_faults;
        counts.unrouted += batch.unrouted;
        counts.damaged += batch.damaged;
        for (reason, count) in batch.inexact {
            let known = counts.inexact.len();
            match counts.inexact.iter_mut().find(|(one, _)| *one == reason) {
                Some((_, sum)) => *sum += count,
                None if known < REASONS => counts.inexact.push((reason, count)),
                None => match counts.inexact.iter_mut().find(|(one, _)| *one == OTHER) {
                    Some((_, sum)) => *sum += count,
                    None => counts.inexact.push((Cow::Borrowed(OTHER), count)),
                },
            }
        }
        if let Some(prices) = &batch.prices {
            counts.prices.get_or_insert_default().add(prices);
        }
        for group in batch.groups {
            self.group(group);
        }
    }

    fn group(&mut self, group: GroupTally) {
        let groups = &mut self.counts.groups;
        if let Some(known) = self.index.get(&group.words).and_then(|at| groups.get_mut(*at)) {
            known.count += group.count;
            known.exact += group.exact;
            let room = self.examples.saturating_sub(known.examples.len());
            known.examples.extend(group.examples.into_iter().take(room));
        } else if groups.len() < self.most {
            self.index.insert(group.words.clone(), groups.len());
            groups.push(group);
        } else {
            self.other.count += group.count;
            self.other.exact += group.exact;
        }
    }

    /// The report, with so many accounts.
    pub(crate) fn report(
        self,
        ended: Ended,
        accounts: usize,
        threads: usize,
        whole: Duration,
        times: Times,
    ) -> Report {
        let counts = self.counts;
        let mut groups: Vec<Group> = counts.groups.into_iter().map(shown).collect();
        groups.sort_by(|one, other| {
            let key = |group: &Group| Reverse(group.count);
            key(one)
                .cmp(&key(other))
                .then_with(|| one.from.cmp(&other.from))
                .then_with(|| one.to.cmp(&other.to))
        });
        let mut inexact: Vec<Inexact> = counts
            .inexact
            .into_iter()
            .map(|(because, count)| Inexact { because: because.into_owned(), count })
            .collect();
        inexact
            .sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.because.cmp(&other.because)));
        Report {
            ended,
            messages: counts.messages,
            exact: counts.exact,
            inexact,
            same: counts.same,
            different: counts.messages - counts.same,
            new_rejects: counts.new_rejects,
            new_faults: counts.new_faults,
            unrouted: counts.unrouted,
            damaged: counts.damaged,
            groups,
            other: self.other,
            price: counts.prices.map(|prices| prices.report(accounts)),
            pace: Pace::of(threads, whole, counts.messages, times),
        }
    }
}

/// All reasons beyond those that are told apart.
const OTHER: &str = "other reasons";

fn shown(group: GroupTally) -> Group {
    let (from, to) = group.words.split_once(BETWEEN).unwrap_or((&group.words, ""));
    Group {
        from: from.to_owned(),
        to: to.to_owned(),
        count: group.count,
        exact: group.exact,
        examples: group.examples,
    }
}

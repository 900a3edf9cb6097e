//! Merges the tallies of batches, in batch order.

use crate::batch_tally::{BatchTally, GroupTally};
use crate::throughput::{WorkTimes, throughput};
use crate::verdict_text::SEPARATOR;
use api::{DifferenceGroup, InexactReason, RemainingGroups, ReplayOutcome, ReplayReport};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::time::Duration;

/// Maximum number of separate reasons for inexact decisions.
const MAX_REASONS: usize = 100;

/// The tally of all batches so far. The first groups to occur are kept, so batches must be added in order.
#[derive(Debug)]
pub(crate) struct Summary {
    /// Maximum number of groups.
    most: usize,
    /// Maximum number of examples of a group.
    examples: usize,
    counts: BatchTally,
    index: FxHashMap<Box<str>, usize>,
    other: RemainingGroups,
}

impl Summary {
    pub(crate) fn new(most: usize, examples: usize) -> Self {
        Self {
            most,
            examples,
            counts: BatchTally::default(),
            index: FxHashMap::default(),
            other: RemainingGroups::default(),
        }
    }

    /// Adds the next batch.
    pub(crate) fn add(&mut self, batch: BatchTally) {
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
                None if known < MAX_REASONS => counts.inexact.push((reason, count)),
                None => match counts.inexact.iter_mut().find(|(one, _)| *one == OTHER_REASONS) {
                    Some((_, sum)) => *sum += count,
                    None => counts.inexact.push((Cow::Borrowed(OTHER_REASONS), count)),
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
        if let Some(known) = self.index.get(&group.verdict_text).and_then(|at| groups.get_mut(*at)) {
            known.count += group.count;
            known.exact += group.exact;
            let room = self.examples.saturating_sub(known.examples.len());
            known.examples.extend(group.examples.into_iter().take(room));
        } else if groups.len() < self.most {
            self.index.insert(group.verdict_text.clone(), groups.len());
            groups.push(group);
        } else {
            self.other.count += group.count;
            self.other.exact += group.exact;
        }
    }

    /// The report, with at most this number of accounts.
    pub(crate) fn report(
        self,
        ended: ReplayOutcome,
        accounts: usize,
        threads: usize,
        elapsed: Duration,
        times: WorkTimes,
    ) -> ReplayReport {
        let counts = self.counts;
        let mut groups: Vec<DifferenceGroup> = counts.groups.into_iter().map(to_difference_group).collect();
        groups.sort_by(|one, other| {
            let key = |group: &DifferenceGroup| Reverse(group.count);
            key(one)
                .cmp(&key(other))
                .then_with(|| one.from.cmp(&other.from))
                .then_with(|| one.to.cmp(&other.to))
        });
        let mut inexact: Vec<InexactReason> = counts
            .inexact
            .into_iter()
            .map(|(because, count)| InexactReason { because: because.into_owned(), count })
            .collect();
        inexact
            .sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.because.cmp(&other.because)));
        ReplayReport {
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
            pace: throughput(threads, elapsed, counts.messages, times),
        }
    }
}

/// Label of all further reasons.
const OTHER_REASONS: &str = "other reasons";

fn to_difference_group(group: GroupTally) -> DifferenceGroup {
    let (from, to) = group.verdict_text.split_once(SEPARATOR).unwrap_or((&group.verdict_text, ""));
    DifferenceGroup {
        from: from.to_owned(),
        to: to.to_owned(),
        count: group.count,
        exact: group.exact,
        examples: group.examples,
    }
}

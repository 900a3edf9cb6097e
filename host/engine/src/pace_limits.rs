//! Pace limits: pace buckets and send windows, which accounts and peers share by name.
//!
//! A message that reaches the head of its queue while one of its limits is exhausted leaves the queue and waits in the
//! list of that limit, by priority and age. So it does not delay messages that have other limits. Once the limit has tokens,
//! or its window opens, the allowed number of messages returns to their positions in their queues. A message never overtakes
//! others in its list.

use crate::pace_limit::{Limit, LimitDefinition, RELEASE_DELAY, Rule, WaitKey, Waiting};
use crate::settings::{PaceSettings, SendWindowSettings};
use crate::slab::Slot;
use calendar::WeeklyWindow;
use model::{MessageChanges, MessageId, Moment, Now, PaceBucketUse, PaceDay, PeerId, SendWindowUse};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// Messages that return to their queues at a time.
const RELEASE_RUN: usize = 1024;
/// The longest time until a limit is checked again: the wall clock may be set meanwhile.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The time after which a limit that no message names is checked again.
const SPARE_CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// The number of a limit in the engine's list.
pub(crate) type LimitIndex = u32;

/// All limits.
#[derive(Debug, Default)]
pub(crate) struct PaceLimits {
    pub(crate) limits: Vec<Limit>,
    buckets: BTreeMap<Arc<str>, LimitIndex>,
    /// Sets of send windows, by the names of the windows.
    windows: BTreeMap<Vec<Arc<str>>, LimitIndex>,
    configured_windows: Vec<SendWindowSettings>,
    /// Limits whose list must be checked at the end of the run.
    pending_checks: Vec<LimitIndex>,
    /// Limits whose count has changed since the last batch.
    changed: Vec<LimitIndex>,
    /// Waiting messages of each peer, by limit.
    waiting_of: BTreeMap<PeerId, BTreeMap<LimitIndex, u64>>,
    /// Indices of removed limits, for reuse.
    free: Vec<LimitIndex>,
    /// The rows of removed limits, to delete.
    removed: Vec<PaceDay>,
    /// The start of the engine.
    started: Option<Moment>,
}

impl PaceLimits {
    /// Applies the configured buckets and windows. Limits that are no longer configured use the definition of a plugin, or
    /// allow everything.
    pub(crate) fn configure(&mut self, now: Now, settings: &PaceSettings) {
        let started = *self.started.get_or_insert(now.mono);
        for index in self.buckets.values() {
            let Some(limit) = self.limits.get_mut(*index as usize) else { continue };
            if limit.is_configured && settings.buckets.iter().all(|bucket| bucket.name != limit.name) {
                limit.leave_configuration(now, started);
            }
        }
        for bucket in &settings.buckets {
            let index = self.bucket(&bucket.name);
            if let Some(limit) = self.limits.get_mut(index as usize) {
                limit.configure_bucket(now, bucket);
            }
        }
        self.configured_windows.clone_from(&settings.windows);
        for (names, index) in &self.windows {
            if let Some(limit) = self.limits.get_mut(*index as usize) {
                configure_windows(limit, now, started, &self.configured_windows, names);
            }
        }
        for index in 0..self.limits.len() {
            self.mark_for_check(u32::try_from(index).unwrap_or(u32::MAX));
        }
    }

    /// Restores the count of a day. A bucket that is not configured keeps it.
    pub(crate) fn recover(&mut self, now: Now, record: &PaceDay) {
        let index = self.bucket(&record.bucket);
        if let Some(limit) = self.limits.get_mut(index as usize) {
            limit.recover(now, record);
        }
        self.mark_for_check(index);
    }

    fn add(&mut self, limit: Limit) -> LimitIndex {
        if let Some(index) = self.free.pop()
            && let Some(place) = self.limits.get_mut(index as usize)
        {
            *place = limit;
            return index;
        }
        self.limits.push(limit);
        u32::try_from(self.limits.len() - 1).unwrap_or(u32::MAX)
    }

    fn bucket(&mut self, name: &Arc<str>) -> LimitIndex {
        if let Some(index) = self.buckets.get(name) {
            return *index;
        }
        let index = self.add(Limit::new(name.clone()));
        self.buckets.insert(name.clone(), index);
        index
    }

    fn windows(&mut self, now: Now, names: &[Arc<str>]) -> LimitIndex {
        if let Some(index) = self.windows.get(names) {
            return *index;
        }
        let mut limit = Limit::new(names.join(", ").into());
        let started = self.started.unwrap_or(now.mono);
        configure_windows(&mut limit, now, started, &self.configured_windows, names);
        let index = self.add(limit);
        self.windows.insert(names.to_vec(), index);
        index
    }

    /// The limits with these names, of an account or a peer: each bucket, and all windows together.
    pub(crate) fn resolve(
        &mut self,
        now: Now,
        buckets: &[Arc<str>],
        windows: &[Arc<str>],
    ) -> Vec<LimitIndex> {
        let mut found: Vec<LimitIndex> = Vec::new();
        if !windows.is_empty() {
            found.push(self.windows(now, windows));
        }
        for name in buckets {
            let index = self.bucket(name);
            if !found.contains(&index) {
                found.push(index);
            }
        }
        for index in &found {
            if let Some(limit) = self.limits.get_mut(*index as usize) {
                limit.is_permanent = true;
            }
        }
        found
    }

    /// Whether the limits that a decision names exist, or can be created within the maximum of `most` limits.
    pub(crate) fn has_capacity_for(&self, changes: &MessageChanges, most: usize) -> bool {
        if self.limits.len() - self.free.len() < most {
            return true;
        }
        let knows_window = |window: &SendWindowUse| {
            let name: [Arc<str>; 1] = [Arc::from(&*window.name)];
            self.windows.contains_key(&name[..])
        };
        changes.pace_buckets.iter().all(|bucket| self.buckets.contains_key(&*bucket.name))
            && changes.send_windows.iter().all(knows_window)
    }

    /// The limits that a decision names: each window, and each bucket.
    pub(crate) fn resolve_decision(&mut self, now: Now, changes: &MessageChanges) -> Vec<LimitIndex> {
        let mut found = Vec::new();
        for SendWindowUse { name, defined } in &changes.send_windows {
            let index = self.windows(now, &[Arc::from(&**name)]);
            self.define(now, index, defined.clone().map(LimitDefinition::Window));
            found.push(index);
        }
        for PaceBucketUse { name, defined } in &changes.pace_buckets {
            let index = self.bucket(&Arc::from(&**name));
            self.define(now, index, defined.clone().map(LimitDefinition::Bucket));
            found.push(index);
        }
        found
    }

    fn define(&mut self, now: Now, index: LimitIndex, definition: Option<LimitDefinition>) {
        let started = *self.started.get_or_insert(now.mono);
        if let (Some(limit), Some(definition)) = (self.limits.get_mut(index as usize), definition)
            && limit.define(now, started, &definition)
        {
            self.mark_for_check(index);
        }
    }

    /// Counts a new, or a removed, set of decisions' limits.
    pub(crate) fn count_set(&mut self, of: &[LimitIndex], is_new: bool) {
        for index in of {
            if let Some(limit) = self.limits.get_mut(*index as usize) {
                limit.sets = if is_new { limit.sets + 1 } else { limit.sets.saturating_sub(1) };
            }
            if !is_new {
                self.mark_for_check(*index);
            }
        }
    }

    /// Whether one of these limits counts segments.
    pub(crate) fn any_counts_segments(&self, of: &[LimitIndex]) -> bool {
        of.iter().any(|index| self.get(*index).is_some_and(Limit::counts_segments))
    }

    /// The first of these limits that blocks a message with this key and number of segments.
    pub(crate) fn blocking(
        &mut self,
        now: Now,
        of: &[LimitIndex],
        key: WaitKey,
        segments: u64,
    ) -> Option<LimitIndex> {
        of.iter().copied().find(|index| {
            let Some(limit) = self.limits.get_mut(*index as usize) else { return false };
            let behind = limit.waiting.first_key_value().is_some_and(|(first, _)| *first < key);
            behind || limit.allowed(now, need(limit, segments)).is_err()
        })
    }

    /// Takes the tokens of a message from each of these limits.
    pub(crate) fn spend(&mut self, of: &[LimitIndex], segments: u64) {
        for index in of {
            if let Some(limit) = self.limits.get_mut(*index as usize)
                && limit.spend(need(limit, segments))
            {
                self.changed.push(*index);
            }
        }
    }

    /// Adds a waiting message with this number of segments.
    pub(crate) fn wait(
        &mut self,
        index: LimitIndex,
        key: WaitKey,
        (slot, peer): (Slot, PeerId),
        segments: u64,
    ) {
        if let Some(limit) = self.limits.get_mut(index as usize) {
            let need = need(limit, segments);
            limit.waiting.insert(key, Waiting { slot, need });
            *self.waiting_of.entry(peer).or_default().entry(index).or_default() += 1;
        }
        self.mark_for_check(index);
    }

    /// Removes a waiting message.
    pub(crate) fn stop_waiting(&mut self, index: LimitIndex, key: WaitKey, peer: PeerId) {
        let Some(limit) = self.limits.get_mut(index as usize) else { return };
        if limit.waiting.remove(&key).is_some()
            && let Some(counts) = self.waiting_of.get_mut(&peer)
            && let Some(count) = counts.get_mut(&index)
        {
            *count -= 1;
            if *count == 0 {
                counts.remove(&index);
            }
        }
        // The first of the remaining messages may need fewer tokens.
        self.mark_for_check(index);
    }

    /// Marks limits that accounts or peers no longer name: their messages must be checked again.
    pub(crate) fn check_again(&mut self, limits: impl Iterator<Item = LimitIndex>) {
        for index in limits {
            if let Some(limit) = self.limits.get_mut(index as usize) {
                limit.checked_again = Some((0, MessageId(0)));
            }
            self.mark_for_check(index);
        }
    }

    fn mark_for_check(&mut self, index: LimitIndex) {
        if let Some(limit) = self.limits.get_mut(index as usize)
            && !limit.check_pending
        {
            limit.check_pending = true;
            self.pending_checks.push(index);
        }
    }

    /// The timer of a limit fired: the messages that return to their queues now.
    pub(crate) fn due(&mut self, now: Now, index: LimitIndex) -> Vec<Slot> {
        self.mark_for_check(index);
        let Some(limit) = self.limits.get_mut(index as usize) else { return Vec::new() };
        limit.wake = None;
        if let Some(after) = limit.checked_again {
            let behind = limit.waiting.range((Bound::Excluded(after), Bound::Unbounded));
            let run: Vec<(WaitKey, Slot)> =
                behind.take(RELEASE_RUN).map(|(key, waiting)| (*key, waiting.slot)).collect();
            limit.checked_again = run.last().map(|(key, _)| *key);
            return run.into_iter().map(|(_, slot)| slot).collect();
        }
        // Without a waiting message the limit keeps its day: see `is_spare`.
        let Some(first) = limit.waiting.values().next() else { return Vec::new() };
        let mut left = limit.allowed(now, first.need).unwrap_or(0);
        let fits = |waiting: &&Waiting| {
            let fits = waiting.need <= left;
            left = left.saturating_sub(waiting.need);
            fits
        };
        limit.waiting.values().take(RELEASE_RUN).take_while(fits).map(|waiting| waiting.slot).collect()
    }

    /// The next checks of the limits whose lists have changed.
    pub(crate) fn take_checks(&mut self, now: Now) -> Vec<(Moment, LimitIndex)> {
        let mut checks = Vec::new();
        for index in std::mem::take(&mut self.pending_checks) {
            let Some(limit) = self.limits.get_mut(index as usize) else { continue };
            limit.check_pending = false;
            let at = match limit.waiting.values().next() {
                Some(first) => {
                    limit.next_at = limit.allowed(now, first.need).err().unwrap_or(now.mono);
                    if limit.next_at <= now.mono || limit.checked_again.is_some() {
                        now.mono + RELEASE_DELAY
                    } else {
                        limit.next_at.min(now.mono + MAX_CHECK_INTERVAL)
                    }
                }
                None => {
                    limit.checked_again = None;
                    match limit.is_spare(now) {
                        None => continue,
                        Some(false) => now.mono + SPARE_CHECK_INTERVAL,
                        Some(true) => {
                            self.forget(index);
                            continue;
                        }
                    }
                }
            };
            if limit.wake.is_none_or(|earlier| earlier > at) {
                limit.wake = Some(at);
                checks.push((at, index));
            }
        }
        checks
    }

    /// Removes an unused limit of a plugin.
    fn forget(&mut self, index: LimitIndex) {
        let Some(place) = self.limits.get_mut(index as usize) else { return };
        let limit = std::mem::replace(place, Limit::new("".into()));
        // No limit has this index now: it must be neither found nor removed again.
        self.removed.extend(limit.removal());
        if self.buckets.get(&limit.name) == Some(&index) {
            self.buckets.remove(&limit.name);
        }
        let windows = [limit.name];
        if self.windows.get(&windows[..]) == Some(&index) {
            self.windows.remove(&windows[..]);
        }
        self.free.push(index);
    }

    /// The changed counts of days, each once, after the rows of removed limits.
    pub(crate) fn take_changed(&mut self) -> Vec<PaceDay> {
        let mut records = std::mem::take(&mut self.removed);
        for index in std::mem::take(&mut self.changed) {
            // A new day without taken tokens needs no row: the previous day's row stays.
            if let Some(limit) = self.limits.get_mut(index as usize).filter(|limit| limit.changed) {
                limit.changed = false;
                if limit.used > 0 {
                    records.push(limit.take_record());
                }
            }
        }
        records
    }

    /// The limit for which most messages of a peer wait.
    pub(crate) fn limit_with_most_waiting(&self, peer: PeerId) -> Option<&Limit> {
        let counts = self.waiting_of.get(&peer)?;
        // Of several, the first.
        let (index, _) = counts.iter().max_by_key(|(index, count)| (**count, std::cmp::Reverse(**index)))?;
        self.get(*index)
    }

    /// The limit with this number.
    pub(crate) fn get(&self, index: LimitIndex) -> Option<&Limit> {
        self.limits.get(index as usize)
    }
}

/// The tokens that a message with this number of segments needs.
fn need(limit: &Limit, segments: u64) -> u64 {
    if limit.counts_segments() { segments } else { 1 }
}

fn configure_windows(
    limit: &mut Limit,
    now: Now,
    started: Moment,
    configured: &[SendWindowSettings],
    names: &[Arc<str>],
) {
    let named = configured.iter().filter(|window| names.contains(&window.name));
    let windows: Vec<WeeklyWindow> = named.map(|window| window.window.clone()).collect();
    if windows.is_empty() {
        limit.leave_configuration(now, started);
    } else {
        (limit.is_configured, limit.rule) = (true, Rule::Windows(windows));
    }
}

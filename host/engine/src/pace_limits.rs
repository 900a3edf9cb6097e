//! Pace limits: pace buckets and send windows, which accounts and peers share by name.
//!
//! A message that reaches the head of its queue while one of its limits is exhausted leaves the queue and waits in the
//! list of that limit, by priority and age. So it holds up no message that has other limits. Once the limit has tokens, or
//! its window opens, as many messages return to their places in their queues as it allows. A message behind others in a
//! list never passes them.

use crate::settings::{PaceBucketSettings, PacePeriod, PaceSettings, SendWindowSettings};
use crate::slab::Slot;
use crate::token_bucket::TokenBucket;
use calendar::{CalendarPeriod, WeeklyWindow, Zone};
use model::{MessageId, Moment, Now, PaceDay, PeerId, Priority, Timestamp};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// Messages that return to their queues at a time.
const RELEASE_RUN: u64 = 1024;
/// Delay before more messages return, if the limit still allows some.
const RELEASE_DELAY: Duration = Duration::from_millis(10);
/// The longest time until a limit is checked again: the wall clock may be set meanwhile.
const LONGEST_CHECK: Duration = Duration::from_secs(60);

/// The number of a limit in the engine's list.
pub(crate) type LimitIndex = u32;

/// The place of a message in the list of a limit: by priority, then by age.
pub(crate) type WaitKey = (u8, MessageId);

/// The key of a message with this priority level.
pub(crate) fn wait_key(priority: u8, id: MessageId) -> WaitKey {
    (Priority::LEVELS as u8 - priority.min(Priority::LEVELS as u8), id)
}

/// What a limit is.
#[derive(Debug)]
enum Rule {
    /// It is not in the configuration: it allows everything.
    None,
    /// A bucket that fills over time.
    Rate { settings: PaceBucketSettings, bucket: TokenBucket },
    /// A bucket that is full at the beginning of each day.
    Day { amount: u64, zone: Zone },
    /// One of these windows must be open.
    Windows(Vec<WeeklyWindow>),
}

/// A pace bucket, or the send windows that one account or peer names together.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) name: Arc<str>,
    rule: Rule,
    /// The day that counts, and the tokens taken in it. Kept while the limit is not configured.
    day: CalendarPeriod,
    taken: u64,
    /// `taken` has changed since the last batch.
    changed: bool,
    /// The waiting messages.
    pub(crate) waiting: BTreeMap<WaitKey, Slot>,
    /// Of these, those for each peer.
    waiting_of: BTreeMap<PeerId, u64>,
    /// The time of its next check.
    wake: Option<Moment>,
    /// The time at which it allows the next message, as of the last check.
    next_at: Moment,
    /// It is in the list of limits to check.
    touched: bool,
    /// Accounts or peers do not name it any more: the messages behind this key return to their queues, in runs. Those that
    /// still need it wait again.
    checked_again: Option<WaitKey>,
}

impl Limit {
    fn new(name: Arc<str>) -> Self {
        Self {
            name,
            rule: Rule::None,
            day: CalendarPeriod::default(),
            taken: 0,
            changed: false,
            waiting: BTreeMap::new(),
            waiting_of: BTreeMap::new(),
            wake: None,
            next_at: Moment(0),
            touched: false,
            checked_again: None,
        }
    }

    /// When it allows the next message, while messages wait.
    pub(crate) fn next_at(&self) -> Option<Moment> {
        (!self.waiting.is_empty()).then_some(self.next_at)
    }

    pub(crate) fn is_window(&self) -> bool {
        matches!(self.rule, Rule::Windows(_))
    }

    fn configure_bucket(&mut self, now: Now, settings: &PaceBucketSettings) {
        match &settings.per {
            PacePeriod::Day(zone) => {
                self.rule = Rule::Day { amount: settings.amount, zone: zone.clone() };
            }
            PacePeriod::Time(_) => {
                if let Rule::Rate { settings: known, .. } = &self.rule
                    && known == settings
                {
                    return;
                }
                let bucket = settings.empty_bucket(now.mono);
                self.rule = Rule::Rate { settings: settings.clone(), bucket };
            }
        }
    }

    /// Begins a new day if there is one.
    fn enter_day(&mut self, now: Now) {
        if let Rule::Day { zone, .. } = &self.rule {
            let day = self.day.current(now.wall.0, |time| zone.day(time));
            if day != self.day {
                (self.day, self.taken) = (day, 0);
            }
        }
    }

    /// Messages that may be sent now; if none, the time of the next one.
    pub(crate) fn allowed(&mut self, now: Now) -> Result<u64, Moment> {
        self.enter_day(now);
        match &mut self.rule {
            Rule::None => Ok(u64::MAX),
            Rule::Rate { bucket, .. } => bucket.ready(now.mono).map(|()| bucket.whole_tokens(now.mono)),
            Rule::Day { amount, .. } if self.taken < *amount => Ok(*amount - self.taken),
            Rule::Day { .. } => Err(now.moment_of(Timestamp(self.day.end)).max(now.mono + RELEASE_DELAY)),
            Rule::Windows(windows) => {
                let opens = windows.iter().map(|window| window.next_open(now.wall.0)).min();
                match opens {
                    Some(at) if at > now.wall.0 => Err(now.moment_of(Timestamp(at))),
                    _ => Ok(u64::MAX),
                }
            }
        }
    }

    /// Its fill, if it is a configured bucket: its amount, the tokens that it has, and the end of its day.
    pub(crate) fn fill(&self, now: Now) -> Option<(u64, u64, Option<Timestamp>)> {
        match &self.rule {
            Rule::Rate { settings, bucket } => Some((settings.amount, bucket.whole_tokens(now.mono), None)),
            Rule::Day { amount, zone } => {
                let day = self.day.current(now.wall.0, |time| zone.day(time));
                let taken = if day == self.day { self.taken } else { 0 };
                Some((*amount, amount.saturating_sub(taken), Some(Timestamp(day.end))))
            }
            Rule::None | Rule::Windows(_) => None,
        }
    }

    /// Takes a token that [`Limit::allowed`] has found.
    fn spend(&mut self) {
        match &mut self.rule {
            Rule::Rate { bucket, .. } => bucket.spend(),
            Rule::Day { .. } => {
                self.taken = self.taken.saturating_add(1);
                self.changed = true;
            }
            Rule::None | Rule::Windows(_) => {}
        }
    }
}

impl PaceBucketSettings {
    /// An empty bucket: after a start, nobody knows what was sent just before.
    fn empty_bucket(&self, now: Moment) -> TokenBucket {
        let PacePeriod::Time(period) = self.per else { return TokenBucket::empty(now, 1.0, 1.0) };
        let amount = self.amount.max(1) as f64;
        TokenBucket::empty(now, amount / period.as_secs_f64().max(0.001), amount)
    }
}

/// All limits.
#[derive(Debug, Default)]
pub(crate) struct PaceLimits {
    pub(crate) limits: Vec<Limit>,
    buckets: BTreeMap<Arc<str>, LimitIndex>,
    /// By the names of the windows, which one account or peer names together.
    windows: BTreeMap<Vec<Arc<str>>, LimitIndex>,
    configured_windows: Vec<SendWindowSettings>,
    /// Limits whose list must be checked at the end of the run.
    touched: Vec<LimitIndex>,
}

impl PaceLimits {
    /// Takes over the configured buckets and windows. Limits that are left out allow everything from now on.
    pub(crate) fn configure(&mut self, now: Now, settings: &PaceSettings) {
        for index in self.buckets.values() {
            let Some(limit) = self.limits.get_mut(*index as usize) else { continue };
            if settings.buckets.iter().all(|bucket| bucket.name != limit.name) {
                limit.rule = Rule::None;
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
                limit.rule = windows_rule(&self.configured_windows, names);
            }
        }
        for index in 0..self.limits.len() {
            self.touch(u32::try_from(index).unwrap_or(u32::MAX));
        }
    }

    /// Restores the count of a day. A bucket that is not configured keeps it.
    pub(crate) fn recover(&mut self, record: &PaceDay) {
        let index = self.bucket(&record.bucket);
        if let Some(limit) = self.limits.get_mut(index as usize) {
            limit.day = CalendarPeriod { start: record.start.0, end: record.end.0 };
            limit.taken = record.taken;
        }
    }

    fn add(&mut self, limit: Limit) -> LimitIndex {
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

    fn windows(&mut self, names: &[Arc<str>]) -> LimitIndex {
        if let Some(index) = self.windows.get(names) {
            return *index;
        }
        let mut limit = Limit::new(names.join(", ").into());
        limit.rule = windows_rule(&self.configured_windows, names);
        let index = self.add(limit);
        self.windows.insert(names.to_vec(), index);
        index
    }

    /// The limits with these names: each bucket, and all windows together.
    pub(crate) fn resolve(&mut self, buckets: &[Arc<str>], windows: &[Arc<str>]) -> Vec<LimitIndex> {
        let mut found: Vec<LimitIndex> = Vec::new();
        if !windows.is_empty() {
            found.push(self.windows(windows));
        }
        for name in buckets {
            let index = self.bucket(name);
            if !found.contains(&index) {
                found.push(index);
            }
        }
        found
    }

    /// The first of these limits that holds up the message with this key.
    pub(crate) fn blocking(
        &mut self,
        now: Now,
        of: impl Iterator<Item = LimitIndex>,
        key: WaitKey,
    ) -> Option<LimitIndex> {
        of.into_iter().find(|index| {
            let Some(limit) = self.limits.get_mut(*index as usize) else { return false };
            let behind = limit.waiting.first_key_value().is_some_and(|(first, _)| *first < key);
            behind || limit.allowed(now).is_err()
        })
    }

    /// Takes a token of each of these limits.
    pub(crate) fn spend(&mut self, of: impl Iterator<Item = LimitIndex>) {
        for index in of {
            if let Some(limit) = self.limits.get_mut(index as usize) {
                limit.spend();
            }
        }
    }

    /// A message begins to wait.
    pub(crate) fn wait(&mut self, index: LimitIndex, key: WaitKey, slot: Slot, peer: PeerId) {
        if let Some(limit) = self.limits.get_mut(index as usize) {
            limit.waiting.insert(key, slot);
            *limit.waiting_of.entry(peer).or_default() += 1;
        }
        self.touch(index);
    }

    /// A message does not wait any more.
    pub(crate) fn stop_waiting(&mut self, index: LimitIndex, key: WaitKey, peer: PeerId) {
        let Some(limit) = self.limits.get_mut(index as usize) else { return };
        if limit.waiting.remove(&key).is_some()
            && let Some(count) = limit.waiting_of.get_mut(&peer)
        {
            *count -= 1;
            if *count == 0 {
                limit.waiting_of.remove(&peer);
            }
        }
    }

    /// Accounts or peers do not name these limits any more: their messages must be checked again.
    pub(crate) fn check_again(&mut self, limits: impl Iterator<Item = LimitIndex>) {
        for index in limits {
            if let Some(limit) = self.limits.get_mut(index as usize) {
                limit.checked_again = Some((0, MessageId(0)));
            }
            self.touch(index);
        }
    }

    fn touch(&mut self, index: LimitIndex) {
        if let Some(limit) = self.limits.get_mut(index as usize)
            && !limit.touched
        {
            limit.touched = true;
            self.touched.push(index);
        }
    }

    /// The timer of a limit fired: the messages that return to their queues now.
    pub(crate) fn due(&mut self, now: Now, index: LimitIndex) -> Vec<Slot> {
        self.touch(index);
        let Some(limit) = self.limits.get_mut(index as usize) else { return Vec::new() };
        limit.wake = None;
        if let Some(after) = limit.checked_again {
            let behind = limit.waiting.range((Bound::Excluded(after), Bound::Unbounded));
            let run: Vec<(WaitKey, Slot)> =
                behind.take(RELEASE_RUN as usize).map(|(key, slot)| (*key, *slot)).collect();
            limit.checked_again = run.last().map(|(key, _)| *key);
            return run.into_iter().map(|(_, slot)| slot).collect();
        }
        let allowed = limit.allowed(now).unwrap_or(0).min(RELEASE_RUN);
        limit.waiting.values().take(usize::try_from(allowed).unwrap_or(0)).copied().collect()
    }

    /// The next checks of the limits whose lists have changed.
    pub(crate) fn take_checks(&mut self, now: Now) -> Vec<(Moment, LimitIndex)> {
        let mut checks = Vec::new();
        for index in std::mem::take(&mut self.touched) {
            let Some(limit) = self.limits.get_mut(index as usize) else { continue };
            limit.touched = false;
            if limit.waiting.is_empty() {
                limit.checked_again = None;
                continue;
            }
            limit.next_at = limit.allowed(now).err().unwrap_or(now.mono);
            let at = if limit.next_at <= now.mono || limit.checked_again.is_some() {
                now.mono + RELEASE_DELAY
            } else {
                limit.next_at.min(now.mono + LONGEST_CHECK)
            };
            if limit.wake.is_none_or(|earlier| earlier > at) {
                limit.wake = Some(at);
                checks.push((at, index));
            }
        }
        checks
    }

    /// The changed counts of days, each once.
    pub(crate) fn take_changed(&mut self) -> Vec<PaceDay> {
        let changed = self.limits.iter_mut().filter(|limit| limit.changed);
        let record = |limit: &mut Limit| {
            limit.changed = false;
            PaceDay {
                bucket: limit.name.clone(),
                start: Timestamp(limit.day.start),
                end: Timestamp(limit.day.end),
                taken: limit.taken,
            }
        };
        changed.map(record).collect()
    }

    /// The limit for which most messages of a peer wait.
    pub(crate) fn busiest(&self, peer: PeerId) -> Option<&Limit> {
        let waiting = |limit: &Limit| limit.waiting_of.get(&peer).copied().unwrap_or(0);
        self.limits.iter().filter(|limit| waiting(limit) > 0).max_by_key(|limit| waiting(limit))
    }

    /// The limit with this number.
    pub(crate) fn get(&self, index: LimitIndex) -> Option<&Limit> {
        self.limits.get(index as usize)
    }
}

fn windows_rule(configured: &[SendWindowSettings], names: &[Arc<str>]) -> Rule {
    let named = configured.iter().filter(|window| names.contains(&window.name));
    let windows: Vec<WeeklyWindow> = named.map(|window| window.window.clone()).collect();
    if windows.is_empty() { Rule::None } else { Rule::Windows(windows) }
}

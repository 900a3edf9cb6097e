//! One pace limit: its rule, and the messages that wait for it.

use crate::settings::{PaceBucketSettings, PacePeriod};
use crate::slab::Slot;
use crate::token_bucket::TokenBucket;
use calendar::{CalendarPeriod, WeeklyWindow, Zone};
use model::{
    DefinedPeriod, MessageId, Moment, Now, PaceBucketDefinition, PaceDay, PaceUnit, Priority,
    SendWindowDefinition, Timestamp,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Delay before more messages return, if the limit still allows some.
pub(crate) const RELEASE_DELAY: Duration = Duration::from_millis(10);

/// How long the count of a day is kept after its end, in milliseconds: the clock may be set back.
const KEPT_AFTER_DAY: u64 = 86_400_000;

/// The position of a message in the list of a limit: by priority, then by age.
pub(crate) type WaitKey = (u8, MessageId);

/// The key of a message with this priority level.
pub(crate) fn wait_key(priority: u8, id: MessageId) -> WaitKey {
    (Priority::LEVELS as u8 - priority.min(Priority::LEVELS as u8), id)
}

/// The rule of a limit.
#[derive(Debug)]
pub(crate) enum Rule {
    /// Neither the configuration nor a plugin defines it: it allows everything.
    None,
    /// A bucket that fills over time.
    Rate { settings: PaceBucketSettings, bucket: TokenBucket },
    /// A bucket that is full at the beginning of each day.
    Day { amount: u64, zone: Zone, counts: PaceUnit },
    /// One of these windows must be open.
    Windows(Vec<WeeklyWindow>),
}

/// The definition of a limit by a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LimitDefinition {
    Bucket(PaceBucketDefinition),
    Window(SendWindowDefinition),
}

/// The fill of a pace bucket.
#[derive(Debug)]
pub(crate) struct BucketFill {
    pub(crate) amount: u64,
    pub(crate) counts: PaceUnit,
    pub(crate) tokens: u64,
    pub(crate) day_ends: Option<Timestamp>,
}

/// A message that waits for a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) slot: Slot,
    /// The tokens that it needs.
    pub(crate) need: u64,
}

/// A pace bucket, or the set of send windows of one account or peer.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) name: Arc<str>,
    pub(crate) rule: Rule,
    /// The rule comes from the configuration.
    pub(crate) is_configured: bool,
    /// The configuration, an account or a peer has named it: it is never removed.
    pub(crate) is_permanent: bool,
    /// The last definition by a plugin; the rule if it is not configured.
    pub(crate) definition: Option<LimitDefinition>,
    /// Number of decisions' limit sets that contain it.
    pub(crate) sets: u32,
    /// The current day, and the tokens used on it. Kept while the limit is not configured.
    day: CalendarPeriod,
    pub(crate) used: u64,
    /// `used` has changed since the last batch.
    pub(crate) changed: bool,
    /// `used` is on disk.
    stored: bool,
    /// The waiting messages.
    pub(crate) waiting: BTreeMap<WaitKey, Waiting>,
    /// The time of its next check.
    pub(crate) wake: Option<Moment>,
    /// The time at which it allows the next message, as of the last check.
    pub(crate) next_at: Moment,
    /// It is in the list of limits to check.
    pub(crate) check_pending: bool,
    /// Set if accounts or peers no longer name it: the messages after this key return to their queues, in runs. Messages
    /// that still need the limit wait again.
    pub(crate) checked_again: Option<WaitKey>,
}

impl Limit {
    pub(crate) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            rule: Rule::None,
            is_configured: false,
            is_permanent: false,
            definition: None,
            sets: 0,
            day: CalendarPeriod::default(),
            used: 0,
            changed: false,
            stored: false,
            waiting: BTreeMap::new(),
            wake: None,
            next_at: Moment(0),
            check_pending: false,
            checked_again: None,
        }
    }

    /// The time at which it allows the next message, while messages wait.
    pub(crate) fn next_at(&self) -> Option<Moment> {
        (!self.waiting.is_empty()).then_some(self.next_at)
    }

    pub(crate) fn is_window(&self) -> bool {
        matches!(self.rule, Rule::Windows(_))
    }

    pub(crate) fn counts_segments(&self) -> bool {
        let counts = match &self.rule {
            Rule::Rate { settings, .. } => settings.counts,
            Rule::Day { counts, .. } => *counts,
            Rule::None | Rule::Windows(_) => PaceUnit::Messages,
        };
        counts == PaceUnit::Segments
    }

    pub(crate) fn configure_bucket(&mut self, now: Now, settings: &PaceBucketSettings) {
        (self.is_configured, self.is_permanent) = (true, true);
        match &settings.per {
            PacePeriod::Day(zone) => {
                let (amount, counts) = (settings.amount, settings.counts);
                self.rule = Rule::Day { amount, zone: zone.clone(), counts };
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

    /// Removes the rule of the configuration: the definition of a plugin counts, if there is one.
    pub(crate) fn leave_configuration(&mut self, now: Now, started: Moment) {
        self.is_configured = false;
        match self.definition.clone() {
            Some(definition) => self.apply_definition(now, started, &definition),
            None => self.rule = Rule::None,
        }
    }

    /// Applies the definition of a plugin. Returns whether the rule has changed. A bucket that fills over time gets the
    /// tokens that an empty bucket has got since the start of the engine. That suits a removed bucket too: it was full.
    pub(crate) fn define(&mut self, now: Now, started: Moment, definition: &LimitDefinition) -> bool {
        if self.definition.as_ref() == Some(definition) {
            return false;
        }
        self.definition = Some(definition.clone());
        if self.is_configured {
            return false;
        }
        self.apply_definition(now, started, definition);
        true
    }

    fn apply_definition(&mut self, now: Now, started: Moment, definition: &LimitDefinition) {
        self.rule = match definition {
            LimitDefinition::Window(window) => Rule::Windows(weekly_windows(window)),
            LimitDefinition::Bucket(PaceBucketDefinition { amount, per, counts }) => match per {
                DefinedPeriod::Day(zone) => match find_zone(zone) {
                    Some(zone) => Rule::Day { amount: *amount, zone, counts: *counts },
                    None => Rule::None,
                },
                DefinedPeriod::Time(time) => {
                    let settings = PaceBucketSettings {
                        name: self.name.clone(),
                        amount: *amount,
                        per: PacePeriod::Time(*time),
                        counts: *counts,
                    };
                    let mut bucket = settings.empty_bucket(started);
                    if let Rule::Rate { bucket: known, .. } = &self.rule {
                        bucket.inherit_tokens(known, now.mono);
                    }
                    Rule::Rate { settings, bucket }
                }
            },
        };
    }

    /// Restores the count of a day.
    pub(crate) fn recover(&mut self, now: Now, record: &PaceDay) {
        self.day = CalendarPeriod { start: record.start.0, end: record.end.0 };
        (self.used, self.stored) = (record.used, true);
        if let Some(definition) = record.defined.clone() {
            self.define(now, now.mono, &LimitDefinition::Bucket(definition));
        } else {
            self.is_permanent = true;
        }
    }

    /// Begins a new day if the current one has ended.
    pub(crate) fn enter_day(&mut self, now: Now) {
        if let Rule::Day { zone, .. } = &self.rule {
            let day = self.day.current(now.wall.0, |time| zone.day(time));
            if day != self.day {
                (self.day, self.used) = (day, 0);
            }
        }
    }

    /// The current tokens, if they suffice for a message that needs `need` tokens; otherwise the time at which they may
    /// suffice. A message that needs more than the capacity needs a full bucket.
    pub(crate) fn allowed(&mut self, now: Now, need: u64) -> Result<u64, Moment> {
        self.enter_day(now);
        match &mut self.rule {
            Rule::None => Ok(u64::MAX),
            Rule::Rate { bucket, settings } => {
                bucket.ready_for(now.mono, need.min(settings.amount))?;
                Ok(bucket.whole_tokens(now.mono).max(need))
            }
            Rule::Day { amount, .. } => {
                let left = amount.saturating_sub(self.used);
                if left >= need || left == *amount {
                    return Ok(left.max(need));
                }
                Err(now.moment_of(Timestamp(self.day.end)).max(now.mono + RELEASE_DELAY))
            }
            Rule::Windows(windows) => {
                let opens = windows.iter().map(|window| window.next_open(now.wall.0)).min();
                match opens {
                    Some(at) if at > now.wall.0 => Err(now.moment_of(Timestamp(at))),
                    _ => Ok(u64::MAX),
                }
            }
        }
    }

    /// Its fill, if it is a bucket.
    pub(crate) fn fill(&self, now: Now) -> Option<BucketFill> {
        match &self.rule {
            Rule::Rate { settings: PaceBucketSettings { amount, counts, .. }, bucket } => {
                let tokens = bucket.whole_tokens(now.mono);
                Some(BucketFill { amount: *amount, counts: *counts, tokens, day_ends: None })
            }
            Rule::Day { amount, zone, counts } => {
                let day = self.day.current(now.wall.0, |time| zone.day(time));
                let used = if day == self.day { self.used } else { 0 };
                let (tokens, day_ends) = (amount.saturating_sub(used), Some(Timestamp(day.end)));
                Some(BucketFill { amount: *amount, counts: *counts, tokens, day_ends })
            }
            Rule::None | Rule::Windows(_) => None,
        }
    }

    /// Takes tokens that [`Limit::allowed`] has found. Returns whether the count of a day changes.
    pub(crate) fn spend(&mut self, need: u64) -> bool {
        match &mut self.rule {
            Rule::Rate { bucket, .. } => bucket.spend_many(need),
            Rule::Day { .. } => {
                self.used = self.used.saturating_add(need);
                return !std::mem::replace(&mut self.changed, true);
            }
            Rule::None | Rule::Windows(_) => {}
        }
        false
    }

    /// Whether a plugin's limit can be removed: no message names it, and its used tokens no longer count. `None` for a
    /// limit that is kept in any case.
    pub(crate) fn is_spare(&self, now: Now) -> Option<bool> {
        if self.is_permanent || self.sets > 0 || self.definition.is_none() || !self.waiting.is_empty() {
            return None;
        }
        Some(match &self.rule {
            Rule::Day { .. } => now.wall.0 >= self.day.end.saturating_add(KEPT_AFTER_DAY),
            Rule::Rate { settings, bucket } => bucket.whole_tokens(now.mono) >= settings.amount,
            Rule::None | Rule::Windows(_) => true,
        })
    }

    /// The count of its day, to be written.
    pub(crate) fn take_record(&mut self) -> PaceDay {
        (self.changed, self.stored) = (false, true);
        let defined = match &self.definition {
            Some(LimitDefinition::Bucket(definition)) if !self.is_permanent => Some(definition.clone()),
            _ => None,
        };
        PaceDay {
            bucket: self.name.clone(),
            start: Timestamp(self.day.start),
            end: Timestamp(self.day.end),
            used: self.used,
            defined,
        }
    }

    /// The record that removes its row, if the row exists.
    pub(crate) fn removal(&self) -> Option<PaceDay> {
        let day = (Timestamp(self.day.start), Timestamp(self.day.end));
        let row = PaceDay { bucket: self.name.clone(), start: day.0, end: day.1, used: 0, defined: None };
        self.stored.then_some(row)
    }
}

/// The plugin runtime admits only known zones, but a record of another version may have an unknown zone.
fn find_zone(name: &str) -> Option<Zone> {
    Zone::find(name).or_else(|| Zone::find("UTC"))
}

fn weekly_windows(defined: &SendWindowDefinition) -> Vec<WeeklyWindow> {
    let Some(zone) = find_zone(&defined.zone) else { return Vec::new() };
    let hours = defined.hours.iter();
    hours
        .filter_map(|hours| WeeklyWindow::new(zone.clone(), hours.days, hours.opens, hours.closes).ok())
        .collect()
}

impl PaceBucketSettings {
    /// A bucket without tokens at `at`: after a start, the messages sent just before are unknown.
    fn empty_bucket(&self, at: Moment) -> TokenBucket {
        let PacePeriod::Time(period) = self.per else { return TokenBucket::empty(at, 1.0, 1.0) };
        let amount = self.amount.max(1) as f64;
        TokenBucket::empty(at, amount / period.as_secs_f64().max(0.001), amount)
    }
}

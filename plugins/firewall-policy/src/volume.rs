//! Conditions on numbers of messages: near-duplicates and volumes.

use crate::document::{NearDuplicatesEntry, Scope, VolumeEntry};
use crate::{Host, Question};
use policy_values::{Time, digits_of};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The range of window lengths of the host's counters.
const WINDOW_RANGE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);
/// Maximum number of digits of a number.
const MAX_DIGITS: u8 = 15;
/// Separates the parts of a counter's key. It does not occur in an account's name and not in digits, and a source is the last
/// part, so keys are unambiguous.
const SEPARATOR: char = '\u{1f}';

/// The condition that more than a number of texts have one near-duplicate hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NearDuplicates {
    over: u64,
    window: Duration,
    scope: Scope,
}

/// The condition that there are more than a number of messages, or more than the usual number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Volume {
    over: u64,
    window: Duration,
    scope: Scope,
    digits: usize,
    baseline: Option<Baseline>,
}

/// A comparison with the average number of messages per window in a longer time, which ends with the window.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Baseline {
    times: u32,
    before: Duration,
}

impl NearDuplicates {
    pub(crate) fn read(entry: &NearDuplicatesEntry) -> Result<Self, String> {
        let window = read_window("near-duplicates", "window", entry.window)?;
        Ok(Self { over: u64::from(entry.over), window, scope: entry.per })
    }

    /// Counts a message. Returns the finding if there are too many.
    pub(crate) fn count(&self, rule: &str, asked: &Question<'_>, host: &impl Host) -> Option<String> {
        let hash = host.near_duplicate()?;
        let key = key(self.scope, asked, &format!("{hash:016x}"));
        let count = host.count(rule, &key, self.window);
        (count > self.over)
            .then(|| format!("near-duplicate {count} in {} s, {} allowed", self.window.as_secs(), self.over))
    }
}

impl Volume {
    pub(crate) fn read(entry: &VolumeEntry) -> Result<Self, String> {
        let window = read_window("volume", "window", entry.window)?;
        if entry.digits > MAX_DIGITS {
            return Err(format!("`volume`: `digits` is {}; a number has at most {MAX_DIGITS}", entry.digits));
        }
        let baseline = match (entry.times, entry.before) {
            (None, None) => None,
            (Some(times), Some(before)) => {
                let before = read_window("volume", "before", before)?;
                if before < window * 2 {
                    return Err("`volume`: `before` is at least twice as long as `window`".to_owned());
                }
                if times == 0 {
                    return Err("`volume`: `times` is at least 1".to_owned());
                }
                Some(Baseline { times, before })
            }
            _ => {
                return Err(
                    "`volume`: `times` and `before` go together; leave both out for a fixed limit".to_owned()
                );
            }
        };
        Ok(Self {
            over: u64::from(entry.over),
            window,
            scope: entry.per,
            digits: usize::from(entry.digits),
            baseline,
        })
    }

    /// Counts a message. Returns the finding if there are too many.
    pub(crate) fn count(&self, rule: &str, asked: &Question<'_>, host: &impl Host) -> Option<String> {
        let number = digits_of(asked.destination).unwrap_or_default();
        let prefix = number.get(..self.digits.min(number.len())).unwrap_or_default();
        let key = key(self.scope, asked, prefix);
        let count = host.count(rule, &key, self.window);
        let to = if prefix.is_empty() { String::new() } else { format!(" to {prefix}") };
        let seconds = self.window.as_secs();
        let Some(baseline) = &self.baseline else {
            return (count > self.over)
                .then(|| format!("{count} messages{to} in {seconds} s, {} allowed", self.over));
        };
        // A separate name, which no rule can have: names have no control characters.
        let all = host.count(&format!("{rule}{SEPARATOR}before"), &key, baseline.before);
        let earlier = u128::from(all.saturating_sub(count));
        let earlier_ms = (baseline.before.saturating_sub(self.window)).as_millis();
        // count > times * average, without a division.
        let is_unusual = u128::from(count).saturating_mul(earlier_ms)
            > earlier.saturating_mul(self.window.as_millis()).saturating_mul(u128::from(baseline.times));
        (count > self.over && is_unusual).then(|| {
            let average = earlier.saturating_mul(self.window.as_millis()) / earlier_ms.max(1);
            format!("{count} messages{to} in {seconds} s, {average} before")
        })
    }
}

fn key(scope: Scope, asked: &Question<'_>, what: &str) -> String {
    match scope {
        Scope::All => what.to_owned(),
        Scope::Account => format!("{what}{SEPARATOR}{}", asked.account),
        Scope::Source => format!("{what}{SEPARATOR}{}{SEPARATOR}{}", asked.account, asked.source),
    }
}

fn read_window(condition: &str, key: &str, time: Time) -> Result<Duration, String> {
    if WINDOW_RANGE.contains(&time.0) {
        Ok(time.0)
    } else {
        Err(format!("`{condition}`: `{key}` is 1s to 24h"))
    }
}

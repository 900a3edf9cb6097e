use super::State;
use crate::bindings::host::switchyard::hooks::counters::Host;
use crate::seen::{Asked, Counting, number};
use std::time::Duration;

/// The windows that make sense, in milliseconds.
const WINDOWS: std::ops::RangeInclusive<u64> = 1_000..=86_400_000;

impl State {
    fn count(&mut self, name: &str, key: &str, amount: Option<u32>, window: u64) -> u64 {
        let window_octets = window.to_le_bytes();
        let added = amount.unwrap_or(0).to_le_bytes();
        let plugin = self.label.plugin.clone();
        let asked = [plugin.as_bytes(), name.as_bytes(), key.as_bytes(), &window_octets[..], &added[..]];
        if let Some(then) = self.seen.recall(Asked::Counter, &asked).as_deref().and_then(number) {
            return then;
        }
        let counting = self.seen.counts();
        if counting == Counting::No {
            return u64::from(amount.unwrap_or(0));
        }
        let durable = self.label.durable.iter().find(|counter| counter.name() == name);
        let sum = match (durable, amount) {
            // A quota fails closed: whatever a plugin compares it with, this is more.
            (Some(counter), Some(amount)) if counting == Counting::Yes => {
                counter.add(key, amount, self.now).unwrap_or(u64::MAX)
            }
            (Some(counter), Some(amount)) => counter.add_as_if(key, amount, self.now).unwrap_or(u64::MAX),
            (Some(counter), None) => counter.sum(key, self.now),
            (None, _) => self.slide(name, key, amount, window, counting),
        };
        self.seen.note(Asked::Counter, &asked, &sum.to_le_bytes());
        sum
    }

    /// A counter in memory, over a sliding window of so many milliseconds.
    fn slide(&self, name: &str, key: &str, amount: Option<u32>, window: u64, counting: Counting) -> u64 {
        let window = Duration::from_millis(window.clamp(*WINDOWS.start(), *WINDOWS.end()));
        let space = &self.label.space;
        match amount {
            Some(amount) if counting == Counting::Yes => space.add(name, key, amount, window, self.now),
            amount => space.sum(name, key, window, self.now).saturating_add(u64::from(amount.unwrap_or(0))),
        }
    }
}

impl Host for State {
    fn add(&mut self, name: String, key: String, amount: u32, window: u64) -> u64 {
        self.count(&name, &key, Some(amount), window)
    }

    fn sum(&mut self, name: String, key: String, window: u64) -> u64 {
        self.count(&name, &key, None, window)
    }
}

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
        let window = Duration::from_millis(window.clamp(*WINDOWS.start(), *WINDOWS.end()));
        let space = &self.label.space;
        let sum = match (amount, self.seen.counts()) {
            (amount, Counting::No) => return u64::from(amount.unwrap_or(0)),
            (Some(amount), Counting::Yes) => space.add(name, key, amount, window, self.now),
            (amount, _) => {
                space.sum(name, key, window, self.now).saturating_add(u64::from(amount.unwrap_or(0)))
            }
        };
        self.seen.note(Asked::Counter, &asked, &sum.to_le_bytes());
        sum
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

use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::counters::Host;
use crate::host_call_log::{Counting, HostCallKind, decode_u64};
use std::time::Duration;

/// The range of window lengths, in milliseconds.
const WINDOW_RANGE: std::ops::RangeInclusive<u64> = 1_000..=86_400_000;

impl InstanceState {
    fn count(&mut self, name: &str, key: &str, amount: Option<u32>, window: u64) -> u64 {
        let window_octets = window.to_le_bytes();
        let added = amount.unwrap_or(0).to_le_bytes();
        let plugin = self.context.space.clone();
        let key_parts = [plugin.as_bytes(), name.as_bytes(), key.as_bytes(), &window_octets[..], &added[..]];
        if let Some(recorded) =
            self.call_log.recall(HostCallKind::Counter, &key_parts).as_deref().and_then(decode_u64)
        {
            return recorded;
        }
        let counting = self.call_log.counting();
        if counting == Counting::No {
            return u64::from(amount.unwrap_or(0));
        }
        let durable_counters = self.context.durable_counters.iter().find(|counter| counter.name() == name);
        let sum = match (durable_counters, amount) {
            // On an error a quota must fail closed: `u64::MAX` exceeds every limit of a plugin.
            (Some(counter), Some(amount)) if counting == Counting::Yes => {
                counter.add(key, amount, self.now).unwrap_or(u64::MAX)
            }
            (Some(counter), Some(amount)) => counter.preview_add(key, amount, self.now).unwrap_or(u64::MAX),
            (Some(counter), None) => counter.sum(key, self.now),
            (None, _) => self.sliding_count(name, key, amount, window, counting),
        };
        self.call_log.append(HostCallKind::Counter, &key_parts, &sum.to_le_bytes());
        sum
    }

    /// A counter in memory, over a sliding window of `window` milliseconds.
    fn sliding_count(
        &self,
        name: &str,
        key: &str,
        amount: Option<u32>,
        window: u64,
        counting: Counting,
    ) -> u64 {
        let window = Duration::from_millis(window.clamp(*WINDOW_RANGE.start(), *WINDOW_RANGE.end()));
        let counter_space = &self.context.counter_space;
        match amount {
            Some(amount) if counting == Counting::Yes => {
                counter_space.add(name, key, amount, window, self.now)
            }
            amount => {
                counter_space.sum(name, key, window, self.now).saturating_add(u64::from(amount.unwrap_or(0)))
            }
        }
    }
}

impl Host for InstanceState {
    fn add(&mut self, name: String, key: String, amount: u32, window: u64) -> u64 {
        self.count_call(HostInterface::Counters);
        self.count(&name, &key, Some(amount), window)
    }

    fn sum(&mut self, name: String, key: String, window: u64) -> u64 {
        self.count_call(HostInterface::Counters);
        self.count(&name, &key, None, window)
    }
}

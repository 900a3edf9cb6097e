use super::State;
use crate::bindings::host::switchyard::hooks::counters::Host;
use crate::seen::{Asked, number};
use std::time::Duration;

/// The windows that make sense, in milliseconds.
const WINDOWS: std::ops::RangeInclusive<u64> = 1_000..=86_400_000;

/// Octets that a counter's name or key may have; what is longer is cut.
const OCTETS: usize = 256;

fn cut(text: &str) -> &str {
    let end = (0..=OCTETS.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

impl State {
    fn count(&mut self, name: &str, key: &str, amount: Option<u32>, window: u64) -> u64 {
        let (name, key) = (cut(name), cut(key));
        let window_octets = window.to_le_bytes();
        let added = amount.unwrap_or(0).to_le_bytes();
        let asked: [&[u8]; 4] = [name.as_bytes(), key.as_bytes(), &window_octets, &added];
        if let Some(then) = self.seen.recall(Asked::Counter, &asked).as_deref().and_then(number) {
            return then;
        }
        // In a replay nothing is counted: today's traffic is not the archive's.
        if matches!(self.seen, crate::seen::Seen::Replaying { .. }) {
            return u64::from(amount.unwrap_or(0));
        }
        let window = Duration::from_millis(window.clamp(*WINDOWS.start(), *WINDOWS.end()));
        let space = &self.label.space;
        let sum = match amount {
            Some(amount) => space.add(name, key, amount, window, self.now),
            None => space.sum(name, key, window, self.now),
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

use std::time::Duration;

/// Numbers from a seed (SplitMix64): small, good enough for weights, jitter and tests, and equal on every machine.
///
/// They are not secret: keys and tokens come from the system's generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "an endless sequence is no use as an iterator here")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `from` (inclusive) to `to` (exclusive); `from` if the range is empty.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from))
    }

    /// A random element; `None` if there are none.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len() as u64) as usize)
    }

    /// The duration, up to a fifth shorter or longer, so that events with the same delay do not coincide.
    pub fn jitter(&mut self, duration: Duration) -> Duration {
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        Duration::from_millis(ms - ms / 5 + self.below(ms / 5 * 2 + 1))
    }

    /// True with this probability in percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

use std::time::Duration;

/// SplitMix64: small, good enough for weights and jitter, and reproducible from its seed on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// The duration, up to a fifth shorter or longer: messages with the same delay do not return at once.
    pub(crate) fn jitter(&mut self, duration: Duration) -> Duration {
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        Duration::from_millis(ms - ms / 5 + self.below(ms / 5 * 2 + 1))
    }
}

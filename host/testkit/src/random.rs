//! Reproducible random choices (splitmix64).

/// A random number generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A different seed in each run.
    pub fn any_seed() -> u64 {
        std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64) % 1_000_000_007
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from `from` (inclusive) to `to` (exclusive).
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }

    /// One of these; `None` if the slice is empty.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        (!of.is_empty()).then(|| &of[self.between(0, of.len() as u64) as usize])
    }

    /// True with this probability in percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.between(0, 100) < percent
    }
}

//! Random choices that a seed repeats (splitmix64).

/// A generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// One that this seed repeats.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that differs from run to run.
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

    /// From `from` to below `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }

    /// One of these; `None` if there are none.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        (!of.is_empty()).then(|| &of[self.between(0, of.len() as u64) as usize])
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.between(0, 100) < percent
    }
}

//! Record of the held numbers, as their holders know them.

use std::sync::atomic::{AtomicBool, Ordering};

/// The first number.
const FIRST: u64 = 10_000_000_000;

/// The numbers of a pool and whether each is held. All callers of a pool share one instance, so that a double lease is
/// detected.
#[derive(Debug)]
pub struct Holders {
    held: Vec<AtomicBool>,
}

impl Holders {
    /// Digits of every number.
    pub(super) const DIGITS: usize = 11;

    /// A pool of this many numbers, none held.
    pub fn new(numbers: usize) -> Self {
        Self { held: std::iter::repeat_with(|| AtomicBool::new(false)).take(numbers).collect() }
    }

    /// Number of numbers.
    pub fn numbers(&self) -> usize {
        self.held.len()
    }

    /// The number with this index.
    pub fn number(&self, index: usize) -> String {
        (FIRST + index as u64).to_string()
    }

    /// The index of a number; `None` if it is not in the pool.
    pub(super) fn index_of(&self, number: &[u8]) -> Option<usize> {
        if number.len() != Self::DIGITS || !number.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let value = number.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        let index = value.checked_sub(FIRST)? as usize;
        (index < self.held.len()).then_some(index)
    }

    /// Marks a number as held; `false` if it was held already.
    pub(super) fn acquire(&self, index: usize) -> bool {
        !self.held[index].swap(true, Ordering::AcqRel)
    }

    /// Marks a number as free; must be called before the release is sent.
    pub(super) fn release(&self, index: usize) {
        self.held[index].store(false, Ordering::Release);
    }

    /// Number of held numbers.
    pub fn held(&self) -> usize {
        self.held.iter().filter(|held| held.load(Ordering::Acquire)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_holder() {
        let holders = Holders::new(10);
        assert_eq!(holders.index_of(holders.number(9).as_bytes()), Some(9));
        for unknown in ["10000000010", "9999999999", "1000000000x", "", "100000000090"] {
            assert_eq!(holders.index_of(unknown.as_bytes()), None, "{unknown}");
        }
        assert!(holders.acquire(3));
        assert!(!holders.acquire(3));
        assert_eq!(holders.held(), 1);
        holders.release(3);
        assert!(holders.acquire(3));
    }
}

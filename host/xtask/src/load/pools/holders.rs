//! Who has which number, as those know who have them.

use std::sync::atomic::{AtomicBool, Ordering};

/// The first number.
const FIRST: u64 = 10_000_000_000;

/// A pool's numbers, and which of them somebody has: shared by all who take numbers out of that pool, so that a number that
/// is given twice at a time is seen.
#[derive(Debug)]
pub struct Holders {
    held: Vec<AtomicBool>,
}

impl Holders {
    /// Digits of every number.
    pub(super) const DIGITS: usize = 11;

    /// A pool of so many numbers, nobody has any.
    pub fn new(numbers: usize) -> Self {
        Self { held: std::iter::repeat_with(|| AtomicBool::new(false)).take(numbers).collect() }
    }

    /// How many numbers there are.
    pub fn numbers(&self) -> usize {
        self.held.len()
    }

    /// The number at this place.
    pub fn number(&self, place: usize) -> String {
        (FIRST + place as u64).to_string()
    }

    /// The place of a number; `None` if there is no such.
    pub(super) fn place(&self, number: &[u8]) -> Option<usize> {
        if number.len() != Self::DIGITS || !number.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let value = number.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        let place = value.checked_sub(FIRST)? as usize;
        (place < self.held.len()).then_some(place)
    }

    /// Somebody has it from now on; `false` if somebody else had it before.
    pub(super) fn take(&self, place: usize) -> bool {
        !self.held[place].swap(true, Ordering::AcqRel)
    }

    /// Nobody has it from now on: to be said before the pool is told.
    pub(super) fn leave(&self, place: usize) {
        self.held[place].store(false, Ordering::Release);
    }

    /// How many somebody has.
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
        assert_eq!(holders.place(holders.number(9).as_bytes()), Some(9));
        for stranger in ["10000000010", "9999999999", "1000000000x", "", "100000000090"] {
            assert_eq!(holders.place(stranger.as_bytes()), None, "{stranger}");
        }
        assert!(holders.take(3));
        assert!(!holders.take(3));
        assert_eq!(holders.held(), 1);
        holders.leave(3);
        assert!(holders.take(3));
    }
}

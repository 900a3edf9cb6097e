use arc_swap::ArcSwap;
use model::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many lines a plugin may write, over all its instances.
///
/// Lines count in the wall clock's seconds: so in any second at most twice the budget, and over time never more than it.
#[derive(Debug)]
pub struct LogBudget {
    a_second: u64,
    /// The second in the upper 44 bits, lines written in it in the lower 20.
    spent: AtomicU64,
    /// Left out since the last line that was written.
    pending: AtomicU64,
    left_out: AtomicU64,
}

/// Bits for the lines of a second.
const LINES: u32 = 20;
/// A clock that goes back by more seconds than this was set; by less, threads saw it one after the other.
const SET_BACK: u64 = 10;

impl LogBudget {
    /// So many lines that a plugin may write in a second.
    pub const A_SECOND: u32 = 100;

    /// A budget of `a_second` lines a second, at most a million.
    #[must_use]
    pub fn new(a_second: u32) -> Self {
        Self {
            a_second: u64::from(a_second).min((1 << LINES) - 1),
            spent: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        }
    }

    /// Whether a line may be written now. `Some(n)`: yes, and `n` lines were left out since the last one; `None`: leave it
    /// out.
    pub fn take(&self, now: Timestamp) -> Option<u64> {
        let second = now.0 / 1000;
        let spend = |spent: u64| {
            let (then, lines) = (spent >> LINES, spent & ((1 << LINES) - 1));
            if second > then || then - second > SET_BACK {
                // The first line of a second, if any may be written at all.
                return (self.a_second > 0).then_some(second << LINES | 1);
            }
            (lines < self.a_second).then_some(spent + 1)
        };
        if self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok() {
            return Some(self.pending.swap(0, Ordering::Relaxed));
        }
        self.leave_out();
        None
    }

    /// Counts a line that is left out for another reason.
    pub fn leave_out(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        self.left_out.fetch_add(1, Ordering::Relaxed);
    }

    /// How many lines were left out since the start.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }
}

impl Default for LogBudget {
    fn default() -> Self {
        Self::new(Self::A_SECOND)
    }
}

/// The budgets of all plugins, by name; they outlive the plugins' versions.
#[derive(Debug, Default)]
pub struct LogBudgets(ArcSwap<HashMap<Box<str>, Arc<LogBudget>>>);

impl LogBudgets {
    /// The budget of a plugin. To be kept by its instances.
    #[must_use]
    pub fn of(&self, plugin: &str) -> Arc<LogBudget> {
        if let Some(known) = self.0.load().get(plugin) {
            return Arc::clone(known);
        }
        let budget = Arc::new(LogBudget::default());
        let all = self.0.rcu(|all| {
            let mut all = HashMap::clone(all);
            all.entry(plugin.into()).or_insert_with(|| Arc::clone(&budget));
            all
        });
        // Whatever came first stands; `all` is what was before us.
        all.get(plugin).map_or(budget, Arc::clone)
    }

    /// How many lines of each plugin were left out since the start, by its name.
    #[must_use]
    pub fn left_out(&self) -> Vec<(String, u64)> {
        self.0.load().iter().map(|(plugin, budget)| (plugin.to_string(), budget.left_out())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_lines_a_second_and_what_is_over_is_told_with_the_next() {
        let budget = LogBudget::default();
        let written = (0..250).filter(|n| budget.take(Timestamp(5_000 + n)).is_some()).count();
        assert_eq!(written, 100);
        assert_eq!(budget.left_out(), 150);
        assert_eq!(budget.take(Timestamp(6_000)), Some(150));
        assert_eq!(budget.take(Timestamp(6_001)), Some(0));
    }

    #[test]
    fn threads_on_both_sides_of_a_second_win_nothing() {
        let budget = LogBudget::default();
        let written = (0..500).filter(|n| budget.take(Timestamp(5_999 + n % 2)).is_some()).count();
        assert_eq!(written, 101, "one in the old second, then the budget of the new one");
    }

    #[test]
    fn a_clock_that_was_set_back_silences_nobody() {
        let budget = LogBudget::new(1);
        assert!(budget.take(Timestamp(3_600_000)).is_some());
        assert!(budget.take(Timestamp(1_000)).is_some());
        assert!(LogBudget::new(0).take(Timestamp(1_000)).is_none());
    }

    #[test]
    fn instances_share_a_budget() {
        let budgets = LogBudgets::default();
        assert!(Arc::ptr_eq(&budgets.of("a"), &budgets.of("a")));
        assert!(!Arc::ptr_eq(&budgets.of("a"), &budgets.of("b")));
        assert_eq!(budgets.left_out().len(), 2);
    }
}

use arc_swap::ArcSwap;
use model::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The log budget of a plugin, over all its instances.
///
/// Lines are counted in seconds of the wall clock: in any period of a second there are at most twice as many lines as the
/// budget, and in the long run never more than the budget.
#[derive(Debug)]
pub struct LogBudget {
    lines_per_second: u64,
    /// The second in the upper 44 bits, the number of lines written in it in the lower 20.
    used: AtomicU64,
    /// Lines dropped after the last written one.
    pending: AtomicU64,
    dropped: AtomicU64,
}

/// Number of bits for the lines of a second.
const LINE_BITS: u32 = 20;
/// If the clock goes back by more seconds than this, it was set; otherwise threads saw it in different order.
const MAX_CLOCK_SKEW_SECONDS: u64 = 10;

impl LogBudget {
    /// Maximum number of lines of a plugin per second.
    pub const LINES_PER_SECOND: u32 = 100;

    /// Creates a budget of `lines_per_second`, at most a million.
    #[must_use]
    pub fn new(lines_per_second: u32) -> Self {
        Self {
            lines_per_second: u64::from(lines_per_second).min((1 << LINE_BITS) - 1),
            used: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Takes a line from the budget. `Some(n)`: write it; `n` lines were dropped after the last one. `None`: drop it.
    pub fn take(&self, now: Timestamp) -> Option<u64> {
        let second = now.0 / 1000;
        let count_line = |used: u64| {
            let (then, lines) = (used >> LINE_BITS, used & ((1 << LINE_BITS) - 1));
            if second > then || then - second > MAX_CLOCK_SKEW_SECONDS {
                // The first line of a second, if the budget is not zero.
                return (self.lines_per_second > 0).then_some(second << LINE_BITS | 1);
            }
            (lines < self.lines_per_second).then_some(used + 1)
        };
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count_line).is_ok() {
            return Some(self.pending.swap(0, Ordering::Relaxed));
        }
        self.drop_line();
        None
    }

    /// Counts a line that is dropped for another reason.
    pub fn drop_line(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of lines dropped since the start.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Default for LogBudget {
    fn default() -> Self {
        Self::new(Self::LINES_PER_SECOND)
    }
}

/// The budgets of all plugins, by name. They outlive the plugins' versions.
#[derive(Debug, Default)]
pub struct LogBudgets(ArcSwap<HashMap<Box<str>, Arc<LogBudget>>>);

impl LogBudgets {
    /// The budget of a plugin. Instances keep it.
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
        // Another thread may have inserted a budget first; `all` is the map before the update.
        all.get(plugin).map_or(budget, Arc::clone)
    }

    /// Number of lines dropped since the start for each plugin, by name.
    #[must_use]
    pub fn dropped(&self) -> Vec<(String, u64)> {
        self.0.load().iter().map(|(plugin, budget)| (plugin.to_string(), budget.dropped())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_over_the_budget_are_counted_with_the_next_line() {
        let budget = LogBudget::default();
        let written = (0..250).filter(|n| budget.take(Timestamp(5_000 + n)).is_some()).count();
        assert_eq!(written, 100);
        assert_eq!(budget.dropped(), 150);
        assert_eq!(budget.take(Timestamp(6_000)), Some(150));
        assert_eq!(budget.take(Timestamp(6_001)), Some(0));
    }

    #[test]
    fn threads_across_a_second_boundary_share_the_budget() {
        let budget = LogBudget::default();
        let written = (0..500).filter(|n| budget.take(Timestamp(5_999 + n % 2)).is_some()).count();
        assert_eq!(written, 101, "one in the old second, then the budget of the new one");
    }

    #[test]
    fn setting_the_clock_back_does_not_silence_a_plugin() {
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
        assert_eq!(budgets.dropped().len(), 2);
    }
}

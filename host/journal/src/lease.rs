use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Until when this process may hand messages to links.
///
/// In a cluster, a leader that the others have given up for dead may still have commands on its way to links. Each
/// append that succeeds extends its lease; without one, the lease ends, and its links write nothing until an append
/// succeeds again. A new leader sends nothing again that the previous one may still send. No promise of durability rests on
/// this clock, only who sends a message for which an answer is missing.
///
/// The clock is `CLOCK_BOOTTIME`, so that a suspended machine wakes up without a lease.
#[derive(Debug)]
pub struct LeaderLease {
    /// Milliseconds of the clock; `u64::MAX` never ends.
    until: AtomicU64,
}

/// A moment of the clock of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(u64);

impl BootTime {
    /// The present.
    #[must_use]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let (seconds, nanos) =
            (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
        Self(seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000))
    }
}

impl LeaderLease {
    /// The time between the start of an append that succeeds and the end of the lease.
    pub const DURATION: Duration = Duration::from_millis(1500);
    /// How long after its claim a new leader sends nothing again that the previous one may still send: the lease, and a
    /// tenth for clocks of different speed.
    pub const AFTER_CLAIM: Duration = Duration::from_millis(1650);

    /// The lease of an appliance without a cluster: it never ends.
    #[must_use]
    pub const fn alone() -> Self {
        Self { until: AtomicU64::new(u64::MAX) }
    }

    /// A lease that has ended.
    #[must_use]
    pub const fn ended() -> Self {
        Self { until: AtomicU64::new(0) }
    }

    /// Extends the lease after an append that began at `begun` has succeeded.
    pub fn extend(&self, begun: BootTime) {
        let until = begun.0.saturating_add(u64::try_from(Self::DURATION.as_millis()).unwrap_or(0));
        self.until.fetch_max(until, Ordering::Release);
    }

    /// Whether messages may be handed to links now.
    #[must_use]
    pub fn holds(&self) -> bool {
        let until = self.until.load(Ordering::Acquire);
        // Most appliances have no cluster: they ask no clock.
        until == u64::MAX || BootTime::now().0 < until
    }
}

impl Default for LeaderLease {
    fn default() -> Self {
        Self::alone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_unless_it_is_extended() {
        assert!(LeaderLease::alone().holds());
        let lease = LeaderLease::ended();
        assert!(!lease.holds());
        let now = BootTime::now();
        lease.extend(BootTime(now.0.saturating_sub(1500)));
        assert!(!lease.holds());
        lease.extend(BootTime(now.0 + 3_600_000));
        lease.extend(now);
        assert!(lease.holds(), "an older append does not shorten it");
    }
}

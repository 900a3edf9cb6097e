use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Lease under which this process may submit messages to links.
///
/// In a cluster, the other nodes may have declared a leader dead that still submits messages to links. Each successful
/// append extends the leader's lease. When the lease ends, its links write nothing until an append succeeds again. A
/// new leader does not submit again what the previous one may still be submitting. Durability does not depend on this
/// clock; it only decides which node submits a message whose answer is missing.
///
/// The clock is `CLOCK_BOOTTIME`, so a machine that wakes from suspension has no lease.
#[derive(Debug)]
pub struct LeaderLease {
    /// End of the lease in milliseconds of the clock; `u64::MAX` for a lease that never ends.
    until: AtomicU64,
}

/// A time of the lease clock, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(u64);

impl BootTime {
    /// The current time.
    #[must_use]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let (seconds, nanos) =
            (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
        Self(seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000))
    }
}

impl LeaderLease {
    /// Time from the start of a successful append to the end of the lease.
    pub const DURATION: Duration = Duration::from_millis(1500);
    /// Time after its claim during which a new leader submits nothing again that the previous one may still be
    /// submitting: the lease, plus 10 % for clocks of different speed.
    pub const AFTER_CLAIM: Duration = Duration::from_millis(1650);

    /// The lease of an appliance without a cluster: it never ends.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self { until: AtomicU64::new(u64::MAX) }
    }

    /// A lease that has ended.
    #[must_use]
    pub const fn ended() -> Self {
        Self { until: AtomicU64::new(0) }
    }

    /// Extends the lease after a successful append that began at `begun`.
    pub fn extend(&self, begun: BootTime) {
        let until = begun.0.saturating_add(u64::try_from(Self::DURATION.as_millis()).unwrap_or(0));
        self.until.fetch_max(until, Ordering::Release);
    }

    /// Whether messages may be submitted to links now.
    #[must_use]
    pub fn holds(&self) -> bool {
        let until = self.until.load(Ordering::Acquire);
        // Most appliances have no cluster: they need not read the clock.
        until == u64::MAX || BootTime::now().0 < until
    }
}

impl Default for LeaderLease {
    fn default() -> Self {
        Self::unlimited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_unless_it_is_extended() {
        assert!(LeaderLease::unlimited().holds());
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

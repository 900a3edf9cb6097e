//! Call counters of a plugin version.

use crate::fault::{Fault, FaultKind};
use crate::host_calls::{HostCallCounts, HostInterface};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Calls, faults and time of one generation. The histogram's buckets are powers of two of a microsecond, from 1.
#[derive(Debug, Clone, Default)]
pub struct CallCounts {
    /// Number of calls.
    pub calls: u64,
    /// Number of faults, in the order of [`FaultKind::ALL`].
    pub faults: [u64; 5],
    /// Total time, in nanoseconds.
    pub nanoseconds: u64,
    /// Number of calls shorter than 1, 2, 4 … 2^18 µs, and of longer ones.
    pub buckets: [u64; 20],
    /// Number of host calls, in the order of [`HostInterface::ALL`].
    pub host_calls: [u64; HostInterface::ALL.len()],
    /// The most linear memory that an instance has had, in octets.
    pub memory: u64,
    /// Number of log lines dropped because of the plugin's log budget.
    pub lines_left_out: u64,
}

impl CallCounts {
    /// Adds the counts of another generation; `memory` becomes the maximum of the two.
    pub fn add(&mut self, other: &Self) {
        let add = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        self.calls += other.calls;
        self.nanoseconds += other.nanoseconds;
        self.lines_left_out += other.lines_left_out;
        self.memory = self.memory.max(other.memory);
        add(&mut self.faults, &other.faults);
        add(&mut self.buckets, &other.buckets);
        add(&mut self.host_calls, &other.host_calls);
    }
}

#[derive(Debug, Default)]
pub(crate) struct AtomicCallCounts {
    calls: AtomicU64,
    faults: [AtomicU64; 5],
    nanoseconds: AtomicU64,
    buckets: [AtomicU64; 20],
    host_calls: [AtomicU64; HostInterface::ALL.len()],
    /// Shared with the memory limits of the instances.
    pub(crate) memory: Arc<AtomicU64>,
}

impl AtomicCallCounts {
    /// Adds the host calls of an instance, and clears its counts.
    pub(crate) fn add_host_calls(&self, counts: &mut HostCallCounts) {
        for (total, count) in self.host_calls.iter().zip(counts) {
            if *count > 0 {
                total.fetch_add(u64::from(std::mem::take(count)), Relaxed);
            }
        }
    }

    pub(crate) fn call(&self, taken: Duration, fault: Option<&Fault>) {
        let nanoseconds = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX);
        self.calls.fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Relaxed);
        let bucket = (u64::BITS - (nanoseconds / 1000).leading_zeros()).min(19) as usize;
        self.buckets[bucket].fetch_add(1, Relaxed);
        if let Some(fault) = fault {
            let index = FaultKind::ALL.iter().position(|kind| *kind == fault.kind).unwrap_or(0);
            self.faults[index].fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn read(&self) -> CallCounts {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        CallCounts {
            calls: load(&self.calls),
            faults: std::array::from_fn(|index| load(&self.faults[index])),
            nanoseconds: load(&self.nanoseconds),
            buckets: std::array::from_fn(|index| load(&self.buckets[index])),
            host_calls: std::array::from_fn(|index| load(&self.host_calls[index])),
            memory: load(&self.memory),
            lines_left_out: 0,
        }
    }
}

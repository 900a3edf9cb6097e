use super::{FetchFailure, Response};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What became of a plugin's requests since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct FetchMetrics {
    /// Answered, with whatever status.
    pub answered: u64,
    /// Not granted, or senseless.
    pub not_allowed: u64,
    /// No answer in time.
    pub timed_out: u64,
    /// The answer was too large.
    pub too_large: u64,
    /// No connection, or it broke.
    pub unreachable: u64,
    /// One more than may be on their way at a time.
    pub busy: u64,
    /// Octets of answers that were given to the plugin.
    pub octets: u64,
    /// On their way now.
    pub under_way: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    answered: AtomicU64,
    not_allowed: AtomicU64,
    timed_out: AtomicU64,
    too_large: AtomicU64,
    unreachable: AtomicU64,
    busy: AtomicU64,
    octets: AtomicU64,
    pub(super) under_way: AtomicUsize,
}

impl Counts {
    pub(super) fn count(&self, result: &Result<Response, FetchFailure>) {
        let counter = match result {
            Ok(response) => {
                self.octets.fetch_add(response.body.len() as u64, Ordering::Relaxed);
                &self.answered
            }
            Err(FetchFailure::NotAllowed(_)) => &self.not_allowed,
            Err(FetchFailure::TimedOut) => &self.timed_out,
            Err(FetchFailure::TooLarge) => &self.too_large,
            Err(FetchFailure::Unreachable(_)) => &self.unreachable,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_busy(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> FetchMetrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FetchMetrics {
            answered: read(&self.answered),
            not_allowed: read(&self.not_allowed),
            timed_out: read(&self.timed_out),
            too_large: read(&self.too_large),
            unreachable: read(&self.unreachable),
            busy: read(&self.busy),
            octets: read(&self.octets),
            under_way: self.under_way.load(Ordering::Relaxed) as u64,
        }
    }
}

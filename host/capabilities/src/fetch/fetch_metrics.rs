use super::{FetchFailure, FetchResponse};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts of a plugin's requests since the start, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct FetchMetrics {
    /// Answered, with any status.
    pub answered: u64,
    /// Not granted, or malformed.
    pub not_allowed: u64,
    /// Timed out.
    pub timed_out: u64,
    /// The response was too large.
    pub too_large: u64,
    /// The connection failed, or was lost.
    pub unreachable: u64,
    /// Refused because of the limit of concurrent requests.
    pub busy: u64,
    /// Octets of responses that the plugin received.
    pub octets: u64,
    /// Requests in flight now.
    pub in_flight: u64,
}

#[derive(Debug, Default)]
pub(super) struct FetchCounts {
    answered: AtomicU64,
    not_allowed: AtomicU64,
    timed_out: AtomicU64,
    too_large: AtomicU64,
    unreachable: AtomicU64,
    busy: AtomicU64,
    octets: AtomicU64,
    pub(super) in_flight: AtomicUsize,
}

impl FetchCounts {
    pub(super) fn count(&self, result: &Result<FetchResponse, FetchFailure>) {
        let counter = match result {
            Ok(response) => {
                self.octets.fetch_add(response.body.len() as u64, Ordering::Relaxed);
                &self.answered
            }
            Err(FetchFailure::NotAllowed(_)) => &self.not_allowed,
            Err(FetchFailure::TimedOut) => &self.timed_out,
            Err(FetchFailure::TooLarge) => &self.too_large,
            Err(FetchFailure::NotConnected(_) | FetchFailure::Unreachable(_)) => &self.unreachable,
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
            in_flight: self.in_flight.load(Ordering::Relaxed) as u64,
        }
    }
}

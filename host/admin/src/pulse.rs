//! The last minutes, in samples: what live charts are drawn from.

use crate::api::{Appliance, Shared, call};
use crate::problem::Problem;
use axum::Json;
use axum::extract::Extension;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::MissedTickBehavior;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How often a sample is taken.
const EVERY: Duration = Duration::from_secs(2);
/// How many are kept: ten minutes.
const MOST: usize = 300;
/// Links are asked for with every so many samples: there may be ten thousand of them.
const LINKS_EVERY: u64 = 5;

/// How the appliance was at one moment. Counts are since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct Sample {
    /// Milliseconds since the epoch.
    at: u64,
    /// Messages taken.
    accepted: u64,
    /// Submissions refused.
    refused: u64,
    /// Hand-overs to peers.
    submitted: u64,
    /// Messages that ended well: delivered, or relayed where no receipt was to come.
    delivered: u64,
    /// Messages that ended otherwise, cancelled ones apart.
    failed: u64,
    /// Messages that have not ended.
    waiting: u64,
    /// Transactions.
    commits: u64,
    /// Microseconds that they took together.
    commit_us: u64,
    /// Smoothed time to an answer, in microseconds, as the mean of all links that are up; nothing where none is, or none has
    /// answered yet.
    #[schema(required)]
    round_trip_us: Option<u64>,
}

/// The last minutes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct Minutes {
    /// Milliseconds from one sample to the next.
    every_ms: u64,
    /// Samples that are kept.
    most: usize,
    /// Oldest first.
    samples: Vec<Sample>,
}

/// Takes samples, as long as there is an appliance.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<VecDeque<Sample>>);

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(pulse))
}

/// The last ten minutes in samples: throughput, failures, what waits, latency.
#[utoipa::path(get, path = "/v1/pulse", responses((status = 200, description = "Samples, oldest first.", body = Minutes)))]
async fn pulse(Extension(pulse): Extension<Arc<Pulse>>) -> Json<Minutes> {
    let samples = pulse.0.lock().iter().cloned().collect();
    Json(Minutes { every_ms: EVERY.as_millis() as u64, most: MOST, samples })
}

impl Pulse {
    /// Begins to take samples; does nothing where no runtime is, as in a test of routes.
    pub(crate) fn begin(appliance: &Shared) -> Arc<Self> {
        let pulse = Arc::new(Self::default());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(beat(Arc::downgrade(&pulse), Arc::downgrade(appliance)));
        }
        pulse
    }

    fn add(&self, sample: Sample) {
        let mut samples = self.0.lock();
        if samples.len() == MOST {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

async fn beat(pulse: Weak<Pulse>, appliance: Weak<dyn Appliance>) {
    let mut clock = tokio::time::interval(EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut round_trip = None;
    for turn in 0_u64.. {
        clock.tick().await;
        let (Some(pulse), Some(appliance)) = (pulse.upgrade(), appliance.upgrade()) else { return };
        let with_links = turn.is_multiple_of(LINKS_EVERY);
        let taken = call(appliance, move |appliance| take(appliance, with_links)).await;
        // Shutting down, or a store that cannot be read: others say so.
        if let Ok((mut sample, answered)) = taken {
            if with_links {
                round_trip = answered;
            }
            sample.round_trip_us = round_trip;
            pulse.add(sample);
        }
    }
}

fn take(appliance: &dyn Appliance, with_links: bool) -> Result<(Sample, Option<u64>), Problem> {
    let status = appliance.status()?;
    let total = |names: &[&str]| names.iter().filter_map(|name| status.totals.get(name)).sum();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let sample = Sample {
        at: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        accepted: total(&["accepted"]),
        refused: total(&["refused"]),
        submitted: total(&["submitted"]),
        delivered: total(&["delivered", "relayed"]),
        failed: total(&["failed", "expired", "rejected", "unknown"]),
        waiting: status.waiting,
        commits: total(&["commits"]),
        commit_us: total(&["commit_us"]),
        round_trip_us: None,
    };
    let round_trip =
        if with_links { mean(appliance.links().iter().filter_map(|link| link.round_trip_us)) } else { None };
    Ok((sample, round_trip))
}

fn mean(all: impl Iterator<Item = u64>) -> Option<u64> {
    let (sum, count) = all.fold((0_u64, 0_u64), |(sum, count), one| (sum.saturating_add(one), count + 1));
    sum.checked_div(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_sample_goes_first_and_there_are_never_too_many() {
        let pulse = Pulse::default();
        for at in 0..MOST as u64 + 7 {
            pulse.add(Sample { at, ..Sample::default() });
        }
        let samples = pulse.0.lock();
        assert_eq!((samples.len(), samples[0].at), (MOST, 7));
    }

    #[test]
    fn the_mean_of_nothing_is_not_known() {
        assert_eq!((mean([].into_iter()), mean([2, 4].into_iter())), (None, Some(3)));
    }
}

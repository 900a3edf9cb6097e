//! Samples of the last ten minutes, for live charts.

use crate::cluster::ClusterLeader;
use crate::hook_calls::HookSamples;
use crate::metrics_history::MetricsHistory;
use crate::overview::Overview;
use crate::plugins::Plugins;
use crate::problem::Problem;
use crate::service::{Service, call};
use api::{
    HistoryRange, HookCallsIntervalView, HookTrafficView, MetricsHistoryView, MetricsSampleView,
    RecentMetricsView,
};
use axum::Json;
use axum::extract::Extension;
use model::{Hook, Timestamp};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Interval of samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of samples: ten minutes.
const CAPACITY: usize = 300;
/// Links and hooks are read only for every fifth sample: there may be ten thousand links.
const LINKS_EVERY_SAMPLES: u64 = 5;

/// Takes samples until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct MetricsSampler {
    samples: Mutex<VecDeque<MetricsSampleView>>,
    hooks: Mutex<HookSamples>,
    history: MetricsHistory,
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(recent_metrics))
}

/// Returns samples of the last ten minutes: throughput, failures, waiting messages, latency.
#[utoipa::path(get, path = "/v1/metrics/recent", responses((status = 200, description = "The samples, oldest first.", body = RecentMetricsView)))]
async fn recent_metrics(Extension(sampler): Extension<Arc<MetricsSampler>>) -> Json<RecentMetricsView> {
    let samples = sampler.samples.lock().iter().cloned().collect();
    Json(RecentMetricsView { interval_ms: SAMPLE_INTERVAL.as_millis() as u64, capacity: CAPACITY, samples })
}

impl MetricsSampler {
    /// Starts the sampler. `folder` contains the metrics history. Without a tokio runtime (in tests of routes), it
    /// takes no samples.
    pub(crate) fn start(
        overview: Arc<dyn Overview>,
        plugins: Arc<dyn Plugins>,
        cluster: &dyn ClusterLeader,
        folder: &Path,
    ) -> Arc<Self> {
        let sampler = Arc::new(Self { history: MetricsHistory::open(folder), ..Self::default() });
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let term = cluster.cluster().map(|cluster| cluster.term);
            sampler.history.note_start(Timestamp::now().0, term);
            runtime.spawn(sample_loop(Arc::downgrade(&sampler), Service(overview), Service(plugins)));
        }
        sampler
    }

    /// The period that the hook samples cover, in milliseconds, and the hooks' traffic in it.
    pub(crate) fn hook_traffic(&self) -> (u64, Vec<HookTrafficView>) {
        self.hooks.lock().traffic()
    }

    /// The calls of a hook over the last hour, oldest interval first.
    pub(crate) fn hook_calls(&self, hook: Hook) -> Vec<HookCallsIntervalView> {
        self.hooks.lock().intervals(hook)
    }

    /// The history of a range that ends at `now`, with the starts of the daemon.
    pub(crate) fn history(&self, range: HistoryRange, now: u64) -> MetricsHistoryView {
        self.history.view(range, now)
    }

    fn push(&self, sample: MetricsSampleView) {
        let mut samples = self.samples.lock();
        if samples.len() == CAPACITY {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}

async fn sample_loop(
    sampler: Weak<MetricsSampler>,
    overview: Service<dyn Overview>,
    plugins: Service<dyn Plugins>,
) {
    let mut clock = tokio::time::interval(SAMPLE_INTERVAL);
    clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut round_trip = None;
    for index in 0_u64.. {
        clock.tick().await;
        let Some(sampler) = sampler.upgrade() else { return };
        let with_links = index.is_multiple_of(LINKS_EVERY_SAMPLES);
        if with_links && let Ok(hooks) = call(plugins.clone(), |plugins| Ok(plugins.hooks())).await {
            sampler.hooks.lock().push(Timestamp::now().0, &hooks);
        }
        let sampled = call(overview.clone(), move |overview| take_sample(overview, with_links)).await;
        // The daemon is shutting down, or the store cannot be read; other components report that.
        if let Ok((mut sample, answered)) = sampled {
            if with_links {
                round_trip = answered;
            }
            sample.round_trip_us = round_trip;
            let before = sampler.samples.lock().back().cloned();
            if let Some(before) = before {
                sampler.history.add(&before, &sample);
            }
            sampler.push(sample);
        }
    }
}

fn take_sample(
    overview: &dyn Overview,
    with_links: bool,
) -> Result<(MetricsSampleView, Option<u64>), Problem> {
    let status = overview.status()?;
    let totals = &status.totals;
    let sample = MetricsSampleView {
        at: Timestamp::now().0,
        accepted: totals.accepted,
        refused: totals.refused,
        submitted: totals.submitted,
        delivered: totals.delivered + totals.relayed,
        failed: totals.failed + totals.expired + totals.rejected + totals.unknown,
        waiting: status.waiting,
        commits: totals.commits,
        commit_us: totals.commit_us,
        round_trip_us: None,
    };
    let round_trip =
        if with_links { mean(overview.links().iter().filter_map(|link| link.round_trip_us)) } else { None };
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
    fn oldest_samples_are_dropped_at_capacity() {
        let sampler = MetricsSampler::default();
        for at in 0..CAPACITY as u64 + 7 {
            sampler.push(MetricsSampleView { at, ..MetricsSampleView::default() });
        }
        let samples = sampler.samples.lock();
        assert_eq!((samples.len(), samples[0].at), (CAPACITY, 7));
    }

    #[test]
    fn mean_of_no_values_is_none() {
        assert_eq!((mean([].into_iter()), mean([2, 4].into_iter())), (None, Some(3)));
    }
}

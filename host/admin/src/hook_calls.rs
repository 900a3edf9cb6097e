//! Plugin calls by hook: of the last minute for the traffic map, and of the last hour for the page of a hook.

use crate::plugins::Plugins;
use crate::problem::Problem;
use crate::recent_metrics::MetricsSampler;
use crate::request::PathParams;
use crate::service::{Provides, Service, call};
use api::{
    CallSumView, HookCallsIntervalView, HookCallsView, HookStateView, HookTrafficView, PluginCountsView,
};
use axum::Json;
use axum::extract::Extension;
use model::Hook;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Samples per minute: six intervals of ten seconds.
const MINUTE_SAMPLES: usize = 7;
/// Every third sample is kept for an hour.
const HOUR_EVERY: u64 = 3;
/// Length of an interval of the last hour, in milliseconds.
const HOUR_INTERVAL_MS: u64 = 30_000;
/// Intervals of the last hour.
const HOUR_INTERVALS: usize = 120;

pub(crate) fn routes<S: Provides<dyn Plugins>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(hook_calls))
}

/// Shows calls, faults and durations of a hook's live chain and candidate over the last hour.
#[utoipa::path(
    get,
    path = "/v1/hooks/{hook}/calls",
    params(("hook" = String, Path, description = "screen, lookup, router, resolver, delivery-policy, receipt, biller, peer or front-end.")),
    responses((status = 200, description = "The intervals, oldest first.", body = HookCallsView)),
)]
async fn hook_calls(
    backend: Service<dyn Plugins>,
    Extension(sampler): Extension<Arc<MetricsSampler>>,
    PathParams(hook): PathParams<String>,
) -> Result<Json<HookCallsView>, Problem> {
    let hook = call(backend, move |backend| Ok(backend.hook(&hook)?.hook)).await?;
    Ok(Json(HookCallsView {
        hook,
        interval_ms: HOUR_INTERVAL_MS,
        capacity: HOUR_INTERVALS,
        intervals: sampler.hook_calls(hook),
    }))
}

/// A plugin version at a hook, in the live chain or in the candidate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SampledVersion {
    hook: Hook,
    plugin: String,
    version: String,
    live: bool,
}

/// Counts since the start of each version.
type HookSample = HashMap<SampledVersion, CallSumView>;

/// Samples of the counts of all hooks, by time in milliseconds since the epoch.
#[derive(Debug, Default)]
pub(crate) struct HookSamples {
    minute: VecDeque<(u64, HookSample)>,
    hour: VecDeque<(u64, HookSample)>,
    taken: u64,
}

fn sample(hooks: &[HookStateView]) -> HookSample {
    let mut sample = HookSample::new();
    let mut add = |hook: Hook, live: bool, counts: &[PluginCountsView]| {
        for one in counts {
            let (plugin, version) = (one.plugin.clone(), one.version.clone());
            let sum = sample.entry(SampledVersion { hook, plugin, version, live }).or_default();
            sum.calls += one.calls;
            sum.faults += one.faults.total();
            sum.nanoseconds += one.nanoseconds;
        }
    };
    for hook in hooks {
        add(hook.hook, true, &hook.counts);
        add(hook.hook, false, hook.candidate.as_ref().map_or(&[], |candidate| &candidate.counts));
    }
    sample
}

/// The calls of a hook's live chain or candidate between two samples.
fn difference(first: &HookSample, last: &HookSample, hook: Hook, live: bool) -> CallSumView {
    let mut sum = CallSumView::default();
    for (version, now) in last.iter().filter(|(version, _)| version.hook == hook && version.live == live) {
        // A version's counts begin at 0 when it starts, and continue when a candidate is promoted.
        let as_other = || first.get(&SampledVersion { live: !live, ..version.clone() });
        let before = first.get(version).or_else(as_other).copied();
        let before = before.filter(|before| before.calls <= now.calls).unwrap_or_default();
        sum.calls += now.calls - before.calls;
        sum.faults += now.faults.saturating_sub(before.faults);
        sum.nanoseconds += now.nanoseconds.saturating_sub(before.nanoseconds);
    }
    sum
}

impl HookSamples {
    /// Adds a sample, ten seconds after the previous one.
    pub(crate) fn push(&mut self, at: u64, hooks: &[HookStateView]) {
        let sample = sample(hooks);
        if self.taken.is_multiple_of(HOUR_EVERY) {
            if self.hour.len() > HOUR_INTERVALS {
                self.hour.pop_front();
            }
            self.hour.push_back((at, sample.clone()));
        }
        self.taken += 1;
        if self.minute.len() == MINUTE_SAMPLES {
            self.minute.pop_front();
        }
        self.minute.push_back((at, sample));
    }

    /// The period that the samples of the last minute cover, in milliseconds, and the traffic of live chains in it.
    pub(crate) fn traffic(&self) -> (u64, Vec<HookTrafficView>) {
        let (Some((begun, first)), Some((ended, last))) = (self.minute.front(), self.minute.back()) else {
            return (0, Vec::new());
        };
        let is_live = |hook: &Hook| last.keys().any(|version| version.hook == *hook && version.live);
        let traffic = Hook::ALL.into_iter().filter(is_live).map(|hook| {
            let CallSumView { calls, faults, nanoseconds } = difference(first, last, hook, true);
            HookTrafficView { hook, calls, faults, nanoseconds, waiting: 0 }
        });
        (ended.saturating_sub(*begun), traffic.collect())
    }

    /// A hook's intervals of the last hour, oldest first.
    pub(crate) fn intervals(&self, hook: Hook) -> Vec<HookCallsIntervalView> {
        let pairs = self.hour.iter().zip(self.hour.iter().skip(1));
        pairs
            .map(|((_, first), (at, last))| HookCallsIntervalView {
                at: *at,
                live: difference(first, last, hook, true),
                candidate: difference(first, last, hook, false),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_api::fixtures;

    #[test]
    fn hook_traffic_is_the_difference_of_the_counts_of_each_version() {
        let mut samples = HookSamples::default();
        assert_eq!(samples.traffic(), (0, Vec::new()));
        for turn in 0..10 {
            samples.push(turn * 10_000, &[fixtures::router(100 + turn * 5, 1_000 + turn * 50)]);
        }
        let expected =
            HookTrafficView { hook: Hook::Router, calls: 30, faults: 0, nanoseconds: 300, waiting: 0 };
        assert_eq!(samples.traffic(), (60_000, vec![expected]));
        // Another version was activated.
        let mut exchanged = fixtures::router(7, 70);
        exchanged.counts.iter_mut().for_each(|counts| counts.version = "other".to_owned());
        samples.push(100_000, &[exchanged]);
        assert_eq!(samples.traffic().1[0].calls, 7);
    }

    #[test]
    fn an_hour_is_kept_and_a_promotion_counts_no_call_twice() {
        let mut samples = HookSamples::default();
        assert!(samples.intervals(Hook::Router).is_empty());
        for turn in 0..500 {
            samples.push(turn * 10_000, &[fixtures::router(turn * 5, turn * 50)]);
        }
        let intervals = samples.intervals(Hook::Router);
        assert_eq!(intervals.len(), HOUR_INTERVALS);
        let each = CallSumView { calls: 15, faults: 0, nanoseconds: 150 };
        assert!(intervals.iter().all(|one| one.live == each && one.candidate == CallSumView::default()));

        let state = |live: bool, calls: u64| {
            let counts = CallSumView { calls, faults: 0, nanoseconds: calls };
            let version = SampledVersion {
                hook: Hook::Router,
                plugin: "router".to_owned(),
                version: "b".to_owned(),
                live,
            };
            HookSample::from([(version, counts)])
        };
        let promoted = difference(&state(false, 100), &state(true, 107), Hook::Router, true);
        assert_eq!(promoted.calls, 7);
    }
}

//! The API of the traffic of the last minute.

use crate::problem::Problem;
use crate::recent_metrics::MetricsSampler;
use crate::request::{QueryParams, page_limit};
use crate::service::{Provides, Service, call};
use api::{HookStateView, HookTrafficView, TrafficView};
use axum::Json;
use axum::extract::Extension;
use model::Hook;
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The default limit of flows.
const DEFAULT_FLOWS: usize = 1_000;
/// The maximum limit of flows.
const MAX_FLOWS: usize = 20_000;
/// Samples of hooks: six intervals of ten seconds.
const HOOK_SAMPLES: usize = 7;

/// The traffic of the last minute.
pub trait RecentTraffic: Send + Sync + 'static {
    /// The busiest submitters and flows first; without hooks.
    fn traffic(&self) -> TrafficView;
    /// Messages that wait at hooks: in quarantine, or for the answer of a plugin.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn waiting_at_hooks(&self) -> Result<Vec<(Hook, u64)>, Problem>;
}

pub(crate) fn routes<S: Provides<dyn RecentTraffic>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(traffic))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TrafficQuery {
    /// Maximum number of flows; default 1,000.
    #[param(minimum = 1, maximum = 20_000)]
    limit: Option<usize>,
}

/// Shows the traffic of the last minute: messages by submitter, submit attempts by submitter and peer, plugin calls by hook.
#[utoipa::path(
    get,
    path = "/v1/traffic",
    params(TrafficQuery),
    responses((status = 200, description = "The traffic of the last minute.", body = TrafficView)),
)]
async fn traffic(
    backend: Service<dyn RecentTraffic>,
    Extension(sampler): Extension<Arc<MetricsSampler>>,
    QueryParams(query): QueryParams<TrafficQuery>,
) -> Result<Json<TrafficView>, Problem> {
    let limit = page_limit(Some(query.limit.unwrap_or(DEFAULT_FLOWS)), MAX_FLOWS)?;
    let (mut traffic, waiting) =
        call(backend, |backend| Ok((backend.traffic(), backend.waiting_at_hooks()?))).await?;
    traffic.flows_left_out = traffic.flows.len().saturating_sub(limit) as u64;
    traffic.flows.truncate(limit);
    (traffic.hooks_window_ms, traffic.hooks) = sampler.hook_traffic();
    for hook in &mut traffic.hooks {
        hook.waiting = waiting.iter().find(|(of, _)| *of == hook.hook).map_or(0, |(_, count)| *count);
    }
    Ok(Json(traffic))
}

/// Counts of a plugin version at a hook.
#[derive(Debug, Clone, Copy, Default)]
struct CallCounts {
    calls: u64,
    faults: u64,
    nanoseconds: u64,
}

/// Counts by hook, plugin and version.
type HookSample = HashMap<(Hook, String, String), CallCounts>;

/// The counts of the hooks in the last minute, by time in milliseconds since the epoch.
#[derive(Debug, Default)]
pub(crate) struct HookSamples(VecDeque<(u64, HookSample)>);

impl HookSamples {
    /// Adds a sample.
    pub(crate) fn push(&mut self, at: u64, hooks: &[HookStateView]) {
        let counts = hooks.iter().flat_map(|hook| hook.counts.iter().map(move |counts| (hook.hook, counts)));
        let sample = counts.map(|(hook, one)| {
            let counts =
                CallCounts { calls: one.calls, faults: one.faults.total(), nanoseconds: one.nanoseconds };
            ((hook, one.plugin.clone(), one.version.clone()), counts)
        });
        if self.0.len() == HOOK_SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back((at, sample.collect()));
    }

    /// The time that the samples cover, in milliseconds, and the traffic in that time.
    pub(crate) fn traffic(&self) -> (u64, Vec<HookTrafficView>) {
        let (Some((begun, first)), Some((ended, last))) = (self.0.front(), self.0.back()) else {
            return (0, Vec::new());
        };
        let hooks = Hook::ALL.into_iter().filter(|hook| last.keys().any(|(of, ..)| of == hook));
        let traffic = hooks.map(|hook| {
            let mut sum = HookTrafficView { hook, calls: 0, faults: 0, nanoseconds: 0, waiting: 0 };
            for (key, now) in last.iter().filter(|((of, ..), _)| *of == hook) {
                // Counts of a version begin at 0 when it is activated.
                let before = first.get(key).copied().filter(|before| before.calls <= now.calls);
                let before = before.unwrap_or_default();
                sum.calls += now.calls - before.calls;
                sum.faults += now.faults.saturating_sub(before.faults);
                sum.nanoseconds += now.nanoseconds.saturating_sub(before.nanoseconds);
            }
            sum
        });
        (ended.saturating_sub(*begun), traffic.collect())
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
}

//! The API of the traffic of the last minute.

use crate::problem::Problem;
use crate::recent_metrics::MetricsSampler;
use crate::request::{QueryParams, page_limit};
use crate::service::{Provides, Service, call};
use api::{HookTrafficView, TrafficView};
use axum::Json;
use axum::extract::Extension;
use model::Hook;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The default limit of flows.
const DEFAULT_FLOWS: usize = 1_000;
/// The maximum limit of flows.
const MAX_FLOWS: usize = 20_000;

/// The traffic of the last minute.
pub trait RecentTraffic: Send + Sync + 'static {
    /// The traffic, with the busiest submitters and flows first; without hooks.
    fn traffic(&self) -> TrafficView;
    /// Numbers of messages that wait at hooks: in quarantine, or for the answer of a plugin.
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
    (traffic.hooks_window_ms, traffic.hooks) = hook_traffic(&sampler, &waiting);
    Ok(Json(traffic))
}

/// Calls by hook, the period that they cover in milliseconds, and the messages that wait at each hook.
pub(crate) fn hook_traffic(sampler: &MetricsSampler, waiting: &[(Hook, u64)]) -> (u64, Vec<HookTrafficView>) {
    let (window_ms, mut hooks) = sampler.hook_traffic();
    for hook in &mut hooks {
        hook.waiting = waiting.iter().find(|(of, _)| *of == hook.hook).map_or(0, |(_, count)| *count);
    }
    (window_ms, hooks)
}

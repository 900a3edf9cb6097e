//! The API of the appliance's state: status, queues, links, business systems, core networks, metrics.

use crate::all_partitions::PartitionHeader;
use crate::authz::Scope;
use crate::problem::Problem;
use crate::request::{QueryParams, page_limit};
use crate::service::{Provides, Service, call, call_json};

use axum::Json;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Default number of links in a summary.
const DEFAULT_LINKS: usize = 8;
const MAX_LINKS: usize = 100;

/// State of the appliance.
pub trait Overview: Send + Sync + 'static {
    /// The appliance as a whole.
    ///
    /// # Errors
    /// If the store cannot be read, or the daemon is shutting down.
    fn status(&self) -> Result<api::StatusView, Problem>;
    /// All queues.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn queues(&self) -> Result<Vec<api::QueueView>, Problem>;
    /// All links.
    fn links(&self) -> Vec<api::LinkView>;
    /// Number of links that are up, and at most `limit` links: first the unbound ones, then those with most messages in
    /// flight.
    fn links_summary(&self, limit: usize) -> api::LinksSummaryView {
        api::LinksSummaryView::of(self.links(), limit)
    }
    /// Business systems: their calls and pushes.
    fn business(&self) -> Vec<api::BusinessView>;
    /// Plugin peers: submit attempts and callbacks.
    fn plugin_peers(&self) -> Vec<api::PluginPeerView>;
    /// Core networks: connections, MT and MO messages, HLR requests.
    fn gsm(&self) -> Vec<api::CoreNetworkView>;
    /// All metrics, in the text format of Prometheus.
    fn metrics(&self) -> String;
}

pub(crate) fn routes<S: Provides<dyn Overview>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(status))
        .routes(routes!(queues))
        .routes(routes!(links))
        .routes(routes!(links_summary))
        .routes(routes!(business))
        .routes(routes!(plugin_peers))
        .routes(routes!(gsm))
        .routes(routes!(metrics))
}

/// Shows the appliance as a whole: version, disk, recovery, totals.
#[utoipa::path(get, path = "/v1/status", params(PartitionHeader), responses((status = 200, description = "The current status.", body = api::StatusAnswer)))]
async fn status(backend: Service<dyn Overview>) -> Result<Json<api::StatusView>, Problem> {
    call_json(backend, Overview::status).await
}

/// Lists the queues of all peers and accounts, with the reason why each is blocked.
#[utoipa::path(get, path = "/v1/queues", params(PartitionHeader), responses((status = 200, description = "All queues.", body = api::QueuesAnswer)))]
async fn queues(backend: Service<dyn Overview>) -> Result<Json<Vec<api::QueueView>>, Problem> {
    call_json(backend, Overview::queues).await
}

/// Lists all links, with the reason why each is blocked.
#[utoipa::path(get, path = "/v1/links", params(PartitionHeader), responses((status = 200, description = "All links.", body = api::LinksAnswer)))]
async fn links(
    backend: Service<dyn Overview>,
    Scope(scope): Scope,
) -> Result<Json<Vec<api::LinkView>>, Problem> {
    call_json(backend, move |backend| {
        let mut links = backend.links();
        links.retain(|link| scope.has_account(&link.peer));
        Ok(links)
    })
    .await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LinksSummaryQuery {
    /// Maximum number of links; default 8.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// Counts the links by state, and lists some: first the links that are down, then the links with most messages in
/// flight.
#[utoipa::path(
    get,
    path = "/v1/links/summary",
    params(LinksSummaryQuery),
    responses((status = 200, description = "The summary.", body = api::LinksSummaryView)),
)]
async fn links_summary(
    backend: Service<dyn Overview>,
    QueryParams(query): QueryParams<LinksSummaryQuery>,
) -> Result<Json<api::LinksSummaryView>, Problem> {
    let limit = page_limit(Some(query.limit.unwrap_or(DEFAULT_LINKS)), MAX_LINKS)?;
    call_json(backend, move |backend| Ok(backend.links_summary(limit))).await
}

/// Lists the business systems with their calls and pushes.
#[utoipa::path(get, path = "/v1/business", responses((status = 200, description = "All business systems.", body = Vec<api::BusinessView>)))]
async fn business(backend: Service<dyn Overview>) -> Result<Json<Vec<api::BusinessView>>, Problem> {
    call_json(backend, |backend| Ok(backend.business())).await
}

/// Lists the peers whose protocol a plugin implements, with their submit attempts and callbacks.
#[utoipa::path(get, path = "/v1/plugin-peers", responses((status = 200, description = "All peers with a plugin.", body = Vec<api::PluginPeerView>)))]
async fn plugin_peers(backend: Service<dyn Overview>) -> Result<Json<Vec<api::PluginPeerView>>, Problem> {
    call_json(backend, |backend| Ok(backend.plugin_peers())).await
}

/// Lists the GSM core networks: connections, MT and MO messages, HLR requests.
#[utoipa::path(get, path = "/v1/gsm", responses((status = 200, description = "All core networks.", body = Vec<api::CoreNetworkView>)))]
async fn gsm(backend: Service<dyn Overview>) -> Result<Json<Vec<api::CoreNetworkView>>, Problem> {
    call_json(backend, |backend| Ok(backend.gsm())).await
}

/// Returns the metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "The metrics, in the Prometheus text format.", body = String, content_type = "text/plain")),
)]
async fn metrics(backend: Service<dyn Overview>) -> Result<impl IntoResponse, Problem> {
    let page = call(backend, |backend| Ok(backend.metrics())).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page))
}

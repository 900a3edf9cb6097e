//! The API of the appliance's state: status, queues, links, business systems, core networks, metrics.

use crate::backend::{ApiBackend, SharedBackend, call, call_json};
use crate::problem::Problem;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<SharedBackend> {
    OpenApiRouter::new()
        .routes(routes!(status))
        .routes(routes!(queues))
        .routes(routes!(links))
        .routes(routes!(business))
        .routes(routes!(plugin_peers))
        .routes(routes!(gsm))
        .routes(routes!(metrics))
}

/// Shows the appliance as a whole: version, disk, recovery, totals.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, description = "The current status.", body = api::StatusView)))]
async fn status(State(backend): State<SharedBackend>) -> Result<Json<api::StatusView>, Problem> {
    call_json(backend, ApiBackend::status).await
}

/// Lists the queues of all peers and accounts, with the reason why each is blocked.
#[utoipa::path(get, path = "/v1/queues", responses((status = 200, description = "All queues.", body = Vec<api::QueueView>)))]
async fn queues(State(backend): State<SharedBackend>) -> Result<Json<Vec<api::QueueView>>, Problem> {
    call_json(backend, ApiBackend::queues).await
}

/// Lists all links, with the reason why each is blocked.
#[utoipa::path(get, path = "/v1/links", responses((status = 200, description = "All links.", body = Vec<api::LinkView>)))]
async fn links(State(backend): State<SharedBackend>) -> Result<Json<Vec<api::LinkView>>, Problem> {
    call_json(backend, |backend| Ok(backend.links())).await
}

/// Lists the business systems with their calls and pushes.
#[utoipa::path(get, path = "/v1/business", responses((status = 200, description = "All business systems.", body = Vec<api::BusinessView>)))]
async fn business(State(backend): State<SharedBackend>) -> Result<Json<Vec<api::BusinessView>>, Problem> {
    call_json(backend, |backend| Ok(backend.business())).await
}

/// Lists the peers whose protocol a plugin speaks, with their submit attempts and callbacks.
#[utoipa::path(get, path = "/v1/plugin-peers", responses((status = 200, description = "All peers with a plugin.", body = Vec<api::PluginPeerView>)))]
async fn plugin_peers(
    State(backend): State<SharedBackend>,
) -> Result<Json<Vec<api::PluginPeerView>>, Problem> {
    call_json(backend, |backend| Ok(backend.plugin_peers())).await
}

/// Lists the GSM core networks: connections, MT and MO messages, HLR requests.
#[utoipa::path(get, path = "/v1/gsm", responses((status = 200, description = "All core networks.", body = Vec<api::CoreNetworkView>)))]
async fn gsm(State(backend): State<SharedBackend>) -> Result<Json<Vec<api::CoreNetworkView>>, Problem> {
    call_json(backend, |backend| Ok(backend.gsm())).await
}

/// Returns the metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "The metrics, in the Prometheus text format.", body = String, content_type = "text/plain")),
)]
async fn metrics(State(backend): State<SharedBackend>) -> Result<impl IntoResponse, Problem> {
    let page = call(backend, |backend| Ok(backend.metrics())).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page))
}

//! The appliance as a whole: state, queues, links, doors, metrics.

use crate::api::{Appliance, Shared, answer, call};
use crate::problem::Problem;
use crate::view;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(status))
        .routes(routes!(queues))
        .routes(routes!(links))
        .routes(routes!(business))
        .routes(routes!(gsm))
        .routes(routes!(metrics))
}

/// The appliance as a whole: version, disk, recovery, totals.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, description = "As it is now.", body = view::Status)))]
async fn status(State(appliance): State<Shared>) -> Result<Json<view::Status>, Problem> {
    answer(appliance, Appliance::status).await
}

/// Every peer's and account's queue, with its brake.
#[utoipa::path(get, path = "/v1/queues", responses((status = 200, description = "All of them.", body = Vec<view::Queue>)))]
async fn queues(State(appliance): State<Shared>) -> Result<Json<Vec<view::Queue>>, Problem> {
    answer(appliance, Appliance::queues).await
}

/// Every link, with its brake.
#[utoipa::path(get, path = "/v1/links", responses((status = 200, description = "All of them.", body = Vec<view::Link>)))]
async fn links(State(appliance): State<Shared>) -> Result<Json<Vec<view::Link>>, Problem> {
    answer(appliance, |appliance| Ok(appliance.links())).await
}

/// Business systems: their calls and pushes.
#[utoipa::path(get, path = "/v1/business", responses((status = 200, description = "All of them.", body = Vec<view::Business>)))]
async fn business(State(appliance): State<Shared>) -> Result<Json<Value>, Problem> {
    answer(appliance, |appliance| Ok(appliance.business())).await
}

/// GSM core networks: connections, short messages to and from handsets, questions to the HLR.
#[utoipa::path(get, path = "/v1/gsm", responses((status = 200, description = "All of them.", body = Vec<view::CoreNetwork>)))]
async fn gsm(State(appliance): State<Shared>) -> Result<Json<Value>, Problem> {
    answer(appliance, |appliance| Ok(appliance.gsm())).await
}

/// Metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "Its text format.", body = String, content_type = "text/plain")),
)]
async fn metrics(State(appliance): State<Shared>) -> Result<impl IntoResponse, Problem> {
    let page = call(appliance, |appliance| Ok(appliance.metrics())).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page))
}

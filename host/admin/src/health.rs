//! For everyone: whether the appliance lives, and what its API is.

use crate::api::Shared;
use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(description))
}

/// That all is well.
#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
}

/// Whether the process answers.
#[utoipa::path(get, path = "/v1/health", responses((status = 200, description = "It does.", body = Health)))]
async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// This document.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    responses((status = 200, description = "An OpenAPI 3.1 document.", body = serde_json::Value)),
)]
async fn description() -> Json<&'static serde_json::Value> {
    Json(crate::openapi::whole())
}

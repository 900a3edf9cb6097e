//! Public operations: health, and the OpenAPI document.

use api::Health;
use axum::Json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(description))
}

/// Checks that the daemon answers.
#[utoipa::path(get, path = "/v1/health", responses((status = 200, description = "The daemon answers.", body = Health)))]
async fn health() -> Json<Health> {
    Json(Health { status: "ok".to_owned() })
}

/// Returns this OpenAPI document.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    responses((status = 200, description = "The OpenAPI 3.1 document.", body = serde_json::Value)),
)]
async fn description() -> Json<&'static serde_json::Value> {
    Json(crate::openapi::document_ref())
}

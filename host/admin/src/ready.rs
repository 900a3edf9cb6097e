//! Readiness, for load balancers and for scripts that wait for a start.

use crate::operation::Operation;
use crate::service::{Provides, Service};
use api::{NotReady, Readiness};
use axum::Json;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Public: load balancers have no token, and readiness reveals nothing.
pub(crate) fn routes<S: Provides<dyn Operation>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(ready))
}

/// Checks whether the daemon accepts traffic.
///
/// Use `GET /v1/health` to decide on a restart: it succeeds while the process answers. Use this operation to route traffic.
#[utoipa::path(
    get,
    path = "/v1/ready",
    responses(
        (status = 200, description = "The daemon is ready.", body = Readiness),
        (status = 503, description = "The daemon is not ready; `reasons` says why.", body = Readiness),
    )
)]
async fn ready(backend: Service<dyn Operation>) -> (StatusCode, Json<Readiness>) {
    // It asks the core and may block.
    let readiness = tokio::task::spawn_blocking(move || backend.readiness()).await;
    let readiness = readiness.unwrap_or_else(|_| Readiness::of(vec![NotReady::CoreStalled]));
    let status = if readiness.reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness))
}

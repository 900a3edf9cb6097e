//! Readiness, for load balancers and for scripts that wait for a start.

use crate::backend::SharedBackend;
use api::name_schemas::ReadinessSchema;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Why the daemon accepts no traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotReady {
    /// The daemon recovers messages, or opens its listeners.
    Starting,
    /// The daemon is shutting down.
    Stopping,
    /// Drain mode: waiting messages are delivered, submissions are refused.
    Draining,
    /// Free disk space is below the watermark: submissions are refused.
    DiskLow,
    /// The disk has not finished a commit for seconds. No request is answered until it has.
    StoreStalled,
    /// The core has not answered for seconds. No message moves until it does.
    CoreStalled,
}

/// `GET /v1/ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Readiness {
    /// `ready` or `not-ready`.
    #[schema(value_type = ReadinessSchema, inline)]
    pub status: &'static str,
    /// All reasons; empty if the daemon is ready.
    pub reasons: Vec<NotReady>,
}

impl Readiness {
    /// Ready if there are no reasons.
    #[must_use]
    pub fn of(reasons: Vec<NotReady>) -> Self {
        Self { status: if reasons.is_empty() { "ready" } else { "not-ready" }, reasons }
    }
}

/// Public: load balancers have no token, and readiness reveals nothing.
pub(crate) fn routes() -> OpenApiRouter<SharedBackend> {
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
async fn ready(State(backend): State<SharedBackend>) -> (StatusCode, Json<Readiness>) {
    // It asks the core and may block.
    let readiness = tokio::task::spawn_blocking(move || backend.readiness()).await;
    let readiness = readiness.unwrap_or_else(|_| Readiness::of(vec![NotReady::CoreStalled]));
    let status = if readiness.reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness))
}

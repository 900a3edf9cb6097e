//! Whether traffic is taken: for load balancers, and for whoever waits for a start.

use crate::api::Shared;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Why no traffic is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotReady {
    /// What is on disk is being read back, or the doors are being opened.
    Starting,
    /// It has been told to end.
    Stopping,
    /// Drain mode: what waits goes out, nothing new is taken.
    Draining,
    /// The disk has less room than the watermark: nothing new is taken.
    DiskLow,
    /// The disk has not finished a commit for seconds: nobody is answered until it has.
    StoreStalled,
    /// The core has not answered for seconds: nothing moves until it does.
    CoreStalled,
}

/// `GET /v1/ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Readiness {
    /// `ready`, or `not-ready`.
    pub status: &'static str,
    /// Everything that stands in the way; nothing when it is ready.
    pub reasons: Vec<NotReady>,
}

impl Readiness {
    /// Ready, unless there is a reason not to be.
    #[must_use]
    pub fn of(reasons: Vec<NotReady>) -> Self {
        Self { status: if reasons.is_empty() { "ready" } else { "not-ready" }, reasons }
    }
}

/// For everyone: a load balancer has no token, and there is nothing to be learned here.
pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(ready))
}

/// Whether traffic is taken, and if not, why not.
///
/// `GET /v1/health` goes on saying that the process answers; a balancer that restarts what is not healthy asks there,
/// one that only sends elsewhere what is not ready asks here.
#[utoipa::path(
    get,
    path = "/v1/ready",
    responses(
        (status = 200, description = "It is.", body = Readiness),
        (status = 503, description = "It is not, for these reasons.", body = Readiness),
    )
)]
async fn ready(State(appliance): State<Shared>) -> (StatusCode, Json<Readiness>) {
    // It asks the core, which may take its time.
    let readiness = tokio::task::spawn_blocking(move || appliance.readiness()).await;
    let readiness = readiness.unwrap_or_else(|_| Readiness::of(vec![NotReady::CoreStalled]));
    let status = if readiness.reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness))
}

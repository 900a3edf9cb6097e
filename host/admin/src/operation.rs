//! The API of daemon operation: readiness, drain mode, log level.

use crate::problem::Problem;
use crate::request::{JsonBody, OptionalJsonBody};
use crate::request_audit::{AuditedResult, with_audit_detail};
use crate::service::{Provides, Service, call_json};
use access::Caller;
use api::{DrainOptions, DrainStateView, LogLevelRequest, LogLevelView, Readiness};
use axum::{Extension, Json};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The operation backend. Its methods may block, except [`Operation::readiness`].
pub trait Operation: Send + Sync + 'static {
    /// Whether the daemon accepts traffic. Does not block.
    fn readiness(&self) -> Readiness;
    /// The state of drain mode.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn drain_state(&self) -> Result<DrainStateView, Problem>;
    /// Starts drain mode, or changes its options.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn begin_drain(&self, how: DrainOptions, by: Arc<str>) -> Result<DrainStateView, Problem>;
    /// Ends drain mode.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn end_drain(&self, by: &str) -> Result<DrainStateView, Problem>;
    /// The current log level.
    fn log_level(&self) -> LogLevelView;
    /// Sets the log level until the next start.
    ///
    /// # Errors
    /// If the level is invalid; the current level stays.
    fn set_log_level(&self, request: LogLevelRequest, by: &str) -> Result<LogLevelView, Problem>;
}

pub(crate) fn routes<S: Provides<dyn Operation>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(drain_state, begin_drain, end_drain))
        .routes(routes!(log_level, set_log_level))
}

/// Shows the state of drain mode.
#[utoipa::path(get, path = "/v1/drain", responses((status = 200, description = "The current state.", body = DrainStateView)))]
async fn drain_state(backend: Service<dyn Operation>) -> Result<Json<DrainStateView>, Problem> {
    call_json(backend, Operation::drain_state).await
}

/// Starts drain mode: submissions get the protocol's temporary error, waiting messages are delivered, and `/v1/ready` returns
/// 503.
///
/// DELETE or a restart ends it.
#[utoipa::path(
    post,
    path = "/v1/drain",
    request_body(content = Option<DrainOptions>, description = "Options; the body may be omitted."),
    responses((status = 200, description = "The new state.", body = DrainStateView))
)]
async fn begin_drain(
    backend: Service<dyn Operation>,
    Extension(caller): Extension<Caller>,
    OptionalJsonBody(how): OptionalJsonBody<DrainOptions>,
) -> AuditedResult<DrainStateView> {
    let state = call_json(backend, move |backend| backend.begin_drain(how, caller.name)).await?;
    with_audit_detail(state, |state| {
        let binds = if state.refuse_binds { ", binds refused" } else { "" };
        format!("{} messages left{binds}", state.remaining.waiting)
    })
}

/// Ends drain mode.
///
/// Without effect if it is off.
#[utoipa::path(delete, path = "/v1/drain", responses((status = 200, description = "The new state.", body = DrainStateView)))]
async fn end_drain(
    backend: Service<dyn Operation>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<DrainStateView>, Problem> {
    call_json(backend, move |backend| backend.end_drain(&caller.name)).await
}

/// Shows the current log level.
#[utoipa::path(get, path = "/v1/log", responses((status = 200, description = "The current log level.", body = LogLevelView)))]
async fn log_level(backend: Service<dyn Operation>) -> Result<Json<LogLevelView>, Problem> {
    call_json(backend, |backend| Ok(backend.log_level())).await
}

/// Sets the log level, at once and until the next start.
#[utoipa::path(put, path = "/v1/log", request_body = LogLevelRequest, responses((status = 200, description = "The new log level.", body = LogLevelView)))]
async fn set_log_level(
    backend: Service<dyn Operation>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<LogLevelRequest>,
) -> AuditedResult<LogLevelView> {
    let set = call_json(backend, move |backend| backend.set_log_level(request, &caller.name)).await?;
    with_audit_detail(set, |set| set.level.clone())
}

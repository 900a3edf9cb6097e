//! The API of daemon operation: readiness, drain mode, log level.

use crate::backend::{SharedBackend, call_json};
use crate::problem::Problem;
use crate::request::{JsonBody, OptionalJsonBody};
use crate::request_audit::{AuditedResult, with_audit_detail};
use access::Caller;
use api::Readiness;
use axum::extract::State;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
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
    fn set_log_level(&self, level: LogLevelView, by: &str) -> Result<LogLevelView, Problem>;
}

/// Options of drain mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DrainOptions {
    /// Also refuse new binds and logins. Existing sessions stay: their submissions get the protocol's temporary error, and
    /// waiting messages for them are delivered.
    #[serde(default)]
    pub refuse_binds: bool,
}

/// `GET /v1/drain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = DrainState)]
pub struct DrainStateView {
    /// Whether submissions are refused.
    pub draining: bool,
    /// Whether binds are refused too.
    pub refuse_binds: bool,
    /// Start of drain mode, milliseconds since the epoch; null if it is off.
    #[schema(required)]
    pub since: Option<u64>,
    /// The caller that started drain mode; null if it is off.
    #[schema(required, value_type = Option<String>)]
    pub by: Option<Arc<str>>,
    /// Unfinished messages.
    pub remaining: RemainingMessagesView,
}

/// Counts of unfinished messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = RemainingMessages)]
pub struct RemainingMessagesView {
    /// All unfinished messages, including those in flight and those awaiting a DLR.
    pub waiting: u64,
    /// Messages submitted on a link and not yet answered.
    pub in_flight: u64,
}

/// The log level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LogLevel)]
pub struct LogLevelView {
    /// `off`, `error`, `warn`, `info`, `debug` or `trace`. For single log targets append `target=level`, separated by commas:
    /// `info,links=debug`.
    #[schema(example = "info,links=debug")]
    pub level: String,
}

pub(crate) fn routes() -> OpenApiRouter<SharedBackend> {
    OpenApiRouter::new()
        .routes(routes!(drain_state, begin_drain, end_drain))
        .routes(routes!(log_level, set_log_level))
}

/// Shows the state of drain mode.
#[utoipa::path(get, path = "/v1/drain", responses((status = 200, description = "The current state.", body = DrainStateView)))]
async fn drain_state(State(backend): State<SharedBackend>) -> Result<Json<DrainStateView>, Problem> {
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
    State(backend): State<SharedBackend>,
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
    State(backend): State<SharedBackend>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<DrainStateView>, Problem> {
    call_json(backend, move |backend| backend.end_drain(&caller.name)).await
}

/// Shows the current log level.
#[utoipa::path(get, path = "/v1/log", responses((status = 200, description = "The current log level.", body = LogLevelView)))]
async fn log_level(State(backend): State<SharedBackend>) -> Result<Json<LogLevelView>, Problem> {
    call_json(backend, |backend| Ok(backend.log_level())).await
}

/// Sets the log level, at once and until the next start.
#[utoipa::path(put, path = "/v1/log", request_body = LogLevelView, responses((status = 200, description = "The new log level.", body = LogLevelView)))]
async fn set_log_level(
    State(backend): State<SharedBackend>,
    Extension(caller): Extension<Caller>,
    JsonBody(level): JsonBody<LogLevelView>,
) -> AuditedResult<LogLevelView> {
    let set = call_json(backend, move |backend| backend.set_log_level(level, &caller.name)).await?;
    with_audit_detail(set, |set| set.level.clone())
}

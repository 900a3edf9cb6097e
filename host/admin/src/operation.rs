//! What an admin does with the daemon itself: drain it, and have it say more or less.

use crate::api::{Shared, answer};
use crate::guard::{Detailed, detailed};
use crate::problem::Problem;
use crate::ready::Readiness;
use crate::request::{Document, IfAny};
use access::Caller;
use axum::extract::State;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What stands behind it. Its methods may wait, but for [`Operation::readiness`].
pub trait Operation: Send + Sync + 'static {
    /// Whether traffic is taken. Answers at once.
    fn readiness(&self) -> Readiness;
    /// Whether it drains, and what is left.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn drain_state(&self) -> Result<DrainState, Problem>;
    /// Begins to drain, or changes how.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn begin_drain(&self, how: DrainOrder, by: Arc<str>) -> Result<DrainState, Problem>;
    /// Takes traffic again.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn end_drain(&self, by: &str) -> Result<DrainState, Problem>;
    /// What is logged now.
    fn log_level(&self) -> LogLevel;
    /// Changes what is logged, until the next start.
    ///
    /// # Errors
    /// When it is not understood; it stays as it was then.
    fn set_log_level(&self, level: LogLevel, by: &str) -> Result<LogLevel, Problem>;
}

/// How to drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DrainOrder {
    /// Refuse new binds and logins as well. Sessions that are there stay: their submissions get the protocol's word for
    /// "later", and what waits for them goes out.
    #[serde(default)]
    pub refuse_binds: bool,
}

/// `GET /v1/drain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct DrainState {
    /// Whether submissions are refused.
    pub draining: bool,
    /// Whether binds are refused as well.
    pub refuse_binds: bool,
    /// Since when, milliseconds since the epoch.
    #[schema(required)]
    pub since: Option<u64>,
    /// Who began it.
    #[schema(required, value_type = Option<String>)]
    pub by: Option<Arc<str>>,
    /// What has not ended yet.
    pub left: Left,
}

/// What has not ended yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Left {
    /// All messages that have not ended, those of the other count and those that wait for a receipt included.
    pub waiting: u64,
    /// Those on a link, unanswered.
    pub in_flight: u64,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogLevel {
    /// `off`, `error`, `warn`, `info`, `debug` or `trace` for everything; with commas between, `room=level` for a room
    /// of its own, such as `info,links=debug`.
    #[schema(example = "info,links=debug")]
    pub level: String,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(drain_state, begin_drain, end_drain))
        .routes(routes!(log_level, set_log_level))
}

/// Whether the appliance drains, and what is left.
#[utoipa::path(get, path = "/v1/drain", responses((status = 200, description = "As it is now.", body = DrainState)))]
async fn drain_state(State(appliance): State<Shared>) -> Result<Json<DrainState>, Problem> {
    answer(appliance, Operation::drain_state).await
}

/// Begins to drain: submissions are refused with the protocol's word for "later", what waits goes out, and `/v1/ready`
/// says 503. It ends by DELETE, and with the process.
#[utoipa::path(
    post,
    path = "/v1/drain",
    request_body(content = Option<DrainOrder>, description = "May be left out."),
    responses((status = 200, description = "As it is now.", body = DrainState))
)]
async fn begin_drain(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    IfAny(how): IfAny<DrainOrder>,
) -> Detailed<DrainState> {
    let state = answer(appliance, move |appliance| appliance.begin_drain(how, caller.name)).await?;
    detailed(state, |state| {
        let binds = if state.refuse_binds { ", binds refused" } else { "" };
        format!("{} messages left{binds}", state.left.waiting)
    })
}

/// Takes traffic again. Nothing happens when it does not drain.
#[utoipa::path(delete, path = "/v1/drain", responses((status = 200, description = "As it is now.", body = DrainState)))]
async fn end_drain(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<DrainState>, Problem> {
    answer(appliance, move |appliance| appliance.end_drain(&caller.name)).await
}

/// What is logged now.
#[utoipa::path(get, path = "/v1/log", responses((status = 200, description = "As it is now.", body = LogLevel)))]
async fn log_level(State(appliance): State<Shared>) -> Result<Json<LogLevel>, Problem> {
    answer(appliance, |appliance| Ok(appliance.log_level())).await
}

/// Changes what is logged, at once and until the next start.
#[utoipa::path(put, path = "/v1/log", request_body = LogLevel, responses((status = 200, description = "As it is now.", body = LogLevel)))]
async fn set_log_level(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    Document(level): Document<LogLevel>,
) -> Detailed<LogLevel> {
    let set = answer(appliance, move |appliance| appliance.set_log_level(level, &caller.name)).await?;
    detailed(set, |set| set.level.clone())
}

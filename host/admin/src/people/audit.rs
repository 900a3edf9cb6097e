//! The audit log, for reading. Nothing here writes or removes a line.

use super::ask;
use crate::api::Shared;
use crate::porter::Porter;
use crate::problem::Problem;
use crate::request::{Parameters, limit};
use access::{AuditPage, AuditQuery};
use axum::{Extension, Json};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(audit))
}

/// Lines of a page.
const MOST: usize = 1000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// How many lines; 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only lines before this one: the `next` of the page before.
    before: Option<u64>,
    /// Only what was done by this user; `token` is the token of the data directory, `token:NAME` one that was made.
    by: Option<String>,
    /// Only lines in whose `what` this stands, such as `/v1/users`.
    what: Option<String>,
    /// Only what was done to this.
    subject: Option<String>,
}

/// What was done and refused, by whom, newest first: every change, and every reading of message texts.
#[utoipa::path(
    get,
    path = "/v1/audit",
    params(Wanted),
    responses((status = 200, description = "A page of the log.", body = AuditPage)),
)]
async fn audit(
    Extension(porter): Extension<Arc<Porter>>,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Json<AuditPage>, Problem> {
    let Wanted { limit: lines, before, by, what, subject } = wanted;
    let query = AuditQuery { before, limit: limit(lines, MOST)?, by, what, subject };
    ask(&porter, move |access| access.audit(&query)).await.map(Json)
}

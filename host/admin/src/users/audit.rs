//! The read-only API of the audit log.

use super::with_access;
use crate::authenticator::Authenticator;
use crate::authz::Scope;
use crate::problem::Problem;
use crate::request::{QueryParams, page_limit};
use crate::request_audit::shown_subject;
use access::AuditQuery;
use access::Caller;
use api::AuditPage;
use axum::{Extension, Json};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(audit))
}

/// Maximum number of records per page.
const MAX_LINES: usize = 1000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditLogQuery {
    /// Maximum number of records; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only records before this serial: the `next` of the previous page.
    before: Option<u64>,
    /// Only operations of this caller: a user's name, `token` for the root token, `token:NAME` for a named token.
    by: Option<String>,
    /// Only records whose `what` contains this text, for example `/v1/users`.
    what: Option<String>,
    /// Only operations on this subject.
    subject: Option<String>,
}

/// Lists the audit log, newest first: changes, refusals, and reads of message texts. Users of a tenant see the records
/// of the users of their branch.
#[utoipa::path(
    get,
    path = "/v1/audit",
    params(AuditLogQuery),
    responses((status = 200, description = "A page of the audit log.", body = AuditPage)),
)]
async fn audit(
    Extension(authenticator): Extension<Arc<Authenticator>>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    QueryParams(query): QueryParams<AuditLogQuery>,
) -> Result<Json<AuditPage>, Problem> {
    let AuditLogQuery { limit: lines, before, by, what, subject } = query;
    let query = AuditQuery { before, limit: page_limit(lines, MAX_LINES)?, by, what, subject };
    let mut page = with_access(&authenticator, move |access| access.audit(&query, &scope)).await?;
    for entry in &mut page.entries {
        entry.record.subject = shown_subject(&entry.record, caller.number_display());
    }
    Ok(Json(page))
}

//! The API of messages in quarantine.

use crate::problem::Problem;
use crate::request::{JsonBody, QueryParams, page_limit};
use crate::request_audit::{AuditedResult, with_audit_detail};
use crate::service::{Provides, Service, call_json};

use access::Caller;
use api::name_schemas::IdText;
use axum::{Extension, Json};
use model::NumberDisplay;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Decision about messages in quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuarantineDecision {
    /// They are routed.
    Release,
    /// They end as rejected.
    Purge,
}

/// The backend of the quarantine.
pub trait Quarantine: Send + Sync + 'static {
    /// Messages in quarantine, oldest first, of one account or peer or of all. `numbers`: how numbers are shown.
    ///
    /// # Errors
    /// If there is no such account or peer, or the daemon is shutting down.
    fn quarantine(
        &self,
        origin: Option<&str>,
        after: Option<&str>,
        limit: usize,
        numbers: NumberDisplay,
    ) -> Result<api::QuarantinePageView, Problem>;
    /// Releases or purges messages.
    ///
    /// # Errors
    /// If the request selects no messages, or the daemon is shutting down.
    fn leave_quarantine(
        &self,
        selection: api::QuarantineSelection,
        decision: QuarantineDecision,
        by: &str,
    ) -> Result<api::QuarantineResult, Problem>;
}

pub(crate) fn routes<S: Provides<dyn Quarantine>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list_quarantine))
        .routes(routes!(release_from_quarantine))
        .routes(routes!(purge_quarantine))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct QuarantineQuery {
    /// Only messages of this account or peer.
    origin: Option<String>,
    /// Maximum number of messages; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only messages after this id.
    #[param(value_type = Option<IdText>, inline)]
    after: Option<String>,
}

/// Lists the messages in quarantine, oldest first: accepted messages that a screen has held back.
#[utoipa::path(
    get,
    path = "/v1/quarantine",
    params(QuarantineQuery),
    responses((status = 200, description = "A page of messages.", body = api::QuarantinePageView)),
)]
async fn list_quarantine(
    backend: Service<dyn Quarantine>,
    Extension(caller): Extension<Caller>,
    QueryParams(page): QueryParams<QuarantineQuery>,
) -> Result<Json<api::QuarantinePageView>, Problem> {
    let most = page_limit(page.limit, 1000)?;
    let numbers = caller.number_display();
    call_json(backend, move |backend| {
        backend.quarantine(page.origin.as_deref(), page.after.as_deref(), most, numbers)
    })
    .await
}

/// Releases messages from quarantine: they are priced and routed, and not screened again.
#[utoipa::path(
    post,
    path = "/v1/quarantine/release",
    request_body = api::QuarantineSelection,
    responses((status = 200, description = "The number of released messages.", body = api::QuarantineResult)),
)]
async fn release_from_quarantine(
    backend: Service<dyn Quarantine>,
    Extension(caller): Extension<Caller>,
    JsonBody(selection): JsonBody<api::QuarantineSelection>,
) -> AuditedResult<api::QuarantineResult> {
    decide(backend, &caller, selection, QuarantineDecision::Release, "released from quarantine").await
}

/// Purges messages from quarantine: they end as rejected, and their submitters receive DLRs.
#[utoipa::path(
    post,
    path = "/v1/quarantine/purge",
    request_body = api::QuarantineSelection,
    responses((status = 200, description = "The number of purged messages.", body = api::QuarantineResult)),
)]
async fn purge_quarantine(
    backend: Service<dyn Quarantine>,
    Extension(caller): Extension<Caller>,
    JsonBody(selection): JsonBody<api::QuarantineSelection>,
) -> AuditedResult<api::QuarantineResult> {
    decide(backend, &caller, selection, QuarantineDecision::Purge, "purged from quarantine").await
}

async fn decide(
    backend: Service<dyn Quarantine>,
    caller: &Caller,
    selection: api::QuarantineSelection,
    decision: QuarantineDecision,
    words: &'static str,
) -> AuditedResult<api::QuarantineResult> {
    let by = caller.name.clone();
    let whose = selection.origin.as_ref().map(|origin| format!(" of {origin}")).unwrap_or_default();
    let result =
        call_json(backend, move |backend| backend.leave_quarantine(selection, decision, &by)).await?;
    with_audit_detail(result, |result| {
        format!("{} messages{whose} {words}, {} skipped", result.done, result.skipped)
    })
}

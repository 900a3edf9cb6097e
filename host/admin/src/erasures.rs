//! The API of erasures.

use crate::authz::Scope;
use crate::problem::Problem;
use crate::request::{JsonBody, PathParams};
use crate::request_audit::{AuditedResult, with_audit_detail};
use crate::service::{Provides, Service, call_json};

use access::Caller;
use api::name_schemas::IdText;
use axum::{Extension, Json};
use model::AccountScope;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Erasures of messages' contents and of numbers.
pub trait Erasures: Send + Sync + 'static {
    /// Erases the content of a finished message in store and archive. An account of the scope must have submitted the
    /// message.
    ///
    /// # Errors
    /// There is no such message, it has not ended, or the archive does not answer.
    fn erase_content(
        &self,
        id: &str,
        by: &str,
        scope: &AccountScope,
    ) -> Result<api::ContentErasureView, Problem>;
    /// Erases a number in at most 10,000 messages of store and archive. A repetition continues.
    ///
    /// # Errors
    /// The text is not a number, or the archive does not answer.
    fn erase_number(&self, number: &str, by: &str) -> Result<api::NumberErasureView, Problem>;
}

pub(crate) fn routes<S: Provides<dyn Erasures>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(erase_content)).routes(routes!(erase_number))
}

/// Erases the content of a finished message: its text, the text that a screen replaced, and host calls of plugins on
/// its behalf. The message itself stays. A repetition changes nothing. A message that has not ended is refused with
/// 409.
#[utoipa::path(
    delete,
    path = "/v1/messages/{id}/content",
    params(("id" = inline(IdText), Path, description = "The message id.")),
    responses((status = 200, description = "The content is erased.", body = api::ContentErasureView)),
)]
async fn erase_content(
    backend: Service<dyn Erasures>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    PathParams(id): PathParams<String>,
) -> Result<Json<api::ContentErasureView>, Problem> {
    call_json(backend, move |backend| backend.erase_content(&id, &caller.name, &scope)).await
}

/// Erases a number: the contents of finished messages that it sent or received, and the number itself in them. The
/// receipt lists what was done and what remains. A repetition continues.
#[utoipa::path(
    post,
    path = "/v1/erasures",
    request_body = api::NumberErasureRequest,
    responses((status = 200, description = "The receipt.", body = api::NumberErasureView)),
)]
async fn erase_number(
    backend: Service<dyn Erasures>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<api::NumberErasureRequest>,
) -> AuditedResult<api::NumberErasureView> {
    let receipt =
        call_json(backend, move |backend| backend.erase_number(&request.number, &caller.name)).await?;
    with_audit_detail(receipt, |receipt| {
        let api::NumberErasureView { id, number, rows, contents, in_flight, awaiting_archive, .. } = receipt;
        format!(
            "erasure {id} of {number}: {rows} rows, {contents} contents; {in_flight} in flight, {awaiting_archive} await the archive"
        )
    })
}

//! The API of erasures.

use crate::problem::Problem;
use crate::request::PathParams;
use crate::service::{Provides, Service, call_json};

use access::Caller;
use api::name_schemas::IdText;
use axum::{Extension, Json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Erasures of what messages say.
pub trait Erasures: Send + Sync + 'static {
    /// Erases the content of a finished message in store and archive.
    ///
    /// # Errors
    /// If there is no such message, it has not ended, or the archive does not answer.
    fn erase_content(&self, id: &str, by: &str) -> Result<api::ContentErasureView, Problem>;
}

pub(crate) fn routes<S: Provides<dyn Erasures>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(erase_content))
}

/// Erases the content of a finished message: its text, the text that a screen replaced, and what plugins asked on its behalf.
/// The message itself stays. A repetition changes nothing. A message that has not ended is refused with 409.
#[utoipa::path(
    delete,
    path = "/v1/messages/{id}/content",
    params(("id" = inline(IdText), Path, description = "The message id.")),
    responses((status = 200, description = "The content is erased.", body = api::ContentErasureView)),
)]
async fn erase_content(
    backend: Service<dyn Erasures>,
    Extension(caller): Extension<Caller>,
    PathParams(id): PathParams<String>,
) -> Result<Json<api::ContentErasureView>, Problem> {
    call_json(backend, move |backend| backend.erase_content(&id, &caller.name)).await
}

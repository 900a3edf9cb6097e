//! Backups: everything that the appliance keeps, as it stands at one moment, while traffic flows.

use crate::api::{Export, Shared, call};
use crate::problem::Problem;
use access::Caller;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What stands behind it.
pub trait Backup: Send + Sync + 'static {
    /// Takes a backup, and tells its name and its pieces as they are made. May wait.
    ///
    /// # Errors
    /// When another one is under way, there is no room for the copies that are made first, or a file fails.
    fn backup(&self, by: Arc<str>) -> Result<(String, Export), Problem>;
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(backup))
}

/// A backup, as a tar file whose first member says what is in it: the store, users, the configuration, plugins, tables, the
/// token, the certificate. The archive of ended messages is a data base with backups of its own, and not in it.
///
/// What is accepted after the request is not in it. An answer that breaks off is no backup: `switchyard restore` says so.
#[utoipa::path(
    get,
    path = "/v1/backup",
    responses(
        (status = 200, description = "The backup. It holds texts and secrets.", content_type = "application/x-tar", body = [u8]),
        (status = 409, description = "Another one is under way."),
        (status = 503, description = "There is no room on the disk for the copies that are made first."),
    )
)]
async fn backup(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let (name, Export { media_type, chunks }) =
        call(appliance, move |appliance| appliance.backup(caller.name)).await?;
    let pieces = futures_util::stream::unfold(chunks, |mut chunks| async move {
        let piece = chunks.recv().await?;
        Some((piece.map_err(std::io::Error::other), chunks))
    });
    let headers = [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

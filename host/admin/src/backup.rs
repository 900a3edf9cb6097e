//! Backups: a consistent copy of all data of the appliance, taken while traffic flows.

use crate::export::Export;
use crate::problem::Problem;
use crate::service::{Provides, Service, call};
use access::Caller;
use axum::Extension;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Source of backups.
pub trait Backup: Send + Sync + 'static {
    /// Takes a backup. Returns its file name and its chunks. May block.
    ///
    /// # Errors
    /// If another backup is running, the disk has no space for the snapshots, or a file cannot be read.
    fn backup(&self, by: Arc<str>) -> Result<(String, Export), Problem>;
}

pub(crate) fn routes<S: Provides<dyn Backup>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(backup))
}

/// Takes a backup: a tar file of the store, users, configuration, plugins, tables, root token and certificate.
///
/// Its first member lists the contents. The archive of finished messages is not included; back up its database separately.
///
/// The backup does not contain messages that are accepted after the request. An incomplete response is not a valid
/// backup; `switchyard restore` refuses it.
#[utoipa::path(
    get,
    path = "/v1/backup",
    responses(
        (status = 200, description = "The backup. It contains message texts and secrets.", content_type = "application/x-tar", body = [u8]),
        (status = 409, description = "Another backup is running."),
        (status = 503, description = "The disk has no space for the snapshots."),
    )
)]
async fn backup(
    backend: Service<dyn Backup>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let (name, Export { media_type, chunks }) =
        call(backend, move |backend| backend.backup(caller.name)).await?;
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

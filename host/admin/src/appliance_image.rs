//! The API of the appliance image: system status, updates, rollback, support bundle, factory reset.

mod operate_client;
#[cfg(test)]
mod update_script;

pub use operate_client::OperateClient;

use crate::problem::{Problem, ProblemKind};
use crate::request::{Binary, Flag, JsonBody, QueryParams};
use crate::service::{Provides, Service};
use api::{FactoryResetRequest, ImageStatusView, OperateResult, ProblemReason, StateRetention};
use axum::Json;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use operate_client::OperateCommand;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Access to the appliance image.
pub trait ApplianceImage: Send + Sync + 'static {
    /// The client of the operate socket; `None` if this host does not run the appliance image.
    fn operate_client(&self) -> Option<OperateClient>;
}

impl ApplianceImage for Option<OperateClient> {
    fn operate_client(&self) -> Option<OperateClient> {
        self.clone()
    }
}

/// When the operation takes effect.
#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RestartQuery {
    /// Whether the host reboots at once; true by default. If false, the operation takes effect at the next boot.
    #[param(inline)]
    restart: Option<Flag>,
}

impl RestartQuery {
    fn is_now(self) -> bool {
        self.restart.is_none_or(|Flag(restart)| restart)
    }
}

pub(crate) fn routes<S: Provides<dyn ApplianceImage>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(image_status))
        .routes(routes!(install_update))
        .routes(routes!(rollback))
        .routes(routes!(support_bundle))
        .routes(routes!(factory_reset))
}

fn operate_client(backend: &Service<dyn ApplianceImage>) -> Result<OperateClient, Problem> {
    let other = "this machine is not the appliance image: manage its packages and services with the tools of its system";
    backend.operate_client().ok_or_else(|| {
        Problem::new(ProblemKind::NotFound, other).with_reason(ProblemReason::of("not-the-appliance-image"))
    })
}

/// Runs an operation and returns its message.
async fn operate(
    backend: &Service<dyn ApplianceImage>,
    start: RestartQuery,
    command: impl FnOnce(bool) -> OperateCommand,
    body: Option<Body>,
) -> Result<Json<OperateResult>, Problem> {
    let restarts = start.is_now();
    let message = operate_client(backend)?.run(command(restarts), body).await?;
    Ok(Json(OperateResult { message, restarts }))
}

/// Shows the system status: version, slots, clock, data partition.
#[utoipa::path(
    get,
    path = "/v1/appliance",
    responses(
        (status = 200, description = "The current status.", body = ImageStatusView),
        (status = 404, description = "This host does not run the appliance image."),
    )
)]
async fn image_status(backend: Service<dyn ApplianceImage>) -> Result<Json<ImageStatusView>, Problem> {
    operate_client(&backend)?.image_status().await.map(Json)
}

/// Installs a signed update into the inactive slot and boots it.
///
/// Configuration and state are not changed.
///
/// If the new system does not become healthy, the host boots the previous one again. Updates that no trusted key has signed are
/// refused.
#[utoipa::path(
    post,
    path = "/v1/appliance/update",
    params(RestartQuery),
    request_body(content = Binary, content_type = "application/octet-stream", description = "The update (`.raucb`)."),
    responses(
        (status = 200, description = "The update is installed.", body = OperateResult),
        (status = 404, description = "This host does not run the appliance image."),
        (status = 409, description = "Another operation on the appliance image is running."),
        (status = 422, description = "The file is not an update for this host, or there is not enough space."),
    )
)]
async fn install_update(
    backend: Service<dyn ApplianceImage>,
    QueryParams(start): QueryParams<RestartQuery>,
    body: Body,
) -> Result<Json<OperateResult>, Problem> {
    operate(&backend, start, |restarts| OperateCommand::Update { restarts }, Some(body)).await
}

/// Boots the system of the other slot.
#[utoipa::path(
    post,
    path = "/v1/appliance/rollback",
    params(RestartQuery),
    responses(
        (status = 200, description = "The next boot uses the other slot.", body = OperateResult),
        (status = 404, description = "This host does not run the appliance image."),
        (status = 409, description = "Another operation on the appliance image is running."),
        (status = 422, description = "The other slot holds no healthy system."),
    )
)]
async fn rollback(
    backend: Service<dyn ApplianceImage>,
    QueryParams(start): QueryParams<RestartQuery>,
) -> Result<Json<OperateResult>, Problem> {
    operate(&backend, start, |restarts| OperateCommand::Rollback { restarts }, None).await
}

/// Returns a support bundle (tar, gzip): journal, slots, network.
///
/// It contains no configuration and no messages.
#[utoipa::path(
    get,
    path = "/v1/appliance/support-bundle",
    responses(
        (status = 200, description = "The file.", content_type = "application/gzip", body = [u8]),
        (status = 404, description = "This host does not run the appliance image."),
        (status = 409, description = "Another operation on the appliance image is running."),
    )
)]
async fn support_bundle(backend: Service<dyn ApplianceImage>) -> Result<Response, Problem> {
    let pieces = operate_client(&backend)?.stream_file(OperateCommand::SupportBundle).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/gzip"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"switchyard-support.tar.gz\""),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Resets the appliance to factory defaults at the next boot.
#[utoipa::path(
    post,
    path = "/v1/appliance/factory-reset",
    params(RestartQuery),
    request_body = FactoryResetRequest,
    responses(
        (status = 200, description = "The reset takes effect at the next boot.", body = OperateResult),
        (status = 404, description = "This host does not run the appliance image."),
        (status = 409, description = "Another operation on the appliance image is running."),
    )
)]
async fn factory_reset(
    backend: Service<dyn ApplianceImage>,
    QueryParams(start): QueryParams<RestartQuery>,
    JsonBody(FactoryResetRequest { state }): JsonBody<FactoryResetRequest>,
) -> Result<Json<OperateResult>, Problem> {
    let command =
        |restarts| OperateCommand::FactoryReset { keeps_state: state == StateRetention::Keep, restarts };
    operate(&backend, start, command, None).await
}

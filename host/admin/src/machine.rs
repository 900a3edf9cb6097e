//! The machine below, where it is the appliance image: its system, updates, resets.

mod operator;
#[cfg(test)]
mod update_script;

pub use operator::Operator;

use crate::api::Shared;
use crate::problem::{Kind, Problem, Reason};
use crate::request::{Binary, Document, Flag, Parameters};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use operator::Order;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What stands behind it.
pub trait Machine: Send + Sync + 'static {
    /// Who changes the machine; nobody where it is not the appliance image.
    fn operator(&self) -> Option<Operator>;
}

/// `GET /v1/appliance`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MachineState {
    /// The system that runs.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// The slot it runs from: `A` or `B`.
    pub slot: String,
    /// The slot of the next start.
    pub next: String,
    /// Both slots.
    pub slots: Vec<Slot>,
    /// Whether the system that runs was not found healthy yet: if that does not come about, the machine goes back.
    pub on_trial: bool,
    /// Seconds since the start.
    pub up_seconds: u64,
    /// Whether the clock is set by a time server.
    pub clock_synchronised: bool,
    /// What is taken of the data partition, in octets.
    pub data_used: u64,
    /// The size of the data partition, in octets.
    pub data_size: u64,
}

/// One of the places that a system can be in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Slot {
    /// `A` or `B`.
    pub name: String,
    /// The version that was last found healthy in it.
    #[schema(required)]
    pub healthy: Option<String>,
}

/// What the machine says that it has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Operated {
    /// In its own words.
    pub said: String,
    /// Whether it starts anew now.
    pub restarts: bool,
}

/// When it counts.
#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Start {
    /// Whether the machine starts anew at once, as it does if this is left out; if not, it counts from the next start.
    #[param(inline)]
    restart: Option<Flag>,
}

impl Start {
    fn is_now(self) -> bool {
        self.restart.is_none_or(|Flag(restart)| restart)
    }
}

/// What a reset leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Reset {
    /// What becomes of messages, balances, number pools and the archive.
    state: Leaves,
}

/// What becomes of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Leaves {
    /// It stays; configuration, users, tokens and keys go.
    Keep,
    /// Nothing stays.
    Drop,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(state))
        .routes(routes!(update))
        .routes(routes!(rollback))
        .routes(routes!(support_bundle))
        .routes(routes!(factory_reset))
}

fn operator(appliance: &Shared) -> Result<Operator, Problem> {
    let other =
        "this machine is not the appliance image: its packages and its init system are the admin's to handle";
    appliance
        .operator()
        .ok_or_else(|| Problem::new(Kind::NotFound, other).because(Reason::of("not-the-appliance-image")))
}

/// Has something done, and says what was.
async fn operate(
    appliance: &Shared,
    start: Start,
    order: impl FnOnce(bool) -> Order,
    body: Option<Body>,
) -> Result<Json<Operated>, Problem> {
    let restarts = start.is_now();
    let said = operator(appliance)?.order(order(restarts), body).await?;
    Ok(Json(Operated { said, restarts }))
}

/// Which system the machine runs, from which slot, and how it is.
#[utoipa::path(
    get,
    path = "/v1/appliance",
    responses(
        (status = 200, description = "As it is now.", body = MachineState),
        (status = 404, description = "The machine is not the appliance image."),
    )
)]
async fn state(State(appliance): State<Shared>) -> Result<Json<MachineState>, Problem> {
    operator(&appliance)?.state().await.map(Json)
}

/// Writes a signed update into the slot that does not run, and starts it. Configuration and state are not touched.
///
/// What does not come up is left again by the machine itself. What is not signed by a key that the machine trusts is refused.
#[utoipa::path(
    post,
    path = "/v1/appliance/update",
    params(Start),
    request_body(content = Binary, content_type = "application/octet-stream", description = "The update (.raucb)."),
    responses(
        (status = 200, description = "It is written.", body = Operated),
        (status = 404, description = "The machine is not the appliance image."),
        (status = 409, description = "Something else is being done to the machine."),
        (status = 422, description = "It is no update for this machine, or there is no room for it."),
    )
)]
async fn update(
    State(appliance): State<Shared>,
    Parameters(start): Parameters<Start>,
    body: Body,
) -> Result<Json<Operated>, Problem> {
    operate(&appliance, start, |restarts| Order::Update { restarts }, Some(body)).await
}

/// Goes back to the system in the other slot.
#[utoipa::path(
    post,
    path = "/v1/appliance/rollback",
    params(Start),
    responses(
        (status = 200, description = "It counts.", body = Operated),
        (status = 404, description = "The machine is not the appliance image."),
        (status = 409, description = "Something else is being done to the machine."),
        (status = 422, description = "There is no system to go back to."),
    )
)]
async fn rollback(
    State(appliance): State<Shared>,
    Parameters(start): Parameters<Start>,
) -> Result<Json<Operated>, Problem> {
    operate(&appliance, start, |restarts| Order::Rollback { restarts }, None).await
}

/// What somebody needs who is to help, in one file (tar, gzip): the journal, slots, network; no configuration and no messages.
#[utoipa::path(
    get,
    path = "/v1/appliance/support-bundle",
    responses(
        (status = 200, description = "The file.", content_type = "application/gzip", body = [u8]),
        (status = 404, description = "The machine is not the appliance image."),
        (status = 409, description = "Something else is being done to the machine."),
    )
)]
async fn support_bundle(State(appliance): State<Shared>) -> Result<Response, Problem> {
    let pieces = operator(&appliance)?.file(Order::SupportBundle).await?;
    let headers = [
        (header::CONTENT_TYPE, "application/gzip"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"switchyard-support.tar.gz\""),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Has the machine forget what it was told, at its next start.
#[utoipa::path(
    post,
    path = "/v1/appliance/factory-reset",
    params(Start),
    request_body = Reset,
    responses(
        (status = 200, description = "It counts.", body = Operated),
        (status = 404, description = "The machine is not the appliance image."),
        (status = 409, description = "Something else is being done to the machine."),
    )
)]
async fn factory_reset(
    State(appliance): State<Shared>,
    Parameters(start): Parameters<Start>,
    Document(Reset { state }): Document<Reset>,
) -> Result<Json<Operated>, Problem> {
    let order = |restarts| Order::FactoryReset { keeps_state: state == Leaves::Keep, restarts };
    operate(&appliance, start, order, None).await
}

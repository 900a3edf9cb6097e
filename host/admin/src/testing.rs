//! Trying things out: a message that goes the whole way, and a peer that is dialled once more than usual.

use crate::api::{Shared, call};
use crate::problem::{Kind, Problem};
use crate::request::{At, Document};
use access::Caller;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What stands behind it.
pub trait Testing: Send + Sync + 'static {
    /// Submits a message as an account, and tells its id once it is durable. May wait.
    ///
    /// # Errors
    /// When there is no such account, or the message is refused: for what it says, by its routing, or for now.
    fn send_test(&self, message: TestMessage, by: Arc<str>) -> Result<String, Problem>;
    /// Dials a peer once more, binds and takes leave.
    ///
    /// # Errors
    /// When there is no such peer, or it is being tried already.
    fn test_peer(&self, name: String, by: Arc<str>) -> BoxFuture<'_, Result<PeerTest, Problem>>;
    /// Dials a peer at once, where it waits to be dialled again.
    ///
    /// # Errors
    /// When there is no such peer, or it is not dialled.
    fn dial_peer(&self, name: &str, by: &str) -> Result<(), Problem>;
}

/// A message to try the way that messages go.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestMessage {
    /// The account that submits it, as it were: its routes, its price, its queue.
    pub account: String,
    /// The sender: up to 20 digits, with or without + in front, or up to 11 characters. Left out, the account's default.
    #[serde(default)]
    #[schema(nullable = false)]
    pub from: Option<String>,
    /// The addressee: 3 to 20 digits, with or without + in front.
    #[schema(example = "+4915112345678")]
    pub to: String,
    /// The text.
    #[schema(example = "Hello from Switchyard")]
    pub text: String,
}

/// A message that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Accepted {
    /// Its id; `GET /v1/messages/{id}` shows what becomes of it.
    pub id: String,
}

/// What came of trying a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PeerTest {
    /// Whether all steps succeeded.
    pub ok: bool,
    /// The steps, the last one being the one that failed, if one did.
    pub steps: Vec<TestStep>,
}

/// One step of trying a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TestStep {
    /// `resolve`, `connect`, `tls`, `bind` or `unbind`.
    pub what: &'static str,
    /// Whether it succeeded.
    pub ok: bool,
    /// Milliseconds that it took.
    pub ms: u64,
    /// What came of it, or what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(send_test)).routes(routes!(test_peer)).routes(routes!(dial_peer))
}

/// Submits a test message, as an account would: it is routed, priced, queued and sent like any other. No receipt is asked
/// for, since the account has not asked for the message.
#[utoipa::path(
    post,
    path = "/v1/messages",
    request_body = TestMessage,
    responses(
        (status = 201, description = "It is accepted, and on disk.", body = Accepted),
        (status = 404, description = "There is no such account."),
        (status = 409, description = "It is refused for now: a queue is full, or the appliance drains."),
        (status = 422, description = "It is refused: for what it says, or by its routing."),
    ),
)]
async fn send_test(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    Document(message): Document<TestMessage>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let id = call(appliance, move |appliance| appliance.send_test(message, caller.name)).await?;
    Ok((StatusCode::CREATED, Json(Accepted { id })))
}

/// Tries a peer or a gateway: finds its address, connects, makes TLS, binds as configured on a connection of its own, and
/// unbinds. Traffic is not touched. Says how far it came, also where it did not come far.
#[utoipa::path(
    post,
    path = "/v1/peers/{name}/test",
    params(("name" = String, Path, description = "Its name in the configuration.")),
    responses(
        (status = 200, description = "How far it came.", body = PeerTest),
        (status = 404, description = "There is no such peer."),
        (status = 409, description = "It is being tried already."),
    ),
)]
async fn test_peer(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    At(name): At<String>,
) -> Result<Json<PeerTest>, Problem> {
    // A task of its own: who asked may go, and the connection must still be closed in good order.
    let tried = tokio::spawn(async move { appliance.test_peer(name, caller.name).await }).await;
    tried
        .unwrap_or_else(|_| Err(Problem::new(Kind::Internal, "the trial failed inside; the log says more")))
        .map(Json)
}

/// Dials a peer or a gateway at once, where one of its links waits to be dialled again. A link that is up is left alone.
#[utoipa::path(
    post,
    path = "/v1/peers/{name}/dial",
    params(("name" = String, Path, description = "Its name in the configuration.")),
    responses(
        (status = 204, description = "It is being dialled, or its links are up."),
        (status = 404, description = "There is no such peer, or it is not dialled."),
    ),
)]
async fn dial_peer(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    At(name): At<String>,
) -> Result<StatusCode, Problem> {
    call(appliance, move |appliance| appliance.dial_peer(&name, &caller.name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

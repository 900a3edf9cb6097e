//! The API of tests: test messages, connection tests, and dialling a peer at once.

use crate::authz::Scope;
use crate::problem::{Problem, ProblemKind};
use crate::request::{JsonBody, PathParams};
use crate::service::{Provides, Service, call};
use access::Caller;
use api::PeerTestView;
use axum::http::StatusCode;
use axum::{Extension, Json};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The test backend.
pub trait Testing: Send + Sync + 'static {
    /// Submits a message as an account. Returns its id when it is durable. May block.
    ///
    /// # Errors
    /// If there is no such account, or the message is refused because of its content, by its routing, or temporarily.
    fn send_test(&self, message: api::TestMessageRequest, by: Arc<str>) -> Result<String, Problem>;
    /// Tests a peer: connects, binds and unbinds on a separate connection.
    ///
    /// # Errors
    /// If there is no such peer, or a test of it is running.
    fn test_peer(&self, name: String, by: Arc<str>) -> BoxFuture<'_, Result<PeerTestView, Problem>>;
    /// Dials a peer at once instead of waiting for the back-off.
    ///
    /// # Errors
    /// If there is no such peer, or the appliance does not dial it.
    fn dial_peer(&self, name: &str, by: &str) -> Result<(), Problem>;
}

pub(crate) fn routes<S: Provides<dyn Testing>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(send_test)).routes(routes!(test_peer)).routes(routes!(dial_peer))
}

/// The problem that there is no such account.
#[must_use]
pub fn unknown_account(name: &str) -> Problem {
    Problem::new(ProblemKind::NotFound, format!("{name:?} is not an account"))
}

/// Submits a test message as an account.
///
/// It is routed, priced, queued and sent like any other message. No DLR is requested, since the account did not submit the
/// message.
#[utoipa::path(
    post,
    path = "/v1/messages",
    request_body = api::TestMessageRequest,
    responses(
        (status = 201, description = "The message is accepted and durable.", body = api::AcceptedMessage),
        (status = 404, description = "There is no such account."),
        (status = 409, description = "The message is refused temporarily: a queue is full, or the daemon is in drain mode."),
        (status = 422, description = "The message is refused because of its content, or by its routing."),
    ),
)]
async fn send_test(
    backend: Service<dyn Testing>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    JsonBody(message): JsonBody<api::TestMessageRequest>,
) -> Result<(StatusCode, Json<api::AcceptedMessage>), Problem> {
    if !scope.has_account(&message.account) {
        return Err(unknown_account(&message.account));
    }
    let id = call(backend, move |backend| backend.send_test(message, caller.name)).await?;
    Ok((StatusCode::CREATED, Json(api::AcceptedMessage { id })))
}

/// Tests a peer or gateway on a separate connection: resolves the address, connects, negotiates TLS, binds as configured,
/// unbinds.
///
/// Traffic is not affected. The answer lists the steps, including a failed one.
#[utoipa::path(
    post,
    path = "/v1/peers/{name}/test",
    params(("name" = String, Path, description = "The peer's name in the configuration.")),
    responses(
        (status = 200, description = "The steps and their results.", body = PeerTestView),
        (status = 404, description = "There is no such peer."),
        (status = 409, description = "A test of this peer is running."),
    ),
)]
async fn test_peer(
    backend: Service<dyn Testing>,
    Extension(caller): Extension<Caller>,
    PathParams(name): PathParams<String>,
) -> Result<Json<PeerTestView>, Problem> {
    // In a task of its own: if the client disconnects, the test connection is still closed cleanly.
    let tried = tokio::spawn(async move { backend.test_peer(name, caller.name).await }).await;
    tried
        .unwrap_or_else(|_| {
            Err(Problem::new(ProblemKind::Internal, "the test failed internally; see the log"))
        })
        .map(Json)
}

/// Dials a peer or gateway at once if one of its links waits for its back-off.
///
/// Links that are up are not affected.
#[utoipa::path(
    post,
    path = "/v1/peers/{name}/dial",
    params(("name" = String, Path, description = "The peer's name in the configuration.")),
    responses(
        (status = 204, description = "The peer is being dialled, or all its links are up."),
        (status = 404, description = "There is no such peer, or the appliance does not dial it."),
    ),
)]
async fn dial_peer(
    backend: Service<dyn Testing>,
    Extension(caller): Extension<Caller>,
    PathParams(name): PathParams<String>,
) -> Result<StatusCode, Problem> {
    call(backend, move |backend| backend.dial_peer(&name, &caller.name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

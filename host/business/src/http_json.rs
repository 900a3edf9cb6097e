//! HTTP routes: JSON, and the XML-RPC endpoint.

use crate::accounts::{Account, authenticate, credentials};
use crate::answers::{AcknowledgedItems, FetchedBatch, MessageState, States, SubmissionResults};
use crate::calls::Shared;
use crate::front_end;
use crate::problem::{Problem, ProblemDocument, ProblemKind};
use crate::request::{Acknowledgement, Fetch, Ids, Submission};
use crate::unique_json::UniqueJson;
use crate::{openapi, xmlrpc};
use axum::body::Body;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{head, post};
use axum::{Extension, Json, Router};
use bytes::Bytes;
use ports::{ConnectionPermit, LoginInterface, PassOn, PassedApi, PassedOnMarker};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Operations of accounts.
pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(submit))
        .routes(routes!(states))
        .routes(routes!(state))
        .routes(routes!(fetch))
        .routes(routes!(acknowledge))
}

/// Operations that require no account.
pub(crate) fn public_routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(description))
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    // Slightly above the limit, so that the error for a larger body is reported in the protocol's own format.
    let limit = shared.options.lock().request_limit.saturating_add(1);
    Router::from(routes())
        .route("/xmlrpc", post(call))
        .route("/RPC2", post(call))
        // A fetch leases items to the caller, who would not see them in a response to HEAD.
        .route("/v1/inbox", head(no_head))
        .route_layer(middleware::from_fn(uncompressed))
        // Before the body is read, so that unauthenticated bodies cost nothing.
        .route_layer(middleware::from_fn_with_state(shared.clone(), identify))
        .merge(Router::from(public_routes()))
        .fallback(front_end::serve)
        .layer(DefaultBodyLimit::max(limit))
        .with_state(shared)
}

/// Authenticates the caller and stores the account as an extension of the request.
async fn identify(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (accounts, verifier, registry) = (&shared.accounts, &shared.verifier, shared.registry.accounts());
    let mut request = match pass_on(&shared, remote, request).await? {
        PassOnResult::Answered(response) => return Ok(response),
        PassOnResult::ThisPartition(request) => request,
    };
    let remote = remote.ip().to_canonical();
    let account = authenticate(accounts, verifier, registry, request.headers(), remote).await?;
    if let Some(place) = request.extensions().get::<Arc<ConnectionPermit>>() {
        place.identify();
    }
    request.extensions_mut().insert(account);
    Ok(next.run(request).await)
}

/// The result for a request that may belong to another partition of the cluster.
enum PassOnResult {
    Answered(Response),
    ThisPartition(Request),
}

/// Passes the request of an account of another partition on to its leader, which authenticates the caller.
async fn pass_on(shared: &Shared, remote: SocketAddr, request: Request) -> Result<PassOnResult, Problem> {
    let elsewhere = match shared.registry.pass_on() {
        Some(pass_on) if request.extensions().get::<PassedOnMarker>().is_none() => {
            let name = credentials(request.headers()).map(|(name, _)| name);
            let elsewhere = |name: String| pass_on.elsewhere(LoginInterface::Business, name.as_bytes());
            name.and_then(elsewhere).map(|partition| (pass_on, partition))
        }
        _ => None,
    };
    let Some((pass_on, partition)) = elsewhere else { return Ok(PassOnResult::ThisPartition(request)) };
    let place = request.extensions().get::<Arc<ConnectionPermit>>().cloned();
    let limit = shared.options.lock().request_limit;
    let (head, body) = request.into_parts();
    let too_large = || Problem::new(ProblemKind::TooLarge, format!("at most {limit} octets are allowed"));
    let body = axum::body::to_bytes(body, limit).await.map_err(|_| too_large())?;
    let request = Request::from_parts(head, body);
    let response = ask_leader(&**pass_on, partition, remote, request).await.map_err(|silent| {
        let detail = format!("{silent}; repeat the call with the same Idempotency-Key");
        Problem::new(ProblemKind::Unavailable, detail)
    })?;
    if let Some(place) = place.filter(|_| response.status() != StatusCode::UNAUTHORIZED) {
        place.identify();
    }
    Ok(PassOnResult::Answered(response))
}

/// The leader of a partition has not answered a request; it is not known whether it has accepted anything.
#[derive(Debug, thiserror::Error)]
#[error("the partition of this account does not answer at the moment")]
pub(crate) struct LeaderSilent;

/// Passes a request of an account of another partition on to its leader, once.
pub(crate) async fn ask_leader(
    pass_on: &dyn PassOn,
    partition: u8,
    remote: SocketAddr,
    request: axum::http::Request<Bytes>,
) -> Result<Response, LeaderSilent> {
    pass_on.request(partition, PassedApi::Business, remote, request).await.map_err(|error| {
        tracing::warn!(partition, %error, "request not passed on to the leader of its partition");
        LeaderSilent
    })
}

/// Rejects compressed bodies, which would be misread.
async fn uncompressed(request: Request, next: Next) -> Result<Response, Problem> {
    let encodings = request.headers().get_all(header::CONTENT_ENCODING);
    if encodings.iter().any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let detail = "Content-Encoding: encoded bodies are not supported";
        return Err(Problem::new(ProblemKind::Encoded, detail));
    }
    Ok(next.run(request).await)
}

async fn no_head() -> Response {
    let problem =
        Problem::new(ProblemKind::Method, "HEAD: fetch the inbox with GET, which leases the returned items");
    ([(header::ALLOW, "GET")], problem).into_response()
}

/// The idempotency key of a submission, printable ASCII; `None` if there is none.
fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let malformed = |detail: &str| Problem::new(ProblemKind::Malformed, format!("Idempotency-Key: {detail}"));
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    if keys.next().is_some() {
        return Err(malformed("occurs twice; a submission has one key"));
    }
    key.to_str().map(|key| Some(key.to_owned())).map_err(|_| malformed("must be printable ASCII"))
}

/// The body, if its size is within the limit.
fn sized(shared: &Shared, body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    let limit = shared.options.lock().request_limit;
    match body {
        Ok(body) if body.len() <= limit => Ok(body),
        Ok(_) => Err(Problem::new(ProblemKind::TooLarge, format!("at most {limit} octets are allowed"))),
        Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Err(Problem::new(ProblemKind::TooLarge, format!("at most {limit} octets are allowed")))
        }
        Err(error) => Err(Problem::new(ProblemKind::Malformed, error.to_string())),
    }
}

/// The request in a body.
fn read<T: DeserializeOwned>(shared: &Shared, body: Result<Bytes, BytesRejection>) -> Result<T, Problem> {
    let UniqueJson(value) = serde_json::from_slice(&sized(shared, body)?)
        .map_err(|error| Problem::new(ProblemKind::Malformed, format!("invalid JSON: {error}")))?;
    serde_json::from_value(value).map_err(|error| Problem::new(ProblemKind::Invalid, error.to_string()))
}

/// Counts a call by its result.
fn counted<T>(account: &Account, method: &'static str, result: Result<T, Problem>) -> Result<T, Problem> {
    let name = result.as_ref().err().map_or("ok", |problem| problem.kind.name());
    account.counts.request(method, name);
    result
}

async fn call(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let text = match sized(&shared, body) {
        Ok(body) => {
            account.counts.request("xmlrpc", "ok");
            xmlrpc::answer(&shared, &account, &body).await
        }
        Err(problem) => {
            account.counts.request("xmlrpc", problem.kind.name());
            xmlrpc::refuse(problem)
        }
    };
    ([(header::CONTENT_TYPE, "text/xml; charset=utf-8")], Body::from(text)).into_response()
}

/// Submits one message, or several. The response is sent when all messages are durable.
///
/// If one message is malformed, all are refused.
#[utoipa::path(
    post,
    path = "/v1/messages",
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated call with the same key within a day returns the first answer.")),
    request_body = Submission,
    responses(
        (status = 202, description = "One result per number, in the order of the numbers.", body = SubmissionResults),
        (status = 422, description = "All messages are refused.", body = ProblemDocument, content_type = "application/problem+json"),
    ),
)]
async fn submit(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<SubmissionResults>), Problem> {
    let key = key_of(&headers);
    let request = key.and_then(|key| Ok((read::<Submission>(&shared, body)?.into_items()?, key)));
    let result = match request {
        Ok((items, key)) => shared.submit(&account, items, key).await,
        Err(problem) => {
            shared.refused(&account, &problem);
            Err(problem)
        }
    };
    let messages = counted(&account, "submit", result)?;
    Ok((StatusCode::ACCEPTED, Json(SubmissionResults { messages })))
}

/// Shows the state of a message.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}",
    params(("id" = String, Path, description = "The message id.")),
    responses((status = 200, description = "The state of the message.", body = MessageState)),
)]
async fn state(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    Path(id): Path<String>,
) -> Result<Json<MessageState>, Problem> {
    counted(&account, "state", shared.state(&account, &id).await).map(Json)
}

/// Shows the states of several messages.
#[utoipa::path(
    post,
    path = "/v1/messages/states",
    request_body = Ids,
    responses((status = 200, description = "The states, in the order of the ids.", body = States)),
)]
async fn states(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<States>, Problem> {
    let Ids { ids } = counted(&account, "states", read(&shared, body))?;
    Ok(Json(States { messages: shared.states(&account, ids).await }))
}

/// Fetches replies and DLRs that were not pushed, under a lease.
#[utoipa::path(
    get,
    path = "/v1/inbox",
    params(Fetch),
    responses((status = 200, description = "A batch of items.", body = FetchedBatch)),
)]
async fn fetch(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    query: Result<Query<Fetch>, QueryRejection>,
) -> Result<Json<FetchedBatch>, Problem> {
    let result = async {
        let Query(request) = query.map_err(|error| {
            // The outer error says only that the query is invalid.
            let detail = error.source().map_or_else(|| error.body_text(), ToString::to_string);
            Problem::new(ProblemKind::Invalid, detail)
        })?;
        shared.fetch(&account, request).await
    };
    counted(&account, "fetch", result.await).map(Json)
}

/// Acknowledges a batch, or only some of its items.
#[utoipa::path(
    post,
    path = "/v1/inbox/acknowledge",
    request_body = Acknowledgement,
    responses((status = 200, description = "The number of acknowledged items.", body = AcknowledgedItems)),
)]
async fn acknowledge(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<AcknowledgedItems>, Problem> {
    let result = async {
        let Acknowledgement { batch, ids } = read(&shared, body)?;
        shared.acknowledge(&account, &batch, ids).await
    };
    let acknowledged = counted(&account, "acknowledge", result.await)?;
    Ok(Json(AcknowledgedItems { acknowledged }))
}

/// Returns this OpenAPI document.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    responses((status = 200, description = "The OpenAPI 3.1 document.", body = serde_json::Value)),
)]
async fn description() -> Json<&'static Value> {
    Json(openapi::document())
}

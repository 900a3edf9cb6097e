//! HTTP routes: JSON, and the XML-RPC endpoint.

use crate::accounts::{Account, authenticate};
use crate::calls::{Fetch, Shared};
use crate::problem::{Problem, ProblemKind};
use crate::unique_json::UniqueJson;
use crate::{openapi, xmlrpc};
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use bytes::Bytes;
use ports::ConnectionPermit;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    // Slightly above the limit, so that the error for a larger body can be reported in the protocol's own format.
    let limit = shared.options.lock().request_limit.saturating_add(1);
    Router::new()
        .route("/xmlrpc", post(call))
        .route("/RPC2", post(call))
        .route("/v1/messages", post(submit))
        .route("/v1/messages/states", post(states))
        .route("/v1/messages/{id}", get(state))
        // A fetch leases items to the caller, who would not see them in a response to HEAD.
        .route("/v1/inbox", get(fetch).head(no_head))
        .route("/v1/inbox/acknowledge", post(acknowledge))
        .route_layer(middleware::from_fn(uncompressed))
        // Before the body is read, so that unauthenticated bodies cost nothing.
        .route_layer(middleware::from_fn_with_state(shared.clone(), identify))
        .route("/v1/openapi.json", get(|| async { Json(openapi::document()) }))
        .fallback(|| async {
            Problem::new(ProblemKind::NotFound, "unknown path; GET /v1/openapi.json lists all paths")
        })
        .layer(DefaultBodyLimit::max(limit))
        .with_state(shared)
}

/// Authenticates the caller and stores the account as an extension of the request.
async fn identify(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (accounts, verifier, registry) = (&shared.accounts, &shared.verifier, shared.registry.accounts());
    let remote = remote.ip().to_canonical();
    let account = authenticate(accounts, verifier, registry, request.headers(), remote).await?;
    if let Some(place) = request.extensions().get::<Arc<ConnectionPermit>>() {
        place.identify();
    }
    request.extensions_mut().insert(account);
    Ok(next.run(request).await)
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
fn sized(
    shared: &Shared,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Bytes, Problem> {
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

fn json_of(body: &Bytes) -> Result<Value, Problem> {
    serde_json::from_slice(body)
        .map(|UniqueJson(value)| value)
        .map_err(|error| Problem::new(ProblemKind::Malformed, format!("invalid JSON: {error}")))
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
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
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

/// The messages of a body: one, or a list.
fn items_of(body: Value) -> Result<Vec<Value>, Problem> {
    match body {
        Value::Object(mut map) if map.contains_key("messages") => match (map.remove("messages"), map.len()) {
            (Some(Value::Array(items)), 0) => Ok(items),
            (Some(Value::Array(_)), _) => {
                Err(Problem::new(ProblemKind::Invalid, "`messages` excludes other members"))
            }
            _ => Err(Problem::new(ProblemKind::Invalid, "messages: must be an array")),
        },
        item @ Value::Object(_) => Ok(vec![item]),
        _ => Err(Problem::new(ProblemKind::Invalid, "must be a message, or {\"messages\": [...]}")),
    }
}

async fn submit(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Response, Problem> {
    let key = key_of(&headers);
    let read = key.and_then(|key| Ok((items_of(json_of(&sized(&shared, body)?)?)?, key)));
    let result = match read {
        Ok((items, key)) => shared.submit(&account, items, key).await,
        Err(problem) => {
            shared.refused(&account, &problem);
            Err(problem)
        }
    };
    let results = counted(&account, "submit", result)?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "messages": results }))).into_response())
}

async fn state(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    counted(&account, "state", shared.state(&account, &id).await).map(Json)
}

async fn states(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Json<Value>, Problem> {
    let result = async {
        match json_of(&sized(&shared, body)?)?.get("ids") {
            Some(Value::Array(ids)) => Ok(shared.states(&account, ids).await),
            _ => Err(Problem::new(ProblemKind::Invalid, "must be {\"ids\": [...]}")),
        }
    };
    counted(&account, "states", result.await).map(|states| Json(json!({ "messages": states })))
}

async fn fetch(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Json<Value>, Problem> {
    let number = |name: &str| match query.get(name).map(|text| text.parse()) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(Problem::new(ProblemKind::Invalid, format!("{name}: must be a number"))),
    };
    let result = async {
        let unknown = query.keys().find(|name| !["max", "wait", "acknowledge"].contains(&name.as_str()));
        if let Some(unknown) = unknown {
            return Err(Problem::new(
                ProblemKind::Invalid,
                format!("{unknown}: is unknown; known are max, wait, acknowledge"),
            ));
        }
        let fetch = Fetch {
            max: number("max")?,
            wait: number("wait")?,
            acknowledge: query.get("acknowledge").cloned(),
        };
        shared.fetch(&account, fetch).await
    };
    counted(&account, "fetch", result.await).map(Json)
}

async fn acknowledge(
    State(shared): State<Arc<Shared>>,
    Extension(account): Extension<Arc<Account>>,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Json<Value>, Problem> {
    let result = async {
        let document = json_of(&sized(&shared, body)?)?;
        let ids = match document.get("ids") {
            None => None,
            Some(Value::Array(ids)) => Some(ids.as_slice()),
            Some(_) => return Err(Problem::new(ProblemKind::Invalid, "ids: must be an array")),
        };
        match document.get("batch").and_then(Value::as_str) {
            Some(batch) => shared.acknowledge(&account, batch, ids).await,
            None => Err(Problem::new(ProblemKind::Invalid, "batch: is missing")),
        }
    };
    counted(&account, "acknowledge", result.await).map(|count| Json(json!({ "acknowledged": count })))
}

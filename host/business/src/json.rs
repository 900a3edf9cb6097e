//! HTTP: JSON's paths, and the one path of XML-RPC.

use crate::accounts::{Account, authenticate};
use crate::door::{Fetch, Shared};
use crate::problem::{Kind, Problem};
use crate::unique::Unique;
use crate::{openapi, xmlrpc};
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use bytes::Bytes;
use doors::Place;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    // A little more than is taken, so that what is too large is told so in the protocol's own terms.
    let limit = shared.options.request_limit.saturating_add(1);
    Router::new()
        .route("/xmlrpc", post(call))
        .route("/RPC2", post(call))
        .route("/v1/messages", post(submit))
        .route("/v1/messages/states", post(states))
        .route("/v1/messages/{id}", get(state))
        // What is fetched is leased to the caller, who would see nothing of it.
        .route("/v1/inbox", get(fetch).head(no_head))
        .route("/v1/inbox/acknowledge", post(acknowledge))
        .route_layer(middleware::from_fn(uncompressed))
        // Before the body is read: a stranger's costs nothing.
        .route_layer(middleware::from_fn_with_state(shared.clone(), identify))
        .route("/v1/openapi.json", get(|| async { Json(openapi::document()) }))
        .fallback(|| async {
            Problem::new(Kind::NotFound, "no such path; GET /v1/openapi.json lists all of them")
        })
        .layer(DefaultBodyLimit::max(limit))
        .with_state(shared)
}

/// Looks who calls, and lets nobody else through: the account is an extension of the request from here on.
async fn identify(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (accounts, verifier, limiter) = (&shared.accounts, &shared.verifier, &shared.limiter);
    let remote = remote.ip().to_canonical();
    let account = authenticate(accounts, verifier, limiter, request.headers(), remote).await?;
    if let Some(place) = request.extensions().get::<Arc<Place>>() {
        place.identify();
    }
    request.extensions_mut().insert(account);
    Ok(next.run(request).await)
}

/// Refuses a body that comes compressed: as it stands it would be read as something else.
async fn uncompressed(request: Request, next: Next) -> Result<Response, Problem> {
    let encodings = request.headers().get_all(header::CONTENT_ENCODING);
    if encodings.iter().any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let detail = "Content-Encoding: a body is taken as it is, without any encoding";
        return Err(Problem::new(Kind::Encoded, detail));
    }
    Ok(next.run(request).await)
}

async fn no_head() -> Response {
    let problem =
        Problem::new(Kind::Method, "HEAD: the inbox is fetched with GET, which leases what it gives");
    ([(header::ALLOW, "GET")], problem).into_response()
}

/// The key of a submission, printable ASCII; `None` where there is none.
fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let malformed = |detail: &str| Problem::new(Kind::Malformed, format!("Idempotency-Key: {detail}"));
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    if keys.next().is_some() {
        return Err(malformed("is there twice; a submission has one key"));
    }
    key.to_str().map(|key| Some(key.to_owned())).map_err(|_| malformed("must be printable ASCII"))
}

/// The body, if it is not longer than is taken.
fn sized(
    shared: &Shared,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Bytes, Problem> {
    let limit = shared.options.request_limit;
    match body {
        Ok(body) if body.len() <= limit => Ok(body),
        Ok(_) => Err(Problem::new(Kind::TooLarge, format!("at most {limit} octets are taken"))),
        Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Err(Problem::new(Kind::TooLarge, format!("at most {limit} octets are taken")))
        }
        Err(error) => Err(Problem::new(Kind::Malformed, error.to_string())),
    }
}

fn json_of(body: &Bytes) -> Result<Value, Problem> {
    serde_json::from_slice(body)
        .map(|Unique(value)| value)
        .map_err(|error| Problem::new(Kind::Malformed, format!("this cannot be read as JSON: {error}")))
}

/// Counts a call by what came of it.
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
                Err(Problem::new(Kind::Invalid, "nothing may stand beside `messages`"))
            }
            _ => Err(Problem::new(Kind::Invalid, "messages: must be an array")),
        },
        item @ Value::Object(_) => Ok(vec![item]),
        _ => Err(Problem::new(Kind::Invalid, "must be a message, or {\"messages\": [...]}")),
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
            _ => Err(Problem::new(Kind::Invalid, "must be {\"ids\": [...]}")),
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
        Some(Err(_)) => Err(Problem::new(Kind::Invalid, format!("{name}: must be a number"))),
    };
    let result = async {
        let unknown = query.keys().find(|name| !["max", "wait", "acknowledge"].contains(&name.as_str()));
        if let Some(unknown) = unknown {
            return Err(Problem::new(
                Kind::Invalid,
                format!("{unknown}: is unknown; there are max, wait, acknowledge"),
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
            Some(_) => return Err(Problem::new(Kind::Invalid, "ids: must be an array")),
        };
        match document.get("batch").and_then(Value::as_str) {
            Some(batch) => shared.acknowledge(&account, batch, ids).await,
            None => Err(Problem::new(Kind::Invalid, "batch: is missing")),
        }
    };
    counted(&account, "acknowledge", result.await).map(|count| Json(json!({ "acknowledged": count })))
}

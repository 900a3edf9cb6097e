use crate::ledger::Ledger;
use crate::plugins::Plugins;
use crate::pools::Pools;
use crate::problem::{Kind, Problem};
use crate::token::Token;
use crate::view;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// What stands behind the API. Its methods may wait; they are called off the network's threads.
pub trait Appliance: Plugins + Ledger + Pools {
    /// Whether traffic is taken.
    fn ready(&self) -> bool;
    /// The appliance as a whole.
    ///
    /// # Errors
    /// When the store cannot be read, or the appliance is shutting down.
    fn status(&self) -> Result<view::Status, Problem>;
    /// All queues.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn queues(&self) -> Result<Vec<view::Queue>, Problem>;
    /// All links.
    fn links(&self) -> Vec<view::Link>;
    /// One message's trace, with its text if `body`.
    ///
    /// # Errors
    /// When there is no such message.
    fn message(&self, id: &str, body: bool) -> Result<view::Trace, Problem>;
    /// Settles an uncertain message: send again, or give up.
    ///
    /// # Errors
    /// When there is no such message, or it is not uncertain.
    fn settle(&self, id: &str, again: bool) -> Result<(), Problem>;
    /// What would become of a message.
    ///
    /// # Errors
    /// When its origin is not known.
    fn explain(&self, message: view::Hypothetical) -> Result<view::Explanation, Problem>;
    /// A page of finished messages: number, account, peer, state, direction, from, until, limit, cursor, body, trace.
    ///
    /// # Errors
    /// When the query is wrong, or the archive cannot be read.
    fn history(&self, query: &HashMap<String, String>) -> Result<serde_json::Value, Problem>;
    /// The same messages, all of them, as a file.
    ///
    /// # Errors
    /// As [`Appliance::history`].
    fn export(&self, query: &HashMap<String, String>) -> Result<Export, Problem>;
    /// Counts by hour or day, account and gateway: by, east, from, until, account, peer.
    ///
    /// # Errors
    /// As [`Appliance::history`].
    fn statistics(&self, query: &HashMap<String, String>) -> Result<serde_json::Value, Problem>;
    /// How the data pump fares.
    ///
    /// # Errors
    /// When there is no archive.
    fn archive(&self) -> Result<serde_json::Value, Problem>;
    /// Reports that match no message yet.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn parked(&self) -> Result<serde_json::Value, Problem>;
    /// Makes the reports of a time range once more: the body of the request as it came.
    ///
    /// # Errors
    /// When it cannot be understood, or a queue is full.
    fn report_again(&self, request: serde_json::Value) -> Result<serde_json::Value, Problem>;
    /// Who has told whom to stop.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn opt_outs(&self) -> Result<serde_json::Value, Problem>;
    /// Stops a sender for a subscriber, or lets it go on: the body of the request as it came.
    ///
    /// # Errors
    /// When it cannot be understood.
    fn set_opt_out(&self, request: serde_json::Value) -> Result<(), Problem>;
    /// Business systems: their calls and pushes.
    fn business(&self) -> serde_json::Value;
    /// Core networks: connections, MTs, MOs, what the HLR was asked.
    fn gsm(&self) -> serde_json::Value;
    /// All metrics.
    fn metrics(&self) -> String;
}

/// A file in the making, in pieces.
#[derive(Debug)]
pub struct Export {
    /// What it is.
    pub media_type: &'static str,
    /// Its pieces; an error ends it, and the connection with it.
    pub chunks: tokio::sync::mpsc::Receiver<Result<Vec<u8>, String>>,
}

pub(crate) type Shared = Arc<dyn Appliance>;

/// The largest component that is taken.
pub(crate) const COMPONENT_LIMIT: usize = 64 << 20;
/// The largest other request.
const REQUEST_LIMIT: usize = 16 << 20;

/// The whole API. All but health, readiness and the API's own description want the token.
pub fn router(appliance: Shared, token: Token) -> Router {
    let guarded = Router::new()
        .route("/v1/status", get(status))
        .route("/v1/queues", get(queues))
        .route("/v1/links", get(links))
        .route("/v1/messages/{id}", get(message))
        .route("/v1/messages/{id}/settle", post(settle))
        .route("/v1/explain", post(explain))
        .route("/v1/history", get(history))
        .route("/v1/history/export", get(export))
        .route("/v1/statistics", get(statistics))
        .route("/v1/archive", get(archive))
        .route("/v1/reports/parked", get(parked))
        .route("/v1/reports/again", post(report_again))
        .route("/v1/opt-outs", get(opt_outs).post(set_opt_out))
        .route("/v1/business", get(business))
        .route("/v1/gsm", get(gsm))
        .route("/metrics", get(metrics))
        .merge(crate::plugins::routes())
        .merge(crate::ledger::routes())
        .merge(crate::pools::routes())
        .route_layer(middleware::from_fn_with_state(token, guard));
    Router::new()
        .route("/v1/health", get(|| async { Json(serde_json::json!({ "status": "ok" })) }))
        .route("/v1/ready", get(ready))
        .route("/v1/openapi.json", get(|| async { Json(crate::openapi::document()) }))
        .merge(guarded)
        .fallback(|| async {
            Problem::new(Kind::NotFound, "no such path; GET /v1/openapi.json lists all of them")
        })
        .layer(DefaultBodyLimit::max(REQUEST_LIMIT))
        .with_state(appliance)
}

async fn guard(State(token): State<Token>, request: Request, next: Next) -> Response {
    let word = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    match word {
        Some(word) if token.is(word.trim()) => next.run(request).await,
        _ => {
            let detail = "send the header `Authorization: Bearer TOKEN`; the token is in the file `token` of the \
                          data directory";
            let mut response = Problem::new(Kind::Unauthorised, detail).into_response();
            let challenge = header::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            response
        }
    }
}

/// Calls the appliance off the network's threads.
pub(crate) async fn call<T: Send + 'static>(
    appliance: Shared,
    ask: impl FnOnce(&dyn Appliance) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let asked = tokio::task::spawn_blocking(move || ask(&*appliance)).await;
    asked
        .unwrap_or_else(|_| Err(Problem::new(Kind::Internal, "the request failed inside; the log says more")))
}

pub(crate) async fn answer<T: Serialize + Send + 'static>(
    appliance: Shared,
    ask: impl FnOnce(&dyn Appliance) -> Result<T, Problem> + Send + 'static,
) -> Result<Json<T>, Problem> {
    call(appliance, ask).await.map(Json)
}

/// A JSON body, with an error that says what is wrong with it.
pub(crate) fn json<T: for<'de> Deserialize<'de>>(body: &Bytes) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::new(Kind::BadRequest, format!("the body is not as expected: {error}")))
}

async fn ready(State(appliance): State<Shared>) -> Response {
    if appliance.ready() {
        Json(serde_json::json!({ "status": "ready" })).into_response()
    } else {
        Problem::new(Kind::Unavailable, "starting or stopping").into_response()
    }
}

async fn status(State(appliance): State<Shared>) -> Result<Json<view::Status>, Problem> {
    answer(appliance, Appliance::status).await
}

async fn queues(State(appliance): State<Shared>) -> Result<Json<Vec<view::Queue>>, Problem> {
    answer(appliance, Appliance::queues).await
}

async fn links(State(appliance): State<Shared>) -> Result<Json<Vec<view::Link>>, Problem> {
    answer(appliance, |appliance| Ok(appliance.links())).await
}

async fn message(
    State(appliance): State<Shared>,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Json<view::Trace>, Problem> {
    let body = query.get("body").is_some_and(|value| value == "1" || value == "true");
    answer(appliance, move |appliance| appliance.message(&id, body)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settle {
    remedy: Remedy,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Remedy {
    SendAgain,
    GiveUp,
}

async fn settle(
    State(appliance): State<Shared>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Problem> {
    let Settle { remedy } = json(&body)?;
    let again = matches!(remedy, Remedy::SendAgain);
    call(appliance, move |appliance| appliance.settle(&id, again)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn explain(State(appliance): State<Shared>, body: Bytes) -> Result<Json<view::Explanation>, Problem> {
    let message = json(&body)?;
    answer(appliance, move |appliance| appliance.explain(message)).await
}

pub(crate) type Asked = Query<HashMap<String, String>>;

async fn history(
    State(appliance): State<Shared>,
    Query(query): Asked,
) -> Result<Json<serde_json::Value>, Problem> {
    answer(appliance, move |appliance| appliance.history(&query)).await
}

async fn export(State(appliance): State<Shared>, Query(query): Asked) -> Result<Response, Problem> {
    let Export { media_type, chunks } = call(appliance, move |appliance| appliance.export(&query)).await?;
    let pieces = futures_util::stream::unfold(chunks, |mut chunks| async move {
        let piece = chunks.recv().await?;
        Some((piece.map_err(std::io::Error::other), chunks))
    });
    Ok(([(header::CONTENT_TYPE, media_type)], Body::from_stream(pieces)).into_response())
}

async fn statistics(
    State(appliance): State<Shared>,
    Query(query): Asked,
) -> Result<Json<serde_json::Value>, Problem> {
    answer(appliance, move |appliance| appliance.statistics(&query)).await
}

async fn archive(State(appliance): State<Shared>) -> Result<Json<serde_json::Value>, Problem> {
    answer(appliance, Appliance::archive).await
}

async fn parked(State(appliance): State<Shared>) -> Result<Json<serde_json::Value>, Problem> {
    answer(appliance, Appliance::parked).await
}

async fn report_again(
    State(appliance): State<Shared>,
    body: Bytes,
) -> Result<Json<serde_json::Value>, Problem> {
    let request = json(&body)?;
    answer(appliance, move |appliance| appliance.report_again(request)).await
}

async fn opt_outs(State(appliance): State<Shared>) -> Result<Json<serde_json::Value>, Problem> {
    answer(appliance, Appliance::opt_outs).await
}

async fn set_opt_out(State(appliance): State<Shared>, body: Bytes) -> Result<StatusCode, Problem> {
    let request = json(&body)?;
    call(appliance, move |appliance| appliance.set_opt_out(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn gsm(State(appliance): State<Shared>) -> Result<Json<serde_json::Value>, Problem> {
    answer(appliance, |appliance| Ok(appliance.gsm())).await
}

async fn business(State(appliance): State<Shared>) -> Result<Json<serde_json::Value>, Problem> {
    answer(appliance, |appliance| Ok(appliance.business())).await
}

async fn metrics(State(appliance): State<Shared>) -> Result<Response, Problem> {
    let page = call(appliance, |appliance| Ok(appliance.metrics())).await?;
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, Body::from(page)).into_response())
}

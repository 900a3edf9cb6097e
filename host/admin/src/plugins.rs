//! The API of plugins: versions, hooks, candidates, replays and tables.

use crate::api::{Asked, COMPONENT_LIMIT, Shared, answer, call, json};
use crate::problem::Problem;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::Value;

/// What stands behind it. Requests are given as they came; answers are as they go.
pub trait Plugins: Send + Sync + 'static {
    /// Plugin versions that are kept.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn plugins(&self) -> Result<Value, Problem>;
    /// Keeps a new plugin version, with its signature where there is one.
    ///
    /// # Errors
    /// When it is no component of a served world, or its signature does not count.
    fn upload(&self, name: &str, component: &[u8], signature: Option<&str>) -> Result<Value, Problem>;
    /// All hooks: what is live, what is on trial, counts, what happened.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn hooks(&self) -> Result<Value, Problem>;
    /// One hook, with its history.
    ///
    /// # Errors
    /// When there is no such hook.
    fn hook(&self, hook: &str) -> Result<Value, Problem>;
    /// Makes plugins live.
    ///
    /// # Errors
    /// When the request cannot be understood, a plugin does not start, or somebody was faster.
    fn activate(&self, hook: &str, request: Value) -> Result<Value, Problem>;
    /// Leaves a hook without any plugin.
    ///
    /// # Errors
    /// When there is no such hook.
    fn unbind(&self, hook: &str) -> Result<Value, Problem>;
    /// Goes back to what was live before.
    ///
    /// # Errors
    /// When there is nothing.
    fn rollback(&self, hook: &str) -> Result<Value, Problem>;
    /// Takes a candidate on trial.
    ///
    /// # Errors
    /// As [`Plugins::activate`].
    fn try_out(&self, hook: &str, request: Value) -> Result<Value, Problem>;
    /// Ends the trial.
    ///
    /// # Errors
    /// When there is none.
    fn dismiss(&self, hook: &str) -> Result<(), Problem>;
    /// Makes the candidate live.
    ///
    /// # Errors
    /// When there is none, or somebody was faster.
    fn promote(&self, hook: &str, request: Value) -> Result<Value, Problem>;
    /// Begins a replay of archived messages through a candidate.
    ///
    /// # Errors
    /// When the request cannot be understood, the candidate does not start, or there is no archive.
    fn replay(&self, request: Value) -> Result<Value, Problem>;
    /// All replays since the start.
    fn replays(&self) -> Value;
    /// One replay, with its report.
    ///
    /// # Errors
    /// When there is no such replay.
    fn replay_report(&self, id: &str) -> Result<Value, Problem>;
    /// Ends a replay.
    ///
    /// # Errors
    /// When there is no such replay.
    fn end_replay(&self, id: &str) -> Result<(), Problem>;
    /// The appliance's tables.
    fn tables(&self) -> Value;
    /// Fills a table from CSV, or fills it anew: `kind` is `exact` or `prefix`.
    ///
    /// # Errors
    /// When the rows are not as they should be; the table then stays as it was.
    fn put_table(&self, name: &str, kind: &str, rows: &[u8]) -> Result<Value, Problem>;
    /// What a table says of a key.
    ///
    /// # Errors
    /// When there is no such table.
    fn look_up(&self, name: &str, key: &str) -> Result<Value, Problem>;
    /// Removes a table.
    ///
    /// # Errors
    /// When there is none of that name.
    fn remove_table(&self, name: &str) -> Result<(), Problem>;
}

/// The largest table that is taken: some ten million rows.
const TABLE_LIMIT: usize = 1 << 30;

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/plugins", get(plugins))
        .route("/v1/plugins/{name}", put(upload).layer(DefaultBodyLimit::max(COMPONENT_LIMIT)))
        .route("/v1/hooks", get(hooks))
        .route("/v1/hooks/{hook}", get(hook).delete(unbind))
        .route("/v1/hooks/{hook}/activate", post(activate))
        .route("/v1/hooks/{hook}/rollback", post(rollback))
        .route("/v1/hooks/{hook}/candidate", post(try_out).delete(dismiss))
        .route("/v1/hooks/{hook}/promote", post(promote))
        .route("/v1/replays", get(replays).post(replay))
        .route("/v1/replays/{id}", get(replay_report).delete(end_replay))
        .route("/v1/tables", get(tables))
        .route(
            "/v1/tables/{name}",
            get(look_up)
                .merge(delete(remove_table))
                .merge(put(put_table).layer(DefaultBodyLimit::max(TABLE_LIMIT))),
        )
}

type Answer = Result<Json<Value>, Problem>;

async fn plugins(State(appliance): State<Shared>) -> Answer {
    answer(appliance, Plugins::plugins).await
}

async fn upload(
    State(appliance): State<Shared>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let signature =
        headers.get("switchyard-signature").and_then(|value| value.to_str().ok()).map(str::to_owned);
    answer(appliance, move |appliance| appliance.upload(&name, &body, signature.as_deref())).await
}

async fn hooks(State(appliance): State<Shared>) -> Answer {
    answer(appliance, Plugins::hooks).await
}

async fn hook(State(appliance): State<Shared>, Path(hook): Path<String>) -> Answer {
    answer(appliance, move |appliance| appliance.hook(&hook)).await
}

async fn activate(State(appliance): State<Shared>, Path(hook): Path<String>, body: Bytes) -> Answer {
    let request = json(&body)?;
    answer(appliance, move |appliance| appliance.activate(&hook, request)).await
}

async fn unbind(State(appliance): State<Shared>, Path(hook): Path<String>) -> Answer {
    answer(appliance, move |appliance| appliance.unbind(&hook)).await
}

async fn rollback(State(appliance): State<Shared>, Path(hook): Path<String>) -> Answer {
    answer(appliance, move |appliance| appliance.rollback(&hook)).await
}

async fn try_out(State(appliance): State<Shared>, Path(hook): Path<String>, body: Bytes) -> Answer {
    let request = json(&body)?;
    answer(appliance, move |appliance| appliance.try_out(&hook, request)).await
}

async fn dismiss(State(appliance): State<Shared>, Path(hook): Path<String>) -> Result<StatusCode, Problem> {
    call(appliance, move |appliance| appliance.dismiss(&hook)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn promote(State(appliance): State<Shared>, Path(hook): Path<String>, body: Bytes) -> Answer {
    let request = if body.is_empty() { Value::Null } else { json(&body)? };
    answer(appliance, move |appliance| appliance.promote(&hook, request)).await
}

async fn replay(State(appliance): State<Shared>, body: Bytes) -> Answer {
    let request = json(&body)?;
    answer(appliance, move |appliance| appliance.replay(request)).await
}

async fn replays(State(appliance): State<Shared>) -> Answer {
    answer(appliance, |appliance| Ok(appliance.replays())).await
}

async fn replay_report(State(appliance): State<Shared>, Path(id): Path<String>) -> Answer {
    answer(appliance, move |appliance| appliance.replay_report(&id)).await
}

async fn end_replay(State(appliance): State<Shared>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    call(appliance, move |appliance| appliance.end_replay(&id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn tables(State(appliance): State<Shared>) -> Answer {
    answer(appliance, |appliance| Ok(appliance.tables())).await
}

async fn look_up(State(appliance): State<Shared>, Path(name): Path<String>, Query(query): Asked) -> Answer {
    let key = query.get("key").cloned().unwrap_or_default();
    answer(appliance, move |appliance| appliance.look_up(&name, &key)).await
}

async fn put_table(
    State(appliance): State<Shared>,
    Path(name): Path<String>,
    Query(query): Asked,
    body: Bytes,
) -> Answer {
    let kind = query.get("kind").cloned().unwrap_or_default();
    answer(appliance, move |appliance| appliance.put_table(&name, &kind, &body)).await
}

async fn remove_table(
    State(appliance): State<Shared>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    call(appliance, move |appliance| appliance.remove_table(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

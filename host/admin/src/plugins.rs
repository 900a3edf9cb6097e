//! The API of plugins: versions, hooks, candidates and replays.

use crate::api::{Shared, answer, call};
use crate::guard::{Detailed, detailed, with_reason};
use crate::problem::{Kind, Problem};
use crate::request::{At, Binary, Document, IfAny, Octets};
use crate::view;
use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

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

/// The largest component that is taken.
const COMPONENT_LIMIT: usize = 64 << 20;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(plugins))
        .routes(routes!(upload).layer(DefaultBodyLimit::max(COMPONENT_LIMIT)))
        .routes(routes!(hooks))
        .routes(routes!(hook, unbind))
        .routes(routes!(activate))
        .routes(routes!(rollback))
        .routes(routes!(try_out, dismiss))
        .routes(routes!(promote))
        .routes(routes!(replays, replay))
        .routes(routes!(replay_report, end_replay))
}

type Answer = Result<Json<Value>, Problem>;

/// Characters of a reason.
const REASON_LIMIT: usize = 256;

/// The reason in a request, which is for the audit log and for nobody behind it.
fn taken_reason(request: &mut Value) -> Result<Option<String>, Problem> {
    match request.as_object_mut().and_then(|request| request.remove("why")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(why)) if why.chars().count() <= REASON_LIMIT => Ok(Some(why)),
        Some(_) => {
            Err(Problem::new(Kind::BadRequest, format!("why: a text of at most {REASON_LIMIT} characters")))
        }
    }
}

/// A chain in words, for the audit log: which versions are live, or on trial and how.
fn chain(record: &Value) -> String {
    let name = |binding: &Value| {
        format!(
            "{} {}",
            binding["plugin"].as_str().unwrap_or_default(),
            binding["version"].as_str().unwrap_or_default()
        )
    };
    let chain: Vec<String> = record["chain"].as_array().into_iter().flatten().map(name).collect();
    let chain = if chain.is_empty() { "no plugin".to_owned() } else { chain.join(", ") };
    let how = record["mode"].as_str().or(record["how"].as_str()).unwrap_or_default();
    match (record["serial"].as_u64(), record["share"].as_f64()) {
        (Some(serial), _) => format!("{how}: {chain}; serial {serial}"),
        (None, Some(share)) => format!("{how} of {} %: {chain}", share / 100.0),
        (None, None) => format!("{how}: {chain}"),
    }
}

/// Plugin versions that are kept: size, hook, contract, imports, who signed them.
#[utoipa::path(
    get,
    path = "/v1/plugins",
    responses((status = 200, description = "All of them.", body = Vec<view::PluginVersion>)),
)]
async fn plugins(State(appliance): State<Shared>) -> Answer {
    answer(appliance, Plugins::plugins).await
}

/// Keeps a component as a new version of a plugin.
#[utoipa::path(
    put,
    path = "/v1/plugins/{name}",
    params(
        ("name" = String, Path, description = "The plugin's name."),
        ("switchyard-signature" = Option<String>, Header, description = "Base64 of the component's ed25519 signature."),
    ),
    request_body(content = Binary, content_type = "application/wasm", description = "The component."),
    responses((status = 200, description = "It is kept.", body = view::PluginVersion)),
)]
async fn upload(
    State(appliance): State<Shared>,
    At(name): At<String>,
    headers: HeaderMap,
    Octets(body): Octets,
) -> Detailed<Value> {
    let signature =
        headers.get("switchyard-signature").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let kept =
        answer(appliance, move |appliance| appliance.upload(&name, &body, signature.as_deref())).await?;
    detailed(kept, |kept| match (kept["version"].as_str(), kept["signed_by"].as_str()) {
        (Some(version), Some(key)) => format!("version {version}, signed by {key}"),
        (version, _) => format!("version {}, not signed", version.unwrap_or("unknown")),
    })
}

/// All hooks: what is live, what is on trial and how it compares, counts, what happened.
#[utoipa::path(
    get,
    path = "/v1/hooks",
    responses((status = 200, description = "All of them.", body = Vec<view::HookState>)),
)]
async fn hooks(State(appliance): State<Shared>) -> Answer {
    answer(appliance, Plugins::hooks).await
}

/// One hook, with its history.
#[utoipa::path(
    get,
    path = "/v1/hooks/{hook}",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    responses((status = 200, description = "As it is now.", body = view::HookState)),
)]
async fn hook(State(appliance): State<Shared>, At(hook): At<String>) -> Answer {
    answer(appliance, move |appliance| appliance.hook(&hook)).await
}

/// Leaves a hook without any plugin.
#[utoipa::path(
    delete,
    path = "/v1/hooks/{hook}",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    responses((status = 200, description = "What is live now.", body = view::BindingRecord)),
)]
async fn unbind(State(appliance): State<Shared>, At(hook): At<String>) -> Detailed<Value> {
    let live = answer(appliance, move |appliance| appliance.unbind(&hook)).await?;
    detailed(live, chain)
}

/// Makes a plugin live, or a chain of them.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/activate",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    request_body = view::Activation,
    responses((status = 200, description = "What is live now.", body = view::BindingRecord)),
)]
async fn activate(
    State(appliance): State<Shared>,
    At(hook): At<String>,
    Document(mut request): Document<Value>,
) -> Detailed<Value> {
    let why = taken_reason(&mut request)?;
    let live = answer(appliance, move |appliance| appliance.activate(&hook, request)).await?;
    detailed(live, |live| with_reason(chain(live), why.as_deref()))
}

/// Goes back to what was live before.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/rollback",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    request_body = Option<view::HookRollback>,
    responses((status = 200, description = "What is live now.", body = view::BindingRecord)),
)]
async fn rollback(
    State(appliance): State<Shared>,
    At(hook): At<String>,
    IfAny(request): IfAny<view::HookRollback>,
) -> Detailed<Value> {
    let why = taken_reason(&mut json!(request))?;
    let live = answer(appliance, move |appliance| appliance.rollback(&hook)).await?;
    detailed(live, |live| with_reason(chain(live), why.as_deref()))
}

/// Takes a candidate on trial.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/candidate",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    request_body = view::Trial,
    responses((status = 200, description = "What is on trial now.", body = view::CandidateRecord)),
)]
async fn try_out(
    State(appliance): State<Shared>,
    At(hook): At<String>,
    Document(mut request): Document<Value>,
) -> Detailed<Value> {
    let why = taken_reason(&mut request)?;
    let candidate = answer(appliance, move |appliance| appliance.try_out(&hook, request)).await?;
    detailed(candidate, |candidate| with_reason(chain(candidate), why.as_deref()))
}

/// Ends the trial.
#[utoipa::path(
    delete,
    path = "/v1/hooks/{hook}/candidate",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    responses((status = 204, description = "It is over.")),
)]
async fn dismiss(State(appliance): State<Shared>, At(hook): At<String>) -> Result<StatusCode, Problem> {
    call(appliance, move |appliance| appliance.dismiss(&hook)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes the candidate live.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/promote",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    request_body = Option<view::Promotion>,
    responses((status = 200, description = "What is live now.", body = view::BindingRecord)),
)]
async fn promote(
    State(appliance): State<Shared>,
    At(hook): At<String>,
    IfAny(request): IfAny<view::Promotion>,
) -> Detailed<Value> {
    let mut request = json!(request);
    let why = taken_reason(&mut request)?;
    let live = answer(appliance, move |appliance| appliance.promote(&hook, request)).await?;
    detailed(live, |live| with_reason(chain(live), why.as_deref()))
}

/// Replays since the start.
#[utoipa::path(
    get,
    path = "/v1/replays",
    responses((status = 200, description = "Newest first.", body = Vec<view::ReplayState>)),
)]
async fn replays(State(appliance): State<Shared>) -> Answer {
    answer(appliance, |appliance| Ok(appliance.replays())).await
}

/// Begins a replay of archived messages through a candidate.
#[utoipa::path(
    post,
    path = "/v1/replays",
    request_body = view::WantedReplay,
    responses((status = 200, description = "It runs.", body = view::ReplayBegun)),
)]
async fn replay(State(appliance): State<Shared>, Document(mut request): Document<Value>) -> Answer {
    taken_reason(&mut request)?;
    answer(appliance, move |appliance| appliance.replay(request)).await
}

/// A replay and its report: which verdicts differ, from what to what, with examples and prices.
#[utoipa::path(
    get,
    path = "/v1/replays/{id}",
    params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "As far as it is.", body = view::ReplayState)),
)]
async fn replay_report(State(appliance): State<Shared>, At(id): At<String>) -> Answer {
    answer(appliance, move |appliance| appliance.replay_report(&id)).await
}

/// Ends a replay.
#[utoipa::path(
    delete,
    path = "/v1/replays/{id}",
    params(("id" = String, Path, description = "Its id.")),
    responses((status = 204, description = "It ends.")),
)]
async fn end_replay(State(appliance): State<Shared>, At(id): At<String>) -> Result<StatusCode, Problem> {
    call(appliance, move |appliance| appliance.end_replay(&id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_hook_is_told_with_versions_and_the_reason() {
        let mut request = json!({ "plugin": "a", "why": "cheaper" });
        let why = taken_reason(&mut request).ok().flatten();
        assert_eq!(request, json!({ "plugin": "a" }));
        let live = json!({ "serial": 4, "how": "activated", "chain": [
            { "plugin": "a", "version": "96fced7a19c6" }, { "plugin": "b", "version": "58cd962459f1" },
        ] });
        assert_eq!(
            with_reason(chain(&live), why.as_deref()),
            "activated: a 96fced7a19c6, b 58cd962459f1; serial 4; why: cheaper"
        );
        let canary = json!({ "mode": "canary", "share": 250, "chain": [{ "plugin": "a", "version": "96fced7a19c6" }] });
        assert_eq!(with_reason(chain(&canary), None), "canary of 2.5 %: a 96fced7a19c6");
        assert_eq!(
            chain(&json!({ "serial": 5, "how": "unbound", "chain": [] })),
            "unbound: no plugin; serial 5"
        );
        assert!(taken_reason(&mut json!({ "why": "x".repeat(257) })).is_err());
        assert!(taken_reason(&mut json!({ "why": 7 })).is_err());
    }
}

//! The API of plugins: versions, hooks, candidates and replays.

use crate::backend::{SharedBackend, call, call_json};
use crate::problem::{Problem, ProblemKind};
use crate::request::{Binary, JsonBody, OptionalJsonBody, PathParams, RawBody};
use crate::request_audit::{AuditedResult, append_reason, with_audit_detail};

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

/// The plugin backend. Requests and answers are JSON documents of the API, passed through unchanged.
pub trait Plugins: Send + Sync + 'static {
    /// The stored plugin versions.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn plugins(&self) -> Result<Value, Problem>;
    /// Stores a new plugin version, with its signature if there is one.
    ///
    /// # Errors
    /// If the component implements no supported world, or the signature is not valid.
    fn upload(&self, name: &str, component: &[u8], signature: Option<&str>) -> Result<Value, Problem>;
    /// All hooks with live chain, candidate, counts and events.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn hooks(&self) -> Result<Value, Problem>;
    /// One hook, with its history.
    ///
    /// # Errors
    /// If there is no such hook.
    fn hook(&self, hook: &str) -> Result<Value, Problem>;
    /// Activates a chain of plugins.
    ///
    /// # Errors
    /// If the request is invalid, a plugin does not start, or the hook was changed meanwhile.
    fn activate(&self, hook: &str, request: Value) -> Result<Value, Problem>;
    /// Removes all plugins from a hook.
    ///
    /// # Errors
    /// If there is no such hook.
    fn unbind(&self, hook: &str) -> Result<Value, Problem>;
    /// Activates the previous chain again.
    ///
    /// # Errors
    /// If there is no previous chain.
    fn rollback(&self, hook: &str) -> Result<Value, Problem>;
    /// Starts the trial of a candidate.
    ///
    /// # Errors
    /// As [`Plugins::activate`].
    fn start_trial(&self, hook: &str, request: Value) -> Result<Value, Problem>;
    /// Ends the trial.
    ///
    /// # Errors
    /// If there is no candidate.
    fn end_trial(&self, hook: &str) -> Result<(), Problem>;
    /// Activates the candidate.
    ///
    /// # Errors
    /// If there is no candidate, or the hook was changed meanwhile.
    fn promote(&self, hook: &str, request: Value) -> Result<Value, Problem>;
    /// Starts a replay of archived messages through a candidate.
    ///
    /// # Errors
    /// If the request is invalid, the candidate does not start, or there is no archive.
    fn replay(&self, request: Value) -> Result<Value, Problem>;
    /// All replays since the start of the daemon.
    fn replays(&self) -> Value;
    /// One replay, with its report.
    ///
    /// # Errors
    /// If there is no such replay.
    fn replay_report(&self, id: &str) -> Result<Value, Problem>;
    /// Ends a replay.
    ///
    /// # Errors
    /// If there is no such replay.
    fn end_replay(&self, id: &str) -> Result<(), Problem>;
    /// The lookup tables.
    fn tables(&self) -> Value;
    /// Creates or replaces a lookup table from CSV. `kind`: `exact` or `prefix`.
    ///
    /// # Errors
    /// If a row is invalid; the table then stays unchanged.
    fn put_table(&self, name: &str, kind: &str, rows: &[u8]) -> Result<Value, Problem>;
    /// Looks a key up in a table.
    ///
    /// # Errors
    /// If there is no such table.
    fn look_up(&self, name: &str, key: &str) -> Result<Value, Problem>;
    /// Removes a table.
    ///
    /// # Errors
    /// If there is no such table.
    fn remove_table(&self, name: &str) -> Result<(), Problem>;
}

/// Maximum size of a component, in octets.
const MAX_COMPONENT_OCTETS: usize = 64 << 20;

pub(crate) fn routes() -> OpenApiRouter<SharedBackend> {
    OpenApiRouter::new()
        .routes(routes!(plugins))
        .routes(routes!(upload).layer(DefaultBodyLimit::max(MAX_COMPONENT_OCTETS)))
        .routes(routes!(hooks))
        .routes(routes!(hook, unbind))
        .routes(routes!(activate))
        .routes(routes!(rollback))
        .routes(routes!(start_trial, end_trial))
        .routes(routes!(promote))
        .routes(routes!(replays, replay))
        .routes(routes!(replay_report, end_replay))
}

type Answer = Result<Json<Value>, Problem>;

/// Maximum characters of a reason.
const MAX_REASON_CHARS: usize = 256;

/// Takes the reason out of a request. It is for the audit log only.
fn take_reason(request: &mut Value) -> Result<Option<String>, Problem> {
    match request.as_object_mut().and_then(|request| request.remove("why")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(why)) if why.chars().count() <= MAX_REASON_CHARS => Ok(Some(why)),
        Some(_) => Err(Problem::new(
            ProblemKind::BadRequest,
            format!("why: must be a text of at most {MAX_REASON_CHARS} characters"),
        )),
    }
}

/// Describes a chain for the audit log: its versions, and how they came to be live or on trial.
fn describe_chain(record: &Value) -> String {
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

/// Lists the stored plugin versions: size, hook, contract, imports, signer.
#[utoipa::path(
    get,
    path = "/v1/plugins",
    responses((status = 200, description = "All plugin versions.", body = Vec<api::PluginVersionView>)),
)]
async fn plugins(State(backend): State<SharedBackend>) -> Answer {
    call_json(backend, Plugins::plugins).await
}

/// Stores a component as a new version of a plugin.
#[utoipa::path(
    put,
    path = "/v1/plugins/{name}",
    params(
        ("name" = String, Path, description = "The plugin's name."),
        ("switchyard-signature" = Option<String>, Header, description = "Base64 of the component's ed25519 signature."),
    ),
    request_body(content = Binary, content_type = "application/wasm", description = "The component."),
    responses((status = 200, description = "The version is stored.", body = api::PluginVersionView)),
)]
async fn upload(
    State(backend): State<SharedBackend>,
    PathParams(name): PathParams<String>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> AuditedResult<Value> {
    let signature =
        headers.get("switchyard-signature").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let stored =
        call_json(backend, move |backend| backend.upload(&name, &body, signature.as_deref())).await?;
    with_audit_detail(stored, |stored| match (stored["version"].as_str(), stored["signed_by"].as_str()) {
        (Some(version), Some(key)) => format!("version {version}, signed by {key}"),
        (version, _) => format!("version {}, not signed", version.unwrap_or("unknown")),
    })
}

/// Lists all hooks: live chain, candidate with its comparison, counts, events.
#[utoipa::path(
    get,
    path = "/v1/hooks",
    responses((status = 200, description = "All hooks.", body = Vec<api::HookStateView>)),
)]
async fn hooks(State(backend): State<SharedBackend>) -> Answer {
    call_json(backend, Plugins::hooks).await
}

/// Shows one hook, with its history.
#[utoipa::path(
    get,
    path = "/v1/hooks/{hook}",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    responses((status = 200, description = "The hook.", body = api::HookStateView)),
)]
async fn hook(State(backend): State<SharedBackend>, PathParams(hook): PathParams<String>) -> Answer {
    call_json(backend, move |backend| backend.hook(&hook)).await
}

/// Removes all plugins from a hook.
#[utoipa::path(
    delete,
    path = "/v1/hooks/{hook}",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    responses((status = 200, description = "The live chain, now empty.", body = api::BindingRecordView)),
)]
async fn unbind(
    State(backend): State<SharedBackend>,
    PathParams(hook): PathParams<String>,
) -> AuditedResult<Value> {
    let live = call_json(backend, move |backend| backend.unbind(&hook)).await?;
    with_audit_detail(live, describe_chain)
}

/// Activates a plugin, or a chain of plugins.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/activate",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    request_body = api::ActivationRequest,
    responses((status = 200, description = "The live chain.", body = api::BindingRecordView)),
)]
async fn activate(
    State(backend): State<SharedBackend>,
    PathParams(hook): PathParams<String>,
    JsonBody(mut request): JsonBody<Value>,
) -> AuditedResult<Value> {
    let why = take_reason(&mut request)?;
    let live = call_json(backend, move |backend| backend.activate(&hook, request)).await?;
    with_audit_detail(live, |live| append_reason(describe_chain(live), why.as_deref()))
}

/// Activates the previous chain again.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/rollback",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    request_body = Option<api::HookRollbackRequest>,
    responses((status = 200, description = "The live chain.", body = api::BindingRecordView)),
)]
async fn rollback(
    State(backend): State<SharedBackend>,
    PathParams(hook): PathParams<String>,
    OptionalJsonBody(request): OptionalJsonBody<api::HookRollbackRequest>,
) -> AuditedResult<Value> {
    let why = take_reason(&mut json!(request))?;
    let live = call_json(backend, move |backend| backend.rollback(&hook)).await?;
    with_audit_detail(live, |live| append_reason(describe_chain(live), why.as_deref()))
}

/// Starts the trial of a candidate.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/candidate",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    request_body = api::TrialRequest,
    responses((status = 200, description = "The candidate.", body = api::CandidateRecordView)),
)]
async fn start_trial(
    State(backend): State<SharedBackend>,
    PathParams(hook): PathParams<String>,
    JsonBody(mut request): JsonBody<Value>,
) -> AuditedResult<Value> {
    let why = take_reason(&mut request)?;
    let candidate = call_json(backend, move |backend| backend.start_trial(&hook, request)).await?;
    with_audit_detail(candidate, |candidate| append_reason(describe_chain(candidate), why.as_deref()))
}

/// Ends the trial of the candidate.
#[utoipa::path(
    delete,
    path = "/v1/hooks/{hook}/candidate",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    responses((status = 204, description = "The trial has ended.")),
)]
async fn end_trial(
    State(backend): State<SharedBackend>,
    PathParams(hook): PathParams<String>,
) -> Result<StatusCode, Problem> {
    call(backend, move |backend| backend.end_trial(&hook)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Activates the candidate.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/promote",
    params(("hook" = String, Path, description = "router, resolver, delivery-policy or biller.")),
    request_body = Option<api::PromotionRequest>,
    responses((status = 200, description = "The live chain.", body = api::BindingRecordView)),
)]
async fn promote(
    State(backend): State<SharedBackend>,
    PathParams(hook): PathParams<String>,
    OptionalJsonBody(request): OptionalJsonBody<api::PromotionRequest>,
) -> AuditedResult<Value> {
    let mut request = json!(request);
    let why = take_reason(&mut request)?;
    let live = call_json(backend, move |backend| backend.promote(&hook, request)).await?;
    with_audit_detail(live, |live| append_reason(describe_chain(live), why.as_deref()))
}

/// Lists the replays since the start of the daemon.
#[utoipa::path(
    get,
    path = "/v1/replays",
    responses((status = 200, description = "All replays, newest first.", body = Vec<api::ReplayStateView>)),
)]
async fn replays(State(backend): State<SharedBackend>) -> Answer {
    call_json(backend, |backend| Ok(backend.replays())).await
}

/// Starts a replay of archived messages through a candidate.
#[utoipa::path(
    post,
    path = "/v1/replays",
    request_body = api::ReplayRequest,
    responses((status = 200, description = "The replay has started.", body = api::ReplayStart)),
)]
async fn replay(State(backend): State<SharedBackend>, JsonBody(mut request): JsonBody<Value>) -> Answer {
    take_reason(&mut request)?;
    call_json(backend, move |backend| backend.replay(request)).await
}

/// Shows a replay with its report: differing verdicts, with examples and prices.
#[utoipa::path(
    get,
    path = "/v1/replays/{id}",
    params(("id" = String, Path, description = "The replay's id.")),
    responses((status = 200, description = "The replay, with its report if it has ended.", body = api::ReplayStateView)),
)]
async fn replay_report(State(backend): State<SharedBackend>, PathParams(id): PathParams<String>) -> Answer {
    call_json(backend, move |backend| backend.replay_report(&id)).await
}

/// Ends a replay.
#[utoipa::path(
    delete,
    path = "/v1/replays/{id}",
    params(("id" = String, Path, description = "The replay's id.")),
    responses((status = 204, description = "The replay ends.")),
)]
async fn end_replay(
    State(backend): State<SharedBackend>,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, Problem> {
    call(backend, move |backend| backend.end_replay(&id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_change_detail_has_versions_and_reason() {
        let mut request = json!({ "plugin": "a", "why": "cheaper" });
        let why = take_reason(&mut request).ok().flatten();
        assert_eq!(request, json!({ "plugin": "a" }));
        let live = json!({ "serial": 4, "how": "activated", "chain": [
            { "plugin": "a", "version": "96fced7a19c6" }, { "plugin": "b", "version": "58cd962459f1" },
        ] });
        assert_eq!(
            append_reason(describe_chain(&live), why.as_deref()),
            "activated: a 96fced7a19c6, b 58cd962459f1; serial 4; why: cheaper"
        );
        let canary = json!({ "mode": "canary", "share": 250, "chain": [{ "plugin": "a", "version": "96fced7a19c6" }] });
        assert_eq!(append_reason(describe_chain(&canary), None), "canary of 2.5 %: a 96fced7a19c6");
        assert_eq!(
            describe_chain(&json!({ "serial": 5, "how": "unbound", "chain": [] })),
            "unbound: no plugin; serial 5"
        );
        assert!(take_reason(&mut json!({ "why": "x".repeat(257) })).is_err());
        assert!(take_reason(&mut json!({ "why": 7 })).is_err());
    }
}

//! The API of plugins: versions, hooks, candidates and replays.

use crate::problem::{Problem, ProblemKind};
use crate::request::{Binary, Flag, JsonContent, OptionalJsonBody, PathParams, QueryParams, RawBody};
use crate::request_audit::{AuditedResult, append_reason, with_audit_detail};
use crate::service::{Provides, Service, call, call_json};

use access::Caller;
use api::{
    ActivationRequest, Binding, BindingRecord, CandidateRecordView, FaultCase, HookStateView,
    PluginVersionView,
};
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use model::NumberDisplay;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

/// The plugin backend.
pub trait Plugins: Send + Sync + 'static {
    /// The stored plugin versions.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn plugins(&self) -> Result<Vec<PluginVersionView>, Problem>;
    /// Stores a new plugin version, with its signature if there is one.
    ///
    /// # Errors
    /// If the component implements no supported world, or the signature is not valid.
    fn upload(
        &self,
        name: &str,
        component: &[u8],
        signature: Option<&str>,
    ) -> Result<PluginVersionView, Problem>;
    /// Stores the debug information of a version.
    ///
    /// # Errors
    /// If there is no such version, or it belongs to another component.
    fn add_debug_info(&self, name: &str, version: &str, octets: &[u8]) -> Result<PluginVersionView, Problem>;
    /// The JSON Schema of a version's policy document.
    ///
    /// # Errors
    /// If there is no such version, or it has no schema.
    fn policy_schema(&self, name: &str, version: &str) -> Result<serde_json::Value, Problem>;
    /// All hooks with live chain, candidate, counts and events.
    fn hooks(&self) -> Vec<HookStateView>;
    /// One hook, with its history.
    ///
    /// # Errors
    /// If there is no such hook.
    fn hook(&self, hook: &str) -> Result<HookStateView, Problem>;
    /// A case with a fault of a hook.
    ///
    /// # Errors
    /// If there is no such hook, or the fault is not kept any more.
    fn fault_case(&self, hook: &str, id: u64) -> Result<FaultCase, Problem>;
    /// Activates a chain of plugins.
    ///
    /// # Errors
    /// The request is invalid, a plugin does not start, or the hook was changed in the meantime.
    fn activate(&self, hook: &str, request: ActivationRequest) -> Result<BindingRecord, Problem>;
    /// Removes all plugins from a hook.
    ///
    /// # Errors
    /// If there is no such hook.
    fn unbind(&self, hook: &str) -> Result<BindingRecord, Problem>;
    /// Activates the previous chain again.
    ///
    /// # Errors
    /// If there is no previous chain.
    fn rollback(&self, hook: &str) -> Result<BindingRecord, Problem>;
    /// Starts the trial of a candidate.
    ///
    /// # Errors
    /// As [`Plugins::activate`].
    fn start_trial(&self, hook: &str, request: api::TrialRequest) -> Result<CandidateRecordView, Problem>;
    /// Ends the trial.
    ///
    /// # Errors
    /// If there is no candidate.
    fn end_trial(&self, hook: &str) -> Result<(), Problem>;
    /// Activates the candidate. `expected`: the serial of the last change that the client has seen.
    ///
    /// # Errors
    /// There is no candidate, or the hook was changed in the meantime.
    fn promote(&self, hook: &str, expected: Option<u64>) -> Result<BindingRecord, Problem>;
    /// Decides about messages by a chain that serves no traffic, and by the live chain. `numbers`: how numbers of
    /// archived messages are shown.
    ///
    /// # Errors
    /// If the request is invalid, a plugin does not start, or the archive cannot be read.
    fn try_policy(
        &self,
        hook: &str,
        request: api::PolicyTryRequest,
        numbers: NumberDisplay,
    ) -> Result<api::PolicyTryView, Problem>;
    /// Makes cases of messages that a chain decides about, without effects. They contain full numbers and texts.
    ///
    /// # Errors
    /// As for a try; if the hook is neither screen nor router.
    fn message_cases(
        &self,
        hook: &str,
        request: api::PolicyTryRequest,
    ) -> Result<Vec<api::MessageCase>, Problem>;
    /// Starts a replay of archived messages through a candidate.
    ///
    /// # Errors
    /// If the request is invalid, the candidate does not start, or there is no archive.
    fn replay(&self, request: api::ReplayRequest) -> Result<api::ReplayStart, Problem>;
    /// All replays since the start of the daemon.
    fn replays(&self) -> Vec<api::ReplayStateView>;
    /// One replay, with its report. `numbers`: how the numbers in its examples are shown. `body`: whether the examples
    /// contain the differences of requests.
    ///
    /// # Errors
    /// If there is no such replay.
    fn replay_report(
        &self,
        id: &str,
        numbers: NumberDisplay,
        body: bool,
    ) -> Result<api::ReplayStateView, Problem>;
    /// Ends a replay.
    ///
    /// # Errors
    /// If there is no such replay.
    fn end_replay(&self, id: &str) -> Result<(), Problem>;
    /// The lookup tables.
    fn tables(&self) -> Vec<api::TableView>;
    /// Creates or replaces a lookup table from CSV, which is read while it arrives.
    ///
    /// # Errors
    /// If a row is invalid; the table then stays unchanged.
    fn put_table(
        &self,
        name: &str,
        kind: api::TableKind,
        rows: &mut dyn std::io::Read,
    ) -> Result<api::TableFillResult, Problem>;
    /// Looks a key up in a table.
    ///
    /// # Errors
    /// If there is no such table.
    fn look_up(&self, name: &str, key: &str) -> Result<api::TableLookUpView, Problem>;
    /// Removes a table.
    ///
    /// # Errors
    /// If there is no such table.
    fn remove_table(&self, name: &str) -> Result<(), Problem>;
}

/// Maximum size of a component, in octets.
const MAX_COMPONENT_OCTETS: usize = 64 << 20;

pub(crate) fn routes<S: Provides<dyn Plugins>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(plugins))
        .routes(routes!(upload).layer(DefaultBodyLimit::max(MAX_COMPONENT_OCTETS)))
        .routes(routes!(add_debug_info).layer(DefaultBodyLimit::max(MAX_COMPONENT_OCTETS)))
        .routes(routes!(policy_schema))
        .routes(routes!(hooks))
        .routes(routes!(hook, unbind))
        .routes(routes!(fault_case))
        .routes(routes!(activate))
        .routes(routes!(rollback))
        .routes(routes!(start_trial, end_trial))
        .routes(routes!(promote))
        .routes(routes!(try_policy))
        .routes(routes!(message_cases))
        .routes(routes!(replays, replay))
        .routes(routes!(replay_report, end_replay))
}

/// Decides about messages by a chain of plugins that serves no traffic, and compares its decisions to those of the live
/// chain. Nothing is counted, stored or sent. In-memory counters start empty for both chains. Archived messages are
/// tried with the host's answers that were recorded with them.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/try",
    params(("hook" = String, Path, description = "router or biller; any hook without messages.")),
    request_body = api::PolicyTryRequest,
    responses((status = 200, description = "The decisions.", body = api::PolicyTryView)),
)]
async fn try_policy(
    backend: Service<dyn Plugins>,
    Extension(caller): Extension<Caller>,
    PathParams(hook): PathParams<String>,
    JsonContent(request): JsonContent<api::PolicyTryRequest>,
) -> Answer<api::PolicyTryView> {
    let numbers = caller.number_display();
    call_json(backend, move |backend| backend.try_policy(&hook, request, numbers)).await
}

/// Makes cases of messages for a plugin's author, with the decisions of screens or routers. Nothing is counted, stored
/// or sent. The cases contain full numbers and texts. Archived messages are decided about with the host's answers that
/// were recorded with them.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/cases",
    params(("hook" = String, Path, description = "screen or router.")),
    request_body = api::PolicyTryRequest,
    responses((status = 200, description = "The cases, oldest message first. After 10 s, no further ones are made.", body = Vec<api::MessageCase>)),
)]
async fn message_cases(
    backend: Service<dyn Plugins>,
    PathParams(hook): PathParams<String>,
    JsonContent(request): JsonContent<api::PolicyTryRequest>,
) -> AuditedResult<Vec<api::MessageCase>> {
    let cases = call_json(backend, move |backend| backend.message_cases(&hook, request)).await?;
    with_audit_detail(cases, |cases| format!("{} cases", cases.len()))
}

type Answer<T> = Result<Json<T>, Problem>;

/// Maximum characters of a reason.
const MAX_REASON_CHARS: usize = 256;

/// Checks the reason of a request. It is for the audit log only.
fn check_reason(why: Option<String>) -> Result<Option<String>, Problem> {
    if why.as_ref().is_some_and(|why| why.chars().count() > MAX_REASON_CHARS) {
        return Err(Problem::new(
            ProblemKind::BadRequest,
            format!("why: must be a text of at most {MAX_REASON_CHARS} characters"),
        ));
    }
    Ok(why)
}

fn describe_chain(chain: &[Binding]) -> String {
    let names: Vec<_> =
        chain.iter().map(|binding| format!("{} {}", binding.plugin, binding.version)).collect();
    if names.is_empty() { "no plugin".to_owned() } else { names.join(", ") }
}

/// Describes a live chain for the audit log: its versions, and how they became live.
fn describe_live(record: &BindingRecord) -> String {
    format!("{}: {}; serial {}", record.change.name(), describe_chain(&record.chain), record.serial)
}

/// Describes a chain on trial for the audit log.
fn describe_candidate(record: &CandidateRecordView) -> String {
    let (mode, chain) = (record.mode.name(), describe_chain(&record.chain));
    match record.share {
        Some(share) => format!("{mode} of {} %: {chain}", f64::from(share) / 100.0),
        None => format!("{mode}: {chain}"),
    }
}

/// Lists the stored plugin versions: size, hook, contract, imports, signer.
#[utoipa::path(
    get,
    path = "/v1/plugins",
    responses((status = 200, description = "All plugin versions.", body = Vec<PluginVersionView>)),
)]
async fn plugins(backend: Service<dyn Plugins>) -> Answer<Vec<PluginVersionView>> {
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
    responses((status = 200, description = "The version is stored.", body = PluginVersionView)),
)]
async fn upload(
    backend: Service<dyn Plugins>,
    PathParams(name): PathParams<String>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> AuditedResult<PluginVersionView> {
    let signature =
        headers.get("switchyard-signature").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let stored =
        call_json(backend, move |backend| backend.upload(&name, &body, signature.as_deref())).await?;
    with_audit_detail(stored, |stored| match &stored.signed_by {
        Some(key) => format!("version {}, signed by {key}", stored.version),
        None => format!("version {}, not signed", stored.version),
    })
}

/// Stores the debug information of a plugin version, so that call stacks of faults show source positions.
#[utoipa::path(
    put,
    path = "/v1/plugins/{name}/{version}/debug-info",
    params(
        ("name" = String, Path, description = "The plugin's name."),
        ("version" = String, Path, description = "The version: the SHA-256 of the component in hexadecimal digits, or 6 or more first ones that no other version has."),
    ),
    request_body(
        content = Binary,
        content_type = "application/wasm",
        description = "The component with its debug sections, as the build wrote it; without them it must be the stored component.",
    ),
    responses((status = 200, description = "The debug information is stored.", body = PluginVersionView)),
)]
async fn add_debug_info(
    backend: Service<dyn Plugins>,
    PathParams((name, version)): PathParams<(String, String)>,
    RawBody(body): RawBody,
) -> AuditedResult<PluginVersionView> {
    let stored = call_json(backend, move |backend| backend.add_debug_info(&name, &version, &body)).await?;
    with_audit_detail(stored, |stored| format!("version {}", stored.version))
}

/// Shows the JSON Schema of a plugin version's policy document. The keyword `x-switchyard` of a property states that
/// its value is the name (or a list of names) of an `account`, `ledger-account`, `pace-bucket`, `peer`, `pool`,
/// `send-window` or `table` of the appliance.
#[utoipa::path(
    get,
    path = "/v1/plugins/{name}/{version}/policy-schema",
    params(
        ("name" = String, Path, description = "The plugin's name."),
        ("version" = String, Path, description = "The version: the SHA-256 of the component in hexadecimal digits, or 6 or more first ones that no other version has."),
    ),
    responses((status = 200, description = "The schema.", body = serde_json::Map<String, serde_json::Value>)),
)]
async fn policy_schema(
    backend: Service<dyn Plugins>,
    PathParams((name, version)): PathParams<(String, String)>,
) -> Answer<serde_json::Value> {
    call_json(backend, move |backend| backend.policy_schema(&name, &version)).await
}

/// Lists all hooks: live chain, candidate with its comparison, counts, events.
#[utoipa::path(
    get,
    path = "/v1/hooks",
    responses((status = 200, description = "All hooks.", body = Vec<HookStateView>)),
)]
async fn hooks(backend: Service<dyn Plugins>) -> Answer<Vec<HookStateView>> {
    call_json(backend, |backend| Ok(backend.hooks())).await
}

/// Shows one hook, with its history.
#[utoipa::path(
    get,
    path = "/v1/hooks/{hook}",
    params(("hook" = String, Path, description = "screen, lookup, router, resolver, delivery-policy, receipt, biller, peer or front-end.")),
    responses((status = 200, description = "The hook.", body = HookStateView)),
)]
async fn hook(backend: Service<dyn Plugins>, PathParams(hook): PathParams<String>) -> Answer<HookStateView> {
    call_json(backend, move |backend| backend.hook(&hook)).await
}

/// Makes a case of a fault, for the plugin's author. It contains full numbers and the text of the message.
#[utoipa::path(
    get,
    path = "/v1/hooks/{hook}/faults/{id}/case",
    params(
        ("hook" = String, Path, description = "screen, lookup, router, resolver, delivery-policy, receipt, biller, peer or front-end."),
        ("id" = u64, Path, description = "The number of the fault, as in the hook's examples."),
    ),
    responses((status = 200, description = "The case.", body = FaultCase)),
)]
async fn fault_case(
    backend: Service<dyn Plugins>,
    PathParams((hook, id)): PathParams<(String, u64)>,
) -> AuditedResult<FaultCase> {
    let case = call_json(backend, move |backend| backend.fault_case(&hook, id)).await?;
    with_audit_detail(case, |case| format!("{} {}", case.plugin, case.version))
}

/// Removes all plugins from a hook.
#[utoipa::path(
    delete,
    path = "/v1/hooks/{hook}",
    params(("hook" = String, Path, description = "screen, lookup, router, resolver, delivery-policy, receipt, biller, peer or front-end.")),
    responses((status = 200, description = "The live chain, now empty.", body = BindingRecord)),
)]
async fn unbind(
    backend: Service<dyn Plugins>,
    PathParams(hook): PathParams<String>,
) -> AuditedResult<BindingRecord> {
    let live = call_json(backend, move |backend| backend.unbind(&hook)).await?;
    with_audit_detail(live, describe_live)
}

/// Activates a plugin, or a chain of plugins.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/activate",
    params(("hook" = String, Path, description = "screen, lookup, router, resolver, delivery-policy, receipt, biller, peer or front-end.")),
    request_body = ActivationRequest,
    responses((status = 200, description = "The live chain.", body = BindingRecord)),
)]
async fn activate(
    backend: Service<dyn Plugins>,
    PathParams(hook): PathParams<String>,
    JsonContent(mut request): JsonContent<ActivationRequest>,
) -> AuditedResult<BindingRecord> {
    let why = check_reason(request.why.take())?;
    let live = call_json(backend, move |backend| backend.activate(&hook, request)).await?;
    with_audit_detail(live, |live| append_reason(describe_live(live), why.as_deref()))
}

/// Activates the previous chain again.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/rollback",
    params(("hook" = String, Path, description = "screen, lookup, router, resolver, delivery-policy, receipt, biller, peer or front-end.")),
    request_body = Option<api::HookRollbackRequest>,
    responses((status = 200, description = "The live chain.", body = BindingRecord)),
)]
async fn rollback(
    backend: Service<dyn Plugins>,
    PathParams(hook): PathParams<String>,
    OptionalJsonBody(request): OptionalJsonBody<api::HookRollbackRequest>,
) -> AuditedResult<BindingRecord> {
    let why = check_reason(request.why)?;
    let live = call_json(backend, move |backend| backend.rollback(&hook)).await?;
    with_audit_detail(live, |live| append_reason(describe_live(live), why.as_deref()))
}

/// Starts the trial of a candidate.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/candidate",
    params(("hook" = String, Path, description = "screen, lookup, router, resolver, delivery-policy, receipt, biller, peer or front-end.")),
    request_body = api::TrialRequest,
    responses((status = 200, description = "The candidate.", body = CandidateRecordView)),
)]
async fn start_trial(
    backend: Service<dyn Plugins>,
    PathParams(hook): PathParams<String>,
    JsonContent(mut request): JsonContent<api::TrialRequest>,
) -> AuditedResult<CandidateRecordView> {
    let why = check_reason(request.activation.why.take())?;
    let candidate = call_json(backend, move |backend| backend.start_trial(&hook, request)).await?;
    with_audit_detail(candidate, |candidate| append_reason(describe_candidate(candidate), why.as_deref()))
}

/// Ends the trial of the candidate.
#[utoipa::path(
    delete,
    path = "/v1/hooks/{hook}/candidate",
    params(("hook" = String, Path, description = "screen, lookup, router, resolver, delivery-policy, receipt, biller, peer or front-end.")),
    responses((status = 204, description = "The trial has ended.")),
)]
async fn end_trial(
    backend: Service<dyn Plugins>,
    PathParams(hook): PathParams<String>,
) -> Result<StatusCode, Problem> {
    call(backend, move |backend| backend.end_trial(&hook)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Activates the candidate.
#[utoipa::path(
    post,
    path = "/v1/hooks/{hook}/promote",
    params(("hook" = String, Path, description = "screen, lookup, router, resolver, delivery-policy, receipt, biller, peer or front-end.")),
    request_body = Option<api::PromotionRequest>,
    responses((status = 200, description = "The live chain.", body = BindingRecord)),
)]
async fn promote(
    backend: Service<dyn Plugins>,
    PathParams(hook): PathParams<String>,
    OptionalJsonBody(request): OptionalJsonBody<api::PromotionRequest>,
) -> AuditedResult<BindingRecord> {
    let why = check_reason(request.why)?;
    let live = call_json(backend, move |backend| backend.promote(&hook, request.expected)).await?;
    with_audit_detail(live, |live| append_reason(describe_live(live), why.as_deref()))
}

/// Lists the replays since the start of the daemon.
#[utoipa::path(
    get,
    path = "/v1/replays",
    responses((status = 200, description = "All replays, newest first.", body = Vec<api::ReplayStateView>)),
)]
async fn replays(backend: Service<dyn Plugins>) -> Answer<Vec<api::ReplayStateView>> {
    call_json(backend, |backend| Ok(backend.replays())).await
}

/// Starts a replay of archived messages through a candidate.
#[utoipa::path(
    post,
    path = "/v1/replays",
    request_body = api::ReplayRequest,
    responses((status = 200, description = "The replay has started.", body = api::ReplayStart)),
)]
async fn replay(
    backend: Service<dyn Plugins>,
    JsonContent(mut request): JsonContent<api::ReplayRequest>,
) -> Answer<api::ReplayStart> {
    check_reason(request.activation.why.take())?;
    call_json(backend, move |backend| backend.replay(request)).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReplayQuery {
    /// Include the differences of requests to peers, which contain message texts.
    #[param(inline)]
    body: Option<Flag>,
}

/// Shows a replay with its report: differing verdicts, with examples and prices.
#[utoipa::path(
    get,
    path = "/v1/replays/{id}",
    params(("id" = String, Path, description = "The replay's id."), ReplayQuery),
    responses((status = 200, description = "The replay, with its report if it has ended.", body = api::ReplayStateView)),
)]
async fn replay_report(
    backend: Service<dyn Plugins>,
    Extension(caller): Extension<Caller>,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<ReplayQuery>,
) -> Answer<api::ReplayStateView> {
    let (body, numbers) = (query.body.unwrap_or_default().0, caller.number_display());
    call_json(backend, move |backend| backend.replay_report(&id, numbers, body)).await
}

/// Ends a replay.
#[utoipa::path(
    delete,
    path = "/v1/replays/{id}",
    params(("id" = String, Path, description = "The replay's id.")),
    responses((status = 204, description = "The replay ends.")),
)]
async fn end_replay(
    backend: Service<dyn Plugins>,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, Problem> {
    call(backend, move |backend| backend.end_replay(&id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{BindingChange, TrialModeView};
    use model::Timestamp;

    #[test]
    fn hook_change_detail_has_versions_and_reason() {
        let first = Binding::new("a", "96fced7a19c6", "");
        let chain = vec![first.clone(), Binding::new("b", "58cd962459f1", "")];
        let mut live = BindingRecord {
            serial: 4,
            since: Timestamp(0),
            chain,
            change: BindingChange::Activated,
            rollback_reason: None,
        };
        assert_eq!(
            append_reason(describe_live(&live), Some("cheaper")),
            "activated: a 96fced7a19c6, b 58cd962459f1; serial 4; why: cheaper"
        );
        let canary = CandidateRecordView {
            since: 0,
            mode: TrialModeView::Canary,
            share: Some(250),
            chain: vec![first],
        };
        assert_eq!(append_reason(describe_candidate(&canary), None), "canary of 2.5 %: a 96fced7a19c6");
        live.chain.clear();
        (live.serial, live.change) = (5, BindingChange::Unbound);
        assert_eq!(describe_live(&live), "unbound: no plugin; serial 5");
        assert!(check_reason(Some("x".repeat(257))).is_err());
    }
}

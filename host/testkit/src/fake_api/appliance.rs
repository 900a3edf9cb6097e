//! The content of the fake of an appliance.

mod access;
mod configuration;
mod ledger_and_pools;
mod messages;
mod operation;
mod plugins;

use admin::{Problem, ProblemKind};
use api::{
    AcceptedMessage, BindingChange, ConversionsResult, LinksSummaryView, LogLevelView, OrphanDlrsView,
    PoolsView, QuarantineResult, QueueActionStateView, Readiness, Role, SettleUncertainResult,
    SubscriberWakeResult, TableFillResult, TableKind,
};
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use axum::{Json, Router};
use model::Hook;
use serde::Serialize;
use std::future::{Ready, ready};
use std::time::{SystemTime, UNIX_EPOCH};

pub use access::CSRF;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn problem(kind: ProblemKind, detail: &str) -> Response {
    Problem::new(kind, detail).into_response()
}

fn peer_name(index: usize) -> String {
    let first = ["north", "harbour", "meridian", "union", "lake", "coast"];
    first.get(index).map_or_else(|| format!("peer-{index:05}"), |name| (*name).to_owned())
}

fn account_name(index: usize) -> String {
    ["acme", "demo"].get(index).map_or_else(|| format!("account-{index:05}"), |name| (*name).to_owned())
}

/// A handler that answers with a value.
fn made<T: Serialize>(
    answer: impl Fn() -> T + Clone + Send + 'static,
) -> impl Fn() -> Ready<Json<T>> + Clone {
    move || ready(Json(answer()))
}

/// A handler that answers with a created value.
fn created<T: Serialize>(
    answer: impl Fn() -> T + Clone + Send + 'static,
) -> impl Fn() -> Ready<(StatusCode, Json<T>)> + Clone {
    move || ready((StatusCode::CREATED, Json(answer())))
}

/// A route whose GET requests are answered with a value.
fn live<T: Serialize + Send + 'static>(
    answer: impl Fn() -> T + Clone + Send + Sync + 'static,
) -> MethodRouter {
    get(made(answer))
}

async fn nothing() -> StatusCode {
    StatusCode::NO_CONTENT
}

fn accepted() -> AcceptedMessage {
    AcceptedMessage { id: "2".to_owned() }
}

pub(super) fn routes(peers: usize, accounts: usize) -> Router {
    Router::new()
        .route("/v1/sessions", post(access::log_in))
        .route("/v1/sessions/current", delete(access::log_out))
        .route("/v1/whoami", get(access::whoami))
        .route("/v1/whoami/password", post(nothing))
        .route("/v1/ready", live(|| Readiness::of(Vec::new())))
        .route("/v1/status", live(operation::status))
        .route("/v1/attention", live(operation::attention))
        .route("/v1/metrics/recent", live(operation::recent_metrics))
        .route("/v1/metrics/history", get(operation::metrics_history))
        .route("/v1/traffic", live(move || operation::traffic(peers, accounts)))
        .route("/v1/traffic/map", live(move || operation::traffic_map(peers, accounts)))
        .route("/v1/pace-buckets", live(operation::pace_buckets))
        .route("/v1/event-sinks", live(|| vec![operation::event_sink()]))
        .route("/v1/tenants", live(operation::tenants))
        .route("/v1/accounts", live(operation::accounts))
        .route("/v1/queues", live(move || operation::queues(peers, accounts)))
        .route("/v1/links", live(move || operation::links(peers, accounts)))
        .route("/v1/links/summary", live(move || LinksSummaryView::of(operation::links(peers, accounts), 8)))
        .route("/v1/drain", live(|| operation::drain(false)).post(made(|| operation::drain(true))).delete(made(|| operation::drain(false))))
        .route("/v1/cluster", live(operation::cluster))
        .route("/v1/cluster/hand-over", post(made(operation::cluster)))
        .route("/v1/log", live(|| LogLevelView { level: "info,links=debug".to_owned() }).put(|Json(level): Json<LogLevelView>| async move { Json(level) }))
        .route("/v1/hooks", live(|| Hook::ALL.map(|hook| plugins::hook(hook, false)).to_vec()))
        .route("/v1/hooks/{hook}", get(|Path(hook): Path<Hook>| async move { Json(plugins::hook(hook, true)) }).delete(made(|| plugins::record(8, &[], BindingChange::Unbound))))
        .route("/v1/hooks/{hook}/calls", get(|Path(hook): Path<Hook>| async move { Json(plugins::hook_calls(hook)) }))
        .route("/v1/hooks/{hook}/faults/{id}/case", get(|Path((_, id)): Path<(Hook, u64)>| async move { plugins::fault_case(id) }))
        .route("/v1/hooks/{hook}/try", post(plugins::try_policy))
        .route("/v1/hooks/{hook}/cases", post(plugins::message_cases))
        .route("/v1/plugins/{name}/{version}/policy-schema", live(plugins::policy_schema))
        .route("/v1/hooks/{hook}/{act}", post(|Path((_, act)): Path<(String, String)>| async move { plugins::changed_hook(&act) }).delete(nothing))
        .route("/v1/plugins", live(|| plugins::versions().to_vec()))
        .route("/v1/plugins/{name}", put(plugins::upload))
        .route("/v1/plugins/sources", live(|| plugins::sources().to_vec()))
        .route("/v1/plugins/sources/{source}/{plugin}/tags", get(plugins::tags))
        .route("/v1/plugins/outdated", live(|| plugins::outdated().to_vec()))
        .route("/v1/plugins/pull", post(plugins::pull))
        .route("/v1/plugins/{name}/{version}/sbom", live(|| serde_json::json!({ "spdxVersion": "SPDX-2.3" })).put(plugins::add_sbom))
        .route("/v1/replays", post(plugins::start_replay))
        .route("/v1/replays/{id}", live(plugins::replay).delete(nothing))
        .route("/v1/messages", live(messages::messages).post(created(accepted)))
        .route("/v1/messages/{id}", get(messages::show))
        .route("/v1/messages/{id}/{act}", post(nothing))
        .route("/v1/messages/{id}/content", delete(made(|| messages::content_erasure("1"))))
        .route("/v1/erasures", post(made(messages::number_erasure)))
        .route("/v1/explain", post(made(messages::explanation)))
        .route("/v1/queue-actions", live(|| messages::queue_actions().to_vec()).post(created(|| messages::suspension(QueueActionStateView::Active))))
        .route("/v1/queue-actions/preview", post(made(messages::preview)))
        .route("/v1/queue-actions/{id}", delete(made(|| messages::suspension(QueueActionStateView::Undone))))
        .route("/v1/quarantine", live(messages::quarantine))
        .route("/v1/quarantine/{decision}", post(made(|| QuarantineResult { done: 1, skipped: 0 })))
        .route("/v1/uncertain", live(messages::uncertain))
        .route("/v1/uncertain/settle", post(made(|| SettleUncertainResult { settled: 1, skipped: 0 })))
        .route("/v1/pools", live(|| PoolsView { pools: vec![ledger_and_pools::pool()] }))
        .route("/v1/pools/{pool}", live(ledger_and_pools::pool))
        .route("/v1/pools/{pool}/numbers", live(ledger_and_pools::numbers))
        .route("/v1/pools/{pool}/history", live(ledger_and_pools::journal))
        .route("/v1/gsm", live(operation::core_networks))
        .route("/v1/plugin-peers", live(operation::plugin_peers))
        .route("/v1/subscribers/{subscriber}", get(|Path(name): Path<String>| async move { messages::subscriber(&name) }))
        .route("/v1/subscribers/{subscriber}/wake", post(made(|| SubscriberWakeResult { messages: 1 })))
        .route("/v1/subscribers/{subscriber}/silent-sms", post(created(accepted)))
        .route("/v1/tables", live(|| plugins::tables().to_vec()))
        .route("/v1/tables/{name}", live(plugins::look_up).put(made(|| TableFillResult { kind: TableKind::Prefix, rows: 2, octets: 96 })).delete(nothing))
        .route("/v1/ledger", live(move || ledger_and_pools::ledger(accounts)))
        .route("/v1/ledger/{account}", live(|| ledger_and_pools::balance("acme", 86_745_500)).post(ledger_and_pools::change_balance))
        .route("/v1/ledger/{account}/operations", live(|| ledger_and_pools::operations().to_vec()))
        .route("/v1/refusals", live(operation::refusals))
        .route("/v1/opt-outs", live(messages::opt_outs).post(nothing))
        .route("/v1/archive", live(operation::archive))
        .route("/v1/statistics", live(operation::statistics))
        .route("/v1/dlrs/orphans", live(|| OrphanDlrsView { total: 2, dlrs: Vec::new() }))
        .route("/v1/peers/{name}/quality", live(operation::peer_figures))
        .route("/v1/conversions", post(made(|| ConversionsResult { recorded: 2, repeated: 1, unknown: Vec::new() })))
        .route("/v1/peers/{name}/dial", post(operation::dial))
        .route("/v1/peers/{name}/test", post(made(operation::peer_test)))
        .route("/v1/configuration", get(move || async move { ([(header::ETAG, "\"7\"")], Json(configuration::current(peers, accounts))) }).patch(configuration::merge))
        .route("/v1/configuration/schema", live(configuration::schema))
        .route("/v1/configuration/validate", post(configuration::validate))
        .route("/v1/configuration/versions", live(configuration::versions))
        .route("/v1/configuration/versions/{version}", get(configuration::show_version))
        .route("/v1/configuration/diff", live(configuration::diff))
        .route("/v1/configuration/confirm", post(nothing))
        .route("/v1/configuration/revert", post(made(configuration::changed)))
        .route("/v1/configuration/rollback", post(made(configuration::changed)))
        .route("/v1/users", live(|| access::users().to_vec()).post(created(|| access::user("vera", Role::Viewer, None))))
        .route("/v1/users/{name}", patch(|Path(name): Path<String>| async move { Json(access::user(&name, Role::Operator, None)) }).delete(nothing))
        .route("/v1/tokens", live(|| vec![access::token()]).post(created(access::created_token)))
        .route("/v1/tokens/{name}", delete(nothing))
        .route("/v1/audit", live(access::audit))
        .layer(middleware::from_fn(access::check_session))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::FakeApi;

    /// Requests to all routes.
    const REQUESTS: &[(&str, &str, &str)] = &[
        ("POST", "/v1/sessions", r#"{"user":"viewer","password":"password"}"#),
        ("POST", "/v1/sessions", r#"{"user":"viewer","password":"wrong"}"#),
        ("DELETE", "/v1/sessions/current", ""),
        ("GET", "/v1/whoami", ""),
        ("POST", "/v1/whoami/password", "{}"),
        ("GET", "/v1/ready", ""),
        ("GET", "/v1/status", ""),
        ("GET", "/v1/attention", ""),
        ("GET", "/v1/metrics/recent", ""),
        ("GET", "/v1/queues", ""),
        ("GET", "/v1/metrics/history?range=month", ""),
        ("GET", "/v1/traffic?limit=20000", ""),
        ("GET", "/v1/traffic/map?nodes=9&flows=40", ""),
        ("GET", "/v1/pace-buckets", ""),
        ("GET", "/v1/event-sinks", ""),
        ("GET", "/v1/links", ""),
        ("GET", "/v1/links/summary", ""),
        ("GET", "/v1/tenants", ""),
        ("GET", "/v1/accounts", ""),
        ("GET", "/v1/drain", ""),
        ("POST", "/v1/drain", "{}"),
        ("DELETE", "/v1/drain", ""),
        ("GET", "/v1/cluster", ""),
        ("POST", "/v1/cluster/hand-over", ""),
        ("GET", "/v1/log", ""),
        ("PUT", "/v1/log", r#"{"level":"debug"}"#),
        ("GET", "/v1/hooks", ""),
        ("GET", "/v1/hooks/router", ""),
        ("GET", "/v1/hooks/biller", ""),
        ("GET", "/v1/hooks/router/calls", ""),
        ("DELETE", "/v1/hooks/router", ""),
        ("POST", "/v1/hooks/router/activate", "{}"),
        ("POST", "/v1/hooks/router/rollback", "{}"),
        ("POST", "/v1/hooks/router/candidate", "{}"),
        ("POST", "/v1/hooks/router/promote", "{}"),
        ("DELETE", "/v1/hooks/router/candidate", ""),
        ("GET", "/v1/plugins", ""),
        ("PUT", "/v1/plugins/router", "\0asm"),
        ("PUT", "/v1/plugins/router", "text"),
        ("GET", "/v1/plugins/sources", ""),
        ("GET", "/v1/plugins/sources/carrier/router/tags", ""),
        ("GET", "/v1/plugins/sources/carrier/other/tags", ""),
        ("GET", "/v1/plugins/outdated", ""),
        ("POST", "/v1/plugins/pull", r#"{"source":"carrier","plugin":"router","tag":"1.4"}"#),
        ("POST", "/v1/plugins/pull", r#"{"source":"carrier","plugin":"router","tag":"2.0"}"#),
        ("GET", "/v1/plugins/router/4f0c2d91aa17/sbom", ""),
        ("PUT", "/v1/plugins/router/4f0c2d91aa17/sbom", r#"{"spdxVersion":"SPDX-2.3"}"#),
        ("PUT", "/v1/plugins/router/4f0c2d91aa17/sbom", "text"),
        ("POST", "/v1/hooks/router/try", r#"{"last":1}"#),
        ("POST", "/v1/hooks/router/try", r#"{"messages":[],"policy":"wrong"}"#),
        ("GET", "/v1/plugins/router/4f0c2d91aa17/policy-schema", ""),
        ("POST", "/v1/replays", "{}"),
        ("POST", "/v1/replays", r#"{"policy":"wrong"}"#),
        ("GET", "/v1/replays/1", ""),
        ("DELETE", "/v1/replays/1", ""),
        ("GET", "/v1/messages?limit=50", ""),
        ("POST", "/v1/messages", "{}"),
        ("GET", "/v1/messages/1", ""),
        ("GET", "/v1/messages/2?body=1", ""),
        ("GET", "/v1/messages/3", ""),
        ("POST", "/v1/messages/2/cancel", ""),
        ("POST", "/v1/messages/2/retry", ""),
        ("POST", "/v1/messages/3/settle", r#"{"remedy":"give-up"}"#),
        ("POST", "/v1/explain", "{}"),
        ("GET", "/v1/queue-actions", ""),
        ("POST", "/v1/queue-actions", "{}"),
        ("POST", "/v1/queue-actions/preview", "{}"),
        ("DELETE", "/v1/queue-actions/1", ""),
        ("GET", "/v1/quarantine?limit=100", ""),
        ("POST", "/v1/quarantine/release", "{}"),
        ("GET", "/v1/uncertain?limit=100", ""),
        ("POST", "/v1/uncertain/settle", "{}"),
        ("GET", "/v1/pools", ""),
        ("GET", "/v1/pools/support", ""),
        ("GET", "/v1/pools/support/numbers?limit=100", ""),
        ("GET", "/v1/pools/support/history?limit=20", ""),
        ("GET", "/v1/gsm", ""),
        ("GET", "/v1/subscribers/msisdn-49151", ""),
        ("POST", "/v1/subscribers/msisdn-49151/wake", ""),
        ("POST", "/v1/subscribers/msisdn-49151/silent-sms", ""),
        ("GET", "/v1/tables", ""),
        ("GET", "/v1/tables/tariffs?key=49151", ""),
        ("PUT", "/v1/tables/tariffs?kind=prefix", "491,north\n"),
        ("DELETE", "/v1/tables/tariffs", ""),
        ("GET", "/v1/ledger", ""),
        ("GET", "/v1/ledger/acme", ""),
        ("POST", "/v1/ledger/acme", r#"{"fund":1}"#),
        ("POST", "/v1/ledger/acme", r#"{"fund":-999}"#),
        ("GET", "/v1/ledger/acme/operations?limit=50", ""),
        ("GET", "/v1/refusals?account=acme", ""),
        ("GET", "/v1/opt-outs", ""),
        ("POST", "/v1/opt-outs", "{}"),
        ("GET", "/v1/archive", ""),
        ("GET", "/v1/statistics?by=day", ""),
        ("GET", "/v1/dlrs/orphans", ""),
        ("GET", "/v1/plugin-peers", ""),
        ("GET", "/v1/peers/north/quality", ""),
        ("POST", "/v1/conversions", r#"{"messages":["1","2","2"]}"#),
        ("POST", "/v1/peers/north/dial", ""),
        ("POST", "/v1/peers/north/test", ""),
        ("GET", "/v1/configuration", ""),
        ("PATCH", "/v1/configuration?why=more", "{}"),
        ("PATCH", "/v1/configuration", r#"{"peer":"wrong"}"#),
        ("GET", "/v1/configuration/schema", ""),
        ("POST", "/v1/configuration/validate", "{}"),
        ("POST", "/v1/configuration/validate", r#"{"peer":"wrong"}"#),
        ("GET", "/v1/configuration/versions?limit=100", ""),
        ("GET", "/v1/configuration/versions/6", ""),
        ("GET", "/v1/configuration/diff?from=6&to=7", ""),
        ("POST", "/v1/configuration/confirm", r#"{"version":7}"#),
        ("POST", "/v1/configuration/revert", ""),
        ("POST", "/v1/configuration/rollback", r#"{"to":6}"#),
        ("GET", "/v1/users", ""),
        ("POST", "/v1/users", "{}"),
        ("PATCH", "/v1/users/vera", "{}"),
        ("DELETE", "/v1/users/vera", ""),
        ("GET", "/v1/tokens", ""),
        ("POST", "/v1/tokens", "{}"),
        ("DELETE", "/v1/tokens/monitoring", ""),
        ("GET", "/v1/audit?limit=100", ""),
    ];

    fn status(url: &str, method: &str, path: &str, body: &str) -> u16 {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{url}{path}"))
            .header(header::AUTHORIZATION, "Bearer t0ken")
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", "k")
            .header(header::IF_MATCH, "\"7\"");
        agent.run(request.body(body.to_owned()).unwrap()).unwrap().status().as_u16()
    }

    /// An answer that does not conform to the API document breaks the connection.
    #[test]
    fn all_routes_answer() {
        let url = FakeApi::appliance(6, 4).start();
        for (method, path, body) in REQUESTS {
            assert_ne!(status(&url, method, path, body), 404, "the fake API has no route {method} {path}");
        }
        assert_eq!(status(&url, "GET", "/v1/nowhere", ""), 404);
    }
}

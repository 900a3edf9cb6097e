//! A fake API with prepared answers, for screenshots and tests of pages. Its answers are checked against the API document.

use admin::{Problem, ProblemKind};
use api::{
    AcceptedMessage, AuditEntry, AuditOutcome, AuditPage, AuditRecord, BalanceChangeView, BalanceView,
    BalancesView, ConfigChangeKindView, ConfigChangeView, ConfigDifferenceView, ConfigVersionPageView,
    ConfigVersionSummaryView, ConfigVersionView, ConfigurationChangeResult, ConfigurationCheck,
    ConfigurationDiff, CreatedTokenView, CurrentConfiguration, ExplanationView, FieldProblem,
    LedgerOperationView, ManagedBy, MessagePageView, MessageRowView, MessageStateView, PeerTestView,
    Permission, PoolCountsView, PoolEntryNumberView, PoolEntryView, PoolHistoryPage, PoolNumberView,
    PoolNumbersPage, PoolRowView, PoolSettingsView, PoolView, PoolsView, PriceView, QueueActionKindView,
    QueueActionPreview, QueueActionSample, QueueActionScopeView, QueueActionStateView, QueueActionView, Role,
    RoutingView, SettleUncertainResult, StepView, SubscriberQueueView, SubscriberStateView, SubscriberView,
    SubscriberWakeResult, TestStepView, TokenInfo, TraceView, UncertainPageView, UncertainView,
    UnconfirmedVersionView, User, WhoamiView,
};
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use configuration::{Key, Keys as _, Shape};
use links::{GatewayOptions, LinkAccountOptions, PeerOptions};
use model::{NumberState, PoolChange, Strategy, Timestamp};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// The schema of those keys of peers, gateways and accounts that their links have.
fn configuration_schema() -> Value {
    let lists = [
        ("peer", PeerOptions::keys()),
        ("gateway", GatewayOptions::keys()),
        ("account", LinkAccountOptions::keys()),
    ];
    let keys = lists.map(|(name, keys)| Key::new(name, "A list.", Shape::Tables(keys)));
    configuration::schema(&keys)
}

/// The CSRF token of every session of this fake.
const CSRF: &str = "test+csrf=1";

fn now() -> u64 {
    model::Timestamp::now().0
}

fn problem(kind: ProblemKind, detail: &str) -> Response {
    Problem::new(kind, detail).into_response()
}

/// The maximum length of an answer, in octets.
const MAX_ANSWER: usize = 64 << 20;

/// The requests whose answers were checked: method, path and status.
type CheckedRequests = Arc<Mutex<HashSet<String>>>;

/// Checks the answers against the API document: the first one to each request, because lists are long and pages ask often.
///
/// # Panics
/// If an answer does not conform.
async fn check_answers(State(checked): State<CheckedRequests>, request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().to_string());
    let response = next.run(request).await;
    let status = response.status().as_u16();
    if !checked.lock().insert(format!("{method} {uri} {status}")) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, MAX_ANSWER).await.unwrap_or_default();
    let content = serde_json::from_slice(&body).unwrap_or_default();
    let _ = testkit::api_document::fixture(method.as_str(), &uri, status, content);
    Response::from_parts(parts, Body::from(body))
}

fn role(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == "switchyard-session").map(|(_, role)| role.to_owned())
}

/// The role of a name.
fn parse_role(name: &str) -> Role {
    serde_json::from_value(name.into()).unwrap_or(Role::Account)
}

fn principal(role_name: &str) -> WhoamiView {
    let role = parse_role(role_name);
    let has = |permission: &Permission| role.has(*permission) || role == Role::Admin;
    WhoamiView {
        user: format!("{role_name}-person"),
        role,
        permissions: Permission::ALL.into_iter().filter(has).collect(),
        bodies: role == Role::Admin,
        account: (role == Role::Account).then(|| "acme".to_owned()),
        csrf: Some(CSRF.to_owned()),
        until: Some(now() + 3_600_000),
    }
}

/// Checks session, CSRF token and role, as the real API does.
async fn check_session(request: Request, next: Next) -> Response {
    if request.uri().path() == "/v1/sessions" {
        return next.run(request).await;
    }
    let Some(role) = role(request.headers()) else {
        return problem(ProblemKind::Unauthorised, "send the header `Authorization: Bearer TOKEN`");
    };
    if request.method() != Method::GET {
        let csrf = request.headers().get("switchyard-csrf").and_then(|value| value.to_str().ok());
        if csrf != Some(CSRF) {
            return problem(
                ProblemKind::Forbidden,
                "the header Switchyard-CSRF is missing or another session's",
            );
        }
        let own = request.uri().path() == "/v1/sessions/current" || request.uri().path() == "/v1/explain";
        if role == "viewer" && !own {
            return problem(
                ProblemKind::Forbidden,
                "the permission `operate` is missing: this user is a viewer",
            );
        }
    }
    next.run(request).await
}

async fn log_in(Json(request): Json<Value>) -> Response {
    let role = match (request["token"].as_str(), request["user"].as_str(), request["password"].as_str()) {
        (Some("test-token"), ..) => "admin",
        (None, Some(user @ ("admin" | "operator" | "viewer" | "account")), Some("password")) => user,
        _ => return problem(ProblemKind::Unauthorised, "not right"),
    };
    let answer = principal(role);
    let cookie = format!("switchyard-session={role}; HttpOnly; SameSite=Strict; Path=/");
    ([(header::SET_COOKIE, cookie)], Json(answer)).into_response()
}

fn subscriber(name: &str) -> Response {
    if name == "msisdn-404" {
        return problem(ProblemKind::NotFound, "no core network has this subscriber");
    }
    Json(SubscriberView {
        imsi: "0010*********01".to_owned(),
        msisdn: Some("4915*******78".to_owned()),
        network: "<b>phones".to_owned(),
        msc: Some("MSC-1".to_owned()),
        connected: true,
        present_at: Some(now() - 65_000),
        present_by: Some("location-update".to_owned()),
        state: SubscriberStateView::Absent,
        reason: Some("network: network failure (17)".to_owned()),
        next_try: Some(now() + 60_000),
        message: Some("2".to_owned()),
        waiting: SubscriberQueueView {
            count: 3,
            oldest_at: Some(now() - 60_000),
            oldest: Some("2".to_owned()),
            states: [("deferred".to_owned(), 1), ("queued".to_owned(), 2)].into(),
        },
    })
    .into_response()
}

fn recent_metrics() -> Value {
    let every = 2_000;
    let end = now() / every * every;
    let wave = |at: u64, slow: f64, high: f64| (1.0 + (at as f64 / slow / 1_000.0).sin()) * high;
    let (mut accepted, mut delivered, mut failed, mut refused, mut commits, mut commit_us) =
        (10_000.0, 9_000.0, 12.0, 3.0, 0_u64, 0_u64);
    let samples: Vec<Value> = (0..300_u64)
        .map(|index| {
            let at = end - (299 - index) * every;
            let rate = 180.0 + wave(at, 41.0, 90.0) + wave(at, 7.0, 25.0);
            accepted += rate * 2.0;
            delivered += (rate - wave(at, 23.0, 18.0)) * 2.0;
            failed += wave(at, 31.0, 0.6);
            refused += wave(at, 57.0, 0.2);
            commits += 60;
            commit_us += 60 * (700 + wave(at, 13.0, 300.0) as u64);
            json!({
                "at": at, "accepted": accepted as u64, "delivered": delivered as u64, "failed": failed as u64, "refused": refused as u64,
                "submitted": delivered as u64, "waiting": 800 + wave(at, 37.0, 900.0) as u64, "commits": commits, "commit-us": commit_us,
                "round-trip-us": 18_000 + wave(at, 19.0, 6_000.0) as u64,
            })
        })
        .collect();
    json!({ "interval-ms": every, "capacity": 300, "samples": samples })
}

fn status() -> Value {
    json!({
        "name": "SWITCHYARD", "version": "0.1.0", "uptime_seconds": 362_415, "waiting": 2_381, "finished_kept": 91_220,
        "disk_free": 48_318_382_080_u64, "disk_low": false, "recovered": 1_904, "recovery_ms": 212,
        "totals": {
            "accepted": 18_204_771, "refused": 311, "submitted": 18_202_100, "throttled": 21, "uncertain": 3, "sent_again": 1,
            "dlrs_matched": 18_128_343, "dlrs_unmatched": 12, "dlrs_made": 18_120_000, "dlrs_delivered": 18_119_002, "commits": 9_104_002,
            "commit_us": 7_283_201_600_u64, "commit_rows": 91_021_004, "delivered": 18_100_230, "relayed": 71_002, "failed": 28_113,
            "expired": 901, "cancelled": 9, "rejected": 14, "unknown": 2,
        },
    })
}

fn attention() -> Value {
    let one = |severity: &str,
               code: &str,
               (kind, name): (&str, Option<&str>),
               since: Option<u64>,
               text: &str| {
        json!({
            "severity": severity, "code": code, "subject": { "kind": kind, "name": name }, "since": since, "text": text, "remedy": null,
        })
    };
    let reverts =
        format!("version 7 of the configuration reverts at {} unless it is confirmed", now() + 500_000);
    json!([
        one(
            "error",
            "peer-down",
            ("peer", Some("harbour")),
            Some(now() - 1_000 * 60 * 47),
            "no link to harbour is up: connection refused (192.0.2.1:2775): is the SMSC up, and does it let us in?"
        ),
        one("warning", "configuration-unconfirmed", ("configuration", None), Some(now() - 100_000), &reverts),
        one(
            "warning",
            "gsm-double-name",
            ("core-network", Some("home")),
            None,
            "core network home: 2 MSCs are connected under the name MSC-1 <a>"
        ),
        one(
            "warning",
            "messages-uncertain",
            ("queue", Some("meridian")),
            None,
            "3 messages were submitted to meridian and never answered"
        ),
    ])
}

fn name(kind: &str, index: usize) -> String {
    let first = ["north", "harbour", "meridian", "union", "lake", "coast"];
    match (kind, first.get(index)) {
        ("peer", Some(name)) => (*name).to_owned(),
        ("account", _) if index == 0 => "acme".to_owned(),
        ("account", _) if index == 1 => "demo".to_owned(),
        _ => format!("{kind}-{index:05}"),
    }
}

fn queues(peers: usize, accounts: usize) -> Value {
    let row = |name: String, index: usize| {
        let queued = if index.is_multiple_of(3) { index as u64 * 7 % 400 } else { 0 };
        let uncertain = u64::from(index == 2) * 3;
        json!({
            "peer": name, "configured": true, "queued": queued, "subscriber_locked": queued / 7, "suspended": u64::from(index == 1) * 4, "blocked_subscribers": 0, "deferred": index as u64 % 5, "resolving": 0,
            "in_flight": index as u64 % 9, "uncertain": uncertain, "awaiting_dlr": index as u64 * 3 % 50,
            "oldest": (queued > 0).then(|| now() - 1_000 * 60 * (index as u64 + 4)), "links": usize::from(index != 1) * 2,
            "blocked_by": if index == 1 { "no link is up".to_owned() } else if queued > 0 { format!("rate limit, until {}", now() + 800) } else { "idle".to_owned() },
            "learnt_rate": null,
        })
    };
    let peers = (0..peers).map(|index| row(name("peer", index), index));
    let all: Vec<Value> =
        peers.chain((0..accounts).map(|index| row(name("account", index), index + 2))).collect();
    json!(all)
}

fn links(peers: usize, accounts: usize) -> Value {
    let row = |name: String, role: &str, index: usize| {
        let down = index == 1 && role == "client";
        json!({
            "id": (!down).then_some(index), "peer": name, "role": role, "phase": if down { "backing-off" } else { "bound" },
            "remote": format!("192.0.2.{}:2775", index % 250), "bind": (!down).then_some("transceiver"), "tls": index.is_multiple_of(2), "window": 500,
            "in_flight": index % 40, "unanswered_in": 0, "round_trip_us": (!down).then_some(12_000 + index * 130 % 9_000), "blocked_by": if down { "not-bound" } else { "none" },
            "received": {}, "sent": {}, "refused_by_us": {}, "refused_by_peer": {}, "since": now() - 1_000 * 60 * 47,
            "down_since": down.then(|| now() - 1_000 * 60 * 47),
            "last_error": down.then_some("connection refused (192.0.2.1:2775): is the SMSC up, and does it let us in?"),
            "back_off_until": down.then(|| now() + 12_000),
        })
    };
    let peers = (0..peers).flat_map(|index| {
        [row(name("peer", index), "client", index), row(name("peer", index), "client", index)]
    });
    let all: Vec<Value> = peers
        .chain((0..accounts).step_by(2).map(|index| row(name("account", index), "server", index)))
        .collect();
    json!(all)
}

fn document(peers: usize, accounts: usize) -> Value {
    let peers: Vec<Value> = (0..peers)
        .map(|index| json!({ "name": name("peer", index), "address": format!("smsc-{index}.example.net:2775"), "system-id": "switchyard", "password": "(unchanged)", "links": 2, "window": 500, "dlrs": true, "retry": ["10s", "1m", "5m"], "long-text": "udh" }))
        .collect();
    let accounts: Vec<Value> = (0..accounts)
        .map(|index| json!({ "name": name("account", index), "password-hash": "(unchanged)", "bind": ["transceiver"], "networks": ["192.0.2.0/24"], "window": 1000, "validity": "2d" }))
        .collect();
    json!({
        "appliance": { "name": "SWITCHYARD", "shutdown-timeout": "10s", "free-space-watermark": "512MiB" },
        "listener": [{ "name": "smpp", "listen": "127.0.0.1:2775", "connections": 1000 }],
        "peer": peers, "account": accounts,
        "gateway": [{ "name": "unicom", "address": "smg.example.net:8801", "node": 3_010_012_345_u64, "login-name": "us", "login-password": "(unchanged)", "inbound-login-name": "smg", "inbound-login-password": "(unchanged)", "connections": 2 }],
    })
}

const POLICY: &str = "# Where messages go.\ndefault = \"north\"\n\n[[route]]\nprefix = \"+49\"\nto = [\"north\", \"harbour\"]\n\n[[route]]\nprefix = \"+44\"\nto = [\"meridian\"]\n";

fn binding(version: &str) -> Value {
    json!({
        "plugin": "router", "version": version, "policy": POLICY, "on-fault": "reject", "memory": 16_777_216, "deadline-ms": 20, "table-rows": 1000,
        "instance": "warm",
        "grants": { "http": [], "http-timeout-ms": 2_000, "http-answer": 262_144, "kv": 0, "tables": [], "hlr": false, "random": false },
        "tolerance": { "faults": 10, "window-ms": 10_000 },
    })
}

/// A change of the router's chain.
fn record(serial: u64, chain: &[&str], how: &str) -> Value {
    let chain: Vec<Value> = chain.iter().map(|version| binding(version)).collect();
    json!({ "serial": serial, "since": now() - 86_400_000, "chain": chain, "how": how })
}

/// The answer to an action on a hook.
fn changed_hook(action: &str) -> Value {
    match action {
        "candidate" => json!({ "since": now(), "mode": "shadow", "chain": [binding("9be10cc2d877")] }),
        "promote" => record(8, &["9be10cc2d877"], "promoted"),
        "rollback" => record(8, &["11d0e2aa9c41"], "rolled-back"),
        _ => record(8, &["4f0c2d91aa17"], "activated"),
    }
}

fn hook(hook: &str, whole: bool) -> Value {
    let is_router = hook == "router";
    let counts = |version: &str, live: bool, calls: u64, traps: u64| json!([{ "plugin": "router", "version": version, "live": live, "calls": calls, "faults": { "trap": traps, "deadline": 0, "memory": 0, "verdict": 1, "instance": 0 }, "nanoseconds": calls * 6_200, "log-lines-left-out": 0 }]);
    let mut found = json!({
        "hook": hook,
        "live": if is_router { record(7, &["4f0c2d91aa17"], "activated") } else { record(0, &[], "unbound") },
        "counts": if is_router { counts("4f0c2d91aa17", true, 8_120_331, 2) } else { json!([]) },
        "events": if is_router { json!([
            { "at": now() - 300_000, "kind": "candidate", "what": "router 9be1 in the shadow" },
            { "at": now() - 86_400_000, "kind": "activated", "what": "router 4f0c2d91aa17" },
        ]) } else { json!([]) },
        "faults": if is_router { json!([
            { "plugin": "router", "version": "4f0c2d91aa17", "faults": 3, "examples": [
                { "at": now() - 61_000, "kind": "trap", "what": "trapped: wasm `unreachable` instruction executed", "question": "acme: AC** to +4915****678", "message": "1" },
                { "at": now() - 3_900_000, "kind": "verdict", "what": "leg to peer \"<meridian>\", which is not in the configuration", "question": "demo: 106** to +4477****123", "message": null },
            ] },
            { "plugin": "router", "version": "11d0e2aa9c41", "faults": 1, "examples": [
                { "at": now() - 172_000_000, "kind": "deadline", "what": "did not return within its deadline", "question": "acme: AC** to +4915****001", "message": "3" },
            ] },
        ]) } else { json!([]) },
    });
    if is_router {
        found["candidate"] = json!({
            "since": now() - 300_000, "mode": "shadow", "chain": [binding("9be10cc2d877")], "counts": counts("9be10cc2d877", false, 51_220, 0),
            "asked": 0, "failed": 0, "bypassed": 0,
            "comparison": { "compared": 51_220, "same": 50_901, "different": 319, "skipped": 12, "differences": [
                { "from": "forward north", "to": "forward harbour", "count": 300, "samples": ["acme: AC** to +4915****678", "acme: AC** to +4915****031"], "messages": ["1", null] },
                { "from": "reject no-route", "to": "forward <meridian>", "count": 19, "samples": ["demo: 106** to +4477****123"], "messages": ["4"] },
            ] },
        });
    }
    if whole {
        found["history"] = if is_router {
            let mut former = record(6, &["11d0e2aa9c41"], "activated");
            former["condemned"] = json!("12 faults of 400 calls");
            json!([record(7, &["4f0c2d91aa17"], "activated"), former])
        } else {
            json!([])
        };
    }
    found
}

fn trace(id: &str, body: bool) -> TraceView {
    let at = now() - 42_000;
    let step = |after: u64, what: &str| StepView { at: at + after, what: what.to_owned() };
    let state = match id {
        "3" => MessageStateView::Uncertain,
        "2" => MessageStateView::Deferred,
        _ => MessageStateView::Delivered,
    };
    TraceView {
        id: id.to_owned(),
        submission: None,
        state,
        finished: id == "1",
        origin: "acme".to_owned(),
        source: "ACME".to_owned(),
        destination: if body { "+4915112345678" } else { "+49151****678" }.to_owned(),
        accepted_at: at,
        expires_at: at + 172_800_000,
        routing: RoutingView {
            plugin: "router".to_owned(),
            version: "4f0c2d91aa17".to_owned(),
            note: Some("prefix +49".to_owned()),
            verdict: "forward: north (rank 0, weight 1); harbour (rank 1, weight 1)".to_owned(),
            leg: Some(0),
        },
        price: Some(PriceView {
            plugin: "biller".to_owned(),
            version: "77aa01b2c3d4".to_owned(),
            note: Some("DE, standard".to_owned()),
            account: Some("acme".to_owned()),
            amount: 42_500,
        }),
        waiting_for: (id != "1").then(|| format!("next attempt at {}", now() + 60_000)),
        steps: vec![
            step(0, "accepted and written to disk"),
            step(12, "submitted to north, attempt 1"),
            step(61, "refused by the peer: 0x58"),
            step(61, &format!("deferred until {}", at + 10_061)),
            step(10_064, "submitted to north, attempt 2"),
            step(10_102, "accepted by the peer, id \"7fa90211\""),
            step(12_220, "DLR: Delivered, error 0"),
            step(12_221, "charged 42500"),
        ],
        peer_ids: vec!["7fa90211".to_owned()],
        length: 61,
        body: body.then(|| "Your code is 1234. <b>Do not</b> tell it to anybody.\nACME".to_owned()),
    }
}

fn messages() -> MessagePageView {
    let states = [
        MessageStateView::Delivered,
        MessageStateView::Deferred,
        MessageStateView::Uncertain,
        MessageStateView::Queued,
        MessageStateView::Failed,
        MessageStateView::Submitted,
    ];
    let message = |index: usize| MessageRowView {
        id: (index + 1).to_string(),
        at: now() - index as u64 * 4_217,
        state: states[index % 6],
        finished: index.is_multiple_of(6) || index % 6 == 4,
        account: "acme".to_owned(),
        peer: name("peer", index % 6),
        source: if index == 4 { "<b>ACME" } else { "ACME" }.to_owned(),
        destination: format!("+49151****{:03}", index * 17 % 1000),
        length: 61 + index,
    };
    MessagePageView {
        messages: (0..50).map(message).collect(),
        next: Some("c50".to_owned()),
        incomplete: None,
    }
}

fn uncertain() -> UncertainPageView {
    let message = UncertainView {
        id: "3".to_owned(),
        peer: "meridian".to_owned(),
        account: "acme".to_owned(),
        source: "ACME".to_owned(),
        destination: "+49151****034".to_owned(),
        at: now() - 90_000,
        since: Some(now() - 80_000),
        until: Some(now() + 86_400_000),
        state: MessageStateView::Uncertain,
        attempts: 1,
        length: 63,
    };
    UncertainPageView { messages: vec![message], next: None }
}

/// A version of the configuration.
fn version(version: u64, by: &str, why: &str) -> ConfigVersionSummaryView {
    let at = 1_763_600_000_000 + version * 10_000_000;
    ConfigVersionSummaryView { version, at, by: by.to_owned(), why: why.to_owned(), changes: 2 }
}

async fn show_version(Path(number): Path<u64>) -> Json<ConfigVersionView> {
    Json(ConfigVersionView { summary: version(number, "bob", ""), document: json!({}) })
}

async fn validate(body: String) -> Json<ConfigurationCheck> {
    let problem = |pointer: &str, what: &str| FieldProblem {
        pointer: pointer.to_owned(),
        what: what.to_owned(),
        allowed: Some("1 to 100000".to_owned()),
    };
    if body.contains("\"wrong\"") {
        let problems = vec![
            problem("/listener/0/connections", "is a text, and must be a number"),
            problem("/peer/0/window", "must be 1 to 100000"),
        ];
        return Json(ConfigurationCheck { valid: false, problems, changes: Vec::new(), restart: Vec::new() });
    }
    let change = ConfigChangeView {
        pointer: "/listener/0/connections".to_owned(),
        what: ConfigChangeKindView::Changed,
        effect: "holds for new connections".to_owned(),
        before: Some(json!(1_000)),
        after: Some(json!(2_000)),
    };
    Json(ConfigurationCheck {
        valid: true,
        problems: Vec::new(),
        changes: vec![change],
        restart: vec!["/appliance/data".to_owned()],
    })
}

async fn merge(headers: HeaderMap, body: String) -> Response {
    match headers.get("if-match").and_then(|value| value.to_str().ok()) {
        None => return problem(ProblemKind::PreconditionRequired, "send If-Match"),
        Some("\"7\"") => {}
        Some(_) => {
            return problem(ProblemKind::PreconditionFailed, "the configuration is at version 7 by now");
        }
    }
    if body.contains("wrong") {
        let problems = vec![FieldProblem {
            pointer: "/peer/0/address".to_owned(),
            what: "has no port".to_owned(),
            allowed: Some("host:port".to_owned()),
        }];
        return Problem::new(ProblemKind::Unprocessable, "1 thing is wrong")
            .with_problems(problems)
            .into_response();
    }
    Json(changed_configuration()).into_response()
}

fn changed_configuration() -> ConfigurationChangeResult {
    ConfigurationChangeResult { version: 8, changes: Vec::new(), restart: Vec::new(), reverts_at: None }
}

async fn replay(Json(request): Json<Value>) -> Response {
    if request["policy"].as_str().is_some_and(|policy| policy.contains("wrong")) {
        return problem(
            ProblemKind::Unprocessable,
            "router refuses its policy: line 5: `prefix` must be digits with a plus in front",
        );
    }
    Json(json!({ "id": "1" })).into_response()
}

fn replayed() -> Value {
    let example = |id: &str| json!({ "id": id, "accepted_at": now() - 42_000, "origin": "acme", "source": "ACME", "destination": "+4915****678", "note": null, "exact": true });
    json!({
        "id": "1", "state": "done", "hook": "router", "plugins": [{ "plugin": "router", "version": "4f0c2d91aa17" }],
        "from": null, "until": null, "limit": null, "last": 1000, "started": now() - 900,
        "progress": { "read": 1000, "compared": 1000, "different": 19, "expected": 1000, "ended": true },
        "report": {
            "ended": { "how": "complete" }, "messages": 1000, "exact": 1000, "inexact": [], "same": 981, "different": 19, "new_rejects": 0,
            "new_faults": 0, "unrouted": 0, "damaged": 0,
            "groups": [{ "from": "forward north", "to": "forward harbour", "count": 19, "exact": 19, "examples": [example("4"), example("9")] }],
            "other": { "count": 0, "exact": 0 }, "price": null,
            "pace": {
                "threads": 2, "seconds": 0.5, "messages_per_second": 2_000.0, "reading_seconds": 0.1, "decoding_seconds": 0.1,
                "loaded_per_second_per_core": 5_000.0, "comparing_seconds": 0.2, "compared_per_second_per_core": 5_000.0,
            },
        },
    })
}

/// The queue action that holds the messages to a peer.
fn suspension(state: QueueActionStateView) -> QueueActionView {
    QueueActionView {
        id: 1,
        action: QueueActionKindView::Suspend,
        scope: QueueActionScopeView { peer: Some("harbour".to_owned()), ..QueueActionScopeView::default() },
        to: None,
        by: "ada".to_owned(),
        why: "maintenance <there>".to_owned(),
        at: now() - 20_000,
        state,
        undo_until: None,
        affected: 212,
        held: 0,
    }
}

fn user(name: &str, role: Role, account: Option<&str>) -> User {
    User {
        name: name.to_owned(),
        role,
        account: account.map(str::to_owned),
        bodies: role == Role::Admin,
        password: true,
        version: 1,
        made: Timestamp(now() - 8_640_000_000),
        changed: Timestamp(now() - 86_400_000),
        by: "token".to_owned(),
    }
}

/// A route whose GET requests have this answer.
fn json(answer: impl Serialize) -> MethodRouter {
    let answer = json!(answer);
    get(move || std::future::ready(Json(answer.clone())))
}

/// A row of the statistics: the counts of a day.
fn statistics() -> Value {
    let latency = json!({ "count": 810_190, "p50": 14.4, "p95": 41.0, "p99": 97.5 });
    let counts = |accepted: u64, responded: u64, delivered: u64| {
        json!({
            "accepted": accepted, "responded": responded, "refused": {}, "delivered": delivered, "undelivered": { "11": responded - delivered },
            "ended": { "delivered": delivered }, "response": latency, "dlr": latency,
        })
    };
    let day = 86_400_000;
    json!([{ "start": now() / day * day - day, "account": "acme", "peer": "north", "mt": counts(810_212, 810_190, 801_774), "mo": counts(1_204, 1_204, 1_204) }])
}

/// The API of an appliance with this number of peers and accounts.
pub(crate) fn api(peers: usize, accounts: usize) -> Router {
    let live = |draw: fn() -> Value| get(move || async move { Json(draw()) });
    let nothing = || async { StatusCode::NO_CONTENT };
    let document = CurrentConfiguration {
        version: 7,
        at: 1_763_800_000_000,
        by: "ada".to_owned(),
        why: "more windows <for> north".to_owned(),
        mode: ManagedBy::Api,
        pending: Some(UnconfirmedVersionView { version: 7, reverts_at: now() + 500_000 }),
        restart: Vec::new(),
        document: document(peers, accounts),
    };
    let versions = ConfigVersionPageView {
        versions: vec![
            version(7, "ada", "more windows <for> north"),
            version(6, "bob", ""),
            version(1, "file", "the file of the first start"),
        ],
        next: None,
    };
    let difference = |pointer: &str, before, after| ConfigDifferenceView {
        pointer: pointer.to_owned(),
        before,
        after: Some(after),
    };
    let coast = json!({ "name": "coast", "address": "smsc-5.example.net:2775" });
    let diff = ConfigurationDiff {
        from: 6,
        to: 7,
        changes: vec![
            difference("/peer/north/window", Some(json!(100)), json!(500)),
            difference("/peer/coast", None, coast),
        ],
    };
    let cancellation = QueueActionView {
        id: 2,
        action: QueueActionKindView::Cancel,
        scope: QueueActionScopeView {
            account: Some("demo".to_owned()),
            older_than: Some("2h".to_owned()),
            ..QueueActionScopeView::default()
        },
        by: "bob".to_owned(),
        why: String::new(),
        undo_until: Some(now() + 40_000),
        ..suspension(QueueActionStateView::UndoWindow)
    };
    let queue_actions = [suspension(QueueActionStateView::Active), cancellation];
    let started_action = suspension(QueueActionStateView::Active);
    let ended_action = suspension(QueueActionStateView::Undone);
    let preview = QueueActionPreview {
        messages: 212,
        by_state: [("queued".to_owned(), 200), ("deferred".to_owned(), 12)].into(),
        sample: vec![QueueActionSample {
            id: "4".to_owned(),
            from: "ACME".to_owned(),
            to: "+49151****051".to_owned(),
            state: MessageStateView::Queued,
        }],
        complete: true,
    };
    let sent = || std::future::ready((StatusCode::CREATED, Json(AcceptedMessage { id: "2".to_owned() })));
    let explained = ExplanationView {
        steps: vec!["origin: acme".to_owned(), "router: forward north".to_owned()],
        answer: "accepted".to_owned(),
    };
    let plugins = json!([
        { "plugin": "router", "version": "11d0e2aa9c41", "sha256": "11d0e2aa9c41".repeat(5) + "0000", "size": 211_802, "hook": "router", "wit": "0.3", "imports": ["counters"], "signed_by": null },
        { "plugin": "router", "version": "4f0c2d91aa17", "sha256": "4f0c2d91aa17".repeat(5) + "0000", "size": 214_552, "hook": "router", "wit": "0.3", "imports": ["counters", "tables"], "signed_by": "acme" },
        { "plugin": "router", "version": "9be10cc2d877", "sha256": "9be10cc2d877".repeat(5) + "0000", "size": 219_001, "hook": "router", "wit": "0.3", "imports": ["counters", "tables"], "signed_by": "acme" },
    ]);
    let pool = PoolView {
        name: "support".to_owned(),
        settings: PoolSettingsView { strategy: Strategy::LongestIdle, quarantine_ms: 30_000 },
        numbers: PoolCountsView { idle_up: 712, idle_down: 40, busy_up: 240, busy_down: 8, total: 1000 },
        ready: 700,
        next_ms: None,
        entries: 9_120,
        acquired: 4_410,
        none: 3,
        lapsed: 12,
    };
    let leased = PoolRowView {
        state: NumberState::BusyUp,
        since: now() - 60_000,
        ticket: Some(4),
        holder: "dialler-2".to_owned(),
        reason: String::new(),
        message: None,
        lease_ends: None,
        rests_until: None,
        weight: 1,
        calls: 41,
        held_seconds: 812,
        lapsed: 0,
    };
    let down = PoolRowView {
        state: NumberState::IdleDown,
        since: now() - 600_000,
        ticket: None,
        holder: String::new(),
        reason: "spam list".to_owned(),
        calls: 9,
        held_seconds: 81,
        ..leased.clone()
    };
    let entry = PoolEntryView {
        id: 9,
        at: Timestamp(now() - 60_000),
        event: PoolChange::Call,
        number: "+4930555001".to_owned(),
        by: Some("dialler-2".to_owned()),
        row: PoolEntryNumberView::Present(leased.clone()),
    };
    let numbers = [("+4930555001", leased), ("+4930555002", down)].map(|(number, row)| PoolNumberView {
        number: number.to_owned(),
        row,
        lease_left_ms: None,
        rest_left_ms: None,
    });
    let numbers = PoolNumbersPage { numbers: numbers.to_vec(), next: Some(2) };
    let journal = PoolHistoryPage { entries: vec![entry], next: None };
    let archive = json!({ "state": "up", "archived": 91_220, "batches": 812, "failures": 0, "refused": 0, "trimmed": 0, "backlog": 14, "since_success": { "secs": 1, "nanos": 0 }, "last_batch": { "secs": 0, "nanos": 41_000_000 } });
    let users = [
        user("admin-person", Role::Admin, None),
        user("vera", Role::Viewer, None),
        user("<i>acme-support", Role::Account, Some("acme")),
    ];
    let token = TokenInfo {
        name: "monitoring".to_owned(),
        role: Role::Viewer,
        account: None,
        bodies: false,
        made: Timestamp(now() - 86_400_000),
        by: "admin-person".to_owned(),
        until: Some(Timestamp(now() + 8_640_000_000)),
    };
    let created_token = CreatedTokenView { token: "swy_5up3rs3cr3t".to_owned(), info: token.clone() };
    let change = AuditRecord {
        at: Timestamp(now() - 3_000),
        by: "ada".to_owned(),
        what: "PATCH /v1/configuration".to_owned(),
        subject: String::new(),
        detail: None,
        from: Some("192.0.2.7".to_owned()),
        outcome: AuditOutcome::Done,
        status: 200,
    };
    let refused = AuditRecord {
        at: Timestamp(now() - 9_000),
        by: "vera".to_owned(),
        what: "GET /v1/messages/{id} body".to_owned(),
        subject: "81".to_owned(),
        detail: Some("text read".to_owned()),
        from: Some("192.0.2.9".to_owned()),
        outcome: AuditOutcome::Refused,
        status: 403,
    };
    let entries =
        [(41, change), (40, refused)].map(|(serial, record)| AuditEntry { serial, record }).to_vec();
    let audit = AuditPage { entries, next: None };
    let test_step = |what: &str, ok, ms, detail: &str| {
        let (what, detail) = (what.to_owned(), Some(detail.to_owned()));
        TestStepView { what, ok, ms, detail }
    };
    let no_answer = "no answer within 2 s: a firewall between here and there?";
    let test_result = PeerTestView {
        ok: false,
        steps: vec![
            test_step("resolve", true, 3, "192.0.2.4:2775"),
            test_step("connect", false, 2_004, no_answer),
        ],
    };
    let gsm = json!([{
        "name": "home", "role": "proxy", "connections": [{ "name": "MSC-1 <a>", "remote": "192.0.2.20:41822", "ready": true }, { "name": null, "remote": "192.0.2.21:40022", "ready": false }],
        "hlr_answers": null, "subscribers_known": 1_204, "in_flight": 7, "mt": { "sent": 9_120, "delivered": 8_802, "refused": { "absent-subscriber": 210, "memory-capacity-exceeded": 3, "unknown": 0 }, "unanswered": 12, "answered_late": 1, "answered_twice": 0, "status_reports": 4 },
        "mo": { "received": 811, "repeated": 2, "refused": { "38": 1 } }, "ready_for_sm": 81, "attached": 44, "relayed_frames": 120_112, "hlr_questions": { "asked": 9_002, "unanswered": 1 }, "last_error": null, "faults": [{ "kind": "double-name", "level": "warning", "what": "2 MSCs are connected under the name MSC-1 <a>", "remedy": "give each MSC an `ipa-name` of its own" }],
    }]);
    let tables = json!([
        { "name": "ported", "kind": "exact", "rows": 1_204_711, "octets": 41_802_112 },
        { "name": "<b>tariffs", "kind": "prefix", "rows": 812, "octets": 40_112 },
    ]);
    let balance = |name: &str, balance: i64| BalanceView {
        account: name.to_owned(),
        balance,
        reserved: 1_250_000,
        captured: 812_004_500,
        funded: 900_000_000,
        credit: 5_000_000,
    };
    let ledger_account =
        |index| balance(&name("account", index), if index == 1 { -5_000_000 } else { 86_745_500 });
    let ledger = BalancesView { accounts: (0..accounts).map(ledger_account).collect(), unsettled: 31 };
    let opened = LedgerOperationView {
        serial: 1,
        idempotency_key: "k1".to_owned(),
        at: now() - 96_000_000,
        actor: "ada".to_owned(),
        reason: "opened".to_owned(),
        fund: None,
        credit: Some(5_000_000),
        after: balance("acme", 0),
    };
    let funded = LedgerOperationView {
        serial: 2,
        idempotency_key: "k2".to_owned(),
        at: now() - 86_000_000,
        reason: "invoice <17>".to_owned(),
        fund: Some(500_000_000),
        credit: None,
        after: balance("acme", 586_000_000),
        ..opened.clone()
    };
    let operations = [funded, opened];
    let opt_outs = json!({ "stopped": [{ "sender": "10655", "subscriber": "4915112345678" }, { "sender": "ACME <i>", "subscriber": "4915112345600" }] });
    let drain = |draining: bool| {
        json!({
            "draining": draining, "refuse-binds": false, "since": draining.then(now), "by": draining.then_some("ada"),
            "remaining": { "waiting": 2381, "in-flight": 14 },
        })
    };
    let drained = move |draining: bool| move || std::future::ready(Json(drain(draining)));
    let changed_balance = BalanceChangeView { account: balance("acme", 86_745_500), repeated: false };
    let states = ["router", "resolver", "delivery-policy", "biller"];
    Router::new()
        .route("/v1/sessions", post(log_in))
        .route("/v1/sessions/current", axum::routing::delete(|| async { ([(header::SET_COOKIE, "switchyard-session=; Max-Age=0; Path=/")], StatusCode::NO_CONTENT) }))
        .route("/v1/whoami", get(|headers: HeaderMap| async move { Json(principal(&role(&headers).unwrap_or_default())) }))
        .route("/v1/whoami/password", post(nothing))
        .route("/v1/status", live(status))
        .route("/v1/attention", live(attention))
        .route("/v1/metrics/recent", live(recent_metrics))
        .route("/v1/queues", get(move || async move { Json(queues(peers, accounts)) }))
        .route("/v1/links", get(move || async move { Json(links(peers, accounts)) }))
        .route("/v1/drain", get(drained(false)).post(drained(true)).delete(drained(false)))
        .route("/v1/log", json(json!({ "level": "info,links=debug" })).put(|Json(level): Json<Value>| async move { Json(level) }))
        .route("/v1/hooks", get(move || async move { Json(states.map(|name| hook(name, false)).to_vec()) }))
        .route("/v1/hooks/{hook}", get(|Path(name): Path<String>| async move { Json(hook(&name, true)) }).delete(|| async { Json(record(8, &[], "unbound")) }))
        .route("/v1/hooks/{hook}/{act}", post(|Path((_, act)): Path<(String, String)>| async move { Json(changed_hook(&act)) }).delete(nothing))
        .route("/v1/plugins", json(plugins.clone()))
        .route("/v1/plugins/{name}", axum::routing::put(move |body: axum::body::Bytes| async move {
            if body.starts_with(b"\0asm") { Json(plugins[2].clone()).into_response() } else { problem(ProblemKind::Unprocessable, "this is no component") }
        }))
        .route("/v1/replays", post(replay))
        .route("/v1/replays/{id}", get(|| async { Json(replayed()) }).delete(nothing))
        .route("/v1/messages", live(|| json!(messages())).post(sent))
        .route("/v1/messages/{id}", get(|Path(id): Path<String>, request: Request| async move {
            let body = request.uri().query() == Some("body=1");
            if id == "404" { return problem(ProblemKind::NotFound, "message 404 was never accepted, or was deleted after its retention"); }
            if body && role(request.headers()).as_deref() != Some("admin") { return problem(ProblemKind::Forbidden, "texts are not for you"); }
            Json(trace(&id, body)).into_response()
        }))
        .route("/v1/messages/{id}/{act}", post(nothing))
        .route("/v1/explain", post(move || std::future::ready(Json(explained.clone()))))
        .route("/v1/queue-actions", json(queue_actions).post(move || std::future::ready((StatusCode::CREATED, Json(started_action.clone())))))
        .route("/v1/queue-actions/preview", post(move || std::future::ready(Json(preview.clone()))))
        .route("/v1/queue-actions/{id}", axum::routing::delete(move || std::future::ready(Json(ended_action.clone()))))
        .route("/v1/uncertain", json(uncertain()))
        .route("/v1/uncertain/settle", post(|| async { Json(SettleUncertainResult { settled: 1, skipped: 0 }) }))
        .route("/v1/pools", json(PoolsView { pools: vec![pool.clone()] }))
        .route("/v1/pools/{pool}", json(pool))
        .route("/v1/pools/{pool}/numbers", json(numbers))
        .route("/v1/pools/{pool}/history", json(journal))
        .route("/v1/gsm", json(gsm))
        .route("/v1/subscribers/{subscriber}", get(|Path(name): Path<String>| async move { subscriber(&name) }))
        .route("/v1/subscribers/{subscriber}/wake", post(|| async { Json(SubscriberWakeResult { messages: 1 }) }))
        .route("/v1/subscribers/{subscriber}/silent-sms", post(sent))
        .route("/v1/tables", json(tables))
        .route("/v1/tables/{name}", json(json!({ "exact": null, "longest": { "length": 3, "value": "<north>" } })).put(|| async { Json(json!({ "kind": "prefix", "rows": 2, "octets": 96 })) }).delete(nothing))
        .route("/v1/ledger", json(ledger))
        .route("/v1/ledger/{account}", json(balance("acme", 86_745_500)).post(move |headers: HeaderMap, body: String| async move {
            if headers.get("idempotency-key").is_none() { return problem(ProblemKind::BadRequest, "send the header `Idempotency-Key`"); }
            if body.contains("999") { return problem(ProblemKind::Conflict, "the account would exceed its limit"); }
            Json(changed_balance).into_response()
        }))
        .route("/v1/ledger/{account}/operations", json(operations))
        .route("/v1/refusals", json(json!({
            "counts": [{ "account": "acme", "protocol": "smpp", "code": "no-credit", "count": 1204 }],
            "refusals": [{ "at": now() - 5_000, "account": "acme", "protocol": "smpp", "source": "<b>ACME", "destination": "+49151****678", "code": "no-credit", "reason": "rejected: no credit" }],
        })))
        .route("/v1/opt-outs", json(opt_outs).post(nothing))
        .route("/v1/archive", json(archive))
        .route("/v1/statistics", live(statistics))
        .route("/v1/dlrs/orphans", json(json!({ "total": 2, "dlrs": [] })))
        .route("/v1/peers/{name}/dial", post(|Path(name): Path<String>| async move {
            if name == "unicom" { return problem(ProblemKind::NotFound, "\"unicom\" is not a peer or gateway that the appliance connects to"); }
            StatusCode::NO_CONTENT.into_response()
        }))
        .route("/v1/peers/{name}/test", post(move || std::future::ready(Json(test_result.clone()))))
        .route("/v1/configuration", get(move || std::future::ready(([(header::ETAG, "\"7\"")], Json(document.clone())))).patch(merge))
        .route("/v1/configuration/schema", json(configuration_schema()))
        .route("/v1/configuration/validate", post(validate))
        .route("/v1/configuration/versions", json(versions))
        .route("/v1/configuration/versions/{version}", get(show_version))
        .route("/v1/configuration/diff", json(diff))
        .route("/v1/configuration/confirm", post(nothing))
        .route("/v1/configuration/revert", post(|| async { Json(changed_configuration()) }))
        .route("/v1/configuration/rollback", post(|| async { Json(changed_configuration()) }))
        .route("/v1/users", json(users).post(|| async { (StatusCode::CREATED, Json(user("vera", Role::Viewer, None))) }))
        .route("/v1/users/{name}", axum::routing::patch(|Path(name): Path<String>| async move { Json(user(&name, Role::Operator, None)) }).delete(nothing))
        .route("/v1/tokens", json([token]).post(move || std::future::ready((StatusCode::CREATED, Json(created_token.clone())))))
        .route("/v1/tokens/{name}", axum::routing::delete(nothing))
        .route("/v1/audit", json(audit))
        .fallback(|| async { problem(ProblemKind::NotFound, "no such path; GET /v1/openapi.json lists all of them") })
        .layer(middleware::from_fn(check_session))
        .layer(middleware::from_fn_with_state(CheckedRequests::default(), check_answers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower::ServiceExt as _;

    /// Requests to all routes.
    const REQUESTS: &[(&str, &str, &str)] = &[
        ("POST", "/v1/sessions", r#"{"user":"viewer","password":"password"}"#),
        ("POST", "/v1/sessions", r#"{"user":"viewer","password":"wrong"}"#),
        ("DELETE", "/v1/sessions/current", ""),
        ("GET", "/v1/whoami", ""),
        ("POST", "/v1/whoami/password", "{}"),
        ("GET", "/v1/status", ""),
        ("GET", "/v1/attention", ""),
        ("GET", "/v1/metrics/recent", ""),
        ("GET", "/v1/queues", ""),
        ("GET", "/v1/links", ""),
        ("GET", "/v1/drain", ""),
        ("POST", "/v1/drain", "{}"),
        ("DELETE", "/v1/drain", ""),
        ("GET", "/v1/log", ""),
        ("PUT", "/v1/log", r#"{"level":"debug"}"#),
        ("GET", "/v1/hooks", ""),
        ("GET", "/v1/hooks/router", ""),
        ("GET", "/v1/hooks/biller", ""),
        ("DELETE", "/v1/hooks/router", ""),
        ("POST", "/v1/hooks/router/activate", "{}"),
        ("POST", "/v1/hooks/router/rollback", "{}"),
        ("POST", "/v1/hooks/router/candidate", "{}"),
        ("POST", "/v1/hooks/router/promote", "{}"),
        ("DELETE", "/v1/hooks/router/candidate", ""),
        ("GET", "/v1/plugins", ""),
        ("PUT", "/v1/plugins/router", "\0asm"),
        ("PUT", "/v1/plugins/router", "text"),
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
        ("POST", "/v1/peers/north/dial", ""),
        ("POST", "/v1/peers/north/test", ""),
        ("GET", "/v1/configuration", ""),
        ("PATCH", "/v1/configuration?why=more", "{}"),
        ("PATCH", "/v1/configuration", r#"{"peer":"wrong"}"#),
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

    async fn answer(api: Router, method: &str, path: &str, body: &'static str) -> Response {
        let request = axum::http::Request::builder()
            .method(method)
            .uri(path)
            .header(header::COOKIE, "switchyard-session=admin")
            .header(header::CONTENT_TYPE, "application/json")
            .header("switchyard-csrf", CSRF)
            .header("idempotency-key", "k")
            .header(header::IF_MATCH, "\"7\"");
        api.oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn all_answers_conform_to_the_api_document() {
        for (method, path, body) in REQUESTS {
            let status = answer(api(6, 4), method, path, body).await.status();
            assert_ne!(status, StatusCode::NOT_FOUND, "the fake API has no route {method} {path}");
        }
    }

    #[tokio::test]
    #[should_panic(expected = "/skipped: is missing")]
    async fn an_answer_that_does_not_conform_fails_the_test() {
        let wrong = Router::new()
            .route("/v1/uncertain/settle", post(|| async { Json(json!({ "settled": 1 })) }))
            .layer(middleware::from_fn_with_state(CheckedRequests::default(), check_answers));
        answer(wrong, "POST", "/v1/uncertain/settle", "").await;
    }
}

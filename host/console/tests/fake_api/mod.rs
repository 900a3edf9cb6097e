//! A fake API with prepared answers, for screenshots and tests of pages.

use axum::extract::{Path, Request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The CSRF token of every session of this fake.
const CSRF: &str = "test+csrf=1";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn problem(status: StatusCode, detail: &str) -> Response {
    let body = json!({ "title": "refused", "status": status.as_u16(), "detail": detail });
    (status, [(header::CONTENT_TYPE, "application/problem+json")], Json(body)).into_response()
}

fn role(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == "switchyard-session").map(|(_, role)| role.to_owned())
}

fn principal(role: &str) -> Value {
    let permissions: &[&str] = match role {
        "admin" => &[
            "own",
            "read",
            "read-bodies",
            "operate",
            "configure",
            "manage-plugins",
            "manage-money",
            "manage-users",
            "manage-backups",
            "manage-appliance",
        ],
        "operator" => &["own", "read", "operate"],
        "viewer" => &["own", "read"],
        _ => &["own"],
    };
    let account = (role == "account").then_some("acme");
    json!({ "user": format!("{role}-person"), "role": role, "permissions": permissions, "bodies": role == "admin", "account": account, "csrf": CSRF, "until": now() + 3_600_000 })
}

/// Checks session, CSRF token and role, as the real API does.
async fn check_session(request: Request, next: Next) -> Response {
    if request.uri().path() == "/v1/sessions" {
        return next.run(request).await;
    }
    let Some(role) = role(request.headers()) else {
        return problem(StatusCode::UNAUTHORIZED, "send the header `Authorization: Bearer TOKEN`");
    };
    if request.method() != Method::GET {
        let csrf = request.headers().get("switchyard-csrf").and_then(|value| value.to_str().ok());
        if csrf != Some(CSRF) {
            return problem(
                StatusCode::FORBIDDEN,
                "the header Switchyard-CSRF is missing or another session's",
            );
        }
        let own = request.uri().path() == "/v1/sessions/current" || request.uri().path() == "/v1/explain";
        if role == "viewer" && !own {
            return problem(
                StatusCode::FORBIDDEN,
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
        _ => return problem(StatusCode::UNAUTHORIZED, "not right"),
    };
    let answer = principal(role);
    let cookie = format!("switchyard-session={role}; HttpOnly; SameSite=Strict; Path=/");
    ([(header::SET_COOKIE, cookie)], Json(answer)).into_response()
}

fn subscriber(name: &str) -> Response {
    if name == "msisdn-404" {
        return problem(StatusCode::NOT_FOUND, "no core network has this subscriber");
    }
    Json(json!({
        "imsi": "0010*********01", "msisdn": "4915*******78", "network": "<b>phones", "msc": "MSC-1", "connected": true,
        "present_at": now() - 65_000, "present_by": "location-update", "state": "absent",
        "reason": "network: network failure (17)", "next_try": now() + 60_000, "message": "2",
        "waiting": { "count": 3, "oldest_at": now() - 60_000, "oldest": "2", "states": { "deferred": 1, "queued": 2 } },
    }))
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
        "totals": { "accepted": 18_204_771, "refused": 311, "submitted": 18_202_100, "throttled": 21, "uncertain": 3, "delivered": 18_100_230, "relayed": 71_002, "failed": 28_113, "expired": 901, "rejected": 14, "unknown": 2 },
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
        "instance": "kept", "grants": {}, "tolerance": {},
    })
}

fn hook(hook: &str, whole: bool) -> Value {
    let is_router = hook == "router";
    let chain = if is_router { vec![binding("4f0c2d91aa17")] } else { Vec::new() };
    let counts = |version: &str, calls: u64, traps: u64| json!([{ "plugin": "router", "version": version, "live": true, "calls": calls, "faults": { "trap": traps, "deadline": 0, "memory": 0, "verdict": 1, "instance": 0 }, "nanoseconds": calls * 6_200, "log-lines-left-out": 0 }]);
    let mut found = json!({
        "hook": hook,
        "live": { "serial": u64::from(is_router) * 7, "since": now() - 86_400_000, "chain": chain, "how": if is_router { "activated" } else { "unbound" } },
        "counts": if is_router { counts("4f0c2d91aa17", 8_120_331, 2) } else { json!([]) },
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
            "since": now() - 300_000, "mode": "shadow", "chain": [binding("9be10cc2d877")], "counts": counts("9be10cc2d877", 51_220, 0),
            "asked": 0, "failed": 0, "bypassed": 0,
            "comparison": { "compared": 51_220, "same": 50_901, "different": 319, "skipped": 12, "differences": [
                { "from": "forward north", "to": "forward harbour", "count": 300, "samples": ["acme: AC** to +4915****678", "acme: AC** to +4915****031"], "messages": ["1", null] },
                { "from": "reject no-route", "to": "forward <meridian>", "count": 19, "samples": ["demo: 106** to +4477****123"], "messages": ["4"] },
            ] },
        });
    }
    if whole {
        found["history"] = if is_router {
            json!([
                { "serial": 7, "since": now() - 86_400_000, "chain": [binding("4f0c2d91aa17")], "how": "activated" },
                { "serial": 6, "since": now() - 172_800_000, "chain": [binding("11d0e2aa9c41")], "how": "activated", "condemned": "12 faults of 400 calls" },
            ])
        } else {
            json!([])
        };
    }
    found
}

fn trace(id: &str, body: bool) -> Value {
    let at = now() - 42_000;
    json!({
        "id": id, "state": if id == "3" { "uncertain" } else if id == "2" { "deferred" } else { "delivered" }, "finished": id == "1", "origin": "acme",
        "source": "ACME", "destination": if body { "+4915112345678" } else { "+49151****678" }, "accepted_at": at, "expires_at": at + 172_800_000,
        "routing": { "plugin": "router", "version": "4f0c2d91aa17", "note": "prefix +49", "verdict": "forward: north (rank 0, weight 1); harbour (rank 1, weight 1)", "leg": 0 },
        "price": { "plugin": "biller", "version": "77aa01b2c3d4", "note": "DE, standard", "account": "acme", "amount": 42_500 },
        "waiting_for": (id != "1").then(|| format!("next attempt at {}", now() + 60_000)),
        "steps": [
            { "at": at, "what": "accepted and written to disk" },
            { "at": at + 12, "what": "submitted to north, attempt 1" },
            { "at": at + 61, "what": "refused by the peer: 0x58" },
            { "at": at + 61, "what": format!("deferred until {}", at + 10_061) },
            { "at": at + 10_064, "what": "submitted to north, attempt 2" },
            { "at": at + 10_102, "what": "accepted by the peer, id \"7fa90211\"" },
            { "at": at + 12_220, "what": "DLR: Delivered, error 0" },
            { "at": at + 12_221, "what": "charged 42500" },
        ],
        "peer_ids": ["7fa90211"], "length": 61, "body": body.then_some("Your code is 1234. <b>Do not</b> tell it to anybody.\nACME"),
    })
}

fn messages() -> Value {
    let states = ["delivered", "deferred", "uncertain", "queued", "failed", "submitted"];
    let all: Vec<Value> = (0..50_u64)
        .map(|index| json!({
            "id": (index + 1).to_string(), "at": now() - index * 4_217, "state": states[(index % 6) as usize], "finished": index % 2 == 0, "account": "acme",
            "peer": name("peer", index as usize % 6), "source": if index == 4 { "<b>ACME" } else { "ACME" }, "destination": format!("+49151****{:03}", index * 17 % 1000), "length": 61 + index,
        }))
        .collect();
    json!({ "messages": all, "next": "c50" })
}

async fn validate(body: String) -> Response {
    if body.contains("\"wrong\"") {
        return Json(json!({ "valid": false, "changes": [], "restart": [], "problems": [
            { "pointer": "/listener/0/connections", "what": "is a text, and must be a number", "allowed": "1 to 100000" },
            { "pointer": "/peer/0/window", "what": "must be 1 to 100000", "allowed": "1 to 100000" },
        ] })).into_response();
    }
    Json(json!({ "valid": true, "problems": [], "restart": ["/appliance/data"], "changes": [
        { "pointer": "/listener/0/connections", "what": "changed", "effect": "holds for new connections" },
    ] }))
    .into_response()
}

async fn merge(headers: HeaderMap, body: String) -> Response {
    match headers.get("if-match").and_then(|value| value.to_str().ok()) {
        None => return problem(StatusCode::PRECONDITION_REQUIRED, "send If-Match"),
        Some("\"7\"") => {}
        Some(_) => {
            return problem(StatusCode::PRECONDITION_FAILED, "the configuration is at version 7 by now");
        }
    }
    if body.contains("wrong") {
        let problems =
            json!([{ "pointer": "/peer/0/address", "what": "has no port", "allowed": "host:port" }]);
        let body =
            json!({ "title": "refused", "status": 422, "detail": "1 thing is wrong", "problems": problems });
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response();
    }
    Json(json!({ "version": 8, "changes": [], "restart": [], "reverts-at": null, "sent": body }))
        .into_response()
}

async fn replay(Json(request): Json<Value>) -> Response {
    if request["policy"].as_str().is_some_and(|policy| policy.contains("wrong")) {
        return problem(
            StatusCode::UNPROCESSABLE_ENTITY,
            "router refuses its policy: line 5: `prefix` must be digits with a plus in front",
        );
    }
    Json(json!({ "id": "1" })).into_response()
}

fn replayed() -> Value {
    json!({ "id": "1", "state": "done", "report": { "messages": 1000, "same": 981, "different": 19, "groups": [
        { "from": "forward north", "to": "forward harbour", "count": 19, "exact": 19, "examples": [{ "id": "4" }, { "id": "9" }] },
    ] } })
}

/// The API of an appliance with this number of peers and accounts.
pub(crate) fn api(peers: usize, accounts: usize) -> Router {
    let json = |value: Value| get(move || std::future::ready(Json(value.clone())));
    let live = |draw: fn() -> Value| get(move || async move { Json(draw()) });
    let nothing = || async { StatusCode::NO_CONTENT };
    let document = json!({
        "version": 7, "at": 1_763_800_000_000_u64, "by": "ada", "why": "more windows <for> north", "mode": "api",
        "pending": { "version": 7, "reverts-at": now() + 500_000 }, "document": document(peers, accounts),
    });
    let versions = json!({ "versions": [
        { "version": 7, "at": 1_763_800_000_000_u64, "by": "ada", "why": "more windows <for> north", "changes": 2, "reverts-at": now() + 500_000 },
        { "version": 6, "at": 1_763_700_000_000_u64, "by": "bob", "why": "", "changes": 1 },
        { "version": 1, "at": 1_763_600_000_000_u64, "by": "file", "why": "the file of the first start", "changes": 12 },
    ], "next": null });
    let diff = json!({ "from": 6, "to": 7, "changes": [
        { "pointer": "/peer/north/window", "before": 100, "after": 500 },
        { "pointer": "/peer/coast", "before": null, "after": { "name": "coast", "address": "smsc-5.example.net:2775" } },
    ] });
    let queue_actions = json!([
        { "id": "1", "action": "suspend", "scope": { "peer": "harbour" }, "by": "ada", "why": "maintenance <there>", "at": now() - 700_000, "state": "active", "affected": 212 },
        { "id": "2", "action": "cancel", "scope": { "account": "demo", "older-than": "2h" }, "by": "bob", "why": "", "at": now() - 20_000, "state": "undo-window", "undo-until": now() + 40_000, "affected": 9 },
    ]);
    let preview = json!({ "messages": 212, "by-state": { "queued": 200, "deferred": 12 }, "sample": [
        { "id": "4", "from": "ACME", "to": "+49151****051", "state": "queued" },
    ] });
    let plugins = json!([
        { "plugin": "router", "version": "11d0e2aa9c41", "size": 211_802, "hook": "router", "wit": "0.3", "imports": ["counters"], "signed_by": null },
        { "plugin": "router", "version": "4f0c2d91aa17", "size": 214_552, "hook": "router", "wit": "0.3", "imports": ["counters", "tables"], "signed_by": "acme" },
        { "plugin": "router", "version": "9be10cc2d877", "size": 219_001, "hook": "router", "wit": "0.3", "imports": ["counters", "tables"], "signed_by": "acme" },
    ]);
    let pool = json!({
        "name": "support", "settings": { "strategy": "longest-idle", "quarantine-ms": 30_000 },
        "numbers": { "idle+up": 712, "idle+down": 40, "busy+up": 240, "busy+down": 8, "total": 1000 }, "ready": 700, "next-ms": null, "entries": 9_120, "acquired": 4_410, "none": 3, "lapsed": 12,
    });
    let numbers = json!({ "numbers": [
        { "number": "+4930555001", "state": "busy+up", "since": now() - 60_000, "ticket": 4, "holder": "dialler-2", "weight": 1, "calls": 41, "held_seconds": 812, "lapsed": 0 },
        { "number": "+4930555002", "state": "idle+down", "since": now() - 600_000, "reason": "spam list", "weight": 1, "calls": 9, "held_seconds": 81, "lapsed": 0 },
    ], "next": 2 });
    let journal = json!({ "entries": [{ "id": 9, "at": now() - 60_000, "event": "call", "number": "+4930555001", "by": "dialler-2", "state": "busy+up" }], "next": null });
    let archive = json!({ "state": "up", "archived": 91_220, "batches": 812, "failures": 0, "refused": 0, "trimmed": 0, "backlog": 14, "since_success": { "secs": 1, "nanos": 0 }, "last_batch": { "secs": 0, "nanos": 41_000_000 } });
    let statistics = json!([{ "start": "2026-11-21T00:00:00Z", "account": "acme", "peer": "north", "mt": { "accepted": 810_212, "responded": 810_190, "delivered": 801_774 }, "mo": { "accepted": 1_204 } }]);
    let users = json!([
        { "name": "admin-person", "role": "admin", "bodies": true, "account": null },
        { "name": "vera", "role": "viewer", "bodies": false, "account": null },
        { "name": "<i>acme-support", "role": "account", "bodies": false, "account": "acme" },
    ]);
    let tokens = json!([{ "name": "monitoring", "role": "viewer", "bodies": false, "account": null, "until": now() + 8_640_000_000_u64 }]);
    let audit = json!({ "entries": [
        { "serial": 41, "at": now() - 3_000, "by": "ada", "what": "PATCH /v1/configuration", "subject": "", "from": "192.0.2.7", "outcome": "200" },
        { "serial": 40, "at": now() - 9_000, "by": "vera", "what": "GET /v1/messages/{id} body", "subject": "81", "detail": "text read", "from": "192.0.2.9", "outcome": "403" },
    ], "next": null });
    let test_result = json!({ "ok": false, "steps": [
        { "what": "address", "ok": true, "ms": 3, "detail": "192.0.2.4:2775" },
        { "what": "connect", "ok": false, "ms": 2004, "detail": "no answer within 2 s: a firewall between here and there?" },
    ] });
    let gsm = json!([{
        "name": "home", "role": "proxy", "connections": [{ "name": "MSC-1 <a>", "remote": "192.0.2.20:41822", "ready": true }, { "name": null, "remote": "192.0.2.21:40022", "ready": false }],
        "hlr_answers": null, "subscribers_known": 1_204, "in_flight": 7, "mt": { "sent": 9_120, "delivered": 8_802, "refused": { "absent-subscriber": 210, "memory-capacity-exceeded": 3, "unknown": 0 }, "unanswered": 12, "answered_late": 1, "answered_twice": 0, "status_reports": 4 },
        "mo": { "received": 811, "repeated": 2, "refused": { "38": 1 } }, "ready_for_sm": 81, "attached": 44, "relayed_frames": 120_112, "hlr_questions": { "asked": 9_002, "unanswered": 1 }, "last_error": null, "faults": [{ "kind": "double-name", "level": "warning", "what": "2 MSCs are connected under the name MSC-1 <a>", "remedy": "give each MSC an `ipa-name` of its own" }],
    }]);
    let tables = json!([
        { "name": "ported", "kind": "exact", "rows": 1_204_711, "octets": 41_802_112 },
        { "name": "<b>tariffs", "kind": "prefix", "rows": 812, "octets": 40_112 },
    ]);
    let balance = |name: &str, balance: i64| json!({ "account": name, "balance": balance, "reserved": 1_250_000, "captured": 812_004_500, "funded": 900_000_000, "credit": 5_000_000 });
    let ledger = json!({ "accounts": (0..accounts).map(|index| balance(&name("account", index), if index == 1 { -5_000_000 } else { 86_745_500 })).collect::<Vec<_>>(), "unsettled": 31 });
    let operations = json!([
        { "serial": 2, "idempotency_key": "k2", "at": now() - 86_000_000, "actor": "ada", "reason": "invoice <17>", "fund": 500_000_000, "after": balance("acme", 586_000_000) },
        { "serial": 1, "idempotency_key": "k1", "at": now() - 96_000_000, "actor": "ada", "reason": "opened", "credit": 5_000_000, "after": balance("acme", 0) },
    ]);
    let opt_outs = json!({ "stopped": [{ "sender": "10655", "subscriber": "4915112345678" }, { "sender": "ACME <i>", "subscriber": "4915112345600" }] });
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
        .route("/v1/drain", json(json!({ "draining": false, "since": null, "by": null, "remaining": { "waiting": 2381, "in-flight": 14 } })).post(nothing).delete(nothing))
        .route("/v1/log", json(json!({ "level": "info,links=debug" })).put(nothing))
        .route("/v1/hooks", get(move || async move { Json(states.map(|name| hook(name, false)).to_vec()) }))
        .route("/v1/hooks/{hook}", get(|Path(name): Path<String>| async move { Json(hook(&name, true)) }).delete(nothing))
        .route("/v1/hooks/{hook}/{act}", post(|| async { Json(json!({})) }).delete(nothing))
        .route("/v1/plugins", json(plugins))
        .route("/v1/plugins/{name}", axum::routing::put(|body: axum::body::Bytes| async move {
            if body.starts_with(b"\0asm") { Json(json!({ "plugin": "router", "version": "aaaabbbbcccc", "hook": "router" })).into_response() } else { problem(StatusCode::UNPROCESSABLE_ENTITY, "this is no component") }
        }))
        .route("/v1/replays", post(replay))
        .route("/v1/replays/{id}", get(|| async { Json(replayed()) }).delete(nothing))
        .route("/v1/messages", live(messages).post(|| async { Json(json!({ "id": "2" })) }))
        .route("/v1/messages/{id}", get(|Path(id): Path<String>, request: Request| async move {
            let body = request.uri().query() == Some("body=1");
            if id == "404" { return problem(StatusCode::NOT_FOUND, "message 404 was never accepted, or was deleted after its retention"); }
            if body && role(request.headers()).as_deref() != Some("admin") { return problem(StatusCode::FORBIDDEN, "texts are not for you"); }
            Json(trace(&id, body)).into_response()
        }))
        .route("/v1/messages/{id}/{act}", post(nothing))
        .route("/v1/explain", post(|| async { Json(json!({ "steps": ["origin: acme", "router: forward north"], "answer": "accepted" })) }))
        .route("/v1/queue-actions", json(queue_actions).post(|| async { (StatusCode::CREATED, Json(json!({}))) }))
        .route("/v1/queue-actions/preview", post(move || std::future::ready(Json(preview.clone()))))
        .route("/v1/queue-actions/{id}", axum::routing::delete(nothing))
        .route("/v1/uncertain", json(json!({ "messages": [{ "id": "3", "at": now() - 90_000, "state": "uncertain", "account": "acme", "peer": "meridian", "source": "ACME", "destination": "+49151****034", "length": 63 }], "next": null })))
        .route("/v1/uncertain/settle", post(nothing))
        .route("/v1/pools", json(json!({ "pools": [pool.clone()] })))
        .route("/v1/pools/{pool}", json(pool))
        .route("/v1/pools/{pool}/numbers", json(numbers))
        .route("/v1/pools/{pool}/history", json(journal))
        .route("/v1/gsm", json(gsm))
        .route("/v1/subscribers/{subscriber}", get(|Path(name): Path<String>| async move { subscriber(&name) }))
        .route("/v1/subscribers/{subscriber}/wake", post(|| async { Json(json!({ "messages": 1 })) }))
        .route("/v1/subscribers/{subscriber}/silent-sms", post(|| async { (StatusCode::CREATED, Json(json!({ "id": "2" }))) }))
        .route("/v1/tables", json(tables))
        .route("/v1/tables/{name}", json(json!({ "exact": null, "longest": { "length": 3, "value": "<north>" } })).put(nothing).delete(nothing))
        .route("/v1/ledger", json(ledger))
        .route("/v1/ledger/{account}", json(balance("acme", 86_745_500)).post(|headers: HeaderMap, body: String| async move {
            if headers.get("idempotency-key").is_none() { return problem(StatusCode::BAD_REQUEST, "send the header `Idempotency-Key`"); }
            if body.contains("999") { return problem(StatusCode::CONFLICT, "the account would exceed its limit"); }
            Json(json!({})).into_response()
        }))
        .route("/v1/ledger/{account}/operations", json(operations))
        .route("/v1/refusals", json(json!({
            "counts": [{ "account": "acme", "protocol": "smpp", "code": "no-credit", "count": 1204 }],
            "refusals": [{ "at": now() - 5_000, "account": "acme", "protocol": "smpp", "source": "<b>ACME", "destination": "+49151****678", "code": "no-credit", "reason": "rejected: no credit" }],
        })))
        .route("/v1/opt-outs", json(opt_outs).post(nothing))
        .route("/v1/archive", json(archive))
        .route("/v1/statistics", json(statistics))
        .route("/v1/dlrs/orphans", json(json!({ "total": 2, "dlrs": [] })))
        .route("/v1/peers/{name}/dial", post(|Path(name): Path<String>| async move {
            if name == "unicom" { return problem(StatusCode::NOT_FOUND, "\"unicom\" is not a peer or gateway that the appliance connects to"); }
            StatusCode::NO_CONTENT.into_response()
        }))
        .route("/v1/peers/{name}/test", post(move || std::future::ready(Json(test_result.clone()))))
        .route("/v1/configuration", get(move || std::future::ready(([(header::ETAG, "\"7\"")], Json(document.clone())))).patch(merge))
        .route("/v1/configuration/validate", post(validate))
        .route("/v1/configuration/versions", json(versions))
        .route("/v1/configuration/versions/{version}", get(|Path(version): Path<u64>| async move { Json(json!({ "version": version, "at": 1_763_700_000_000_u64, "by": "bob", "why": "", "document": {} })) }))
        .route("/v1/configuration/diff", json(diff))
        .route("/v1/configuration/confirm", post(nothing))
        .route("/v1/configuration/revert", post(nothing))
        .route("/v1/configuration/rollback", post(|| async { Json(json!({ "version": 8 })) }))
        .route("/v1/users", json(users).post(nothing))
        .route("/v1/users/{name}", axum::routing::patch(nothing).delete(nothing))
        .route("/v1/tokens", json(tokens).post(|| async { Json(json!({ "token": "swy_5up3rs3cr3t" })) }))
        .route("/v1/tokens/{name}", axum::routing::delete(nothing))
        .route("/v1/audit", json(audit))
        .fallback(|| async { problem(StatusCode::NOT_FOUND, "no such path; GET /v1/openapi.json lists all of them") })
        .layer(middleware::from_fn(check_session))
}

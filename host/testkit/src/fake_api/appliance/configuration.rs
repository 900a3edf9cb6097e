//! The configuration and its versions.

use super::{account_name, now, peer_name, problem};
use admin::{Problem, ProblemKind};
use api::{
    ConfigChangeKindView, ConfigChangeView, ConfigDifferenceView, ConfigVersionPageView,
    ConfigVersionSummaryView, ConfigVersionView, ConfigurationChangeResult, ConfigurationCheck,
    ConfigurationDiff, CurrentConfiguration, FieldProblem, ManagedBy, UnconfirmedVersionView,
};
use axum::Json;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use configuration::{Key, Keys as _, Shape};
use links::{GatewayKind, LinkAccountOptions, PeerOptions};
use serde_json::{Value, json};

fn document(peers: usize, accounts: usize) -> Value {
    let peers: Vec<Value> = (0..peers)
        .map(|index| json!({ "name": peer_name(index), "address": format!("smsc-{index}.example.net:2775"), "system-id": "switchyard", "password": "(unchanged)", "links": 2, "window": 500, "dlrs": true, "retry": ["10s", "1m", "5m"], "long-text": "udh" }))
        .collect();
    let accounts: Vec<Value> = (0..accounts)
        .map(|index| json!({ "name": account_name(index), "password-hash": "(unchanged)", "bind": ["transceiver"], "networks": ["192.0.2.0/24"], "window": 1000, "validity": "2d" }))
        .collect();
    json!({
        "appliance": { "name": "SWITCHYARD", "shutdown-timeout": "10s", "free-space-watermark": "512MiB" },
        "listener": [{ "name": "smpp", "listen": "127.0.0.1:2775", "connections": 1000 }],
        "peer": peers, "account": accounts,
        "plugin-peer": [{ "name": "aggregator", "window": 8, "callbacks": true }],
        "gateway": [{ "name": "unicom", "address": "smg.example.net:8801", "node": 3_010_012_345_u64, "login-name": "us", "login-password": "(unchanged)", "inbound-login-name": "smg", "inbound-login-password": "(unchanged)", "connections": 2 }],
    })
}

/// The schema of the links' keys of peers, gateways and accounts.
pub(super) fn schema() -> Value {
    let lists = [
        ("peer", PeerOptions::keys()),
        ("gateway", GatewayKind::keys()),
        ("account", LinkAccountOptions::keys()),
    ];
    let keys = lists.map(|(name, keys)| Key::new(name, "A list.", Shape::Tables(keys)));
    configuration::schema(&keys)
}

pub(super) fn current(peers: usize, accounts: usize) -> CurrentConfiguration {
    CurrentConfiguration {
        version: 7,
        at: now() - 100_000,
        by: "ada".to_owned(),
        why: "more windows <for> north".to_owned(),
        mode: ManagedBy::Api,
        pending: Some(UnconfirmedVersionView { version: 7, reverts_at: now() + 500_000 }),
        restart: Vec::new(),
        document: document(peers, accounts),
    }
}

/// A version of the configuration.
fn version(version: u64, by: &str, why: &str) -> ConfigVersionSummaryView {
    let at = 1_763_600_000_000 + version * 10_000_000;
    ConfigVersionSummaryView { version, at, by: by.to_owned(), why: why.to_owned(), changes: 2 }
}

pub(super) fn versions() -> ConfigVersionPageView {
    ConfigVersionPageView {
        versions: vec![
            version(7, "ada", "more windows <for> north"),
            version(6, "bob", ""),
            version(1, "file", "the file of the first start"),
        ],
        next: None,
    }
}

pub(super) fn diff() -> ConfigurationDiff {
    let difference = |pointer: &str, before, after| ConfigDifferenceView {
        pointer: pointer.to_owned(),
        before,
        after: Some(after),
    };
    let coast = json!({ "name": "coast", "address": "smsc-5.example.net:2775" });
    ConfigurationDiff {
        from: 6,
        to: 7,
        changes: vec![
            difference("/peer/north/window", Some(json!(100)), json!(500)),
            difference("/peer/coast", None, coast),
        ],
    }
}

pub(super) async fn show_version(Path(number): Path<u64>) -> Json<ConfigVersionView> {
    Json(ConfigVersionView { summary: version(number, "bob", ""), document: json!({}) })
}

pub(super) async fn validate(body: String) -> Json<ConfigurationCheck> {
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

pub(super) async fn merge(headers: HeaderMap, body: String) -> Response {
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
    Json(changed()).into_response()
}

pub(super) fn changed() -> ConfigurationChangeResult {
    ConfigurationChangeResult { version: 8, changes: Vec::new(), restart: Vec::new(), reverts_at: None }
}

//! For tests: prepared answers of the API. They are made with the daemon's own types where these are public; in any case they are
//! checked against the API document, by [`crate::fake_api::FakeApi`] or by `testkit::api_document::fixture`.

use crate::fake_api::{NOW, VERSION};
use admin::{CurrentConfiguration, ManagedBy};
use api::{LinkView, QueueView, StatusView};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The names of all totals of the status.
const TOTALS: [&str; 20] = [
    "accepted",
    "refused",
    "submitted",
    "throttled",
    "uncertain",
    "sent_again",
    "dlrs_matched",
    "dlrs_unmatched",
    "dlrs_made",
    "dlrs_delivered",
    "commits",
    "commit_us",
    "commit_rows",
    "delivered",
    "relayed",
    "failed",
    "expired",
    "cancelled",
    "rejected",
    "unknown",
];

/// `GET /v1/status`, with these totals; all others are 0.
pub(crate) fn status(totals: &[(&'static str, u64)]) -> StatusView {
    let mut all = BTreeMap::from(TOTALS.map(|name| (name, 0)));
    all.extend(totals.iter().copied());
    StatusView {
        name: "SWITCHYARD".to_owned(),
        version: VERSION.to_owned(),
        totals: all,
        ..StatusView::default()
    }
}

/// An empty queue in `GET /v1/queues`.
pub(crate) fn queue(peer: &str) -> QueueView {
    QueueView {
        peer: peer.to_owned(),
        configured: true,
        links: 1,
        blocked_by: "idle".to_owned(),
        ..QueueView::default()
    }
}

/// A link in `GET /v1/links`.
pub(crate) fn link(peer: &str, role: &'static str, phase: &'static str) -> LinkView {
    LinkView { peer: peer.to_owned(), role, phase, blocked_by: "none".to_owned(), ..LinkView::default() }
}

/// `GET /v1/archive`.
pub(crate) fn archive(state: &str, backlog: u64) -> Value {
    json!({
        "state": state, "archived": 1_000, "batches": 10, "failures": 0, "refused": 0, "trimmed": 0, "backlog": backlog,
        "since_success": { "secs": 1, "nanos": 0 }, "last_batch": { "secs": 0, "nanos": 4_000_000 },
    })
}

/// The router in `GET /v1/hooks`, with one live plugin.
pub(crate) fn router(calls: u64, nanoseconds: u64) -> Value {
    json!({
        "hook": "router",
        "live": { "serial": 1, "since": NOW - 60_000, "chain": [], "how": "activated" },
        "counts": [{
            "plugin": "prefix-router", "version": "58cd962459f1", "live": true, "calls": calls,
            "faults": { "trap": 0, "deadline": 0, "memory": 0, "verdict": 0, "instance": 0 },
            "nanoseconds": nanoseconds, "log-lines-left-out": 0,
        }],
        "events": [], "faults": [],
    })
}

/// `GET /v1/configuration`: version 7, with this document.
pub(crate) fn configuration(document: Value) -> CurrentConfiguration {
    CurrentConfiguration {
        version: 7,
        at: NOW,
        by: "ada".to_owned(),
        why: "more links".to_owned(),
        mode: ManagedBy::Api,
        pending: None,
        restart: Vec::new(),
        document,
    }
}

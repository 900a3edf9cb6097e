//! For tests: prepared answers of the API. They are made with the daemon's own types where these are public; in any case they are
//! checked against the API document, by [`crate::fake_api::FakeApi`] or by `testkit::api_document::fixture`.

use crate::fake_api::{NOW, VERSION};
use api::{CurrentConfiguration, LinkView, ManagedBy, QueueView, StatusTotals, StatusView};
use serde_json::{Value, json};

/// `GET /v1/status`, with these totals.
pub(crate) fn status(totals: StatusTotals) -> StatusView {
    StatusView { name: "SWITCHYARD".to_owned(), version: VERSION.to_owned(), totals, ..StatusView::default() }
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
pub(crate) fn link(peer: &str, role: &str, phase: &str) -> LinkView {
    let (role, phase) = (role.to_owned(), phase.to_owned());
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

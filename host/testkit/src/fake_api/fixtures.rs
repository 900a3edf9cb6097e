//! Answers that several tests need.

use api::{
    ArchivePumpView, AttentionSeverity, AttentionSubject, AttentionSubjectKind, AttentionView, BindingChange,
    BindingRecord, CurrentConfiguration, HookStateView, LinkPhase, LinkRole, LinkView, ManagedBy,
    PluginCountsView, PluginFaultCounts, PumpState, QueueView, SpanView, StatusTotals, StatusView,
};
use model::{Hook, Timestamp};
use serde_json::Value;

/// The current time in tests of commands: 2026-11-21 16:03:02 UTC, in milliseconds.
pub const NOW: u64 = 1_795_276_982_000;

/// The version of the daemon.
pub const VERSION: &str = "0.1.0";

/// `GET /v1/status`, with these totals.
#[must_use]
pub fn status(totals: StatusTotals) -> StatusView {
    StatusView { name: "SWITCHYARD".to_owned(), version: VERSION.to_owned(), totals, ..StatusView::default() }
}

/// An empty queue in `GET /v1/queues`.
#[must_use]
pub fn queue(peer: &str) -> QueueView {
    QueueView {
        peer: peer.to_owned(),
        configured: true,
        links: 1,
        blocked_by: "idle".to_owned(),
        ..QueueView::default()
    }
}

/// A link in `GET /v1/links`.
#[must_use]
pub fn link(peer: &str, role: LinkRole, phase: LinkPhase) -> LinkView {
    LinkView { peer: peer.to_owned(), role, phase, ..LinkView::default() }
}

/// `GET /v1/archive`.
#[must_use]
pub fn archive(state: PumpState, backlog: u64) -> ArchivePumpView {
    ArchivePumpView {
        state,
        error: None,
        archived: 1_000,
        batches: 10,
        failures: 0,
        refused: 0,
        trimmed: 0,
        contents_erased: 0,
        overwriting: false,
        backlog,
        since_success: Some(SpanView { secs: 1, nanos: 0 }),
        last_batch: SpanView { secs: 0, nanos: 4_000_000 },
    }
}

/// The router in `GET /v1/hooks`, with one live plugin.
#[must_use]
pub fn router(calls: u64, nanoseconds: u64) -> HookStateView {
    HookStateView {
        hook: Hook::Router,
        live: BindingRecord {
            serial: 1,
            since: Timestamp(NOW - 60_000),
            chain: Vec::new(),
            change: BindingChange::Activated,
            rollback_reason: None,
        },
        counts: vec![PluginCountsView {
            plugin: "prefix-router".to_owned(),
            version: "58cd962459f1".to_owned(),
            tenant: None,
            live: true,
            calls,
            faults: PluginFaultCounts::default(),
            nanoseconds,
            memory: 1_376_256,
            host_calls: [("tables".to_owned(), 1_200)].into(),
            log_lines_left_out: 0,
        }],
        candidate: None,
        events: Vec::new(),
        faults: Vec::new(),
        unknown: Vec::new(),
        history: None,
    }
}

/// A finding in `GET /v1/attention`, about a subject without a name.
#[must_use]
pub fn finding(
    severity: AttentionSeverity,
    code: &str,
    kind: AttentionSubjectKind,
    text: &str,
) -> AttentionView {
    let subject = AttentionSubject { kind, name: None };
    AttentionView {
        severity,
        code: code.to_owned(),
        subject,
        since: None,
        text: text.to_owned(),
        remedy: None,
    }
}

/// `GET /v1/configuration`: version 7, with this document.
#[must_use]
pub fn configuration(document: Value) -> CurrentConfiguration {
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

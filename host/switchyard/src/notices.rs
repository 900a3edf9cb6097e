//! Notices for event sinks: changes of bindings, faults of plugins, versions of the configuration.
//!
//! Hooks and configuration store their own changes. The notice of a change is written into the journal shortly after
//! it; its id is derived from the change. A notice that a crash prevented is written after the next start, with the
//! same id.

use api::HookEvent;
use configuration::ConfigVersionSummary;
use events::{EventSinkOptions, EventType};
use hooks::Hooks;
use model::{Hook, Notice, NoticeKind, Timestamp};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Maximum age of hook events whose notices are repeated after a start.
const MAX_REPEATED_AGE: Duration = Duration::from_secs(3600);

/// The types of notices that some event sink wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedNotices {
    hooks: bool,
    configuration: bool,
}

impl WantedNotices {
    pub(crate) fn of(sinks: &[EventSinkOptions]) -> Self {
        let wants = |kind| sinks.iter().any(|sink| sink.has_type(kind));
        Self {
            hooks: wants(EventType::Fault) || wants(EventType::Exchange),
            configuration: wants(EventType::Configuration),
        }
    }

    /// The notice that a version is in force; `None` if no event sink wants it.
    pub(crate) fn configuration(self, version: &ConfigVersionSummary) -> Option<Notice> {
        let data = json!({
            "version": version.version,
            "by": version.by,
            "why": version.why,
            "changes": version.changes,
        });
        self.configuration.then(|| Notice {
            kind: NoticeKind::Configuration,
            id: format!("configuration-{}", version.version).into(),
            at: Timestamp(version.at),
            data: data.to_string().into(),
        })
    }
}

/// Finds new events of hooks.
#[derive(Debug)]
pub(crate) struct HookNotices {
    wanted: WantedNotices,
    since: Timestamp,
    sent: HashSet<Arc<str>>,
}

impl HookNotices {
    pub(crate) fn new(wanted: WantedNotices, now: Timestamp) -> Self {
        let age = u64::try_from(MAX_REPEATED_AGE.as_millis()).unwrap_or(u64::MAX);
        Self { wanted, since: Timestamp(now.0.saturating_sub(age)), sent: HashSet::new() }
    }

    /// The notices of new events, oldest first.
    pub(crate) fn take(&mut self, hooks: &Hooks) -> Vec<Notice> {
        if !self.wanted.hooks {
            return Vec::new();
        }
        let mut notices = Vec::new();
        for hook in Hook::ALL {
            let events = hooks.status(hook).events;
            notices.extend(events.iter().rev().filter_map(|event| self.notice(hook, event)));
        }
        notices.sort_by_key(|notice| notice.at);
        notices
    }

    fn notice(&mut self, hook: Hook, event: &HookEvent) -> Option<Notice> {
        let id: Arc<str> = format!("hook-{}-{}-{}", hook.name(), event.at.0, event.kind).into();
        if event.at < self.since || !self.sent.insert(id.clone()) {
            return None;
        }
        let is_fault = matches!(event.kind.as_str(), "faulty" | "candidate-faulty" | "rolled-back-by-itself");
        let kind = if is_fault { NoticeKind::Fault } else { NoticeKind::Exchange };
        let what: String = event.what.chars().take(Notice::MAX_DATA / 8).collect();
        let data = json!({ "hook": hook.name(), "event": event.kind, "what": what });
        Some(Notice { kind, id, at: event.at, data: data.to_string().into() })
    }
}

//! What other systems are told beside the messages: exchanges and faults of plugins, and versions of the configuration.
//!
//! Hooks and configuration store what happened themselves. It is written into the journal a moment later, under an id that is made of
//! it; what a crash may have cut off is told again after the next start, under the same id.

use api::HookEvent;
use configuration::ConfigVersionSummary;
use events::{EventSinkOptions, EventType};
use hooks::Hooks;
use model::{Hook, Notice, NoticeKind, Timestamp};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// After a start, events of hooks are told again that are so old at most.
const TOLD_AGAIN: Duration = Duration::from_secs(3600);

/// Which notices somebody wants.
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

    /// The notice of a version that is in force; `None` if nobody wants it.
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

/// Finds the events of hooks that were not told yet.
#[derive(Debug)]
pub(crate) struct HookNotices {
    wanted: WantedNotices,
    since: Timestamp,
    told: HashSet<Arc<str>>,
}

impl HookNotices {
    pub(crate) fn new(wanted: WantedNotices, now: Timestamp) -> Self {
        let age = u64::try_from(TOLD_AGAIN.as_millis()).unwrap_or(u64::MAX);
        Self { wanted, since: Timestamp(now.0.saturating_sub(age)), told: HashSet::new() }
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
        if event.at < self.since || !self.told.insert(id.clone()) {
            return None;
        }
        let is_fault = matches!(event.kind.as_str(), "faulty" | "candidate-faulty" | "rolled-back-by-itself");
        let kind = if is_fault { NoticeKind::Fault } else { NoticeKind::Exchange };
        let what: String = event.what.chars().take(Notice::MAX_DATA / 8).collect();
        let data = json!({ "hook": hook.name(), "event": event.kind, "what": what });
        Some(Notice { kind, id, at: event.at, data: data.to_string().into() })
    }
}

//! `switchyard plugin log --follow`: prints the events and faults of a hook as they occur.

use crate::WorkbenchError;
use crate::format;
use crate::hooks_api::HooksApi;
use api::{FaultExample, HookEvent, HookStateView};
use cli::format::{number, timestamp, value_text};
use client::{ClientError, terminal};
use model::{Hook, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Interval between two requests to the appliance.
const POLL: Duration = Duration::from_secs(1);

/// An entry of the log. In JSON it is an object with one field, named after its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum LogEntry {
    /// An event of the hook.
    Event(HookEvent),
    /// A question on which a version failed.
    Fault(FaultEntry),
    /// Faults of which the appliance no longer has examples.
    MoreFaults(FaultCount),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct FaultEntry {
    plugin: String,
    version: String,
    #[serde(flatten)]
    example: FaultExample,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct FaultCount {
    plugin: String,
    version: String,
    count: u64,
}

impl LogEntry {
    fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Event(event) => Some(event.at),
            Self::Fault(fault) => Some(fault.example.at),
            Self::MoreFaults(_) => None,
        }
    }

    /// The identity of an entry. It excludes the message id of a fault, which is set later.
    fn key(&self) -> EntryKey {
        let texts = match self {
            Self::Event(event) => vec![event.kind.clone(), event.what.clone()],
            Self::Fault(FaultEntry { plugin, version, example }) => {
                vec![plugin.clone(), version.clone(), example.id.to_string()]
            }
            Self::MoreFaults(_) => Vec::new(),
        };
        (self.at(), texts)
    }

    fn describe(&self) -> String {
        let line =
            |at: &Timestamp, what: &str, detail: &str| format!("{}  {what:<21}  {detail}", timestamp(at));
        match self {
            Self::Event(event) => line(&event.at, &value_text(&event.kind), &value_text(&event.what)),
            Self::Fault(FaultEntry { plugin, version, example }) => {
                let by = format!("{} {}", value_text(plugin), value_text(version));
                let (what, question) = (format::fault(example), value_text(&example.question));
                let kind = format!("fault {}", value_text(&example.kind));
                line(&example.at, &kind, &format!("{by}: {what}; asked: {question}; fault {}", example.id))
            }
            Self::MoreFaults(FaultCount { plugin, version, count }) => format!(
                "(and {} more faults of {} {})",
                number(*count),
                value_text(plugin),
                value_text(version)
            ),
        }
    }
}

type EntryKey = (Option<Timestamp>, Vec<String>);

/// The part of a hook's log that has been shown.
#[derive(Debug, Default)]
struct LogCursor {
    /// The entries of the last answer: how often each occurred.
    shown: BTreeMap<EntryKey, usize>,
    /// The faults of each version in the last answer; `None` before the first one.
    faults: Option<BTreeMap<(String, String), u64>>,
}

impl LogCursor {
    /// The entries that the last answer did not have, oldest first.
    fn new_entries(&mut self, state: &HookStateView) -> Vec<LogEntry> {
        let events = state.events.iter().cloned().map(LogEntry::Event);
        let faults = state.faults.iter().flat_map(|version| {
            version.examples.iter().map(|example| {
                let (plugin, version) = (version.plugin.clone(), version.version.clone());
                LogEntry::Fault(FaultEntry { plugin, version, example: example.clone() })
            })
        });
        let mut all: Vec<LogEntry> = events.chain(faults).collect();
        all.sort_by_key(LogEntry::at);
        let mut known = BTreeMap::new();
        let mut entries = Vec::new();
        for entry in all {
            let key = entry.key();
            let count = known.entry(key.clone()).or_insert(0);
            *count += 1;
            if *count > self.shown.get(&key).copied().unwrap_or(0) {
                entries.push(entry);
            }
        }
        self.shown = known;
        entries.extend(self.more_faults(state, &entries));
        entries
    }

    /// The faults since the last answer that are not among the new entries.
    fn more_faults(&mut self, state: &HookStateView, entries: &[LogEntry]) -> Vec<LogEntry> {
        let counted = state.faults.iter().map(|one| ((one.plugin.clone(), one.version.clone()), one.faults));
        let counted: BTreeMap<(String, String), u64> = counted.collect();
        let more = self.faults.as_ref().map(|before| {
            let of_version = |((plugin, version), total): (&(String, String), &u64)| {
                let is_own = |entry: &&LogEntry| {
                    matches!(entry, LogEntry::Fault(fault) if fault.plugin == *plugin && fault.version == *version)
                };
                let shown = entries.iter().filter(is_own).count() as u64;
                // After a restart of the appliance, the count starts at 0 again.
                let earlier = before.get(&(plugin.clone(), version.clone())).filter(|before| *before <= total);
                let count = total - earlier.copied().unwrap_or(0);
                let count = count.saturating_sub(shown);
                (count > 0).then(|| {
                    let (plugin, version) = (plugin.clone(), version.clone());
                    LogEntry::MoreFaults(FaultCount { plugin, version, count })
                })
            };
            counted.iter().filter_map(of_version).collect()
        });
        self.faults = Some(counted);
        more.unwrap_or_default()
    }
}

/// Prints the log of a hook, and then new entries as they occur. Ends with an error, or when the output is closed.
pub(crate) fn follow(hooks: &HooksApi, hook: Hook, json: bool) -> Result<String, WorkbenchError> {
    let mut cursor = LogCursor::default();
    let mut is_reachable = true;
    loop {
        match hooks.hook(hook) {
            Ok(state) => {
                is_reachable = true;
                for entry in cursor.new_entries(&state) {
                    let line = if json { terminal::json(&entry) } else { entry.describe() };
                    crate::print_result(&line);
                }
            }
            // The appliance may be restarting.
            Err(error @ WorkbenchError::Appliance(ClientError::Unreachable { .. }))
                if cursor.faults.is_some() =>
            {
                if is_reachable {
                    crate::print_status(&format!("switchyard: {error}\nTrying again each second."));
                }
                is_reachable = false;
            }
            Err(error) => return Err(error),
        }
        std::thread::park_timeout(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{BindingChange, BindingRecord, FaultyVersion};

    fn event(at: u64, kind: &str) -> HookEvent {
        HookEvent { at: Timestamp(at), kind: kind.to_owned(), what: "first".to_owned() }
    }

    fn example(at: u64, message: Option<&str>) -> FaultExample {
        FaultExample {
            id: at,
            at: Timestamp(at),
            kind: "trap".to_owned(),
            what: "unreachable".to_owned(),
            report: None,
            stack: Vec::new(),
            question: "to 8613*".to_owned(),
            message: message.map(str::to_owned),
        }
    }

    fn state(events: Vec<HookEvent>, faults: u64, examples: Vec<FaultExample>) -> HookStateView {
        let version = "96fced7a19c6".to_owned();
        HookStateView {
            hook: Hook::Router,
            live: BindingRecord {
                serial: 1,
                since: Timestamp(0),
                chain: Vec::new(),
                change: BindingChange::Activated,
                rollback_reason: None,
            },
            candidate: None,
            counts: Vec::new(),
            events,
            faults: vec![FaultyVersion { plugin: "first".to_owned(), version, faults, examples }],
            unknown: Vec::new(),
            history: None,
        }
    }

    fn lines(cursor: &mut LogCursor, state: &HookStateView) -> Vec<String> {
        cursor.new_entries(state).iter().map(LogEntry::describe).collect()
    }

    #[test]
    fn only_new_entries_are_shown_oldest_first() {
        let mut cursor = LogCursor::default();
        let first =
            state(vec![event(3_000, "candidate"), event(1_000, "activated")], 1, vec![example(2_000, None)]);
        assert_eq!(
            lines(&mut cursor, &first),
            [
                "1970-01-01 00:00:01Z  activated              first",
                "1970-01-01 00:00:02Z  fault trap             first 96fced7a19c6: unreachable; asked: to 8613*; fault 2000",
                "1970-01-01 00:00:03Z  candidate              first",
            ]
        );
        assert!(lines(&mut cursor, &first).is_empty());
        // The message of the fault is accepted; another message fails in the same millisecond.
        let another = FaultExample { id: 2_001, ..example(2_000, None) };
        let next = state(first.events.clone(), 2, vec![another, example(2_000, Some("7"))]);
        assert_eq!(lines(&mut cursor, &next).len(), 1);
    }

    #[test]
    fn faults_without_an_example_are_counted() {
        let mut cursor = LogCursor::default();
        assert_eq!(lines(&mut cursor, &state(Vec::new(), 50, vec![example(1_000, None)])).len(), 1);
        let next =
            lines(&mut cursor, &state(Vec::new(), 1_060, vec![example(2_000, None), example(1_000, None)]));
        assert_eq!(next.last().map(String::as_str), Some("(and 1,009 more faults of first 96fced7a19c6)"));
        // The appliance was restarted.
        let next = lines(&mut cursor, &state(Vec::new(), 1, vec![example(9_000, None)]));
        assert_eq!(next.len(), 1, "{next:?}");
    }

    #[test]
    fn an_entry_in_json_names_its_kind() {
        let mut cursor = LogCursor::default();
        let entries = cursor.new_entries(&state(vec![event(1, "activated")], 1, vec![example(2, Some("7"))]));
        let lines: Vec<String> = entries.iter().map(terminal::json).collect();
        assert_eq!(lines[0], r#"{"event":{"at":1,"kind":"activated","what":"first"}}"#);
        assert!(
            lines[1].starts_with(r#"{"fault":{"plugin":"first","version":"96fced7a19c6","id":2,"at":2,"#),
            "{lines:?}"
        );
    }
}

//! Formats the appliance's answers about plugins for people.

use crate::plugin_sources::{artifact_text, origin_text};
use api::{
    Binding, BindingRecord, CandidateRecordView, CounterGrant, FaultExample, Grants, HookStateView,
    PluginCountsView, PluginVersionView, QualityGrant, ReplayReport,
};
use cli::format::{list, number, octets, table, timestamp, value_text};
use client::terminal;
use model::Timestamp;
use serde::Serialize;

/// A result as JSON, for programs, or as a description.
pub(crate) fn result<T: Serialize>(json: bool, result: &T, describe: impl FnOnce(&T) -> String) -> String {
    if json {
        // The fields of a `Value` are sorted, those of a type are not.
        return terminal::json(&serde_json::to_value(result).unwrap_or_default());
    }
    describe(result)
}

fn plugin_label(plugin: &str, version: &str) -> String {
    format!("{} {}", value_text(plugin), value_text(version))
}

fn chain_label(chain: &[Binding]) -> String {
    let operators = chain.iter().filter(|binding| binding.tenant.is_none());
    let mut labels: Vec<_> =
        operators.map(|binding| plugin_label(&binding.plugin, &binding.version)).collect();
    // There may be a thousand.
    match chain.len() - labels.len() {
        0 => {}
        1 => labels.push("1 binding of a tenant".to_owned()),
        count => labels.push(format!("{count} bindings of tenants")),
    }
    if labels.is_empty() { "-".to_owned() } else { labels.join(", ") }
}

/// A stored version.
pub(crate) fn version(version: &PluginVersionView) -> String {
    list(&[
        ("plugin", value_text(&version.plugin)),
        ("version", value_text(&version.version)),
        ("sha-256", value_text(&version.sha256)),
        ("size", octets(version.size)),
        ("hook", version.hook.name().to_owned()),
        ("contract", value_text(&version.wit)),
        ("signed by", value_text(&version.signed_by)),
        ("schema", (if version.policy_schema { "of its policy document" } else { "none" }).to_owned()),
        ("debug info", (if version.debug_info { "stored" } else { "none" }).to_owned()),
        ("sbom", (if version.sbom { "stored" } else { "none" }).to_owned()),
        ("pulled from", version.origin.as_ref().map_or_else(|| "-".to_owned(), origin_text)),
        ("artifact", version.origin.as_ref().map_or_else(|| "-".to_owned(), artifact_text)),
    ])
}

/// All stored versions.
pub(crate) fn versions(versions: &[PluginVersionView]) -> String {
    let row = |version: &PluginVersionView| {
        vec![
            value_text(&version.plugin),
            value_text(&version.version),
            version.hook.name().to_owned(),
            octets(version.size),
            value_text(&version.wit),
            value_text(&version.signed_by),
        ]
    };
    let rows: Vec<_> = versions.iter().map(row).collect();
    table(&["PLUGIN", "VERSION", "HOOK", "SIZE", "CONTRACT", "SIGNED BY"], &rows)
}

/// The live chain.
pub(crate) fn live(record: &BindingRecord) -> String {
    list(&[
        ("live", chain_label(&record.chain)),
        ("how", record.change.name().to_owned()),
        ("serial", record.serial.to_string()),
        ("since", timestamp(&record.since)),
    ])
}

/// The candidate on trial.
pub(crate) fn candidate(record: &CandidateRecordView) -> String {
    let mut rows = vec![("candidate", chain_label(&record.chain)), ("mode", record.mode.name().to_owned())];
    rows.extend(record.share.map(|share| ("share", percent(share))));
    rows.push(("since", timestamp(&record.since)));
    list(&rows)
}

/// A share in hundredths of a percent.
fn percent(share: u16) -> String {
    format!("{} %", f64::from(share) / 100.0)
}

/// The status of all hooks: live plugins, candidates and counts.
pub(crate) fn hooks(hooks: &[HookStateView]) -> String {
    let mut rows = Vec::new();
    let mut remarks = String::new();
    for hook in hooks {
        let title = hook.hook.name();
        if hook.live.chain.is_empty() {
            rows.push(vec![title.to_owned(), "live".to_owned(), "-".to_owned()]);
        }
        rows.extend(plugins(title, "live", hook.live.since, &hook.live.chain, &hook.counts));
        if let Some(candidate) = &hook.candidate {
            let record = &candidate.record;
            let share = record.share.map(|share| format!(" {}", percent(share)));
            let mode = format!("{}{}", record.mode.name(), share.unwrap_or_default());
            let since = Timestamp(record.since);
            rows.extend(plugins(title, &mode, since, &record.chain, &candidate.counts));
            if let Some(comparison) = &candidate.comparison {
                remarks.push_str(&format!(
                    "{title}: {} questions compared, {} with another answer, {} skipped\n",
                    number(comparison.compared),
                    number(comparison.different),
                    number(comparison.skipped),
                ));
            }
        }
        for unknown in &hook.unknown {
            remarks.push_str(&format!(
                "{title}: the policy of {} names {} {:?}, unknown to the appliance\n",
                value_text(&unknown.plugin),
                unknown.kind.name(),
                value_text(&unknown.name),
            ));
        }
    }
    let head = ["HOOK", "ROLE", "PLUGIN", "VERSION", "TENANT", "SINCE", "CALLS", "FAULTS", "MEAN"];
    let format = table(&head, &rows);
    if remarks.is_empty() { format } else { format!("{format}\n{remarks}") }
}

fn plugins(
    hook: &str,
    role: &str,
    since: Timestamp,
    chain: &[Binding],
    counts: &[PluginCountsView],
) -> Vec<Vec<String>> {
    let row = |binding: &Binding| {
        let is_of = |counts: &&PluginCountsView| {
            (&counts.plugin, &counts.version, &counts.tenant)
                == (&binding.plugin, &binding.version, &binding.tenant)
        };
        let counts = counts.iter().find(is_of);
        let mean = counts.and_then(|counts| counts.nanoseconds.checked_div(counts.calls));
        vec![
            hook.to_owned(),
            role.to_owned(),
            value_text(&binding.plugin),
            value_text(&binding.version),
            value_text(&binding.tenant),
            timestamp(&since),
            number(counts.map_or(0, |counts| counts.calls)),
            number(counts.map_or(0, |counts| counts.faults.total())),
            mean.map_or_else(|| "-".to_owned(), |mean| format!("{} us", mean.div_ceil(1_000))),
        ]
    };
    chain.iter().map(row).collect()
}

/// A durable counter.
fn counter(grant: &CounterGrant) -> String {
    format!("counter {} by {} in {}", value_text(&grant.name), grant.window.name(), value_text(&grant.zone))
}

fn quality_grant(grant: &QualityGrant) -> String {
    let window = format!("over {} ms", grant.window_ms);
    let digits = grant.digits.iter().map(|digits| format!("by {digits} digits"));
    let attributes = grant.attributes.iter().map(|name| format!("by {}", value_text(name)));
    std::iter::once(window).chain(digits).chain(attributes).collect::<Vec<_>>().join(" ")
}

fn grants(grants: &Grants) -> String {
    let mut all: Vec<String> = grants.counters.iter().map(counter).collect();
    let mut add = |is_granted: bool, name: &str, value: String| {
        if is_granted {
            all.push(format!("{name} {value}"));
        }
    };
    add(grants.hlr, "hlr", grants.hlr.to_string());
    add(!grants.http.is_empty(), "http", value_text(&grants.http));
    add(grants.http_answer > 0, "http-answer", grants.http_answer.to_string());
    add(grants.http_timeout_ms > 0, "http-timeout-ms", grants.http_timeout_ms.to_string());
    add(grants.kv > 0, "kv", grants.kv.to_string());
    if let Some(quality) = &grants.quality {
        add(true, "quality", quality_grant(quality));
    }
    if let Some(dns) = &grants.dns {
        let (servers, zones) = (value_text(&dns.servers), value_text(&dns.zones));
        add(true, "dns", format!("{zones} at {servers}, {} ms each", dns.timeout_ms));
    }
    add(grants.random, "random", grants.random.to_string());
    add(!grants.tables.is_empty(), "tables", value_text(&grants.tables));
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// One hook: the live chain with its settings, and the history.
pub(crate) fn hook(hook: &HookStateView) -> String {
    let mut format = String::new();
    for binding in &hook.live.chain {
        let mut settings = vec![("plugin", plugin_label(&binding.plugin, &binding.version))];
        if let Some(tenant) = &binding.tenant {
            settings.push(("tenant", value_text(tenant)));
            settings.push(("peers", value_text(&binding.peers)));
        }
        settings.extend([
            ("on fault", value_text(&binding.on_fault)),
            ("memory", octets(binding.memory as u64)),
            ("deadline", format!("{} ms", binding.deadline.as_millis())),
            ("instance", value_text(&binding.instance)),
            ("granted", grants(&binding.grants)),
            ("policy", octets(binding.policy.len() as u64)),
        ]);
        format.push_str(&list(&settings));
        format.push('\n');
    }
    format.push_str(&hooks(std::slice::from_ref(hook)));
    let row = |record: &BindingRecord| {
        vec![
            record.serial.to_string(),
            timestamp(&record.since),
            record.change.name().to_owned(),
            chain_label(&record.chain),
            value_text(&record.rollback_reason),
        ]
    };
    let rows: Vec<_> = hook.history.iter().flatten().map(row).collect();
    if !rows.is_empty() {
        format.push('\n');
        format.push_str(&table(&["SERIAL", "SINCE", "HOW", "WAS LIVE", "ROLLBACK REASON"], &rows));
    }
    format
}

/// The fault in one line: the plugin's report, otherwise the host's description, and the innermost known source line.
pub(crate) fn fault(fault: &FaultExample) -> String {
    let reported = fault.report.as_deref().map(|report| {
        let mut lines = report.lines().map(str::trim).filter(|line| !line.is_empty());
        match (lines.next(), lines.next()) {
            // A panic of Rust has its message after its source line.
            (Some(first), Some(second)) if first.ends_with(':') => format!("{first} {second}"),
            (first, _) => first.unwrap_or_default().to_owned(),
        }
    });
    let what = value_text(&reported.unwrap_or_else(|| fault.what.clone()));
    match fault.stack.iter().find_map(|frame| Some((&frame.function, frame.source.as_ref()?))) {
        Some((function, source)) => format!("{what}, in {} at {}", value_text(function), value_text(source)),
        None => what,
    }
}

/// The events of a hook, and the questions on which plugins failed; newest first.
pub(crate) fn log(hook: &HookStateView) -> String {
    let mut rows: Vec<(Timestamp, String, String)> = hook
        .events
        .iter()
        .map(|event| (event.at, value_text(&event.kind), value_text(&event.what)))
        .collect();
    for version in &hook.faults {
        let by = plugin_label(&version.plugin, &version.version);
        rows.extend(version.examples.iter().map(|fault| {
            let (what, question) = (self::fault(fault), value_text(&fault.question));
            let kind = format!("fault {}", value_text(&fault.kind));
            (fault.at, kind, format!("{by}: {what}; asked: {question}; fault {}", fault.id))
        }));
    }
    if rows.is_empty() {
        return "no events since the start".to_owned();
    }
    rows.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    let rows: Vec<_> =
        rows.into_iter().map(|(at, what, detail)| vec![timestamp(&at), what, detail]).collect();
    table(&["AT", "WHAT", "DETAIL"], &rows)
}

/// The report of a replay.
pub(crate) fn report(report: &ReplayReport) -> String {
    let mut rows = vec![
        ("messages", number(report.messages)),
        ("the same", number(report.same)),
        ("different", number(report.different)),
        ("new rejects", number(report.new_rejects)),
        ("new faults", number(report.new_faults)),
        ("not decided", number(report.unrouted + report.damaged)),
        ("ended", report.ended.name().to_owned()),
    ];
    if let Some(price) = &report.price {
        rows.push(("dearer", number(price.dearer)));
        rows.push(("cheaper", number(price.cheaper)));
        rows.push(("new refusals of a price", number(price.new_refusals)));
    }
    let mut format = list(&rows);
    let rows: Vec<_> = report
        .groups
        .iter()
        .map(|group| {
            let examples: Vec<_> =
                group.examples.iter().take(3).map(|example| example.id.to_string()).collect();
            vec![value_text(&group.from), value_text(&group.to), number(group.count), examples.join(", ")]
        })
        .collect();
    if !rows.is_empty() {
        format.push('\n');
        format.push_str(&table(&["WAS", "WOULD BE", "MESSAGES", "SUCH AS"], &rows));
    }
    // One example of each group is enough to see what is different.
    let examples = report.groups.iter().filter_map(|group| group.examples.first());
    let rows: Vec<_> = examples
        .flat_map(|example| {
            let shown = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), value_text);
            example.request.iter().map(move |one| {
                vec![example.id.to_string(), one.part.clone(), shown(&one.live), shown(&one.candidate)]
            })
        })
        .collect();
    if !rows.is_empty() {
        format.push('\n');
        format.push_str(&table(&["MESSAGE", "PART OF THE REQUEST", "LIVE", "CANDIDATE"], &rows));
    }
    if !report.inexact.is_empty() {
        let rows: Vec<_> =
            report.inexact.iter().map(|one| vec![value_text(&one.because), number(one.count)]).collect();
        format.push('\n');
        format.push_str(&table(&["NOT EXACT BECAUSE OF", "NUMBER"], &rows));
    }
    format
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{
        BindingChange, CandidateStateView, CounterWindow, DifferenceExample, DifferenceGroup, FaultyVersion,
        HookEvent, PluginFaultCounts, PolicyReferenceKind, RemainingGroups, ReplayOutcome, StackFrame,
        Throughput, TrialModeView, UnknownReference,
    };
    use model::{Hook, MessageId};
    use std::time::Duration;

    const AT: Timestamp = Timestamp(1_795_276_982_000);

    fn state() -> HookStateView {
        let grants = Grants {
            http_timeout_ms: 0,
            http_answer: 0,
            kv: 4_096,
            counters: vec![CounterGrant {
                name: "daily".to_owned(),
                window: CounterWindow::Day,
                zone: "Europe/Berlin".to_owned(),
            }],
            quality: Some(QualityGrant {
                window_ms: 60_000,
                digits: vec![5],
                attributes: vec!["campaign".to_owned()],
            }),
            ..Grants::default()
        };
        let first = Binding {
            memory: 1 << 20,
            deadline: Duration::from_millis(50),
            grants,
            ..Binding::new("first", "96fced7a19c6", "abc")
        };
        let example = FaultExample {
            id: 3,
            at: Timestamp(AT.0 + 1_000),
            kind: "trap".to_owned(),
            what: "unreachable".to_owned(),
            report: Some("panicked at src/lib.rs:7:1:\nno rule".to_owned()),
            stack: vec![StackFrame {
                function: "first::choose".to_owned(),
                source: Some("src/lib.rs:7".to_owned()),
            }],
            question: "to 8613*".to_owned(),
            message: None,
        };
        HookStateView {
            counts: vec![PluginCountsView {
                plugin: "first".to_owned(),
                version: "96fced7a19c6".to_owned(),
                tenant: None,
                live: true,
                calls: 1_200,
                faults: PluginFaultCounts { trap: 2, memory: 1, ..PluginFaultCounts::default() },
                nanoseconds: 12_000_000,
                memory: 1_376_256,
                host_calls: [("tables".to_owned(), 1_200)].into(),
                log_lines_left_out: 0,
            }],
            candidate: Some(CandidateStateView {
                record: CandidateRecordView {
                    since: AT.0,
                    mode: TrialModeView::Canary,
                    share: Some(250),
                    chain: vec![Binding::new("second", "58cd962459f1", "")],
                },
                counts: Vec::new(),
                asked: 0,
                failed: 0,
                bypassed: 0,
                comparison: None,
            }),
            events: vec![HookEvent { at: AT, kind: "activated".to_owned(), what: "first".to_owned() }],
            faults: vec![FaultyVersion {
                plugin: "first".to_owned(),
                version: "96fced7a19c6".to_owned(),
                faults: 3,
                examples: vec![example],
            }],
            unknown: vec![UnknownReference {
                plugin: "first".to_owned(),
                kind: PolicyReferenceKind::Peer,
                name: "west".to_owned(),
            }],
            history: Some(vec![record(3, Vec::new())]),
            ..unused(Hook::Router, record(4, vec![first]))
        }
    }

    fn record(serial: u64, chain: Vec<Binding>) -> BindingRecord {
        BindingRecord { serial, since: AT, chain, change: BindingChange::Activated, rollback_reason: None }
    }

    /// A hook without calls and events.
    fn unused(hook: Hook, live: BindingRecord) -> HookStateView {
        HookStateView {
            hook,
            live,
            counts: Vec::new(),
            candidate: None,
            events: Vec::new(),
            faults: Vec::new(),
            unknown: Vec::new(),
            history: None,
        }
    }

    #[test]
    fn hooks_are_shown_with_counts_candidates_and_unknown_names() {
        assert_eq!(
            hooks(&[state(), unused(Hook::Biller, record(0, Vec::new()))]),
            "HOOK    ROLE          PLUGIN  VERSION       TENANT  SINCE                 CALLS  FAULTS  MEAN\n\
             router  live          first   96fced7a19c6  -       2026-11-21 16:03:02Z  1,200  3       10 us\n\
             router  canary 2.5 %  second  58cd962459f1  -       2026-11-21 16:03:02Z  0      0       -\n\
             biller  live          -\n\
             \nrouter: the policy of first names peer \"west\", unknown to the appliance\n"
        );
    }

    #[test]
    fn one_hook_is_shown_with_its_settings_and_its_history() {
        let format = hook(&state());
        for line in [
            "granted   counter daily by day in Europe/Berlin, kv 4096, quality over 60000 ms by 5 digits by campaign\n",
            "deadline  50 ms\n",
            "3       2026-11-21 16:03:02Z  activated  -",
        ] {
            assert!(format.contains(line), "{line}: {format}");
        }
    }

    #[test]
    fn the_log_has_events_and_faults_newest_first() {
        let format = log(&state());
        let lines: Vec<&str> = format.lines().collect();
        assert!(
            lines[1].contains(
                "fault trap  first 96fced7a19c6: panicked at src/lib.rs:7:1: no rule, in first::choose at src/lib.rs:7; \
                 asked: to 8613*; fault 3"
            ),
            "{format}"
        );
        assert!(lines[2].ends_with("activated   first"), "{format}");
        assert_eq!(log(&unused(Hook::Router, record(0, Vec::new()))), "no events since the start");
    }

    #[test]
    fn a_report_is_shown_with_its_differences() {
        let example = DifferenceExample {
            id: MessageId(7),
            accepted_at: AT,
            origin: String::new(),
            source: String::new(),
            destination: String::new(),
            note: None,
            exact: true,
            request: Vec::new(),
        };
        let format = report(&ReplayReport {
            ended: ReplayOutcome::Complete,
            messages: 1_000,
            exact: 1_000,
            inexact: Vec::new(),
            same: 990,
            different: 10,
            new_rejects: 3,
            new_faults: 0,
            unrouted: 1,
            damaged: 1,
            groups: vec![DifferenceGroup {
                from: "forward north".to_owned(),
                to: "reject prohibited".to_owned(),
                count: 3,
                exact: 3,
                examples: vec![example],
            }],
            other: RemainingGroups::default(),
            price: None,
            pace: Throughput::default(),
        });
        assert!(format.starts_with("messages     1,000\nthe same     990\ndifferent    10\n"), "{format}");
        assert!(format.ends_with("forward north  reject prohibited  3         0000000007\n"), "{format}");
        assert!(format.contains("not decided  2\n"), "{format}");
    }
}

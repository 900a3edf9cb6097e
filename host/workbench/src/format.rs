//! Formats the appliance's answers about plugins for people.

use cli::format::{count, list, number, octets, table, timestamp, value_text};
use client::terminal;
use serde_json::Value;

/// Formats an answer as JSON for programs, or with `describe` for people.
pub(crate) fn output(value: &Value, json: bool, describe: impl FnOnce(&Value) -> String) -> String {
    if json { terminal::json(value) } else { describe(value) }
}

fn plugin_label(plugin: &Value) -> String {
    format!("{} {}", value_text(&plugin["plugin"]), value_text(&plugin["version"]))
}

fn chain_label(chain: &Value) -> String {
    let labels: Vec<String> = chain.as_array().into_iter().flatten().map(plugin_label).collect();
    if labels.is_empty() { "-".to_owned() } else { labels.join(", ") }
}

fn size(value: &Value) -> String {
    value.as_u64().map_or_else(|| value_text(value), octets)
}

/// A stored version.
pub(crate) fn version(version: &Value) -> String {
    list(&[
        ("plugin", value_text(&version["plugin"])),
        ("version", value_text(&version["version"])),
        ("sha-256", value_text(&version["sha256"])),
        ("size", size(&version["size"])),
        ("hook", value_text(&version["hook"])),
        ("contract", value_text(&version["wit"])),
        ("signed by", value_text(&version["signed_by"])),
    ])
}

/// All stored versions.
pub(crate) fn versions(versions: &Value) -> String {
    let row = |version: &Value| {
        vec![
            value_text(&version["plugin"]),
            value_text(&version["version"]),
            value_text(&version["hook"]),
            size(&version["size"]),
            value_text(&version["wit"]),
            value_text(&version["signed_by"]),
        ]
    };
    let rows: Vec<_> = versions.as_array().into_iter().flatten().map(row).collect();
    table(&["PLUGIN", "VERSION", "HOOK", "SIZE", "CONTRACT", "SIGNED BY"], &rows)
}

/// The live chain, or the candidate on trial.
pub(crate) fn record(record: &Value) -> String {
    let mut rows = Vec::new();
    match record["mode"].as_str() {
        Some(mode) => {
            rows.push(("candidate", chain_label(&record["chain"])));
            rows.push(("mode", mode.to_owned()));
            rows.extend(record["share"].as_f64().map(|share| ("share", percent(share))));
        }
        None => {
            rows.push(("live", chain_label(&record["chain"])));
            rows.push(("how", value_text(&record["how"])));
            rows.push(("serial", value_text(&record["serial"])));
        }
    }
    rows.push(("since", timestamp(&record["since"])));
    list(&rows)
}

/// A share in hundredths of a percent.
fn percent(share: f64) -> String {
    format!("{} %", share / 100.0)
}

/// The status of all hooks: live plugins, candidates and counts.
pub(crate) fn hooks(hooks: &Value) -> String {
    let mut rows = Vec::new();
    let mut remarks = String::new();
    for hook in hooks.as_array().into_iter().flatten() {
        let title = value_text(&hook["hook"]);
        let live = &hook["live"];
        if live["chain"].as_array().is_none_or(Vec::is_empty) {
            rows.push(vec![title.clone(), "live".to_owned(), "-".to_owned()]);
        }
        rows.extend(plugins(&title, "live", live, &hook["counts"]));
        let candidate = &hook["candidate"];
        if candidate.is_object() {
            let share = candidate["share"].as_f64().map(|share| format!(" {}", percent(share)));
            let mode = format!("{}{}", value_text(&candidate["mode"]), share.unwrap_or_default());
            rows.extend(plugins(&title, &mode, candidate, &candidate["counts"]));
            let comparison = &candidate["comparison"];
            if comparison.is_object() {
                remarks.push_str(&format!(
                    "{title}: {} questions compared, {} with another answer, {} skipped\n",
                    count(&comparison["compared"]),
                    count(&comparison["different"]),
                    count(&comparison["skipped"]),
                ));
            }
        }
        for unknown in hook["unknown"].as_array().into_iter().flatten() {
            remarks.push_str(&format!(
                "{title}: the policy of {} names {} {:?}, unknown to the appliance\n",
                value_text(&unknown["plugin"]),
                value_text(&unknown["kind"]),
                value_text(&unknown["name"]),
            ));
        }
    }
    let head = ["HOOK", "ROLE", "PLUGIN", "VERSION", "SINCE", "CALLS", "FAULTS", "MEAN"];
    let format = table(&head, &rows);
    if remarks.is_empty() { format } else { format!("{format}\n{remarks}") }
}

fn plugins(hook: &str, role: &str, record: &Value, counts: &Value) -> Vec<Vec<String>> {
    let row = |plugin: &Value| {
        let counts_entry = counts.as_array().into_iter().flatten().find(|counts_entry| {
            counts_entry["plugin"] == plugin["plugin"] && counts_entry["version"] == plugin["version"]
        });
        let calls = counts_entry.and_then(|counts_entry| counts_entry["calls"].as_u64());
        let nanoseconds = counts_entry.and_then(|counts_entry| counts_entry["nanoseconds"].as_u64());
        let mean = calls.zip(nanoseconds).and_then(|(calls, all)| all.checked_div(calls));
        let faults = counts_entry.and_then(|counts_entry| counts_entry["faults"].as_object());
        let faults: u64 = faults.into_iter().flatten().filter_map(|(_, faults)| faults.as_u64()).sum();
        vec![
            hook.to_owned(),
            role.to_owned(),
            value_text(&plugin["plugin"]),
            value_text(&plugin["version"]),
            timestamp(&record["since"]),
            number(calls.unwrap_or(0)),
            number(faults),
            mean.map_or_else(|| "-".to_owned(), |mean| format!("{} us", mean.div_ceil(1_000))),
        ]
    };
    record["chain"].as_array().into_iter().flatten().map(row).collect()
}

/// A durable counter.
fn counter(grant: &Value) -> String {
    format!(
        "counter {} by {} in {}",
        value_text(&grant["name"]),
        value_text(&grant["window"]),
        value_text(&grant["zone"])
    )
}

/// One hook: the live chain with its settings, and the history.
pub(crate) fn hook(hook: &Value) -> String {
    let mut format = String::new();
    for binding in hook["live"]["chain"].as_array().into_iter().flatten() {
        let grants = binding["grants"].as_object().into_iter().flatten();
        let grants: Vec<String> = grants
            .filter(|(_, value)| !matches!(value, Value::Null | Value::Bool(false)) && **value != 0)
            .filter(|(_, value)| value.as_array().is_none_or(|items| !items.is_empty()))
            .map(|(name, value)| match value.as_array() {
                Some(counters) if name == "counters" => counters.iter().map(counter).collect(),
                _ => vec![format!("{name} {}", value_text(value))],
            })
            .collect::<Vec<Vec<_>>>()
            .concat();
        format.push_str(&list(&[
            ("plugin", plugin_label(binding)),
            ("on fault", value_text(&binding["on-fault"])),
            ("memory", size(&binding["memory"])),
            ("deadline", format!("{} ms", value_text(&binding["deadline-ms"]))),
            ("instance", value_text(&binding["instance"])),
            ("granted", if grants.is_empty() { "-".to_owned() } else { grants.join(", ") }),
            ("policy", size(&binding["policy"].as_str().map_or(0, str::len).into())),
        ]));
        format.push('\n');
    }
    format.push_str(&hooks(&Value::Array(vec![hook.clone()])));
    let row = |record: &Value| {
        vec![
            value_text(&record["serial"]),
            timestamp(&record["since"]),
            value_text(&record["how"]),
            chain_label(&record["chain"]),
            value_text(&record["condemned"]),
        ]
    };
    let rows: Vec<_> = hook["history"].as_array().into_iter().flatten().map(row).collect();
    if !rows.is_empty() {
        format.push('\n');
        format.push_str(&table(&["SERIAL", "SINCE", "HOW", "WAS LIVE", "ROLLBACK REASON"], &rows));
    }
    format
}

/// The events of a hook, and the questions at which plugins failed; newest first.
pub(crate) fn log(hook: &Value) -> String {
    let event = |event: &Value| {
        (
            event["at"].as_u64(),
            vec![timestamp(&event["at"]), value_text(&event["kind"]), value_text(&event["what"])],
        )
    };
    let fault = |by: String, fault: &Value| {
        let text = format!("{by}: {}; asked: {}", value_text(&fault["what"]), value_text(&fault["question"]));
        (
            fault["at"].as_u64(),
            vec![timestamp(&fault["at"]), format!("fault {}", value_text(&fault["kind"])), text],
        )
    };
    let mut rows: Vec<_> = hook["events"].as_array().into_iter().flatten().map(event).collect();
    for version in hook["faults"].as_array().into_iter().flatten() {
        let examples = version["examples"].as_array().into_iter().flatten();
        rows.extend(examples.map(|example| fault(plugin_label(version), example)));
    }
    if rows.is_empty() {
        return "no events since the start".to_owned();
    }
    rows.sort_by(|(one, _), (other, _)| other.cmp(one));
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    table(&["AT", "WHAT", "DETAIL"], &rows)
}

/// The report of a replay.
pub(crate) fn report(report: &Value) -> String {
    let mut rows = vec![
        ("messages", count(&report["messages"])),
        ("the same", count(&report["same"])),
        ("different", count(&report["different"])),
        ("new rejects", count(&report["new_rejects"])),
        ("new faults", count(&report["new_faults"])),
        (
            "not decided",
            number(["unrouted", "damaged"].iter().filter_map(|name| report[name].as_u64()).sum()),
        ),
        ("ended", value_text(&report["ended"]["how"])),
    ];
    let price = &report["price"];
    if price.is_object() {
        let counts =
            [("dearer", "dearer"), ("cheaper", "cheaper"), ("new refusals of a price", "new_refusals")];
        rows.extend(counts.map(|(title, name)| (title, count(&price[name]))));
    }
    let mut format = list(&rows);
    let row = |group: &Value| {
        let examples = group["examples"].as_array().into_iter().flatten();
        let examples: Vec<String> = examples.take(3).map(|example| value_text(&example["id"])).collect();
        vec![
            value_text(&group["from"]),
            value_text(&group["to"]),
            count(&group["count"]),
            examples.join(", "),
        ]
    };
    let rows: Vec<_> = report["groups"].as_array().into_iter().flatten().map(row).collect();
    if !rows.is_empty() {
        format.push('\n');
        format.push_str(&table(&["WAS", "WOULD BE", "MESSAGES", "SUCH AS"], &rows));
    }
    format
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const AT: u64 = 1_795_276_982_000;

    fn state() -> Value {
        json!({
            "hook": "router",
            "live": { "serial": 4, "since": AT, "how": "activated", "chain": [
                { "plugin": "first", "version": "96fced7a19c6", "policy": "abc", "on-fault": "hold", "memory": 1 << 20,
                  "deadline-ms": 50, "instance": "warm", "grants": { "kv": 4096, "tables": [], "hlr": false,
                  "counters": [{ "name": "daily", "window": "day", "zone": "Europe/Berlin" }] } },
            ] },
            "counts": [{ "plugin": "first", "version": "96fced7a19c6", "calls": 1_200, "faults": { "trap": 2, "memory": 1 },
                         "nanoseconds": 12_000_000 }],
            "candidate": { "since": AT, "mode": "canary", "share": 250, "counts": [],
                           "chain": [{ "plugin": "second", "version": "58cd962459f1" }] },
            "events": [{ "at": AT, "kind": "activated", "what": "first" }],
            "faults": [{ "plugin": "first", "version": "96fced7a19c6", "faults": 3, "examples": [
                { "at": AT + 1_000, "kind": "trap", "what": "unreachable", "question": "to 8613*", "message": null },
            ] }],
            "unknown": [{ "plugin": "first", "kind": "peer", "name": "west" }],
            "history": [{ "serial": 3, "since": AT, "how": "activated", "chain": [], "condemned": null }],
        })
    }

    #[test]
    fn hooks_are_shown_with_counts_candidates_and_unknown_names() {
        assert_eq!(
            hooks(&json!([state(), { "hook": "biller", "live": { "chain": [] }, "candidate": null }])),
            "HOOK    ROLE          PLUGIN  VERSION       SINCE                 CALLS  FAULTS  MEAN\n\
             router  live          first   96fced7a19c6  2026-11-21 16:03:02Z  1,200  3       10 us\n\
             router  canary 2.5 %  second  58cd962459f1  2026-11-21 16:03:02Z  0      0       -\n\
             biller  live          -\n\
             \nrouter: the policy of first names peer \"west\", unknown to the appliance\n"
        );
    }

    #[test]
    fn one_hook_is_shown_with_its_settings_and_its_history() {
        let format = hook(&state());
        for line in [
            "granted   counter daily by day in Europe/Berlin, kv 4096\n",
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
            lines[1].contains("fault trap  first 96fced7a19c6: unreachable; asked: to 8613*"),
            "{format}"
        );
        assert!(lines[2].ends_with("activated   first"), "{format}");
        assert_eq!(log(&json!({ "events": [], "faults": [] })), "no events since the start");
    }

    #[test]
    fn a_report_is_shown_with_its_differences() {
        let format = report(&json!({
            "messages": 1_000, "same": 990, "different": 10, "new_rejects": 3, "new_faults": 0, "unrouted": 1, "damaged": 1,
            "ended": { "how": "complete" }, "price": null,
            "groups": [{ "from": "forward north", "to": "reject prohibited", "count": 3, "examples": [{ "id": "7" }] }],
        }));
        assert!(format.starts_with("messages     1,000\nthe same     990\ndifferent    10\n"), "{format}");
        assert!(format.ends_with("forward north  reject prohibited  3         7\n"), "{format}");
        assert!(format.contains("not decided  2\n"), "{format}");
    }
}

//! What an appliance says of plugins, for people.

use cli::table::{count, list, moment, number, octets, table, word};
use client::terminal;
use serde_json::Value;

/// An answer for a program, or in these words for a person.
pub(crate) fn told(value: &Value, json: bool, words: impl FnOnce(&Value) -> String) -> String {
    if json { terminal::json(value) } else { words(value) }
}

fn name(plugin: &Value) -> String {
    format!("{} {}", word(&plugin["plugin"]), word(&plugin["version"]))
}

fn names(chain: &Value) -> String {
    let names: Vec<String> = chain.as_array().into_iter().flatten().map(name).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

fn size(value: &Value) -> String {
    value.as_u64().map_or_else(|| word(value), octets)
}

/// A version that is kept.
pub(crate) fn version(version: &Value) -> String {
    list(&[
        ("plugin", word(&version["plugin"])),
        ("version", word(&version["version"])),
        ("sha-256", word(&version["sha256"])),
        ("size", size(&version["size"])),
        ("hook", word(&version["hook"])),
        ("contract", word(&version["wit"])),
        ("signed by", word(&version["signed_by"])),
    ])
}

/// All versions that are kept.
pub(crate) fn versions(versions: &Value) -> String {
    let row = |version: &Value| {
        vec![
            word(&version["plugin"]),
            word(&version["version"]),
            word(&version["hook"]),
            size(&version["size"]),
            word(&version["wit"]),
            word(&version["signed_by"]),
        ]
    };
    let rows: Vec<_> = versions.as_array().into_iter().flatten().map(row).collect();
    table(&["PLUGIN", "VERSION", "HOOK", "SIZE", "CONTRACT", "SIGNED BY"], &rows)
}

/// What is live now, or on trial.
pub(crate) fn record(record: &Value) -> String {
    let mut rows = Vec::new();
    match record["mode"].as_str() {
        Some(mode) => {
            rows.push(("candidate", names(&record["chain"])));
            rows.push(("mode", mode.to_owned()));
            rows.extend(record["share"].as_f64().map(|share| ("share", percent(share))));
        }
        None => {
            rows.push(("live", names(&record["chain"])));
            rows.push(("how", word(&record["how"])));
            rows.push(("serial", word(&record["serial"])));
        }
    }
    rows.push(("since", moment(&record["since"])));
    list(&rows)
}

/// A share in hundredths of a percent.
fn percent(share: f64) -> String {
    format!("{} %", share / 100.0)
}

/// What serves every hook, what is on trial, and how they do.
pub(crate) fn hooks(hooks: &Value) -> String {
    let mut rows = Vec::new();
    let mut remarks = String::new();
    for hook in hooks.as_array().into_iter().flatten() {
        let title = word(&hook["hook"]);
        let live = &hook["live"];
        if live["chain"].as_array().is_none_or(Vec::is_empty) {
            rows.push(vec![title.clone(), "live".to_owned(), "-".to_owned()]);
        }
        rows.extend(plugins(&title, "live", live, &hook["counts"]));
        let candidate = &hook["candidate"];
        if candidate.is_object() {
            let share = candidate["share"].as_f64().map(|share| format!(" {}", percent(share)));
            let mode = format!("{}{}", word(&candidate["mode"]), share.unwrap_or_default());
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
                "{title}: the policy of {} names {} {:?}, which does not exist\n",
                word(&unknown["plugin"]),
                word(&unknown["kind"]),
                word(&unknown["name"]),
            ));
        }
    }
    let head = ["HOOK", "ROLE", "PLUGIN", "VERSION", "SINCE", "CALLS", "FAULTS", "MEAN"];
    let shown = table(&head, &rows);
    if remarks.is_empty() { shown } else { format!("{shown}\n{remarks}") }
}

fn plugins(hook: &str, role: &str, record: &Value, counts: &Value) -> Vec<Vec<String>> {
    let row = |plugin: &Value| {
        let counted =
            counts.as_array().into_iter().flatten().find(|counted| {
                counted["plugin"] == plugin["plugin"] && counted["version"] == plugin["version"]
            });
        let calls = counted.and_then(|counted| counted["calls"].as_u64());
        let nanoseconds = counted.and_then(|counted| counted["nanoseconds"].as_u64());
        let mean = calls.zip(nanoseconds).and_then(|(calls, all)| all.checked_div(calls));
        let faults = counted.and_then(|counted| counted["faults"].as_object());
        let faults: u64 = faults.into_iter().flatten().filter_map(|(_, faults)| faults.as_u64()).sum();
        vec![
            hook.to_owned(),
            role.to_owned(),
            word(&plugin["plugin"]),
            word(&plugin["version"]),
            moment(&record["since"]),
            number(calls.unwrap_or(0)),
            number(faults),
            mean.map_or_else(|| "-".to_owned(), |mean| format!("{} us", mean.div_ceil(1_000))),
        ]
    };
    record["chain"].as_array().into_iter().flatten().map(row).collect()
}

/// A durable counter.
fn counter(grant: &Value) -> String {
    format!("counter {} by {} in {}", word(&grant["name"]), word(&grant["window"]), word(&grant["zone"]))
}

/// One hook: what is live with which settings, and what was live before.
pub(crate) fn hook(hook: &Value) -> String {
    let mut shown = String::new();
    for binding in hook["live"]["chain"].as_array().into_iter().flatten() {
        let grants = binding["grants"].as_object().into_iter().flatten();
        let grants: Vec<String> = grants
            .filter(|(_, value)| !matches!(value, Value::Null | Value::Bool(false)) && **value != 0)
            .filter(|(_, value)| value.as_array().is_none_or(|names| !names.is_empty()))
            .map(|(name, value)| match value.as_array() {
                Some(counters) if name == "counters" => counters.iter().map(counter).collect(),
                _ => vec![format!("{name} {}", word(value))],
            })
            .collect::<Vec<Vec<_>>>()
            .concat();
        shown.push_str(&list(&[
            ("plugin", name(binding)),
            ("on fault", word(&binding["on-fault"])),
            ("memory", size(&binding["memory"])),
            ("deadline", format!("{} ms", word(&binding["deadline-ms"]))),
            ("instance", word(&binding["instance"])),
            ("granted", if grants.is_empty() { "-".to_owned() } else { grants.join(", ") }),
            ("policy", size(&binding["policy"].as_str().map_or(0, str::len).into())),
        ]));
        shown.push('\n');
    }
    shown.push_str(&hooks(&Value::Array(vec![hook.clone()])));
    let row = |record: &Value| {
        vec![
            word(&record["serial"]),
            moment(&record["since"]),
            word(&record["how"]),
            names(&record["chain"]),
            word(&record["condemned"]),
        ]
    };
    let rows: Vec<_> = hook["history"].as_array().into_iter().flatten().map(row).collect();
    if !rows.is_empty() {
        shown.push('\n');
        shown.push_str(&table(&["SERIAL", "SINCE", "HOW", "WAS LIVE", "TAKEN BACK BECAUSE"], &rows));
    }
    shown
}

/// What happened to a hook, and the questions at which plugins failed; newest first.
pub(crate) fn log(hook: &Value) -> String {
    let event = |event: &Value| {
        (event["at"].as_u64(), vec![moment(&event["at"]), word(&event["kind"]), word(&event["what"])])
    };
    let fault = |by: String, fault: &Value| {
        let told = format!("{by}: {}; asked: {}", word(&fault["what"]), word(&fault["question"]));
        (fault["at"].as_u64(), vec![moment(&fault["at"]), format!("fault {}", word(&fault["kind"])), told])
    };
    let mut rows: Vec<_> = hook["events"].as_array().into_iter().flatten().map(event).collect();
    for version in hook["faults"].as_array().into_iter().flatten() {
        let examples = version["examples"].as_array().into_iter().flatten();
        rows.extend(examples.map(|example| fault(name(version), example)));
    }
    if rows.is_empty() {
        return "nothing happened since the start".to_owned();
    }
    rows.sort_by(|(one, _), (other, _)| other.cmp(one));
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    table(&["AT", "WHAT", "DETAIL"], &rows)
}

/// What a replay has found.
pub(crate) fn report(report: &Value) -> String {
    let mut rows = vec![
        ("messages", count(&report["messages"])),
        ("the same", count(&report["same"])),
        ("different", count(&report["different"])),
        ("new rejects", count(&report["new_rejects"])),
        ("new faults", count(&report["new_faults"])),
        ("not judged", number(["unrouted", "damaged"].iter().filter_map(|name| report[name].as_u64()).sum())),
        ("ended", word(&report["ended"]["how"])),
    ];
    let price = &report["price"];
    if price.is_object() {
        let counts =
            [("dearer", "dearer"), ("cheaper", "cheaper"), ("new refusals of a price", "new_refusals")];
        rows.extend(counts.map(|(title, name)| (title, count(&price[name]))));
    }
    let mut shown = list(&rows);
    let row = |group: &Value| {
        let examples = group["examples"].as_array().into_iter().flatten();
        let examples: Vec<String> = examples.take(3).map(|example| word(&example["id"])).collect();
        vec![word(&group["from"]), word(&group["to"]), count(&group["count"]), examples.join(", ")]
    };
    let rows: Vec<_> = report["groups"].as_array().into_iter().flatten().map(row).collect();
    if !rows.is_empty() {
        shown.push('\n');
        shown.push_str(&table(&["WAS", "WOULD BE", "MESSAGES", "SUCH AS"], &rows));
    }
    shown
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
             \nrouter: the policy of first names peer \"west\", which does not exist\n"
        );
    }

    #[test]
    fn one_hook_is_shown_with_its_settings_and_its_history() {
        let shown = hook(&state());
        for line in [
            "granted   counter daily by day in Europe/Berlin, kv 4096\n",
            "deadline  50 ms\n",
            "3       2026-11-21 16:03:02Z  activated  -",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
    }

    #[test]
    fn the_log_has_events_and_faults_newest_first() {
        let shown = log(&state());
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].contains("fault trap  first 96fced7a19c6: unreachable; asked: to 8613*"), "{shown}");
        assert!(lines[2].ends_with("activated   first"), "{shown}");
        assert_eq!(log(&json!({ "events": [], "faults": [] })), "nothing happened since the start");
    }

    #[test]
    fn a_report_tells_what_would_be_different() {
        let shown = report(&json!({
            "messages": 1_000, "same": 990, "different": 10, "new_rejects": 3, "new_faults": 0, "unrouted": 1, "damaged": 1,
            "ended": { "how": "complete" }, "price": null,
            "groups": [{ "from": "forward north", "to": "reject prohibited", "count": 3, "examples": [{ "id": "7" }] }],
        }));
        assert!(shown.starts_with("messages     1,000\nthe same     990\ndifferent    10\n"), "{shown}");
        assert!(shown.ends_with("forward north  reject prohibited  3         7\n"), "{shown}");
        assert!(shown.contains("not judged   2\n"), "{shown}");
    }
}

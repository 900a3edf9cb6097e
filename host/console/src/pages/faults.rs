//! At which questions plugins have failed, with examples.

use crate::ask::part;
use crate::table::table;
use crate::words::{moment, number, plural, state, text, version};
use maud::{Markup, html};
use serde_json::Value;

/// Where a version stands now, of a hook.
fn standing(found: &Value, one: &Value) -> Markup {
    let is_in = |chain: &Value| {
        chain["chain"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|bound| bound["plugin"] == one["plugin"] && bound["version"] == one["version"])
    };
    if is_in(&found["live"]) {
        state("live")
    } else if is_in(&found["candidate"]) {
        state("on trial")
    } else {
        state("not in use")
    }
}

/// The versions of a hook that have failed, the last one first.
pub(crate) fn faults(found: &Value) -> Markup {
    let faulty = found["faults"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        @if faulty.is_empty() {
            p { "No version has failed since the start." }
        }
        @for one in faulty {
            div.part {
                h3 { (text(one, "plugin")) " " (version(text(one, "version"))) " " (standing(found, one)) }
                @let shown = one["examples"].as_array().map_or(0, Vec::len) as u64;
                p {
                    (plural(number(one, "faults"), "fault", "faults")) " since the start"
                    @if number(one, "faults") > shown { ". The last " (shown) ":" } @else { ":" }
                }
                (examples(one))
            }
        }
    }
}

fn examples(faulty: &Value) -> Markup {
    let rows: Vec<_> = faulty["examples"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            vec![
                moment(number(one, "at")),
                html! { (text(one, "kind")) },
                html! { (text(one, "what")) },
                html! { (text(one, "question")) },
                message(one["message"].as_str(), "not accepted"),
            ]
        })
        .collect();
    table(
        "Faults, newest first",
        &["When", "Kind", "What happened", "Asked about", "Trace"],
        &rows,
        &html! {},
    )
}

/// A link to the trace of a message, if it has one.
pub(crate) fn message(id: Option<&str>, otherwise: &str) -> Markup {
    html! {
        @match id {
            Some(id) => { a href=(format!("/messages/{}", part(id))) { code { (id) } } }
            None => { span.muted { (otherwise) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_example_leads_to_its_trace_and_says_where_its_version_stands() {
        let example = |message: Value| json!({ "at": 1_763_820_000_000_u64, "kind": "trap", "what": "trapped: <unreachable>", "question": "acme: 106** to +4915****", "message": message });
        let found = json!({
            "live": { "chain": [{ "plugin": "router", "version": "aaaa" }] },
            "faults": [
                { "plugin": "router", "version": "bbbb", "faults": 1, "examples": [example(json!("1000000007"))] },
                { "plugin": "router", "version": "aaaa", "faults": 12, "examples": [example(Value::Null)] },
            ],
        });
        let drawn = faults(&found).into_string();
        assert!(drawn.contains("href=\"/messages/1000000007\"") && drawn.contains("not accepted"), "{drawn}");
        assert!(drawn.contains("1 fault since") && drawn.contains("12 faults since"), "{drawn}");
        let (old, live) = drawn.split_once("aaaa").unwrap();
        assert!(old.contains("not in use") && live.contains(">live<"), "{drawn}");
        assert!(drawn.contains("&lt;unreachable&gt;"), "{drawn}");
        assert!(faults(&json!({})).into_string().contains("No version has failed"));
    }
}

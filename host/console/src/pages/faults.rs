//! Faults of plugins, with examples.

use crate::api_caller::encode_segment;
use crate::format::{number, plural, state_badge, text, time_tag, version_tag};
use crate::table::table;
use maud::{Markup, html};
use serde_json::Value;

/// Whether a version is live, on trial or not in use.
fn version_state(found: &Value, one: &Value) -> Markup {
    let is_in = |chain: &Value| {
        chain["chain"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|bound| bound["plugin"] == one["plugin"] && bound["version"] == one["version"])
    };
    if is_in(&found["live"]) {
        state_badge("live")
    } else if is_in(&found["candidate"]) {
        state_badge("on trial")
    } else {
        state_badge("not in use")
    }
}

/// The versions of a hook with faults, the most recent first.
pub(crate) fn faults(found: &Value) -> Markup {
    let faulty = found["faults"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        @if faulty.is_empty() {
            p { "There are no faults since the start." }
        }
        @for one in faulty {
            div.part {
                h3 { (text(one, "plugin")) " " (version_tag(text(one, "version"))) " " (version_state(found, one)) }
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
                time_tag(number(one, "at")),
                html! { (text(one, "kind")) },
                html! { (text(one, "what")) },
                html! { (text(one, "question")) },
                message(one["message"].as_str(), "not accepted"),
            ]
        })
        .collect();
    table("Faults, newest first", &["When", "Kind", "Description", "Call", "Trace"], &rows, &html! {})
}

/// A link to the trace of a message, if it has one.
pub(crate) fn message(id: Option<&str>, otherwise: &str) -> Markup {
    html! {
        @match id {
            Some(id) => { a href=(format!("/messages/{}", encode_segment(id))) { code { (id) } } }
            None => { span.muted { (otherwise) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_example_links_to_its_trace_and_shows_the_state_of_its_version() {
        let example = |message: Value| json!({ "at": 1_763_820_000_000_u64, "kind": "trap", "what": "trapped: <unreachable>", "question": "acme: 106** to +4915****", "message": message });
        let found = json!({
            "hook": "router",
            "live": { "serial": 1, "since": 1_763_820_000_000_u64, "how": "activated", "chain": [{
                "plugin": "router", "version": "aaaa", "policy": "", "on-fault": "hold", "memory": 16_777_216, "deadline-ms": 20,
                "table-rows": 1_000, "instance": "warm", "grants": {}, "tolerance": { "faults": 10, "window-ms": 10_000 },
            }] },
            "counts": [], "events": [],
            "faults": [
                { "plugin": "router", "version": "bbbb", "faults": 1, "examples": [example(json!("1000000007"))] },
                { "plugin": "router", "version": "aaaa", "faults": 12, "examples": [example(Value::Null)] },
            ],
        });
        let found = testkit::api_document::fixture("GET", "/v1/hooks/router", 200, found);
        let html_text = faults(&found).into_string();
        assert!(
            html_text.contains("href=\"/messages/1000000007\"") && html_text.contains("not accepted"),
            "{html_text}"
        );
        assert!(html_text.contains("1 fault since") && html_text.contains("12 faults since"), "{html_text}");
        let (old, live) = html_text.split_once("aaaa").unwrap();
        assert!(old.contains("not in use") && live.contains(">live<"), "{html_text}");
        assert!(html_text.contains("&lt;unreachable&gt;"), "{html_text}");
        assert!(faults(&json!({})).into_string().contains("no faults since the start"));
    }
}

//! Faults of plugins, with examples.

use crate::api_caller::encode_segment;
use crate::format::{plural, state_badge, time_tag, version_tag};
use crate::pages::fault_case;
use crate::table::table;
use api::{Binding, FaultyVersion, HookStateView};
use maud::{Markup, html};
use model::Hook;

/// Whether a version is live, on trial or not in use.
fn version_state(found: &HookStateView, one: &FaultyVersion) -> Markup {
    let is_in = |chain: &[Binding]| {
        chain.iter().any(|bound| bound.plugin == one.plugin && bound.version == one.version)
    };
    if is_in(&found.live.chain) {
        state_badge("live")
    } else if found.candidate.as_ref().is_some_and(|candidate| is_in(&candidate.record.chain)) {
        state_badge("on trial")
    } else {
        state_badge("not in use")
    }
}

/// The versions of a hook with faults, the most recent first. With `cases`, the user may read the case of each fault, which has the
/// text of the message.
pub(crate) fn faults(found: &HookStateView, cases: bool) -> Markup {
    html! {
        @if found.faults.is_empty() {
            p { "There are no faults since the start." }
        }
        @for one in &found.faults {
            div.part {
                h3 { (one.plugin) " " (version_tag(&one.version)) " " (version_state(found, one)) }
                @let shown = one.examples.len() as u64;
                p {
                    (plural(one.faults, "fault", "faults")) " since the start"
                    @if one.faults > shown { ". The last " (shown) ":" } @else { ":" }
                }
                (examples(one, cases.then_some(found.hook)))
            }
        }
    }
}

fn examples(faulty: &FaultyVersion, cases_of: Option<Hook>) -> Markup {
    let rows: Vec<_> = faulty
        .examples
        .iter()
        .map(|one| {
            vec![
                time_tag(one.at.0),
                html! { (one.kind) },
                html! {
                    (one.what)
                    @if let Some(report) = &one.report { pre { (report) } }
                    @if !one.stack.is_empty() {
                        ol.stack aria-label="Call stack, innermost first" {
                            @for frame in &one.stack {
                                li { code { (frame.function) } @if let Some(source) = &frame.source { " " (source) } }
                            }
                        }
                    }
                },
                html! { (one.question) },
                message(one.message.as_deref(), "not accepted"),
                html! {
                    @match cases_of {
                        Some(hook) => { a href=(fault_case::path(hook.name(), one.id)) { "Make it a case" } }
                        None => { span.muted { "needs the permission to read texts" } }
                    }
                },
            ]
        })
        .collect();
    table("Faults, newest first", &["When", "Kind", "Description", "Call", "Trace", "Case"], &rows, &html! {})
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
    use api::{BindingChange, BindingRecord, FaultExample, StackFrame};
    use model::Timestamp;

    #[test]
    fn an_example_links_to_its_trace_and_shows_the_state_of_its_version() {
        let at = Timestamp(1_763_820_000_000);
        let faulty = |version: &str, faults, message: Option<&str>| FaultyVersion {
            plugin: "router".to_owned(),
            version: version.to_owned(),
            faults,
            examples: vec![FaultExample {
                id: 1,
                at,
                kind: "trap".to_owned(),
                what: "trapped: <unreachable>".to_owned(),
                report: Some("panicked at src/lib.rs:7:1:\nno <rule>".to_owned()),
                stack: vec![StackFrame {
                    function: "router::choose".to_owned(),
                    source: Some("src/lib.rs:7".to_owned()),
                }],
                question: "acme: 106** to +4915****".to_owned(),
                message: message.map(str::to_owned),
            }],
        };
        let mut found = HookStateView {
            hook: Hook::Router,
            live: BindingRecord {
                serial: 1,
                since: at,
                chain: vec![Binding::new("router", "aaaa", "")],
                change: BindingChange::Activated,
                rollback_reason: None,
            },
            counts: Vec::new(),
            candidate: None,
            events: Vec::new(),
            faults: vec![faulty("bbbb", 1, Some("1000000007")), faulty("aaaa", 12, None)],
            unknown: Vec::new(),
            history: None,
        };
        let html_text = faults(&found, true).into_string();
        assert!(
            html_text.contains("href=\"/messages/1000000007\"") && html_text.contains("not accepted"),
            "{html_text}"
        );
        assert!(html_text.contains("1 fault since") && html_text.contains("12 faults since"), "{html_text}");
        assert!(html_text.contains("href=\"/plugins/router/faults/1/case\""), "{html_text}");
        assert!(!faults(&found, false).into_string().contains("/case\""));
        let (old, live) = html_text.split_once("aaaa").unwrap();
        assert!(old.contains("not in use") && live.contains(">live<"), "{html_text}");
        assert!(html_text.contains("&lt;unreachable&gt;"), "{html_text}");
        assert!(html_text.contains("no &lt;rule&gt;") && html_text.contains("router::choose"), "{html_text}");
        found.faults.clear();
        assert!(faults(&found, true).into_string().contains("no faults since the start"));
    }
}

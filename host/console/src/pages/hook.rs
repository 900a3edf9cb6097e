//! A hook: its live chain, its candidate, faults, events and history.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::{
    ago, count, figure, number, plural, state_badge, text, time_tag, version_tag, with_readable_times,
};
use crate::layout::{action_button, csrf_field, error_notice, live_page};
use crate::live::Region;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::pages::faults::{faults, message};
use crate::request_context::RequestContext;
use crate::table::table;
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

pub(crate) async fn regions(context: &RequestContext, hook: &str) -> Result<Vec<Region>, ApiError> {
    let state: Value = context.get(&format!("/v1/hooks/{}", encode_segment(hook))).await?;
    Ok(vec![
        ("now", live_binding_list(&state)),
        ("faults", faults(&state)),
        ("trial", trial(&state)),
        ("events", events(&state)),
    ])
}

pub(crate) async fn show(
    context: RequestContext,
    Path(hook): Path<String>,
    Query(query): QueryParams,
) -> Response {
    render(&context, &hook, &Form::of(query), None).await
}

async fn render(context: &RequestContext, hook: &str, query: &Form, error: Option<&ApiError>) -> Response {
    let body = page_body(context, hook, query, error).await;
    let live = body.is_ok().then(|| format!("/live?of=hook&id={}", encode_segment(hook)));
    let mut response =
        live_page(context, &format!("Plugins: {hook}"), NavItem::Plugins, live.as_deref(), body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

async fn page_body(
    context: &RequestContext,
    hook: &str,
    query: &Form,
    error: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let path = format!("/v1/hooks/{}", encode_segment(hook));
    let (found, stored) = tokio::join!(context.get::<Value>(&path), context.get::<Vec<Value>>("/v1/plugins"));
    let (found, stored) = (found?, stored?);
    let versions: Vec<&Value> = stored.iter().rev().filter(|one| text(one, "hook") == hook).collect();
    let manages = context.has_permission("manage-plugins");
    Ok(html! {
        div.heading {
            h1 { (hook) }
            a.button.quiet href=(format!("/policies/{}", encode_segment(hook))) { "Policies" }
        }
        @if let Some(error) = error { (error_notice(error)) }
        section.card { h2 { "Live" } div #now { (live_binding_list(&found)) } @if manages { (live_actions(context, &found)) } }
        section.card { h2 { "Faults" } div #faults { (faults(&found)) } }
        section.card { h2 { "On trial" } div #trial { (trial(&found)) } @if manages && !found["candidate"].is_null() { (trial_actions(context, &found)) } }
        @if manages { (version_form(context, &found, &versions, query)) }
        section.card { h2 { "Events" } div #events { (events(&found)) } }
        section.card { h2 { "History" } (history(&found)) }
    })
}

fn chain(value: &Value) -> &[Value] {
    value["chain"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn bindings(chain: &[Value]) -> Markup {
    html! {
        ol.chain {
            @for one in chain {
                li {
                    strong { (text(one, "plugin")) } " " (version_tag(text(one, "version")))
                    span.muted {
                        " " (number(one, "deadline-ms")) " ms and " (crate::format::octets(number(one, "memory")))
                        " for a call; on a fault, " (on_fault_text(&one["on-fault"])) "."
                    }
                }
            }
        }
    }
}

/// The effect of a fault, as a text.
fn on_fault_text(on_fault: &Value) -> String {
    match on_fault.as_str() {
        Some("hold") => "it is called again later".to_owned(),
        Some("reject") => "the message is refused".to_owned(),
        Some("pass") => "the plugin is skipped".to_owned(),
        Some(other) => other.to_owned(),
        None => match on_fault["peer"].as_str() {
            Some(peer) => format!("the message goes to {peer}"),
            None => on_fault.to_string(),
        },
    }
}

fn live_binding_list(found: &Value) -> Markup {
    let live = &found["live"];
    html! {
        @if chain(live).is_empty() {
            p { "This hook has no plugins." }
        } @else {
            (bindings(chain(live)))
            p.muted { (text(live, "how")) ", change " (number(live, "serial")) ", " (ago(number(live, "since"))) }
            (counts_table(&[("Live", &found["counts"])]))
        }
    }
}

/// The counts of chains, side by side.
fn counts_table(columns: &[(&str, &Value)]) -> Markup {
    let sum = |counts: &Value, name: &str| {
        counts.as_array().into_iter().flatten().map(|one| number(one, name)).sum::<u64>()
    };
    // Kinds of faults that never happened are left out.
    let mut kinds: Vec<&str> = Vec::new();
    for (_, counts) in columns {
        for one in counts.as_array().into_iter().flatten() {
            for (kind, count) in one["faults"].as_object().into_iter().flatten() {
                if count.as_u64() > Some(0) && !kinds.contains(&kind.as_str()) {
                    kinds.push(kind);
                }
            }
        }
    }
    let faults = |counts: &Value, kind: &str| {
        counts.as_array().into_iter().flatten().map(|one| number(&one["faults"], kind)).sum::<u64>()
    };
    let line = |name: String, each: &dyn Fn(&Value) -> String| -> Vec<Markup> {
        std::iter::once(html! { (name) })
            .chain(columns.iter().map(|(_, counts)| html! { (each(counts)) }))
            .collect()
    };
    let mut rows = vec![
        line("Calls".to_owned(), &|counts| count(sum(counts, "calls"))),
        line("Time of a call".to_owned(), &|counts| match sum(counts, "calls") {
            0 => "—".to_owned(),
            calls => format!("{} µs", figure(sum(counts, "nanoseconds") as f64 / calls as f64 / 1_000.0)),
        }),
    ];
    if kinds.is_empty() {
        rows.push(line("Faults".to_owned(), &|_| "none".to_owned()));
    }
    for kind in kinds {
        rows.push(line(format!("Faults: {kind}"), &|counts| count(faults(counts, kind))));
    }
    if let [_] = columns {
        let pairs = rows.iter().filter_map(|row| match &row[..] {
            [name, what] => Some((name, what)),
            _ => None,
        });
        return html! { dl.facts { @for (name, what) in pairs { div { dt { (name) } dd { (what) } } } } };
    }
    let mut heads = vec!["What"];
    heads.extend(columns.iter().map(|(name, _)| *name));
    table("Counts", &heads, &rows, &html! {})
}

fn trial(found: &Value) -> Markup {
    let candidate = &found["candidate"];
    if candidate.is_null() {
        return html! { p { "No candidate is on trial. A candidate can run in the shadow of the live chain, or as a canary for a share of the destinations." } };
    }
    let share = figure(number(candidate, "share") as f64 / 100.0);
    let comparison = &candidate["comparison"];
    html! {
        (bindings(chain(candidate)))
        p {
            (state_badge(text(candidate, "mode")))
            @if text(candidate, "mode") == "canary" { " decides for " (share) " % of the destinations" }
            " since " (time_tag(number(candidate, "since")))
        }
        @if comparison.is_null() {
            p {
                @let (asked, failed) = (number(candidate, "asked"), number(candidate, "failed"));
                (plural(asked, "call was its own", "calls were its own"))
                @if failed > 0 { ", " (count(failed)) " failed and were answered by the live chain" }
                @else if asked > 0 { ", without faults" }
                ". " (plural(number(candidate, "bypassed"), "call bypassed it", "calls bypassed it")) "."
            }
        } @else { (comparison_details(comparison)) }
        h3 { "Side by side" }
        (counts_table(&[("Live", &found["counts"]), ("On trial", &candidate["counts"])]))
    }
}

fn comparison_details(comparison: &Value) -> Markup {
    let (same, different) = (number(comparison, "same"), number(comparison, "different"));
    let rows: Vec<_> = comparison["differences"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let samples = one["samples"].as_array().map(Vec::as_slice).unwrap_or_default();
            vec![
                html! { (text(one, "from")) },
                html! { (text(one, "to")) },
                html! { (count(number(one, "count"))) },
                html! {
                    @for (index, sample) in samples.iter().enumerate().take(5) {
                        div { (sample.as_str().unwrap_or_default()) " " (message(one["messages"][index].as_str(), "")) }
                    }
                },
            ]
        })
        .collect();
    html! {
        p {
            (plural(number(comparison, "compared"), "answer", "answers")) " compared: " (count(same)) " the same, " (count(different)) " different, "
            (count(number(comparison, "skipped"))) " skipped."
        }
        (crate::chart::bar("Share of answers that are the same and different", &[("good", same), ("warn", different)]))
        (table("Differences", &["Live answer", "Candidate's answer", "Count", "Call"], &rows, &html! { p { "There are no differences." } }))
    }
}

fn events(found: &Value) -> Markup {
    let rows: Vec<_> = found["events"]
        .as_array()
        .into_iter()
        .flatten()
        .take(20)
        .map(|event| {
            vec![
                time_tag(number(event, "at")),
                state_badge(text(event, "kind")),
                html! { (with_readable_times(text(event, "what"))) },
            ]
        })
        .collect();
    table("Events, newest first", &["When", "What", "More"], &rows, &html! { p { "Nothing yet." } })
}

fn history(found: &Value) -> Markup {
    let rows: Vec<_> = found["history"]
        .as_array()
        .into_iter()
        .flatten()
        .take(30)
        .map(|record| {
            vec![
                html! { (number(record, "serial")) },
                time_tag(number(record, "since")),
                html! { (text(record, "how")) },
                html! { @if chain(record).is_empty() { "nothing" } @for one in chain(record) { span.plugin { (text(one, "plugin")) " " (version_tag(text(one, "version"))) } } },
                html! { (record["condemned"].as_str().unwrap_or("—")) },
            ]
        })
        .collect();
    table(
        "Chains, newest first",
        &["Change", "Since", "How", "Plugins", "Condemned because"],
        &rows,
        &html! { p { "There is no history." } },
    )
}

fn live_actions(context: &RequestContext, found: &Value) -> Markup {
    let action = format!("/plugins/{}", encode_segment(text(found, "hook")));
    html! {
        @if found["history"].as_array().is_some_and(|history| history.len() > 1) {
            div.actions { (action_button(context, &action, "Roll back to the chain before", "danger", &[("do", "rollback")])) }
        }
    }
}

fn trial_actions(context: &RequestContext, found: &Value) -> Markup {
    let action = format!("/plugins/{}", encode_segment(text(found, "hook")));
    let serial = number(&found["live"], "serial").to_string();
    html! {
        div.actions {
            (action_button(context, &action, "Make it live", "primary", &[("do", "promote"), ("expected", &serial)]))
            (action_button(context, &action, "End the trial", "", &[("do", "dismiss")]))
        }
    }
}

fn version_form(context: &RequestContext, found: &Value, versions: &[&Value], query: &Form) -> Markup {
    let is_router = text(found, "hook") == "router";
    html! {
        section.card {
            h2 { "Put a version on trial, or make it live" }
            @if versions.is_empty() {
                p { "No version for this hook is stored. " a href="/plugins" { "Upload one" } "." }
            } @else {
                form.fields method="post" action=(format!("/plugins/{}", encode_segment(text(found, "hook")))) {
                    (csrf_field(context))
                    input type="hidden" name="expected" value=(number(&found["live"], "serial"));
                    p {
                        label for="version" { "Version" }
                        select #version name="version" {
                            @for one in versions {
                                @let sum = text(one, "version");
                                option value=(format!("{} {sum}", text(one, "plugin"))) selected[query.text("version") == sum] {
                                    (text(one, "plugin")) " " (crate::format::short_version(sum)) ", " (crate::format::octets(number(one, "size")))
                                }
                            }
                        }
                    }
                    p {
                        label for="share" { "Share of a canary, in percent" }
                        input #share name="share" value="5" inputmode="decimal" autocomplete="off";
                    }
                    p {
                        label {
                            input type="checkbox" name="force" value="1";
                            " even if the policy names objects that do not exist, or a grant is missing"
                        }
                    }
                    p.actions {
                        button.primary type="submit" name="do" value="canary" { "Start as a canary" }
                        button type="submit" name="do" value="shadow" { "Start in the shadow" }
                        button.danger type="submit" name="do" value="activate" { "Make it live now" }
                    }
                    p.muted {
                        "The version uses the policy and the limits of the live binding of the same plugin, if there is one"
                        @if is_router { "; a different plugin replaces the whole chain" } "."
                    }
                }
            }
        }
    }
}

/// The request for a binding, at the plugin's position in the live chain if it has one.
pub(crate) fn binding(found: &Value, plugin: &str, version: &str) -> Map<String, Value> {
    let mut request = Map::new();
    request.insert("plugin".to_owned(), plugin.into());
    request.insert("version".to_owned(), version.into());
    if let Some(index) = chain(&found["live"]).iter().position(|one| text(one, "plugin") == plugin) {
        request.insert("position".to_owned(), index.into());
    }
    request
}

pub(crate) async fn act(context: RequestContext, Path(hook): Path<String>, form: Form) -> Response {
    match apply_action(&context, &hook, &form).await {
        Ok(done) => RequestContext::redirect(&format!("/plugins/{}", encode_segment(&hook)), done),
        Err(error) => render(&context, &hook, &form, Some(&error)).await,
    }
}

async fn apply_action(context: &RequestContext, hook: &str, form: &Form) -> Result<&'static str, ApiError> {
    let path = format!("/v1/hooks/{}", encode_segment(hook));
    let expected = form.text("expected").parse::<u64>().ok();
    let (method, below, body, done) = match form.text("do") {
        "rollback" => (Method::POST, "/rollback", None, "rolled-back"),
        "dismiss" => (Method::DELETE, "/candidate", None, "dismissed"),
        "promote" => (Method::POST, "/promote", Some(json!({ "expected": expected })), "promoted"),
        what @ ("canary" | "shadow" | "activate") => {
            let (plugin, version) = form
                .text("version")
                .split_once(' ')
                .ok_or_else(|| ApiError::bad_request("Choose a version."))?;
            let found: Value = context.get(&path).await?;
            let mut request = binding(&found, plugin, version);
            request.insert("expected".to_owned(), expected.into());
            request.insert("force".to_owned(), (form.text("force") == "1").into());
            if what == "activate" {
                (Method::POST, "/activate", Some(Value::Object(request)), "activated")
            } else {
                request.insert("mode".to_owned(), what.into());
                if what == "canary" {
                    let share = form.text("share").trim_end_matches('%').trim().parse::<f64>();
                    let share = share.map_err(|_| {
                        ApiError::bad_request("The share of a canary is a number of percent.")
                    })?;
                    request.insert("share".to_owned(), share.into());
                }
                (Method::POST, "/candidate", Some(Value::Object(request)), "candidate")
            }
        }
        _ => return Err(ApiError::new(StatusCode::BAD_REQUEST, "This action does not exist.")),
    };
    context.send(method, &format!("{path}{below}"), form, body.as_ref()).await?;
    Ok(done)
}

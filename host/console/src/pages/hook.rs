//! One hook: what is live, what is on trial beside it, how it came to that, and the ways on.

use crate::ask::{Refusal, part};
use crate::form::Form;
use crate::live::Region;
use crate::pages::Asked;
use crate::pages::faults::{faults, message};
use crate::shell::{Room, button, csrf, live_page, trouble};
use crate::table::table;
use crate::visit::Visit;
use crate::words::{ago, count, figure, moment, number, plural, sentence, state, text, version};
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

pub(crate) async fn regions(visit: &Visit, hook: &str) -> Result<Vec<Region>, Refusal> {
    let state: Value = visit.get(&format!("/v1/hooks/{}", part(hook))).await?;
    Ok(vec![
        ("now", now(&state)),
        ("faults", faults(&state)),
        ("trial", trial(&state)),
        ("events", events(&state)),
    ])
}

pub(crate) async fn show(visit: Visit, Path(hook): Path<String>, Query(query): Asked) -> Response {
    draw(&visit, &hook, &Form::of(query), None).await
}

async fn draw(visit: &Visit, hook: &str, query: &Form, refusal: Option<&Refusal>) -> Response {
    let body = parts(visit, hook, query, refusal).await;
    let live = body.is_ok().then(|| format!("/live?of=hook&id={}", part(hook)));
    let mut response = live_page(visit, &format!("Plugins: {hook}"), Room::Plugins, live.as_deref(), body);
    if let Some(refusal) = refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

async fn parts(
    visit: &Visit,
    hook: &str,
    query: &Form,
    refusal: Option<&Refusal>,
) -> Result<Markup, Refusal> {
    let path = format!("/v1/hooks/{}", part(hook));
    let (found, kept) = tokio::join!(visit.get::<Value>(&path), visit.get::<Vec<Value>>("/v1/plugins"));
    let (found, kept) = (found?, kept?);
    let versions: Vec<&Value> = kept.iter().rev().filter(|one| text(one, "hook") == hook).collect();
    let manages = visit.may("manage-plugins");
    Ok(html! {
        div.head {
            h1 { (hook) }
            a.button.quiet href=(format!("/policies/{}", part(hook))) { "Its policies" }
        }
        @if let Some(refusal) = refusal { (trouble(refusal)) }
        section.card { h2 { "Live" } div #now { (now(&found)) } @if manages { (live_actions(visit, &found)) } }
        section.card { h2 { "Faults" } div #faults { (faults(&found)) } }
        section.card { h2 { "On trial" } div #trial { (trial(&found)) } @if manages && !found["candidate"].is_null() { (trial_actions(visit, &found)) } }
        @if manages { (choose(visit, &found, &versions, query)) }
        section.card { h2 { "What happened" } div #events { (events(&found)) } }
        section.card { h2 { "What was live before" } (history(&found)) }
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
                    strong { (text(one, "plugin")) } " " (version(text(one, "version")))
                    span.muted {
                        " " (number(one, "deadline-ms")) " ms and " (crate::words::octets(number(one, "memory")))
                        " for a call; on a fault, " (on_fault(&one["on-fault"])) "."
                    }
                }
            }
        }
    }
}

/// What becomes of a question whose call failed.
fn on_fault(said: &Value) -> String {
    match said.as_str() {
        Some("hold") => "it is asked again later".to_owned(),
        Some("reject") => "the message is refused".to_owned(),
        Some("pass") => "as if it were not there".to_owned(),
        Some(other) => other.to_owned(),
        None => match said["peer"].as_str() {
            Some(peer) => format!("the message goes to {peer}"),
            None => said.to_string(),
        },
    }
}

fn now(found: &Value) -> Markup {
    let live = &found["live"];
    html! {
        @if chain(live).is_empty() {
            p { "Nothing serves this hook." }
        } @else {
            (bindings(chain(live)))
            p.muted { (text(live, "how")) ", change " (number(live, "serial")) ", " (ago(number(live, "since"))) }
            (side_by_side(&[("Live", &found["counts"])]))
        }
    }
}

/// Counts of chains beside each other.
fn side_by_side(columns: &[(&str, &Value)]) -> Markup {
    let sum = |counts: &Value, name: &str| {
        counts.as_array().into_iter().flatten().map(|one| number(one, name)).sum::<u64>()
    };
    // What never happened anywhere is no line of its own.
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
        return html! { p { "Nothing is on trial. A candidate can be asked in the shadow of what is live, or decide for a share of the destinations." } };
    }
    let share = figure(number(candidate, "share") as f64 / 100.0);
    let comparison = &candidate["comparison"];
    html! {
        (bindings(chain(candidate)))
        p {
            (state(text(candidate, "mode")))
            @if text(candidate, "mode") == "canary" { " decides for " (share) " % of the destinations" }
            " since " (moment(number(candidate, "since")))
        }
        @if comparison.is_null() {
            p {
                @let (asked, failed) = (number(candidate, "asked"), number(candidate, "failed"));
                (plural(asked, "question was its own", "questions were its own"))
                @if failed > 0 { "; it failed at " (count(failed)) ", and the live chain answered" }
                @else if asked > 0 { ", and it failed at none" }
                ". " (plural(number(candidate, "passed"), "question went past it", "questions went past it")) "."
            }
        } @else { (compared(comparison)) }
        h3 { "Side by side" }
        (side_by_side(&[("Live", &found["counts"]), ("On trial", &candidate["counts"])]))
    }
}

fn compared(comparison: &Value) -> Markup {
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
                    @for (place, sample) in samples.iter().enumerate().take(5) {
                        div { (sample.as_str().unwrap_or_default()) " " (message(one["messages"][place].as_str(), "")) }
                    }
                },
            ]
        })
        .collect();
    html! {
        p {
            (plural(number(comparison, "compared"), "answer", "answers")) " compared: " (count(same)) " the same, " (count(different)) " different, "
            (count(number(comparison, "skipped"))) " left out."
        }
        (crate::chart::bar("Share of answers that are the same and different", &[("good", same), ("warn", different)]))
        (table("Where they differ", &["Live said", "The candidate says", "How often", "Asked about"], &rows, &html! { p { "They do not differ." } }))
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
                moment(number(event, "at")),
                state(text(event, "kind")),
                html! { (sentence(text(event, "what"))) },
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
                moment(number(record, "since")),
                html! { (text(record, "how")) },
                html! { @if chain(record).is_empty() { "nothing" } @for one in chain(record) { span.plugin { (text(one, "plugin")) " " (version(text(one, "version"))) } } },
                html! { (record["condemned"].as_str().unwrap_or("—")) },
            ]
        })
        .collect();
    table(
        "Chains, newest first",
        &["Change", "Since", "How", "Plugins", "Condemned for"],
        &rows,
        &html! { p { "Nothing was live before." } },
    )
}

fn live_actions(visit: &Visit, found: &Value) -> Markup {
    let action = format!("/plugins/{}", part(text(found, "hook")));
    html! {
        @if found["history"].as_array().is_some_and(|history| history.len() > 1) {
            div.do { (button(visit, &action, "Roll back to what was live before", "danger", &[("do", "rollback")])) }
        }
    }
}

fn trial_actions(visit: &Visit, found: &Value) -> Markup {
    let action = format!("/plugins/{}", part(text(found, "hook")));
    let serial = number(&found["live"], "serial").to_string();
    html! {
        div.do {
            (button(visit, &action, "Make it live", "primary", &[("do", "promote"), ("expected", &serial)]))
            (button(visit, &action, "End the trial", "", &[("do", "dismiss")]))
        }
    }
}

fn choose(visit: &Visit, found: &Value, versions: &[&Value], query: &Form) -> Markup {
    let is_router = text(found, "hook") == "router";
    html! {
        section.card {
            h2 { "Put a version on trial, or make it live" }
            @if versions.is_empty() {
                p { "No version for this hook is kept. " a href="/plugins" { "Upload one" } "." }
            } @else {
                form.fields method="post" action=(format!("/plugins/{}", part(text(found, "hook")))) {
                    (csrf(visit))
                    input type="hidden" name="expected" value=(number(&found["live"], "serial"));
                    p {
                        label for="version" { "Version" }
                        select #version name="version" {
                            @for one in versions {
                                @let sum = text(one, "version");
                                option value=(format!("{} {sum}", text(one, "plugin"))) selected[query.text("version") == sum] {
                                    (text(one, "plugin")) " " (crate::words::short(sum)) ", " (crate::words::octets(number(one, "size")))
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
                            " also where a policy names what does not exist, or a grant is missing"
                        }
                    }
                    p.do {
                        button.primary type="submit" name="do" value="canary" { "Try it as a canary" }
                        button type="submit" name="do" value="shadow" { "Try it in the shadow" }
                        button.danger type="submit" name="do" value="activate" { "Make it live at once" }
                    }
                    p.muted {
                        "It takes its policy and its limits from the live binding of the same plugin, where there is one"
                        @if is_router { "; another plugin takes the place of the whole chain" } "."
                    }
                }
            }
        }
    }
}

/// A binding as it is asked for: in its place in the live chain, where its plugin has one.
pub(crate) fn binding(found: &Value, plugin: &str, version: &str) -> Map<String, Value> {
    let mut wish = Map::new();
    wish.insert("plugin".to_owned(), plugin.into());
    wish.insert("version".to_owned(), version.into());
    if let Some(place) = chain(&found["live"]).iter().position(|one| text(one, "plugin") == plugin) {
        wish.insert("position".to_owned(), place.into());
    }
    wish
}

pub(crate) async fn act(visit: Visit, Path(hook): Path<String>, form: Form) -> Response {
    match acted(&visit, &hook, &form).await {
        Ok(done) => Visit::to(&format!("/plugins/{}", part(&hook)), done),
        Err(refusal) => draw(&visit, &hook, &form, Some(&refusal)).await,
    }
}

async fn acted(visit: &Visit, hook: &str, form: &Form) -> Result<&'static str, Refusal> {
    let path = format!("/v1/hooks/{}", part(hook));
    let expected = form.text("expected").parse::<u64>().ok();
    let (method, below, body, done) = match form.text("do") {
        "rollback" => (Method::POST, "/rollback", None, "rolled-back"),
        "dismiss" => (Method::DELETE, "/candidate", None, "dismissed"),
        "promote" => (Method::POST, "/promote", Some(json!({ "expected": expected })), "promoted"),
        what @ ("canary" | "shadow" | "activate") => {
            let (plugin, version) =
                form.text("version").split_once(' ').ok_or_else(|| Refusal::bad("Choose a version."))?;
            let found: Value = visit.get(&path).await?;
            let mut wish = binding(&found, plugin, version);
            wish.insert("expected".to_owned(), expected.into());
            wish.insert("force".to_owned(), (form.text("force") == "1").into());
            if what == "activate" {
                (Method::POST, "/activate", Some(Value::Object(wish)), "activated")
            } else {
                wish.insert("mode".to_owned(), what.into());
                if what == "canary" {
                    let share = form.text("share").trim_end_matches('%').trim().parse::<f64>();
                    let share =
                        share.map_err(|_| Refusal::bad("The share of a canary is a number of percent."))?;
                    wish.insert("share".to_owned(), share.into());
                }
                (Method::POST, "/candidate", Some(Value::Object(wish)), "candidate")
            }
        }
        _ => return Err(Refusal::new(StatusCode::BAD_REQUEST, "That cannot be done to a hook.")),
    };
    visit.send(method, &format!("{path}{below}"), form, body.as_ref()).await?;
    Ok(done)
}

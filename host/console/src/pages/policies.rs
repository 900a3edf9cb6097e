//! Policy documents: the texts that plugins go by.

use crate::ask::{Refusal, part, with_query};
use crate::form::Form;
use crate::pages::{Asked, hook};
use crate::places::{excerpt, line_in};
use crate::shell::{Room, csrf, page, trouble};
use crate::table::table;
use crate::visit::Visit;
use crate::words::{count, number, plural, text, version};
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Messages on which a changed policy is tried.
const LAST: u64 = 1_000;
/// How long a page waits for that.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn show(visit: Visit) -> Response {
    let body = visit.get::<Vec<Value>>("/v1/hooks").await.map(|hooks| list(&hooks));
    page(&visit, "Policies", Room::Policies, body)
}

fn list(hooks: &[Value]) -> Markup {
    let rows: Vec<_> = hooks
        .iter()
        .flat_map(|found| {
            let name = text(found, "hook");
            let chain = found["live"]["chain"].as_array().map(Vec::as_slice).unwrap_or_default();
            chain.iter().map(move |one| {
                let policy = text(one, "policy");
                let place = with_query(&format!("/policies/{}", part(name)), &[("plugin", text(one, "plugin"))]);
                vec![
                    html! { a href=(place) { (name) ": " (text(one, "plugin")) } },
                    version(text(one, "version")),
                    html! { @if policy.is_empty() { span.muted { "none" } } @else { (plural(policy.lines().count() as u64, "line", "lines")) } },
                ]
            })
        })
        .collect();
    let empty = html! {
        h2 { "No plugin has a policy" }
        p { "A policy belongs to a plugin that is live. " a href="/plugins" { "Make one live" } " first." }
    };
    html! { h1 { "Policies" } section.card { (table("Policies", &["Policy", "Plugin's version", "Text"], &rows, &empty)) } }
}

/// What a page says beside what there is.
#[derive(Default)]
struct Said<'a> {
    text: Option<String>,
    refusal: Option<&'a Refusal>,
    /// What the last messages would have become of.
    report: Option<&'a Value>,
    /// That it was looked at, and nothing was wrong.
    checked: bool,
    /// Why it could not be tried on messages.
    untried: Option<&'a Refusal>,
}

pub(crate) async fn edit(visit: Visit, Path(hook): Path<String>, Query(query): Asked) -> Response {
    draw(&visit, &hook, Form::of(query).text("plugin"), &Said::default()).await
}

/// The binding of a plugin in the live chain; the first one where none is named.
fn bound<'a>(found: &'a Value, plugin: &str) -> Option<&'a Value> {
    let chain = found["live"]["chain"].as_array()?;
    chain.iter().find(|one| plugin.is_empty() || text(one, "plugin") == plugin)
}

async fn draw(visit: &Visit, hook: &str, plugin: &str, said: &Said<'_>) -> Response {
    let found = visit.get::<Value>(&format!("/v1/hooks/{}", part(hook))).await;
    let body = found.map(|found| parts(visit, hook, plugin, &found, said));
    let mut response = page(visit, &format!("Policy: {hook}"), Room::Policies, body);
    if let Some(refusal) = said.refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

fn parts(visit: &Visit, hook: &str, plugin: &str, found: &Value, said: &Said<'_>) -> Markup {
    let Some(one) = bound(found, plugin) else {
        return html! { h1 { "Policy: " (hook) } section.card { p { "No such plugin is live. " a href=(format!("/plugins/{}", part(hook))) { "Make one live" } "." } } };
    };
    let (plugin, live) = (text(one, "plugin"), text(one, "policy"));
    let shown = said.text.as_deref().unwrap_or(live);
    let wrong: Vec<(usize, String)> = said
        .refusal
        .and_then(|refusal| {
            // A parser shows the place as well; what is wrong there comes last.
            let what = refusal.detail.lines().rfind(|line| !line.trim().is_empty())?;
            Some(vec![(line_in(&refusal.detail)?, what.trim().to_owned())])
        })
        .unwrap_or_default();
    let edits = visit.may("manage-plugins");
    html! {
        h1 { "Policy: " (hook) ", " (plugin) }
        @if let Some(refusal) = said.refusal {
            (trouble(refusal))
            @if !wrong.is_empty() { section.card #wrong { h2 { "Where it is wrong" } (excerpt(shown, &wrong)) } }
        }
        @if said.checked { div.notice.good role="status" { strong { "Nothing is wrong with it." } p { "It is not in use yet." } } }
        @if let Some(untried) = said.untried { div.notice.warn role="status" { strong { "It was not tried on messages" } p { (untried.detail) } } }
        @if let Some(report) = said.report { (reported(report)) }
        @if said.text.is_some() && shown != live { section.card { h2 { "What is different" } (difference(live, shown)) } }
        section.card {
            form.fields method="post" action=(format!("/policies/{}", part(hook))) {
                (csrf(visit))
                input type="hidden" name="plugin" value=(plugin);
                input type="hidden" name="expected" value=(number(&found["live"], "serial"));
                p.wide {
                    label for="policy" { "The document" }
                    textarea.code #policy name="policy" rows="24" spellcheck="false" readonly[!edits] aria-invalid=[said.refusal.map(|_| "true")] { "\n" (shown) }
                }
                @if edits {
                    p {
                        label {
                            input type="checkbox" name="force" value="1";
                            " also where it names peers or pools that do not exist"
                        }
                    }
                    p.do {
                        button.primary type="submit" name="do" value="check" { "Check it" }
                        button.danger type="submit" name="do" value="apply" { "Apply it" }
                        a.button.quiet href=(with_query(&format!("/policies/{}", part(hook)), &[("plugin", plugin)])) { "Start over" }
                    }
                    p.muted { "Checking tries it on the last " (count(LAST)) " messages of the archive, and changes nothing. What is refused is never applied." }
                }
            }
        }
    }
}

/// Two texts, line by line.
pub(crate) fn difference(before: &str, after: &str) -> Markup {
    let diff = TextDiff::configure().timeout(Duration::from_millis(50)).diff_lines(before, after);
    let mut left = crate::table::MOST;
    html! {
        div.diff tabindex="0" role="group" aria-label="Lines that are different" {
            @for group in diff.grouped_ops(2) {
                @for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                    @if left > 0 {
                        @let () = left -= 1;
                        @match change.tag() {
                            ChangeTag::Delete => { div.old { span.visually-hidden { "Removed: " } "− " (change.value().trim_end_matches('\n')) } }
                            ChangeTag::Insert => { div.new { span.visually-hidden { "Added: " } "+ " (change.value().trim_end_matches('\n')) } }
                            ChangeTag::Equal => { div { "  " (change.value().trim_end_matches('\n')) } }
                        }
                    }
                }
            }
            @if left == 0 { div.muted { "… and more" } }
        }
    }
}

fn reported(report: &Value) -> Markup {
    let rows: Vec<_> = report["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|group| {
            let examples = group["examples"].as_array().map(Vec::as_slice).unwrap_or_default();
            vec![
                html! { (text(group, "from")) },
                html! { (text(group, "to")) },
                html! { (count(number(group, "count"))) },
                html! { @for one in examples.iter().take(3) { @let id = text(one, "id"); a href=(format!("/messages/{}", part(id))) { code { (id) } } " " } },
            ]
        })
        .collect();
    html! {
        section.card #report role="status" {
            h2 { "On the last messages" }
            @if number(report, "messages") == 0 {
                p { "There are no messages in the archive yet on which it could be tried." }
            } @else {
                p {
                    "Of the last " (plural(number(report, "messages"), "message", "messages")) ", "
                    (count(number(report, "same"))) " would go as they went, " (count(number(report, "different"))) " otherwise."
                }
                @let inexact = number(report, "messages").saturating_sub(number(report, "exact"));
                @if inexact > 0 {
                    p.muted { "For " (count(inexact)) " it is not known whether it would be exactly so: what the plugin asked then is not on record." }
                }
            }
            (table("What would be otherwise", &["Was", "Would be", "How often", "Messages"], &rows, &html! { p { "Nothing would be otherwise." } }))
        }
    }
}

pub(crate) async fn change(visit: Visit, Path(hook): Path<String>, form: Form) -> Response {
    let (plugin, policy) = (form.text("plugin"), form.whole("policy"));
    let said = |text: &str| Said { text: Some(text.to_owned()), ..Said::default() };
    let found = match visit.get::<Value>(&format!("/v1/hooks/{}", part(&hook))).await {
        Ok(found) => found,
        Err(refusal) => {
            return draw(&visit, &hook, plugin, &Said { refusal: Some(&refusal), ..said(&policy) }).await;
        }
    };
    let Some(one) = bound(&found, plugin) else {
        let refusal = Refusal::new(StatusCode::CONFLICT, "This plugin is no longer live.");
        return draw(&visit, &hook, plugin, &Said { refusal: Some(&refusal), ..said(&policy) }).await;
    };
    let mut wish = hook::binding(&found, plugin, text(one, "version"));
    wish.insert("policy".to_owned(), policy.clone().into());
    if form.text("do") == "apply" {
        wish.insert("expected".to_owned(), form.text("expected").parse::<u64>().ok().into());
        wish.insert("force".to_owned(), (form.text("force") == "1").into());
        let path = format!("/v1/hooks/{}/activate", part(&hook));
        return match visit.send(Method::POST, &path, &form, Some(&Value::Object(wish))).await {
            Ok(_) => Visit::to(
                &with_query(&format!("/policies/{}", part(&hook)), &[("plugin", plugin)]),
                "changed",
            ),
            Err(refusal) => {
                draw(&visit, &hook, plugin, &Said { refusal: Some(&refusal), ..said(&policy) }).await
            }
        };
    }
    wish.insert("hook".to_owned(), hook.clone().into());
    wish.insert("last".to_owned(), LAST.into());
    match tried(&visit, &form, &Value::Object(wish)).await {
        Ok(report) => {
            draw(&visit, &hook, plugin, &Said { report: Some(&report), checked: true, ..said(&policy) }).await
        }
        Err(refusal) if refusal.status == StatusCode::UNPROCESSABLE_ENTITY => {
            draw(&visit, &hook, plugin, &Said { refusal: Some(&refusal), ..said(&policy) }).await
        }
        // Without an archive, or while another one runs: the difference is shown all the same.
        Err(refusal) => draw(&visit, &hook, plugin, &Said { untried: Some(&refusal), ..said(&policy) }).await,
    }
}

/// Tries a candidate on archived messages, and waits for the report.
async fn tried(visit: &Visit, form: &Form, wish: &Value) -> Result<Value, Refusal> {
    let begun: Value = visit.send(Method::POST, "/v1/replays", form, Some(wish)).await?.read()?;
    let path = format!("/v1/replays/{}", part(text(&begun, "id")));
    let waited = tokio::time::timeout(PATIENCE, async {
        let mut clock = tokio::time::interval(Duration::from_millis(100));
        loop {
            clock.tick().await;
            let replay: Value = visit.get(&path).await?;
            if !replay["report"].is_null() {
                return Ok(replay["report"].clone());
            }
        }
    });
    match waited.await {
        Ok(report) => report,
        Err(_) => {
            visit.send(Method::DELETE, &path, form, None).await?;
            Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "It took too long and was ended."))
        }
    }
}

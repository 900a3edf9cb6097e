//! Policy documents of plugins.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::form::Form;
use crate::format::{count, number, plural, text, version_tag};
use crate::json_lines::{excerpt, line_in_message};
use crate::layout::{csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::pages::{QueryParams, hook};
use crate::request_context::RequestContext;
use crate::table::table;
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// The number of archived messages on which a changed policy is tried.
const REPLAY_MESSAGES: u64 = 1_000;
/// The timeout of the replay.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn show(context: RequestContext) -> Response {
    let body = context.get::<Vec<Value>>("/v1/hooks").await.map(|hooks| list(&hooks));
    page(&context, "Policies", NavItem::Policies, body)
}

fn list(hooks: &[Value]) -> Markup {
    let rows: Vec<_> = hooks
        .iter()
        .flat_map(|found| {
            let name = text(found, "hook");
            let chain = found["live"]["chain"].as_array().map(Vec::as_slice).unwrap_or_default();
            chain.iter().map(move |one| {
                let policy = text(one, "policy");
                let path = with_query(&format!("/policies/{}", encode_segment(name)), &[("plugin", text(one, "plugin"))]);
                vec![
                    html! { a href=(path) { (name) ": " (text(one, "plugin")) } },
                    version_tag(text(one, "version")),
                    html! { @if policy.is_empty() { span.muted { "none" } } @else { (plural(policy.lines().count() as u64, "line", "lines")) } },
                ]
            })
        })
        .collect();
    let empty = html! {
        h2 { "No plugin has a policy" }
        p { "Only a live plugin has a policy. " a href="/plugins" { "Make one live" } " first." }
    };
    html! { h1 { "Policies" } section.card { (table("Policies", &["Policy", "Plugin's version", "Text"], &rows, &empty)) } }
}

/// The input, errors and results that the page shows.
#[derive(Default)]
struct PolicyPageState<'a> {
    text: Option<String>,
    error: Option<&'a ApiError>,
    /// The report of the replay.
    report: Option<&'a Value>,
    /// Whether the policy was checked and is valid.
    checked: bool,
    /// Why the policy could not be tried on messages.
    untried: Option<&'a ApiError>,
}

pub(crate) async fn edit(
    context: RequestContext,
    Path(hook): Path<String>,
    Query(query): QueryParams,
) -> Response {
    render(&context, &hook, Form::of(query).text("plugin"), &PolicyPageState::default()).await
}

/// The binding of a plugin in the live chain; the first binding if `plugin` is empty.
fn live_binding<'a>(found: &'a Value, plugin: &str) -> Option<&'a Value> {
    let chain = found["live"]["chain"].as_array()?;
    chain.iter().find(|one| plugin.is_empty() || text(one, "plugin") == plugin)
}

async fn render(
    context: &RequestContext,
    hook: &str,
    plugin: &str,
    page_state: &PolicyPageState<'_>,
) -> Response {
    let found = context.get::<Value>(&format!("/v1/hooks/{}", encode_segment(hook))).await;
    let body = found.map(|found| page_body(context, hook, plugin, &found, page_state));
    let mut response = page(context, &format!("Policy: {hook}"), NavItem::Policies, body);
    if let Some(error) = page_state.error {
        *response.status_mut() = error.status;
    }
    response
}

fn page_body(
    context: &RequestContext,
    hook: &str,
    plugin: &str,
    found: &Value,
    page_state: &PolicyPageState<'_>,
) -> Markup {
    let Some(one) = live_binding(found, plugin) else {
        return html! { h1 { "Policy: " (hook) } section.card { p { "No such plugin is live. " a href=(format!("/plugins/{}", encode_segment(hook))) { "Make one live" } "." } } };
    };
    let (plugin, live) = (text(one, "plugin"), text(one, "policy"));
    let shown = page_state.text.as_deref().unwrap_or(live);
    let problems_by_line: Vec<(usize, String)> = page_state
        .error
        .and_then(|error| {
            // A parser prints the place first; the problem is on the last line.
            let what = error.detail.lines().rfind(|line| !line.trim().is_empty())?;
            Some(vec![(line_in_message(&error.detail)?, what.trim().to_owned())])
        })
        .unwrap_or_default();
    let edits = context.has_permission("manage-plugins");
    html! {
        h1 { "Policy: " (hook) ", " (plugin) }
        @if let Some(error) = page_state.error {
            (error_notice(error))
            @if !problems_by_line.is_empty() { section.card #problems { h2 { "Problems" } (excerpt(shown, &problems_by_line)) } }
        }
        @if page_state.checked { div.notice.good role="status" { strong { "The policy is valid." } p { "It is not active yet." } } }
        @if let Some(untried) = page_state.untried { div.notice.warn role="status" { strong { "The policy was not replayed" } p { (untried.detail) } } }
        @if let Some(report) = page_state.report { (replay_report(report)) }
        @if page_state.text.is_some() && shown != live { section.card { h2 { "Differences" } (difference(live, shown)) } }
        section.card {
            form.fields method="post" action=(format!("/policies/{}", encode_segment(hook))) {
                (csrf_field(context))
                input type="hidden" name="plugin" value=(plugin);
                input type="hidden" name="expected" value=(number(&found["live"], "serial"));
                p.wide {
                    label for="policy" { "The document" }
                    textarea.code #policy name="policy" rows="24" spellcheck="false" readonly[!edits] aria-invalid=[page_state.error.map(|_| "true")] { "\n" (shown) }
                }
                @if edits {
                    p {
                        label {
                            input type="checkbox" name="force" value="1";
                            " even if it names peers or pools that do not exist"
                        }
                    }
                    p.actions {
                        button.primary type="submit" name="do" value="check" { "Check" }
                        button.danger type="submit" name="do" value="apply" { "Apply" }
                        a.button.quiet href=(with_query(&format!("/policies/{}", encode_segment(hook)), &[("plugin", plugin)])) { "Start over" }
                    }
                    p.muted { "A check replays the last " (count(REPLAY_MESSAGES)) " messages of the archive, and changes nothing. An invalid policy is never applied." }
                }
            }
        }
    }
}

/// The differences between two texts, line by line.
pub(crate) fn difference(before: &str, after: &str) -> Markup {
    let diff = TextDiff::configure().timeout(Duration::from_millis(50)).diff_lines(before, after);
    let mut left = crate::table::MAX_ROWS;
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

fn replay_report(report: &Value) -> Markup {
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
                html! { @for one in examples.iter().take(3) { @let id = text(one, "id"); a href=(format!("/messages/{}", encode_segment(id))) { code { (id) } } " " } },
            ]
        })
        .collect();
    html! {
        section.card #report role="status" {
            h2 { "Replay" }
            @if number(report, "messages") == 0 {
                p { "The archive has no messages to replay yet." }
            } @else {
                p {
                    "Of the last " (plural(number(report, "messages"), "message", "messages")) ", "
                    (count(number(report, "same"))) " have the same result, " (count(number(report, "different"))) " a different one."
                }
                @let inexact = number(report, "messages").saturating_sub(number(report, "exact"));
                @if inexact > 0 {
                    p.muted { "For " (count(inexact)) " the result may differ: the data that the plugin read then is not recorded." }
                }
            }
            (table("Different results", &["Was", "Would be", "How often", "Messages"], &rows, &html! { p { "There are no differences." } }))
        }
    }
}

pub(crate) async fn change(context: RequestContext, Path(hook): Path<String>, form: Form) -> Response {
    let (plugin, policy) = (form.text("plugin"), form.multiline("policy"));
    let page_state =
        |text: &str| PolicyPageState { text: Some(text.to_owned()), ..PolicyPageState::default() };
    let found = match context.get::<Value>(&format!("/v1/hooks/{}", encode_segment(&hook))).await {
        Ok(found) => found,
        Err(error) => {
            return render(
                &context,
                &hook,
                plugin,
                &PolicyPageState { error: Some(&error), ..page_state(&policy) },
            )
            .await;
        }
    };
    let Some(one) = live_binding(&found, plugin) else {
        let error = ApiError::new(StatusCode::CONFLICT, "This plugin is no longer live.");
        return render(
            &context,
            &hook,
            plugin,
            &PolicyPageState { error: Some(&error), ..page_state(&policy) },
        )
        .await;
    };
    let mut request = hook::binding(&found, plugin, text(one, "version"));
    request.insert("policy".to_owned(), policy.clone().into());
    if form.text("do") == "apply" {
        request.insert("expected".to_owned(), form.text("expected").parse::<u64>().ok().into());
        request.insert("force".to_owned(), (form.text("force") == "1").into());
        let path = format!("/v1/hooks/{}/activate", encode_segment(&hook));
        return match context.send(Method::POST, &path, &form, Some(&Value::Object(request))).await {
            Ok(_) => RequestContext::redirect(
                &with_query(&format!("/policies/{}", encode_segment(&hook)), &[("plugin", plugin)]),
                "changed",
            ),
            Err(error) => {
                render(
                    &context,
                    &hook,
                    plugin,
                    &PolicyPageState { error: Some(&error), ..page_state(&policy) },
                )
                .await
            }
        };
    }
    request.insert("hook".to_owned(), hook.clone().into());
    request.insert("last".to_owned(), REPLAY_MESSAGES.into());
    match run_replay(&context, &form, &Value::Object(request)).await {
        Ok(report) => {
            render(
                &context,
                &hook,
                plugin,
                &PolicyPageState { report: Some(&report), checked: true, ..page_state(&policy) },
            )
            .await
        }
        Err(error) if error.status == StatusCode::UNPROCESSABLE_ENTITY => {
            render(&context, &hook, plugin, &PolicyPageState { error: Some(&error), ..page_state(&policy) })
                .await
        }
        // There is no archive, or another replay runs: the differences are still shown.
        Err(error) => {
            render(&context, &hook, plugin, &PolicyPageState { untried: Some(&error), ..page_state(&policy) })
                .await
        }
    }
}

/// Replays archived messages with a candidate, and waits for the report.
async fn run_replay(context: &RequestContext, form: &Form, request: &Value) -> Result<Value, ApiError> {
    let started: Value = context.send(Method::POST, "/v1/replays", form, Some(request)).await?.read()?;
    let path = format!("/v1/replays/{}", encode_segment(text(&started, "id")));
    let report = tokio::time::timeout(REPLAY_TIMEOUT, async {
        let mut clock = tokio::time::interval(Duration::from_millis(100));
        loop {
            clock.tick().await;
            let replay: Value = context.get(&path).await?;
            if !replay["report"].is_null() {
                return Ok(replay["report"].clone());
            }
        }
    });
    match report.await {
        Ok(report) => report,
        Err(_) => {
            context.send(Method::DELETE, &path, form, None).await?;
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "The replay took too long and was stopped."))
        }
    }
}

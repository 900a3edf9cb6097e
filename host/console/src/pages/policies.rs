//! Policy documents of plugins.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::form::Form;
use crate::format::{count, plural, version_tag};
use crate::layout::{csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::pages::{QueryParams, hook, playground, plugin_setup};
use crate::problem_lines::{excerpt, line_in_message};
use crate::request_context::RequestContext;
use crate::table::table;
use api::{
    ActivationRequest, Binding, HookStateView, MessageCase, Permission, PolicyTryView, ReplayHook,
    ReplayReport, ReplayRequest, ReplayStart, ReplayStateView,
};
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::json;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// The number of archived messages on which a changed policy is tried.
const REPLAY_MESSAGES: u64 = 1_000;
/// The timeout of the replay.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn show(context: RequestContext) -> Response {
    let body = context.get::<Vec<HookStateView>>("/v1/hooks").await.map(|hooks| list(&hooks));
    page(&context, "Policies", NavItem::Policies, body)
}

fn list(hooks: &[HookStateView]) -> Markup {
    let rows: Vec<_> = hooks
        .iter()
        .flat_map(|found| {
            let name = found.hook.name();
            found.live.chain.iter().map(move |one| {
                let policy = &one.policy;
                // Bindings of tenants are set up with their peers.
                let path = match &one.tenant {
                    None => with_query(&format!("/policies/{name}"), &[("plugin", one.plugin.as_str())]),
                    Some(tenant) => plugin_setup::tenant_path(name, one, tenant),
                };
                vec![
                    html! { a href=(path) { (name) ": " (one.plugin) @if let Some(tenant) = &one.tenant { " for " (tenant) } } },
                    version_tag(&one.version),
                    html! { @if policy.is_empty() { span.muted { "none" } } @else { (plural(policy.lines().count() as u64, "line", "lines")) } },
                ]
            })
        })
        .collect();
    let empty = html! {
        h2 { "No plugin has a policy" }
        p { "Only a live plugin has a policy. " a href="/plugins" { "Activate one" } " first." }
    };
    html! { h1 { "Policies" } section.card { (table("Policies", &["Policy", "Plugin's version", "Text"], &rows, &empty)) } }
}

/// The input, errors and results that the page shows.
#[derive(Default)]
struct PolicyPageState<'a> {
    text: Option<String>,
    error: Option<&'a ApiError>,
    /// The report of the replay.
    report: Option<&'a ReplayReport>,
    /// Whether the policy was checked and is valid.
    checked: bool,
    /// The reason why the policy could not be tried on messages.
    try_error: Option<&'a ApiError>,
    /// The decisions of the playground.
    tried: Option<&'a PolicyTryView>,
    /// The case of the playground's message.
    case: Option<&'a MessageCase>,
    /// The submitted form, for the fields of the playground.
    form: Option<&'a Form>,
}

pub(crate) async fn edit(
    context: RequestContext,
    Path(hook): Path<String>,
    Query(query): QueryParams,
) -> Response {
    // The fields of the playground can be filled by a link.
    let query = Form::of(query);
    let page_state = PolicyPageState { form: Some(&query), ..PolicyPageState::default() };
    render(&context, &hook, query.text("plugin"), &page_state).await
}

/// The binding of a plugin in the live chain; the first binding if `plugin` is empty.
fn live_binding<'a>(found: &'a HookStateView, plugin: &str) -> Option<&'a Binding> {
    let mut operators = found.live.chain.iter().filter(|one| one.tenant.is_none());
    operators.find(|one| plugin.is_empty() || one.plugin == plugin)
}

async fn render(
    context: &RequestContext,
    hook: &str,
    plugin: &str,
    page_state: &PolicyPageState<'_>,
) -> Response {
    let found = context.get::<HookStateView>(&format!("/v1/hooks/{}", encode_segment(hook))).await;
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
    found: &HookStateView,
    page_state: &PolicyPageState<'_>,
) -> Markup {
    let Some(one) = live_binding(found, plugin) else {
        return html! { h1 { "Policy: " (hook) } section.card { p { "No such plugin is live. " a href=(format!("/plugins/{}", encode_segment(hook))) { "Activate one" } "." } } };
    };
    let (plugin, live) = (one.plugin.as_str(), one.policy.as_str());
    let shown = page_state.text.as_deref().unwrap_or(live);
    let problems_by_line: Vec<(usize, String)> = page_state
        .error
        .and_then(|error| {
            // A parser prints the position first; the problem is on the last line.
            let what = error.detail.lines().rfind(|line| !line.trim().is_empty())?;
            Some(vec![(line_in_message(&error.detail)?, what.trim().to_owned())])
        })
        .unwrap_or_default();
    let edits = context.has_permission(Permission::ManagePlugins);
    let tries = context.has_permission(Permission::Operate) && playground::is_for(hook);
    // For the script that completes and checks the document.
    let tries_documents = context.has_permission(Permission::Operate);
    let schema =
        format!("/v1/plugins/{}/{}/policy-schema", encode_segment(plugin), encode_segment(&one.version));
    let check = format!("/v1/hooks/{}/try", encode_segment(hook));
    let binding = json!(hook::binding(found, plugin, &one.version)).to_string();
    html! {
        h1 { "Policy: " (hook) ", " (plugin) }
        @if let Some(error) = page_state.error {
            (error_notice(error))
            @if !problems_by_line.is_empty() { section.card #problems { h2 { "Problems" } (excerpt(shown, &problems_by_line)) } }
        }
        @if page_state.checked { div.notice.good role="status" { strong { "The policy is valid." } p { "It is not active yet." } } }
        @if let Some(try_error) = page_state.try_error { div.notice.warn role="status" { strong { "The policy was not replayed" } p { (try_error.detail) } } }
        @if let Some(report) = page_state.report { (replay_report(hook, report)) }
        @if let Some(tried) = page_state.tried { (playground::results(tried)) }
        @if let Some(case) = page_state.case { (playground::case(case)) }
        @if page_state.text.is_some() && shown != live { section.card { h2 { "Differences" } (difference(live, shown)) } }
        section.card {
            form.fields method="post" action=(format!("/policies/{}", encode_segment(hook))) {
                (csrf_field(context))
                input type="hidden" name="plugin" value=(plugin);
                input type="hidden" name="expected" value=(found.live.serial);
                p.wide {
                    label for="policy" { "The document" }
                    textarea.code #policy name="policy" rows="24" spellcheck="false" readonly[!edits && !tries] data-schema=(schema) data-check=[tries_documents.then_some(check)] data-binding=(binding) aria-invalid=[page_state.error.map(|_| "true")] { "\n" (shown) }
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
                        a.button.quiet href=(with_query(&format!("/policies/{}", encode_segment(hook)), &[("plugin", plugin)])) { "Discard changes" }
                    }
                    @if hook == "peer" && context.may_read_bodies() {
                        p {
                            label {
                                input type="checkbox" name="requests" value="1";
                                " show the differences between requests, with numbers and texts; this is recorded in the audit log"
                            }
                        }
                    }
                    p.muted { "A check replays the last " (count(REPLAY_MESSAGES)) " messages of the archive, and changes nothing. An invalid policy is never applied." }
                }
                @if tries_documents { script src="/assets/document-editor.js" defer {} }
                @if tries { (playground::fields(page_state.form.unwrap_or(&Form::default()), context.may_read_bodies() && playground::makes_cases(hook))) }
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

fn replay_report(hook: &str, report: &ReplayReport) -> Markup {
    let decided = match hook {
        "receipt" | "peer" => plural(report.messages, "recorded call", "recorded calls"),
        _ => plural(report.messages, "message", "messages"),
    };
    let rows: Vec<_> = report
        .groups
        .iter()
        .map(|group| {
            vec![
                html! { (group.from) },
                html! { (group.to) },
                html! { (count(group.count)) },
                html! { @for one in group.examples.iter().take(3) { a href=(format!("/messages/{}", one.id)) { code { (one.id.to_string()) } } " " } },
            ]
        })
        .collect();
    html! {
        section.card #report role="status" {
            h2 { "Replay" }
            @if report.messages == 0 {
                p { "The archive has no messages to replay yet." }
            } @else {
                p {
                    "Of the last " (decided) ", "
                    (count(report.same)) " have the same result, " (count(report.different)) " a different one."
                }
                @let inexact = report.messages.saturating_sub(report.exact);
                @if inexact > 0 {
                    p.muted { "For " (count(inexact)) " the result may differ: the data that the plugin read then is not recorded." }
                }
            }
            (table("Different results", &["Archived decision", "Candidate's decision", "Count", "Messages"], &rows, &html! { p { "There are no differences." } }))
            (request_differences(report))
        }
    }
}

/// Differences of the requests to peers, for one message of each group.
fn request_differences(report: &ReplayReport) -> Markup {
    let examples = report.groups.iter().filter_map(|group| group.examples.first());
    let rows: Vec<_> = examples
        .flat_map(|example| {
            example.request.iter().map(move |one| {
                let shown = |value: &Option<String>| html! { @if let Some(text) = value { code { (text) } } };
                vec![
                    html! { a href=(format!("/messages/{}", example.id)) { code { (example.id.to_string()) } } },
                    html! { (one.part) },
                    shown(&one.live),
                    shown(&one.candidate),
                ]
            })
        })
        .collect();
    html! {
        @if !rows.is_empty() {
            (table("Different requests", &["Message", "Part of the request", "Live", "Candidate"], &rows, &html! {}))
        }
    }
}

pub(crate) async fn change(context: RequestContext, Path(hook): Path<String>, form: Form) -> Response {
    let (plugin, policy) = (form.text("plugin"), form.multiline("policy"));
    let page_state = |text: &str| PolicyPageState {
        text: Some(text.to_owned()),
        form: Some(&form),
        ..PolicyPageState::default()
    };
    let found = match context.get::<HookStateView>(&format!("/v1/hooks/{}", encode_segment(&hook))).await {
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
    let request = hook::binding(&found, plugin, &one.version);
    let mut request = ActivationRequest { policy: Some(policy.clone()), ..request };
    if form.text("do") == "apply" {
        request.expected = form.text("expected").parse().ok();
        request.force = Some(form.text("force") == "1");
        let path = format!("/v1/hooks/{}/activate", encode_segment(&hook));
        return match context.send(Method::POST, &path, &form, Some(&json!(request))).await {
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
    if form.text("do") == "make-case" {
        let made = playground::make_case(&context, &form, &hook, request).await;
        let page_state = match &made {
            Ok(made) => PolicyPageState { case: made.as_ref(), ..page_state(&policy) },
            Err(error) => PolicyPageState { error: Some(error), ..page_state(&policy) },
        };
        return render(&context, &hook, plugin, &page_state).await;
    }
    if form.text("do").starts_with("try-") {
        let tried = playground::run(&context, &form, &hook, request).await;
        let page_state = match &tried {
            Ok(tried) => PolicyPageState { tried: Some(tried), ..page_state(&policy) },
            Err(error) => PolicyPageState { error: Some(error), ..page_state(&policy) },
        };
        return render(&context, &hook, plugin, &page_state).await;
    }
    match run_replay(&context, &form, &hook, request).await {
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
            render(
                &context,
                &hook,
                plugin,
                &PolicyPageState { try_error: Some(&error), ..page_state(&policy) },
            )
            .await
        }
    }
}

/// Replays archived messages with a candidate, and waits for the report.
async fn run_replay(
    context: &RequestContext,
    form: &Form,
    hook: &str,
    activation: ActivationRequest,
) -> Result<ReplayReport, ApiError> {
    let hook = ReplayHook::named(hook).ok_or_else(|| {
        ApiError::bad_request(
            "Only policies of screens, lookups, routers, billers, receipt policies and peers can be replayed.",
        )
    })?;
    let request = json!(ReplayRequest {
        hook: Some(hook),
        last: Some(REPLAY_MESSAGES),
        activation,
        ..ReplayRequest::default()
    });
    let started: ReplayStart =
        context.send(Method::POST, "/v1/replays", form, Some(&request)).await?.read()?;
    let path = format!("/v1/replays/{}", encode_segment(&started.id));
    let report = tokio::time::timeout(REPLAY_TIMEOUT, async {
        let mut clock = tokio::time::interval(Duration::from_millis(100));
        loop {
            clock.tick().await;
            let replay: ReplayStateView = context.get(&path).await?;
            if let Some(report) = replay.report.flatten() {
                if form.text("requests") != "1" {
                    return Ok(report);
                }
                // Texts are requested only once, since each request for texts is in the audit log.
                let whole: ReplayStateView = context.get(&with_query(&path, &[("body", "1")])).await?;
                return Ok(whole.report.flatten().unwrap_or(report));
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

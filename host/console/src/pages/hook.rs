//! A hook: its live chain, its candidate, faults, events and history.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::{ago, count, figure, octets, plural, state_badge, time_tag, version_tag, with_times};
use crate::layout::{action_button, csrf_field, error_notice, live_page};
use crate::live::Region;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::pages::faults::{faults, message};
use crate::request_context::RequestContext;
use crate::table::table;
use api::{
    ActivationRequest, Binding, Comparison, HookStateView, OnFault, Permission, PluginCountsView,
    PluginVersionView, PromotionRequest, TrialModeView, TrialRequest,
};
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::json;
use std::collections::BTreeMap;

pub(crate) async fn regions(context: &RequestContext, hook: &str) -> Result<Vec<Region>, ApiError> {
    let state: HookStateView = context.get(&format!("/v1/hooks/{}", encode_segment(hook))).await?;
    Ok(vec![
        ("now", live_binding_list(&state)),
        ("faults", faults(&state, context.may_read_bodies())),
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
    let (found, stored) = tokio::join!(
        context.get::<HookStateView>(&path),
        context.get::<Vec<PluginVersionView>>("/v1/plugins")
    );
    let (found, stored) = (found?, stored?);
    let versions: Vec<&PluginVersionView> =
        stored.iter().rev().filter(|one| one.hook == found.hook).collect();
    let manages = context.has_permission(Permission::ManagePlugins);
    Ok(html! {
        div.heading {
            h1 { (hook) }
            a.button.quiet href=(format!("/policies/{}", encode_segment(hook))) { "Policies" }
        }
        @if let Some(error) = error { (error_notice(error)) }
        section.card { h2 { "Live" } div #now { (live_binding_list(&found)) } @if manages { (live_actions(context, &found)) } }
        section.card { h2 { "Faults" } div #faults { (faults(&found, context.may_read_bodies())) } }
        section.card { h2 { "Candidate" } div #trial { (trial(&found)) } @if manages && found.candidate.is_some() { (trial_actions(context, &found)) } }
        @if manages { (version_form(context, &found, &versions, query)) }
        section.card { h2 { "Events" } div #events { (events(&found)) } }
        section.card { h2 { "History" } (history(&found)) }
    })
}

fn bindings(chain: &[Binding]) -> Markup {
    html! {
        ol.chain {
            @for one in chain {
                li {
                    strong { (one.plugin) } " " (version_tag(&one.version))
                    span.muted {
                        " " (one.deadline.as_millis()) " ms and " (crate::format::octets(one.memory as u64))
                        " for a call; on a fault, " (on_fault_text(&one.on_fault)) "."
                    }
                }
            }
        }
    }
}

/// The effect of a fault, as a text.
fn on_fault_text(on_fault: &OnFault) -> String {
    match on_fault {
        OnFault::Hold => "it is called again later".to_owned(),
        OnFault::Reject => "the message is refused".to_owned(),
        OnFault::Pass => "the plugin is skipped".to_owned(),
        OnFault::Peer(peer) => format!("the message goes to {peer}"),
    }
}

fn live_binding_list(found: &HookStateView) -> Markup {
    let live = &found.live;
    html! {
        @if live.chain.is_empty() {
            p { "This hook has no plugins." }
        } @else {
            (bindings(&live.chain))
            p.muted { (live.change.name()) ", change " (live.serial) ", " (ago(live.since.0)) }
            (counts_table(&[("Live", &found.counts[..])]))
        }
    }
}

/// The counts of chains, side by side.
fn counts_table(columns: &[(&str, &[PluginCountsView])]) -> Markup {
    let calls = |counts: &[PluginCountsView]| counts.iter().map(|one| one.calls).sum::<u64>();
    let nanoseconds = |counts: &[PluginCountsView]| counts.iter().map(|one| one.nanoseconds).sum::<u64>();
    let faults = |counts: &[PluginCountsView], kind: &str| {
        let by_kind = counts.iter().flat_map(|one| one.faults.by_kind());
        by_kind.filter(|(name, _)| *name == kind).map(|(_, count)| count).sum::<u64>()
    };
    // Kinds of faults that never happened are left out.
    let mut kinds: Vec<&str> = Vec::new();
    for one in columns.iter().flat_map(|(_, counts)| *counts) {
        for (kind, count) in one.faults.by_kind() {
            if count > 0 && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    let line = |name: String, each: &dyn Fn(&[PluginCountsView]) -> String| -> Vec<Markup> {
        std::iter::once(html! { (name) })
            .chain(columns.iter().map(|(_, counts)| html! { (each(counts)) }))
            .collect()
    };
    let mut rows = vec![
        line("Calls".to_owned(), &|counts| count(calls(counts))),
        line("Time of a call".to_owned(), &|counts| match calls(counts) {
            0 => "—".to_owned(),
            calls => format!("{} µs", figure(nanoseconds(counts) as f64 / calls as f64 / 1_000.0)),
        }),
    ];
    let memory = |counts: &[PluginCountsView]| counts.iter().map(|one| one.memory).max().unwrap_or_default();
    rows.push(line("Memory of an instance, at most".to_owned(), &|counts| match memory(counts) {
        0 => "—".to_owned(),
        highest => octets(highest),
    }));
    rows.push(line("Host calls".to_owned(), &|counts| {
        let mut sums = BTreeMap::<&str, u64>::new();
        for (interface, calls) in counts.iter().flat_map(|one| &one.host_calls) {
            *sums.entry(interface).or_default() += calls;
        }
        let each: Vec<String> =
            sums.into_iter().map(|(interface, calls)| format!("{interface} {}", count(calls))).collect();
        if each.is_empty() { "none".to_owned() } else { each.join(", ") }
    }));
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

fn trial(found: &HookStateView) -> Markup {
    let Some(candidate) = &found.candidate else {
        return html! { p { "No candidate is on trial. A candidate can run in the shadow of the live chain, or as a canary for a share of the destinations." } };
    };
    let record = &candidate.record;
    html! {
        (bindings(&record.chain))
        p {
            (state_badge(record.mode.name()))
            @if let Some(share) = record.share { " decides for " (figure(f64::from(share) / 100.0)) " % of the destinations" }
            " since " (time_tag(record.since))
        }
        @if let Some(comparison) = &candidate.comparison { (comparison_details(comparison)) } @else {
            p {
                @let (asked, failed) = (candidate.asked, candidate.failed);
                (plural(asked, "call was its own", "calls were its own"))
                @if failed > 0 { ", " (count(failed)) " failed and were answered by the live chain" }
                @else if asked > 0 { ", without faults" }
                ". " (plural(candidate.bypassed, "call bypassed it", "calls bypassed it")) "."
            }
        }
        h3 { "Side by side" }
        (counts_table(&[("Live", &found.counts[..]), ("Candidate", &candidate.counts[..])]))
    }
}

fn comparison_details(comparison: &Comparison) -> Markup {
    let Comparison { same, different, .. } = *comparison;
    let rows: Vec<_> = comparison
        .differences
        .iter()
        .map(|one| {
            vec![
                html! { (one.from) },
                html! { (one.to) },
                html! { (count(one.count)) },
                html! {
                    @for (sample, id) in one.samples.iter().zip(&one.messages).take(5) {
                        div { (sample) " " (message(id.as_deref(), "")) }
                    }
                },
            ]
        })
        .collect();
    html! {
        p {
            (plural(comparison.compared, "answer", "answers")) " compared: " (count(same)) " the same, " (count(different)) " different, "
            (count(comparison.skipped)) " skipped."
        }
        (crate::chart::bar("Share of answers that are the same and different", &[("good", same), ("warn", different)]))
        (table("Differences", &["Live answer", "Candidate's answer", "Count", "Call"], &rows, &html! { p { "There are no differences." } }))
    }
}

fn events(found: &HookStateView) -> Markup {
    let rows: Vec<_> = found
        .events
        .iter()
        .take(20)
        .map(|event| {
            vec![time_tag(event.at.0), state_badge(&event.kind), html! { (with_times(&event.what)) }]
        })
        .collect();
    table("Events, newest first", &["When", "Event", "Details"], &rows, &html! { p { "No events yet." } })
}

fn history(found: &HookStateView) -> Markup {
    let rows: Vec<_> = found
        .history
        .iter()
        .flatten()
        .take(30)
        .map(|record| {
            vec![
                html! { (record.serial) },
                time_tag(record.since.0),
                html! { (record.change.name()) },
                html! { @if record.chain.is_empty() { "nothing" } @for one in &record.chain { span.plugin { (one.plugin) " " (version_tag(&one.version)) } } },
                html! { (record.rollback_reason.as_deref().unwrap_or("—")) },
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

fn live_actions(context: &RequestContext, found: &HookStateView) -> Markup {
    let action = format!("/plugins/{}", found.hook.name());
    html! {
        @if found.history.as_ref().is_some_and(|history| history.len() > 1) {
            div.actions { (action_button(context, &action, "Roll back to the chain before", "danger", &[("do", "rollback")])) }
        }
    }
}

fn trial_actions(context: &RequestContext, found: &HookStateView) -> Markup {
    let action = format!("/plugins/{}", found.hook.name());
    let serial = found.live.serial.to_string();
    html! {
        div.actions {
            (action_button(context, &action, "Promote", "primary", &[("do", "promote"), ("expected", &serial)]))
            (action_button(context, &action, "End the trial", "", &[("do", "dismiss")]))
        }
    }
}

fn version_form(
    context: &RequestContext,
    found: &HookStateView,
    versions: &[&PluginVersionView],
    query: &Form,
) -> Markup {
    let hook = found.hook.name();
    html! {
        section.card {
            h2 { "Activate a version, or start a candidate" }
            @if versions.is_empty() {
                p { "No version for this hook is stored. " a href="/plugins" { "Upload one" } "." }
            } @else {
                form.fields method="post" action=(format!("/plugins/{hook}")) {
                    (csrf_field(context))
                    input type="hidden" name="expected" value=(found.live.serial);
                    p {
                        label for="version" { "Version" }
                        select #version name="version" {
                            @for one in versions {
                                option value=(format!("{} {}", one.plugin, one.version)) selected[query.text("version") == one.version] {
                                    (one.plugin) " " (crate::format::short_version(&one.version)) ", " (crate::format::octets(one.size))
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
                        button type="submit" name="do" value="shadow" { "Start as a shadow" }
                        button.danger type="submit" name="do" value="activate" { "Activate now" }
                    }
                    p.muted {
                        "The version uses the policy and the limits of the live binding of the same plugin, if there is one"
                        @if hook == "router" { "; a different plugin replaces the whole chain" } "."
                    }
                }
            }
        }
    }
}

/// The request for a binding, at the plugin's position in the live chain if it has one.
pub(crate) fn binding(found: &HookStateView, plugin: &str, version: &str) -> ActivationRequest {
    let position = found.live.chain.iter().position(|one| one.plugin == plugin);
    ActivationRequest {
        plugin: Some(plugin.to_owned()),
        version: Some(version.to_owned()),
        position: position.map(|position| position as u64),
        ..ActivationRequest::default()
    }
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
        "promote" => {
            (Method::POST, "/promote", Some(json!(PromotionRequest { expected, why: None })), "promoted")
        }
        what @ ("canary" | "shadow" | "activate") => {
            let (plugin, version) = form
                .text("version")
                .split_once(' ')
                .ok_or_else(|| ApiError::bad_request("Choose a version."))?;
            let found: HookStateView = context.get(&path).await?;
            let force = Some(form.text("force") == "1");
            let activation = ActivationRequest { expected, force, ..binding(&found, plugin, version) };
            let trial = |mode, share| json!(TrialRequest { mode, share, activation: activation.clone() });
            match what {
                "activate" => (Method::POST, "/activate", Some(json!(activation)), "activated"),
                "shadow" => {
                    (Method::POST, "/candidate", Some(trial(TrialModeView::Shadow, None)), "candidate")
                }
                _ => {
                    let share = form.text("share").trim_end_matches('%').trim().parse::<f64>();
                    let share = share.map_err(|_| {
                        ApiError::bad_request("The share of a canary is a number of percent.")
                    })?;
                    let request = trial(TrialModeView::Canary, Some(share));
                    (Method::POST, "/candidate", Some(request), "candidate")
                }
            }
        }
        _ => return Err(ApiError::new(StatusCode::BAD_REQUEST, "This action does not exist.")),
    };
    context.send(method, &format!("{path}{below}"), form, body.as_ref()).await?;
    Ok(done)
}

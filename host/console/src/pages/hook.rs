//! A hook: its live chain and its candidate side by side, their cost over time, faults, stored versions, events and
//! history.

use crate::api_caller::{ApiError, encode_segment};
use crate::chart::{Line, TimeAxis, chart};
use crate::form::Form;
use crate::format::{ago, count, figure, octets, plural, state_badge, time_tag, version_tag, with_times};
use crate::layout::{action_button, error_notice, live_page};
use crate::live::Region;
use crate::nav::NavItem;
use crate::pages::faults::{faults, message};
use crate::pages::plugin_setup;
use crate::request_context::RequestContext;
use crate::table::{Column, numeric_table, table};
use api::{
    ActivationRequest, Binding, CallSumView, CandidateStateView, Comparison, Grants, HookCallsIntervalView,
    HookCallsView, HookStateView, OnFault, Permission, PluginCountsView, PluginVersionView, PromotionRequest,
    TrialModeView,
};
use axum::extract::Path;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::json;
use std::collections::BTreeMap;

pub(crate) async fn regions(context: &RequestContext, hook: &str) -> Result<Vec<Region>, ApiError> {
    let path = format!("/v1/hooks/{}", encode_segment(hook));
    let calls_path = format!("{path}/calls");
    let (state, calls) = tokio::join!(context.get::<HookStateView>(&path), context.get(&calls_path));
    let (state, calls) = (state?, calls?);
    Ok(vec![
        ("now", live_chain(&state)),
        ("trial", trial(&state)),
        ("comparison", comparison(&state)),
        ("cost", cost_charts(&calls, &state)),
        ("faults", faults(&state, context.may_read_bodies())),
        ("events", events(&state)),
    ])
}

pub(crate) async fn show(context: RequestContext, Path(hook): Path<String>) -> Response {
    render(&context, &hook, None).await
}

async fn render(context: &RequestContext, hook: &str, error: Option<&ApiError>) -> Response {
    let body = page_body(context, hook, error).await;
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
    error: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let path = format!("/v1/hooks/{}", encode_segment(hook));
    let calls_path = format!("{path}/calls");
    let (found, stored, calls) = tokio::join!(
        context.get::<HookStateView>(&path),
        context.get::<Vec<PluginVersionView>>("/v1/plugins"),
        context.get(&calls_path),
    );
    let (found, stored, calls) = (found?, stored?, calls?);
    let versions: Vec<&PluginVersionView> =
        stored.iter().rev().filter(|one| one.hook == found.hook).collect();
    let manages = context.has_permission(Permission::ManagePlugins);
    Ok(html! {
        div.heading {
            h1 { (hook) }
            a.button.quiet href=(format!("/policies/{}", encode_segment(hook))) { "Policies" }
        }
        @if let Some(error) = error { (error_notice(error)) }
        div.columns.equal {
            section.card { h2 { "Live" } div #now { (live_chain(&found)) } @if manages { (live_actions(context, &found)) } }
            section.card { h2 { "Candidate" } div #trial { (trial(&found)) } @if manages && found.candidate.is_some() { (trial_actions(context, &found)) } }
        }
        div #comparison { (comparison(&found)) }
        div.charts #cost { (cost_charts(&calls, &found)) }
        section.card { h2 { "Faults" } div #faults { (faults(&found, context.may_read_bodies())) } }
        section.card { h2 { "Stored versions" } (version_list(&found, &versions, manages)) }
        section.card { h2 { "Events" } div #events { (events(&found)) } }
        section.card { h2 { "History" } (history(&found)) }
    })
}

/// The plugins of a chain in one line; bindings of tenants are only counted.
pub(crate) fn chain_tags(chain: &[Binding]) -> Markup {
    let tenants = chain.iter().filter(|one| one.tenant.is_some()).count() as u64;
    html! {
        @if chain.is_empty() { "nothing" }
        @for one in chain.iter().filter(|one| one.tenant.is_none()) { span.plugin { (one.plugin) " " (version_tag(&one.version)) } }
        @if tenants > 0 { span.plugin { (plural(tenants, "binding of a tenant", "bindings of tenants")) } }
    }
}

/// The bindings of a chain, each with its document, limits and grants.
fn bindings(chain: &[Binding]) -> Markup {
    let numbered = || (1..).zip(chain);
    let tenants = chain.iter().filter(|one| one.tenant.is_some()).count() as u64;
    html! {
        (binding_list(numbered().filter(|(_, one)| one.tenant.is_none())))
        @if tenants > 0 {
            details {
                summary { (plural(tenants, "binding of a tenant", "bindings of tenants")) }
                (binding_list(numbered().filter(|(_, one)| one.tenant.is_some())))
            }
        }
    }
}

/// Bindings with their places in the chain, from 1.
fn binding_list<'a>(bindings: impl Iterator<Item = (u64, &'a Binding)>) -> Markup {
    html! {
        ol.chain {
            @for (place, one) in bindings {
                li value=(place) {
                    strong { (one.plugin) } " " (version_tag(&one.version))
                    @if let Some(tenant) = &one.tenant {
                        " for tenant " (tenant) ", to " (if one.peers.is_empty() { "no peer".to_owned() } else { one.peers.join(", ") })
                    } @else if !one.peers.is_empty() { " for " (one.peers.join(", ")) }
                    dl.facts.small {
                        div { dt { "Policy" } dd {
                            @match one.policy.lines().count() as u64 {
                                0 => "none",
                                lines => { (plural(lines, "line", "lines")) },
                            }
                        } }
                        div { dt { "Grants" } dd { (grants_text(&one.grants)) } }
                        div { dt { "A call" } dd { (one.deadline.as_millis()) " ms, " (octets(one.memory as u64)) } }
                        div { dt { "On a fault" } dd { (on_fault_text(&one.on_fault)) } }
                    }
                }
            }
        }
    }
}

/// The grants in a few words.
fn grants_text(grants: &Grants) -> String {
    let mut words = Vec::new();
    if !grants.tables.is_empty() {
        words.push(format!("tables {}", grants.tables.join(", ")));
    }
    if !grants.http.is_empty() {
        words.push(plural(grants.http.len() as u64, "URL", "URLs"));
    }
    if grants.kv > 0 {
        words.push(format!("{} of values", octets(grants.kv)));
    }
    if grants.hlr {
        words.push("HLR".to_owned());
    }
    if let Some(dns) = &grants.dns {
        words.push(format!("DNS {}", dns.zones.join(", ")));
    }
    if !grants.counters.is_empty() {
        words.push(plural(grants.counters.len() as u64, "durable counter", "durable counters"));
    }
    if grants.quality.is_some() {
        words.push("figures of peers".to_owned());
    }
    if grants.random {
        words.push("random numbers".to_owned());
    }
    if words.is_empty() { "none".to_owned() } else { words.join("; ") }
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

fn live_chain(found: &HookStateView) -> Markup {
    let live = &found.live;
    html! {
        @if live.chain.is_empty() {
            p { "This hook has no plugins." }
        } @else {
            (bindings(&live.chain))
            p.muted { (live.change.name()) ", change " (live.serial) ", " (ago(live.since.0)) }
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
    let mut heads = vec![Column::Text("Since the start")];
    heads.extend(columns.iter().map(|(name, _)| Column::Number(name)));
    html! { div.counts { (numeric_table("Counts", &heads, &rows, &html! {})) } }
}

fn trial(found: &HookStateView) -> Markup {
    let Some(candidate) = &found.candidate else {
        return html! { p { "No candidate is on trial. A candidate can run in the shadow of the live chain, or as a canary for a share of the destinations." } };
    };
    let record = &candidate.record;
    html! {
        (bindings(&record.chain))
        p.muted {
            (state_badge(record.mode.name()))
            @if let Some(share) = record.share { " decides for " (figure(f64::from(share) / 100.0)) " % of the destinations" }
            " since " (time_tag(record.since))
        }
    }
}

/// The counts of the live chain and the candidate, and how their answers differ.
fn comparison(found: &HookStateView) -> Markup {
    let live = (found.candidate.is_some() || !found.counts.is_empty()).then_some(&found.counts[..]);
    let Some(live) = live else { return html! {} };
    let Some(candidate) = &found.candidate else {
        return html! { section.card { h2 { "Calls" } (counts_table(&[("Live", live)])) } };
    };
    let mode = match candidate.record.mode {
        TrialModeView::Shadow => "Shadow",
        TrialModeView::Canary => "Canary",
    };
    html! {
        section.card {
            h2 { "Side by side" }
            @match &candidate.comparison {
                Some(compared) => (agreement(compared)),
                None => (canary_calls(candidate)),
            }
            (counts_table(&[("Live", live), (mode, &candidate.counts[..])]))
            @if let Some(compared) = &candidate.comparison { (differences(compared)) }
        }
    }
}

fn canary_calls(candidate: &CandidateStateView) -> Markup {
    let (asked, failed) = (candidate.asked, candidate.failed);
    html! {
        p {
            (plural(asked, "call went to the canary", "calls went to the canary"))
            @if failed > 0 { ", " (count(failed)) " failed and were answered by the live chain" }
            @else if asked > 0 { ", without faults" }
            ". " (plural(candidate.bypassed, "call bypassed it", "calls bypassed it")) "."
        }
    }
}

/// The charts of the last hour: calls, their duration and their faults.
fn cost_charts(calls: &HookCallsView, found: &HookStateView) -> Markup {
    let has_candidate =
        found.candidate.is_some() || calls.intervals.iter().any(|interval| interval.candidate.calls > 0);
    let missing = calls.capacity.saturating_sub(calls.intervals.len());
    let seconds = calls.interval_ms as f64 / 1_000.0;
    let points = |each: &dyn Fn(&HookCallsIntervalView) -> Option<f64>| -> Vec<Option<f64>> {
        std::iter::repeat_n(None, missing).chain(calls.intervals.iter().map(each)).collect()
    };
    let rate = |sum: &CallSumView| Some(sum.calls as f64 / seconds.max(1.0));
    let time =
        |sum: &CallSumView| (sum.calls > 0).then(|| sum.nanoseconds as f64 / sum.calls as f64 / 1_000.0);
    let lines = |of: &dyn Fn(&CallSumView) -> Option<f64>| {
        let mut lines = vec![Line { name: "live", class: "s1", points: points(&|one| of(&one.live)) }];
        if has_candidate {
            // No candidate was on trial in an interval without calls, or it was not asked.
            let candidate =
                |one: &HookCallsIntervalView| of(&one.candidate).filter(|_| one.candidate.calls > 0);
            lines.push(Line { name: "candidate", class: "s2", points: points(&candidate) });
        }
        lines
    };
    let minutes = calls.capacity as u64 * calls.interval_ms / 60_000;
    let labels = vec![html! { (minutes) " min ago" }, html! { (minutes / 2) " min ago" }, html! { "now" }];
    let axis = TimeAxis { range: format!("{minutes} minutes"), labels, marks: Vec::new() };
    let faulty = calls.intervals.iter().any(|one| one.live.faults + one.candidate.faults > 0);
    html! {
        @if !found.live.chain.is_empty() || has_candidate {
            (chart("Time of a call", "µs", &axis, &lines(&time)))
            (chart("Calls", "/s", &axis, &lines(&rate)))
            @if faulty { (chart("Faults", "in 30 s", &axis, &lines(&|sum| Some(sum.faults as f64)))) }
        }
    }
}

/// The share of equal answers.
fn agreement(comparison: &Comparison) -> Markup {
    let Comparison { compared, same, different, skipped, .. } = *comparison;
    html! {
        @if compared == 0 {
            p { "No answer is compared yet." }
        } @else {
            p.agreement {
                strong { (format!("{:.2}", same as f64 / compared as f64 * 100.0)) " %" }
                " of " (plural(compared, "answer", "answers")) " are the same; " (count(different)) " different"
                @if skipped > 0 { ", " (count(skipped)) " not compared because the candidate was too slow" }
                "."
            }
            (crate::chart::bar("Share of answers that are the same and different", &[("good", same), ("warn", different)]))
        }
    }
}

/// The differences by kind, most frequent first, with examples.
fn differences(comparison: &Comparison) -> Markup {
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
    let columns = [
        Column::Text("Live answer"),
        Column::Text("Candidate's answer"),
        Column::Number("Count"),
        Column::Text("Examples"),
    ];
    html! {
        h3 { "Differences" }
        (numeric_table("Differences, most frequent first", &columns, &rows, &html! { p { "There are no differences." } }))
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
                chain_tags(&record.chain),
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
            div.actions { (action_button(context, &action, "Roll back to the previous chain", "danger", &[("do", "rollback")])) }
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

/// The stored versions of the hook, newest first. Users who manage plugins can set up a version.
fn version_list(found: &HookStateView, versions: &[&PluginVersionView], manages: bool) -> Markup {
    let hook = found.hook.name();
    let is_in = |chain: &[Binding], one: &PluginVersionView| {
        chain.iter().any(|bound| bound.plugin == one.plugin && bound.version == one.version)
    };
    let state = |one: &PluginVersionView| {
        if is_in(&found.live.chain, one) {
            state_badge("live")
        } else if found.candidate.as_ref().is_some_and(|candidate| is_in(&candidate.record.chain, one)) {
            state_badge("on trial")
        } else {
            html! { "stored" }
        }
    };
    let rows: Vec<_> = versions
        .iter()
        .map(|one| {
            let mut row = vec![
                html! { strong { (one.plugin) } },
                version_tag(&one.version),
                state(one),
                html! { (octets(one.size)) },
                html! { @match &one.signed_by { Some(who) => { (who) } None => { span.muted { "not signed" } } } },
            ];
            if manages {
                row.push(html! { a href=(plugin_setup::path(hook, &one.plugin, &one.version)) { "Set up" } });
            }
            row
        })
        .collect();
    let mut columns = vec![
        Column::Text("Plugin"),
        Column::Text("Version"),
        Column::Text("State"),
        Column::Number("Size"),
        Column::Text("Signed by"),
    ];
    if manages {
        columns.push(Column::Text("Policy, grants, start"));
    }
    let empty = html! { p { "No version for this hook is stored. " @if manages { a href="/plugins" { "Upload one" } "." } } };
    numeric_table("Versions, newest first", &columns, &rows, &empty)
}

/// The request for a binding, at the plugin's position in the live chain if it has one.
pub(crate) fn binding(found: &HookStateView, plugin: &str, version: &str) -> ActivationRequest {
    let position = found.live.chain.iter().position(|one| one.plugin == plugin && one.tenant.is_none());
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
        Err(error) => render(&context, &hook, Some(&error)).await,
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
        _ => return Err(ApiError::new(StatusCode::BAD_REQUEST, "This action does not exist.")),
    };
    context.send(method, &format!("{path}{below}"), form, body.as_ref()).await?;
    Ok(done)
}

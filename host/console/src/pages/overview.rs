//! The overview: figures, traffic, findings and charts.

mod charts;

use crate::api_caller::ApiError;
use crate::chart::bar;
use crate::form::Form;
use crate::format::{count, duration_text, figure, octets, state_badge, with_times};
use crate::layout::live_page;
use crate::live::Region;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::pages::hook::chain_tags;
use crate::request_context::RequestContext;
use crate::table::{Column, numeric_table};
use crate::traffic_map::{MapInput, traffic_map};
use api::{
    AttentionSeverity, AttentionSubjectKind, AttentionView, HookStateView, LinkRole, LinksSummaryView,
    Permission, RecentMetricsView, StatusView, TrafficMapView,
};
use axum::extract::Query;
use axum::response::{IntoResponse, Redirect, Response};
use charts::{ChartRange, RecentMetrics, charts};
use maud::{Markup, html};
use std::collections::HashMap;

/// The maximum number of findings of one code that are shown.
const MAX_PER_CODE: usize = 5;

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    if !context.has_permission(Permission::Read) || context.principal.tenant.is_some() {
        return Redirect::to("/messages").into_response();
    }
    let range = ChartRange::named(Form::of(query).text("range"));
    let body = regions(&context, range.name()).await.map(|regions| {
        html! {
            h1.visually-hidden { "Overview" }
            @for (id, part) in regions { section.(id) id=(id) { (part) } }
        }
    });
    live_page(
        &context,
        "Overview",
        NavItem::Overview,
        Some(&format!("/live?of=overview&id={}", range.name())),
        body,
    )
}

/// The regions, with charts over the range of this name.
pub(crate) async fn regions(context: &RequestContext, range: &str) -> Result<Vec<Region>, ApiError> {
    let range = ChartRange::named(range);
    let (status, recent, links, hooks, found, traffic, history) = tokio::join!(
        context.get::<StatusView>("/v1/status"),
        context.get_optional::<RecentMetricsView>("/v1/metrics/recent"),
        context.get::<LinksSummaryView>("/v1/links/summary"),
        context.get_optional::<Vec<HookStateView>>("/v1/hooks"),
        context.get::<Vec<AttentionView>>("/v1/attention"),
        context.get::<TrafficMapView>("/v1/traffic/map"),
        range.history(context),
    );
    let (status, links, found, traffic) = (status?, links?, found?, traffic?);
    let hooks = hooks.unwrap_or_default();
    let recent = RecentMetrics::of(recent.as_ref());
    Ok(vec![
        ("traffic", traffic_map(&MapInput { traffic: &traffic, hooks: &hooks, findings: &found })),
        ("attention", html! { h2 { "Needs attention" } (attention(&found, crate::format::now())) }),
        ("figures", figures(&status, &recent)),
        ("charts", charts(range, &recent, history.as_ref())),
        ("summaries", html! { (links_summary(&links)) (plugins_summary(&hooks)) }),
    ])
}

fn figures(status: &StatusView, recent: &RecentMetrics) -> Markup {
    let tile = |name: &str, what: Markup, below: String| {
        html! { div.tile { span.name { (name) } strong { (what) } span.muted { (below) } } }
    };
    let rate = |line: &[Option<f64>]| match charts::newest(line) {
        Some(rate) => html! { (figure(rate)) small { " /s" } },
        None => html! { "—" },
    };
    let totals = &status.totals;
    let failed = totals.failed + totals.expired + totals.rejected + totals.unknown;
    html! {
        (tile("Accepted", rate(&recent.accepted), format!("{} since the start", count(totals.accepted))))
        (tile(
            "Delivered",
            rate(&recent.delivered),
            format!("{} since the start", count(totals.delivered + totals.relayed)),
        ))
        (tile("Waiting", html! { (count(status.waiting)) }, "queued, deferred or in flight".to_owned()))
        (tile("Not delivered", rate(&recent.failed), format!("{} since the start", count(failed))))
        (tile(
            "Up",
            html! { (duration_text(status.uptime_seconds * 1_000)) },
            format!("{} {}, {} free", status.name, status.version, octets(status.disk_free)),
        ))
    }
}

/// The path of the page for a finding, and the text of the link.
fn link_for(finding: &AttentionView) -> (String, &'static str) {
    let name = crate::api_caller::encode_segment(finding.subject.name.as_deref().unwrap_or_default());
    match (finding.code.as_str(), finding.subject.kind) {
        ("draining", _) => ("/maintenance".to_owned(), "End the drain"),
        ("configuration-unconfirmed", _) => ("/configuration".to_owned(), "Confirm or revert"),
        ("messages-uncertain", _) => ("/uncertain".to_owned(), "Settle them"),
        ("unknown-reference", _) => (format!("/policies/{name}"), "Edit policy"),
        (_, AttentionSubjectKind::Peer) => (format!("/peers/{name}"), "Show and test"),
        (_, AttentionSubjectKind::Account) => (format!("/accounts/{name}"), "Show"),
        (_, AttentionSubjectKind::Queue) => ("/queues".to_owned(), "Show queues"),
        (_, AttentionSubjectKind::Hook) => (format!("/plugins/{name}"), "Show faults"),
        (_, AttentionSubjectKind::CoreNetwork) => ("/networks".to_owned(), "Show"),
        (_, AttentionSubjectKind::Archive) => ("/archive".to_owned(), "Show archive"),
        (_, AttentionSubjectKind::EventSink) => ("/archive#events".to_owned(), "Show event sinks"),
        (_, AttentionSubjectKind::Cluster) => ("/cluster".to_owned(), "Show"),
        (_, AttentionSubjectKind::Configuration) => ("/configuration".to_owned(), "Show"),
        (_, AttentionSubjectKind::Appliance) => ("/maintenance".to_owned(), "Show"),
    }
}

/// The page that lists all findings of this kind.
fn list_link(finding: &AttentionView) -> Option<&'static str> {
    match finding.subject.kind {
        AttentionSubjectKind::Peer => Some("/peers?state=down"),
        AttentionSubjectKind::Account => Some("/accounts"),
        AttentionSubjectKind::Queue => Some("/queues"),
        AttentionSubjectKind::Hook => Some("/plugins"),
        AttentionSubjectKind::CoreNetwork => Some("/networks"),
        AttentionSubjectKind::Appliance
        | AttentionSubjectKind::Archive
        | AttentionSubjectKind::EventSink
        | AttentionSubjectKind::Cluster
        | AttentionSubjectKind::Configuration => None,
    }
}

/// The findings, in the API's order; at most [`MAX_PER_CODE`] per code, with a count of the others. `now` is
/// milliseconds since the epoch.
fn attention(found: &[AttentionView], now: u64) -> Markup {
    let severity = |finding: &AttentionView| match finding.severity {
        AttentionSeverity::Error => ("bad", "Error: "),
        AttentionSeverity::Warning => ("warn", "Warning: "),
    };
    let line = |finding: &AttentionView, text: &Markup, link: Option<(String, &str)>| {
        let (class, severity) = severity(finding);
        html! {
            li.(class) {
                span.visually-hidden { (severity) }
                span { (text) }
                @if let Some((path, label)) = link { a href=(path) { (label) } }
            }
        }
    };
    let mut totals: HashMap<&str, usize> = HashMap::new();
    for finding in found {
        *totals.entry(&finding.code).or_default() += 1;
    }
    let mut shown: HashMap<&str, usize> = HashMap::new();
    let mut lines = Vec::new();
    for finding in found {
        let before = shown.entry(&finding.code).or_default();
        *before += 1;
        if *before <= MAX_PER_CODE {
            let since = finding.since.map(|at| format!(" (for {})", duration_text(now.saturating_sub(at))));
            let text = html! { (with_times(&finding.text)) (since.unwrap_or_default()) };
            lines.push(line(finding, &text, Some(link_for(finding))));
        } else if *before == MAX_PER_CODE + 1 {
            let left = totals.get(finding.code.as_str()).map_or(0, |total| total - MAX_PER_CODE);
            let link = list_link(finding).map(|path| (path.to_owned(), "Show all"));
            lines.push(line(finding, &html! { (count(left as u64)) " more like these" }, link));
        }
    }
    html! {
        @if found.is_empty() {
            p.all-clear { span.dot.good aria-hidden="true" {} "Nothing needs attention." }
        } @else {
            ul.attention-list { @for line in lines { (line) } }
        }
    }
}

fn links_summary(summary: &LinksSummaryView) -> Markup {
    let LinksSummaryView { up, connecting, down, links } = summary;
    let rows: Vec<_> = links
        .iter()
        .map(|link| {
            let path = match link.role {
                LinkRole::Client => "/peers/",
                LinkRole::Server => "/accounts/",
            };
            vec![
                html! { a href=(format!("{path}{}", crate::api_caller::encode_segment(&link.peer))) { (link.peer) } },
                state_badge(link.phase.name()),
                html! { (link.in_flight) " of " (link.window) },
                html! { (link.round_trip_ms().map_or_else(|| "—".to_owned(), |ms| format!("{} ms", figure(ms)))) },
            ]
        })
        .collect();
    html! {
        div.card {
            h2 { "Links" }
            p { (count(*up)) " up, " (count(*connecting)) " connecting, " (count(*down)) " down" }
            (bar("Share of links that are up, connecting and down", &[("good", *up), ("warn", *connecting), ("bad", *down)]))
            (numeric_table("Links, those that are down first", &[Column::Text("Peer"), Column::Text("State"), Column::Number("In flight"), Column::Number("Answer")], &rows, &html! {
                p { "There are no links yet. " a href="/peers/new" { "Add a peer" } " or " a href="/accounts/new" { "an account" } "." }
            }))
            @if summary.total() > links.len() as u64 { p { a href="/peers" { "All peers" } " · " a href="/accounts" { "all accounts" } } }
        }
    }
}

fn plugins_summary(hooks: &[HookStateView]) -> Markup {
    let rows: Vec<_> = hooks
        .iter()
        .map(|hook| {
            let (name, chain) = (hook.hook.name(), &hook.live.chain);
            let faults: u64 = hook.counts.iter().map(|counts| counts.faults.total()).sum();
            vec![
                html! { a href=(format!("/plugins/{name}")) { (name) } },
                html! {
                    @if chain.is_empty() { span.muted { "none" } } @else { (chain_tags(chain)) }
                },
                html! { @match &hook.candidate { Some(candidate) => { (state_badge(candidate.record.mode.name())) } None => { span.muted { "none" } } } },
                html! { (count(faults)) },
            ]
        })
        .collect();
    html! {
        div.card {
            h2 { "Plugins" }
            (numeric_table("Hooks and their plugins", &[Column::Text("Hook"), Column::Text("Live"), Column::Text("Candidate"), Column::Number("Faults")], &rows, &html! { p { "There are no hooks." } }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::AttentionSubject;

    const ERROR: AttentionSeverity = AttentionSeverity::Error;
    const WARNING: AttentionSeverity = AttentionSeverity::Warning;

    fn found(
        severity: AttentionSeverity,
        code: &str,
        kind: AttentionSubjectKind,
        name: &str,
    ) -> AttentionView {
        AttentionView {
            severity,
            code: code.to_owned(),
            subject: AttentionSubject { kind, name: Some(name.to_owned()) },
            since: Some(1_000),
            text: format!("{name} is <down>"),
            remedy: None,
        }
    }

    #[test]
    fn a_quiet_appliance_needs_no_attention() {
        assert!(attention(&[], 1).into_string().contains("Nothing needs attention."));
    }

    #[test]
    fn a_finding_is_shown_with_its_age_and_a_link() {
        let all = [
            found(ERROR, "peer-down", AttentionSubjectKind::Peer, "a b"),
            found(WARNING, "unknown-reference", AttentionSubjectKind::Hook, "router"),
            found(WARNING, "new", AttentionSubjectKind::Appliance, "x"),
        ];
        let shown = attention(&all, 61_000).into_string();
        let lines: Vec<&str> = shown.split("<li").collect();
        assert_eq!(lines.len(), 4, "{shown}");
        assert!(lines[1].contains("bad") && lines[1].contains("a b is &lt;down&gt; (for 1 min)"), "{shown}");
        assert!(lines[1].contains("/peers/a%20b"), "{shown}");
        assert!(lines[2].contains("warn") && lines[2].contains("/policies/router"), "{shown}");
        assert!(lines[3].contains("warn") && lines[3].contains("/maintenance"), "{shown}");
    }

    #[test]
    fn many_findings_of_one_code_are_counted() {
        let down =
            (0..8).map(|number| found(ERROR, "peer-down", AttentionSubjectKind::Peer, &format!("p{number}")));
        let queue = found(WARNING, "queue-old", AttentionSubjectKind::Queue, "q");
        let all: Vec<AttentionView> = down.chain([queue]).collect();
        let shown = attention(&all, 61_000).into_string();
        assert!(shown.contains("p4 is") && !shown.contains("p5 is"), "{shown}");
        assert!(shown.contains("3 more like these") && shown.contains("/peers?state=down"), "{shown}");
        assert!(shown.contains("q is"), "{shown}");
    }
}

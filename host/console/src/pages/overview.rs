//! The overview: figures, findings and charts.

use crate::api_caller::ApiError;
use crate::chart::{Line, bar, chart};
use crate::format::{count, duration_text, figure, octets, state_badge, version_tag, with_readable_times};
use crate::layout::live_page;
use crate::live::Region;
use crate::nav::NavItem;
use crate::request_context::RequestContext;
use crate::table::table;
use api::{
    AttentionSeverity, AttentionSubjectKind, AttentionView, HookStateView, LinkPhase, LinkRole, LinkView,
    MetricsSampleView, Permission, RecentMetricsView, StatusView,
};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use std::collections::HashMap;

/// The number of samples of a rate.
const RATE_SAMPLES: usize = 5;
/// The maximum number of findings of one code that are shown.
const MAX_PER_CODE: usize = 5;

pub(crate) async fn show(context: RequestContext) -> Response {
    if !context.has_permission(Permission::Read) {
        return Redirect::to("/messages").into_response();
    }
    let body = regions(&context).await.map(|regions| {
        html! {
            h1.visually-hidden { "Overview" }
            @for (id, part) in regions { section.(id) id=(id) { (part) } }
        }
    });
    live_page(&context, "Overview", NavItem::Overview, Some("/live?of=overview"), body)
}

pub(crate) async fn regions(context: &RequestContext) -> Result<Vec<Region>, ApiError> {
    let (status, recent, links, hooks, found) = tokio::join!(
        context.get::<StatusView>("/v1/status"),
        context.get_optional::<RecentMetricsView>("/v1/metrics/recent"),
        context.get::<Vec<LinkView>>("/v1/links"),
        context.get_optional::<Vec<HookStateView>>("/v1/hooks"),
        context.get::<Vec<AttentionView>>("/v1/attention"),
    );
    let (status, links, found) = (status?, links?, found?);
    let hooks = hooks.unwrap_or_default();
    let recent = RecentMetrics::of(recent.as_ref());
    Ok(vec![
        ("figures", figures(&status, &recent)),
        ("attention", html! { h2 { "Needs attention" } (attention(&found, crate::format::now())) }),
        ("charts", charts(&recent)),
        ("summaries", html! { (links_summary(&links)) (plugins_summary(&hooks)) }),
    ])
}

/// Rates of the last minutes.
struct RecentMetrics {
    minutes: u64,
    accepted: Vec<Option<f64>>,
    delivered: Vec<Option<f64>>,
    failed: Vec<Option<f64>>,
    refused: Vec<Option<f64>>,
    waiting: Vec<Option<f64>>,
    commit: Vec<Option<f64>>,
    round_trip: Vec<Option<f64>>,
}

impl RecentMetrics {
    fn of(recent: Option<&RecentMetricsView>) -> Self {
        let samples = recent.map_or(&[][..], |recent| recent.samples.as_slice());
        let most = recent.map_or(300, |recent| recent.capacity);
        let every = recent.map_or(2_000, |recent| recent.interval_ms).max(1);
        // Missing samples come first, so that the line of a recently started appliance is at the right.
        let missing = most.saturating_sub(samples.len());
        let line = |each: &dyn Fn(usize) -> Option<f64>| -> Vec<Option<f64>> {
            std::iter::repeat_n(None, missing).chain((0..samples.len()).map(each)).collect()
        };
        let delta = |at: usize, of: fn(&MetricsSampleView) -> u64| {
            let (before, now) = (samples.get(at.checked_sub(1)?)?, samples.get(at)?);
            Some(of(now).checked_sub(of(before))? as f64)
        };
        // A rate spans several samples, so that few messages do not make it jump.
        let rate = |of: fn(&MetricsSampleView) -> u64| {
            line(&|at| {
                let first = at.saturating_sub(RATE_SAMPLES);
                let changes =
                    || (first + 1..=at).map(|at| Some((delta(at, of)?, delta(at, |sample| sample.at)?)));
                let (change, ms) = changes()
                    .try_fold((0.0, 0.0), |(change, ms), one| one.map(|(a, b)| (change + a, ms + b)))?;
                (ms > 0.0).then(|| change / ms * 1_000.0)
            })
        };
        Self {
            minutes: (most as u64 * every).div_ceil(60_000),
            accepted: rate(|sample| sample.accepted),
            delivered: rate(|sample| sample.delivered),
            failed: rate(|sample| sample.failed),
            refused: rate(|sample| sample.refused),
            waiting: line(&|at| Some(samples.get(at)?.waiting as f64)),
            commit: line(&|at| {
                let commits = delta(at, |sample| sample.commits)?;
                let spent = delta(at, |sample| sample.commit_us)?;
                (commits > 0.0).then(|| spent / commits / 1_000.0)
            }),
            round_trip: line(&|at| Some(samples.get(at)?.round_trip_us? as f64 / 1_000.0)),
        }
    }

    /// The last point of a line.
    fn now(line: &[Option<f64>]) -> Option<f64> {
        line.iter().rev().find_map(|point| *point)
    }
}

fn figures(status: &StatusView, recent: &RecentMetrics) -> Markup {
    let tile = |name: &str, what: Markup, below: String| {
        html! { div.tile { span.name { (name) } strong { (what) } span.muted { (below) } } }
    };
    let rate = |line: &[Option<f64>]| match RecentMetrics::now(line) {
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

fn charts(recent: &RecentMetrics) -> Markup {
    let line = |name, class, points: &Vec<Option<f64>>| Line { name, class, points: points.clone() };
    let minutes = recent.minutes;
    html! {
        (chart("Throughput", "/s", minutes, &[line("accepted", "s1", &recent.accepted), line("delivered", "s2", &recent.delivered)]))
        (chart("Latency", "ms", minutes, &[line("to disk", "s1", &recent.commit), line("peers' answers", "s2", &recent.round_trip)]))
        (chart("Queue depth", "messages", minutes, &[line("waiting", "s1", &recent.waiting)]))
        (chart("Failures", "/s", minutes, &[line("not delivered", "s3", &recent.failed), line("refused", "s4", &recent.refused)]))
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
        | AttentionSubjectKind::Cluster
        | AttentionSubjectKind::Configuration => None,
    }
}

/// The findings, in the API's order; of one code at most [`MAX_PER_CODE`], with a count of the others. `now` is milliseconds since
/// the epoch.
fn attention(found: &[AttentionView], now: u64) -> Markup {
    let severity = |finding: &AttentionView| match finding.severity {
        AttentionSeverity::Error => ("bad", "Error: "),
        AttentionSeverity::Warning => ("warn", "Warning: "),
    };
    let line = |finding: &AttentionView, text: &str, link: Option<(String, &str)>| {
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
            let text = with_readable_times(&finding.text) + &since.unwrap_or_default();
            lines.push(line(finding, &text, Some(link_for(finding))));
        } else if *before == MAX_PER_CODE + 1 {
            let left = totals.get(finding.code.as_str()).map_or(0, |total| total - MAX_PER_CODE);
            let link = list_link(finding).map(|path| (path.to_owned(), "Show all"));
            lines.push(line(finding, &format!("{} more like these", count(left as u64)), link));
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

fn links_summary(links: &[LinkView]) -> Markup {
    let up = links.iter().filter(|link| link.is_up()).count() as u64;
    let trying =
        links.iter().filter(|link| matches!(link.phase, LinkPhase::Connecting | LinkPhase::Binding)).count()
            as u64;
    let down = links.len() as u64 - up - trying;
    let mut shown: Vec<&LinkView> = links.iter().collect();
    shown.sort_by_key(|link| (link.is_up(), std::cmp::Reverse(link.in_flight)));
    let rows: Vec<_> = shown
        .iter()
        .take(8)
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
            p { (count(up)) " up, " (count(trying)) " connecting, " (count(down)) " down" }
            (bar("Share of links that are up, connecting and down", &[("good", up), ("warn", trying), ("bad", down)]))
            (table("Links, those that are down first", &["Peer", "State", "In flight", "Answer"], &rows, &html! {
                p { "There are no links yet. " a href="/peers/new" { "Add a peer" } " or " a href="/accounts/new" { "an account" } "." }
            }))
            @if links.len() > 8 { p { a href="/peers" { "All peers" } " · " a href="/accounts" { "all accounts" } } }
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
                    @if chain.is_empty() { span.muted { "none" } }
                    @for one in chain { span.plugin { (one.plugin) " " (version_tag(&one.version)) } }
                },
                html! { @match &hook.candidate { Some(candidate) => { (state_badge(candidate.record.mode.name())) } None => { span.muted { "none" } } } },
                html! { (count(faults)) },
            ]
        })
        .collect();
    html! {
        div.card {
            h2 { "Plugins" }
            (table("Hooks and their plugins", &["Hook", "Live", "Candidate", "Faults"], &rows, &html! { p { "There are no hooks." } }))
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

    #[test]
    fn rates_are_changes_over_time_and_a_restart_is_a_gap() {
        let sample =
            |at, accepted| MetricsSampleView { at, accepted, waiting: 3, ..MetricsSampleView::default() };
        let samples = vec![sample(0, 10), sample(2_000, 30), sample(4_000, 0)];
        let recent = RecentMetricsView { interval_ms: 2_000, capacity: 4, samples };
        let recent = RecentMetrics::of(Some(&recent));
        assert_eq!(recent.accepted, [None, None, Some(10.0), None]);
        assert_eq!(recent.waiting, [None, Some(3.0), Some(3.0), Some(3.0)]);
    }
}

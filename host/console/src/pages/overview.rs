//! The overview: figures, findings and charts.

use crate::api_caller::ApiError;
use crate::chart::{Line, bar, chart};
use crate::format::{
    count, duration_text, figure, number, octets, state_badge, text, version_tag, with_readable_times,
};
use crate::layout::live_page;
use crate::live::Region;
use crate::nav::NavItem;
use crate::pages::api_types::{LinkStatus, links};
use crate::request_context::RequestContext;
use crate::table::table;
use api::Permission;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;
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
        context.get::<Value>("/v1/status"),
        context.get_optional("/v1/metrics/recent"),
        links(context),
        context.get_optional("/v1/hooks"),
        context.get::<Vec<Finding>>("/v1/attention"),
    );
    let (status, links, found) = (status?, links?, found?);
    let hooks = hooks.unwrap_or_default();
    let recent = RecentMetrics::read(recent.as_ref());
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
    fn read(recent: Option<&Value>) -> Self {
        let nothing = Vec::new();
        let samples = recent.and_then(|recent| recent["samples"].as_array()).unwrap_or(&nothing);
        let most = recent.map_or(300, |recent| recent["capacity"].as_u64().unwrap_or(300)) as usize;
        let every = recent.map_or(2_000, |recent| recent["interval-ms"].as_u64().unwrap_or(2_000)).max(1);
        // Missing samples come first, so that the line of a recently started appliance is at the right.
        let missing = most.saturating_sub(samples.len());
        let line = |each: &dyn Fn(usize) -> Option<f64>| -> Vec<Option<f64>> {
            std::iter::repeat_n(None, missing).chain((0..samples.len()).map(each)).collect()
        };
        let delta = |at: usize, name: &str| {
            let (before, now) = (samples.get(at.checked_sub(1)?)?, samples.get(at)?);
            let change = now[name].as_f64()? - before[name].as_f64()?;
            (change >= 0.0).then_some(change)
        };
        // A rate spans several samples, so that few messages do not make it jump.
        let rate = |name: &'static str| {
            line(&|at| {
                let first = at.saturating_sub(RATE_SAMPLES);
                let changes = || (first + 1..=at).map(|at| Some((delta(at, name)?, delta(at, "at")?)));
                let (change, ms) = changes()
                    .try_fold((0.0, 0.0), |(change, ms), one| one.map(|(a, b)| (change + a, ms + b)))?;
                (ms > 0.0).then(|| change / ms * 1_000.0)
            })
        };
        Self {
            minutes: (most as u64 * every).div_ceil(60_000),
            accepted: rate("accepted"),
            delivered: rate("delivered"),
            failed: rate("failed"),
            refused: rate("refused"),
            waiting: line(&|at| samples[at]["waiting"].as_f64()),
            commit: line(&|at| {
                let commits = delta(at, "commits")?;
                (commits > 0.0).then(|| delta(at, "commit-us").map(|us| us / commits / 1_000.0))?
            }),
            round_trip: line(&|at| samples[at]["round-trip-us"].as_f64().map(|us| us / 1_000.0)),
        }
    }

    /// The last point of a line.
    fn now(line: &[Option<f64>]) -> Option<f64> {
        line.iter().rev().find_map(|point| *point)
    }
}

fn figures(status: &Value, recent: &RecentMetrics) -> Markup {
    let tile = |name: &str, what: Markup, below: String| {
        html! { div.tile { span.name { (name) } strong { (what) } span.muted { (below) } } }
    };
    let rate = |line: &[Option<f64>]| match RecentMetrics::now(line) {
        Some(rate) => html! { (figure(rate)) small { " /s" } },
        None => html! { "—" },
    };
    let totals = &status["totals"];
    let failed: u64 =
        ["failed", "expired", "rejected", "unknown"].iter().map(|name| number(totals, name)).sum();
    html! {
        (tile("Accepted", rate(&recent.accepted), format!("{} since the start", count(number(totals, "accepted")))))
        (tile(
            "Delivered",
            rate(&recent.delivered),
            format!("{} since the start", count(number(totals, "delivered") + number(totals, "relayed"))),
        ))
        (tile("Waiting", html! { (count(number(status, "waiting"))) }, "queued, deferred or in flight".to_owned()))
        (tile("Not delivered", rate(&recent.failed), format!("{} since the start", count(failed))))
        (tile(
            "Up",
            html! { (duration_text(number(status, "uptime_seconds") * 1_000)) },
            format!("{} {}, {} free", text(status, "name"), text(status, "version"), octets(number(status, "disk_free"))),
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

/// A finding of `GET /v1/attention`.
#[derive(Debug, Clone, Deserialize)]
struct Finding {
    severity: String,
    code: String,
    subject: Subject,
    since: Option<u64>,
    text: String,
}

/// The subject of a finding.
#[derive(Debug, Clone, Deserialize)]
struct Subject {
    kind: String,
    name: Option<String>,
}

/// The path of the page for a finding, and the text of the link.
fn link_for(finding: &Finding) -> Option<(String, &'static str)> {
    let name = crate::api_caller::encode_segment(finding.subject.name.as_deref().unwrap_or_default());
    let (path, label) = match (finding.code.as_str(), finding.subject.kind.as_str()) {
        ("draining", _) => ("/maintenance".to_owned(), "End the drain"),
        ("configuration-unconfirmed", _) => ("/configuration".to_owned(), "Confirm or revert"),
        ("messages-uncertain", _) => ("/uncertain".to_owned(), "Settle them"),
        ("unknown-reference", _) => (format!("/policies/{name}"), "Edit policy"),
        (_, "peer") => (format!("/peers/{name}"), "Show and test"),
        (_, "account") => (format!("/accounts/{name}"), "Show"),
        (_, "queue") => ("/queues".to_owned(), "Show queues"),
        (_, "hook") => (format!("/plugins/{name}"), "Show faults"),
        (_, "core-network") => ("/networks".to_owned(), "Show"),
        (_, "archive") => ("/archive".to_owned(), "Show archive"),
        (_, "configuration") => ("/configuration".to_owned(), "Show"),
        (_, "appliance") => ("/maintenance".to_owned(), "Show"),
        // An unknown kind.
        _ => return None,
    };
    Some((path, label))
}

/// The page that lists all findings of this kind.
fn list_link(finding: &Finding) -> Option<&'static str> {
    match finding.subject.kind.as_str() {
        "peer" => Some("/peers?state=down"),
        "account" => Some("/accounts"),
        "queue" => Some("/queues"),
        "hook" => Some("/plugins"),
        "core-network" => Some("/networks"),
        _ => None,
    }
}

/// The findings, in the API's order; of one code at most [`MAX_PER_CODE`], with a count of the others. `now` is milliseconds since
/// the epoch.
fn attention(found: &[Finding], now: u64) -> Markup {
    let class = |finding: &Finding| if finding.severity == "error" { "bad" } else { "warn" };
    let line = |finding: &Finding, text: &str, link: Option<(String, &str)>| {
        html! {
            li.(class(finding)) {
                span.visually-hidden { (if finding.severity == "error" { "Error: " } else { "Warning: " }) }
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
            lines.push(line(finding, &text, link_for(finding)));
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

fn links_summary(links: &[LinkStatus]) -> Markup {
    let up = links.iter().filter(|link| link.is_up()).count() as u64;
    let trying =
        links.iter().filter(|link| matches!(link.phase.as_str(), "connecting" | "binding")).count() as u64;
    let down = links.len() as u64 - up - trying;
    let mut shown: Vec<&LinkStatus> = links.iter().collect();
    shown.sort_by_key(|link| (link.is_up(), std::cmp::Reverse(link.in_flight)));
    let rows: Vec<_> = shown
        .iter()
        .take(8)
        .map(|link| {
            let path = if link.role == "client" { "/peers/" } else { "/accounts/" };
            vec![
                html! { a href=(format!("{path}{}", crate::api_caller::encode_segment(&link.peer))) { (link.peer) } },
                state_badge(&link.phase),
                html! { (link.in_flight) " of " (link.window) },
                html! { (link.round_trip().map_or_else(|| "—".to_owned(), |ms| format!("{} ms", figure(ms)))) },
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

fn plugins_summary(hooks: &Value) -> Markup {
    let hooks = hooks.as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<_> = hooks
        .iter()
        .map(|hook| {
            let name = text(hook, "hook");
            let chain = hook["live"]["chain"].as_array().map(Vec::as_slice).unwrap_or_default();
            let faults: u64 = hook["counts"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|one| one["faults"].as_object())
                .flat_map(|faults| faults.values().filter_map(Value::as_u64))
                .sum();
            vec![
                html! { a href=(format!("/plugins/{name}")) { (name) } },
                html! {
                    @if chain.is_empty() { span.muted { "none" } }
                    @for one in chain { span.plugin { (text(one, "plugin")) " " (version_tag(text(one, "version"))) } }
                },
                html! { @match hook["candidate"]["mode"].as_str() { Some(mode) => { (state_badge(mode)) } None => { span.muted { "none" } } } },
                html! { (count(faults)) },
            ]
        })
        .collect();
    html! {
        div.card {
            h2 { "Plugins" }
            (table("Hooks and what serves them", &["Hook", "Live", "On trial", "Faults"], &rows, &html! { p { "There are no hooks." } }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use testkit::api_document::fixture;

    fn found(severity: &str, code: &str, kind: &str, name: &str) -> Finding {
        let finding = json!({
            "severity": severity, "code": code, "subject": { "kind": kind, "name": name }, "since": 1_000,
            "text": format!("{name} is <down>"), "remedy": null,
        });
        let mut findings = fixture("GET", "/v1/attention", 200, json!([finding]));
        serde_json::from_value(findings[0].take()).unwrap()
    }

    #[test]
    fn a_quiet_appliance_needs_no_attention() {
        assert!(attention(&[], 1).into_string().contains("Nothing needs attention."));
    }

    #[test]
    fn a_finding_is_shown_with_its_age_and_a_link() {
        let mut all = [
            found("error", "peer-down", "peer", "a b"),
            found("warning", "unknown-reference", "hook", "router"),
            found("warning", "new", "appliance", "x"),
        ];
        // Of a later version of the API.
        "new kind".clone_into(&mut all[2].subject.kind);
        let shown = attention(&all, 61_000).into_string();
        let lines: Vec<&str> = shown.split("<li").collect();
        assert_eq!(lines.len(), 4, "{shown}");
        assert!(lines[1].contains("bad") && lines[1].contains("a b is &lt;down&gt; (for 1 min)"), "{shown}");
        assert!(lines[1].contains("/peers/a%20b"), "{shown}");
        assert!(lines[2].contains("warn") && lines[2].contains("/policies/router"), "{shown}");
        assert!(!lines[3].contains("href"), "{shown}");
    }

    #[test]
    fn many_findings_of_one_code_are_counted() {
        let down = (0..8).map(|number| found("error", "peer-down", "peer", &format!("p{number}")));
        let all: Vec<Finding> = down.chain([found("warning", "queue-old", "queue", "q")]).collect();
        let shown = attention(&all, 61_000).into_string();
        assert!(shown.contains("p4 is") && !shown.contains("p5 is"), "{shown}");
        assert!(shown.contains("3 more like these") && shown.contains("/peers?state=down"), "{shown}");
        assert!(shown.contains("q is"), "{shown}");
    }

    #[test]
    fn rates_are_changes_over_time_and_a_restart_is_a_gap() {
        let sample = |at: u64, accepted: u64| {
            json!({
                "at": at, "accepted": accepted, "refused": 0, "submitted": 0, "delivered": 0, "failed": 0, "waiting": 3, "commits": 0,
                "commit-us": 0, "round-trip-us": null,
            })
        };
        let recent = json!({ "interval-ms": 2000, "capacity": 4, "samples": [sample(0, 10), sample(2000, 30), sample(4000, 0)] });
        let recent = fixture("GET", "/v1/metrics/recent", 200, recent);
        let recent = RecentMetrics::read(Some(&recent));
        assert_eq!(recent.accepted, [None, None, Some(10.0), None]);
        assert_eq!(recent.waiting, [None, Some(3.0), Some(3.0), Some(3.0)]);
    }
}

//! The traffic map: accounts at the left, hooks in the middle, peers at the right, with lines as wide as their rates.
//!
//! Names and numbers are HTML, so that they stay readable at every width; the lines between them are SVG. A table below has the
//! same content.

mod lines;
mod nodes;

use crate::api_caller::encode_segment;
use crate::format::{count, figure, plural};
use crate::table::{Column, numeric_table};
use api::{AttentionSeverity, AttentionSubjectKind, AttentionView, HookStateView, TrafficMapView};
use lines::{MapLines, map_lines};
use maud::{Markup, html};
use model::Direction;
use nodes::{Node, hook_nodes, side};

/// The CSS class of a severity.
fn severity_class(severity: Option<AttentionSeverity>) -> &'static str {
    match severity {
        None => "calm",
        Some(AttentionSeverity::Warning) => "warn",
        Some(AttentionSeverity::Error) => "bad",
    }
}

/// Input of the map.
pub(crate) struct MapInput<'a> {
    pub(crate) traffic: &'a TrafficMapView,
    pub(crate) hooks: &'a [HookStateView],
    pub(crate) findings: &'a [AttentionView],
}

impl MapInput<'_> {
    /// A count of the last minute as a rate per second.
    fn rate(&self, count: u64) -> f64 {
        count as f64 * 1_000.0 / self.traffic.window_ms.max(1) as f64
    }

    /// The severity of the worst finding about a hook: errors come first.
    fn hook_severity(&self, hook: &str) -> Option<AttentionSeverity> {
        let about = |finding: &&AttentionView| {
            finding.subject.kind == AttentionSubjectKind::Hook
                && finding.subject.name.as_deref() == Some(hook)
        };
        self.findings.iter().filter(about).map(|finding| finding.severity).min()
    }
}

/// A rate per second; a small rate is not shown as zero.
fn rate_text(rate: f64) -> String {
    if rate > 0.0 && rate < 0.05 { "<0.1".to_owned() } else { figure(rate) }
}

/// The traffic map.
pub(crate) fn traffic_map(input: &MapInput<'_>) -> Markup {
    let accounts = side(input, true);
    let peers = side(input, false);
    let hooks = hook_nodes(input);
    let rows = accounts.len().max(peers.len()).max(hooks.len()).max(2);
    let map_lines = map_lines(input, &accounts, &peers, rows);
    let TrafficMapView { accepted, submitted, .. } = *input.traffic;
    html! {
        div.heading {
            h2 { "Traffic" }
            p.muted {
                (rate_text(input.rate(accepted))) " /s accepted, " (rate_text(input.rate(submitted)))
                " /s submitted to peers; mean of the last minute"
            }
        }
        @if accounts.is_empty() && peers.is_empty() {
            p.muted { "There are no accounts and no peers yet." }
        } @else {
            div.traffic-map {
                (node_list("Accounts", "left", &accounts))
                (lines(&map_lines, true, rows))
                (node_list("Hooks", "hooks", &hooks))
                (lines(&map_lines, false, rows))
                (node_list("Peers", "right", &peers))
            }
            p.key.muted {
                span.swatch.s1 aria-hidden="true" {} "MT" span.swatch.s2 aria-hidden="true" {} "MO"
                span.swatch.s4 aria-hidden="true" {} "5 % refused or unanswered" span.swatch.s3 aria-hidden="true" {} "50 %, or down"
            }
            (flow_table(input))
        }
    }
}

fn node_list(title: &str, class: &str, nodes: &[Node]) -> Markup {
    html! {
        div.nodes.(class) {
            h3 { (title) }
            ul {
                @for node in nodes { (node_item(node)) }
                @if nodes.is_empty() { li.calm { span.muted { "none" } } }
            }
        }
    }
}

fn node_item(node: &Node) -> Markup {
    html! {
        li.(severity_class(node.severity)) title=(node.note) {
            a.name href=(node.path) { (node.label) }
            span.rate {
                @if let Some(rate) = node.rate { (rate_text(rate)) small { " /s" } } @else { "—" }
            }
            span.note {
                @match node.severity {
                    Some(AttentionSeverity::Error) => { span.visually-hidden { "error: " } }
                    Some(AttentionSeverity::Warning) => { span.visually-hidden { "warning: " } }
                    None => {}
                }
                @if node.waiting > 0 { span.waiting { (count(node.waiting)) " waiting" } " " }
                (node.note)
            }
        }
    }
}

/// The lines at the left or at the right of the hooks.
fn lines(map_lines: &MapLines, left: bool, rows: usize) -> Markup {
    let (title, lines) = if left {
        ("Lines from accounts to the hooks", &map_lines.left)
    } else {
        ("Lines from the hooks to peers", &map_lines.right)
    };
    html! {
        svg.lines viewBox=(format!("0 0 100 {}", lines::height(rows))) height=(format!("{}rem", lines::height(rows) / 16.0)) preserveAspectRatio="none" role="img" aria-label=(title) {
            title { (title) }
            desc { "Each line is as wide as its rate. The table below has the numbers." }
            @for line in lines {
                path.(line.class) d=(line.path) stroke-width=(format!("{:.1}", line.width)) { title { (line.title) } }
            }
        }
    }
}

fn flow_table(input: &MapInput<'_>) -> Markup {
    let link = |name: &str, account: bool| {
        let path = if account { "/accounts/" } else { "/peers/" };
        html! { a href=(format!("{path}{}", encode_segment(name))) { (name) } }
    };
    let rows: Vec<Vec<Markup>> = input
        .traffic
        .flows
        .iter()
        .map(|flow| {
            let counts = &flow.counts;
            let mt = flow.direction == Direction::Mt;
            vec![
                link(&flow.from, mt),
                link(&flow.to, !mt),
                html! { (flow.direction.name().to_uppercase()) },
                html! { (rate_text(input.rate(counts.attempts()))) },
                html! { (count(counts.accepted)) },
                html! { (count(counts.refused)) },
                html! { (count(counts.throttled)) },
                html! { (count(counts.unanswered)) },
                html! { (count(counts.delivered)) },
                html! { (count(counts.failed)) },
            ]
        })
        .collect();
    let left_out = input.traffic.flow_count.saturating_sub(rows.len() as u64);
    let columns = [
        Column::Text("From"),
        Column::Text("To"),
        Column::Text("Direction"),
        Column::Number("Submitted /s"),
        Column::Number("Accepted"),
        Column::Number("Refused"),
        Column::Number("Throttled"),
        Column::Number("Unanswered"),
        Column::Number("Delivered"),
        Column::Number("Not delivered"),
    ];
    html! {
        details #traffic-table {
            summary { "As a table: " (plural(input.traffic.flow_count, "flow", "flows")) }
            (numeric_table("Flows of the last minute, those with trouble first", &columns, &rows, &html! { p { "No messages were submitted in the last minute." } }))
            @if left_out > 0 { p.muted { "And " (count(left_out)) " more." } }
        }
    }
}

#[cfg(test)]
mod tests;

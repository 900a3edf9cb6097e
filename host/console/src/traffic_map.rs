//! The traffic map: accounts at the left, hooks in the middle, peers at the right, with lines as wide as their rates.
//!
//! Names and numbers are HTML, so that they stay readable at every width; the lines between them are SVG. A table below has the
//! same content.

mod lines;
mod nodes;

use crate::api_caller::encode_segment;
use crate::format::{count, figure, plural};
use crate::table::{Column, numeric_table};
use api::{AttentionSubjectKind, AttentionView, HookStateView, QueueView, TrafficFlowView, TrafficView};
use lines::{Picture, picture};
use maud::{Markup, html};
use model::Direction;
use nodes::{Node, Nodes, hook_nodes, side};
use std::collections::{HashMap, HashSet};

/// The number of accounts and of peers that are shown by name; the others are one node.
const MAX_NODES: usize = 9;
/// The number of rows of the table of flows.
const MAX_TABLE_ROWS: usize = 40;

/// How much trouble something has, the least first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    #[default]
    None,
    Warning,
    Error,
}

impl Trouble {
    fn class(self) -> &'static str {
        match self {
            Self::None => "calm",
            Self::Warning => "warn",
            Self::Error => "bad",
        }
    }

    /// The trouble as a word, for readers who do not see the colour.
    fn word(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// By the share of submit attempts that the destination refused or did not answer: a warning from 5 %, an error from 50 %.
    fn of_flow(flow: &TrafficFlowView) -> Self {
        let (bad, all) = (flow.counts.refused + flow.counts.unanswered, flow.counts.attempts());
        match bad * 100 {
            0 => Self::None,
            bad if bad >= all * 50 => Self::Error,
            bad if bad >= all * 5 => Self::Warning,
            _ => Self::None,
        }
    }
}

/// What the map shows, with indexes: there may be ten thousand accounts.
pub(crate) struct MapInput<'a> {
    traffic: &'a TrafficView,
    queues: &'a [QueueView],
    hooks: &'a [HookStateView],
    /// The worst finding about each subject.
    findings: HashMap<(AttentionSubjectKind, &'a str), &'a AttentionView>,
    accounts: HashSet<&'a str>,
}

impl<'a> MapInput<'a> {
    pub(crate) fn new(
        traffic: &'a TrafficView,
        queues: &'a [QueueView],
        hooks: &'a [HookStateView],
        findings: &'a [AttentionView],
    ) -> Self {
        let accounts = queues.iter().filter(|queue| queue.is_account).map(|queue| &*queue.peer);
        let mut worst = HashMap::new();
        // Errors come first.
        for finding in findings {
            if let Some(name) = &finding.subject.name {
                worst.entry((finding.subject.kind, &**name)).or_insert(finding);
            }
        }
        Self { traffic, queues, hooks, findings: worst, accounts: accounts.collect() }
    }

    /// A count of the last minute as a rate per second.
    fn rate(&self, count: u64) -> f64 {
        count as f64 * 1_000.0 / self.traffic.window_ms.max(1) as f64
    }

    /// The worst finding about a subject, of the first kind that has one.
    fn finding(&self, kinds: &[AttentionSubjectKind], name: &str) -> Option<&AttentionView> {
        kinds.iter().find_map(|kind| self.findings.get(&(*kind, name)).copied())
    }
}

/// A rate per second; small rates do not look like none.
fn rate_text(rate: f64) -> String {
    if rate > 0.0 && rate < 0.05 { "<0.1".to_owned() } else { figure(rate) }
}

/// The traffic map.
pub(crate) fn traffic_map(input: &MapInput<'_>) -> Markup {
    let accounts = side(input, true);
    let peers = side(input, false);
    let hooks = hook_nodes(input);
    let rows = accounts.len().max(peers.len()).max(hooks.len()).max(2);
    let picture = picture(input, &accounts, &peers, rows);
    let mt = input.traffic.flows.iter().filter(|flow| flow.direction == Direction::Mt);
    let submitted: u64 = mt.map(|flow| flow.counts.attempts()).sum();
    let accepted: u64 = input.traffic.submitters.iter().map(|submitter| submitter.accepted).sum();
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
                (lines(&picture, true, rows))
                (node_list("Hooks", "hooks", &hooks))
                (lines(&picture, false, rows))
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

fn node_list(title: &str, class: &str, nodes: &Nodes) -> Markup {
    html! {
        div.nodes.(class) {
            h3 { (title) }
            ul {
                @for node in nodes.iter() { (node_item(node)) }
                @if nodes.is_empty() { li.calm { span.muted { "none" } } }
            }
        }
    }
}

fn node_item(node: &Node) -> Markup {
    html! {
        li.(node.trouble.class()) title=(node.note) {
            a.name href=(node.path) { (node.label) }
            span.rate {
                @if let Some(rate) = node.rate { (rate_text(rate)) small { " /s" } } @else { "—" }
            }
            span.note {
                @if node.trouble != Trouble::None { span.visually-hidden { (node.trouble.word()) ": " } }
                @if node.waiting > 0 { span.waiting { (count(node.waiting)) " waiting" } " " }
                (node.note)
            }
        }
    }
}

/// The lines at the left or at the right of the hooks.
fn lines(picture: &Picture, left: bool, rows: usize) -> Markup {
    let (title, strands) = if left {
        ("Lines from accounts to the hooks", &picture.left)
    } else {
        ("Lines from the hooks to peers", &picture.right)
    };
    html! {
        svg.lines viewBox=(format!("0 0 100 {}", lines::height(rows))) height=(format!("{}rem", lines::height(rows) / 16.0)) preserveAspectRatio="none" role="img" aria-label=(title) {
            title { (title) }
            desc { "Each line is as wide as its rate. The table below has the numbers." }
            @for strand in strands {
                path.(strand.class) d=(strand.path) stroke-width=(format!("{:.1}", strand.width)) { title { (strand.title) } }
            }
        }
    }
}

fn flow_table(input: &MapInput<'_>) -> Markup {
    let link = |name: &str, account: bool| {
        let path = if account { "/accounts/" } else { "/peers/" };
        html! { a href=(format!("{path}{}", encode_segment(name))) { (name) } }
    };
    let mut flows: Vec<&TrafficFlowView> = input.traffic.flows.iter().collect();
    flows.sort_by_key(|flow| std::cmp::Reverse((Trouble::of_flow(flow), flow.counts.attempts())));
    let rows: Vec<Vec<Markup>> = flows
        .iter()
        .take(MAX_TABLE_ROWS)
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
    let left_out = flows.len().saturating_sub(MAX_TABLE_ROWS) as u64 + input.traffic.flows_left_out;
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
            summary { "As a table: " (plural(flows.len() as u64 + input.traffic.flows_left_out, "flow", "flows")) }
            (numeric_table("Flows of the last minute, those with trouble first", &columns, &rows, &html! { p { "No messages were submitted in the last minute." } }))
            @if left_out > 0 { p.muted { "And " (count(left_out)) " more." } }
        }
    }
}

#[cfg(test)]
mod tests;

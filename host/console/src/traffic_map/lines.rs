//! The lines of the traffic map.

use super::nodes::Node;
use super::{MapInput, rate_text};
use api::AttentionSeverity;
use model::Direction;
use std::collections::BTreeMap;

/// The height of a row, in pixels at the usual font size: 2.75 rem, as in the style sheet.
const ROW: f64 = 44.0;
/// Maximum total width of the lines of a node.
const MAX_NODE_WIDTH: f64 = 26.0;
/// Minimum width of a line.
const MIN_LINE_WIDTH: f64 = 1.2;

/// The height of the drawing, in pixels at the usual font size.
pub(super) fn height(rows: usize) -> f64 {
    rows as f64 * ROW
}

/// A line.
#[derive(Debug)]
pub(super) struct MapLine {
    pub(super) class: &'static str,
    pub(super) path: String,
    pub(super) width: f64,
    pub(super) title: String,
}

/// The lines at both sides of the hooks.
#[derive(Debug, Default)]
pub(super) struct MapLines {
    pub(super) left: Vec<MapLine>,
    pub(super) right: Vec<MapLine>,
}

/// The traffic between an account and a peer in one direction.
#[derive(Debug, Default, Clone, Copy)]
struct Flow {
    rate: f64,
    severity: Option<AttentionSeverity>,
}

/// Lines by account, direction (MT first) and peer.
type Flows = BTreeMap<(usize, bool, usize), Flow>;

fn flows(input: &MapInput<'_>) -> Flows {
    let lines = input.traffic.lines.iter();
    let flows = lines.map(|line| {
        let rate = input.rate(line.counts.attempts());
        let key = (line.account, line.direction == Direction::Mo, line.peer);
        (key, Flow { rate, severity: line.severity })
    });
    flows.collect()
}

fn class(severity: Option<AttentionSeverity>, mo: bool) -> &'static str {
    match (severity, mo) {
        (Some(AttentionSeverity::Error), _) => "s3",
        (Some(AttentionSeverity::Warning), _) => "s4",
        (None, true) => "s2",
        (None, false) => "s1",
    }
}

fn path(from: f64, to: f64) -> String {
    format!("M0,{from:.1}C50,{from:.1} 50,{to:.1} 100,{to:.1}")
}

/// Assigns positions of given widths, side by side around a centre.
struct Positions(f64);

impl Positions {
    fn around(centre: f64, width: f64) -> Self {
        Self(centre - width / 2.0)
    }

    /// The centre of the next position.
    fn next(&mut self, width: f64) -> f64 {
        self.0 += width;
        self.0 - width / 2.0
    }
}

/// The lines of the map.
pub(super) fn map_lines(input: &MapInput<'_>, accounts: &[Node], peers: &[Node], rows: usize) -> MapLines {
    let flows = flows(input);
    // Left of the hooks: messages accepted from an account (false), and messages submitted to it (true).
    let mut own: BTreeMap<(usize, bool), Flow> = BTreeMap::new();
    for (index, node) in input.traffic.accounts.iter().enumerate().filter(|(_, node)| node.messages > 0) {
        own.entry((index, false)).or_default().rate += input.rate(node.messages);
    }
    for ((account, mo, _), flow) in &flows {
        let line = own.entry((*account, *mo)).or_default();
        if *mo {
            line.rate += flow.rate;
            line.severity = line.severity.into_iter().chain(flow.severity).min();
        }
    }
    let sum = |rates: &mut dyn Iterator<Item = (usize, f64)>| {
        let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
        rates.for_each(|(index, rate)| *sums.entry(index).or_default() += rate);
        sums
    };
    let by_account = sum(&mut own.iter().map(|((account, _), line)| (*account, line.rate)));
    let out_of_account = sum(&mut flows.iter().map(|((account, ..), line)| (*account, line.rate)));
    let by_peer = sum(&mut flows.iter().map(|((.., peer), line)| (*peer, line.rate)));
    let most = by_account.values().chain(by_peer.values()).copied().fold(0.0, f64::max);
    let total = by_account.values().sum::<f64>().max(by_peer.values().sum());
    if most <= 0.0 {
        return MapLines::default();
    }
    let per_rate = (MAX_NODE_WIDTH / most).min(height(rows) * 0.7 / total.max(most));
    let width = |rate: f64| if rate > 0.0 { (rate * per_rate).max(MIN_LINE_WIDTH) } else { 0.0 };
    let centre = |index: usize| (index as f64 + 0.5) * ROW;
    let label =
        |nodes: &[Node], index: usize| nodes.get(index).map(|node| node.label.clone()).unwrap_or_default();

    // The positions at the hooks, one for each account and direction, with equal gaps.
    let own_width = |key: &(usize, bool), line: &Flow| {
        let out = flows.iter().filter(|((account, mo, _), _)| (*account, *mo) == *key);
        width(line.rate).max(out.map(|(_, flow)| width(flow.rate)).sum())
    };
    let widths: Vec<f64> = own.iter().map(|(key, line)| own_width(key, line)).collect();
    let free = height(rows) - widths.iter().sum::<f64>();
    let gap = (free / (widths.len() + 1) as f64).clamp(0.0, ROW / 2.0);
    let total_width = widths.iter().sum::<f64>() + gap * widths.len().saturating_sub(1) as f64;
    let mut at_hooks = Positions::around(height(rows) / 2.0, total_width);

    let mut lines = MapLines::default();
    let mut at_accounts: BTreeMap<usize, Positions> = BTreeMap::new();
    let mut at_peers: BTreeMap<usize, Positions> = by_peer
        .iter()
        .map(|(index, rate)| (*index, Positions::around(centre(*index), rate * per_rate)))
        .collect();
    let mut right = Vec::new();
    for ((key, line), slot) in own.iter().zip(&widths) {
        let (account, mo) = *key;
        let middle = at_hooks.next(*slot);
        at_hooks.next(gap);
        let width_at_account = by_account.get(&account).copied().unwrap_or_default() * per_rate;
        let positions = at_accounts
            .entry(account)
            .or_insert_with(|| Positions::around(centre(account), width_at_account));
        if line.rate > 0.0 {
            let what = if mo { "MO messages submitted to" } else { "accepted from" };
            lines.left.push(MapLine {
                class: class(line.severity, mo),
                path: path(positions.next(line.rate * per_rate), middle),
                width: width(line.rate),
                title: format!("{} /s {what} {}", rate_text(line.rate), label(accounts, account)),
            });
        }
        let out = out_of_account.get(&account).copied().unwrap_or_default();
        let out = if mo { line.rate } else { out - own.get(&(account, true)).map_or(0.0, |mo| mo.rate) };
        right.push((*key, Positions::around(middle, out * per_rate)));
    }
    // The lines of an account and direction are ordered by peer, so that they do not cross.
    for (key, mut positions) in right {
        for ((account, mo, peer), flow) in flows.iter().filter(|((account, mo, _), _)| (*account, *mo) == key)
        {
            let end = at_peers.get_mut(peer).map_or(0.0, |positions| positions.next(flow.rate * per_rate));
            let (account, peer) = (label(accounts, *account), label(peers, *peer));
            let (from, to) = if *mo { (peer, account) } else { (account, peer) };
            lines.right.push(MapLine {
                class: class(flow.severity, *mo),
                path: path(positions.next(flow.rate * per_rate), end),
                width: width(flow.rate),
                title: format!("{from} to {to}: {} /s", rate_text(flow.rate)),
            });
        }
    }
    lines
}

//! Draws the screen of `top`, in any size.

use super::rates::{TopData, links, queues_by_trouble};
use crate::attention::attention;
use crate::format::{blocked_by, duration_text, number, octets, padded, value_text};
use crate::output::Tone;
use api::{LinkView, PluginPeerView, QueueView};
use client::terminal::visible;
use std::collections::VecDeque;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The minimum number of lines for queues and links.
const MIN_TABLE_LINES: usize = 9;
/// The height of the curve, in lines.
const CURVE_LINES: usize = 3;
/// The width of the labels of the curve, in columns.
const LABEL_WIDTH: usize = 12;

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub(super) struct ViewState {
    /// Milliseconds since the epoch.
    pub(super) now: u64,
    /// The number of table rows that are scrolled away.
    pub(super) scrolled: usize,
    pub(super) paused: bool,
    /// The error of the last fetch, if it failed; the screen then shows an older snapshot.
    pub(super) trouble: Option<String>,
    /// Whether the screen is live, with keys.
    pub(super) live: bool,
}

/// A line of texts, each with its style.
#[derive(Debug, Clone, Default)]
pub(super) struct Line(Vec<(Option<Tone>, String)>);

impl Line {
    fn plain(text: impl Into<String>) -> Self {
        Self(vec![(None, text.into())])
    }

    fn with_tone(tone: Tone, text: impl Into<String>) -> Self {
        Self(vec![(Some(tone), text.into())])
    }

    fn and(mut self, tone: Option<Tone>, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    /// Cuts the line to `width` columns.
    fn cut(mut self, width: usize) -> Self {
        let mut left = width;
        for (_, text) in &mut self.0 {
            *text = cut(text, left);
            left -= text.width();
        }
        self
    }

    pub(super) fn text(&self, colour: bool) -> String {
        let piece = |(tone, text): &(Option<Tone>, String)| match tone {
            Some(tone) if colour => tone.paint(text),
            _ => text.clone(),
        };
        self.0.iter().map(piece).collect()
    }
}

/// Cuts a text to `width` columns.
fn cut(text: &str, width: usize) -> String {
    let mut taken = 0;
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        taken <= width
    };
    text.chars().take_while(fits).collect()
}

/// A rate a second, with a decimal if it is below 10.
fn rate(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}/s") } else { format!("{}/s", number(value.round() as u64)) }
}

/// Draws the whole screen. A live screen fills the terminal; otherwise it has as many lines as it needs.
pub(super) fn draw((width, height): (u16, u16), data: &TopData, view: &ViewState) -> Vec<Line> {
    let (width, height) = (usize::from(width), usize::from(height));
    let mut lines = summary(width, data);
    // Findings take at most a third of the screen, so that queues and links stay visible.
    let most = height.saturating_sub(lines.len() + MIN_TABLE_LINES).min(height / 3).max(1);
    lines.extend(attention_lines(data, view, most));
    if height >= lines.len() + CURVE_LINES + MIN_TABLE_LINES + 4
        && width > 2 * LABEL_WIDTH
        && !data.curve.is_empty()
    {
        lines.extend(curve(width, &data.curve));
    }
    let foot = usize::from(view.live);
    lines.extend(tables(width, height.saturating_sub(lines.len() + foot), data, view));
    if view.live {
        lines.resize(height.saturating_sub(foot), Line::default());
        let paused = if view.paused { "   paused" } else { "" };
        lines.push(Line::with_tone(Tone::Strong, format!("q quit   space pause   up, down scroll{paused}")));
    }
    lines.truncate(height);
    lines.into_iter().map(|line| line.cut(width)).collect()
}

/// The findings that need attention, in at most `most` lines.
fn attention_lines(data: &TopData, view: &ViewState, most: usize) -> Vec<Line> {
    let found = attention(&data.snapshot, view.now);
    let shown = if found.len() > most { most - 1 } else { found.len() };
    let mut lines: Vec<Line> = found
        .iter()
        .take(shown)
        .map(|finding| {
            let level = finding.level;
            Line::with_tone(level.tone(), padded(level.name(), 8)).and(None, finding.text.clone())
        })
        .collect();
    if shown < found.len() {
        let more = if shown == 0 { "" } else { "more " };
        let left = found.len() - shown;
        let text = format!("{left} {more}need attention: switchyard status");
        lines.push(Line::with_tone(Tone::Warning, text));
    }
    if let Some(trouble) = &view.trouble {
        let text = format!("error   the appliance does not answer; the data is old: {}", visible(trouble));
        lines.push(Line::with_tone(Tone::Error, text));
    }
    lines
}

/// Wraps texts to the width.
fn wrapped(width: usize, pieces: &[String]) -> Vec<Line> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if line.width() + 3 + piece.width() <= width => {
                line.push_str("   ");
                line.push_str(piece);
            }
            _ => lines.push(piece.clone()),
        }
    }
    lines.into_iter().map(Line::plain).collect()
}

fn summary(width: usize, data: &TopData) -> Vec<Line> {
    let (snapshot, rates) = (&data.snapshot, &data.rates);
    let status = &snapshot.status;
    let up = status.uptime_seconds.saturating_mul(1_000);
    let tone = if snapshot.readiness() == "ready" { Tone::Ok } else { Tone::Error };
    let name = format!("{} {}", value_text(&status.name), value_text(&status.version));
    let mut lines = vec![
        Line::with_tone(Tone::Strong, name)
            .and(None, "   ")
            .and(Some(tone), snapshot.readiness())
            .and(None, format!("   up {}", duration_text(&up))),
    ];
    let mut pieces = vec![
        format!("in {}", rate(rates.accepted)),
        format!("out {}", rate(rates.submitted)),
        format!("finished {}", rate(rates.ended)),
        format!("failed {}", rate(rates.failed)),
        format!("refused {}", rate(rates.refused)),
    ];
    if let Some(commit) = rates.commit_ms {
        pieces.push(format!("commit {commit:.1}ms"));
    }
    for (hook, _, us) in &rates.plugins {
        pieces.push(format!("{hook} {us:.0}us"));
    }
    lines.extend(wrapped(width, &pieces));
    let (links, dialled) = snapshot.dialled_links();
    let mut pieces = vec![
        format!("waiting {}", number(status.waiting)),
        format!("in flight {}", number(snapshot.sum(|queue| queue.in_flight))),
        format!("uncertain {}", number(snapshot.sum(|queue| queue.uncertain))),
        format!("links {links}/{dialled} + {}", snapshot.served_links()),
        format!("disk {}", octets(status.disk_free)),
    ];
    if let Some(archive) = &snapshot.archive {
        pieces.push(format!("archive behind by {}", number(archive.backlog)));
    }
    lines.extend(wrapped(width, &pieces));
    lines
}

/// The curve of messages submitted a second, the newest at the right; a line has eight steps.
fn curve(width: usize, rates: &VecDeque<u64>) -> Vec<Line> {
    const STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let room = width - LABEL_WIDTH;
    let shown: Vec<u64> = rates.iter().skip(rates.len().saturating_sub(room)).copied().collect();
    let highest = shown.iter().copied().max().unwrap_or(0).max(1);
    let labels = [format!("{}/s", number(highest)), "out".to_owned(), "0".to_owned()];
    let line = |(at, label): (usize, &String)| {
        // The steps of the lines below.
        let below = (CURVE_LINES - 1 - at) * 8;
        let column = |rate: &u64| {
            let steps = (*rate as f64 / highest as f64 * (8 * CURVE_LINES) as f64).round() as usize;
            // A rate above zero is always visible.
            let steps = if *rate > 0 { steps.max(1) } else { 0 };
            STEPS[steps.saturating_sub(below).min(8)]
        };
        let columns: String = shown.iter().map(column).collect();
        let blank = " ".repeat(room - shown.len());
        Line::plain(padded(label, LABEL_WIDTH)).and(Some(Tone::Ok), blank + &columns)
    };
    labels.iter().enumerate().map(line).collect()
}

/// A column: title, width, and the minimum width of the screen that shows it.
type Column = (&'static str, usize, usize);

const QUEUES: [Column; 9] = [
    ("QUEUE", 20, 0),
    ("LINKS", 5, 50),
    ("QUEUED", 10, 0),
    ("FLIGHT", 7, 60),
    ("DEFERRED", 9, 70),
    ("UNCERTAIN", 9, 58),
    ("AWAIT DLR", 10, 115),
    ("OLDEST", 8, 0),
    ("BLOCKED BY", 20, 100),
];

const LINKS: [Column; 7] = [
    ("LINK", 20, 0),
    ("PHASE", 11, 0),
    ("REMOTE", 22, 110),
    ("WINDOW", 10, 50),
    ("ANSWERS IN", 10, 60),
    ("BLOCKED BY", 14, 130),
    ("LAST ERROR", 20, 76),
];

const PLUGIN_PEERS: [Column; 7] = [
    ("PEER BY PLUGIN", 20, 0),
    ("PLUGIN", 16, 90),
    ("RATE", 9, 0),
    ("FLIGHT", 9, 50),
    ("REFUSED", 9, 60),
    ("UNSURE", 9, 58),
    ("LAST FAILURE", 20, 76),
];

fn plugin_peer_cells(peer: &PluginPeerView, data: &TopData, now: u64) -> Vec<String> {
    let per_second = data.rates.plugin_peers.iter().find(|(name, _)| *name == peer.peer);
    let failure = peer.last_failure.as_ref().map(|why| {
        let ago = duration_text(&now.saturating_sub(peer.last_failure_at.unwrap_or(now)));
        format!("{ago} ago: {}", value_text(why))
    });
    vec![
        value_text(&peer.peer),
        value_text(&peer.plugin),
        per_second.map_or_else(|| "-".to_owned(), |(_, attempts)| rate(*attempts)),
        format!("{}/{}", number(peer.in_flight), number(peer.window)),
        number(peer.refused),
        number(peer.uncertain),
        value_text(&failure),
    ]
}

fn queue_cells(queue: &QueueView, now: u64) -> Vec<String> {
    let age = |oldest: u64| duration_text(&now.saturating_sub(oldest));
    vec![
        value_text(&queue.peer),
        number(queue.links as u64),
        number(queue.queued),
        number(queue.in_flight),
        number(queue.deferred),
        number(queue.uncertain),
        number(queue.awaiting_dlr),
        queue.oldest.map_or_else(|| "-".to_owned(), age),
        blocked_by(&queue.blocked_by),
    ]
}

fn link_cells(link: &LinkView) -> Vec<String> {
    vec![
        value_text(&link.peer),
        value_text(&link.phase),
        value_text(&link.remote),
        format!("{}/{}", number(link.in_flight.into()), number(link.window.into())),
        link.round_trip_ms().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}ms")),
        blocked_by(&link.blocked_by),
        value_text(&link.last_error),
    ]
}

type Row = (Vec<String>, Option<Tone>);

/// The tables of queues, links, and peers that plugins serve. The peers get at most a third of the lines. Queues and links
/// get half of the rest each, plus the lines that the other does not need.
fn tables(width: usize, height: usize, data: &TopData, view: &ViewState) -> Vec<Line> {
    let peers = &data.snapshot.plugin_peers;
    let below = if peers.is_empty() { 0 } else { (peers.len() + 2).min((height / 3).max(3)) };
    let height = height.saturating_sub(below);
    let mut lines = queues_and_links(width, height, data, view);
    if below > 0 {
        let tone = |peer: &PluginPeerView| match (&peer.plugin, peer.uncertain > 0) {
            (None, _) => Some(Tone::Error),
            (Some(_), true) => Some(Tone::Warning),
            (Some(_), false) => None,
        };
        let rows: Vec<Row> =
            peers.iter().map(|peer| (plugin_peer_cells(peer, data, view.now), tone(peer))).collect();
        lines.push(Line::default());
        lines.extend(table((width, below), &PLUGIN_PEERS, &rows, view.scrolled));
    }
    lines
}

fn queues_and_links(width: usize, height: usize, data: &TopData, view: &ViewState) -> Vec<Line> {
    let queues = queues_by_trouble(&data.snapshot, view.now);
    let links = links(&data.snapshot);
    // Includes the heading and a blank line.
    let above = (queues.len() + 2).min((height / 2).max(height.saturating_sub(links.len() + 2)));
    let rows: Vec<Row> = queues
        .iter()
        .map(|queue| {
            let waits = queue.queued > 0 || queue.deferred > 0;
            let tone = match (queue.uncertain > 0, waits && queue.links == 0) {
                (_, true) => Some(Tone::Error),
                (true, false) => Some(Tone::Warning),
                (false, false) => None,
            };
            (queue_cells(queue, view.now), tone)
        })
        .collect();
    let mut lines = table((width, above), &QUEUES, &rows, view.scrolled);
    lines.resize(above, Line::default());
    let rows: Vec<Row> =
        links.iter().map(|link| (link_cells(link), (!link.is_up()).then_some(Tone::Error))).collect();
    lines.extend(table((width, height - above), &LINKS, &rows, view.scrolled));
    lines
}

/// A heading and rows, with a blank line at the end.
fn table((width, height): (usize, usize), columns: &[Column], rows: &[Row], scrolled: usize) -> Vec<Line> {
    if height < 2 {
        return Vec::new();
    }
    let shown: Vec<usize> = (0..columns.len()).filter(|at| width >= columns[*at].2).collect();
    let line = |cells: &dyn Fn(usize) -> String| -> String {
        let cells = shown.iter().map(|at| {
            let wide = if Some(at) == shown.last() { width } else { columns[*at].1 };
            padded(&cut(&cells(*at), wide), wide)
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    let room = height - 2;
    let from = scrolled.min(rows.len().saturating_sub(room));
    let head = Line::with_tone(Tone::Strong, line(&|at| columns[at].0.to_owned()));
    let rows = rows.iter().skip(from).take(room);
    let rows = rows.map(|(cells, tone)| Line(vec![(*tone, line(&|at| cells[at].clone()))]));
    std::iter::once(head).chain(rows).collect()
}

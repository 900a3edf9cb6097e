//! The picture: as large as there is room for, and nothing cut off that matters.

use super::rates::{Scene, by_trouble, links};
use crate::attention::attention;
use crate::output::Tone;
use crate::picture::is_up;
use crate::table::{brake, count, number, octets, padded, span, word};
use client::terminal::visible;
use serde_json::Value;
use std::collections::VecDeque;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Lines that are kept free for queues and links, if there are so many.
const ROOM: usize = 9;
/// Lines of the curve.
const CURVE: usize = 3;
/// Columns of what stands beside it.
const LABEL: usize = 12;

/// How the picture is drawn.
#[derive(Debug, Clone, Default)]
pub(super) struct Sight {
    /// Milliseconds since the epoch.
    pub(super) now: u64,
    /// Rows of the tables that are above what is seen.
    pub(super) scrolled: usize,
    pub(super) paused: bool,
    /// Why the last look failed; what is shown is older than that.
    pub(super) trouble: Option<String>,
    /// Whether the picture fills the screen, and keys do something.
    pub(super) live: bool,
}

/// A line of pieces, each as it is to look like.
#[derive(Debug, Clone, Default)]
pub(super) struct Line(Vec<(Option<Tone>, String)>);

impl Line {
    fn plain(text: impl Into<String>) -> Self {
        Self(vec![(None, text.into())])
    }

    fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self(vec![(Some(tone), text.into())])
    }

    fn and(mut self, tone: Option<Tone>, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    /// No wider than this.
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

/// The beginning of a text, as much as has room.
fn cut(text: &str, width: usize) -> String {
    let mut taken = 0;
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        taken <= width
    };
    text.chars().take_while(fits).collect()
}

/// A rate, in as few figures as say something.
fn rate(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}/s") } else { format!("{}/s", number(value.round() as u64)) }
}

/// Draws all of it. A live picture has as many lines as there are; another as many as it needs.
pub(super) fn draw((width, height): (u16, u16), scene: &Scene, sight: &Sight) -> Vec<Line> {
    let (width, height) = (usize::from(width), usize::from(height));
    let mut lines = summary(width, scene);
    // What is wrong takes a third at most, so that queues and links stay in sight.
    let most = height.saturating_sub(lines.len() + ROOM).min(height / 3).max(1);
    lines.extend(alarms(scene, sight, most));
    if height >= lines.len() + CURVE + ROOM + 4 && width > 2 * LABEL && !scene.curve.is_empty() {
        lines.extend(curve(width, &scene.curve));
    }
    let foot = usize::from(sight.live);
    lines.extend(tables(width, height.saturating_sub(lines.len() + foot), scene, sight));
    if sight.live {
        lines.resize(height.saturating_sub(foot), Line::default());
        let paused = if sight.paused { "   paused" } else { "" };
        lines.push(Line::toned(Tone::Strong, format!("q quit   space pause   up, down scroll{paused}")));
    }
    lines.truncate(height);
    lines.into_iter().map(|line| line.cut(width)).collect()
}

/// What needs attention, in so many lines.
fn alarms(scene: &Scene, sight: &Sight, most: usize) -> Vec<Line> {
    let found = attention(&scene.picture, sight.now);
    let shown = if found.len() > most { most - 1 } else { found.len() };
    let mut lines: Vec<Line> = found
        .iter()
        .take(shown)
        .map(|finding| {
            let level = finding.level;
            Line::toned(level.tone(), padded(level.word(), 8)).and(None, finding.what.clone())
        })
        .collect();
    if shown < found.len() {
        let more = if shown == 0 { "" } else { "more " };
        let left = found.len() - shown;
        let text = format!("{left} {more}need attention: switchyard status");
        lines.push(Line::toned(Tone::Doubtful, text));
    }
    if let Some(trouble) = &sight.trouble {
        let text = format!("error   the appliance does not answer, this is what was: {}", visible(trouble));
        lines.push(Line::toned(Tone::Bad, text));
    }
    lines
}

/// Pieces, as many on a line as fit.
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

fn summary(width: usize, scene: &Scene) -> Vec<Line> {
    let (picture, rates) = (&scene.picture, &scene.rates);
    let status = &picture.status;
    let up = status["uptime_seconds"].as_u64().unwrap_or(0).saturating_mul(1_000);
    let tone = if picture.word() == "ready" { Tone::Good } else { Tone::Bad };
    let name = format!("{} {}", word(&status["name"]), word(&status["version"]));
    let mut lines = vec![
        Line::toned(Tone::Strong, name)
            .and(None, "   ")
            .and(Some(tone), picture.word())
            .and(None, format!("   up {}", span(&up.into()))),
    ];
    let mut pieces = vec![
        format!("in {}", rate(rates.accepted)),
        format!("out {}", rate(rates.submitted)),
        format!("ended {}", rate(rates.ended)),
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
    let (links, dialled) = picture.dialled();
    let mut pieces = vec![
        format!("waiting {}", count(&status["waiting"])),
        format!("in flight {}", number(picture.sum("in_flight"))),
        format!("uncertain {}", number(picture.sum("uncertain"))),
        format!("links {links}/{dialled} + {}", picture.served()),
        format!("disk {}", octets(status["disk_free"].as_u64().unwrap_or(0))),
    ];
    if picture.archive["backlog"].is_u64() {
        pieces.push(format!("archive behind by {}", count(&picture.archive["backlog"])));
    }
    lines.extend(wrapped(width, &pieces));
    lines
}

/// Messages a second that went out, newest at the right edge; each column is eight steps a line high.
fn curve(width: usize, rates: &VecDeque<u64>) -> Vec<Line> {
    const STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let room = width - LABEL;
    let shown: Vec<u64> = rates.iter().skip(rates.len().saturating_sub(room)).copied().collect();
    let highest = shown.iter().copied().max().unwrap_or(0).max(1);
    let labels = [format!("{}/s", number(highest)), "out".to_owned(), "0".to_owned()];
    let line = |(at, label): (usize, &String)| {
        // Steps that are below this line.
        let below = (CURVE - 1 - at) * 8;
        let column = |rate: &u64| {
            let steps = (*rate as f64 / highest as f64 * (8 * CURVE) as f64).round() as usize;
            // What is more than nothing is seen.
            let steps = if *rate > 0 { steps.max(1) } else { 0 };
            STEPS[steps.saturating_sub(below).min(8)]
        };
        let columns: String = shown.iter().map(column).collect();
        let blank = " ".repeat(room - shown.len());
        Line::plain(padded(label, LABEL)).and(Some(Tone::Good), blank + &columns)
    };
    labels.iter().enumerate().map(line).collect()
}

/// One column: its title, its width, from which width of the screen on it is there.
type Column = (&'static str, usize, usize);

const QUEUES: [Column; 9] = [
    ("QUEUE", 20, 0),
    ("LINKS", 5, 50),
    ("QUEUED", 10, 0),
    ("FLIGHT", 7, 60),
    ("DEFERRED", 9, 70),
    ("UNCERTAIN", 9, 58),
    ("RECEIPTS", 10, 115),
    ("OLDEST", 8, 0),
    ("HELD UP BY", 20, 100),
];

const LINKS: [Column; 7] = [
    ("LINK", 20, 0),
    ("PHASE", 11, 0),
    ("REMOTE", 22, 110),
    ("WINDOW", 10, 50),
    ("ANSWERS IN", 10, 60),
    ("HELD UP BY", 14, 130),
    ("LAST ERROR", 20, 76),
];

fn queue_cells(queue: &Value, now: u64) -> Vec<String> {
    let age = queue["oldest"].as_u64();
    let age = age.map_or_else(|| "-".to_owned(), |oldest| span(&now.saturating_sub(oldest).into()));
    let mut cells = vec![word(&queue["peer"])];
    let counts = ["links", "queued", "in_flight", "deferred", "uncertain", "awaiting_receipt"];
    cells.extend(counts.map(|name| count(&queue[name])));
    cells.extend([age, brake(&queue["brake"])]);
    cells
}

fn link_cells(link: &Value) -> Vec<String> {
    let trip = link["round_trip_us"].as_u64();
    vec![
        word(&link["peer"]),
        word(&link["phase"]),
        word(&link["remote"]),
        format!("{}/{}", count(&link["in_flight"]), count(&link["window"])),
        trip.map_or_else(|| "-".to_owned(), |us| format!("{:.1}ms", us as f64 / 1_000.0)),
        brake(&link["brake"]),
        word(&link["last_error"]),
    ]
}

type Row = (Vec<String>, Option<Tone>);

/// Queues and links. Each may have half of the room; what one does not need is the other's.
fn tables(width: usize, height: usize, scene: &Scene, sight: &Sight) -> Vec<Line> {
    let queues = by_trouble(&scene.picture, sight.now);
    let links = links(&scene.picture);
    // With its head, and a blank line.
    let above = (queues.len() + 2).min((height / 2).max(height.saturating_sub(links.len() + 2)));
    let rows: Vec<Row> = queues
        .iter()
        .map(|queue| {
            let waits = ["queued", "deferred"].iter().any(|name| queue[*name].as_u64() > Some(0));
            let tone = match (queue["uncertain"].as_u64() > Some(0), waits && queue["links"] == 0) {
                (_, true) => Some(Tone::Bad),
                (true, false) => Some(Tone::Doubtful),
                (false, false) => None,
            };
            (queue_cells(queue, sight.now), tone)
        })
        .collect();
    let mut lines = table((width, above), &QUEUES, &rows, sight.scrolled);
    lines.resize(above, Line::default());
    let rows: Vec<Row> =
        links.iter().map(|link| (link_cells(link), (!is_up(link)).then_some(Tone::Bad))).collect();
    lines.extend(table((width, height - above), &LINKS, &rows, sight.scrolled));
    lines
}

/// A head, and as many rows as there is room for with a blank line after them.
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
    let head = Line::toned(Tone::Strong, line(&|at| columns[at].0.to_owned()));
    let rows = rows.iter().skip(from).take(room);
    let rows = rows.map(|(cells, tone)| Line(vec![(*tone, line(&|at| cells[at].clone()))]));
    std::iter::once(head).chain(rows).collect()
}

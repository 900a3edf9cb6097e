//! `switchyard top`: the appliance while one looks at it.

mod drawing;
mod live;
mod rates;

use crate::output::{Failure, Output, Streams};
use crate::picture::Picture;
use crate::way::{Way, exits};
use clap::Args;
use client::Appliance;
use drawing::{Sight, draw};
use model::parse_duration;
use rates::Scene;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const AFTER: &str = concat!(
    exits!(),
    "
Keys:
  q, Escape   quit
  space       pause, and go on
  up, down    scroll

Examples:
  switchyard top
  switchyard top --interval 5s
  switchyard top --once --interval 10s --json | jq .rates"
);

/// Where standard output is no terminal: as wide and as high.
const SIZE: (u16, u16) = (120, 40);

/// Arguments of `top`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct TopCommand {
    /// How often to look.
    #[arg(long, value_parser = interval, default_value = "1s")]
    interval: Duration,
    /// Print one picture and end: of what happens within one interval. With --json, for programs.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    way: Way,
}

fn interval(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|interval| (Duration::from_millis(100)..=Duration::from_secs(3_600)).contains(interval))
        .ok_or_else(|| "expected a time from 100ms to 1h, such as 2s".to_owned())
}

impl TopCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { interval, once, way } = self;
        if once {
            return way.ask(streams, |appliance, output| print(appliance, output, interval));
        }
        way.keep(streams, |appliance, output| {
            if output.json {
                return Err(Failure::Usage("--json prints one picture: say --once, too".to_owned()));
            }
            live::watch(appliance, output, interval)
        })
    }
}

fn print(appliance: &Appliance, output: &Output, interval: Duration) -> Result<(), Failure> {
    let mut scene = Scene::of(Picture::take(appliance)?);
    let begun = Instant::now();
    // Rates are of a time that has to pass; nobody will say anything in it.
    let (_nobody, silence) = mpsc::channel::<()>();
    let _ = silence.recv_timeout(interval);
    scene.next(Picture::take(appliance)?, begun.elapsed());
    let now = output.now();
    if output.json {
        return output.document(&scene.json(now));
    }
    // One look back is no curve.
    scene.curve.clear();
    let size = output.size().unwrap_or(SIZE);
    let lines = draw(size, &scene, &Sight { now, ..Sight::default() });
    for line in &lines {
        output.line(line.text(output.colour()).trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::{NOW, Stub, run};
    use serde_json::{Value, json};
    use unicode_width::UnicodeWidthStr;

    fn status(accepted: u64) -> Value {
        json!({
            "name": "SWITCHYARD", "version": "0.1.0", "uptime_seconds": 3_700, "waiting": 1_204,
            "disk_free": 51_539_607_552_u64, "disk_low": false,
            "totals": { "accepted": accepted, "submitted": accepted, "delivered": accepted / 2, "commits": 1 },
        })
    }

    fn picture(queues: usize) -> Picture {
        let names = ["upstream", "demo", "短信中心", "a\u{1b}[31m-very-long-name-of-a-peer-that-is-cut"];
        let queue = |at: usize| {
            json!({
                "peer": names.get(at).map_or_else(|| format!("peer-{at}"), |name| (*name).to_owned()),
                "configured": true, "queued": 1_000 * at, "deferred": at, "in_flight": 5, "uncertain": at % 2,
                "awaiting_receipt": 12, "oldest": NOW - 1_000 * at as u64, "links": at % 3, "brake": "idle",
            })
        };
        let link = |at: usize| {
            json!({
                "peer": format!("peer-{at}"), "role": "client", "phase": if at == 1 { "backing-off" } else { "bound" },
                "remote": "10.0.0.1:2775", "window": 500, "in_flight": at, "round_trip_us": 12_345, "brake": "none",
                "last_error": if at == 1 { json!("connection refused") } else { Value::Null },
            })
        };
        Picture {
            status: status(10),
            queues: (0..queues).map(queue).collect(),
            links: (0..3).map(link).collect(),
            archive: json!({ "state": "up", "backlog": 17 }),
            attention: json!([
                {
                    "severity": "error", "code": "peer-down", "subject": { "kind": "peer", "name": "peer-1" },
                    "since": NOW - 61_000, "text": "no link to peer-1 is up: connection refused", "remedy": null,
                },
                {
                    "severity": "warning", "code": "messages-uncertain", "subject": { "kind": "queue", "name": "demo" },
                    "since": null, "text": "1 message was submitted to demo and never answered", "remedy": null,
                },
                {
                    "severity": "warning", "code": "queue-old", "subject": { "kind": "queue", "name": "短信中心" },
                    "since": null, "text": "2,000 messages wait for 短信中心: idle", "remedy": null,
                },
            ]),
            ..Picture::default()
        }
    }

    fn drawn(scene: &Scene, size: (u16, u16), sight: &Sight) -> String {
        let lines = draw(size, scene, sight);
        lines.iter().map(|line| line.text(false).trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn the_picture_is_as_large_as_there_is_room() {
        let mut scene = Scene::of(picture(6));
        let mut later = picture(6);
        later.status["totals"] = json!({
            "accepted": 1_300, "submitted": 2_010, "delivered": 15, "commits": 11, "commit_us": 21_000,
        });
        scene.next(later, Duration::from_secs(1));
        scene.curve = (0..100_u64).map(|at| at * at % 97).collect();
        let sight = Sight { now: NOW, live: true, ..Sight::default() };
        for (width, height) in [(140, 40), (80, 24), (40, 16)] {
            insta::assert_snapshot!(format!("top_{width}x{height}"), drawn(&scene, (width, height), &sight));
        }
        let sight = Sight { trouble: Some("no\u{7} answer".to_owned()), paused: true, scrolled: 2, ..sight };
        insta::assert_snapshot!("top_trouble", drawn(&scene, (100, 24), &sight));
    }

    #[test]
    fn no_size_is_too_small_and_no_scrolling_too_far() {
        let mut scene = Scene::of(picture(200));
        scene.next(picture(200), Duration::from_secs(1));
        for width in [0, 1, 2, 7, 19, 20, 39, 41, 99, 300] {
            for height in 0..40 {
                for scrolled in [0, 3, 10_000] {
                    let sight = Sight { now: NOW, scrolled, live: true, ..Sight::default() };
                    let text = drawn(&scene, (width, height), &sight);
                    assert_eq!(text.lines().count(), usize::from(height), "{width}x{height}");
                    assert!(text.lines().all(|line| line.width() <= usize::from(width)), "{width}: {text}");
                    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
                }
            }
        }
        let last = drawn(&scene, (100, 40), &Sight { now: NOW, scrolled: 10_000, ..Sight::default() });
        let first = drawn(&scene, (100, 40), &Sight { now: NOW, ..Sight::default() });
        assert_ne!(first, last);
    }

    #[test]
    fn one_picture_for_programs() {
        let url = Stub::default()
            .with("GET /v1/status", 200, &status(1_000))
            .with("GET /v1/status", 200, &status(3_000))
            .with("GET /v1/queues", 200, &picture(2).queues)
            .with("GET /v1/links", 200, &picture(2).links)
            .with("GET /v1/ready", 200, &json!({ "status": "ready" }))
            .with("GET /v1/attention", 200, &json!([]))
            .start();
        let done = run(&url, &["top", "--once", "--json", "--interval", "100ms"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        let document: Value = serde_json::from_str(&done.out).unwrap();
        let accepted = document["rates"]["accepted"].as_f64().unwrap();
        assert!(accepted > 0.0 && accepted <= 20_000.0, "{document:#}");
        assert_eq!(document["queues"].as_array().unwrap().len(), 2);
        assert_eq!(document["waiting"], 1_204);
        let done = run(&url, &["top", "--once", "--interval", "100ms"]);
        assert!(done.out.contains("waiting 1,204") && done.out.contains("QUEUE"), "{done:?}");
    }

    #[test]
    fn what_cannot_be_watched_is_said() {
        let url = Stub::default().start();
        let done = run(&url, &["top"]);
        assert_eq!((done.code, done.out.as_str()), (2, ""));
        assert!(done.error.contains("--once"), "{done:?}");
        assert_eq!(run(&url, &["top", "--json"]).code, 2);
        assert_eq!(run(&url, &["top", "--interval", "1ms"]).code, 2);
        assert_eq!(run(&url, &["top", "--once"]).code, 1);
    }
}

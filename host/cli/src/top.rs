//! `switchyard top`: shows the live state of the appliance.

mod live;
mod rates;
mod screen;

use crate::global_args::{GlobalArgs, exit_help, refresh_interval};
use crate::output::{Failure, Output, Streams};
use crate::snapshot::Snapshot;
use clap::Args;
use client::ApiClient;
use rates::TopData;
use screen::{ViewState, draw};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Keys:
  q, Escape   quit
  space       pause or resume
  up, down    scroll

Examples:
  switchyard top
  switchyard top --interval 5s
  switchyard top --once --interval 10s --json | jq .rates"
);

/// Columns and lines if standard output is not a terminal.
const DEFAULT_SIZE: (u16, u16) = (120, 40);

/// Arguments of `top`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct TopCommand {
    /// The refresh interval.
    #[arg(long, value_parser = refresh_interval, default_value = "1s")]
    interval: Duration,
    /// Print the rates over one interval once, and exit. With --json, for programs.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    global: GlobalArgs,
}

impl TopCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { interval, once, global } = self;
        if once {
            return global.run(streams, |api, output| print(api, output, interval));
        }
        global.run_owned(streams, |api, output| {
            if output.json {
                return Err(Failure::Usage("--json needs --once".to_owned()));
            }
            live::watch(api, output, interval)
        })
    }
}

fn print(api: &ApiClient, output: &Output, interval: Duration) -> Result<(), Failure> {
    let mut data = TopData::of(Snapshot::fetch(api)?);
    let begun = Instant::now();
    // Waits for one interval: nothing is ever sent on this channel.
    let (_sender, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(interval);
    data.next(Snapshot::fetch(api)?, begun.elapsed());
    let now = output.now();
    if output.json {
        return output.document(&data.json(now));
    }
    // One sample is not a curve.
    data.curve.clear();
    let size = output.terminal_size().unwrap_or(DEFAULT_SIZE);
    let lines = draw(size, &data, &ViewState { now, ..ViewState::default() });
    for line in &lines {
        output.line(line.text(output.colour()).trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{FakeApi, NOW, run};
    use crate::fixtures;
    use api::{
        AttentionSeverity, AttentionSubjectKind, AttentionView, LinkPhase, LinkRole, LinkView,
        PluginPeerView, PumpState, QueueView, Readiness, StatusTotals, StatusView,
    };
    use serde_json::{Value, json};
    use unicode_width::UnicodeWidthStr;

    fn status(totals: StatusTotals) -> StatusView {
        StatusView {
            uptime_seconds: 3_700,
            waiting: 1_204,
            disk_free: 51_539_607_552,
            ..fixtures::status(totals)
        }
    }

    fn status_after(accepted: u64) -> StatusView {
        status(StatusTotals {
            accepted,
            submitted: accepted,
            delivered: accepted / 2,
            commits: 1,
            ..StatusTotals::default()
        })
    }

    fn snapshot(queues: usize) -> Snapshot {
        let names = ["upstream", "demo", "短信中心", "a\u{1b}[31m-very-long-name-of-a-peer-that-is-cut"];
        let queue = |at: usize| {
            let count = at as u64;
            let name = names.get(at).map_or_else(|| format!("peer-{at}"), |name| (*name).to_owned());
            QueueView {
                queued: 1_000 * count,
                deferred: count,
                in_flight: 5,
                uncertain: count % 2,
                awaiting_dlr: 12,
                oldest: Some(NOW - 1_000 * count),
                links: at % 3,
                ..fixtures::queue(&name)
            }
        };
        let link = |at: u32| LinkView {
            remote: Some("10.0.0.1:2775".to_owned()),
            window: 500,
            in_flight: at,
            round_trip_us: Some(12_345),
            last_error: (at == 1).then(|| "connection refused".to_owned()),
            ..fixtures::link(
                &format!("peer-{at}"),
                LinkRole::Client,
                if at == 1 { LinkPhase::BackingOff } else { LinkPhase::Bound },
            )
        };
        let warning = |code: &str, text: &str| {
            fixtures::finding(AttentionSeverity::Warning, code, AttentionSubjectKind::Queue, text)
        };
        let down = "no link to peer-1 is up: connection refused";
        Snapshot {
            status: status_after(10),
            queues: (0..queues).map(queue).collect(),
            links: (0..3).map(link).collect(),
            archive: Some(fixtures::archive(PumpState::Up, 17)),
            attention: vec![
                AttentionView {
                    since: Some(NOW - 61_000),
                    ..fixtures::finding(
                        AttentionSeverity::Error,
                        "peer-down",
                        AttentionSubjectKind::Peer,
                        down,
                    )
                },
                warning("messages-uncertain", "1 message was submitted to demo and never answered"),
                warning("queue-old", "2,000 messages wait for 短信中心: idle"),
            ],
            ..Snapshot::default()
        }
    }

    fn drawn(data: &TopData, size: (u16, u16), view: &ViewState) -> String {
        let lines = draw(size, data, view);
        lines.iter().map(|line| line.text(false).trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn the_screen_fits_the_terminal() {
        let mut data = TopData::of(snapshot(6));
        let mut later = snapshot(6);
        later.status = status(StatusTotals {
            accepted: 1_300,
            submitted: 2_010,
            delivered: 15,
            commits: 11,
            commit_us: 21_000,
            ..StatusTotals::default()
        });
        data.next(later, Duration::from_secs(1));
        data.curve = (0..100_u64).map(|at| at * at % 97).collect();
        let view = ViewState { now: NOW, live: true, ..ViewState::default() };
        for (width, height) in [(140, 40), (80, 24), (40, 16)] {
            insta::assert_snapshot!(format!("top_{width}x{height}"), drawn(&data, (width, height), &view));
        }
        let view =
            ViewState { trouble: Some("no\u{7} answer".to_owned()), paused: true, scrolled: 2, ..view };
        insta::assert_snapshot!("top_trouble", drawn(&data, (100, 24), &view));
    }

    #[test]
    fn peers_by_plugins_are_drawn_with_their_rate() {
        let with_peer = |accepted| {
            let peer = PluginPeerView {
                peer: "aggregator".to_owned(),
                plugin: Some("http-peer".to_owned()),
                window: 8,
                in_flight: 3,
                accepted,
                refused: 12,
                uncertain: 1,
                last_failure: Some("refused with code 402".to_owned()),
                last_failure_at: Some(NOW - 90_000),
                ..PluginPeerView::default()
            };
            Snapshot { plugin_peers: vec![peer], ..snapshot(3) }
        };
        let mut data = TopData::of(with_peer(1_000));
        data.next(with_peer(1_250), Duration::from_secs(1));
        // A narrow terminal cuts the failure.
        for (size, failure) in [((140, 40), "402"), ((100, 24), "ago: ")] {
            let text = drawn(&data, size, &ViewState { now: NOW, ..ViewState::default() });
            let line = text.lines().find(|line| line.starts_with("aggregator ")).unwrap();
            for part in ["http-peer", "250/s", "3/8", "12", failure] {
                assert!(line.contains(part), "{part}: {line}");
            }
        }
        assert_eq!(data.json(NOW)["rates"]["plugin-peers"][0]["attempts"], 250.0);
    }

    #[test]
    fn any_size_and_any_scrolling_is_drawn() {
        let mut data = TopData::of(snapshot(200));
        data.next(snapshot(200), Duration::from_secs(1));
        for width in [0, 1, 2, 7, 19, 20, 39, 41, 99, 300] {
            for height in 0..40 {
                for scrolled in [0, 3, 10_000] {
                    let view = ViewState { now: NOW, scrolled, live: true, ..ViewState::default() };
                    let text = drawn(&data, (width, height), &view);
                    assert_eq!(text.lines().count(), usize::from(height), "{width}x{height}");
                    assert!(text.lines().all(|line| line.width() <= usize::from(width)), "{width}: {text}");
                    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
                }
            }
        }
        let last = drawn(&data, (100, 40), &ViewState { now: NOW, scrolled: 10_000, ..ViewState::default() });
        let first = drawn(&data, (100, 40), &ViewState { now: NOW, ..ViewState::default() });
        assert_ne!(first, last);
    }

    #[test]
    fn once_prints_json_or_one_screen() {
        let url = FakeApi::default()
            .with("GET /v1/status", 200, &status_after(1_000))
            .with("GET /v1/status", 200, &status_after(3_000))
            .with("GET /v1/queues", 200, &snapshot(2).queues)
            .with("GET /v1/links", 200, &snapshot(2).links)
            .with("GET /v1/ready", 200, &json!(Readiness::of(Vec::new())))
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
    fn a_live_screen_needs_a_terminal() {
        let url = FakeApi::default().start();
        let done = run(&url, &["top"]);
        assert_eq!((done.code, done.out.as_str()), (2, ""));
        assert!(done.error.contains("--once"), "{done:?}");
        assert_eq!(run(&url, &["top", "--json"]).code, 2);
        assert_eq!(run(&url, &["top", "--interval", "1ms"]).code, 2);
        assert_eq!(run(&url, &["top", "--once"]).code, 1);
    }
}

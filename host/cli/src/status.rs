//! `switchyard status`: shows the appliance on one screen.

use crate::attention::{Finding, attention};
use crate::format::{duration_text, number, octets, padded, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams, Tone};
use crate::snapshot::Snapshot;
use api::{ArchivePumpView, EventSinkView, PluginPeerView};
use clap::Args;
use client::ApiClient;
use serde_json::json;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard status
  switchyard status --json | jq '.attention[].text'"
);

/// Arguments of `status`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct StatusCommand {
    #[command(flatten)]
    global: GlobalArgs,
}

impl StatusCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        self.global.run(streams, status)
    }
}

fn status(api: &ApiClient, output: &Output) -> Result<(), Failure> {
    let snapshot = Snapshot::fetch(api)?;
    let now = output.now();
    if output.json {
        let mut document = snapshot.summary_json();
        document["name"] = json!(snapshot.status.name);
        document["version"] = json!(snapshot.status.version);
        document["uptime-seconds"] = json!(snapshot.status.uptime_seconds);
        document["attention"] = json!(snapshot.attention);
        return output.document(&document);
    }
    output.write(&screen(&snapshot, now, output))?;
    output.write("\n")?;
    let found = attention(&snapshot, now);
    if found.is_empty() {
        return output.line(&output.paint(Tone::Ok, "Nothing needs attention."));
    }
    output.line(&output.paint(Tone::Strong, "Needs attention:"))?;
    output.write(&findings(&found, output))
}

/// The findings, each with its remedy on the next line.
pub(crate) fn findings(found: &[Finding], output: &Output) -> String {
    let mut text = String::new();
    for finding in found {
        let level = output.paint(finding.level.tone(), &padded(finding.level.name(), 7));
        text.push_str(&format!("  {level}  {}\n", finding.text));
        if !finding.remedy.is_empty() {
            text.push_str(&format!("  {}  -> {}\n", padded("", 7), finding.remedy));
        }
    }
    text
}

/// Names and figures on one line.
fn figures(pairs: &[(&str, String)]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name} {value}")).collect();
    pairs.join("   ")
}

fn screen(snapshot: &Snapshot, now: u64, output: &Output) -> String {
    let status = &snapshot.status;
    let tone = if snapshot.readiness() == "ready" { Tone::Ok } else { Tone::Error };
    let up = status.uptime_seconds.saturating_mul(1_000);
    let name = format!("{} {}", value_text(&status.name), value_text(&status.version));
    let mut text = format!(
        "{}   {}   up {}\n\n",
        output.paint(Tone::Strong, &name),
        output.paint(tone, snapshot.readiness()),
        duration_text(&up),
    );
    let mut line = |name: &str, rest: &str| text.push_str(&format!("{}  {rest}\n", padded(name, 8)));
    let age = snapshot.oldest().map_or_else(|| "-".to_owned(), |at| duration_text(&now.saturating_sub(at)));
    line(
        "messages",
        &figures(&[
            ("waiting", number(status.waiting)),
            ("queued", number(snapshot.sum(|queue| queue.queued))),
            ("oldest", age),
            ("in flight", number(snapshot.sum(|queue| queue.in_flight))),
            ("deferred", number(snapshot.sum(|queue| queue.deferred))),
            ("uncertain", number(snapshot.sum(|queue| queue.uncertain))),
        ]),
    );
    let totals = &status.totals;
    line("accepted", &figures(&[("since the start", number(totals.accepted))]));
    line(
        "finished",
        &figures(&[
            ("delivered", number(totals.delivered)),
            ("relayed", number(totals.relayed)),
            ("failed", number(totals.failed)),
            ("expired", number(totals.expired)),
            ("rejected", number(totals.rejected)),
            ("cancelled", number(totals.cancelled)),
        ]),
    );
    let (up, dialled) = snapshot.dialled_links();
    let mut links = vec![("to peers", format!("{up} of {dialled} up"))];
    links.push(("from accounts", number(snapshot.served_links() as u64)));
    line("links", &figures(&links));
    let learnt: Vec<String> = snapshot
        .queues
        .iter()
        .filter_map(|queue| Some(format!("{} {:.1}/s", value_text(&queue.peer), queue.learnt_rate?)))
        .collect();
    if !learnt.is_empty() {
        line("learnt", &format!("{}   (learnt from throttling errors)", learnt.join("   ")));
    }
    let mut plugins: Vec<String> = snapshot
        .plugins()
        .filter(|(_, plugin)| plugin.live && plugin.tenant.is_none())
        .map(|(hook, plugin)| {
            format!("{hook} {} {}", value_text(&plugin.plugin), value_text(&plugin.version))
        })
        .collect();
    match snapshot.plugins().filter(|(_, plugin)| plugin.live && plugin.tenant.is_some()).count() {
        0 => {}
        1 => plugins.push("1 binding of a tenant".to_owned()),
        count => plugins.push(format!("{count} bindings of tenants")),
    }
    line("plugins", &if plugins.is_empty() { "none".to_owned() } else { plugins.join("   ") });
    for peer in &snapshot.plugin_peers {
        line("peer", &plugin_peer(peer, now));
    }
    line("disk", &format!("{} free", octets(status.disk_free)));
    line("archive", &archive(snapshot.archive.as_ref()));
    if !snapshot.event_sinks.is_empty() {
        let sinks: Vec<String> = snapshot.event_sinks.iter().map(event_sink).collect();
        line("events", &sinks.join("   "));
    }
    text
}

/// A peer whose protocol a plugin implements: figures since the start, and its last failure.
fn plugin_peer(peer: &PluginPeerView, now: u64) -> String {
    let name = format!("{} by {}", value_text(&peer.peer), value_text(&peer.plugin));
    let mut pairs = vec![
        ("in flight", format!("{} of {}", number(peer.in_flight), number(peer.window))),
        ("accepted", number(peer.accepted)),
        ("refused", number(peer.refused)),
        ("unsure", number(peer.uncertain)),
    ];
    if let (Some(why), Some(at)) = (&peer.last_failure, peer.last_failure_at) {
        let ago = duration_text(&now.saturating_sub(at));
        pairs.push(("last failure", format!("{ago} ago: {}", value_text(why))));
    }
    format!("{name}   {}", figures(&pairs))
}

fn archive(archive: Option<&ArchivePumpView>) -> String {
    match archive {
        None => "none; finished messages are kept for finished-retention".to_owned(),
        Some(pump) => format!("{}   backlog {}", value_text(&pump.state), number(pump.backlog)),
    }
}

fn event_sink(sink: &EventSinkView) -> String {
    let lag = duration_text(&sink.lag.millis());
    format!("{} {}, {lag} behind", value_text(&sink.name), value_text(&sink.state))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use crate::fixtures::{self, archive, link, router, status};
    use admin::{Problem, ProblemKind};
    use api::{
        AttentionSeverity, AttentionSubjectKind, AttentionView, LinkPhase, LinkRole, LinkView, NotReady,
        PluginPeerView, PumpState, QueueView, Readiness, StatusTotals, StatusView,
    };
    use serde_json::json;

    fn healthy() -> FakeApi {
        let totals = StatusTotals {
            accepted: 1_234_567,
            delivered: 1_200_000,
            relayed: 34_000,
            failed: 12,
            rejected: 538,
            ..StatusTotals::default()
        };
        let status = StatusView {
            uptime_seconds: 273_840,
            waiting: 17,
            finished_kept: 3,
            disk_free: 51_539_607_552,
            recovery_ms: 12,
            ..status(totals)
        };
        FakeApi::default()
            .with("GET /v1/status", 200, &status)
            .with("GET /v1/ready", 200, &Readiness::of(Vec::new()))
            .with("GET /v1/attention", 200, &json!([]))
            .with("GET /v1/archive", 200, &archive(PumpState::Up, 3))
            .with("GET /v1/hooks", 200, &[router(100, 9)])
    }

    fn queue(peer: &str, queued: u64, links: usize, oldest: Option<u64>, blocked_by: &str) -> QueueView {
        QueueView {
            queued,
            deferred: 2,
            in_flight: 5,
            awaiting_dlr: 1,
            oldest,
            links,
            blocked_by: blocked_by.to_owned(),
            ..fixtures::queue(peer)
        }
    }

    #[test]
    fn peers_by_plugins_have_a_line_each() {
        let peer = PluginPeerView {
            peer: "aggregator".to_owned(),
            plugin: Some("http-peer".to_owned()),
            window: 8,
            in_flight: 3,
            accepted: 4_012,
            refused: 12,
            uncertain: 1,
            last_failure: Some("refused with code 402: no credit\u{1b}".to_owned()),
            last_failure_at: Some(NOW - 90_000),
            ..PluginPeerView::default()
        };
        let unbound = PluginPeerView { peer: "other".to_owned(), window: 2, ..PluginPeerView::default() };
        let url = healthy()
            .with("GET /v1/queues", 200, &json!([]))
            .with("GET /v1/links", 200, &json!([]))
            .with("GET /v1/plugin-peers", 200, &[peer, unbound])
            .start();
        let done = run(&url, &["status"]);
        let lines: Vec<&str> = done.out.lines().filter(|line| line.starts_with("peer ")).collect();
        assert_eq!(lines.len(), 2, "{}", done.out);
        for part in
            ["aggregator by http-peer", "in flight 3 of 8", "refused 12", "unsure 1", "402: no credit"]
        {
            assert!(lines[0].contains(part), "{part}: {}", lines[0]);
        }
        assert!(!done.out.contains('\u{1b}'), "{:?}", done.out);
        assert!(lines[1].contains("other by -"), "{}", lines[1]);
        let document: serde_json::Value =
            serde_json::from_str(&run(&url, &["status", "--json"]).out).unwrap();
        assert_eq!(document["plugin-peers"][0]["refused"], 12);
    }

    #[test]
    fn the_status_of_a_healthy_appliance() {
        let url = healthy()
            .with("GET /v1/queues", 200, &[queue("upstream", 10, 2, Some(NOW - 2_500), "idle")])
            .with(
                "GET /v1/links",
                200,
                &[
                    link("upstream", LinkRole::Client, LinkPhase::Bound),
                    link("upstream", LinkRole::Client, LinkPhase::Bound),
                    link("demo", LinkRole::Server, LinkPhase::Bound),
                ],
            )
            .start();
        let done = run(&url, &["status"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        insta::assert_snapshot!("status_well", done.out);
    }

    #[test]
    fn attention_findings_are_printed() {
        let found = |severity, code: &str, text: &str, remedy: Option<&str>| AttentionView {
            remedy: remedy.map(str::to_owned),
            ..fixtures::finding(severity, code, AttentionSubjectKind::Appliance, text)
        };
        let reverts =
            format!("version 9 of the configuration reverts at {} unless it is confirmed", NOW + 90_000);
        let down = "no link to upstream is up: refused\u{1b}[2J";
        let list = [
            AttentionView {
                since: Some(NOW - 90_000),
                ..found(AttentionSeverity::Error, "peer-down", down, Some("switchyard peer test upstream"))
            },
            found(
                AttentionSeverity::Warning,
                "configuration-unconfirmed",
                &reverts,
                Some("to keep it: switchyard config confirm"),
            ),
            found(AttentionSeverity::Warning, "new-code", "something that this command does not know", None),
        ];
        let mut slow = queue("slow", 1, 1, None, "throttled by the peer: learnt rate 9.6/s");
        slow.learnt_rate = Some(9.63);
        let mut doubtful = queue("upstream", 10, 0, Some(NOW - 60_000), "no link is up");
        doubtful.uncertain = 3;
        let status = StatusView {
            uptime_seconds: 5,
            waiting: 17,
            disk_free: 1_000_000,
            disk_low: true,
            ..status(StatusTotals::default())
        };
        let last_error = Some("refused".to_owned());
        let link_down = LinkView { last_error, ..link("upstream", LinkRole::Client, LinkPhase::BackingOff) };
        let url = FakeApi::default()
            .with("GET /v1/status", 200, &status)
            .with("GET /v1/ready", 503, &Readiness::of(vec![NotReady::DiskLow]))
            .with("GET /v1/queues", 200, &[doubtful, slow])
            .with("GET /v1/links", 200, &[link_down])
            .with("GET /v1/attention", 200, &list)
            .start();
        let done = run(&url, &["status"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        insta::assert_snapshot!("status_unwell", done.out);
        let done = run(&url, &["status", "--json"]);
        let document: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(document["attention"], json!(list), "{document:#}");
        assert_eq!((&document["ready"], &document["uncertain"]), (&json!(false), &json!(3)));
        assert!(!done.out.trim_end().chars().any(char::is_control));
    }

    #[test]
    fn unreachable_and_unauthorised_exit_with_2() {
        let done = run("http://127.0.0.1:1", &["status"]);
        assert_eq!((done.code, done.out.as_str()), (2, ""));
        assert!(done.error.contains("127.0.0.1:1/v1/status"), "{}", done.error);
        let refused = Problem::new(ProblemKind::Unauthorised, "send the header");
        let url = FakeApi::default().refusing("GET /v1/status", &refused).start();
        let done = run(&url, &["status"]);
        assert_eq!((done.code, done.error.as_str()), (2, "switchyard: not authenticated: send the header\n"));
        let done = run(&url, &["status", "--json"]);
        let problem: serde_json::Value = serde_json::from_str(&done.error).unwrap();
        assert_eq!((done.code, &problem["status"]), (2, &json!(401)));
    }
}

//! The metrics of a running daemon, read by Prometheus' own tool.

use anyhow::{Context as _, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemonConfig};
use behaviour_tests::{ApiReaction, Fixture, SmsApi, until};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

#[test]
fn promtool_accepts_the_metrics_of_a_daemon_with_traffic() -> Result<()> {
    let fixture = Fixture::new()?;
    let peer =
        Sink::start(SinkOptions { receipts: true, ..SinkOptions::default() }, &Arc::new(Tally::new(100)))?;
    let sink = SmsApi::start()?;
    sink.react(&[ApiReaction::Status(503)]);
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.account("acme", "").peer("upstream", peer.address(), "").native("upstream").tables(&format!(
        "[[event-sink]]\nname = \"crm\"\nurl = \"{}\"\n[[cdr]]\nname = \"billing\"\n",
        sink.base_url()
    ));
    let appliance = config.start()?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", true)?;
    for number in 0..20 {
        esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?;
    }
    until("all have ended, and are told", || {
        let page = appliance.request("GET", "/metrics", &[])?.1;
        let has = |line: &str| page.lines().any(|found| found == line);
        Ok(has("switchyard_events_sent_total{sink=\"billing\"} 20")
            && has("switchyard_event_sink_up{sink=\"crm\"} 1"))
    })?;
    let (status, page) = appliance.request("GET", "/metrics", &[])?;
    ensure!(status == 200 && page.contains("upstream") && page.contains("acme"), "{page}");
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("promtool (Debian package prometheus; `cargo xtask setup` installs it)")?;
    promtool.stdin.take().context("no input")?.write_all(page.as_bytes())?;
    let output = promtool.wait_with_output()?;
    let words = String::from_utf8([output.stdout, output.stderr].concat())?;
    ensure!(output.status.success() && words.is_empty(), "promtool check metrics:\n{words}");
    Ok(())
}

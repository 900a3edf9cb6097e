//! Events in a stream of NATS JetStream: Debian's server, killed and started again.

use anyhow::{Context as _, Result, ensure};
use api::{EventSinkView, PumpState};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemonConfig};
use behaviour_tests::{Fixture, until};
use std::collections::BTreeSet;
use std::sync::Arc;
use testkit::nats::NatsServer;

#[test]
fn a_stream_has_each_event_once_over_kills_of_both_sides() -> Result<()> {
    const MESSAGES: u64 = 60;
    let fixture = Fixture::new()?;
    let peer = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(1_000)))?;
    let mut nats = NatsServer::start(&fixture.folder().join("nats"))?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.account("acme", "").peer("upstream", peer.address(), "dlrs = false\nuncertain = \"send-again\"");
    config.native("upstream").tables(&format!(
        "[[event-sink]]\nname = \"bus\"\nurl = \"{}\"\ntoken = \"hush\"\nbatch = 8\ntypes = [\"accepted\", \"ended\"]\n",
        nats.url()
    ));
    let mut appliance = config.start()?;
    let state = |appliance: &behaviour_tests::test_daemon::TestDaemon| -> Result<EventSinkView> {
        let sinks: Vec<EventSinkView> = appliance.read("/v1/event-sinks")?;
        sinks.into_iter().next().context("no sink")
    };
    let mut accepted = BTreeSet::new();
    for round in 0..3 {
        let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
        for number in 0..MESSAGES / 3 {
            let id = esme.submit(round * 100 + number)?;
            accepted.insert(id.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?);
        }
        match round {
            // Nobody takes the subject yet.
            0 => {
                until("the sink is down", || Ok(state(&appliance)?.state == PumpState::Down))?;
                let why = state(&appliance)?.error.unwrap_or_default();
                ensure!(why.contains("no stream of JetStream"), "{why}");
                nats.make_stream("EVENTS", "switchyard.>")?;
                until("the sink is up", || Ok(state(&appliance)?.state == PumpState::Up))?;
            }
            1 => {
                nats.kill();
                appliance = appliance.kill()?.start()?;
                nats.restart()?;
            }
            _ => {}
        }
    }
    until("all events are acknowledged", || {
        let state = state(&appliance)?;
        let waiting = appliance.get("/v1/status")?["waiting"] == 0;
        Ok(waiting && state.kind == "nats" && state.state == PumpState::Up && state.lag_records == 0)
    })?;
    let messages = nats.messages("EVENTS")?;
    for kind in ["accepted", "ended"] {
        let subject = format!("switchyard.{kind}");
        let of_kind: Vec<_> = messages.iter().filter(|message| message.subject == subject).collect();
        let ids: BTreeSet<_> =
            of_kind.iter().filter_map(|message| message.payload["data"]["message"].as_str()).collect();
        // The stream has dropped repetitions by their ids.
        ensure!(ids.len() == of_kind.len(), "{} {kind} events of {} messages", of_kind.len(), ids.len());
        ensure!(ids.iter().map(|id| (*id).to_owned()).eq(accepted.iter().cloned()), "{kind}: {ids:?}");
    }
    let first = messages.first().context("no message")?;
    let id = first.payload["id"].as_str().context("no id")?;
    ensure!(first.headers.contains(&format!("Nats-Msg-Id: {id}\r\n")), "{first:?}");
    Ok(())
}

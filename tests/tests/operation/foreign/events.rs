//! Events in a stream of NATS JetStream, in queues of RabbitMQ and in a topic of Kafka: Debian's programs, killed, stopped and started
//! again.

use anyhow::{Context as _, Result, ensure};
use api::{EventSinkView, PumpState};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{Fixture, Peer, until};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use testkit::kafka::KafkaBroker;
use testkit::nats::NatsServer;
use testkit::rabbitmq::{RabbitMqServer, RabbitMqTls};

/// Messages of a test, in three rounds.
const MESSAGES: u64 = 60;

/// An account and a peer, with these event sinks.
fn config(fixture: &Fixture, peer: &Sink, event_sinks: &str) -> Result<TestDaemonConfig> {
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.account("acme", "").peer("upstream", peer.address(), "dlrs = false\nuncertain = \"send-again\"");
    config.native("upstream").tables(event_sinks);
    Ok(config)
}

fn states(appliance: &TestDaemon) -> Result<Vec<EventSinkView>> {
    appliance.read("/v1/event-sinks")
}

/// The state of the only sink.
fn state(appliance: &TestDaemon) -> Result<EventSinkView> {
    states(appliance)?.into_iter().next().context("no sink")
}

/// Submits the messages of a round, and adds their ids.
fn submit_round(appliance: &TestDaemon, round: u64, accepted: &mut BTreeSet<String>) -> Result<()> {
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    for number in 0..MESSAGES / 3 {
        let id = esme.submit(round * 100 + number)?;
        accepted.insert(id.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?);
    }
    Ok(())
}

#[test]
fn a_stream_has_each_event_once_over_kills_of_both_sides() -> Result<()> {
    let fixture = Fixture::new()?;
    let peer = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(1_000)))?;
    let mut nats = NatsServer::start(&fixture.folder().join("nats"))?;
    let event_sinks = format!(
        "[[event-sink]]\nname = \"bus\"\nurl = \"{}\"\ntoken = \"hush\"\nbatch = 8\ntypes = [\"accepted\", \"ended\"]\n",
        nats.url()
    );
    let mut appliance = config(&fixture, &peer, &event_sinks)?.start()?;
    let mut accepted = BTreeSet::new();
    for round in 0..3 {
        submit_round(&appliance, round, &mut accepted)?;
        match round {
            // No stream takes the subject yet.
            0 => {
                until("the sink is down", || Ok(state(&appliance)?.state == PumpState::Down))?;
                let why = state(&appliance)?.error.unwrap_or_default();
                ensure!(why.contains("no JetStream stream"), "{why}");
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
    // Not until no message waits: the engine counts an end before its record is in the journal.
    until("all ends are in the stream, and acknowledged", || {
        let messages = nats.messages("EVENTS")?;
        let ended = messages.iter().filter(|message| message.subject == "switchyard.ended").count();
        let state = state(&appliance)?;
        let is_idle = state.kind == "nats" && state.state == PumpState::Up && state.lag_records == 0;
        Ok(ended >= accepted.len() && is_idle)
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

/// A certificate authority and a certificate for 127.0.0.1.
fn certificates(folder: &Path) -> Result<RabbitMqTls> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &authority)?;
    let tls = RabbitMqTls {
        ca: folder.join("ca.pem"),
        certificate: folder.join("broker.pem"),
        key: folder.join("broker.key"),
    };
    std::fs::write(&tls.ca, authority.pem())?;
    std::fs::write(&tls.certificate, leaf.pem())?;
    std::fs::write(&tls.key, key.serialize_pem())?;
    Ok(tls)
}

#[test]
fn queues_have_each_event_over_kills_of_both_sides() -> Result<()> {
    let fixture = Fixture::new()?;
    let peer = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(1_000)))?;
    let tls = certificates(fixture.folder())?;
    let mut broker = RabbitMqServer::start(&fixture.folder().join("rabbitmq"), &tls)?;
    let types = "token = \"guest:guest\"\nbatch = 8\ntypes = [\"accepted\", \"ended\"]\n";
    let event_sinks = format!(
        "[[event-sink]]\nname = \"bus\"\nurl = \"{}\"\n{types}\
         [[event-sink]]\nname = \"secure\"\nurl = \"{}\"\nca = \"{}\"\nexchange = \"audit\"\nsubject = \"sms.a\"\n{types}",
        broker.url(),
        broker.secure_url(),
        tls.ca.display()
    );
    let mut appliance = config(&fixture, &peer, &event_sinks)?.start()?;
    let complaint = |appliance: &TestDaemon, words: &str| {
        until("the sinks are down", || {
            let is_down = |sink: &EventSinkView| {
                sink.state == PumpState::Down && sink.error.as_deref().is_some_and(|why| why.contains(words))
            };
            Ok(states(appliance)?.iter().all(is_down))
        })
    };
    let mut accepted = BTreeSet::new();
    for round in 0..3 {
        submit_round(&appliance, round, &mut accepted)?;
        match round {
            0 => {
                complaint(&appliance, "404 NOT_FOUND - no exchange")?;
                broker.make_exchange("switchyard")?;
                broker.make_exchange("audit")?;
                complaint(&appliance, "has no queue for the routing key")?;
                broker.make_queue("events", "switchyard", "switchyard.accepted")?;
                broker.make_queue("audit", "audit", "sms.a.#")?;
                until("one sink is up", || Ok(states(&appliance)?[1].state == PumpState::Up))?;
                // The queue has the events before the first `ended` event, and does not get them again with each
                // attempt.
                until("the other sink waits for a queue", || {
                    let why = states(&appliance)?[0].error.clone().unwrap_or_default();
                    Ok(why.contains("switchyard.ended"))
                })?;
                let (queued, failed) = (broker.messages("events")?.len(), states(&appliance)?[0].failed);
                until("other attempts", || Ok(states(&appliance)?[0].failed > failed + 1))?;
                ensure!(broker.messages("events")?.len() == queued, "more than {queued} events");
                broker.make_queue("events", "switchyard", "switchyard.ended")?;
                until("both sinks are up", || {
                    Ok(states(&appliance)?.iter().all(|sink| sink.state == PumpState::Up))
                })?;
            }
            1 => {
                broker.kill();
                appliance = appliance.kill()?.start()?;
                broker.restart()?;
            }
            _ => {}
        }
    }
    let mut last = String::new();
    until("all events are confirmed", || {
        let (status, sinks) = (appliance.get("/v1/status")?, states(&appliance)?);
        let is_done = |sink: &EventSinkView| {
            sink.kind == "amqp" && sink.state == PumpState::Up && sink.lag_records == 0
        };
        let all_done = status["waiting"] == 0 && sinks.iter().all(is_done);
        last = format!("{sinks:?}, {} waiting", status["waiting"]);
        Ok(all_done)
    })
    .with_context(|| format!("{last}\n{}", broker.log()))?;
    for (queue, subject) in [("events", "switchyard"), ("audit", "sms.a")] {
        let messages = broker.messages(queue)?;
        for kind in ["accepted", "ended"] {
            let key = format!("{subject}.{kind}");
            let of_kind: Vec<_> = messages.iter().filter(|message| message.routing_key == key).collect();
            // Repetitions have the id of the first, and the same octets.
            let mut by_id = BTreeMap::new();
            for message in &of_kind {
                let id = message.properties["message_id"].as_str().context("no id")?;
                let first = by_id.entry(id).or_insert(&message.payload);
                ensure!(**first == message.payload && message.payload["id"] == id, "{message:?}");
            }
            let ids: BTreeSet<_> = by_id
                .values()
                .filter_map(|event| Some(event["data"]["message"].as_str()?.to_owned()))
                .collect();
            ensure!(ids == accepted && by_id.len() == accepted.len(), "{queue} {kind}: {ids:?}");
        }
        let first = messages.first().context("no message")?;
        ensure!(first.properties["delivery_mode"] == 2, "{first:?}");
        // For each message, its acceptance comes first.
        let mut known = BTreeSet::new();
        for message in &messages {
            let id = message.payload["data"]["message"].as_str().context("no message")?;
            let is_first = known.insert(id);
            ensure!(!is_first || message.routing_key.ends_with(".accepted"), "{message:?}");
        }
    }
    Ok(())
}

#[test]
fn a_sink_logs_in_to_kafka_by_each_mechanism() -> Result<()> {
    let fixture = Fixture::new()?;
    let peer = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(1_000)))?;
    for (number, mechanism, key) in [
        (0, "PLAIN", ""),
        (1, "SCRAM-SHA-256", "sasl-mechanism = \"scram-sha-256\"\n"),
        (2, "SCRAM-SHA-512", "sasl-mechanism = \"scram-sha-512\"\n"),
    ] {
        let folder = fixture.folder().join(mechanism);
        let broker = KafkaBroker::start(&folder, "switchyard")?;
        let (_, port) =
            broker.url().rsplit_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).context("no port")?;
        let options = json!({
            "port": port.parse::<u16>()?, "mechanism": mechanism, "user": "switchyard", "password": "hush, hush"
        });
        let mut front = Peer::plain_python("kafka_sasl.py", &options)?;
        let port = front.expect("ready")?["port"].as_u64().context("no port")?;
        let sink = |password: &str| {
            format!(
                "[[event-sink]]\nname = \"bus\"\nurl = \"kafka://127.0.0.1:{port}\"\ntoken = \"switchyard:{password}\"\n\
                 {key}types = [\"accepted\"]\n"
            )
        };
        // With a wrong password, the sink is down, and reports the reason.
        let start = |password: &str| -> Result<TestDaemon> {
            let mut config = TestDaemonConfig::new(
                fixture.binary(),
                &fixture.folder().join(format!("appliance-{number}")),
            )?;
            config.account("acme", "").peer("upstream", peer.address(), "dlrs = false");
            config.native("upstream").tables(&sink(password)).start()
        };
        let appliance = start("guess")?;
        let mut accepted = BTreeSet::new();
        submit_round(&appliance, number, &mut accepted)?;
        until("the sink is down", || Ok(state(&appliance)?.state == PumpState::Down))?;
        let failed = front.expect("login")?;
        ensure!(failed["ok"] == false, "{failed}");
        drop(appliance);

        let appliance = start("hush, hush")?;
        submit_round(&appliance, number, &mut accepted)?;
        let login = front.expect_matching("login", |login| login["ok"] == true)?;
        let mut last = String::new();
        until("all events are in the topic", || {
            let keys: BTreeSet<_> = broker.records()?.into_iter().map(|record| record.key).collect();
            last = format!("{mechanism}: {} of {}: {:?}", keys.len(), accepted.len(), state(&appliance)?);
            Ok(keys.len() >= accepted.len())
        })
        .with_context(|| last)?;
        ensure!(login["sent_password"] == (mechanism == "PLAIN"), "{mechanism}: {login}");
        ensure!(state(&appliance)?.kind == "kafka", "{mechanism}");
    }
    Ok(())
}

#[test]
fn a_topic_of_kafka_has_each_event_in_order_over_a_kill_and_a_silence() -> Result<()> {
    let fixture = Fixture::new()?;
    let peer = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(1_000)))?;
    let broker = KafkaBroker::start(&fixture.folder().join("kafka"), "switchyard")?;
    let event_sinks = format!(
        "[[event-sink]]\nname = \"bus\"\nurl = \"{}\"\nbatch = 8\ntimeout = \"2s\"\ntypes = [\"accepted\", \"ended\"]\n",
        broker.url()
    );
    let mut appliance = config(&fixture, &peer, &event_sinks)?.start()?;
    let mut accepted = BTreeSet::new();
    for round in 0..3 {
        if round == 1 {
            broker.pause(true)?;
        }
        submit_round(&appliance, round, &mut accepted)?;
        if round == 1 {
            until("the sink is down", || Ok(state(&appliance)?.state == PumpState::Down))?;
            appliance = appliance.kill()?.start()?;
            broker.pause(false)?;
        }
    }
    let mut last = String::new();
    until("all events are acknowledged, and read", || {
        let state = state(&appliance)?;
        let waiting = appliance.get("/v1/status")?["waiting"] == 0;
        let is_done = state.kind == "kafka" && state.state == PumpState::Up && state.lag_records == 0;
        let keys: BTreeSet<_> = broker.records()?.into_iter().map(|record| record.key).collect();
        last = format!("{state:?}, {} keys, waiting {waiting}\n{}", keys.len(), broker.log());
        Ok(waiting && is_done && keys.len() >= 2 * accepted.len())
    })
    .with_context(|| last)?;
    let records = broker.records()?;
    let mut by_key = BTreeMap::new();
    let (mut partitions, mut known) = (BTreeMap::new(), BTreeSet::new());
    for record in &records {
        // Repetitions have the key of the first, and the same octets.
        let first = by_key.entry(&record.key).or_insert(&record.payload);
        ensure!(**first == record.payload && record.payload["id"] == *record.key, "{record:?}");
        // kcat writes names and values in turn.
        let headers = json!(["content-type", "application/cloudevents+json; charset=utf-8"]);
        ensure!(record.headers == headers, "{record:?}");
        // The events of a message have one partition, and its acceptance comes first.
        let message = record.payload["data"]["message"].as_str().context("no message")?;
        ensure!(*partitions.entry(message).or_insert(record.partition) == record.partition, "{record:?}");
        let is_first = known.insert(message);
        ensure!(!is_first || record.key.ends_with("-accepted"), "{record:?}");
    }
    ensure!(
        known.into_iter().map(str::to_owned).eq(accepted.iter().cloned()),
        "{} messages",
        partitions.len()
    );
    ensure!(by_key.len() == 2 * accepted.len(), "{} events", by_key.len());
    ensure!(partitions.values().collect::<BTreeSet<_>>().len() > 1, "{partitions:?}");
    Ok(())
}

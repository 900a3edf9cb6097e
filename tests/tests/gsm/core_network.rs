//! A simulated core network, for situations that the real programs cannot produce (storms, MSCs that do not answer or
//! answer twice, unstable links), and kills of the daemon during them.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::gsm::{
    HlrOptions, MoAnswer, MoSender, MscOptions, MtBehaviour, RefusalCause, SimulatedHlr, SimulatedMsc,
    Subscribers,
};
use behaviour_tests::load::{Probe, Source, SourceOptions, Tally};
use behaviour_tests::osmocom::Submit;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, RawConnection, TIMEOUT, shipped_policy, steps, until};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Prefix of all numbers; ten digits follow.
const PREFIX: &str = "1";
const CENTRE: &str = "19990014444";
/// Our numbers are home numbers; numbers that begin with 49 go to the ESME.
const ROUTES: &str = "[default]\nhome = true\n\n[[route]]\nprefix = \"49\"\nlegs = [{ peer = \"acme\" }]\n";

/// A network with the daemon between MSC and HLR.
struct Network {
    appliance: Option<TestDaemon>,
    hlr: SimulatedHlr,
    /// Address for MSCs.
    proxy: SocketAddr,
    tally: Arc<Tally>,
    fixture: Fixture,
}

impl Network {
    /// The daemon is the proxy between MSCs and HLR. `more` are further keys of `[[gsm]]`. Refused messages are retried after
    /// hours, unless an event triggers it.
    fn start(subscribers: u64, more: &str) -> Result<Self> {
        let proxy = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        Self::with(subscribers, None, proxy, &format!("listen = \"{proxy}\"\n{more}"))
    }

    /// The daemon is a client of an HLR that routes short messages to it.
    fn with_routing_hlr(subscribers: u64) -> Result<Self> {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let more = "role = \"client\"\nipa-name = \"SMSC-7\"";
        let mut network = Self::with(subscribers, Some("SMSC-7".to_owned()), nowhere, more)?;
        network.proxy = network.hlr.gsup();
        until("the appliance to be known to the HLR", || Ok(network.hlr.is_connected("SMSC-7")))?;
        Ok(network)
    }

    fn with(subscribers: u64, centre: Option<String>, proxy: SocketAddr, more: &str) -> Result<Self> {
        let fixture = Fixture::new()?;
        let hlr = HlrOptions { centre, ..HlrOptions::new(Subscribers::new(subscribers, PREFIX)) };
        let hlr = SimulatedHlr::start(hlr)?;
        let policy = fixture.folder().join("hlr.toml");
        std::fs::write(&policy, shipped_policy("hlr")?)?;
        let mut config = fixture.config()?;
        config.router(&fixture.guest("prefix_router"), ROUTES)?.account("acme", "window = 2000").tables(&format!(
            "[[gsm]]\nname = \"phones\"\nhlr = \"{}\"\nctrl = \"{}\"\nctrl-timeout = \"1s\"\n\
             service-centre = \"{CENTRE}\"\nretry = [\"5h\"]\n{more}\n\
             [resolver]\nplugin = \"hlr-resolver\"\ncomponent = {:?}\npolicy = {:?}\n[resolver.grants]\nhlr = true\n",
            hlr.gsup(),
            hlr.ctrl(),
            fixture.guest("hlr_resolver").display().to_string(),
            policy.display().to_string(),
        ));
        let appliance = Some(config.start()?);
        Ok(Self { appliance, hlr, proxy, tally: Arc::new(Tally::new(120_000)), fixture })
    }

    fn appliance(&self) -> Result<&TestDaemon> {
        self.appliance.as_ref().context("the appliance does not run")
    }

    fn msc(&self, name: &str, subscribers: u64, answers: MtBehaviour) -> Result<SimulatedMsc> {
        let options = MscOptions { range: 0..subscribers, answers, keep: true, ..self.plain(name) };
        let msc = SimulatedMsc::start(options)?;
        msc.wait_for_located(subscribers, TIMEOUT)?;
        Ok(msc)
    }

    fn plain(&self, name: &str) -> MscOptions {
        MscOptions { tally: Some(self.tally.clone()), ..MscOptions::new(self.proxy, name) }
    }

    /// Submits messages to different numbers; all are accepted.
    fn submit(&self, count: u64, numbers: u64) -> Result<()> {
        let options = SourceOptions {
            count: Some(count),
            destinations: Some(numbers),
            prefix: PREFIX.to_owned(),
            // Each connection has its share of the messages.
            connections: if count < 1000 { 1 } else { 4 },
            ..SourceOptions::new(self.appliance()?.smpp(), "acme", PASSWORD)
        };
        let report = Source::start(&options, &self.tally)?.join()?;
        ensure!(report.refusals.is_empty(), "{:?}", report.refusals);
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        let killed: TestDaemonConfig = self.appliance.take().context("the appliance does not run")?.kill()?;
        self.appliance = Some(killed.start()?);
        Ok(())
    }

    /// One counter of `GET /v1/gsm`.
    fn count(&self, pointer: &str) -> Result<u64> {
        let networks = self.appliance()?.get("/v1/gsm")?;
        networks[0].pointer(pointer).and_then(serde_json::Value::as_u64).context("no such value")
    }

    fn queue(&self, key: &str) -> Result<u64> {
        let queues = self.appliance()?.get("/v1/queues")?;
        let of_phones =
            queues.as_array().context("no queues")?.iter().find(|queue| queue["peer"] == "phones");
        of_phones.and_then(|queue| queue[key].as_u64()).context("no such queue")
    }

    /// Waits until all queues are empty; nothing was lost or out of order. Returns the number of duplicates.
    fn settle(&self, mscs: &[&SimulatedMsc]) -> Result<u64> {
        until("everything to end", || {
            Ok(["queued", "deferred", "resolving", "in_flight", "uncertain"]
                .iter()
                .map(|key| self.queue(key))
                .sum::<Result<u64>>()?
                == 0)
        })?;
        let sums = self.tally.summary();
        ensure!((sums.missing, sums.unknown) == (0, 0), "{sums:?}");
        for msc in mscs {
            let report = msc.report();
            ensure!(report.broken == 0, "{} messages made no sense", report.broken);
            ensure!(
                report.overlaps == 0,
                "{} messages arrived while another one was unanswered",
                report.overlaps
            );
        }
        Ok(sums.duplicates)
    }
}

#[test]
fn a_storm_of_100_000_messages_looks_up_each_of_1000_numbers_once_despite_an_hlr_outage() -> Result<()> {
    const MESSAGES: u64 = 100_000;
    const NUMBERS: u64 = 1_000;
    let mut network = Network::start(NUMBERS, "window = 1000")?;
    let msc = network.msc("MSC-1", NUMBERS, MtBehaviour::Accept)?;
    let options = SourceOptions {
        count: Some(MESSAGES),
        destinations: Some(NUMBERS),
        prefix: PREFIX.to_owned(),
        ..SourceOptions::new(network.appliance()?.smpp(), "acme", PASSWORD)
    };
    let source = Source::start(&options, &network.tally)?;
    // The HLR stops with all its connections during the queries, and MSCs lose theirs, too.
    until("the first questions", || Ok(network.hlr.control_report().questions > NUMBERS / 4))?;
    network.hlr.stop();
    let asked_before = network.hlr.control_report().questions;
    network.hlr.restart()?;
    let report = source.join()?;
    ensure!(report.refusals.is_empty(), "{:?}", report.refusals);
    until("all to arrive", || Ok(network.tally.arrived_count() == MESSAGES))?;
    println!("{asked_before} of {NUMBERS} numbers were looked up when it stopped");
    let again = network.settle(&[&msc])?;
    let (report, asked) = (msc.report(), network.hlr.control_report());
    assert_eq!(network.appliance()?.metric("switchyard_resolver_questions_total")?, NUMBERS as f64);
    // Locations that the HLR could not return were known from earlier signalling.
    assert_eq!(asked.most_at_a_time, 1, "one question about a number at a time");
    assert!(asked.per_number.values().all(|times| *times == 1), "asked twice: {:?}", asked.per_number);
    // Messages in flight at the loss of the link become uncertain and are repeated; no others.
    ensure!(again <= 1000, "{again} duplicates");
    assert_eq!(report.out_of_order(), 0);
    Ok(())
}

#[test]
fn a_cold_storm_asks_exactly_1000_questions_for_20_000_messages_to_1000_numbers() -> Result<()> {
    const NUMBERS: u64 = 1_000;
    let network = Network::start(NUMBERS, "window = 1000")?;
    let msc = network.msc("MSC-1", NUMBERS, MtBehaviour::Accept)?;
    network.submit(20_000, NUMBERS)?;
    msc.wait_for_accepted(20_000, TIMEOUT)?;
    assert_eq!(network.settle(&[&msc])?, 0, "no duplicates");
    let asked = network.hlr.control_report();
    assert_eq!((asked.questions, asked.most_at_a_time), (NUMBERS, 1));
    let report = msc.report();
    assert_eq!(report.out_of_order(), 0);
    assert!(report.per_subscriber().values().all(|count| *count == 20));
    ensure!(report.more_count() > 0, "waiting messages were not indicated");
    Ok(())
}

#[test]
fn killed_at_every_step_nothing_is_lost() -> Result<()> {
    const SUBSCRIBERS: u64 = 20;
    const EACH: u64 = 100;
    let mut network = Network::start(SUBSCRIBERS, "response-timeout = \"60s\"")?;
    // Waiting for the resolver.
    network.hlr.close_ctrl();
    network.submit(EACH, SUBSCRIBERS)?;
    ensure!(network.queue("resolving")? == EACH);
    network.kill()?;
    network.hlr.restart()?;
    // Resolved, but without an MSC.
    until("all to be resolved", || Ok(network.queue("queued")? == EACH))?;
    network.kill()?;
    ensure!(network.queue("queued")? + network.queue("resolving")? == EACH);
    // In flight, and the MSC does not answer.
    let msc = network.msc("MSC-1", SUBSCRIBERS, MtBehaviour::Never)?;
    msc.wait_for_arrivals(SUBSCRIBERS as usize, TIMEOUT)?;
    // Uncertain once, then refused: the phones are full, and the subscribers blocked. The daemon learns that before the kill: messages
    // sent right after it would otherwise wait for `response-timeout`.
    msc.behave(MtBehaviour::Refuse(vec![RefusalCause::Handset(22); 100]), Duration::ZERO);
    network.kill()?;
    until("a refusal for everybody", || Ok(network.queue("deferred")? == SUBSCRIBERS))?;
    network.kill()?;
    until("the MSC to be back", || network.count("/in_flight").map(|_| true))?;
    // Their memory is available again.
    let before = msc.report().located;
    msc.behave(MtBehaviour::Accept, Duration::ZERO);
    msc.wait(TIMEOUT, |report| report.located >= before)?;
    until("available memory to be reported", || {
        for subscriber in 0..SUBSCRIBERS {
            msc.ready(subscriber);
        }
        Ok(network.tally.arrived_count() == EACH)
    })?;
    network.settle(&[])?;
    assert_eq!(msc.report().out_of_order(), 0);
    Ok(())
}

#[test]
fn a_full_phone_gets_its_messages_within_a_second_of_reporting_available_memory() -> Result<()> {
    let network = Network::start(2, "")?;
    let msc = network.msc("MSC-1", 2, MtBehaviour::Refuse(vec![RefusalCause::Handset(22)]))?;
    network.submit(10, 1)?;
    until("the phone to be full", || Ok(network.queue("deferred")? == 1))?;
    // The other messages use no attempts; the schedule has delays of hours.
    assert_eq!((msc.report().arrivals.len(), network.queue("queued")?), (1, 9));
    msc.behave(MtBehaviour::Accept, Duration::ZERO);
    let said = Instant::now();
    msc.ready(0);
    msc.wait_for_accepted(10, TIMEOUT)?;
    let report = msc.report();
    println!(
        "the first arrived after {:?}, the last after {:?}",
        report.arrivals[1].at - said,
        report.arrivals[10].at - said
    );
    assert_eq!((report.arrivals.len(), report.out_of_order()), (11, 0));
    assert_eq!(network.settle(&[&msc])?, 0);
    Ok(())
}

#[test]
fn a_permanently_refused_message_blocks_no_others() -> Result<()> {
    let mut network = Network::start(1, "")?;
    // "Semantically incorrect" without a report: what OsmoMSC before 1.13 forwards.
    let msc = network.msc("MSC-1", 1, MtBehaviour::Refuse(vec![RefusalCause::Handset(95)]))?;
    network.submit(5, 1)?;
    msc.wait_for_accepted(4, TIMEOUT)?;
    until("the one to wait", || Ok((network.queue("deferred")?, network.queue("queued")?) == (1, 0)))?;
    let found = network.appliance()?.get("/v1/messages?state=deferred")?;
    let id = found["messages"][0]["id"].as_str().context("no id")?;
    let trace = network.appliance()?.get(&format!("/v1/messages/{id}"))?;
    let cause = "refused by the peer: handset: semantically incorrect message (95)";
    ensure!(steps(&trace).contains(&cause), "{trace:#}");
    network.kill()?;
    until("the MSC to be back", || Ok(network.count("/attached")? >= 1))?;
    // It waits for hours, without blocking others.
    msc.behave(MtBehaviour::Accept, Duration::ZERO);
    network.submit(5, 1)?;
    msc.wait_for_accepted(9, TIMEOUT)?;
    until("the one to wait", || Ok((network.queue("deferred")?, network.queue("queued")?) == (1, 0)))?;
    assert_eq!(network.queue("blocked_subscribers")?, 0);
    Ok(())
}

#[test]
fn an_absent_phone_blocks_no_others_and_is_retried_when_it_is_located() -> Result<()> {
    let network = Network::start(3, "")?;
    let msc = network.msc("MSC-1", 3, MtBehaviour::Refuse(vec![RefusalCause::Network(17)]))?;
    network.submit(30, 3)?;
    until("three refusals", || Ok(network.queue("deferred")? == 3))?;
    msc.behave(MtBehaviour::Accept, Duration::ZERO);
    msc.locate(1);
    msc.wait_for_accepted(10, TIMEOUT)?;
    assert_eq!((network.queue("deferred")?, network.queue("queued")?), (2, 18));
    msc.locate(0);
    msc.wait_for_accepted(20, TIMEOUT)?;
    // A phone that sends a message is present.
    let number = Subscribers::new(3, PREFIX).msisdn(2);
    let sender = MoSender { subscriber: 2, ..mo_sender(&number, 1, false) };
    assert_eq!(msc.submit(&sender, "4915112345", "here I am", TIMEOUT), MoAnswer::Accepted);
    msc.wait_for_accepted(30, TIMEOUT)?;
    assert_eq!(network.settle(&[&msc])?, 0);
    assert_eq!(msc.report().out_of_order(), 0);
    Ok(())
}

#[test]
fn two_mscs_with_one_name_keep_their_own_subscribers() -> Result<()> {
    let network = Network::start(3, "")?;
    let older = network.msc("MSC-1", 2, MtBehaviour::Accept)?;
    let newer = SimulatedMsc::start(MscOptions { range: 2..3, keep: true, ..network.plain("MSC-1") })?;
    newer.wait_for_located(1, TIMEOUT)?;
    until("both to be seen", || Ok(network.count("/attached")? == 3))?;
    let networks = network.appliance()?.get("/v1/gsm")?;
    let error = networks[0]["last_error"].to_string();
    ensure!(error.contains("another MSC is connected under this name"), "{error}");
    ensure!(networks[0]["faults"][0]["kind"] == "double-name", "{}", networks[0]["faults"]);
    network.submit(9, 3)?;
    older.wait_for_accepted(6, TIMEOUT)?;
    newer.wait_for_accepted(3, TIMEOUT)?;
    assert_eq!(network.settle(&[&older, &newer])?, 0);
    // When the older connection is closed, its subscribers are sought under the name.
    drop(older);
    until("the older one to be gone", || {
        let networks = network.appliance()?.get("/v1/gsm")?;
        Ok(networks[0]["connections"].as_array().is_some_and(|all| all.len() == 1))
    })?;
    network.submit(3, 3)?;
    newer.wait_for_accepted(6, TIMEOUT)?;
    assert_eq!(network.settle(&[&newer])?, 0);
    Ok(())
}

#[test]
fn a_message_that_an_msc_never_answers_is_uncertain_and_repeated_when_the_phone_is_seen() -> Result<()> {
    let network = Network::start(2, "response-timeout = \"2s\"")?;
    let msc = network.msc("MSC-1", 2, MtBehaviour::Never)?;
    network.submit(6, 2)?;
    until("the response timeout", || Ok(network.count("/mt/unanswered")? == 2))?;
    assert_eq!(msc.report().arrivals.len(), 2, "one a subscriber, and no blind repetition");
    msc.behave(MtBehaviour::Accept, Duration::ZERO);
    msc.locate(0);
    msc.locate(1);
    msc.wait_for_accepted(6, TIMEOUT)?;
    network.settle(&[])?;
    // A repetition is the same TPDU except for "more messages to send": a phone can recognise it.
    let report = msc.report();
    for subscriber in 0..2 {
        let of =
            |arrival: &&behaviour_tests::load::gsm::Arrival| arrival.imsi == Subscribers::imsi(subscriber);
        let tpdus: Vec<_> =
            report.arrivals.iter().filter(of).filter_map(|arrival| arrival.tpdu.as_deref()).collect();
        assert_eq!(tpdus[0][1..], tpdus[1][1..]);
    }
    Ok(())
}

#[test]
fn a_second_answer_of_an_msc_is_ignored() -> Result<()> {
    for names in [true, false] {
        let network = Network::start(5, "")?;
        let options =
            MscOptions { names, range: 0..5, answers: MtBehaviour::Twice, ..network.plain("MSC-1") };
        let msc = SimulatedMsc::start(options)?;
        msc.wait_for_located(5, TIMEOUT)?;
        network.submit(2_000, 5)?;
        msc.wait_for_accepted(2_000, TIMEOUT)?;
        assert_eq!(network.settle(&[&msc])?, 0);
        until("all repetitions to be seen", || Ok(network.count("/mt/answered_twice")? > 0))?;
        assert_eq!((msc.report().arrivals.len(), network.count("/mt/delivered")?), (2_000, 2_000));
    }
    Ok(())
}

#[test]
fn an_unstable_link_under_load_loses_nothing() -> Result<()> {
    println!("{}", run_unstable_link(Duration::from_secs(15))?);
    Ok(())
}

#[test]
#[ignore = "takes a minute: the tier nightly runs it"]
fn a_link_unstable_for_a_minute_under_load_loses_nothing() -> Result<()> {
    println!("{}", run_unstable_link(Duration::from_secs(60))?);
    Ok(())
}

/// Returns a summary: how often the link was cut, and the results.
fn run_unstable_link(time: Duration) -> Result<String> {
    const SUBSCRIBERS: u64 = 200;
    let network = Network::start(SUBSCRIBERS, "")?;
    let msc = network.msc("MSC-1", SUBSCRIBERS, MtBehaviour::Accept)?;
    let options = SourceOptions {
        rate: Some(300.0),
        duration: Some(time),
        destinations: Some(SUBSCRIBERS),
        prefix: PREFIX.to_owned(),
        ..SourceOptions::new(network.appliance()?.smpp(), "acme", PASSWORD)
    };
    let source = Source::start(&options, &network.tally)?;
    let until_then = Instant::now() + time;
    let mut drops = 0;
    while Instant::now() < until_then {
        let before = msc.report();
        msc.drop_link();
        drops += 1;
        let more = before.arrivals.len() + 50;
        msc.wait(TIMEOUT, |report| {
            report.connections > before.connections
                && (report.arrivals.len() >= more || Instant::now() >= until_then)
        })?;
    }
    let report = source.join()?;
    ensure!(report.refusals.is_empty(), "{:?}", report.refusals);
    // All subscribers are located again after the last cut: uncertain messages are repeated then.
    until("all to arrive", || Ok(network.tally.arrived_count() >= network.tally.accepted_count()))?;
    let again = network.settle(&[&msc])?;
    ensure!(drops > 5, "only {drops} cuts");
    ensure!(again <= drops * SUBSCRIBERS, "{again} duplicates");
    Ok(format!("{drops} cuts, {} messages, {again} duplicates", network.tally.accepted_count()))
}

/// A phone of this subscriber, with this reference.
fn mo_sender(number: &str, reference: u8, report: bool) -> MoSender<'_> {
    MoSender { subscriber: 0, number, centre: CENTRE, reference, report }
}

#[test]
fn a_phones_message_is_accepted_once_and_survives_a_kill() -> Result<()> {
    let mut network = Network::start(2, "")?;
    let msc = network.msc("MSC-1", 2, MtBehaviour::Accept)?;
    let number = Subscribers::new(2, PREFIX).msisdn(0);
    let send = |msc: &SimulatedMsc, reference, to: &str, text: &str| {
        msc.submit(&mo_sender(&number, reference, false), to, text, TIMEOUT)
    };
    assert_eq!(send(&msc, 1, "4915112345", "hello"), MoAnswer::Accepted);
    assert_eq!(send(&msc, 1, "4915112345", "hello"), MoAnswer::Accepted, "its answer was lost on the air");
    assert_eq!(network.count("/mo/repeated")?, 1);
    // With TP-RD, as Android sets it: a repetition is no new message, whether or not TP-RD was set before.
    let wary = |msc: &SimulatedMsc, reference, text: &str| {
        let tpdu = Submit { reject_duplicates: true, ..Submit::new(reference, "4915112345", text) }.octets();
        msc.submit_tpdu(&mo_sender(&number, reference, false), &tpdu, TIMEOUT)
    };
    assert_eq!(wary(&msc, 1, "hello"), MoAnswer::Refused(Some(21)), "a duplicate that is not wanted");
    assert_eq!(wary(&msc, 9, "wary"), MoAnswer::Accepted, "TP-RD in a first message");
    network.kill()?;
    until("the MSC to be back", || Ok(network.count("/attached")? >= 2))?;
    assert_eq!(wary(&msc, 1, "hello"), MoAnswer::Accepted, "a repetition is known after a crash");
    assert_eq!(send(&msc, 1, "4915112345", "hello"), MoAnswer::Accepted);
    assert_eq!(send(&msc, 2, "4915112345", "another"), MoAnswer::Accepted);
    assert_eq!(send(&msc, 3, "8613800000000", "nowhere"), MoAnswer::Accepted, "everything else is at home");
    let mut esme = Probe::bind(network.appliance()?.smpp(), "acme", PASSWORD, PREFIX, false)?;
    esme.wait_for_delivered(3, TIMEOUT)?;
    assert_eq!(esme.delivered, ["hello", "wary", "another"]);
    let (status, _) = network.appliance.take().context("no appliance")?.stop()?;
    assert!(status.success());
    drop(network.fixture);
    Ok(())
}

#[test]
fn a_sender_must_be_located_at_its_msc() -> Result<()> {
    for check in [true, false] {
        let more = if check { "" } else { "check-sender = false" };
        let network = Network::start(4, more)?;
        let (first, second) = (network.msc("MSC-1", 2, MtBehaviour::Accept)?, network.plain("MSC-2"));
        let second = SimulatedMsc::start(MscOptions { range: 2..3, keep: true, ..second })?;
        second.wait_for_located(1, TIMEOUT)?;
        let numbers = Subscribers::new(4, PREFIX);
        let send = |msc: &SimulatedMsc, subscriber, reference, text: &str| {
            let number = numbers.msisdn(subscriber);
            let sender = MoSender { subscriber, ..mo_sender(&number, reference, false) };
            msc.submit(&sender, "4915112345", text, TIMEOUT)
        };
        assert_eq!(send(&first, 0, 1, "mine"), MoAnswer::Accepted);
        // Attached elsewhere; not attached; not in the HLR.
        let expected = if check { MoAnswer::Refused(Some(28)) } else { MoAnswer::Accepted };
        for (subscriber, text) in [(1, "attached elsewhere"), (3, "attached nowhere"), (77, "nobody")] {
            assert_eq!(send(&second, subscriber, 2, text), expected, "{text}");
        }
        let mut esme = Probe::bind(network.appliance()?.smpp(), "acme", PASSWORD, PREFIX, false)?;
        if check {
            for subscriber in 0..2 {
                let submitted = esme.submit_to(subscriber, 110_000 + subscriber)?;
                submitted.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
            }
            first.wait_for_accepted(2, TIMEOUT)?;
            assert!(second.report().arrivals.is_empty(), "the sender is not located at this MSC");
            // The subscriber moves, and may send from there.
            second.locate(1);
            second.wait_for_located(2, TIMEOUT)?;
            assert_eq!(send(&second, 1, 3, "moved"), MoAnswer::Accepted);
            assert_eq!(send(&first, 1, 4, "left"), expected);
        }
        let wanted: &[&str] = if check {
            &["mine", "moved"]
        } else {
            &["mine", "attached elsewhere", "attached nowhere", "nobody"]
        };
        esme.wait_for_delivered(wanted.len(), TIMEOUT)?;
        assert_eq!(esme.delivered, wanted);
    }
    Ok(())
}

#[test]
fn a_phone_gets_a_status_report() -> Result<()> {
    let network = Network::start(2, "")?;
    let msc = network.msc("MSC-1", 2, MtBehaviour::Accept)?;
    let (ours, others) = (Subscribers::new(2, PREFIX).msisdn(0), Subscribers::new(2, PREFIX).msisdn(1));
    let answer = msc.submit(&mo_sender(&ours, 42, true), &others, "are you there?", TIMEOUT);
    assert_eq!(answer, MoAnswer::Accepted);
    msc.wait_for_accepted(2, TIMEOUT)?;
    let report = msc.report();
    assert_eq!(report.arrivals[0].imsi, Subscribers::imsi(1));
    assert_eq!(report.arrivals[0].text().as_deref(), Some("are you there?"));
    // SMS-STATUS-REPORT (3GPP TS 23.040 §9.2.2.3): type 2, our reference, and "delivered" at its end.
    let second_arrival = &report.arrivals[1];
    assert_eq!(second_arrival.imsi, Subscribers::imsi(0));
    let tpdu = second_arrival.tpdu.as_deref().context("no TPDU")?;
    assert_eq!((tpdu[0] & 3, tpdu[1], tpdu.last()), (2, 42, Some(&0)));
    assert_eq!(network.count("/mt/status_reports")?, 1);
    Ok(())
}

#[test]
fn behind_an_hlr_that_routes_short_messages_they_go_both_ways_with_a_stand_in_hlr_1_8() -> Result<()> {
    let mut network = Network::with_routing_hlr(20)?;
    let options = MscOptions { names: true, range: 0..10, keep: true, ..network.plain("MSC-1") };
    let msc = SimulatedMsc::start(options)?;
    msc.wait_for_located(10, TIMEOUT)?;
    network.submit(2_000, 10)?;
    msc.wait_for_accepted(2_000, TIMEOUT)?;
    assert_eq!(network.settle(&[&msc])?, 0);
    assert_eq!(msc.report().out_of_order(), 0);
    let number = Subscribers::new(2, PREFIX).msisdn(0);
    let sent = msc.submit(&mo_sender(&number, 1, false), "4915112345", "out of a network", TIMEOUT);
    assert_eq!(sent, MoAnswer::Accepted);
    let mut esme = Probe::bind(network.appliance()?.smpp(), "acme", PASSWORD, PREFIX, false)?;
    esme.wait_for_delivered(1, TIMEOUT)?;
    assert_eq!(esme.delivered, ["out of a network"]);
    // The HLR knows that a subscriber is absent and says so; the message waits until the phone is present.
    let other = SimulatedMsc::start(MscOptions { names: true, range: 10..11, ..network.plain("MSC-2") })?;
    other.wait_for_located(1, TIMEOUT)?;
    other.behave(MtBehaviour::Refuse(vec![RefusalCause::Handset(22)]), Duration::ZERO);
    let mut esme = Probe::bind(network.appliance()?.smpp(), "acme", PASSWORD, PREFIX, false)?;
    esme.submit_to(10, 110_000)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    until("a phone that is full", || Ok(network.queue("deferred")? == 1))?;
    other.behave(MtBehaviour::Accept, Duration::ZERO);
    other.ready(10);
    other.wait_for_accepted(1, TIMEOUT)?;
    until("its answer", || Ok(network.count("/mt/delivered")? == 2_001))?;
    // An absent subscriber who sends a message is present.
    other.behave(MtBehaviour::Refuse(vec![RefusalCause::Network(17); 2]), Duration::ZERO);
    esme.submit_to(10, 110_001)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    until("an absent phone", || Ok(network.queue("deferred")? == 1))?;
    other.behave(MtBehaviour::Accept, Duration::ZERO);
    let number = Subscribers::new(11, PREFIX).msisdn(10);
    let sender = MoSender { subscriber: 10, ..mo_sender(&number, 1, false) };
    assert_eq!(other.submit(&sender, "4915112345", "here I am", TIMEOUT), MoAnswer::Accepted);
    other.wait_for_accepted(2, TIMEOUT)?;
    // A subscriber who was never present is looked up until the HLR knows the location.
    esme.submit_to(12, 110_002)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    until("a phone that was never on", || Ok(network.queue("deferred")? == 1))?;
    other.locate(12);
    other.wait_for_accepted(3, TIMEOUT)?;
    until("its answer", || Ok(network.count("/mt/delivered")? == 2_003))?;
    // The HLR stops and restarts.
    network.hlr.stop();
    network.hlr.restart()?;
    until("all to be back", || {
        Ok(["SMSC-7", "MSC-1", "MSC-2"].iter().all(|name| network.hlr.is_connected(name)))
    })?;
    msc.wait_for_located(20, TIMEOUT)?;
    network.submit(100, 10)?;
    until("all to arrive", || Ok(msc.report().accepted_count() >= 2_100))?;
    Ok(())
}

#[test]
fn faults_of_hlr_and_mscs_are_reported_until_they_are_fixed() -> Result<()> {
    let mut network = Network::start(2, "")?;
    let wait_for = |network: &Network, wanted: &[&str]| {
        until(&format!("the faults {wanted:?}"), || {
            let networks = network.appliance()?.get("/v1/gsm")?;
            let faults = networks[0]["faults"].as_array().context("no faults")?;
            let kinds: Vec<_> = faults.iter().filter_map(|fault| fault["kind"].as_str()).collect();
            Ok(kinds == wanted)
        })
    };
    wait_for(&network, &["no-msc"])?;
    // 7: the error of OsmoMSC without `sms-over-gsup`.
    let msc = network.msc("MSC-1", 2, MtBehaviour::Refuse(vec![RefusalCause::Network(7)]))?;
    wait_for(&network, &[])?;
    network.submit(2, 1)?;
    wait_for(&network, &["msc-without-sms"])?;
    ensure!(network.appliance()?.metric("switchyard_gsm_faults")? == 1.0);
    network.hlr.stop();
    until("the HLR to be missed", || {
        let networks = network.appliance()?.get("/v1/gsm")?;
        Ok(networks[0]["faults"].to_string().contains("hlr-down"))
    })?;
    network.hlr.restart()?;
    wait_for(&network, &["msc-without-sms"])?;
    drop(msc);
    wait_for(&network, &["no-msc"])
}

#[test]
fn with_the_hlr_down_messages_between_known_subscribers_continue_and_signalling_waits() -> Result<()> {
    let mut network = Network::start(4, "")?;
    let msc = SimulatedMsc::start(MscOptions { range: 0..2, keep: true, ..network.plain("MSC-1") })?;
    msc.wait_for_located(2, TIMEOUT)?;
    network.hlr.stop();
    until("the HLR to be missed", || {
        let networks = network.appliance()?.get("/v1/gsm")?;
        Ok(networks[0]["faults"].to_string().contains("hlr-down"))
    })?;
    network.submit(6, 2)?;
    msc.wait_for_accepted(6, TIMEOUT)?;
    let number = Subscribers::new(4, PREFIX).msisdn(0);
    let sender = MoSender { subscriber: 0, ..mo_sender(&number, 1, false) };
    assert_eq!(msc.submit(&sender, "4915112345", "meanwhile", TIMEOUT), MoAnswer::Accepted);
    msc.locate(2);
    network.hlr.restart()?;
    msc.wait_for_located(3, TIMEOUT)?;
    ensure!(network.hlr.is_connected("MSC-1"), "the HLR does not know the MSC by its name");
    until("nothing to be wrong any more", || {
        let networks = network.appliance()?.get("/v1/gsm")?;
        Ok(networks[0]["faults"] == serde_json::json!([]))
    })
}

#[test]
fn an_msc_is_disconnected_when_the_hlr_is_down_longer_than_allowed() -> Result<()> {
    let mut network = Network::start(1, "hlr-outage = \"1s\"")?;
    let msc = SimulatedMsc::start(MscOptions { range: 0..1, reconnect: None, ..network.plain("MSC-1") })?;
    msc.wait_for_located(1, TIMEOUT)?;
    network.hlr.stop();
    until("the MSC to lose its connection", || {
        let networks = network.appliance()?.get("/v1/gsm")?;
        Ok(networks[0]["faults"].to_string().contains("no-msc"))
    })?;
    drop(msc);
    Ok(())
}

#[test]
fn unidentified_connections_neither_exhaust_the_listener_nor_reach_the_hlr() -> Result<()> {
    let limits = "connections = 12\nconnections-per-address = 12\nunidentified-connections = 4\nconnect-timeout = \"10m\"";
    let network = Network::start(1, limits)?;
    let before = network.hlr.connections();
    let mut crowd = Vec::new();
    for _ in 0..40 {
        crowd.push(RawConnection::connect(network.proxy)?);
    }
    // All connections but the newest are closed in favour of later ones.
    for one in crowd.iter_mut().take(36) {
        one.until_closed()?;
    }
    ensure!(network.hlr.connections() == before, "the HLR was dialled for one without a name");
    let msc = network.msc("MSC-1", 1, MtBehaviour::default())?;
    ensure!(network.hlr.connections() == before + 1, "the HLR was not dialled once for an MSC with a name");
    drop((msc, crowd));
    Ok(())
}

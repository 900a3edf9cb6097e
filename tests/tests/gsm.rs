//! A core network made of stand-ins: what the real programs cannot be made to do (storms, MSCs that say nothing or too much,
//! links that come and go), and what must hold when the daemon is killed in the middle of it.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint, PASSWORD, free_port};
use behaviour_tests::load::gsm::{
    Answers, Cause, HlrOptions, MoAnswer, MscOptions, Phone, StandInHlr, StandInMsc, Subscribers,
};
use behaviour_tests::load::{Probe, Source, SourceOptions, Tally};
use behaviour_tests::osmocom::Submit;
use behaviour_tests::{PATIENCE, Raw, Stage, shipped, steps, until};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Begin of all numbers; ten digits follow.
const PREFIX: &str = "1";
const CENTRE: &str = "19990014444";
/// Ours are at home; numbers of 49 go to the ESME.
const ROUTES: &str = "[default]\nhome = true\n\n[[route]]\nprefix = \"49\"\nlegs = [{ peer = \"acme\" }]\n";

/// A network, and the appliance between its halves.
struct Network {
    appliance: Option<Appliance>,
    hlr: StandInHlr,
    /// Where MSCs connect to.
    proxy: SocketAddr,
    tally: Arc<Tally>,
    stage: Stage,
}

impl Network {
    /// The appliance stands between MSCs and HLR. `more` are further keys of `[[gsm]]`. What is refused is tried again after
    /// hours, if nobody is heard of.
    fn start(subscribers: u64, more: &str) -> Result<Self> {
        let proxy = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        Self::with(subscribers, None, proxy, &format!("listen = \"{proxy}\"\n{more}"))
    }

    /// The appliance is a client of an HLR that routes short messages to it.
    fn behind_a_routing_hlr(subscribers: u64) -> Result<Self> {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let more = "role = \"client\"\nipa-name = \"SMSC-7\"";
        let mut network = Self::with(subscribers, Some("SMSC-7".to_owned()), nowhere, more)?;
        network.proxy = network.hlr.gsup();
        until("the appliance to be known to the HLR", || Ok(network.hlr.is_connected("SMSC-7")))?;
        Ok(network)
    }

    fn with(subscribers: u64, centre: Option<String>, proxy: SocketAddr, more: &str) -> Result<Self> {
        let stage = Stage::new()?;
        let hlr = HlrOptions { centre, ..HlrOptions::new(Subscribers::new(subscribers, PREFIX)) };
        let hlr = StandInHlr::start(hlr)?;
        let policy = stage.folder().join("hlr.toml");
        std::fs::write(&policy, shipped("hlr")?)?;
        let mut blueprint = stage.blueprint()?;
        blueprint.router(&stage.guest("prefix_router"), ROUTES)?.account("acme", "window = 2000").tables(&format!(
            "[[gsm]]\nname = \"phones\"\nhlr = \"{}\"\nctrl = \"{}\"\nctrl-timeout = \"1s\"\n\
             service-centre = \"{CENTRE}\"\nretry = [\"5h\"]\n{more}\n\
             [resolver]\nplugin = \"hlr-resolver\"\ncomponent = {:?}\npolicy = {:?}\n[resolver.grants]\nhlr = true\n",
            hlr.gsup(),
            hlr.ctrl(),
            stage.guest("hlr_resolver").display().to_string(),
            policy.display().to_string(),
        ));
        let appliance = Some(blueprint.start()?);
        Ok(Self { appliance, hlr, proxy, tally: Arc::new(Tally::new(120_000)), stage })
    }

    fn appliance(&self) -> Result<&Appliance> {
        self.appliance.as_ref().context("the appliance does not run")
    }

    fn msc(&self, name: &str, subscribers: u64, answers: Answers) -> Result<StandInMsc> {
        let options = MscOptions { range: 0..subscribers, answers, keep: true, ..self.plain(name) };
        let msc = StandInMsc::start(options)?;
        msc.wait_for_located(subscribers, PATIENCE)?;
        Ok(msc)
    }

    fn plain(&self, name: &str) -> MscOptions {
        MscOptions { tally: Some(self.tally.clone()), ..MscOptions::new(self.proxy, name) }
    }

    /// Submits so many messages to so many numbers; all are accepted.
    fn submit(&self, count: u64, numbers: u64) -> Result<()> {
        let options = SourceOptions {
            count: Some(count),
            destinations: Some(numbers),
            prefix: PREFIX.to_owned(),
            // Each has its share of the messages: a few are not to become more.
            connections: if count < 1000 { 1 } else { 4 },
            ..SourceOptions::new(self.appliance()?.smpp(), "acme", PASSWORD)
        };
        let report = Source::start(&options, &self.tally)?.join()?;
        ensure!(report.refusals.is_empty(), "{:?}", report.refusals);
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        let killed: Blueprint = self.appliance.take().context("the appliance does not run")?.kill()?;
        self.appliance = Some(killed.start()?);
        Ok(())
    }

    /// One figure of `GET /v1/gsm`.
    fn count(&self, pointer: &str) -> Result<u64> {
        let networks = self.appliance()?.get("/v1/gsm")?;
        networks[0].pointer(pointer).and_then(serde_json::Value::as_u64).context("no such figure")
    }

    fn queue(&self, key: &str) -> Result<u64> {
        let queues = self.appliance()?.get("/v1/queues")?;
        let of_phones =
            queues.as_array().context("no queues")?.iter().find(|queue| queue["peer"] == "phones");
        of_phones.and_then(|queue| queue[key].as_u64()).context("no such queue")
    }

    /// Nobody has anything any more, and nothing was lost or came out of order. How often something came twice.
    fn settle(&self, mscs: &[&StandInMsc]) -> Result<u64> {
        until("everything to end", || {
            Ok(["queued", "deferred", "resolving", "in_flight", "uncertain"]
                .iter()
                .map(|key| self.queue(key))
                .sum::<Result<u64>>()?
                == 0)
        })?;
        let sums = self.tally.accounts();
        ensure!((sums.missing, sums.strangers) == (0, 0), "{sums:?}");
        for msc in mscs {
            let report = msc.report();
            ensure!(report.broken == 0, "{} messages made no sense", report.broken);
            ensure!(report.overlaps == 0, "{} came while another one was unanswered", report.overlaps);
        }
        Ok(sums.duplicates)
    }
}

#[test]
fn a_storm_of_100_000_messages_asks_once_about_each_of_1000_numbers_and_the_hlr_dies_in_the_middle()
-> Result<()> {
    const MESSAGES: u64 = 100_000;
    const NUMBERS: u64 = 1_000;
    let mut network = Network::start(NUMBERS, "window = 1000")?;
    let msc = network.msc("MSC-1", NUMBERS, Answers::Take)?;
    let options = SourceOptions {
        count: Some(MESSAGES),
        destinations: Some(NUMBERS),
        prefix: PREFIX.to_owned(),
        ..SourceOptions::new(network.appliance()?.smpp(), "acme", PASSWORD)
    };
    let source = Source::start(&options, &network.tally)?;
    // It goes away with all its connections in the middle of the questions, and MSCs lose theirs too.
    until("the first questions", || Ok(network.hlr.questions().questions > NUMBERS / 4))?;
    network.hlr.die();
    let asked_before = network.hlr.questions().questions;
    network.hlr.come_back()?;
    let report = source.join()?;
    ensure!(report.refusals.is_empty(), "{:?}", report.refusals);
    until("all to arrive", || Ok(network.tally.arrived_so_far() == MESSAGES))?;
    println!("{asked_before} of {NUMBERS} numbers were asked about when it died");
    let again = network.settle(&[&msc])?;
    let (report, asked) = (msc.report(), network.hlr.questions());
    assert_eq!(network.appliance()?.metric("switchyard_resolver_questions_total")?, NUMBERS as f64);
    // What the HLR could not tell was known from the signalling that had passed by.
    assert_eq!(asked.most_at_a_time, 1, "one question about a number at a time");
    assert!(asked.per_number.values().all(|times| *times == 1), "asked twice: {:?}", asked.per_number);
    // What was on its way when the link went is in doubt, and comes again; nothing else does.
    ensure!(again <= 1000, "{again} came twice");
    assert_eq!(report.out_of_order(), 0);
    Ok(())
}

#[test]
fn a_cold_storm_asks_exactly_1000_questions_for_20_000_messages_to_1000_numbers() -> Result<()> {
    const NUMBERS: u64 = 1_000;
    let network = Network::start(NUMBERS, "window = 1000")?;
    let msc = network.msc("MSC-1", NUMBERS, Answers::Take)?;
    network.submit(20_000, NUMBERS)?;
    msc.wait_for_taken(20_000, PATIENCE)?;
    assert_eq!(network.settle(&[&msc])?, 0, "nothing comes twice");
    let asked = network.hlr.questions();
    assert_eq!((asked.questions, asked.most_at_a_time), (NUMBERS, 1));
    let report = msc.report();
    assert_eq!(report.out_of_order(), 0);
    assert!(report.per_subscriber().values().all(|count| *count == 20));
    ensure!(report.more() > 0, "more messages waited, and nobody said so");
    Ok(())
}

#[test]
fn killed_at_every_step_of_custody_nothing_is_lost() -> Result<()> {
    const SUBSCRIBERS: u64 = 20;
    const EACH: u64 = 100;
    let mut network = Network::start(SUBSCRIBERS, "guard = \"60s\"")?;
    // Waiting for the number's subscriber.
    network.hlr.close_ctrl();
    network.submit(EACH, SUBSCRIBERS)?;
    ensure!(network.queue("resolving")? == EACH);
    network.kill()?;
    network.hlr.come_back()?;
    // Resolved, and no MSC there.
    until("all to be resolved", || Ok(network.queue("queued")? == EACH))?;
    network.kill()?;
    ensure!(network.queue("queued")? + network.queue("resolving")? == EACH);
    // On its way, and the MSC says nothing.
    let msc = network.msc("MSC-1", SUBSCRIBERS, Answers::Never)?;
    msc.wait_for_arrivals(SUBSCRIBERS as usize, PATIENCE)?;
    // In doubt once, and then refused: the phones are full, and the subscribers parked. It learns so before the kill: what it is
    // sent right after would else wait for the guard.
    msc.behave(Answers::Refuse(vec![Cause::Phone(22); 100]), Duration::ZERO);
    network.kill()?;
    until("a refusal for everybody", || Ok(network.queue("deferred")? == SUBSCRIBERS))?;
    network.kill()?;
    until("the MSC to be back", || network.count("/in_flight").map(|_| true))?;
    // They have room again.
    let before = msc.report().located;
    msc.behave(Answers::Take, Duration::ZERO);
    msc.wait(PATIENCE, |report| report.located >= before)?;
    until("somebody to say so", || {
        for subscriber in 0..SUBSCRIBERS {
            msc.ready(subscriber);
        }
        Ok(network.tally.arrived_so_far() == EACH)
    })?;
    network.settle(&[])?;
    assert_eq!(msc.report().out_of_order(), 0);
    Ok(())
}

#[test]
fn a_full_phone_gets_its_messages_within_a_second_of_saying_that_it_has_room() -> Result<()> {
    let network = Network::start(2, "")?;
    let msc = network.msc("MSC-1", 2, Answers::Refuse(vec![Cause::Phone(22)]))?;
    network.submit(10, 1)?;
    until("the phone to be full", || Ok(network.queue("deferred")? == 1))?;
    // The others burn no attempt on it, and the schedule says hours.
    assert_eq!((msc.report().arrivals.len(), network.queue("queued")?), (1, 9));
    msc.behave(Answers::Take, Duration::ZERO);
    let said = Instant::now();
    msc.ready(0);
    msc.wait_for_taken(10, PATIENCE)?;
    let report = msc.report();
    println!(
        "the first came {:?} after, the last {:?}",
        report.arrivals[1].at - said,
        report.arrivals[10].at - said
    );
    assert_eq!((report.arrivals.len(), report.out_of_order()), (11, 0));
    assert_eq!(network.settle(&[&msc])?, 0);
    Ok(())
}

#[test]
fn a_message_that_its_phone_refuses_for_good_holds_up_no_other() -> Result<()> {
    let mut network = Network::start(1, "")?;
    // "Semantically incorrect", without a report: as OsmoMSC before 1.13 passes it on.
    let msc = network.msc("MSC-1", 1, Answers::Refuse(vec![Cause::Phone(95)]))?;
    network.submit(5, 1)?;
    msc.wait_for_taken(4, PATIENCE)?;
    until("the one to wait", || Ok((network.queue("deferred")?, network.queue("queued")?) == (1, 0)))?;
    let found = network.appliance()?.get("/v1/messages?state=deferred")?;
    let id = found["messages"][0]["id"].as_str().context("no id")?;
    let trace = network.appliance()?.get(&format!("/v1/messages/{id}"))?;
    let cause = "refused by the peer: handset: semantically incorrect message (95)";
    ensure!(steps(&trace).contains(&cause), "{trace:#}");
    network.kill()?;
    until("the MSC to be back", || Ok(network.count("/attached")? >= 1))?;
    // It waits for hours, and still by itself.
    msc.behave(Answers::Take, Duration::ZERO);
    network.submit(5, 1)?;
    msc.wait_for_taken(9, PATIENCE)?;
    until("the one to wait", || Ok((network.queue("deferred")?, network.queue("queued")?) == (1, 0)))?;
    assert_eq!(network.queue("parked")?, 0);
    Ok(())
}

#[test]
fn an_absent_phone_holds_up_nobody_and_is_tried_when_it_is_located() -> Result<()> {
    let network = Network::start(3, "")?;
    let msc = network.msc("MSC-1", 3, Answers::Refuse(vec![Cause::Network(17)]))?;
    network.submit(30, 3)?;
    until("three refusals", || Ok(network.queue("deferred")? == 3))?;
    msc.behave(Answers::Take, Duration::ZERO);
    msc.locate(1);
    msc.wait_for_taken(10, PATIENCE)?;
    assert_eq!((network.queue("deferred")?, network.queue("queued")?), (2, 18));
    msc.locate(0);
    msc.wait_for_taken(20, PATIENCE)?;
    // Whoever sends a message is there.
    let number = Subscribers::new(3, PREFIX).msisdn(2);
    let sender = Phone { subscriber: 2, ..phone(&number, 1, false) };
    assert_eq!(msc.submit(&sender, "4915112345", "here I am", PATIENCE), MoAnswer::Taken);
    msc.wait_for_taken(30, PATIENCE)?;
    assert_eq!(network.settle(&[&msc])?, 0);
    assert_eq!(msc.report().out_of_order(), 0);
    Ok(())
}

#[test]
fn two_mscs_of_one_name_keep_their_own_subscribers() -> Result<()> {
    let network = Network::start(3, "")?;
    let older = network.msc("MSC-1", 2, Answers::Take)?;
    let newer = StandInMsc::start(MscOptions { range: 2..3, keep: true, ..network.plain("MSC-1") })?;
    newer.wait_for_located(1, PATIENCE)?;
    until("both to be seen", || Ok(network.count("/attached")? == 3))?;
    let networks = network.appliance()?.get("/v1/gsm")?;
    let error = networks[0]["last_error"].to_string();
    ensure!(error.contains("another MSC is connected under this name"), "{error}");
    ensure!(networks[0]["faults"][0]["kind"] == "double-name", "{}", networks[0]["faults"]);
    network.submit(9, 3)?;
    older.wait_for_taken(6, PATIENCE)?;
    newer.wait_for_taken(3, PATIENCE)?;
    assert_eq!(network.settle(&[&older, &newer])?, 0);
    // When the older one is gone, its subscribers are sought under the name.
    drop(older);
    until("the older one to be gone", || {
        let networks = network.appliance()?.get("/v1/gsm")?;
        Ok(networks[0]["connections"].as_array().is_some_and(|all| all.len() == 1))
    })?;
    network.submit(3, 3)?;
    newer.wait_for_taken(6, PATIENCE)?;
    assert_eq!(network.settle(&[&newer])?, 0);
    Ok(())
}

#[test]
fn what_an_msc_never_answers_is_in_doubt_and_comes_when_the_phone_is_seen() -> Result<()> {
    let network = Network::start(2, "guard = \"2s\"")?;
    let msc = network.msc("MSC-1", 2, Answers::Never)?;
    network.submit(6, 2)?;
    until("the guard to run out", || Ok(network.count("/mt/unanswered")? == 2))?;
    assert_eq!(msc.report().arrivals.len(), 2, "one a subscriber, and no blind repetition");
    msc.behave(Answers::Take, Duration::ZERO);
    msc.locate(0);
    msc.locate(1);
    msc.wait_for_taken(6, PATIENCE)?;
    network.settle(&[])?;
    // A repetition is the same TPDU but for the word that more wait: a phone that has it can tell.
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
fn an_msc_that_answers_twice_ends_nothing_else() -> Result<()> {
    for names in [true, false] {
        let network = Network::start(5, "")?;
        let options = MscOptions { names, range: 0..5, answers: Answers::Twice, ..network.plain("MSC-1") };
        let msc = StandInMsc::start(options)?;
        msc.wait_for_located(5, PATIENCE)?;
        network.submit(2_000, 5)?;
        msc.wait_for_taken(2_000, PATIENCE)?;
        assert_eq!(network.settle(&[&msc])?, 0);
        until("all repetitions to be seen", || Ok(network.count("/mt/answered_twice")? > 0))?;
        assert_eq!((msc.report().arrivals.len(), network.count("/mt/delivered")?), (2_000, 2_000));
    }
    Ok(())
}

#[test]
fn a_link_that_comes_and_goes_under_load_loses_nothing() -> Result<()> {
    println!("{}", comes_and_goes(Duration::from_secs(15))?);
    Ok(())
}

#[test]
#[ignore = "takes a minute: cargo test --workspace --test gsm -- --ignored"]
fn a_link_that_comes_and_goes_for_a_minute_under_load_loses_nothing() -> Result<()> {
    println!("{}", comes_and_goes(Duration::from_secs(60))?);
    Ok(())
}

/// Says how often the link was cut, and what came of it.
fn comes_and_goes(time: Duration) -> Result<String> {
    const SUBSCRIBERS: u64 = 200;
    let network = Network::start(SUBSCRIBERS, "")?;
    let msc = network.msc("MSC-1", SUBSCRIBERS, Answers::Take)?;
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
        msc.wait(PATIENCE, |report| {
            report.connections > before.connections
                && (report.arrivals.len() >= more || Instant::now() >= until_then)
        })?;
    }
    let report = source.join()?;
    ensure!(report.refusals.is_empty(), "{:?}", report.refusals);
    // Everybody is located again after the last cut: what was in doubt comes then.
    until("all to arrive", || Ok(network.tally.arrived_so_far() >= network.tally.accepted_so_far()))?;
    let again = network.settle(&[&msc])?;
    ensure!(drops > 5, "only {drops} cuts");
    ensure!(again <= drops * SUBSCRIBERS, "{again} came twice");
    Ok(format!("{drops} cuts, {} messages, {again} came twice", network.tally.accepted_so_far()))
}

/// A phone of this subscriber's, with this reference.
fn phone(number: &str, reference: u8, report: bool) -> Phone<'_> {
    Phone { subscriber: 0, number, centre: CENTRE, reference, report }
}

#[test]
fn a_phones_message_is_taken_once_and_outlives_a_kill() -> Result<()> {
    let mut network = Network::start(2, "")?;
    let msc = network.msc("MSC-1", 2, Answers::Take)?;
    let number = Subscribers::new(2, PREFIX).msisdn(0);
    let send = |msc: &StandInMsc, reference, to: &str, text: &str| {
        msc.submit(&phone(&number, reference, false), to, text, PATIENCE)
    };
    assert_eq!(send(&msc, 1, "4915112345", "hello"), MoAnswer::Taken);
    assert_eq!(send(&msc, 1, "4915112345", "hello"), MoAnswer::Taken, "its answer was lost on the air");
    assert_eq!(network.count("/mo/repeated")?, 1);
    // TP-RD set, as Android does it: a repetition is no new message, whether TP-RD was set before or not.
    let wary = |msc: &StandInMsc, reference, text: &str| {
        let tpdu = Submit { reject_duplicates: true, ..Submit::new(reference, "4915112345", text) }.octets();
        msc.submit_tpdu(&phone(&number, reference, false), &tpdu, PATIENCE)
    };
    assert_eq!(wary(&msc, 1, "hello"), MoAnswer::Refused(Some(21)), "a duplicate that is not wanted");
    assert_eq!(wary(&msc, 9, "wary"), MoAnswer::Taken, "TP-RD in a first message");
    network.kill()?;
    until("the MSC to be back", || Ok(network.count("/attached")? >= 2))?;
    assert_eq!(wary(&msc, 1, "hello"), MoAnswer::Taken, "a repetition is known after a crash");
    assert_eq!(send(&msc, 1, "4915112345", "hello"), MoAnswer::Taken);
    assert_eq!(send(&msc, 2, "4915112345", "another"), MoAnswer::Taken);
    assert_eq!(send(&msc, 3, "8613800000000", "nowhere"), MoAnswer::Taken, "everything else is at home");
    let mut esme = Probe::bind(network.appliance()?.smpp(), "acme", PASSWORD, PREFIX, false)?;
    esme.wait_for_delivered(3, PATIENCE)?;
    assert_eq!(esme.delivered, ["hello", "wary", "another"]);
    let (status, _) = network.appliance.take().context("no appliance")?.stop()?;
    assert!(status.success());
    drop(network.stage);
    Ok(())
}

#[test]
fn a_sender_is_where_it_was_located_and_nobody_else() -> Result<()> {
    for check in [true, false] {
        let more = if check { "" } else { "check-sender = false" };
        let network = Network::start(4, more)?;
        let (first, second) = (network.msc("MSC-1", 2, Answers::Take)?, network.plain("MSC-2"));
        let second = StandInMsc::start(MscOptions { range: 2..3, keep: true, ..second })?;
        second.wait_for_located(1, PATIENCE)?;
        let numbers = Subscribers::new(4, PREFIX);
        let send = |msc: &StandInMsc, subscriber, reference, text: &str| {
            let number = numbers.msisdn(subscriber);
            let sender = Phone { subscriber, ..phone(&number, reference, false) };
            msc.submit(&sender, "4915112345", text, PATIENCE)
        };
        assert_eq!(send(&first, 0, 1, "mine"), MoAnswer::Taken);
        // Attached elsewhere; attached nowhere; in no HLR.
        let expected = if check { MoAnswer::Refused(Some(28)) } else { MoAnswer::Taken };
        for (subscriber, text) in [(1, "attached elsewhere"), (3, "attached nowhere"), (77, "nobody")] {
            assert_eq!(send(&second, subscriber, 2, text), expected, "{text}");
        }
        let mut esme = Probe::bind(network.appliance()?.smpp(), "acme", PASSWORD, PREFIX, false)?;
        if check {
            for subscriber in 0..2 {
                let submitted = esme.submit_to(subscriber, 110_000 + subscriber)?;
                submitted.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
            }
            first.wait_for_taken(2, PATIENCE)?;
            assert!(second.report().arrivals.is_empty(), "who says so is not who is there");
            // It moves, and with it its right to send.
            second.locate(1);
            second.wait_for_located(2, PATIENCE)?;
            assert_eq!(send(&second, 1, 3, "moved"), MoAnswer::Taken);
            assert_eq!(send(&first, 1, 4, "left"), expected);
        }
        let wanted: &[&str] = if check {
            &["mine", "moved"]
        } else {
            &["mine", "attached elsewhere", "attached nowhere", "nobody"]
        };
        esme.wait_for_delivered(wanted.len(), PATIENCE)?;
        assert_eq!(esme.delivered, wanted);
    }
    Ok(())
}

#[test]
fn a_phone_is_told_what_became_of_its_message() -> Result<()> {
    let network = Network::start(2, "")?;
    let msc = network.msc("MSC-1", 2, Answers::Take)?;
    let (ours, others) = (Subscribers::new(2, PREFIX).msisdn(0), Subscribers::new(2, PREFIX).msisdn(1));
    let answer = msc.submit(&phone(&ours, 42, true), &others, "are you there?", PATIENCE);
    assert_eq!(answer, MoAnswer::Taken);
    msc.wait_for_taken(2, PATIENCE)?;
    let report = msc.report();
    assert_eq!(report.arrivals[0].imsi, Subscribers::imsi(1));
    assert_eq!(report.arrivals[0].text().as_deref(), Some("are you there?"));
    // SMS-STATUS-REPORT (3GPP TS 23.040 §9.2.2.3): type 2, our reference, and at its end "delivered".
    let told = &report.arrivals[1];
    assert_eq!(told.imsi, Subscribers::imsi(0));
    let tpdu = told.tpdu.as_deref().context("no TPDU")?;
    assert_eq!((tpdu[0] & 3, tpdu[1], tpdu.last()), (2, 42, Some(&0)));
    assert_eq!(network.count("/mt/status_reports")?, 1);
    Ok(())
}

#[test]
fn behind_an_hlr_that_routes_short_messages_they_go_both_ways_with_a_stand_in_hlr_1_8() -> Result<()> {
    let mut network = Network::behind_a_routing_hlr(20)?;
    let options = MscOptions { names: true, range: 0..10, keep: true, ..network.plain("MSC-1") };
    let msc = StandInMsc::start(options)?;
    msc.wait_for_located(10, PATIENCE)?;
    network.submit(2_000, 10)?;
    msc.wait_for_taken(2_000, PATIENCE)?;
    assert_eq!(network.settle(&[&msc])?, 0);
    assert_eq!(msc.report().out_of_order(), 0);
    let number = Subscribers::new(2, PREFIX).msisdn(0);
    let sent = msc.submit(&phone(&number, 1, false), "4915112345", "out of a network", PATIENCE);
    assert_eq!(sent, MoAnswer::Taken);
    let mut esme = Probe::bind(network.appliance()?.smpp(), "acme", PASSWORD, PREFIX, false)?;
    esme.wait_for_delivered(1, PATIENCE)?;
    assert_eq!(esme.delivered, ["out of a network"]);
    // The HLR knows where a subscriber is not: it says so, and the message waits for the phone to say that it is there.
    let other = StandInMsc::start(MscOptions { names: true, range: 10..11, ..network.plain("MSC-2") })?;
    other.wait_for_located(1, PATIENCE)?;
    other.behave(Answers::Refuse(vec![Cause::Phone(22)]), Duration::ZERO);
    let mut esme = Probe::bind(network.appliance()?.smpp(), "acme", PASSWORD, PREFIX, false)?;
    esme.submit_to(10, 110_000)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    until("a phone that is full", || Ok(network.queue("deferred")? == 1))?;
    other.behave(Answers::Take, Duration::ZERO);
    other.ready(10);
    other.wait_for_taken(1, PATIENCE)?;
    until("its answer", || Ok(network.count("/mt/delivered")? == 2_001))?;
    // One who is absent and sends a message is there.
    other.behave(Answers::Refuse(vec![Cause::Network(17); 2]), Duration::ZERO);
    esme.submit_to(10, 110_001)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    until("an absent phone", || Ok(network.queue("deferred")? == 1))?;
    other.behave(Answers::Take, Duration::ZERO);
    let number = Subscribers::new(11, PREFIX).msisdn(10);
    let sender = Phone { subscriber: 10, ..phone(&number, 1, false) };
    assert_eq!(other.submit(&sender, "4915112345", "here I am", PATIENCE), MoAnswer::Taken);
    other.wait_for_taken(2, PATIENCE)?;
    // One who was never there is asked about until the HLR knows where.
    esme.submit_to(12, 110_002)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    until("a phone that was never on", || Ok(network.queue("deferred")? == 1))?;
    other.locate(12);
    other.wait_for_taken(3, PATIENCE)?;
    until("its answer", || Ok(network.count("/mt/delivered")? == 2_003))?;
    // Its HLR goes and comes back.
    network.hlr.die();
    network.hlr.come_back()?;
    until("all to be back", || {
        Ok(["SMSC-7", "MSC-1", "MSC-2"].iter().all(|name| network.hlr.is_connected(name)))
    })?;
    msc.wait_for_located(20, PATIENCE)?;
    network.submit(100, 10)?;
    until("all to arrive", || Ok(msc.report().taken() >= 2_100))?;
    Ok(())
}

#[test]
fn faults_of_hlr_and_mscs_are_told_until_they_are_mended() -> Result<()> {
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
    // 7: what OsmoMSC without `sms-over-gsup` says.
    let msc = network.msc("MSC-1", 2, Answers::Refuse(vec![Cause::Network(7)]))?;
    wait_for(&network, &[])?;
    network.submit(2, 1)?;
    wait_for(&network, &["msc-without-sms"])?;
    ensure!(network.appliance()?.metric("switchyard_gsm_faults")? == 1.0);
    network.hlr.die();
    until("the HLR to be missed", || {
        let networks = network.appliance()?.get("/v1/gsm")?;
        Ok(networks[0]["faults"].to_string().contains("hlr-down"))
    })?;
    network.hlr.come_back()?;
    wait_for(&network, &["msc-without-sms"])?;
    drop(msc);
    wait_for(&network, &["no-msc"])
}

#[test]
fn with_the_hlr_down_messages_between_known_subscribers_go_on_and_signalling_waits_for_it() -> Result<()> {
    let mut network = Network::start(4, "")?;
    let msc = StandInMsc::start(MscOptions { range: 0..2, keep: true, ..network.plain("MSC-1") })?;
    msc.wait_for_located(2, PATIENCE)?;
    network.hlr.die();
    until("the HLR to be missed", || {
        let networks = network.appliance()?.get("/v1/gsm")?;
        Ok(networks[0]["faults"].to_string().contains("hlr-down"))
    })?;
    network.submit(6, 2)?;
    msc.wait_for_taken(6, PATIENCE)?;
    let number = Subscribers::new(4, PREFIX).msisdn(0);
    let sender = Phone { subscriber: 0, ..phone(&number, 1, false) };
    assert_eq!(msc.submit(&sender, "4915112345", "meanwhile", PATIENCE), MoAnswer::Taken);
    msc.locate(2);
    network.hlr.come_back()?;
    msc.wait_for_located(3, PATIENCE)?;
    ensure!(network.hlr.is_connected("MSC-1"), "the HLR does not know the MSC by its name");
    until("nothing to be wrong any more", || {
        let networks = network.appliance()?.get("/v1/gsm")?;
        Ok(networks[0]["faults"] == serde_json::json!([]))
    })
}

#[test]
fn an_msc_loses_its_connection_when_the_hlr_is_away_for_longer_than_the_outage_allowed() -> Result<()> {
    let mut network = Network::start(1, "hlr-outage = \"1s\"")?;
    let msc = StandInMsc::start(MscOptions { range: 0..1, reconnect: None, ..network.plain("MSC-1") })?;
    msc.wait_for_located(1, PATIENCE)?;
    network.hlr.die();
    until("the MSC to lose its connection", || {
        let networks = network.appliance()?.get("/v1/gsm")?;
        Ok(networks[0]["faults"].to_string().contains("no-msc"))
    })?;
    drop(msc);
    Ok(())
}

#[test]
fn connections_that_never_say_who_they_are_do_not_fill_the_listener_and_do_not_reach_the_hlr() -> Result<()> {
    let limits = "connections = 12\nconnections-per-address = 12\nunidentified-connections = 4\nconnect-timeout = \"10m\"";
    let network = Network::start(1, limits)?;
    let before = network.hlr.connections();
    let mut crowd = Vec::new();
    for _ in 0..40 {
        crowd.push(Raw::connect(network.proxy)?);
    }
    // All but the youngest give way to those that come after them.
    for one in crowd.iter_mut().take(36) {
        one.until_closed()?;
    }
    ensure!(network.hlr.connections() == before, "the HLR was dialled for one without a name");
    let msc = network.msc("MSC-1", 1, Answers::default())?;
    ensure!(network.hlr.connections() == before + 1, "the HLR was not dialled once for an MSC with a name");
    drop((msc, crowd));
    Ok(())
}

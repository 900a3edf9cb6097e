//! A core network has a home: one partition has the links to MSCs and HLR, and the other submits to it.

use crate::nodes::{ClusterFixture, queue};
use anyhow::{Context, Result, ensure};
use behaviour_tests::load::gsm::{
    HlrOptions, MoAnswer, MoSender, MscOptions, MtBehaviour, RefusalCause, SimulatedHlr, SimulatedMsc,
    Subscribers,
};
use behaviour_tests::load::{Probe, Source, SourceOptions};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{TIMEOUT, shipped_policy, steps, until};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Prefix of all numbers; ten digits follow.
const PREFIX: &str = "1";
const CENTRE: &str = "19990014444";
const SUBSCRIBERS: u64 = 20;
/// Our numbers are home numbers; numbers that begin with 49 go to an ESME of partition 1.
const ROUTES: &str = "[default]\nhome = true\n\n[[route]]\nprefix = \"49\"\nlegs = [{ peer = \"east\" }]\n";

struct Network {
    fixture: ClusterFixture,
    hlr: SimulatedHlr,
    /// Address for MSCs, of the leader of partition 0.
    proxy: SocketAddr,
}

impl Network {
    fn new() -> Result<Self> {
        let hlr = SimulatedHlr::start(HlrOptions::new(Subscribers::new(SUBSCRIBERS, PREFIX)))?;
        let proxy = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        Ok(Self { fixture: ClusterFixture::new()?, hlr, proxy })
    }

    /// A node of a partition; partition 0 is the home. A refused message waits for an alert.
    fn node(&self, name: &str, partition: u8) -> Result<TestDaemonConfig> {
        let base = &self.fixture.base;
        let mut config = self.fixture.partition_node_with(name, partition, &[], "")?;
        let policy = base.folder().join("hlr.toml");
        std::fs::write(&policy, shipped_policy("hlr")?)?;
        config.account("east", "partition = 1\nmo-partitions = [0]\nwindow = 1000");
        config.router(&base.guest("prefix_router"), ROUTES)?.tables(&format!(
            "[[gsm]]\nname = \"phones\"\npartition = 0\nlisten = \"{}\"\nhlr = \"{}\"\nctrl = \"{}\"\n\
             service-centre = \"{CENTRE}\"\nretry = [\"5h\"]\n\
             [resolver]\nplugin = \"hlr-resolver\"\ncomponent = {:?}\npolicy = {policy:?}\n[resolver.grants]\nhlr = true\n",
            self.proxy,
            self.hlr.gsup(),
            self.hlr.ctrl(),
            base.guest("hlr_resolver").display().to_string(),
        ));
        Ok(config)
    }

    fn msc(&self) -> Result<SimulatedMsc> {
        let tally = Some(self.fixture.tally.clone());
        let options =
            MscOptions { range: 0..SUBSCRIBERS, keep: true, tally, ..MscOptions::new(self.proxy, "MSC-1") };
        let msc = SimulatedMsc::start(options)?;
        msc.wait_for_located(SUBSCRIBERS, TIMEOUT)?;
        Ok(msc)
    }

    /// Submits messages to the first subscribers.
    fn submit(&self, node: &TestDaemon, options: SourceOptions) -> Result<()> {
        let options = SourceOptions { prefix: PREFIX.to_owned(), ..options };
        let report = Source::start(&options, &self.fixture.tally)?.join()?;
        ensure!(report.refusals.is_empty(), "{:?}\n{}", report.refusals, node.log(20));
        Ok(())
    }
}

/// Messages of the core network in a state.
fn queued(node: &TestDaemon, state: &str) -> Result<u64> {
    queue(node, "phones")?[state].as_u64().context("no such state")
}

#[test]
fn phones_get_messages_of_another_partition_and_send_messages_to_it() -> Result<()> {
    let network = Network::new()?;
    let zero = network.node("a", 0)?.start()?;
    let one = network.node("b", 1)?.start()?;
    let msc = network.msc()?;
    let options = || SourceOptions::new(one.smpp(), "east", PASSWORD);
    network.submit(&one, SourceOptions { count: Some(60), destinations: Some(3), ..options() })?;
    msc.wait_for_accepted(60, TIMEOUT)?;
    assert_eq!((msc.report().out_of_order(), msc.report().duplicate_count()), (0, 0));

    // The alert about an absent phone reaches the other partition. A repetition is the same for the phone.
    msc.behave(MtBehaviour::Refuse(vec![RefusalCause::Network(17)]), Duration::ZERO);
    network
        .submit(&one, SourceOptions { count: Some(1), destinations: Some(1), length: 300, ..options() })?;
    until("the message waits for an alert", || Ok(queued(&one, "deferred")? == 1))?;
    assert_eq!(queued(&zero, "deferred")?, 0);
    let page = one.get("/v1/messages?state=deferred")?;
    let id = page["messages"][0]["id"].as_str().context("no id")?;
    let trace = one.get(&format!("/v1/messages/{id}"))?;
    ensure!(steps(&trace).contains(&"refused by the peer: network: network failure (17)"), "{trace:#}");
    msc.behave(MtBehaviour::Accept, Duration::ZERO);
    let absent = msc.report().arrivals.last().map(|arrival| arrival.imsi).context("no arrival")?;
    for subscriber in 0..SUBSCRIBERS {
        msc.locate(subscriber);
    }
    msc.wait_for_accepted(62, TIMEOUT)?;
    let report = msc.report();
    let octets: Vec<_> = report.arrivals[60..].iter().filter_map(|arrival| arrival.tpdu.clone()).collect();
    assert_eq!(octets.len(), 3, "the first segment twice, and the second");
    assert_eq!(octets[0], octets[1]);
    ensure!(report.arrivals[60..].iter().all(|arrival| arrival.imsi == absent), "{:?}", report.arrivals);

    // A phone's message to an account of the other partition.
    let mut esme = Probe::bind(one.smpp(), "east", PASSWORD, PREFIX, false)?;
    let number = Subscribers::new(SUBSCRIBERS, PREFIX).msisdn(0);
    let sender = MoSender { subscriber: 0, number: &number, centre: CENTRE, reference: 1, report: false };
    assert_eq!(msc.submit(&sender, "4915112345", "hello", TIMEOUT), MoAnswer::Accepted);
    esme.wait_for_delivered(1, TIMEOUT)?;
    assert_eq!(esme.delivered, ["hello"]);
    Ok(())
}

#[test]
fn the_leader_of_the_home_dies_and_each_phone_gets_its_messages_in_order() -> Result<()> {
    let network = Network::new()?;
    let zero = network.node("a", 0)?.start()?;
    let one = network.node("b", 1)?.start()?;
    let other_zero = network.node("b", 0)?.follow()?;
    let msc = network.msc()?;
    let options = SourceOptions {
        rate: Some(150.0),
        reconnect: true,
        destinations: Some(SUBSCRIBERS),
        prefix: PREFIX.to_owned(),
        ..SourceOptions::new(one.smpp(), "east", PASSWORD)
    };
    let source = Source::start(&options, &network.fixture.tally)?;
    network.fixture.wait_for_traffic()?;
    zero.kill()?;
    let zero = other_zero.ready()?;
    network.fixture.wait_for_traffic()?;
    source.stop();
    until("all have arrived", || {
        let waiting = ["queued", "resolving", "in_flight", "deferred"];
        let waiting = waiting.iter().map(|state| Ok(queued(&zero, state)? + queued(&one, state)?));
        Ok(waiting.sum::<Result<u64>>()? == 0 && network.fixture.tally.summary().missing == 0)
    })
    .with_context(|| format!("{:?}", network.fixture.tally.summary()))?;
    source.quit();
    source.join()?;

    let sums = network.fixture.tally.summary();
    assert_eq!((sums.unknown, sums.refused), (0, 0), "{sums:?}");
    let report = msc.report();
    assert_eq!((report.out_of_order(), report.broken), (0, 0));
    // A phone recognises a repetition by its octets; those of the flag for more messages may differ.
    let mut first = HashMap::new();
    for arrival in &report.arrivals {
        let (Some((number, _)), Some(tpdu)) = (arrival.number, &arrival.tpdu) else { continue };
        let known = first.entry(number).or_insert(&tpdu[1..]);
        assert_eq!(*known, &tpdu[1..], "{number}");
    }
    Ok(())
}

//! `cargo xtask demo --cluster`: two appliances and three members of etcd on one machine; the leader is killed under
//! traffic.

use super::demo::{DemoSetup, Options, wait_for_all};
use anyhow::{Result, ensure};
use api::ClusterView;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::etcd::EtcdServers;
use testkit::load::{Sink, SinkOptions, Source, SourceOptions, StopFlag, Tally};
use testkit::test_daemon::{PASSWORD, TestDaemonConfig, free_port};

/// Messages per second of the sample ESME.
const RATE: f64 = 200.0;
/// Maximum time for answers that were in flight when the leader died.
const IN_FLIGHT: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &Options) -> Result<()> {
    workspace::packages::install(|package| package == "etcd-server")?;
    let DemoSetup { binary, folder, .. } = DemoSetup::new(options, "demo-cluster")?;
    let servers = EtcdServers::start(&folder.join("etcd"), 3, None)?;
    println!("demo: three members of etcd are up: {}", servers.endpoints().join(", "));
    let tally = Arc::new(Tally::new(4_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    // With two machines, a virtual address or a load balancer would point to the leader. Here, only the leader opens
    // the port.
    let smpp = free_port()?;
    let node = |name: &str| -> Result<TestDaemonConfig> {
        let mut config = TestDaemonConfig::new(&binary, &folder.join(name))?;
        config.ports(smpp, free_port()?).archive("none").native("upstream");
        let peer = "links = 2\nwindow = 100\ndlrs = false\nuncertain = \"send-again\"";
        config.account("demo", "window = 1000").peer("upstream", sink.address(), peer);
        config.cluster(name, &servers, "");
        Ok(config)
    };
    let first = node("a")?.start()?;
    let second = node("b")?.follow()?;
    println!("demo: node a leads, node b follows");

    let mut ask = SourceOptions::new(SocketAddr::from(([127, 0, 0, 1], smpp)), "demo", PASSWORD);
    (ask.connections, ask.window, ask.rate, ask.reconnect) = (2, 100, Some(RATE), true);
    let source = Source::start(&ask, &tally)?;
    let pause = StopFlag::default();
    pause.pause(Duration::from_secs(2));
    println!(
        "demo: a sample ESME submits {RATE} messages a second: {} were accepted so far; now node a is killed",
        tally.accepted_count()
    );
    let killed = first.kill()?;
    let silence = wait_for_answers(&tally, &pause)?;
    let second = second.ready()?;
    println!("demo: node b leads; nobody answered for {} ms", silence.as_millis());

    let first = killed.follow()?;
    second.wait_for_nodes(2)?;
    pause.pause(Duration::from_secs(1));
    println!("demo: node a is back, and follows; now node b hands the lead over");
    let _: ClusterView = second.call("POST", "/v1/cluster/hand-over", &())?;
    let silence = wait_for_answers(&tally, &pause)?;
    second.wait_for_end();
    let first = first.ready()?;
    println!("demo: node a leads again; nobody answered for {} ms", silence.as_millis());
    pause.pause(Duration::from_secs(1));

    if !options.exit {
        let token = first.config().data().join("token");
        println!("\nIt runs until Ctrl-C. To explore:\n");
        println!(
            "  curl -s -H \"Authorization: Bearer $(cat {})\" http://{}/v1/cluster",
            token.display(),
            first.config().http()
        );
        first.wait_for_end();
        return Ok(());
    }
    source.stop();
    source.join()?;
    wait_for_all(&tally)?;
    let (status, _) = first.stop()?;
    sink.stop()?;
    let sums = tally.summary();
    println!(
        "demo: {} messages accepted, {} at the peer, {} missing, {} twice (uncertain when the leader died, and sent again); {} refused for \
         the moment of the hand-over",
        sums.accepted, sums.arrived, sums.missing, sums.duplicates, sums.refused
    );
    ensure!(status.success(), "node a stopped with {status}");
    // A node that hands the lead over refuses with a temporary error of the protocol.
    ensure!(sums.missing == 0, "{sums:?}");
    Ok(())
}

/// Returns the time from now on until the next answer.
fn wait_for_answers(tally: &Tally, pause: &StopFlag) -> Result<Duration> {
    let begun = Instant::now();
    pause.pause(IN_FLIGHT);
    let before = tally.accepted_count();
    while tally.accepted_count() == before {
        ensure!(begun.elapsed() < TIMEOUT, "no node answers");
        pause.pause(Duration::from_millis(2));
    }
    Ok(begun.elapsed())
}

//! `cargo xtask bench cluster`: the cost of a second machine, and the time without answers when the first one dies.
//! Everything runs on one machine and its disk: two appliances, three members of etcd, source and sink share its
//! processors.

use super::tool_run::{POLICY_WITH_ELSEWHERE, ToolRun};
use crate::aims;
use anyhow::{Context, Result, ensure};
use api::{ClusterRole, ClusterView};
use rustix::process::{Pid, Signal, kill_process};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::etcd::EtcdServers;
use testkit::load::{Probe, Sink, SinkOptions, Source, SourceOptions, StopFlag, Tally, process_cpu_time};
use testkit::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds per measurement.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Total window over four connections.
    #[arg(long, default_value_t = 4000)]
    window: usize,
    /// Number of messages that wait for another peer while the leader dies.
    #[arg(long, default_value_t = 100_000)]
    waiting: u64,
}

/// The account in partition 1.
const MORE: &str = "more";
const MAX_MESSAGES: usize = 12_000_000;
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum time without answers.
const SILENCE: Duration = Duration::from_secs(5);

/// Result of a measurement.
struct Measured {
    /// Messages a second.
    rate: f64,
    /// Octets that all programs of this machine have sent to each other, for a message.
    octets: f64,
}

/// Octets that were sent over the loopback interface since the machine has started.
fn loopback_octets() -> Result<u64> {
    let text = std::fs::read_to_string("/sys/class/net/lo/statistics/tx_bytes")
        .context("reading the loopback interface's statistics")?;
    Ok(text.trim().parse()?)
}

/// Appliances between a source and a sink.
struct ClusterBench<'a> {
    tool_run: &'a ToolRun,
    options: &'a Options,
    sink: Sink,
    tally: Arc<Tally>,
    nobody: SocketAddr,
}

impl<'a> ClusterBench<'a> {
    fn new(tool_run: &'a ToolRun, options: &'a Options) -> Result<Self> {
        let tally = Arc::new(Tally::new(MAX_MESSAGES));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        Ok(Self { tool_run, options, sink, tally, nobody })
    }

    fn config(&self, folder: &str) -> Result<TestDaemonConfig> {
        let mut config = self.tool_run.config(folder)?;
        let peer = "links = 2\nwindow = 2000\ndlrs = false\nuncertain = \"send-again\"";
        config.archive("none").router(&self.tool_run.component, POLICY_WITH_ELSEWHERE)?;
        config.peer("upstream", self.sink.address(), peer).peer("elsewhere", self.nobody, "");
        Ok(config)
    }

    /// The nodes a and b of a cluster.
    fn nodes(&self, name: &str, servers: &EtcdServers, compress: bool) -> Result<[TestDaemonConfig; 2]> {
        let node = |node: &str| {
            let mut config = self.config(&format!("{name}-{node}"))?;
            // On one machine, each node needs a port of its own.
            config.cluster(node, servers, &format!("compress = {compress}\nown-sections = [\"listener\"]"));
            Ok::<_, anyhow::Error>(config)
        };
        Ok([node("a")?, node("b")?])
    }

    /// A node of a partition; the account `load` is in partition 0, `more` in partition 1.
    fn partition_node(&self, name: &str, partition: u8, servers: &EtcdServers) -> Result<TestDaemonConfig> {
        let mut config = self.config(&format!("partition{partition}-{name}"))?;
        config.account(MORE, &format!("window = {}\npartition = 1", self.options.window));
        config.cluster(name, servers, &format!("partition = {partition}\nown-sections = [\"listener\"]"));
        Ok(config)
    }

    fn source(&self, smpp: SocketAddr) -> SourceOptions {
        self.source_of("load", smpp)
    }

    fn source_of(&self, account: &str, smpp: SocketAddr) -> SourceOptions {
        let mut ask = SourceOptions::new(smpp, account, PASSWORD);
        ask.window = self.options.window / ask.connections;
        ask
    }

    /// Measures the maximum rate, for the time in the options. `processes` are all processes that do the work.
    fn measure(&self, name: &str, smpp: SocketAddr, processes: &[u32]) -> Result<Measured> {
        self.measure_all(name, &[self.source(smpp)], processes)
    }

    /// Like [`Self::measure`], with several concurrent sources. The latencies are those of the first one.
    fn measure_all(&self, name: &str, asked: &[SourceOptions], processes: &[u32]) -> Result<Measured> {
        let (before, octets_before) = (self.tally.arrived_count(), loopback_octets()?);
        let processor = || processes.iter().filter_map(|id| process_cpu_time(*id)).sum::<Duration>();
        let (used, begun) = (processor(), Instant::now());
        let sources: Vec<Source> = asked
            .iter()
            .map(|ask| {
                let duration = Some(Duration::from_secs(self.options.seconds));
                Source::start(&SourceOptions { duration, ..ask.clone() }, &self.tally)
            })
            .collect::<Result<_>>()?;
        let reports = sources.into_iter().map(Source::join).collect::<Result<Vec<_>>>()?;
        let report = reports.first().context("no source")?;
        self.wait_for_all()?;
        let (time, done) = (begun.elapsed(), self.tally.arrived_count() - before);
        let refusals: Vec<_> = reports.iter().flat_map(|report| &report.refusals).collect();
        ensure!(refusals.is_empty() && done > 0, "{name}: {done} arrived, {refusals:?}");
        let used = (processor() - used).as_secs_f64() * 1e6 / done as f64;
        let rate = done as f64 / time.as_secs_f64();
        let octets = (loopback_octets()? - octets_before) as f64 / done as f64;
        println!(
            "  {name:<28}{rate:>9.0}{:>9.2}{:>9.2}{:>9.2}{used:>12.1}{octets:>12.0}",
            report.answers.quantile(0.5).as_secs_f64() * 1e3,
            report.answers.quantile(0.99).as_secs_f64() * 1e3,
            report.answers.max().as_secs_f64() * 1e3,
        );
        Ok(Measured { rate, octets })
    }

    fn wait_for_all(&self) -> Result<()> {
        let (begun, pause) = (Instant::now(), StopFlag::default());
        while self.tally.summary().missing > 0 {
            ensure!(begun.elapsed() < TIMEOUT, "messages are missing: {:?}", self.tally.summary());
            pause.pause(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Submits to these addresses until one answers. Returns the time since `begun`.
fn answers(begun: Instant, addresses: &[SocketAddr]) -> Result<Duration> {
    let pause = StopFlag::default();
    loop {
        for address in addresses {
            let probe = Probe::bind(*address, "load", PASSWORD, "992", false);
            if probe.is_ok_and(|mut probe| matches!(probe.submit(1), Ok(Ok(_)))) {
                return Ok(begun.elapsed());
            }
        }
        ensure!(begun.elapsed() < TIMEOUT, "no node answers");
        pause.pause(Duration::from_millis(5));
    }
}

/// Waits until one node leads and the other follows. If both have claimed the log, one of them is fenced and ends; it is started
/// again, as by a service manager.
fn leader_and_follower(mut nodes: [TestDaemon; 2]) -> Result<(TestDaemon, TestDaemon)> {
    let (begun, pause) = (Instant::now(), StopFlag::default());
    loop {
        for node in &mut nodes {
            if node.ended()?.is_some() {
                *node = node.config().launch()?;
            }
        }
        let role = |node: &TestDaemon| node.read::<ClusterView>("/v1/cluster").ok().map(|view| view.role);
        let [first, second] = &nodes;
        match (role(first), role(second)) {
            (Some(ClusterRole::Leader), Some(ClusterRole::Follower)) => {
                let [first, second] = nodes;
                return Ok((first, second));
            }
            (Some(ClusterRole::Follower), Some(ClusterRole::Leader)) => {
                let [first, second] = nodes;
                return Ok((second, first));
            }
            _ => {}
        }
        ensure!(begun.elapsed() < TIMEOUT, "there is not one leader");
        pause.pause(Duration::from_millis(100));
    }
}

pub(crate) fn run(options: &Options, binary: Option<&std::path::Path>) -> Result<()> {
    workspace::packages::install(|package| package == "etcd-server")?;
    ToolRun::with("cluster-", binary, |tool_run| {
        println!(
            "bench: {} processors shared by appliances, etcd, source and sink; {} s each; texts of 100 octets; window {}",
            std::thread::available_parallelism()?,
            options.seconds,
            options.window
        );
        let sync = crate::disk::sync_latency(tool_run.folder.path())?;
        println!("  bare fdatasync on an idle machine: median {} µs", sync.as_micros());
        rates(tool_run, options)?;
        take_overs(tool_run, options)
    })
}

fn rates(tool_run: &ToolRun, options: &Options) -> Result<()> {
    println!("                              messages   answer, ms                 processor, µs    octets");
    println!("                                   a s      p50      p99  longest     a message   a message");
    let bench = ClusterBench::new(tool_run, options)?;
    let alone = bench.config("alone")?.start()?;
    let single = bench.measure("one appliance", alone.smpp(), &[alone.id()])?;
    drop(alone);
    let (mut shares, mut between_nodes) = (Vec::new(), Vec::new());
    for (name, folder, compress, aim) in
        [("cluster, plain", "plain", false, 25_000.0), ("cluster, compressed", "compressed", true, 60_000.0)]
    {
        let servers = EtcdServers::start(&tool_run.folder.path().join(format!("etcd-{folder}")), 3, None)?;
        let [one, other] = bench.nodes(folder, &servers, compress)?;
        let (leader, follower) = (one.start()?, other.follow()?);
        let mut processes = servers.process_ids();
        processes.extend([leader.id(), follower.id()]);
        let Measured { rate, octets } = bench.measure(name, leader.smpp(), &processes)?;
        aims::check(rate >= aim, || format!("{name}: {rate:.0} messages a second, not {aim:.0}"))?;
        shares.push(format!("{:.0}%", rate / single.rate * 100.0));
        between_nodes.push(format!("{:.0}", octets - single.octets));
    }
    partitions(&bench, tool_run)?;
    println!("  of one appliance's rate: {}", shares.join(", "));
    println!("  octets a message between the machines, plain and compressed: {}", between_nodes.join(", "));
    Ok(())
}

/// Two partitions on two nodes: each node leads one partition and follows the other.
fn partitions(bench: &ClusterBench<'_>, tool_run: &ToolRun) -> Result<()> {
    let servers = EtcdServers::start(&tool_run.folder.path().join("etcd-partitions"), 3, None)?;
    let node = |name: &str, partition| bench.partition_node(name, partition, &servers);
    let (zero, one) = (node("a", 0)?.start()?, node("b", 1)?.start()?);
    let followers = [node("b", 0)?.follow()?, node("a", 1)?.follow()?];
    zero.read_until(TIMEOUT, "/v1/cluster", |cluster: &ClusterView| {
        cluster.partitions.iter().filter(|partition| partition.leader.is_some()).count() == 2
    })?;
    let mut processes = servers.process_ids();
    processes.extend([zero.id(), one.id()]);
    processes.extend(followers.iter().map(TestDaemon::id));
    let load = bench.source_of("load", zero.smpp());
    for (name, asked) in [
        ("one of two partitions", vec![load.clone()]),
        ("both partitions", vec![load.clone(), bench.source_of(MORE, one.smpp())]),
        ("both, through one address", vec![load, bench.source_of(MORE, zero.smpp())]),
    ] {
        bench.measure_all(name, &asked, &processes)?;
    }
    Ok(())
}

fn take_overs(tool_run: &ToolRun, options: &Options) -> Result<()> {
    let bench = ClusterBench::new(tool_run, options)?;
    let mut servers = EtcdServers::start(&tool_run.folder.path().join("etcd"), 3, None)?;
    let [one, other] = bench.nodes("takeover", &servers, true)?;
    let (mut leader, mut follower) = (one.start()?, other.follow()?);
    let mut ask = bench.source(leader.smpp());
    (ask.prefix, ask.count) = ("991".to_owned(), Some(options.waiting));
    Source::start(&ask, &bench.tally)?.join()?;
    println!("nobody answered, with {} messages waiting, ms:", options.waiting);
    let told = |name: &str, silence: Duration| {
        println!("  {name:<40}{:>8}", silence.as_millis());
        aims::check(silence <= SILENCE, || format!("{name}: nobody answered for {silence:?}"))
    };

    let begun = Instant::now();
    let dead = leader.kill()?;
    told("leader killed", answers(begun, &[follower.smpp()])?)?;
    (leader, follower) = (follower.ready()?, dead.follow()?);

    let begun = Instant::now();
    let id = Pid::from_raw(i32::try_from(leader.id())?).context("no process")?;
    kill_process(id, Signal::STOP)?;
    told("leader stopped (SIGSTOP)", answers(begun, &[follower.smpp()])?)?;
    kill_process(id, Signal::CONT)?;
    leader.wait_for_end();
    let config = leader.config().clone();
    (leader, follower) = (follower.ready()?, config.follow()?);

    let etcd_leads = |leader: &TestDaemon| -> Result<usize> {
        let cluster = leader.read_until::<ClusterView>(TIMEOUT, "/v1/cluster", |cluster| {
            cluster.etcd.iter().any(|member| member.leader)
        })?;
        cluster.etcd.iter().position(|member| member.leader).context("no member leads")
    };
    let member = etcd_leads(&leader)?;
    let begun = Instant::now();
    servers.kill(member);
    told("leader of etcd killed", answers(begun, &[leader.smpp()])?)?;
    servers.restart(member)?;

    let begun = Instant::now();
    let (first, second) = (leader.kill()?, follower.kill()?);
    let (first, second) = (first.launch()?, second.launch()?);
    told("both killed, and started again", answers(begun, &[first.smpp(), second.smpp()])?)?;
    (leader, follower) = leader_and_follower([first, second])?;
    leader.wait_for_nodes(2)?;

    let begun = Instant::now();
    let _: ClusterView = leader.call("POST", "/v1/cluster/hand-over", &())?;
    told("hand-over", answers(begun, &[follower.smpp()])?)?;
    leader.wait_for_end();
    let waiting = follower.ready()?.read::<serde_json::Value>("/v1/status")?;
    println!("  waiting at the end: {}", waiting["waiting"]);
    Ok(())
}

//! `cargo xtask cluster`: two appliances and three members of etcd on three simulated machines (network namespaces);
//! faults, and a check that nothing was lost, duplicated or invented.

mod fault;
mod lab;

use super::crash::lessee::{self, Lessee, LesseeReport};
use super::tool_run::{POLICY_WITH_ELSEWHERE, ToolRun};
use anyhow::{Context as _, Result, bail, ensure};
use api::QueueView;
use fault::Fault;
use lab::{HOST_ADDRESS, Lab, MACHINES};
use model::{Random, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::{Sink, SinkOptions, Source, SourceOptions, StopFlag, Tally};
use testkit::test_daemon::{HASH, PASSWORD, TestDaemon};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of faults.
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Seed that repeats the faults of an earlier run.
    #[arg(long)]
    seed: Option<u64>,
    /// Cause only faults whose name contains this text.
    #[arg(long)]
    only: Option<String>,
    /// Messages per second from the source.
    #[arg(long, default_value_t = 300.0)]
    rate: f64,
    /// Number of messages that wait for another peer all the time.
    #[arg(long, default_value_t = 0)]
    waiting: u64,
    /// Use this daemon instead of building one.
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
}

/// The peer that is down.
const ELSEWHERE: &str = "elsewhere";
const MAX_MESSAGES: usize = 8_000_000;
/// Initial balance of the account, in millionths.
const FUNDS: i64 = 1_000_000_000_000;
/// Price of a message in the shipped price list, in millionths.
const PRICE: i64 = 50_000;
/// Maximum time until all waiting messages have ended.
const SETTLING: Duration = Duration::from_secs(300);
/// Minimum number of messages between two faults.
const TRAFFIC: u64 = 300;

pub(crate) fn run(options: &Options) -> Result<()> {
    workspace::packages::install(|package| {
        matches!(package, "etcd-server" | "etcd-client" | "haproxy" | "iproute2" | "libfaketime")
    })?;
    lab::enter()?;
    ToolRun::with("cluster-faults-", options.binary.as_deref(), |tool_run| try_faults(tool_run, options))
}

fn try_faults(tool_run: &ToolRun, options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(|| Timestamp::now().0);
    println!("cluster: {} faults, seed {seed}", options.rounds);
    let mut random = Random::new(seed);
    let possible: Vec<Fault> = Fault::ALL
        .into_iter()
        .filter(|fault| options.only.as_ref().is_none_or(|only| fault.describe().contains(only.as_str())))
        .collect();
    ensure!(!possible.is_empty(), "no fault is called {:?}", options.only);

    let tally = Arc::new(Tally::new(MAX_MESSAGES));
    let configs = MACHINES.iter().take(2).map(|machine| tool_run.config(machine));
    let configs = configs.collect::<Result<Vec<_>>>()?;
    // Its address can be bound only when the network exists.
    let sink_address = SocketAddr::new(HOST_ADDRESS, 2776);
    let mut lab = Lab::start(tool_run.folder.path(), configs, |config| {
        // A message with an uncertain submission waits for its DLR, so that no message arrives twice.
        let peer = "links = 2\nwindow = 500\ndlrs = true\nuncertain = \"await-dlr\"";
        let nobody = SocketAddr::new(HOST_ADDRESS, 2777);
        config.archive("none").peer("upstream", sink_address, peer).peer(ELSEWHERE, nobody, "");
        config.router(&tool_run.component, POLICY_WITH_ELSEWHERE)?;
        let (redis, script) = (SocketAddr::new(config.smpp().ip(), lab::REDIS), lessee::SCRIPT);
        let account = lessee::ACCOUNT;
        config.tables(&format!(
            "[redis]\nlisten = [\"{redis}\"]\nscripts = [\"{script}\"]\n\
             [[redis.account]]\nname = {account:?}\npassword-hash = {HASH:?}\npermissions = [\"read\", \"lease\", \"manage\"]\n"
        ));
        Ok(())
    })?;
    let sink =
        Sink::start_at(sink_address, SinkOptions { receipts: true, ..SinkOptions::default() }, &tally)?;
    lab.wait_until_healthy()?;
    fill_queue(options.waiting)?;
    charge(leading(&lab)?, tool_run)?;

    let lessee_stop = Arc::new(StopFlag::default());
    let server = lessee::Server { address: Lab::redis(), has_account: true };
    let lessee = Lessee::start(server, &lessee_stop, seed)?;
    let mut ask = SourceOptions::new(Lab::smpp(), "load", PASSWORD);
    (ask.reconnect, ask.track_receipts, ask.rate) = (true, true, Some(options.rate));
    (ask.connections, ask.window) = (2, 200);
    let source = Source::start(&ask, &tally)?;

    let mut silences: BTreeMap<Fault, Vec<Duration>> = BTreeMap::new();
    let pause = StopFlag::default();
    for round in 1..=options.rounds {
        wait_for_traffic(&mut lab, &tally, &pause)?;
        let fault = *random.one(&possible).context("no faults")?;
        let watch = SilenceWatch::start(&tally)?;
        let outcome = fault.inject(&mut lab, &mut random);
        outcome.with_context(|| format!("round {round}: {}", fault.describe()))?;
        let whole = lab.wait_until_healthy().and_then(|()| wait_for_traffic(&mut lab, &tally, &pause));
        whole.with_context(|| format!("round {round}: after {}", fault.describe()))?;
        let silence = watch.end()?;
        println!(
            "  {round:3} {:<55} no answer for {:5.1} s; {} answered, {} arrived",
            fault.describe(),
            silence.as_secs_f64(),
            tally.accepted_count(),
            tally.arrived_count()
        );
        silences.entry(fault).or_default().push(silence);
    }
    lessee_stop.set();
    let lessee = match lessee.join() {
        Ok(report) => report?,
        Err(_) => bail!("the client of the number pool panicked"),
    };
    source.stop();
    let doubtful = settle(&lab, &tally)?;
    source.quit();
    let source = source.join()?;
    let money = leading(&lab)?.get("/v1/ledger/load")?;
    let (terms, repairs) = (lab.terms()?, lab.repairs.clone());
    lab.stop()?;
    sink.stop()?;
    report(&silences, &repairs);
    check(&tally, doubtful, &money, &terms)?;
    let LesseeReport { answered, unanswered } = lessee;
    println!(
        "number pool: {answered} requests answered, {unanswered} never; no lease lost, no number with two holders"
    );
    println!("terms: {}, each with one leader; the source lost {} connections", terms.len(), source.losses);
    println!("cluster: every message that was answered positively is accounted for");
    Ok(())
}

fn leading(lab: &Lab) -> Result<&TestDaemon> {
    lab.leader().and_then(|leader| lab.daemon(leader)).context("no appliance leads")
}

/// Submits messages for the peer that is down. They are free of charge, since there is no biller yet.
fn fill_queue(waiting: u64) -> Result<()> {
    if waiting == 0 {
        return Ok(());
    }
    let tally = Arc::new(Tally::new(MAX_MESSAGES));
    let mut ask = SourceOptions::new(Lab::smpp(), "load", PASSWORD);
    (ask.prefix, ask.count) = ("991".to_owned(), Some(waiting));
    let report = Source::start(&ask, &tally)?.join()?;
    let accepted = tally.accepted_count();
    ensure!(accepted == waiting, "{accepted} of {waiting} messages wait, {:?}", report.refusals);
    Ok(())
}

/// Binds the biller with the shipped prices, and funds the account.
fn charge(leader: &TestDaemon, tool_run: &ToolRun) -> Result<()> {
    let component = tool_run.component.with_file_name("prepaid.wasm");
    let uploaded = leader.ask("PUT", "/v1/plugins/prepaid", &std::fs::read(&component)?)?;
    let policy = std::fs::read_to_string(workspace::root().join("policies/prices.toml"))?;
    // The first credit limit opens an account.
    for (key, operation) in [("open", json!({ "credit": 0 })), ("fund", json!({ "fund": FUNDS }))] {
        let mut operation = operation;
        (operation["actor"], operation["reason"]) = ("run".into(), "a test".into());
        let (code, answer) = leader.ledger("load", key, &operation)?;
        ensure!(code == 200, "{operation}: {code} {answer}");
    }
    let binding = json!({ "plugin": "prepaid", "version": uploaded["version"], "policy": policy });
    leader.ask("POST", "/v1/hooks/biller/activate", binding.to_string().as_bytes())?;
    Ok(())
}

fn wait_for_traffic(lab: &mut Lab, tally: &Tally, pause: &StopFlag) -> Result<()> {
    let (before, begun) = (tally.accepted_count(), Instant::now());
    while tally.accepted_count() < before + TRAFFIC {
        lab.supervise()?;
        ensure!(begun.elapsed() < SETTLING, "no messages are answered any more");
        pause.pause(Duration::from_millis(20));
    }
    Ok(())
}

/// Measures the longest time without a positive answer.
struct SilenceWatch {
    stop: Arc<StopFlag>,
    thread: std::thread::JoinHandle<Duration>,
}

impl SilenceWatch {
    fn start(tally: &Arc<Tally>) -> Result<Self> {
        let stop = Arc::new(StopFlag::default());
        let (stopped, tally) = (stop.clone(), tally.clone());
        let watch = move || {
            let (mut seen, mut since, mut longest) = (tally.accepted_count(), Instant::now(), Duration::ZERO);
            while !stopped.pause(Duration::from_millis(5)) {
                let now = tally.accepted_count();
                longest = longest.max(since.elapsed());
                if now != seen {
                    (seen, since) = (now, Instant::now());
                }
            }
            longest
        };
        let thread = std::thread::Builder::new().name("silence".to_owned()).spawn(watch)?;
        Ok(Self { stop, thread })
    }

    fn end(self) -> Result<Duration> {
        self.stop.set();
        self.thread.join().map_err(|_| anyhow::anyhow!("the watch panicked"))
    }
}

/// Waits until only uncertain messages wait. Returns their number.
fn settle(lab: &Lab, tally: &Tally) -> Result<u64> {
    let (begun, pause) = (Instant::now(), StopFlag::default());
    loop {
        let mut queues: Vec<QueueView> = leading(lab)?.read("/v1/queues")?;
        queues.retain(|queue| queue.peer != ELSEWHERE);
        let waiting: u64 = queues
            .iter()
            .map(|queue| queue.queued + queue.deferred + queue.in_flight + queue.awaiting_dlr)
            .sum();
        let uncertain = queues.iter().map(|queue| queue.uncertain).sum::<u64>();
        if waiting == 0 && tally.summary().missing <= uncertain {
            // A message that is being sent to the sink a second time would arrive now.
            pause.pause(Duration::from_secs(2));
            return Ok(uncertain);
        }
        ensure!(begun.elapsed() < SETTLING, "messages wait for ever: {queues:#?}");
        pause.pause(Duration::from_millis(200));
    }
}

fn report(silences: &BTreeMap<Fault, Vec<Duration>>, repairs: &BTreeMap<&'static str, u64>) {
    println!(
        "fault                                                    times   no answer for, s: median, longest"
    );
    for (fault, times) in silences {
        let mut times = times.clone();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let longest = times.last().copied().unwrap_or_default();
        println!(
            "{:<57}{:>5}{:>12.1}{:>12.1}",
            fault.describe(),
            times.len(),
            median.as_secs_f64(),
            longest.as_secs_f64()
        );
    }
    for (what, times) in repairs {
        println!("{what}: {times}");
    }
}

fn check(tally: &Tally, doubtful: u64, money: &Value, terms: &BTreeMap<u64, Vec<String>>) -> Result<()> {
    let sums = tally.summary();
    println!(
        "sent {}, answered positively {}, refused {}, never answered {}; {} arrived, {} twice, {} missing; {} in doubt",
        sums.sent,
        sums.accepted,
        sums.refused,
        sums.unanswered,
        sums.arrived,
        sums.duplicates,
        sums.missing,
        doubtful
    );
    ensure!(sums.accepted > 0, "no message was accepted: the run proves nothing");
    ensure!(sums.unknown == 0, "{} unknown messages arrived", sums.unknown);
    ensure!(sums.duplicates == 0, "{} messages arrived twice", sums.duplicates);
    ensure!(
        sums.missing <= doubtful,
        "{} messages were lost, the first: {:?}",
        sums.missing,
        tally.missing(10)
    );
    let amount = |name: &str| money[name].as_i64().with_context(|| format!("no {name} in {money}"));
    let (balance, reserved, captured) = (amount("balance")?, amount("reserved")?, amount("captured")?);
    println!(
        "money: {} of {} captured, {} reserved",
        captured / PRICE,
        amount("funded")? / PRICE,
        reserved / PRICE
    );
    ensure!(balance + reserved + captured == FUNDS, "money was made or lost: {money}");
    ensure!(reserved == doubtful as i64 * PRICE, "{reserved} are reserved, and {doubtful} messages in doubt");
    // A message that arrived was accepted, though its answer may have been lost. If a message was submitted when the
    // leader died, and its validity ended before its DLR came, its fate is unknown; it is paid for, and was never
    // answered.
    let paid_only = captured / PRICE - sums.arrived as i64;
    println!(
        "messages that were paid and did not arrive (fate unknown, never answered): {}",
        paid_only.max(0)
    );
    // The price of an uncertain message stays reserved, whether or not it arrived: the appliance cannot know; an admin
    // decides.
    ensure!(
        captured + reserved >= sums.accepted as i64 * PRICE && paid_only <= sums.unanswered as i64,
        "{} messages were paid, the price of {} is reserved, {} were accepted and {} arrived",
        captured / PRICE,
        reserved / PRICE,
        sums.accepted,
        sums.arrived
    );
    for (term, nodes) in terms {
        ensure!(nodes.len() == 1, "the term {term} has several leaders: {nodes:?}");
    }
    Ok(())
}

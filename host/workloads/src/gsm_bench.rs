//! `cargo xtask bench gsm`: messages to phones, from submission through resolution and delivery to an MSC; and the cost
//! of the proxy between MSC and HLR for other signalling.

use super::tool_run::ToolRun;
use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::gsm::{HlrOptions, MscOptions, PlainMsc, SimulatedHlr, SimulatedMsc, Subscribers};
use testkit::load::{Histogram, Source, SourceOptions, Tally, cpu_time_by_thread};
use testkit::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Messages per measurement.
    #[arg(long, default_value_t = 100_000)]
    messages: u64,
    /// Total window over four connections.
    #[arg(long, default_value_t = 4000)]
    window: usize,
    /// Maximum number of subscribers with a message in flight.
    #[arg(long, default_value_t = 10_000)]
    subscribers: u32,
    /// Requests through the proxy, and as many on a direct connection.
    #[arg(long, default_value_t = 20_000)]
    questions: u64,
    /// Run only this part: messages or passing.
    #[arg(long)]
    only: Option<String>,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}

/// Prefix of all numbers; ten digits follow.
const PREFIX: &str = "1";
const ROUTES: &str = "[default]\nhome = true\nnote = \"everybody is at home\"\n";
const TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) fn run(options: &Options, binary: Option<&Path>) -> Result<()> {
    ToolRun::with("bench-gsm-", binary, |tool_run| measure(tool_run, options))
}

fn measure(tool_run: &ToolRun, options: &Options) -> Result<()> {
    println!(
        "bench gsm: {} processors, shared by the appliance, the source, the MSC and the HLR",
        std::thread::available_parallelism()?
    );
    if options.wants("messages") {
        println!(
            "  {} messages of 100 octets by SMPP; resolver hlr-resolver over CTRL, with an empty cache;",
            options.messages
        );
        println!("  one at a time for each subscriber; the phones take everything at once\n");
        println!("{HEAD}");
        for numbers in [1_000, 100_000] {
            measure_messages(tool_run, options, numbers)?;
        }
    }
    if options.wants("passing") {
        measure_pass_through(tool_run, options)?;
    }
    Ok(())
}

const HEAD: &str = "                      accepted   at phones   question to         processor, µs a message\n       to              a second    a second   last phone, s     links   engine    store    other";

/// A simulated network with the appliance between MSC and HLR.
struct Network {
    hlr: SimulatedHlr,
    appliance: TestDaemon,
    /// Address to which MSCs connect.
    proxy: SocketAddr,
}

impl Network {
    fn start(
        mut config: TestDaemonConfig,
        tool_run: &ToolRun,
        options: &Options,
        numbers: u64,
    ) -> Result<Self> {
        let hlr = SimulatedHlr::start(HlrOptions::new(Subscribers::new(numbers, PREFIX)))?;
        let proxy = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        config.router(&tool_run.component, ROUTES)?.tables(&section(&hlr, proxy, options.subscribers));
        let resolver = tool_run.component.with_file_name("hlr_resolver.wasm");
        config.tables(&resolution(&resolver, &workspace::root().join("policies/hlr.toml")));
        let appliance = config.start()?;
        Ok(Self { hlr, appliance, proxy })
    }
}

/// The configuration section of the core network.
fn section(hlr: &SimulatedHlr, proxy: SocketAddr, window: u32) -> String {
    format!(
        "[[gsm]]\nname = \"phones\"\nlisten = \"{proxy}\"\nhlr = \"{}\"\nctrl = \"{}\"\nservice-centre = \"19990014444\"\n\
         window = {window}\n",
        hlr.gsup(),
        hlr.ctrl()
    )
}

/// The configuration section of the resolver.
fn resolution(component: &Path, policy: &Path) -> String {
    format!(
        "[resolver]\nplugin = \"hlr-resolver\"\ncomponent = {:?}\npolicy = {:?}\n[resolver.grants]\nhlr = true\n",
        component.display().to_string(),
        policy.display().to_string()
    )
}

fn measure_messages(tool_run: &ToolRun, options: &Options, numbers: u64) -> Result<()> {
    let network = Network::start(tool_run.config(&format!("to-{numbers}"))?, tool_run, options, numbers)?;
    let tally = Arc::new(Tally::new(options.messages as usize + 10));
    let mut phones = MscOptions::new(network.proxy, "MSC-1");
    (phones.range, phones.tally) = (0..numbers, Some(Arc::clone(&tally)));
    let msc = SimulatedMsc::start(phones)?;
    let log = || format!("end of the log:\n{}", network.appliance.log(10));
    msc.wait_for_located(numbers, TIMEOUT).with_context(log)?;

    let mut ask = SourceOptions::new(network.appliance.smpp(), "load", PASSWORD);
    ask.window = options.window / ask.connections;
    (ask.count, ask.destinations, ask.prefix) = (Some(options.messages), Some(numbers), PREFIX.to_owned());
    let threads = cpu_time_by_thread(network.appliance.id());
    let began = Instant::now();
    let source = Source::start(&ask, &tally)?.join()?;
    let accepted = tally.accepted_count();
    ensure!(source.refusals.is_empty(), "refused: {:?}", source.refusals);
    msc.wait_for_accepted(accepted as usize, TIMEOUT).with_context(log)?;
    let report = msc.report();
    let took = report.arrivals.iter().map(|arrival| arrival.at).max().context("no arrival")? - began;
    let after = cpu_time_by_thread(network.appliance.id());
    let cost = |of: &dyn Fn(&str) -> bool| {
        let times = after.iter().filter(|(name, _)| of(name)).map(|(name, time)| {
            time.saturating_sub(threads.get(name).copied().unwrap_or_default()).as_secs_f64()
        });
        times.sum::<f64>() * 1e6 / accepted as f64
    };
    let of = [
        cost(&|name| name.starts_with("link")),
        cost(&|name| name == "core"),
        cost(&|name| name == "commit"),
        cost(&|name| !name.starts_with("link") && name != "core" && name != "commit"),
    ];
    println!(
        "{numbers:>9} numbers {:>13.0} {:>11.0} {:>15.2} {:>9.2}{:>9.2}{:>9.2}{:>9.2}",
        accepted as f64 / source.elapsed.as_secs_f64(),
        accepted as f64 / took.as_secs_f64(),
        took.as_secs_f64(),
        of[0],
        of[1],
        of[2],
        of[3],
    );
    let asked = network.hlr.control_report();
    println!(
        "          {} questions, at most {} per number at a time; at most {} open; {} messages indicated more to follow",
        asked.questions,
        asked.most_at_a_time,
        asked.most_open,
        report.more_count()
    );
    let sums = tally.summary();
    ensure!(
        sums.missing == 0 && report.duplicate_count() == 0,
        "{sums:?}, {} doubles",
        report.duplicate_count()
    );
    ensure!(report.overlaps == 0, "{} messages arrived while an earlier one was unanswered", report.overlaps);
    ensure!(report.out_of_order() == 0, "{} out of order", report.out_of_order());
    ensure!(asked.questions == numbers.min(options.messages), "{} questions", asked.questions);
    Ok(())
}

/// Requests of an MSC to its HLR, alternately through the appliance and directly.
fn measure_pass_through(tool_run: &ToolRun, options: &Options) -> Result<()> {
    const ROUND: u64 = 100;
    const WINDOW: u64 = 256;
    const LOAD_MESSAGES: u64 = 300_000;
    let network = Network::start(tool_run.config("passing")?, tool_run, options, 10)?;
    let mut direct = PlainMsc::connect(network.hlr.gsup(), "MSC-1")?;
    let mut through = PlainMsc::connect(network.proxy, "MSC-2")?;
    let (mut warm, mut without, mut with) = Default::default();
    direct.ask(1, 2_000, &mut warm)?;
    through.ask(1, 2_000, &mut warm)?;
    for _ in 0..options.questions.div_ceil(ROUND) {
        direct.ask(1, ROUND, &mut without)?;
        through.ask(1, ROUND, &mut with)?;
    }
    // The histogram counts units of 10 nanoseconds here.
    let micros = |times: &Histogram, share: f64| times.quantile(share).as_micros() as f64 / 100.0;
    println!("\n  {} authentication requests, one after the other, µs", with.count());
    println!("                 directly    through the appliance    added");
    for (name, share) in [("half", 0.5), ("99 of 100", 0.99), ("999 of 1000", 0.999)] {
        let (without, with) = (micros(&without, share), micros(&with, share));
        println!("  {name:<12} {without:>9.1}{with:>25.1}{:>9.1}", with - without);
    }
    let before = cpu_time_by_thread(network.appliance.id());
    let mut rates = [0.0_f64; 2];
    for _ in 0..3 {
        for (rate, msc) in rates.iter_mut().zip([&mut direct, &mut through]) {
            *rate = rate.max(LOAD_MESSAGES as f64 / msc.submit_all(1, LOAD_MESSAGES, WINDOW)?.as_secs_f64());
        }
    }
    let times = cpu_time_by_thread(network.appliance.id()).into_iter().map(|(name, time)| {
        time.saturating_sub(before.get(&name).copied().unwrap_or_default()).as_secs_f64()
    });
    let cost = times.sum::<f64>() * 1e6 / (3 * LOAD_MESSAGES) as f64;
    println!(
        "  {WINDOW} window, best of three: {:.0} requests a second directly, {:.0} through the appliance;",
        rates[0], rates[1]
    );
    println!("  a request and its answer cost the appliance {cost:.2} µs of CPU time");
    ensure!(network.hlr.refused() == 0, "the HLR refused {} connections", network.hlr.refused());
    Ok(())
}

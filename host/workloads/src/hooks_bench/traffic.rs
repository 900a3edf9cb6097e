//! All four default plugins compared to none, end to end: a source, the daemon, a sink.

use super::guests::Guests;
use super::{Options, median};
use crate::tool_run::ToolRun;
use anyhow::{Context, Result, ensure};
use api::{ActivationRequest, BalanceView, BindingRecord, Grants, LedgerChangeRequest, PluginVersionView};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::{
    SideTraffic, Sink, SinkOptions, Source, SourceOptions, SourceReport, StopFlag, Tally, cpu_time_by_thread,
};
use testkit::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};

/// Maximum number of messages of a run.
const MAX_MESSAGES: usize = 12_000_000;

/// One of this many messages goes to a subscriber of the home network; number of these subscribers.
const HOME: (u64, u64) = (50, 10_000);
/// Prefix of the home network's numbers; ten digits follow.
const OURS: &str = "8617";

const ROUTES: &str = "[[route]]\nprefix = \"8617\"\nhome = true\nnote = \"at home\"\n\
                      [default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything else upstream\"\n";

/// Price of a message in `policies/prices.toml`, in millionths.
const PRICE: u64 = 50_000;

/// A daemon between a source and a sink.
pub(super) struct TrafficSetup {
    pub(super) appliance: TestDaemon,
    _sink: Sink,
    tally: Arc<Tally>,
}

/// One measurement.
struct TrafficRates {
    /// Messages that reached the peer, per second.
    rate: f64,
    /// CPU time of the daemon per message, in microseconds.
    cost: f64,
    /// CPU time of its link threads, which call routers and billers, and of its engine threads, per message in
    /// microseconds.
    links: f64,
    engine: f64,
    answer: f64,
}

impl TrafficSetup {
    pub(super) fn start(config: &mut TestDaemonConfig) -> Result<Self> {
        let tally = Arc::new(Tally::new(MAX_MESSAGES));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let keys = "links = 2\nwindow = 2000\ndlrs = false\nuncertain = \"send-again\"";
        config.peer("upstream", sink.address(), keys);
        let setup = Self { appliance: config.start()?, _sink: sink, tally };
        setup.appliance.wait_for_line(Duration::from_secs(20), |text| {
            text.contains("bound") && text.contains("peer=upstream")
        })?;
        Ok(setup)
    }

    fn ask(&self) -> SourceOptions {
        let mut ask = SourceOptions::new(self.appliance.smpp(), "load", PASSWORD);
        ask.window = 1000;
        let (every, numbers) = HOME;
        ask.side_traffic = Some(SideTraffic { every, prefix: OURS.to_owned(), numbers });
        ask
    }

    /// Runs traffic at a steady rate while `work` runs.
    pub(super) fn run_steady(&self, work: impl FnOnce(&TestDaemon) -> Result<()>) -> Result<SourceReport> {
        let mut ask = SourceOptions::new(self.appliance.smpp(), "load", PASSWORD);
        ask.rate = Some(super::exchange::RATE);
        let source = Source::start(&ask, &self.tally)?;
        StopFlag::default().pause(Duration::from_millis(300));
        let done = work(&self.appliance);
        StopFlag::default().pause(Duration::from_millis(300));
        source.stop();
        let report = source.join()?;
        done?;
        ensure!(report.refusals.is_empty(), "refused: {:?}", report.refusals);
        self.drain()?;
        Ok(report)
    }

    /// Runs traffic at a steady rate from `accounts` accounts `shop0`, `shop1` …, with one connection each.
    pub(super) fn run_accounts(&self, accounts: usize, rate: f64, time: Duration) -> Result<SourceReport> {
        let mut ask = SourceOptions::new(self.appliance.smpp(), "shop", PASSWORD);
        (ask.accounts, ask.connections, ask.window) = (true, accounts, 20);
        (ask.rate, ask.duration) = (Some(rate), Some(time));
        let report = Source::start(&ask, &self.tally)?.join()?;
        ensure!(report.refusals.is_empty(), "refused: {:?}", report.refusals);
        self.drain()?;
        Ok(report)
    }

    /// Runs traffic at the maximum rate that the daemon accepts.
    fn run_flat_out(&self, seconds: f64) -> Result<TrafficRates> {
        const WARM: Duration = Duration::from_millis(400);
        let mut ask = self.ask();
        ask.duration = Some(WARM + Duration::from_secs_f64(seconds) + Duration::from_millis(200));
        let source = Source::start(&ask, &self.tally)?;
        let pause = StopFlag::default();
        pause.pause(WARM);
        let look = || (Instant::now(), self.tally.arrived_count(), cpu_time_by_thread(self.appliance.id()));
        let from = look();
        pause.pause(Duration::from_secs_f64(seconds));
        let to = look();
        let report = source.join()?;
        self.drain()?;
        ensure!(report.refusals.is_empty(), "refused: {:?}", report.refusals);
        let done = (to.1 - from.1) as f64;
        ensure!(done > 0.0, "nothing arrived; end of the log:\n{}", self.appliance.log(10));
        let cost = |of: &dyn Fn(&str) -> bool| {
            let threads = to.2.iter().filter(|(name, _)| of(name));
            let times = threads.map(|(name, after)| {
                after.saturating_sub(from.2.get(name).copied().unwrap_or_default()).as_secs_f64()
            });
            times.sum::<f64>() * 1e6 / done
        };
        Ok(TrafficRates {
            rate: done / (to.0 - from.0).as_secs_f64(),
            cost: cost(&|_| true),
            links: cost(&|name| name.starts_with("link")),
            engine: cost(&|name| name == "core"),
            answer: report.answers.quantile(0.5).as_secs_f64() * 1e3,
        })
    }

    /// Waits until all messages have arrived.
    fn drain(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let pause = StopFlag::default();
        while self.tally.accepted_count() > self.tally.arrived_count() {
            let log = || self.appliance.log(10);
            ensure!(Instant::now() < deadline, "messages do not arrive; end of the log:\n{}", log());
            pause.pause(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Activates a plugin.
    fn bind(&self, hook: &str, plugin: &str, guests: &Guests, policy: &str, grants: Grants) -> Result<()> {
        let octets = std::fs::read(guests.default(&plugin.replace('-', "_")))?;
        let uploaded: PluginVersionView =
            self.appliance.upload("PUT", &format!("/v1/plugins/{plugin}"), &octets)?;
        let activation = ActivationRequest {
            grants: Some(grants),
            ..ActivationRequest::of(plugin, &uploaded.version, policy)
        };
        let path = format!("/v1/hooks/{hook}/activate");
        self.appliance.call::<BindingRecord>("POST", &path, &activation).map(drop)
    }

    /// Number and total microseconds of the calls of a hook's plugin.
    fn calls(&self, hook: &str) -> Result<(f64, f64)> {
        let label = format!("hook=\"{hook}\"");
        let metrics = self.appliance.metrics()?;
        let of = |name: &str| -> f64 {
            let ours = metrics.iter().filter(|(key, _)| key.starts_with(name) && key.contains(&label));
            ours.map(|(_, value)| value).sum()
        };
        let (count, sum) = (of("switchyard_hook_seconds_count"), of("switchyard_hook_seconds_sum"));
        Ok((count, sum * 1e6 / count.max(1.0)))
    }
}

/// A setup with all four default plugins, and credit for the account.
fn with_all_plugins(tool_run: &ToolRun, guests: &Guests) -> Result<TrafficSetup> {
    let mut config = tool_run.config("all")?;
    config.router(&tool_run.component, ROUTES)?.tables("[home]\npeer = \"upstream\"\n");
    let setup = TrafficSetup::start(&mut config)?;
    let rows: String = (0..HOME.1).map(|n| format!("{OURS}{n:010},26201{n:010}\n")).collect();
    setup.appliance.ask("PUT", "/v1/tables/hlr?kind=exact", rows.as_bytes())?;
    setup.bind(
        "resolver",
        "table-resolver",
        guests,
        &guests.policy("subscribers.toml")?,
        Grants { tables: vec!["hlr".to_owned()], ..Grants::default() },
    )?;
    setup.bind(
        "delivery-policy",
        "retry-ladder",
        guests,
        &guests.policy("retries.toml")?,
        Grants::default(),
    )?;
    setup.bind("biller", "prepaid", guests, &guests.policy("prices.toml")?, Grants::default())?;
    let reason = Some("for a benchmark".to_owned());
    let open = LedgerChangeRequest { credit: Some(0), reason, ..LedgerChangeRequest::default() };
    let fund = Some(i64::try_from(PRICE)? * i64::try_from(MAX_MESSAGES)?);
    let fund = LedgerChangeRequest { fund, credit: None, ..open.clone() };
    for (key, change) in [("open", open), ("fund", fund)] {
        let (status, said) = setup.appliance.ledger("load", key, &change)?;
        ensure!(status < 300, "{key}: {status} {said}");
    }
    Ok(setup)
}

/// A setup without plugins: a constant route, no prices, the built-in schedule.
fn without_plugins(tool_run: &ToolRun) -> Result<TrafficSetup> {
    let mut config = tool_run.config("none")?;
    config.native("upstream");
    TrafficSetup::start(&mut config)
}

pub(super) fn measure(tool_run: &ToolRun, guests: &Guests, options: &Options) -> Result<()> {
    println!(
        "\n2. All four default plugins compared with none, end to end, alternating ({} s each)",
        options.seconds
    );
    println!("                messages/s    processor, µs a message         answer");
    println!("                              all     links    engine       p50, ms");
    let (off, on) = (without_plugins(tool_run)?, with_all_plugins(tool_run, guests)?);
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    // One uncounted run, in which files, caches and heaps reach their size.
    off.run_flat_out(0.5)?;
    on.run_flat_out(0.5)?;
    for turn in 0..options.pairs {
        // The order alternates, too.
        let (without, with);
        if turn % 2 == 0 {
            without = off.run_flat_out(options.seconds)?;
            with = on.run_flat_out(options.seconds)?;
        } else {
            with = on.run_flat_out(options.seconds)?;
            without = off.run_flat_out(options.seconds)?;
        }
        for (name, one) in [("none", &without), ("all four", &with)] {
            let TrafficRates { rate, cost, links, engine, answer } = one;
            println!("  {name:<10}{rate:>14.0}{cost:>9.2}{links:>10.2}{engine:>10.2}{answer:>14.2}");
        }
        rates.push(with.rate / without.rate);
        costs.push(with.cost / without.cost);
    }
    let share = |ratios: &[f64]| (median(ratios) - 1.0) * 100.0;
    let listed = rates.iter().map(|ratio| format!("{ratio:.3}")).collect::<Vec<_>>().join(" ");
    println!("  throughput with all four relative to none: {listed}");
    println!(
        "  median: {:+.1} % of throughput (aim: -15 %), {:+.1} % of the daemon's CPU time a message",
        share(&rates),
        share(&costs)
    );
    check_hook_calls(&on)
}

/// Prints the plugins' calls, and checks that every message was paid for.
fn check_hook_calls(setup: &TrafficSetup) -> Result<()> {
    let accepted = setup.tally.accepted_count();
    for (hook, what) in [
        ("router", "called for every message"),
        ("biller", "called for every message"),
        ("resolver", "one message in 50 goes to a home number; called once per number, cached for an hour"),
        ("delivery-policy", "called for failed attempts: there are none"),
    ] {
        let (calls, cost) = setup.calls(hook)?;
        let cost = if calls > 0.0 {
            format!(", {cost:.2} µs each as the daemon measures it")
        } else {
            String::new()
        };
        println!("  {hook}: {calls:.0} calls{cost} ({what})");
    }
    let home = accepted / HOME.0;
    let is_settled = |balance: &BalanceView| balance.captured == accepted * PRICE && balance.reserved == 0;
    let balance = setup.appliance.read_until(Duration::from_secs(20), "/v1/ledger/load", is_settled);
    balance.with_context(|| format!("not all of the {accepted} messages were charged {PRICE}"))?;
    println!(
        "  {accepted} messages accepted, about {home} of them through the resolver; the charges match exactly"
    );
    Ok(())
}

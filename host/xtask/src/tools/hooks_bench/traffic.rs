//! All four default plugins against none, end to end: a source, the daemon, a sink.

use super::guests::Guests;
use super::{Options, median};
use crate::tools::place::Place;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xtask::appliance::{Appliance, Blueprint, PASSWORD};
use xtask::load::{Aside, Sink, SinkOptions, Source, SourceOptions, SourceReport, Stop, Tally, thread_times};

/// Numbers of an appliance's whole life.
const MOST: usize = 12_000_000;

/// One message in so many is for a subscriber of ours, of whom there are so many.
const HOME: (u64, u64) = (50, 10_000);
/// Begin of their numbers; ten digits follow.
const OURS: &str = "8617";

const ROUTES: &str = "[[route]]\nprefix = \"8617\"\nhome = true\nnote = \"at home\"\n\
                      [default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything else upstream\"\n";

/// What a message costs by `policies/prices.toml`, in millionths.
const PRICE: u64 = 50_000;

/// A daemon between a source and a sink.
pub(super) struct Line {
    pub(super) appliance: Appliance,
    _sink: Sink,
    tally: Arc<Tally>,
}

/// One measurement.
struct Measured {
    /// Messages that reached the peer, a second.
    rate: f64,
    /// Processor microseconds of the daemon's, a message.
    cost: f64,
    /// The same of its links' threads, where routers and billers are asked, and of its engine's.
    links: f64,
    engine: f64,
    answer: f64,
}

impl Line {
    pub(super) fn start(blueprint: &mut Blueprint) -> Result<Self> {
        let tally = Arc::new(Tally::new(MOST));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let keys = "links = 2\nwindow = 2000\nreceipts = false\nuncertain = \"send-again\"";
        blueprint.peer("upstream", sink.address(), keys);
        let line = Self { appliance: blueprint.start()?, _sink: sink, tally };
        line.appliance.wait_for_line(Duration::from_secs(20), |text| {
            text.contains("bound") && text.contains("peer=upstream")
        })?;
        Ok(line)
    }

    fn ask(&self) -> SourceOptions {
        let mut ask = SourceOptions::new(self.appliance.smpp(), "load", PASSWORD);
        ask.window = 1000;
        let (every, numbers) = HOME;
        ask.aside = Some(Aside { every, prefix: OURS.to_owned(), numbers });
        ask
    }

    /// Traffic at a steady rate while `work` works.
    pub(super) fn steadily(&self, work: impl FnOnce(&Appliance) -> Result<()>) -> Result<SourceReport> {
        let mut ask = SourceOptions::new(self.appliance.smpp(), "load", PASSWORD);
        ask.rate = Some(super::exchange::RATE);
        let source = Source::start(&ask, &self.tally)?;
        Stop::default().pause(Duration::from_millis(300));
        let done = work(&self.appliance);
        Stop::default().pause(Duration::from_millis(300));
        source.stop();
        let report = source.join()?;
        done?;
        ensure!(report.refusals.is_empty(), "refused: {:?}", report.refusals);
        self.drain()?;
        Ok(report)
    }

    /// As much traffic as it takes.
    fn flat_out(&self, seconds: f64) -> Result<Measured> {
        const WARM: Duration = Duration::from_millis(400);
        let mut ask = self.ask();
        ask.duration = Some(WARM + Duration::from_secs_f64(seconds) + Duration::from_millis(200));
        let source = Source::start(&ask, &self.tally)?;
        let pause = Stop::default();
        pause.pause(WARM);
        let look = || (Instant::now(), self.tally.arrived_so_far(), thread_times(self.appliance.id()));
        let from = look();
        pause.pause(Duration::from_secs_f64(seconds));
        let to = look();
        let report = source.join()?;
        self.drain()?;
        ensure!(report.refusals.is_empty(), "refused: {:?}", report.refusals);
        let done = (to.1 - from.1) as f64;
        ensure!(done > 0.0, "nothing arrived; the log ends:\n{}", self.appliance.log(10));
        let cost = |of: &dyn Fn(&str) -> bool| {
            let threads = to.2.iter().filter(|(name, _)| of(name));
            let times = threads.map(|(name, after)| {
                after.saturating_sub(from.2.get(name).copied().unwrap_or_default()).as_secs_f64()
            });
            times.sum::<f64>() * 1e6 / done
        };
        Ok(Measured {
            rate: done / (to.0 - from.0).as_secs_f64(),
            cost: cost(&|_| true),
            links: cost(&|name| name.starts_with("link")),
            engine: cost(&|name| name == "core"),
            answer: report.answers.quantile(0.5).as_secs_f64() * 1e3,
        })
    }

    /// Waits until everything has arrived.
    fn drain(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let pause = Stop::default();
        while self.tally.accepted_so_far() > self.tally.arrived_so_far() {
            let log = || self.appliance.log(10);
            ensure!(Instant::now() < deadline, "messages do not arrive; the log ends:\n{}", log());
            pause.pause(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Makes a plugin live.
    fn bind(&self, hook: &str, plugin: &str, guests: &Guests, policy: &str, grants: &Value) -> Result<()> {
        let octets = std::fs::read(guests.default(&plugin.replace('-', "_")))?;
        let uploaded = self.appliance.ask("PUT", &format!("/v1/plugins/{plugin}"), &octets)?;
        let wanted = json!({
            "plugin": plugin, "version": uploaded["version"], "policy": policy, "grants": grants });
        let path = format!("/v1/hooks/{hook}/activate");
        self.appliance.ask("POST", &path, wanted.to_string().as_bytes()).map(drop)
    }

    /// Calls of a hook's plugin so far, and their microseconds.
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

/// A line with all four default plugins, and money for the account.
fn with_all(place: &Place, guests: &Guests) -> Result<Line> {
    let mut blueprint = place.blueprint("all")?;
    blueprint.router(&place.component, ROUTES)?.tables("[home]\npeer = \"upstream\"\n");
    let line = Line::start(&mut blueprint)?;
    let rows: String = (0..HOME.1).map(|n| format!("{OURS}{n:010},26201{n:010}\n")).collect();
    line.appliance.ask("PUT", "/v1/tables/hlr?kind=exact", rows.as_bytes())?;
    let nothing = json!({});
    line.bind(
        "resolver",
        "table-resolver",
        guests,
        &guests.policy("subscribers.toml")?,
        &json!({ "tables": ["hlr"] }),
    )?;
    line.bind("delivery-policy", "retry-ladder", guests, &guests.policy("retries.toml")?, &nothing)?;
    line.bind("biller", "prepaid", guests, &guests.policy("prices.toml")?, &nothing)?;
    for (key, what, amount) in [("open", "credit", 0), ("fund", "fund", PRICE * MOST as u64)] {
        let operation = json!({ what: amount, "reason": "for a benchmark" });
        let (status, said) = line.appliance.ledger("load", key, &operation)?;
        ensure!(status < 300, "{key}: {status} {said}");
    }
    Ok(line)
}

/// A line without any plugin: a constant route, no prices, the built-in schedule.
fn without(place: &Place) -> Result<Line> {
    let mut blueprint = place.blueprint("none")?;
    blueprint.native("upstream");
    Line::start(&mut blueprint)
}

pub(super) fn measure(place: &Place, guests: &Guests, options: &Options) -> Result<()> {
    println!("\n2. All four default plugins against none, end to end, by turns ({} s each)", options.seconds);
    println!("                messages/s    processor, µs a message         answer");
    println!("                              all     links    engine       p50, ms");
    let (off, on) = (without(place)?, with_all(place, guests)?);
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    // Once before it counts: files, caches and heaps come to their size.
    off.flat_out(0.5)?;
    on.flat_out(0.5)?;
    for turn in 0..options.pairs {
        // Who is first takes turns too.
        let (without, with);
        if turn % 2 == 0 {
            without = off.flat_out(options.seconds)?;
            with = on.flat_out(options.seconds)?;
        } else {
            with = on.flat_out(options.seconds)?;
            without = off.flat_out(options.seconds)?;
        }
        for (name, one) in [("none", &without), ("all four", &with)] {
            let Measured { rate, cost, links, engine, answer } = one;
            println!("  {name:<10}{rate:>14.0}{cost:>9.2}{links:>10.2}{engine:>10.2}{answer:>14.2}");
        }
        rates.push(with.rate / without.rate);
        costs.push(with.cost / without.cost);
    }
    let share = |ratios: &[f64]| (median(ratios) - 1.0) * 100.0;
    let listed = rates.iter().map(|ratio| format!("{ratio:.3}")).collect::<Vec<_>>().join(" ");
    println!("  throughput with all four, of that with none: {listed}");
    println!(
        "  median: {:+.1} % of throughput (aim: -10 %), {:+.1} % of the daemon's processor time a message",
        share(&rates),
        share(&costs)
    );
    checked(&on)
}

/// What the plugins did, and whether every message was paid for.
fn checked(line: &Line) -> Result<()> {
    let accepted = line.tally.accepted_so_far();
    for (hook, what) in [
        ("router", "asked of every message"),
        ("biller", "asked of every message"),
        ("resolver", "one message in 50 goes home; asked once a number, kept for an hour"),
        ("delivery-policy", "asked of attempts that fail: there are none"),
    ] {
        let (calls, cost) = line.calls(hook)?;
        let cost =
            if calls > 0.0 { format!(", {cost:.2} µs each by the daemon's count") } else { String::new() };
        println!("  {hook}: {calls:.0} calls{cost} ({what})");
    }
    let home = accepted / HOME.0;
    let balance = line.appliance.wait_until(Duration::from_secs(20), "/v1/ledger/load", |balance| {
        balance["captured"].as_u64() == Some(accepted * PRICE) && balance["reserved"] == 0
    });
    balance.with_context(|| format!("{accepted} messages, {PRICE} each, were not all paid for"))?;
    println!(
        "  {accepted} messages accepted, about {home} of them by way of the resolver; all paid for, to the millionth"
    );
    Ok(())
}

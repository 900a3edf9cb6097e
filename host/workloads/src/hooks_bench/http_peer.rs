//! Messages to an HTTP API by `http-peer`, compared to an SMPP peer, in alternation.

use super::guests::Guests;
use super::{Options, median};
use crate::tool_run::ToolRun;
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use testkit::load::{Sink, SinkOptions, Source, SourceOptions, StopFlag, Tally, process_cpu_time};
use testkit::test_daemon::{PASSWORD, TestDaemon};

/// Maximum numbers of unanswered messages, for either peer.
const WINDOWS: [u32; 2] = [8, 64];
/// Maximum time of a run.
const LONGEST: Duration = Duration::from_secs(300);

/// An HTTP API on a loopback port that accepts each message.
struct HttpUpstream {
    address: SocketAddr,
    accepted: Arc<AtomicU64>,
}

impl HttpUpstream {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, accepted) = (listener.local_addr()?, Arc::<AtomicU64>::default());
        let counted = accepted.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let counted = counted.clone();
                // An error means that the daemon has ended.
                std::thread::spawn(move || serve(&connection, &counted));
            }
        });
        Ok(Self { address, accepted })
    }

    fn policy(&self) -> String {
        format!(
            "[request]\nurl = \"http://{}/messages\"\njson = {{ to = \"+{{destination}}\", from = \"{{source}}\", text = \"{{text}}\" }}\n\
             [accepted]\nid = \"/id\"\n",
            self.address
        )
    }
}

fn serve(connection: &TcpStream, accepted: &AtomicU64) -> Result<()> {
    connection.set_nodelay(true)?;
    let mut input = BufReader::new(connection.try_clone()?);
    let mut output = connection;
    let (mut line, mut body) = (String::new(), Vec::new());
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if input.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim_end().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().context("content-length")?;
            }
        }
        body.resize(length, 0);
        input.read_exact(&mut body)?;
        let id = accepted.fetch_add(1, Relaxed);
        let answer = format!("{{\"id\":\"{id}\"}}");
        write!(
            output,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        )?;
    }
}

/// The peer of a setup.
enum Upstream {
    Http(HttpUpstream),
    Smpp { _sink: Sink },
}

/// A daemon with a peer.
struct PeerSetup {
    appliance: TestDaemon,
    upstream: Upstream,
    tally: Arc<Tally>,
}

impl PeerSetup {
    fn http(tool_run: &ToolRun, guests: &Guests, window: u32) -> Result<Self> {
        let upstream = HttpUpstream::start()?;
        let mut config = tool_run.config(&format!("http-{window}"))?;
        let document = tool_run.folder.path().join(format!("http-{window}.toml"));
        std::fs::write(&document, upstream.policy())?;
        let component = guests.default("http_peer");
        config.native("upstream").tables(&format!(
            "[[plugin-peer]]\nname = \"upstream\"\nwindow = {window}\ndlrs = false\ncomponent = {component:?}\npolicy = {document:?}\n\
             [plugin-peer.grants]\nhttp = [\"http://{}/\"]\n",
            upstream.address
        ));
        let appliance = config.start()?;
        Ok(Self { appliance, upstream: Upstream::Http(upstream), tally: Arc::new(Tally::new(CAPACITY)) })
    }

    fn smpp(tool_run: &ToolRun, window: u32) -> Result<Self> {
        let tally = Arc::new(Tally::new(CAPACITY));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let mut config = tool_run.config(&format!("smpp-{window}"))?;
        config.native("upstream").peer(
            "upstream",
            sink.address(),
            &format!("window = {window}\ndlrs = false"),
        );
        let appliance = config.start()?;
        appliance.wait_for_line(Duration::from_secs(20), |text| {
            text.contains("bound") && text.contains("peer=upstream")
        })?;
        Ok(Self { appliance, upstream: Upstream::Smpp { _sink: sink }, tally })
    }

    fn arrived(&self) -> u64 {
        match &self.upstream {
            Upstream::Http(upstream) => upstream.accepted.load(Relaxed),
            Upstream::Smpp { .. } => self.tally.arrived_count(),
        }
    }

    /// Submits `count` messages. Returns messages per second from the first to the last arrival at the peer, and the
    /// daemon's processor time per message in microseconds.
    fn run(&self, count: u64) -> Result<(f64, f64)> {
        let used = || process_cpu_time(self.appliance.id()).context("the daemon's CPU time");
        let (before, from) = (used()?, self.arrived());
        let mut options = SourceOptions::new(self.appliance.smpp(), "load", PASSWORD);
        (options.window, options.count) = (1000, Some(count));
        let begun = Instant::now();
        let source = Source::start(&options, &self.tally)?;
        let pause = StopFlag::default();
        while self.arrived() < from + count {
            ensure!(
                begun.elapsed() < LONGEST,
                "messages do not arrive; end of the log:\n{}",
                self.appliance.log(10)
            );
            pause.pause(Duration::from_millis(1));
        }
        let seconds = begun.elapsed().as_secs_f64();
        let report = source.join()?;
        ensure!(report.refusals.is_empty(), "refused: {:?}", report.refusals);
        let cost = used()?.saturating_sub(before).as_secs_f64() * 1e6;
        Ok((count as f64 / seconds, cost / count as f64))
    }
}

/// Maximum number of messages in a setup.
const CAPACITY: usize = 4_000_000;

pub(super) fn measure(tool_run: &ToolRun, guests: &Guests, options: &Options) -> Result<()> {
    println!(
        "\n6. {} messages to an HTTP API by http-peer, and to an SMPP peer, alternating ({} pairs; the median counts)",
        options.submissions, options.pairs
    );
    println!("  window    http-peer: messages/s   processor, µs    SMPP: messages/s   processor, µs");
    for window in WINDOWS {
        let (http, smpp) = (PeerSetup::http(tool_run, guests, window)?, PeerSetup::smpp(tool_run, window)?);
        // One uncounted run: connections, files and heaps reach their size.
        let warm = (options.submissions / 10).max(1);
        http.run(warm)?;
        smpp.run(warm)?;
        let mut figures: [Vec<f64>; 4] = Default::default();
        for turn in 0..options.pairs.max(1) {
            // The order alternates too.
            let (one, other);
            if turn % 2 == 0 {
                one = http.run(options.submissions)?;
                other = smpp.run(options.submissions)?;
            } else {
                other = smpp.run(options.submissions)?;
                one = http.run(options.submissions)?;
            }
            for (all, figure) in figures.iter_mut().zip([one.0, one.1, other.0, other.1]) {
                all.push(figure);
            }
        }
        let [http_rate, http_cost, smpp_rate, smpp_cost] = figures.map(|all| median(&all));
        println!("  {window:>6}{http_rate:>25.0}{http_cost:>16.1}{smpp_rate:>20.0}{smpp_cost:>16.1}");
    }
    println!(
        "  The CPU time of the daemon is that from acceptance to the peer's answer; the source and the API run beside it."
    );
    Ok(())
}

//! An ESME that submits numbered messages, either as fast as answers come or at a fixed rate.

use super::stop_flag::StopFlag;
use super::tally::Tally;
use super::wire::{self, SubmitTemplate};
use super::{Histogram, thread_cpu_time};
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Options of a source.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Address of the SMSC.
    pub address: SocketAddr,
    /// The account's system_id.
    pub system_id: String,
    /// The account's password.
    pub password: String,
    /// Number of connections; each has its own thread.
    pub connections: usize,
    /// Each connection has an account of its own: `system_id`, followed by its number from 0. They begin to send when all are bound.
    pub accounts: bool,
    /// Window: unanswered requests per connection.
    pub window: usize,
    /// Messages per second over all connections; `None`: as fast as answers come.
    pub rate: Option<f64>,
    /// When to stop sending, measured from the start.
    pub duration: Option<Duration>,
    /// Maximum number of messages over all connections.
    pub count: Option<u64>,
    /// Length of the text, in octets.
    pub length: usize,
    /// Prefix of the destinations; ten digits follow.
    pub prefix: String,
    /// Number of different destinations; `None`: about one per message.
    pub destinations: Option<u64>,
    /// Part of the messages that goes to other destinations.
    pub side_traffic: Option<SideTraffic>,
    /// Whether to request delivery receipts.
    pub receipts: bool,
    /// Maximum number of sent messages without a receipt over all connections, with `receipts`; `None`: any number.
    pub receipts_due: Option<u64>,
    /// Requests delivery receipts, and records in the tally which messages got one. Each message goes to a destination of its own
    /// then, and the connections stay until [`Source::quit`].
    pub track_receipts: bool,
    /// Whether to reconnect after a connection is lost.
    pub reconnect: bool,
}

/// Every `every`th message goes to one of a few other destinations.
#[derive(Debug, Clone)]
pub struct SideTraffic {
    /// One of this many messages.
    pub every: u64,
    /// Prefix of the destinations; ten digits follow.
    pub prefix: String,
    /// Number of different destinations.
    pub numbers: u64,
}

impl SourceOptions {
    /// Default options: four connections with a window of 500, texts of 100 octets, destinations in China.
    pub fn new(address: SocketAddr, system_id: &str, password: &str) -> Self {
        Self {
            address,
            system_id: system_id.to_owned(),
            password: password.to_owned(),
            connections: 4,
            accounts: false,
            window: 500,
            rate: None,
            duration: None,
            count: None,
            length: 100,
            prefix: "861".to_owned(),
            destinations: None,
            side_traffic: None,
            receipts: false,
            receipts_due: None,
            track_receipts: false,
            reconnect: false,
        }
    }
}

/// Results of a source.
#[derive(Debug, Clone, Default)]
pub struct SourceReport {
    /// Latency of positive answers, measured from when the message was due (so that a stall counts for every message it delays).
    pub answers: Histogram,
    /// Negative answers by command status.
    pub refusals: std::collections::BTreeMap<u32, u64>,
    /// Delivery receipts received.
    pub receipts: u64,
    /// Lost connections.
    pub losses: u64,
    /// CPU time.
    pub processor: Duration,
    /// Time from the first message to the last answer.
    pub elapsed: Duration,
}

impl SourceReport {
    fn add(&mut self, other: &Self) {
        self.answers.add(&other.answers);
        for (status, count) in &other.refusals {
            *self.refusals.entry(*status).or_default() += count;
        }
        self.receipts += other.receipts;
        self.losses += other.losses;
        self.processor += other.processor;
        self.elapsed = self.elapsed.max(other.elapsed);
    }
}

/// A running source.
#[derive(Debug)]
pub struct Source {
    threads: Vec<JoinHandle<Result<SourceReport>>>,
    stop: Arc<StopFlag>,
    quit: Arc<StopFlag>,
}

impl Source {
    /// Starts the source. Connection errors are reported by [`Source::join`].
    pub fn start(options: &SourceOptions, tally: &Arc<Tally>) -> Result<Self> {
        let stop = Arc::new(StopFlag::default());
        let quit = Arc::new(StopFlag::default());
        let mut threads = Vec::new();
        let awaited = Arc::new(AtomicUsize::new(options.connections));
        let receipts_due = Arc::new(AtomicI64::new(0));
        for lane in 0..options.connections {
            let (mut options, tally, awaited) = (options.clone(), Arc::clone(tally), Arc::clone(&awaited));
            let (stop, quit) = (Arc::clone(&stop), Arc::clone(&quit));
            if options.accounts {
                options.system_id.push_str(&lane.to_string());
            }
            let receipts_due = Arc::clone(&receipts_due);
            let body =
                move || Connection::new(options, lane, tally, (stop, quit, awaited), receipts_due).run();
            threads.push(std::thread::Builder::new().name(format!("source-{lane}")).spawn(body)?);
        }
        Ok(Self { threads, stop, quit })
    }

    /// Stops sending; still waits for outstanding answers.
    pub fn stop(&self) {
        self.stop.set();
    }

    /// Stops waiting for answers as well.
    pub fn quit(&self) {
        self.stop.set();
        self.quit.set();
    }

    /// Waits until everything is sent and answered.
    pub fn join(self) -> Result<SourceReport> {
        let mut sum = SourceReport::default();
        for thread in self.threads {
            match thread.join() {
                Ok(report) => sum.add(&report?),
                Err(_) => bail!("a source thread panicked"),
            }
        }
        Ok(sum)
    }
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    sequence: u32,
    number: u64,
    /// By the tally's clock.
    due: u64,
}

const FREE: Slot = Slot { sequence: 0, number: 0, due: 0 };

struct Connection {
    options: SourceOptions,
    tally: Arc<Tally>,
    stop: Arc<StopFlag>,
    quit: Arc<StopFlag>,
    /// The connections that have not yet tried to bind.
    awaited: Arc<AtomicUsize>,
    /// Sent messages without a receipt, of all connections.
    receipts_due: Arc<AtomicI64>,
    template: SubmitTemplate,
    side_traffic: Option<SubmitTemplate>,
    sequence: u32,
    /// Unanswered requests, indexed by their sequence number modulo the length.
    slots: Vec<Slot>,
    in_flight: usize,
    output: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    filled: usize,
    sent: u64,
    exhausted: bool,
    started: Instant,
    report: SourceReport,
}

impl Connection {
    fn new(
        options: SourceOptions,
        lane: usize,
        tally: Arc<Tally>,
        (stop, quit, awaited): (Arc<StopFlag>, Arc<StopFlag>, Arc<AtomicUsize>),
        receipts_due: Arc<AtomicI64>,
    ) -> Self {
        let template = |prefix: &str| {
            let receipts = options.receipts || options.track_receipts;
            let template = SubmitTemplate::new("10655", prefix, lane, options.length, receipts);
            match options.destinations {
                _ if options.track_receipts => template.spread(u64::MAX),
                Some(destinations) => template.spread(destinations),
                None => template,
            }
        };
        let side_traffic = options.side_traffic.as_ref().map(|side_traffic| template(&side_traffic.prefix));
        let template = template(&options.prefix);
        let slots = vec![FREE; (options.window * 4).next_power_of_two()];
        Self {
            template,
            side_traffic,
            sequence: 0,
            slots,
            in_flight: 0,
            output: Vec::with_capacity(1 << 17),
            written: 0,
            input: vec![0; 1 << 18],
            filled: 0,
            sent: 0,
            exhausted: false,
            started: Instant::now(),
            report: SourceReport::default(),
            options,
            tally,
            stop,
            quit,
            awaited,
            receipts_due,
        }
    }

    fn run(mut self) -> Result<SourceReport> {
        let (mut tried, mut connected) = (false, false);
        while !self.finished() {
            let bound = self.connect();
            if !std::mem::replace(&mut tried, true) {
                self.awaited.fetch_sub(1, Relaxed);
            }
            let error = match bound {
                Ok(mut socket) => {
                    if !connected {
                        self.wait_for_others();
                        self.started = Instant::now();
                    }
                    connected = true;
                    match self.drive(&mut socket) {
                        Ok(()) => break,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            // Unanswered messages stay unanswered: only the sink can tell whether they arrived.
            self.slots.fill(FREE);
            self.in_flight = 0;
            self.output.clear();
            self.written = 0;
            self.filled = 0;
            if !self.options.reconnect {
                return Err(error);
            }
            self.report.losses += u64::from(connected);
            if self.quit.pause(Duration::from_millis(20)) {
                break;
            }
        }
        self.report.elapsed = self.started.elapsed();
        self.report.processor = thread_cpu_time();
        Ok(self.report)
    }

    /// Waits until each connection with an account of its own is bound, or has failed.
    fn wait_for_others(&self) {
        while self.options.accounts && self.awaited.load(Relaxed) > 0 {
            if self.quit.pause(Duration::from_millis(5)) {
                return;
            }
        }
    }

    fn finished(&self) -> bool {
        // A source that tracks receipts stays bound to receive them.
        let waits_for_receipts = self.options.track_receipts && !self.quit.is_set();
        self.sending_is_over() && self.in_flight == 0 && !waits_for_receipts
    }

    fn sending_is_over(&self) -> bool {
        self.exhausted
            || self.stop.is_set()
            || self.options.duration.is_some_and(|limit| self.started.elapsed() >= limit)
    }

    fn connect(&mut self) -> Result<TcpStream> {
        let mut socket = TcpStream::connect_timeout(&self.options.address, Duration::from_secs(5))
            .with_context(|| format!("connecting to {}", self.options.address))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        self.sequence = 1;
        let mut bind = Vec::new();
        let body = wire::bind(&self.options.system_id, &self.options.password);
        wire::put(&mut bind, wire::BIND_TRANSCEIVER, 0, self.sequence, &body);
        socket.write_all(&bind)?;
        let mut answer = Vec::new();
        loop {
            let mut some = [0; 512];
            let count = socket.read(&mut some).context("waiting for the answer to the bind")?;
            if count == 0 {
                bail!("the connection was closed instead of a bind answer");
            }
            answer.extend_from_slice(&some[..count]);
            let mut rest = answer.as_slice();
            if let Some(pdu) = wire::next(&mut rest)? {
                if pdu.id != wire::BIND_TRANSCEIVER | wire::ANSWER || pdu.status != 0 {
                    bail!("the bind was answered by command {:#x} with status {:#x}", pdu.id, pdu.status);
                }
                self.filled = rest.len();
                self.input[..rest.len()].copy_from_slice(rest);
                break;
            }
        }
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    fn drive(&mut self, socket: &mut TcpStream) -> Result<()> {
        loop {
            let wait = self.fill(Instant::now());
            self.write(socket)?;
            if self.finished() {
                self.unbind(socket);
                return Ok(());
            }
            if self.quit.is_set() {
                return Ok(());
            }
            let mut interest = PollFlags::IN;
            if self.written < self.output.len() {
                interest |= PollFlags::OUT;
            }
            let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
            rustix::event::poll(&mut [PollFd::new(&*socket, interest)], Some(&wait))?;
            self.read(socket)?;
        }
    }

    /// Queues the messages that are due and fit into the window; returns the time until the next check.
    fn fill(&mut self, now: Instant) -> Duration {
        const LONG: Duration = Duration::from_millis(50);
        if self.exhausted || self.sending_is_over() {
            return LONG;
        }
        let micros = self.tally.micros(now);
        let start = self.tally.micros(self.started);
        let each = self.options.rate.map(|rate| 1e6 * self.options.connections as f64 / rate);
        let most_due = self.options.receipts_due.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
        while self.in_flight < self.options.window && self.output.len() - self.written < 1 << 16 {
            let mut due = micros;
            if let Some(each) = each {
                due = start + (self.sent as f64 * each) as u64;
                if due > micros {
                    // The pause is at least a millisecond: with a system call for each message, the test would measure the calls.
                    return Duration::from_micros((due - micros).max(1000));
                }
            }
            let index = (self.sequence.wrapping_add(1) as usize) & (self.slots.len() - 1);
            if self.slots[index].sequence != 0 {
                break;
            }
            let share = self.options.count.map(|count| count.div_ceil(self.options.connections as u64));
            if share.is_some_and(|share| self.sent >= share) {
                self.exhausted = true;
                break;
            }
            if most_due.is_some_and(|most| self.receipts_due.load(Relaxed) >= most) {
                // The next receipt may come on another connection.
                return Duration::from_millis(1);
            }
            let Some(number) = self.tally.take() else {
                self.exhausted = true;
                break;
            };
            self.sequence += 1;
            self.slots[index] = Slot { sequence: self.sequence, number, due };
            self.tally.sent(number, due);
            match (&mut self.side_traffic, &self.options.side_traffic) {
                (Some(template), Some(side_traffic)) if number % side_traffic.every == 0 => {
                    let digits = number / side_traffic.every % side_traffic.numbers;
                    template.write_to(self.sequence, digits, number, &mut self.output);
                }
                _ => self.template.write(self.sequence, number, &mut self.output),
            }
            self.in_flight += 1;
            self.sent += 1;
            if most_due.is_some() {
                self.receipts_due.fetch_add(1, Relaxed);
            }
        }
        LONG
    }

    fn write(&mut self, socket: &mut TcpStream) -> Result<()> {
        while self.written < self.output.len() {
            match socket.write(&self.output[self.written..]) {
                Ok(0) => bail!("the connection was closed"),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.output.clear();
        self.written = 0;
        Ok(())
    }

    fn read(&mut self, socket: &mut TcpStream) -> Result<()> {
        match socket.read(&mut self.input[self.filled..]) {
            Ok(0) => bail!("the connection was closed"),
            Ok(count) => self.filled += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        let now = self.tally.micros(Instant::now());
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..self.filled];
        let result = self.answers(&mut rest, now);
        let (left, filled) = (rest.len(), self.filled);
        self.input = input;
        self.input.copy_within(filled - left..filled, 0);
        self.filled = left;
        result
    }

    fn answers(&mut self, rest: &mut &[u8], now: u64) -> Result<()> {
        while let Some(pdu) = wire::next(rest)? {
            match pdu.id {
                id if id == wire::SUBMIT_SM | wire::ANSWER || id == wire::GENERIC_NACK => {
                    let index = pdu.sequence as usize & (self.slots.len() - 1);
                    let slot = self.slots[index];
                    if slot.sequence != pdu.sequence || pdu.sequence == 0 {
                        bail!("unexpected answer to sequence {}", pdu.sequence);
                    }
                    self.slots[index] = FREE;
                    self.in_flight -= 1;
                    let accepted = id != wire::GENERIC_NACK && pdu.status == 0;
                    self.tally.answered(slot.number, accepted);
                    if accepted {
                        self.report.answers.record(now.saturating_sub(slot.due));
                    } else {
                        *self.report.refusals.entry(pdu.status).or_default() += 1;
                    }
                }
                wire::DELIVER_SM => {
                    self.report.receipts += 1;
                    if self.options.receipts_due.is_some() {
                        self.receipts_due.fetch_sub(1, Relaxed);
                    }
                    if self.options.track_receipts {
                        match wire::parse_submit(pdu.body).and_then(|receipt| wire::message_of(&receipt)) {
                            Some(number) => self.tally.receipt(number),
                            None => self.tally.count_unknown(),
                        }
                    }
                    wire::put(&mut self.output, wire::DELIVER_SM | wire::ANSWER, 0, pdu.sequence, &[0]);
                }
                wire::ENQUIRE_LINK => {
                    wire::put(&mut self.output, wire::ENQUIRE_LINK | wire::ANSWER, 0, pdu.sequence, &[]);
                }
                wire::UNBIND => {
                    wire::put(&mut self.output, wire::UNBIND | wire::ANSWER, 0, pdu.sequence, &[]);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Unbinds; errors are ignored, since every request is answered already.
    fn unbind(&mut self, socket: &mut TcpStream) {
        wire::put(&mut self.output, wire::UNBIND, 0, self.sequence.wrapping_add(1), &[]);
        let _ = self.write(socket);
    }
}

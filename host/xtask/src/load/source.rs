//! An ESME that submits numbered messages, flat out or at a rate.

use super::stop::Stop;
use super::tally::Tally;
use super::wire::{self, SubmitTemplate};
use super::{Histogram, this_thread};
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a source works.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Where the SMSC listens.
    pub address: SocketAddr,
    /// Account.
    pub system_id: String,
    /// Its password.
    pub password: String,
    /// Connections, each with a thread.
    pub connections: usize,
    /// Unanswered requests a connection may have.
    pub window: usize,
    /// Messages a second over all connections; `None`: as fast as answers come.
    pub rate: Option<f64>,
    /// When to stop sending, counted from the start.
    pub duration: Option<Duration>,
    /// How many messages to send over all connections, at most.
    pub count: Option<u64>,
    /// Octets of text.
    pub length: usize,
    /// Begin of the destination; ten digits follow.
    pub prefix: String,
    /// How many different destinations there are; `None`: about as many as messages.
    pub destinations: Option<u64>,
    /// Messages among them that go elsewhere.
    pub aside: Option<Aside>,
    /// Whether to ask for receipts.
    pub receipts: bool,
    /// Whether a lost connection is made again.
    pub reconnect: bool,
}

/// Every so many messages one to somebody else: to a few numbers, again and again.
#[derive(Debug, Clone)]
pub struct Aside {
    /// One of so many messages.
    pub every: u64,
    /// Begin of the destination; ten digits follow.
    pub prefix: String,
    /// How many different destinations.
    pub numbers: u64,
}

impl SourceOptions {
    /// A plain one: four connections with a window of 500, texts of 100 octets, to China.
    pub fn new(address: SocketAddr, system_id: &str, password: &str) -> Self {
        Self {
            address,
            system_id: system_id.to_owned(),
            password: password.to_owned(),
            connections: 4,
            window: 500,
            rate: None,
            duration: None,
            count: None,
            length: 100,
            prefix: "861".to_owned(),
            destinations: None,
            aside: None,
            receipts: false,
            reconnect: false,
        }
    }
}

/// What a source saw.
#[derive(Debug, Clone, Default)]
pub struct SourceReport {
    /// Times of positive answers, from when the message was due to be sent (so that a stall counts for all that it held up).
    pub answers: Histogram,
    /// Negative answers by command status.
    pub refusals: std::collections::BTreeMap<u32, u64>,
    /// Receipts that came.
    pub receipts: u64,
    /// Connections lost.
    pub losses: u64,
    /// Processor time.
    pub processor: Duration,
    /// From the first message to the last answer.
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
    stop: Arc<Stop>,
    quit: Arc<Stop>,
}

impl Source {
    /// Starts it. Errors of connecting show at [`Source::join`].
    pub fn start(options: &SourceOptions, tally: &Arc<Tally>) -> Result<Self> {
        let stop = Arc::new(Stop::default());
        let quit = Arc::new(Stop::default());
        let mut threads = Vec::new();
        for lane in 0..options.connections {
            let (options, tally) = (options.clone(), Arc::clone(tally));
            let (stop, quit) = (Arc::clone(&stop), Arc::clone(&quit));
            let body = move || Connection::new(options, lane, tally, stop, quit).run();
            threads.push(std::thread::Builder::new().name(format!("source-{lane}")).spawn(body)?);
        }
        Ok(Self { threads, stop, quit })
    }

    /// Sends nothing new; answers are still waited for.
    pub fn stop(&self) {
        self.stop.set();
    }

    /// Waits for no more answers either.
    pub fn quit(&self) {
        self.stop.set();
        self.quit.set();
    }

    /// Waits for its end: all sent, and all answered.
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
    /// On the tally's clock.
    due: u64,
}

const FREE: Slot = Slot { sequence: 0, number: 0, due: 0 };

struct Connection {
    options: SourceOptions,
    tally: Arc<Tally>,
    stop: Arc<Stop>,
    quit: Arc<Stop>,
    template: SubmitTemplate,
    aside: Option<SubmitTemplate>,
    sequence: u32,
    /// Unanswered ones, at the place of their sequence number modulo the length.
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
    fn new(options: SourceOptions, lane: usize, tally: Arc<Tally>, stop: Arc<Stop>, quit: Arc<Stop>) -> Self {
        let template = |prefix: &str| {
            let template = SubmitTemplate::new("10655", prefix, lane, options.length, options.receipts);
            match options.destinations {
                Some(destinations) => template.spread(destinations),
                None => template,
            }
        };
        let aside = options.aside.as_ref().map(|aside| template(&aside.prefix));
        let template = template(&options.prefix);
        let slots = vec![FREE; (options.window * 4).next_power_of_two()];
        Self {
            template,
            aside,
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
        }
    }

    fn run(mut self) -> Result<SourceReport> {
        let mut connected = false;
        while !self.finished() {
            let error = match self.connect() {
                Ok(mut socket) => {
                    if !connected {
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
            // Those without an answer stay so: whether they arrive is the sink's to say.
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
        self.report.processor = this_thread();
        Ok(self.report)
    }

    fn finished(&self) -> bool {
        self.sending_is_over() && self.in_flight == 0
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
                bail!("the bind was answered by the end of the connection");
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
                self.say_goodbye(socket);
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

    /// Queues what is due and fits into the window; gives the time until it is worth looking again.
    fn fill(&mut self, now: Instant) -> Duration {
        const LONG: Duration = Duration::from_millis(50);
        if self.exhausted || self.sending_is_over() {
            return LONG;
        }
        let micros = self.tally.micros(now);
        let start = self.tally.micros(self.started);
        let each = self.options.rate.map(|rate| 1e6 * self.options.connections as f64 / rate);
        while self.in_flight < self.options.window && self.output.len() - self.written < 1 << 16 {
            let mut due = micros;
            if let Some(each) = each {
                due = start + (self.sent as f64 * each) as u64;
                if due > micros {
                    // A millisecond's worth at a time: a call for each message would measure the calls.
                    return Duration::from_micros((due - micros).max(1000));
                }
            }
            let place = (self.sequence.wrapping_add(1) as usize) & (self.slots.len() - 1);
            if self.slots[place].sequence != 0 {
                break;
            }
            let share = self.options.count.map(|count| count.div_ceil(self.options.connections as u64));
            if share.is_some_and(|share| self.sent >= share) {
                self.exhausted = true;
                break;
            }
            let Some(number) = self.tally.take() else {
                self.exhausted = true;
                break;
            };
            self.sequence += 1;
            self.slots[place] = Slot { sequence: self.sequence, number, due };
            self.tally.sent(number, due);
            match (&mut self.aside, &self.options.aside) {
                (Some(template), Some(aside)) if number % aside.every == 0 => {
                    let digits = number / aside.every % aside.numbers;
                    template.write_to(self.sequence, digits, number, &mut self.output);
                }
                _ => self.template.write(self.sequence, number, &mut self.output),
            }
            self.in_flight += 1;
            self.sent += 1;
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
                    let place = pdu.sequence as usize & (self.slots.len() - 1);
                    let slot = self.slots[place];
                    if slot.sequence != pdu.sequence || pdu.sequence == 0 {
                        bail!("an answer to sequence {} that nothing waits for", pdu.sequence);
                    }
                    self.slots[place] = FREE;
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

    /// Nothing depends on its success: everything is answered.
    fn say_goodbye(&mut self, socket: &mut TcpStream) {
        wire::put(&mut self.output, wire::UNBIND, 0, self.sequence.wrapping_add(1), &[]);
        let _ = self.write(socket);
    }
}

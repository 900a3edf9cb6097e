//! An SMSC that takes numbered messages and answers as configured.

use super::stop_flag::StopFlag;
use super::tally::Tally;
use super::wire;
use super::{Histogram, thread_cpu_time};
use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Behaviour of a sink. [`Sink::behave`] changes it at run time.
#[derive(Debug, Clone, Copy, Default)]
pub struct SinkOptions {
    /// Delay of the answers.
    pub delay: Duration,
    /// Command status of every `error_every`th answer; 0: no errors.
    pub error_status: u32,
    /// See `error_status`; 0 counts as 1.
    pub error_every: u32,
    /// Whether to send delivery receipts to messages that request them.
    pub receipts: bool,
    /// Share of the delivery receipts that report a failure, in percent.
    pub undelivered: u32,
    /// Messages per second over all links; further messages are answered with ESME_RTHROTTLED (0x58). 0: unlimited.
    pub per_second: u32,
    /// Whether a second bind beside one that is up is refused with ESME_RALYBND (0x05).
    pub sole_bind: bool,
}

/// Results of a sink.
#[derive(Debug, Clone, Default)]
pub struct SinkReport {
    /// Latency of arrivals, measured from when the source should have sent the message.
    pub transit: Histogram,
    /// submit_sm received, duplicates included.
    pub messages: u64,
    /// submit_sm answered with an error; these do not count as arrived.
    pub refused: u64,
    /// Delivery receipts sent.
    pub receipts: u64,
    /// Positive answers to delivery receipts.
    pub receipts_answered: u64,
    /// Accepted binds.
    pub binds: u64,
    /// Binds refused because another one was up.
    pub binds_refused: u64,
    /// Links that ended in an error.
    pub broken: u64,
    /// The last of these errors.
    pub last_error: Option<String>,
    /// CPU time of the links that have ended.
    pub processor: Duration,
}

#[derive(Debug)]
struct Shared {
    tally: Arc<Tally>,
    stop: StopFlag,
    delay_micros: AtomicU64,
    error_status: AtomicU32,
    error_every: AtomicU32,
    receipts: AtomicU32,
    undelivered: AtomicU32,
    per_second: AtomicU32,
    sole_bind: AtomicBool,
    /// Links that are bound.
    bound: AtomicU32,
    /// Counts per second since `started`, while there is a limit.
    seconds: Mutex<Vec<SinkSecond>>,
    started: Instant,
    next_id: AtomicU64,
    messages: AtomicU64,
    links: Mutex<Vec<TcpStream>>,
    /// Bodies of delivery receipts that wait for a link: links that ended left them unsent or unanswered.
    receipts_left: Mutex<VecDeque<Vec<u8>>>,
    report: Mutex<SinkReport>,
}

/// Unanswered delivery receipts of a link: a peer that sends more without a limit does not read answers any more.
const RECEIPT_WINDOW: usize = 2_000;
/// ESME_RTHROTTLED.
const THROTTLED: u32 = 0x58;
/// ESME_RALYBND.
const ALREADY_BOUND: u32 = 0x05;

/// Counts of one second of a sink with a limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct SinkSecond {
    /// submit_sm within the limit.
    pub accepted: u32,
    /// submit_sm answered with ESME_RTHROTTLED.
    pub throttled: u32,
}

impl Shared {
    /// Counts a message of the current second if there is a limit; returns whether it exceeds the limit.
    fn is_too_fast(&self, now: Instant) -> bool {
        let most = self.per_second.load(Ordering::Relaxed);
        if most == 0 {
            return false;
        }
        let second = now.saturating_duration_since(self.started).as_secs() as usize;
        let mut seconds = self.seconds.lock();
        if seconds.len() <= second {
            seconds.resize(second + 1, SinkSecond::default());
        }
        let counted = &mut seconds[second];
        let too_fast = counted.accepted >= most;
        *(if too_fast { &mut counted.throttled } else { &mut counted.accepted }) += 1;
        too_fast
    }
}

/// A running sink.
#[derive(Debug)]
pub struct Sink {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Sink {
    /// Listens on a free loopback port.
    pub fn start(options: SinkOptions, tally: &Arc<Tally>) -> Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), options, tally)
    }

    /// Listens on this address.
    pub fn start_at(address: SocketAddr, options: SinkOptions, tally: &Arc<Tally>) -> Result<Self> {
        let listener = TcpListener::bind(address).with_context(|| format!("listening on {address}"))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            tally: Arc::clone(tally),
            stop: StopFlag::default(),
            delay_micros: AtomicU64::new(0),
            error_status: AtomicU32::new(0),
            error_every: AtomicU32::new(0),
            receipts: AtomicU32::new(0),
            undelivered: AtomicU32::new(0),
            per_second: AtomicU32::new(0),
            sole_bind: AtomicBool::new(false),
            bound: AtomicU32::new(0),
            seconds: Mutex::default(),
            started: Instant::now(),
            next_id: AtomicU64::new(1),
            messages: AtomicU64::new(0),
            links: Mutex::new(Vec::new()),
            receipts_left: Mutex::default(),
            report: Mutex::new(SinkReport::default()),
        });
        let mut sink = Self { address, shared: Arc::clone(&shared), acceptor: None };
        sink.behave(options);
        let acceptor =
            std::thread::Builder::new().name("sink".to_owned()).spawn(move || accept(&listener, &shared))?;
        sink.acceptor = Some(acceptor);
        Ok(sink)
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the behaviour.
    pub fn behave(&self, options: SinkOptions) {
        self.shared.delay_micros.store(options.delay.as_micros() as u64, Ordering::Relaxed);
        self.shared.error_every.store(options.error_every, Ordering::Relaxed);
        self.shared.error_status.store(options.error_status, Ordering::Relaxed);
        self.shared.receipts.store(options.receipts.into(), Ordering::Relaxed);
        self.shared.undelivered.store(options.undelivered, Ordering::Relaxed);
        self.shared.per_second.store(options.per_second, Ordering::Relaxed);
        self.shared.sole_bind.store(options.sole_bind, Ordering::Relaxed);
    }

    /// Closes all links; new ones are accepted.
    pub fn drop_links(&self) {
        for link in self.shared.links.lock().drain(..) {
            // A link that is closed already needs no closing.
            let _ = link.shutdown(Shutdown::Both);
        }
    }

    /// Sends an MO message over a bound link, and again over the next one until it is answered.
    pub fn send_mo(&self, source: &str, destination: &str, text: &str) {
        self.shared.receipts_left.lock().push_back(wire::mo_message(source, destination, text));
    }

    /// submit_sm accepted so far, duplicates included.
    pub fn message_count(&self) -> u64 {
        self.shared.messages.load(Ordering::Relaxed)
    }

    /// Counts per second since the start, the current second last; empty without a limit ([`SinkOptions::per_second`]).
    pub fn seconds(&self) -> Vec<SinkSecond> {
        self.shared.seconds.lock().clone()
    }

    /// Closes everything and returns the results.
    pub fn stop(mut self) -> Result<SinkReport> {
        self.shared.stop.set();
        if self.acceptor.take().is_some_and(|thread| thread.join().is_err()) {
            bail!("the sink panicked");
        }
        Ok(self.shared.report.lock().clone())
    }

    /// Results of the links that have ended.
    pub fn report(&self) -> SinkReport {
        self.shared.report.lock().clone()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shared.stop.set();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !shared.stop.is_set() {
        // An interrupted poll is treated like a timeout.
        let _ = rustix::event::poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&wait));
        while let Ok((socket, _)) = listener.accept() {
            if let Ok(copy) = socket.try_clone() {
                shared.links.lock().push(copy);
            }
            let shared = Arc::clone(shared);
            let body = move || serve(socket, shared);
            if let Ok(thread) = std::thread::Builder::new().name("sink-link".to_owned()).spawn(body) {
                threads.push(thread);
            }
        }
        threads.retain(|thread| !thread.is_finished());
    }
    for thread in threads {
        // A panic of a link shows as missing messages.
        let _ = thread.join();
    }
}

fn serve(mut socket: TcpStream, shared: Arc<Shared>) {
    let mut link = Link {
        shared,
        output: Vec::with_capacity(1 << 17),
        written: 0,
        input: vec![0; 1 << 18],
        filled: 0,
        late: VecDeque::new(),
        sequence: 0,
        unanswered: BTreeMap::new(),
        unsent: VecDeque::new(),
        is_bound: false,
        counted: 0,
        ended: false,
        report: SinkReport::default(),
    };
    let outcome = link.drive(&mut socket);
    // A copy of the socket would keep the connection open.
    let _ = socket.shutdown(Shutdown::Both);
    if link.is_bound {
        link.shared.bound.fetch_sub(1, Ordering::Relaxed);
    }
    let (unanswered, unsent) = (std::mem::take(&mut link.unanswered), std::mem::take(&mut link.unsent));
    link.shared.receipts_left.lock().extend(unanswered.into_values().chain(unsent));
    let mut report = link.shared.report.lock();
    report.transit.add(&link.report.transit);
    report.messages += link.report.messages;
    report.refused += link.report.refused;
    report.receipts += link.report.receipts;
    report.receipts_answered += link.report.receipts_answered;
    report.binds += link.report.binds;
    report.binds_refused += link.report.binds_refused;
    report.processor += thread_cpu_time();
    if let Err(error) = outcome {
        report.broken += 1;
        report.last_error = Some(format!("{error:#}"));
    }
}

struct Link {
    shared: Arc<Shared>,
    output: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    filled: usize,
    /// Octets to be sent later, oldest first.
    late: VecDeque<(Instant, Vec<u8>)>,
    sequence: u32,
    /// Bodies of unanswered delivery receipts, by sequence number: at most [`RECEIPT_WINDOW`].
    unanswered: BTreeMap<u32, Vec<u8>>,
    /// Bodies of delivery receipts beyond the window.
    unsent: VecDeque<Vec<u8>>,
    is_bound: bool,
    counted: u64,
    ended: bool,
    report: SinkReport,
}

impl Link {
    fn drive(&mut self, socket: &mut TcpStream) -> Result<()> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        loop {
            let mut wait = Duration::from_millis(50);
            if !self.late.is_empty() {
                let now = Instant::now();
                while let Some((_, octets)) = self.late.pop_front_if(|(due, _)| *due <= now) {
                    self.output.extend_from_slice(&octets);
                }
                if let Some((due, _)) = self.late.front() {
                    wait = wait.min(*due - now);
                }
            }
            self.send_receipts(None);
            self.write(socket)?;
            if self.ended || self.shared.stop.is_set() {
                return Ok(());
            }
            let mut interest = PollFlags::empty();
            // A peer that does not read its answers is not read from either.
            if self.output.len() - self.written < 1 << 20 {
                interest |= PollFlags::IN;
            }
            if self.written < self.output.len() {
                interest |= PollFlags::OUT;
            }
            let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
            rustix::event::poll(&mut [PollFd::new(socket, interest)], Some(&wait))?;
            if interest.contains(PollFlags::IN) && !self.read(socket)? {
                return Ok(());
            }
        }
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

    /// Returns whether the connection continues.
    fn read(&mut self, socket: &mut TcpStream) -> Result<bool> {
        match socket.read(&mut self.input[self.filled..]) {
            Ok(0) => return Ok(false),
            Ok(count) => self.filled += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        }
        let now = Instant::now();
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..self.filled];
        let result = self.take(&mut rest, now);
        let (left, filled) = (rest.len(), self.filled);
        self.input = input;
        self.input.copy_within(filled - left..filled, 0);
        self.filled = left;
        result.map(|()| true)
    }

    fn take(&mut self, rest: &mut &[u8], now: Instant) -> Result<()> {
        let micros = self.shared.tally.micros(now);
        let delay = Duration::from_micros(self.shared.delay_micros.load(Ordering::Relaxed));
        let status = self.shared.error_status.load(Ordering::Relaxed);
        let every = u64::from(self.shared.error_every.load(Ordering::Relaxed).max(1));
        let receipts = self.shared.receipts.load(Ordering::Relaxed) != 0;
        let mut late = Vec::new();
        let before = self.counted;
        while let Some(pdu) = wire::next(rest)? {
            match pdu.id {
                wire::SUBMIT_SM => {
                    let message = wire::parse_submit(pdu.body).context("malformed submit_sm")?;
                    self.counted += 1;
                    self.report.messages += 1;
                    let out = if delay.is_zero() { &mut self.output } else { &mut late };
                    let error = status != 0 && self.counted.is_multiple_of(every);
                    if error || self.shared.is_too_fast(now) {
                        self.report.refused += 1;
                        let status = if error { status } else { THROTTLED };
                        wire::put(out, wire::SUBMIT_SM | wire::ANSWER, status, pdu.sequence, &[]);
                        continue;
                    }
                    match wire::parse_number(message.text) {
                        Some((number, lane)) => {
                            if let Some(transit) = self.shared.tally.arrived(number, lane, micros) {
                                self.report.transit.record(transit);
                            }
                        }
                        None => self.shared.tally.count_unknown(),
                    }
                    let number = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
                    let id = format!("{number:010}\0");
                    wire::put(out, wire::SUBMIT_SM | wire::ANSWER, 0, pdu.sequence, id.as_bytes());
                    if receipts && message.receipt {
                        self.report.receipts += 1;
                        // Spread evenly: 37 and 100 have no common divisor.
                        let is_undelivered =
                            number * 37 % 100 < self.shared.undelivered.load(Ordering::Relaxed).into();
                        let state = if is_undelivered { "UNDELIV" } else { "DELIVRD" };
                        let id = id.trim_end_matches('\0');
                        self.unsent.push_back(wire::delivery_receipt(&message, id, state));
                    }
                }
                wire::BIND_TRANSCEIVER | wire::BIND_TRANSMITTER | wire::BIND_RECEIVER => {
                    let sole = self.shared.sole_bind.load(Ordering::Relaxed);
                    let others = self.shared.bound.fetch_add(1, Ordering::Relaxed);
                    if sole && others > 0 {
                        self.shared.bound.fetch_sub(1, Ordering::Relaxed);
                        self.report.binds_refused += 1;
                        wire::put(&mut self.output, pdu.id | wire::ANSWER, ALREADY_BOUND, pdu.sequence, &[]);
                        continue;
                    }
                    self.report.binds += 1;
                    wire::put(&mut self.output, pdu.id | wire::ANSWER, 0, pdu.sequence, b"sink\0");
                    self.is_bound = true;
                }
                wire::ENQUIRE_LINK => {
                    wire::put(&mut self.output, wire::ENQUIRE_LINK | wire::ANSWER, 0, pdu.sequence, &[]);
                }
                wire::UNBIND => {
                    wire::put(&mut self.output, wire::UNBIND | wire::ANSWER, 0, pdu.sequence, &[]);
                    self.ended = true;
                }
                id if id == wire::DELIVER_SM | wire::ANSWER => {
                    let body = self.unanswered.remove(&pdu.sequence);
                    if pdu.status == 0 {
                        self.report.receipts_answered += 1;
                    } else if let Some(body) = body {
                        // Refused: it is sent again.
                        self.unsent.push_back(body);
                    }
                }
                id if id & wire::ANSWER != 0 => {}
                _ => wire::put(&mut self.output, wire::GENERIC_NACK, 3, pdu.sequence, &[]),
            }
        }
        self.shared.messages.fetch_add(self.counted - before, Ordering::Relaxed);
        let mut late_receipts = Vec::new();
        self.send_receipts(if delay.is_zero() { None } else { Some(&mut late_receipts) });
        late.append(&mut late_receipts);
        if !late.is_empty() {
            self.late.push_back((now + delay, late));
        }
        Ok(())
    }

    /// Sends delivery receipts while the window has room: now, or into `late`.
    fn send_receipts(&mut self, late: Option<&mut Vec<u8>>) {
        let out = late.unwrap_or(&mut self.output);
        while self.is_bound && self.unanswered.len() < RECEIPT_WINDOW {
            let left = || self.shared.receipts_left.lock().pop_front();
            let Some(body) = self.unsent.pop_front().or_else(left) else { return };
            self.sequence += 1;
            wire::put(out, wire::DELIVER_SM, 0, self.sequence, &body);
            self.unanswered.insert(self.sequence, body);
        }
    }
}

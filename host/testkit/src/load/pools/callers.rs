//! Many connections that lease and release numbers.

use super::caller::{Caller, CallerCounts, EncodedRequests};
use super::client::RedisClient;
use super::holders::Holders;
use super::wire::{self, RedisReply};
use crate::load::{Histogram, thread_cpu_time};
use anyhow::{Context, Result, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Options of the callers.
#[derive(Debug, Clone)]
pub struct CallerOptions {
    /// Address of the Redis listener.
    pub address: SocketAddr,
    /// The pool's key, for example `{pool}`.
    pub pool: String,
    /// The SHA-1 of the script.
    pub script: String,
    /// Number of connections.
    pub connections: usize,
    /// Calls per batch and connection; after all are answered, as many hangups are sent.
    pub batch: usize,
    /// Number of threads for the connections.
    pub threads: usize,
    /// Warm-up time, which is not counted.
    pub warm_up: Duration,
    /// Counted time.
    pub time: Duration,
}

/// Results. Rate and latencies are those of the counted time; everything else is of the whole run.
#[derive(Debug, Clone, Default)]
pub struct CallerReport {
    /// Pairs of call and hangup per second.
    pub rate: f64,
    /// Answered calls.
    pub calls: u64,
    /// Calls that got no number.
    pub empty: u64,
    /// Calls that got a number that another caller held.
    pub doubles: u64,
    /// Calls that got a number that is not in the pool.
    pub unknown: u64,
    /// Errors and unexpected answers.
    pub wrong: u64,
    /// The first error or unexpected answer.
    pub first_error: Option<String>,
    /// Latency from sending a batch to each of its answers.
    pub times: Histogram,
    /// CPU time of the callers during the counted time.
    pub processor: Duration,
}

impl CallerReport {
    /// Checks that every call got a free number and every hangup was accepted.
    ///
    /// # Errors
    /// If not, with the counts.
    pub fn clean(&self) -> Result<()> {
        ensure!(
            self.empty == 0 && self.doubles == 0 && self.unknown == 0 && self.wrong == 0,
            "of {} calls {} got no number, {} a number in use, {} an unknown number; {} wrong answers, the first: {:?}",
            self.calls,
            self.empty,
            self.doubles,
            self.unknown,
            self.wrong,
            self.first_error
        );
        ensure!(self.calls > 0, "no call was answered");
        Ok(())
    }
}

/// Maximum time without any answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Numbers per batch when the pool is filled.
const FILL_BATCH: usize = 500;

/// Leases and releases numbers.
#[derive(Debug)]
pub struct Callers;

impl Callers {
    /// Adds all numbers to the pool, idle and up.
    pub fn fill(options: &CallerOptions, holders: &Holders) -> Result<()> {
        let mut client = RedisClient::connect(options.address)?;
        // The next batch is sent before the current one is answered.
        let mut asked = 0;
        for begin in (0..holders.numbers()).step_by(FILL_BATCH) {
            let end = holders.numbers().min(begin + FILL_BATCH);
            let mut requests = Vec::new();
            for index in begin..end {
                let number = holders.number(index);
                for event in ["add", "reg"] {
                    let words = ["EVALSHA", &options.script, "1", &options.pool, event, &number];
                    requests.extend_from_slice(&wire::encode_request(&words));
                }
            }
            client.send(&requests)?;
            answered(&mut client, asked)?;
            asked = 2 * (end - begin);
        }
        answered(&mut client, asked)
    }

    /// Calls and hangs up until the time is over, then releases everything.
    ///
    /// # Errors
    /// If a connection is lost, or the server does not answer for half a minute.
    pub fn run(options: &CallerOptions, holders: &Arc<Holders>) -> Result<CallerReport> {
        let threads = options.threads.clamp(1, options.connections.max(1));
        let encoded = Arc::new(EncodedRequests::new(options));
        let barrier = Arc::new(Barrier::new(threads));
        let mut running = Vec::new();
        for thread in 0..threads {
            let (options, holders) = (options.clone(), Arc::clone(holders));
            let (encoded, barrier) = (Arc::clone(&encoded), Arc::clone(&barrier));
            let count = options.connections / threads + usize::from(thread < options.connections % threads);
            let body = move || {
                let crowd = CallerThread::connect(&options, count, &encoded);
                // Also on failure: the other threads wait at the barrier.
                barrier.wait();
                crowd?.run(&options, &holders)
            };
            running.push(std::thread::Builder::new().name(format!("callers-{thread}")).spawn(body)?);
        }
        let (mut report, mut seen) = (CallerReport::default(), CallerCounts::default());
        for thread in running {
            let Ok(one) = thread.join() else { bail!("a thread of callers panicked") };
            let one = one?;
            report.rate += one.counted as f64 / 2.0 / one.time.as_secs_f64();
            report.processor += one.processor;
            seen.add(&one.seen);
        }
        (report.calls, report.empty, report.doubles) = (seen.calls, seen.empty, seen.doubles);
        (report.unknown, report.wrong, report.first_error) = (seen.unknown, seen.wrong, seen.first_error);
        report.times = seen.times;
        Ok(report)
    }
}

/// Waits for this many positive answers.
fn answered(client: &mut RedisClient, count: usize) -> Result<()> {
    for _ in 0..count {
        let answer = client.answer()?;
        ensure!(answer == RedisReply::Text("1".to_owned()), "filling the pool: {answer:?}");
    }
    Ok(())
}

impl EncodedRequests {
    fn new(options: &CallerOptions) -> Self {
        let call = wire::encode_request(&["EVALSHA", &options.script, "1", &options.pool, "call"]);
        let number = "0".repeat(Holders::DIGITS);
        let hangup = wire::encode_request(&[
            "EVALSHA",
            &options.script,
            "1",
            &options.pool,
            "hangup",
            number.as_str(),
        ]);
        Self {
            calls: call.repeat(options.batch),
            hangup: hangup[..hangup.len() - number.len() - 2].to_vec(),
            batch: options.batch,
        }
    }
}

/// The connections of one thread.
struct CallerThread {
    callers: Vec<Caller>,
    epoll: OwnedFd,
}

struct ThreadReport {
    counted: u64,
    time: Duration,
    processor: Duration,
    seen: CallerCounts,
}

impl CallerThread {
    fn connect(options: &CallerOptions, count: usize, encoded: &Arc<EncodedRequests>) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut callers = Vec::with_capacity(count);
        for index in 0..count {
            let socket = TcpStream::connect_timeout(&options.address, TIMEOUT)
                .with_context(|| format!("connecting to {}", options.address))?;
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
            epoll::add(&epoll, &socket, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
            callers.push(Caller::new(socket, Arc::clone(encoded)));
        }
        Ok(Self { callers, epoll })
    }

    fn run(mut self, options: &CallerOptions, holders: &Holders) -> Result<ThreadReport> {
        let mut seen = CallerCounts::default();
        let mut buffer = vec![0; 1 << 18];
        let mut events = Vec::with_capacity(256);
        let begun = Instant::now();
        for caller in &mut self.callers {
            caller.call(begun)?;
        }
        let (mut from, mut counted) = (None, None);
        while !self.callers.iter().all(Caller::done) {
            let timeout = Timespec { tv_sec: TIMEOUT.as_secs() as i64, tv_nsec: 0 };
            epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout))?;
            let now = Instant::now();
            ensure!(
                !events.is_empty(),
                "no answer for {TIMEOUT:?}, {} of {} connections wait",
                self.callers.iter().filter(|caller| !caller.done()).count(),
                self.callers.len()
            );
            let gone = now - begun;
            if from.is_none() && gone >= options.warm_up {
                // From here on answers are counted.
                (seen.answers, seen.times) = (0, Histogram::default());
                from = Some((now, thread_cpu_time()));
            }
            if let Some((since, processor)) = from
                && counted.is_none()
                && now - since >= options.time
            {
                counted = Some((seen.answers, now - since, thread_cpu_time().saturating_sub(processor)));
            }
            for event in events.drain(..) {
                let (flags, data) = (event.flags, event.data);
                let index = data.u64() as usize;
                let caller = &mut self.callers[index];
                if flags.contains(epoll::EventFlags::OUT) {
                    caller.write()?;
                }
                caller.read(now, &mut buffer, holders, counted.is_none(), &mut seen)?;
                // Rare: a batch is small compared to a socket buffer.
                if caller.wants_to_write() || flags.contains(epoll::EventFlags::OUT) {
                    let mut flags = epoll::EventFlags::IN;
                    flags.set(epoll::EventFlags::OUT, caller.wants_to_write());
                    epoll::modify(&self.epoll, caller.socket(), data, flags)?;
                }
            }
        }
        let (counted, time, processor) = counted.context("it ended before its time")?;
        Ok(ThreadReport { counted, time, processor, seen })
    }
}

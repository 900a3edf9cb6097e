//! Many connections that take numbers and give them back.

use super::caller::{Caller, Seen, Words};
use super::client::Client;
use super::holders::Holders;
use super::wire::{self, Answer};
use crate::load::{Histogram, this_thread};
use anyhow::{Context, Result, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Who calls, where, and for how long.
#[derive(Debug, Clone)]
pub struct CallerOptions {
    /// Where the Redis protocol is spoken.
    pub address: SocketAddr,
    /// The pool's key, such as `{pool}`.
    pub pool: String,
    /// The sum of the script.
    pub script: String,
    /// Connections.
    pub connections: usize,
    /// Calls that are sent at once, by each connection; when all are answered, as many hangups.
    pub batch: usize,
    /// Threads that the connections are spread over.
    pub threads: usize,
    /// What happens before this has gone by is not counted.
    pub warm_up: Duration,
    /// How long is counted after that.
    pub time: Duration,
}

/// What became of it. The rate and the times are those of the counted time; everything else is of the whole run.
#[derive(Debug, Clone, Default)]
pub struct CallerReport {
    /// Calls with their hangups, a second.
    pub rate: f64,
    /// Calls that were answered.
    pub calls: u64,
    /// Calls that got no number.
    pub empty: u64,
    /// Calls that got a number that somebody had at that time.
    pub doubles: u64,
    /// Calls that got what is no number of the pool.
    pub strangers: u64,
    /// Errors, and answers that are not what they should be.
    pub wrong: u64,
    /// The first of them.
    pub complaint: Option<String>,
    /// From the sending of a batch to each of its answers.
    pub times: Histogram,
    /// Processor time of the callers, in the counted time.
    pub processor: Duration,
}

impl CallerReport {
    /// Whether every call got a number that nobody had, and every hangup was taken.
    ///
    /// # Errors
    /// If not; says what was wrong.
    pub fn clean(&self) -> Result<()> {
        ensure!(
            self.empty == 0 && self.doubles == 0 && self.strangers == 0 && self.wrong == 0,
            "of {} calls {} got no number, {} one that somebody had, {} one of no pool; {} wrong answers, the first: {:?}",
            self.calls,
            self.empty,
            self.doubles,
            self.strangers,
            self.wrong,
            self.complaint
        );
        ensure!(self.calls > 0, "no call was answered");
        Ok(())
    }
}

/// How long a server may say nothing at all.
const PATIENCE: Duration = Duration::from_secs(30);
/// Numbers of one batch of adds and regs.
const FILL: usize = 500;

/// Takes numbers and gives them back.
#[derive(Debug)]
pub struct Callers;

impl Callers {
    /// Puts all numbers into the pool, idle and up.
    pub fn fill(options: &CallerOptions, holders: &Holders) -> Result<()> {
        let mut client = Client::connect(options.address)?;
        // The next batch is on its way while one is answered.
        let mut asked = 0;
        for begin in (0..holders.numbers()).step_by(FILL) {
            let end = holders.numbers().min(begin + FILL);
            let mut requests = Vec::new();
            for place in begin..end {
                let number = holders.number(place);
                for event in ["add", "reg"] {
                    let words = ["EVALSHA", &options.script, "1", &options.pool, event, &number];
                    requests.extend_from_slice(&wire::request(&words));
                }
            }
            client.send(&requests)?;
            answered(&mut client, asked)?;
            asked = 2 * (end - begin);
        }
        answered(&mut client, asked)
    }

    /// Calls and hangs up until the time is over, and then until everything is answered and given back.
    ///
    /// # Errors
    /// If a connection is lost, or a server says nothing for half a minute.
    pub fn run(options: &CallerOptions, holders: &Arc<Holders>) -> Result<CallerReport> {
        let threads = options.threads.clamp(1, options.connections.max(1));
        let words = Arc::new(Words::new(options));
        let barrier = Arc::new(Barrier::new(threads));
        let mut running = Vec::new();
        for thread in 0..threads {
            let (options, holders) = (options.clone(), Arc::clone(holders));
            let (words, barrier) = (Arc::clone(&words), Arc::clone(&barrier));
            let count = options.connections / threads + usize::from(thread < options.connections % threads);
            let body = move || {
                let crowd = Crowd::connect(&options, count, &words);
                // Also if that failed: the others wait.
                barrier.wait();
                crowd?.run(&options, &holders)
            };
            running.push(std::thread::Builder::new().name(format!("callers-{thread}")).spawn(body)?);
        }
        let (mut report, mut seen) = (CallerReport::default(), Seen::default());
        for thread in running {
            let Ok(one) = thread.join() else { bail!("a thread of callers panicked") };
            let one = one?;
            report.rate += one.counted as f64 / 2.0 / one.time.as_secs_f64();
            report.processor += one.processor;
            seen.add(&one.seen);
        }
        (report.calls, report.empty, report.doubles) = (seen.calls, seen.empty, seen.doubles);
        (report.strangers, report.wrong, report.complaint) = (seen.strangers, seen.wrong, seen.complaint);
        report.times = seen.times;
        Ok(report)
    }
}

/// Waits for so many answers that say that it is done.
fn answered(client: &mut Client, count: usize) -> Result<()> {
    for _ in 0..count {
        let answer = client.answer()?;
        ensure!(answer == Answer::Text("1".to_owned()), "filling the pool: {answer:?}");
    }
    Ok(())
}

impl Words {
    fn new(options: &CallerOptions) -> Self {
        let call = wire::request(&["EVALSHA", &options.script, "1", &options.pool, "call"]);
        let number = "0".repeat(Holders::DIGITS);
        let hangup =
            wire::request(&["EVALSHA", &options.script, "1", &options.pool, "hangup", number.as_str()]);
        Self {
            calls: call.repeat(options.batch),
            hangup: hangup[..hangup.len() - number.len() - 2].to_vec(),
            batch: options.batch,
        }
    }
}

/// The connections of one thread.
struct Crowd {
    callers: Vec<Caller>,
    epoll: OwnedFd,
}

struct Counted {
    counted: u64,
    time: Duration,
    processor: Duration,
    seen: Seen,
}

impl Crowd {
    fn connect(options: &CallerOptions, count: usize, words: &Arc<Words>) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut callers = Vec::with_capacity(count);
        for index in 0..count {
            let socket = TcpStream::connect_timeout(&options.address, PATIENCE)
                .with_context(|| format!("connecting to {}", options.address))?;
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
            epoll::add(&epoll, &socket, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
            callers.push(Caller::new(socket, Arc::clone(words)));
        }
        Ok(Self { callers, epoll })
    }

    fn run(mut self, options: &CallerOptions, holders: &Holders) -> Result<Counted> {
        let mut seen = Seen::default();
        let mut buffer = vec![0; 1 << 18];
        let mut events = Vec::with_capacity(256);
        let begun = Instant::now();
        for caller in &mut self.callers {
            caller.call(begun)?;
        }
        let (mut from, mut counted) = (None, None);
        while !self.callers.iter().all(Caller::done) {
            let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
            epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&patience))?;
            let now = Instant::now();
            ensure!(
                !events.is_empty(),
                "no answer for {PATIENCE:?}, {} of {} connections wait",
                self.callers.iter().filter(|caller| !caller.done()).count(),
                self.callers.len()
            );
            let gone = now - begun;
            if from.is_none() && gone >= options.warm_up {
                // From here on it counts.
                (seen.answers, seen.times) = (0, Histogram::default());
                from = Some((now, this_thread()));
            }
            if let Some((since, processor)) = from
                && counted.is_none()
                && now - since >= options.time
            {
                counted = Some((seen.answers, now - since, this_thread().saturating_sub(processor)));
            }
            for event in events.drain(..) {
                let (flags, data) = (event.flags, event.data);
                let index = data.u64() as usize;
                let caller = &mut self.callers[index];
                if flags.contains(epoll::EventFlags::OUT) {
                    caller.write()?;
                }
                caller.read(now, &mut buffer, holders, counted.is_none(), &mut seen)?;
                // Hardly ever: a batch is small beside what a socket takes.
                if caller.wants_to_write() || flags.contains(epoll::EventFlags::OUT) {
                    let mut flags = epoll::EventFlags::IN;
                    flags.set(epoll::EventFlags::OUT, caller.wants_to_write());
                    epoll::modify(&self.epoll, caller.socket(), data, flags)?;
                }
            }
        }
        let (counted, time, processor) = counted.context("it ended before its time")?;
        Ok(Counted { counted, time, processor, seen })
    }
}

//! The core loop: one thread applies events, another commits the resulting changes, and commands are sent after the
//! commit.
//!
//! While batch n is committed, events of batch n+1 are applied to memory. The batch size thus adapts to the load: a
//! batch contains the events that arrive during one commit.

use crate::archiving::ArchiveReader;
use crate::batch_size::BatchSize;
use crate::critical_thread::{self, fail_stop};
use crate::hook_workers::HookWorkers;
use crate::message_lookups::{MessageLookup, MessageLookups};
use crate::peer_observer::PeerObserver;
use crate::table_writer::TableWriter;
use crate::telemetry::{self, Telemetry};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use engine::{Engine, EngineAnswer, EngineCommand, Event, Output, ReplyTo};
use model::{AgeClock, Batch, MessageId, Moment, Now, Timestamp};
use ports::{EventSink, LinkCommand, LinkHandle, LinkRegistry, PoolFeed, Protocol};
use shell::MailboxIndex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::Store;

/// A query that runs on the engine's thread.
type EngineQuery = Box<dyn FnOnce(&Engine, Now) + Send>;

enum Input {
    Events(Vec<Event>),
    Query(EngineQuery),
    Committed,
    Stop,
}

/// The clocks of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    /// The wall clock at `started`.
    started_at: Timestamp,
}

impl Clock {
    pub(crate) fn new() -> Self {
        // Leaves an hour for times before the start.
        Self { started: Instant::now(), started_at: Timestamp::now() }
    }

    pub(crate) fn now(self) -> Now {
        Now { wall: Timestamp::now(), mono: Moment(3_600_000 + millis(self.started.elapsed())) }
    }

    /// The time by which ages of durable records are measured; `newest` is the time of the newest record at startup.
    ///
    /// Downtime does not count, because the clock of a machine that has just booted may be wrong by days. Afterwards it
    /// follows the wall clock, but never advances more than the time elapsed. Jumps of the wall clock therefore do not
    /// age records.
    pub(crate) fn for_ages(self, newest: Option<Timestamp>) -> Timestamp {
        let start = newest.map_or(self.started_at, |newest| newest.min(self.started_at));
        let ages = AgeClock::trusted(start);
        ages.now(self.started.elapsed(), Timestamp::now()).unwrap_or_default()
    }

    /// The wall clock at the start of the process.
    pub(crate) fn started_at(self) -> Timestamp {
        self.started_at
    }

    /// Microseconds since the start, plus one.
    fn micros(self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX - 1) + 1
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Upper bounds of the histograms of commit time (microseconds) and batch size (rows).
pub(crate) const TIME_BOUNDS: [u64; 10] =
    [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 100_000, 1_000_000];
/// See [`TIME_BOUNDS`].
pub(crate) const SIZE_BOUNDS: [u64; 10] = [1, 4, 16, 64, 256, 512, 1_024, 4_096, 16_384, 65_536];

/// Counters of the core loop.
#[derive(Debug, Default)]
pub(crate) struct CoreLoopCounts {
    pub(crate) commits: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) octets: AtomicU64,
    pub(crate) commit_us: AtomicU64,
    pub(crate) times: [AtomicU64; 11],
    pub(crate) sizes: [AtomicU64; 11],
    pub(crate) loads: AtomicU64,
    /// The start of the current commit, in microseconds of [`CoreHandle::clock`] (never 0); 0 if there is none.
    pub(crate) commit_begun: AtomicU64,
    /// The same for the current batch, until its commands were sent.
    batch_begun: AtomicU64,
    pub(crate) disk_low: AtomicBool,
    pub(crate) disk_free: AtomicU64,
}

fn count(buckets: &[AtomicU64; 11], bounds: &[u64; 10], value: u64) {
    let bucket = bounds.iter().position(|bound| value <= *bound).unwrap_or(10);
    buckets[bucket].fetch_add(1, Relaxed);
}

/// The handle of the core.
#[derive(Clone)]
pub(crate) struct CoreHandle {
    input: Sender<Input>,
    pub(crate) counts: Arc<CoreLoopCounts>,
    pub(crate) clock: Clock,
}

impl EventSink for CoreHandle {
    fn push(&self, events: Vec<Event>) {
        // The loop outlives all senders.
        let _ = self.input.send(Input::Events(events));
    }
}

impl CoreHandle {
    /// Runs a query on the engine's thread; `None` if the loop has ended.
    pub(crate) fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Engine, Now) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = bounded(1);
        let query: EngineQuery = Box::new(move |engine, now| {
            let _ = answer.send(query(engine, now));
        });
        self.input.send(Input::Query(query)).ok()?;
        answered.recv().ok()
    }

    /// Like [`query`](Self::query), with a timeout.
    pub(crate) fn query_within<T: Send + 'static>(
        &self,
        time: Duration,
        query: impl FnOnce(&Engine, Now) -> T + Send + 'static,
    ) -> Result<T, QueryError> {
        let (answer, answered) = bounded(1);
        let query: EngineQuery = Box::new(move |engine, now| {
            let _ = answer.send(query(engine, now));
        });
        self.input.send(Input::Query(query)).map_err(|_| QueryError::Ended)?;
        answered.recv_timeout(time).map_err(|error| match error {
            RecvTimeoutError::Timeout => QueryError::Late,
            RecvTimeoutError::Disconnected => QueryError::Ended,
        })
    }

    /// Whether the core responds within this time.
    pub(crate) fn responds_within(&self, time: Duration) -> bool {
        self.query_within(time, |_, _| ()).is_ok()
    }

    /// Duration of the current commit; `None` if there is none.
    pub(crate) fn commit_duration(&self) -> Option<Duration> {
        self.since(&self.counts.commit_begun)
    }

    /// Duration of the current batch, including the sending of its commands; `None` if there is none.
    pub(crate) fn batch_duration(&self) -> Option<Duration> {
        self.since(&self.counts.batch_begun)
    }

    fn since(&self, begun: &AtomicU64) -> Option<Duration> {
        match begun.load(Relaxed) {
            0 => None,
            begun => Some(Duration::from_micros(self.clock.micros().saturating_sub(begun))),
        }
    }

    /// Ends the loop after all earlier events are applied and committed.
    pub(crate) fn stop(&self) {
        let _ = self.input.send(Input::Stop);
    }
}

/// Why a query returned nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryError {
    /// The timeout has passed.
    Late,
    /// The loop has ended.
    Ended,
}

/// The threads of the core; [`CoreThreads::join`] waits for them.
pub(crate) struct CoreThreads {
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl CoreThreads {
    pub(crate) fn join(self) {
        for thread in self.threads {
            // A panic has already ended the process.
            let _ = thread.join();
        }
    }
}

/// The channel of a core that is not started yet: the links need the handle before their registry exists.
pub(crate) struct CoreChannel {
    receiver: Receiver<Input>,
    handle: CoreHandle,
}

pub(crate) fn channel() -> (CoreChannel, CoreHandle) {
    let (input, receiver) = unbounded();
    let handle = CoreHandle { input, counts: Arc::default(), clock: Clock::new() };
    (CoreChannel { receiver, handle: handle.clone() }, handle)
}

/// Observers of committed batches; they run before commands are sent.
pub(crate) struct BatchObservers {
    pub(crate) mailbox_index: Arc<MailboxIndex>,
    pub(crate) pools: Arc<PoolFeed>,
    pub(crate) peers: PeerObserver,
    /// The trace exporter, if configured.
    pub(crate) telemetry: Option<Telemetry>,
}

/// Starts the core. `first` is the output of the recovery, to be committed first.
pub(crate) fn start(
    channel: CoreChannel,
    (engine, first, batch_size): (Engine, Output, BatchSize),
    store: Arc<Store>,
    registry: Arc<LinkRegistry>,
    hook_workers: HookWorkers,
    history: Option<ArchiveReader>,
    observers: BatchObservers,
) -> std::io::Result<CoreThreads> {
    let CoreChannel { receiver, handle } = channel;
    let (batches, commits) = bounded::<Output>(1);
    let (reads, to_read) = unbounded::<Vec<MessageId>>();
    let (message_lookups, looking_up) = MessageLookups::start(store.clone(), registry.clone(), history)?;
    let committer = Committer {
        store: store.clone(),
        registry,
        reads,
        message_lookups,
        hook_workers,
        observers,
        input: handle.input.clone(),
        counts: handle.counts.clone(),
        clock: handle.clock,
    };
    let clock = handle.clock;
    let table_writer = TableWriter { store: store.clone() };
    let (until, stopped) = bounded(0);
    let reader = Reader { store, input: handle.input.clone(), counts: handle.counts.clone() };
    let threads = vec![
        critical_thread::spawn("core", move || run(engine, first, batch_size, clock, &receiver, &batches))?,
        critical_thread::spawn("commit", move || {
            committer.run(&commits);
            drop(until);
        })?,
        critical_thread::spawn("tables", move || table_writer.run(&stopped))?,
        critical_thread::spawn("read", move || reader.run(&to_read))?,
        looking_up,
    ];
    Ok(CoreThreads { threads })
}

/// A batch smaller than this, soon after a commit under load, waits for more events ...
const SMALL_BATCH: usize = 64;
/// ... but no longer than this.
const BATCH_LINGER: Duration = Duration::from_millis(1);
fn run(
    mut engine: Engine,
    first: Output,
    mut batch_size: BatchSize,
    clock: Clock,
    input: &Receiver<Input>,
    batches: &Sender<Output>,
) {
    let mut out = first;
    let mut committing = false;
    let mut stopping = false;
    let mut last_size = 0;
    let mut last_sent = Instant::now();
    let mut deferred = VecDeque::new();
    loop {
        let now = clock.now();
        engine.advance(now, &mut out);
        let size = out.batch.accepted.len() + out.batch.finished.len();
        let mut wait_until =
            engine.deadline().map(|at| Duration::from_millis(at.0.saturating_sub(now.mono.0)));
        if !committing && !out.is_empty() {
            // Under load, a short wait makes batches larger and messages cheaper; a single message never waits.
            let waited = last_sent.elapsed();
            let is_full = stopping || batch_size.update(&out.batch);
            if last_size >= SMALL_BATCH / 8 && size < SMALL_BATCH && waited < BATCH_LINGER && !is_full {
                let left = BATCH_LINGER.saturating_sub(waited);
                wait_until = Some(wait_until.map_or(left, |until| until.min(left)));
            } else {
                engine.seal(&mut out);
                last_size = size;
                last_sent = Instant::now();
                if batches.send(std::mem::take(&mut out)).is_err() {
                    return;
                }
                committing = true;
                batch_size.reset();
            }
        }
        while committing && batch_size.update(&out.batch) {
            match input.recv() {
                Ok(Input::Committed) => committing = false,
                Ok(other) => deferred.push_back(other),
                Err(_) => return,
            }
        }
        if stopping && !committing && out.is_empty() {
            return;
        }
        let received = match wait_until {
            _ if !deferred.is_empty() || batch_size.update(&out.batch) => {
                deferred.pop_front().ok_or(RecvTimeoutError::Timeout)
            }
            Some(wait) => input.recv_timeout(wait),
            None => input.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let first = match received {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let now = clock.now();
        let mut next = first;
        for _ in 0..10_000 {
            let Some(one) = next.take().or_else(|| deferred.pop_front()).or_else(|| input.try_recv().ok())
            else {
                break;
            };
            match one {
                Input::Events(events) => {
                    for event in events {
                        engine.apply(now, event, &mut out);
                    }
                }
                Input::Query(query) => query(&engine, now),
                Input::Committed => committing = false,
                Input::Stop => {
                    stopping = true;
                    engine.apply(now, Event::Drain, &mut out);
                }
            }
            if batch_size.update(&out.batch) {
                break;
            }
        }
    }
}

struct Committer {
    store: Arc<Store>,
    registry: Arc<LinkRegistry>,
    reads: Sender<Vec<MessageId>>,
    message_lookups: MessageLookups,
    hook_workers: HookWorkers,
    observers: BatchObservers,
    input: Sender<Input>,
    counts: Arc<CoreLoopCounts>,
    clock: Clock,
}

impl Committer {
    fn run(self, batches: &Receiver<Output>) {
        for Output { batch, commands, observations } in batches {
            self.counts.batch_begun.store(self.clock.micros(), Relaxed);
            if !batch.is_empty() {
                let begun = Instant::now();
                self.counts.commit_begun.store(self.clock.micros(), Relaxed);
                // Observers run before commands are sent: the receiver of an answer must find its effect.
                let committed = self.store.commit_observed(batch, |batch| self.observe(batch, begun));
                self.counts.commit_begun.store(0, Relaxed);
                match committed {
                    Ok(done) => {
                        let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                        self.counts.commits.fetch_add(1, Relaxed);
                        self.counts.rows.fetch_add(done.rows, Relaxed);
                        self.counts.octets.fetch_add(done.octets, Relaxed);
                        self.counts.commit_us.fetch_add(elapsed_us, Relaxed);
                        count(&self.counts.times, &TIME_BOUNDS, elapsed_us);
                        count(&self.counts.sizes, &SIZE_BOUNDS, done.rows);
                    }
                    Err(error) => fail_stop(&error),
                }
            }
            self.observers.peers.observe(observations);
            for other in self.registry.dispatch(commands) {
                match self.hook_workers.dispatch(other) {
                    Some(EngineCommand::Load { ids }) => drop(self.reads.send(ids)),
                    Some(EngineCommand::LookUp { origin, id, source, too_late, to }) => {
                        self.message_lookups.submit(MessageLookup { origin, id, source, too_late, to });
                    }
                    _ => {}
                }
            }
            self.counts.batch_begun.store(0, Relaxed);
            let _ = self.input.send(Input::Committed);
        }
        if let Err(error) = self.store.close() {
            fail_stop(&error);
        }
    }

    fn observe(&self, batch: &Batch, begun: Instant) {
        self.observers.mailbox_index.observe(batch);
        self.observers.pools.observe(&batch.pools);
        if let Some(telemetry) = &self.observers.telemetry {
            let ended = Timestamp::now();
            let begun = Timestamp(ended.0.saturating_sub(millis(begun.elapsed())));
            telemetry.observe(batch, telemetry::CommitTimes { begun, ended });
        }
    }
}

/// Loads contents of messages from the store. It does nothing else, because queues wait for it.
struct Reader {
    store: Arc<Store>,
    input: Sender<Input>,
    counts: Arc<CoreLoopCounts>,
}

impl Reader {
    fn run(self, requests: &Receiver<Vec<MessageId>>) {
        for ids in requests {
            self.load(&ids);
        }
    }

    fn load(&self, ids: &[MessageId]) {
        self.counts.loads.fetch_add(ids.len() as u64, Relaxed);
        match self.store.load(ids) {
            Ok(messages) => {
                let loaded = ids.iter().zip(messages);
                let events = loaded.map(|(id, message)| Event::Loaded { id: *id, message }).collect();
                let _ = self.input.send(Input::Events(events));
            }
            Err(error) => fail_stop(&error),
        }
    }
}

/// Sends several requests to the engine; the answers are in no particular order.
pub(crate) fn request_all(
    core: &CoreHandle,
    registry: &Arc<LinkRegistry>,
    events: impl IntoIterator<Item = impl FnOnce(ReplyTo) -> Event>,
) -> Option<Vec<EngineAnswer>> {
    let mut handle = LinkHandle::register(Arc::new(core.clone()), registry.clone(), Protocol::Internal);
    let events: Vec<Event> = (0..).zip(events).map(|(token, event)| event(handle.reply(token))).collect();
    let count = events.len();
    core.push(events);
    let mut answers = Vec::with_capacity(count);
    while answers.len() < count {
        answers.extend(handle.blocking_recv().into_iter().filter_map(|command| match command {
            LinkCommand::Answer { answer, .. } => Some(answer),
            _ => None,
        }));
    }
    Some(answers)
}

/// Sends a request to the engine and waits for the answer.
pub(crate) fn request(
    core: &CoreHandle,
    registry: &Arc<LinkRegistry>,
    event: impl FnOnce(ReplyTo) -> Event,
) -> Option<EngineAnswer> {
    request_all(core, registry, [event])?.pop()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::batch_size::BATCH_OCTETS;
    use engine::Settings;

    /// A core whose output is discarded.
    pub(crate) fn running_core() -> CoreHandle {
        let (CoreChannel { receiver, handle }, core) = channel();
        let (batches, written) = bounded(1);
        let engine = Engine::new(Settings::default());
        critical_thread::spawn("core", move || {
            let _written = written;
            run(engine, Output::default(), BatchSize::new(BATCH_OCTETS), handle.clock, &receiver, &batches);
        })
        .unwrap();
        core
    }

    #[test]
    fn a_core_that_does_not_respond_in_time_is_detected() {
        let (pending, core) = channel();
        assert!(!core.responds_within(Duration::from_millis(20)));
        drop(pending);
        assert!(!core.responds_within(Duration::from_secs(60)), "no answer after shutdown");
        assert!(running_core().responds_within(Duration::from_secs(60)));
    }
    #[test]
    fn downtime_does_not_age_records() {
        const WEEK: Duration = Duration::from_secs(7 * 86_400);
        let clock = Clock::new();
        let stopped_at = Timestamp(clock.started_at.0.saturating_sub(millis(WEEK)));
        let passed = clock.for_ages(Some(stopped_at)).0 - stopped_at.0;
        assert!(passed <= millis(clock.started.elapsed()), "{passed} ms");
        assert!(clock.for_ages(None) >= clock.started_at);
        let early_clock = clock.started_at + WEEK;
        assert!(clock.for_ages(Some(early_clock)) < early_clock);
    }
}

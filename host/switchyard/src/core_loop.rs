//! The core loop: one thread applies events, one commits what follows from them, and commands leave only after that.
//!
//! While batch n is being written, events of batch n+1 are applied to memory. So the size of a batch follows the load by
//! itself: as many events as arrive during one commit.

use crate::archiving::History;
use crate::look_ups::{LookUp, LookUps};
use crate::questions::Questions;
use crate::telemetry::{self, Telemetry};
use crate::vital;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use doors::{Core, Delivery, Hub, PoolFeed};
use engine::{Answer, Command, Engine, Event, Output, ReplyTo};
use model::{AgeClock, MessageId, Moment, Now, Timestamp};
use shell::Watch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::{Store, StoreError};

/// A look at the engine, on its own thread.
type Look = Box<dyn FnOnce(&Engine, Now) + Send>;

enum Input {
    Events(Vec<Event>),
    Look(Look),
    Committed,
    Stop,
}

/// The clocks, as the engine is given them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    /// The wall clock then.
    started_at: Timestamp,
}

impl Clock {
    pub(crate) fn new() -> Self {
        // An hour of room below, so that moments before the start can be told.
        Self { started: Instant::now(), started_at: wall() }
    }

    pub(crate) fn now(self) -> Now {
        Now { wall: wall(), mono: Moment(3_600_000 + millis(self.started.elapsed())) }
    }

    /// The time by which the ages of durable records are counted; `newest` is the time of the newest record at the start.
    ///
    /// No time counts as passed while no daemon ran, since the clock of a machine that has just started may be wrong by
    /// days. After that it is the wall clock, but never further on than the time that has passed. So a jump of the wall
    /// clock, forward or back, makes nothing older.
    pub(crate) fn for_ages(self, newest: Option<Timestamp>) -> Timestamp {
        let start = newest.map_or(self.started_at, |newest| newest.min(self.started_at));
        let ages = AgeClock::believed(start);
        ages.now(self.started.elapsed(), wall()).unwrap_or_default()
    }

    /// The wall clock at the start of the process.
    pub(crate) fn started_at(self) -> Timestamp {
        self.started_at
    }

    /// Microseconds since the start, and one.
    fn micros(self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX - 1) + 1
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The wall clock.
pub(crate) fn wall() -> Timestamp {
    Timestamp(millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()))
}

/// Upper bounds of the commit-time histogram in microseconds, and of the batch-size histogram in rows.
pub(crate) const TIME_BOUNDS: [u64; 10] =
    [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 100_000, 1_000_000];
/// See [`TIME_BOUNDS`].
pub(crate) const SIZE_BOUNDS: [u64; 10] = [1, 4, 16, 64, 256, 512, 1_024, 4_096, 16_384, 65_536];

/// What the loop tells of itself.
#[derive(Debug, Default)]
pub(crate) struct LoopCounts {
    pub(crate) commits: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) octets: AtomicU64,
    pub(crate) commit_us: AtomicU64,
    pub(crate) times: [AtomicU64; 11],
    pub(crate) sizes: [AtomicU64; 11],
    pub(crate) loads: AtomicU64,
    /// When the commit that is under way began, in microseconds of [`CoreHandle::clock`] and never 0; 0 when there is none.
    pub(crate) commit_begun: AtomicU64,
    /// The same for the whole batch: from its taking over until its commands have left.
    batch_begun: AtomicU64,
    pub(crate) disk_low: AtomicBool,
    pub(crate) disk_free: AtomicU64,
}

fn count(buckets: &[AtomicU64; 11], bounds: &[u64; 10], value: u64) {
    let bucket = bounds.iter().position(|bound| value <= *bound).unwrap_or(10);
    buckets[bucket].fetch_add(1, Relaxed);
}

/// The way into the core.
#[derive(Clone)]
pub(crate) struct CoreHandle {
    input: Sender<Input>,
    pub(crate) counts: Arc<LoopCounts>,
    pub(crate) clock: Clock,
}

impl Core for CoreHandle {
    fn push(&self, events: Vec<Event>) {
        // The loop ends only after everybody who pushes has ended.
        let _ = self.input.send(Input::Events(events));
    }
}

impl CoreHandle {
    /// Reads something out of the engine, on its thread; `None` when the loop has ended.
    pub(crate) fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Engine, Now) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = bounded(1);
        let look: Look = Box::new(move |engine, now| {
            let _ = answer.send(look(engine, now));
        });
        self.input.send(Input::Look(look)).ok()?;
        answered.recv().ok()
    }

    /// The same, for who does not wait for ever.
    pub(crate) fn look_within<T: Send + 'static>(
        &self,
        time: Duration,
        look: impl FnOnce(&Engine, Now) -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        let (answer, answered) = bounded(1);
        let look: Look = Box::new(move |engine, now| {
            let _ = answer.send(look(engine, now));
        });
        self.input.send(Input::Look(look)).map_err(|_| Unanswered::Ended)?;
        answered.recv_timeout(time).map_err(|error| match error {
            RecvTimeoutError::Timeout => Unanswered::Late,
            RecvTimeoutError::Disconnected => Unanswered::Ended,
        })
    }

    /// Whether the core takes up what it is told, within this time.
    pub(crate) fn answers_within(&self, time: Duration) -> bool {
        self.look_within(time, |_, _| ()).is_ok()
    }

    /// How long the commit that is under way has taken so far; nothing where there is none.
    pub(crate) fn committing_for(&self) -> Option<Duration> {
        self.since(&self.counts.commit_begun)
    }

    /// How long the batch that is being written, and whose commands are handed on, has taken so far; nothing where there is
    /// none.
    pub(crate) fn writing_for(&self) -> Option<Duration> {
        self.since(&self.counts.batch_begun)
    }

    fn since(&self, begun: &AtomicU64) -> Option<Duration> {
        match begun.load(Relaxed) {
            0 => None,
            begun => Some(Duration::from_micros(self.clock.micros().saturating_sub(begun))),
        }
    }

    /// Ends the loop once everything that was pushed before is applied and written.
    pub(crate) fn stop(&self) {
        let _ = self.input.send(Input::Stop);
    }
}

/// Why a look at the engine gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// Not in the time that was given.
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
            // One that panics ends the process.
            let _ = thread.join();
        }
    }
}

/// A channel into a core that is yet to be started: links need it before the hub that they bring exists.
pub(crate) struct CoreSeed {
    receiver: Receiver<Input>,
    handle: CoreHandle,
}

pub(crate) fn seed() -> (CoreSeed, CoreHandle) {
    let (input, receiver) = unbounded();
    let handle = CoreHandle { input, counts: Arc::default(), clock: Clock::new() };
    (CoreSeed { receiver, handle: handle.clone() }, handle)
}

/// Those who see every batch that is written, before anybody is told of it.
pub(crate) struct Onlookers {
    pub(crate) watch: Arc<Watch>,
    pub(crate) pools: Arc<PoolFeed>,
    /// Traces, where they are wanted.
    pub(crate) telemetry: Option<Telemetry>,
}

/// Starts the core. `first` is what recovery wants written.
pub(crate) fn start(
    seed: CoreSeed,
    (engine, first): (Engine, Output),
    store: Arc<Store>,
    hub: Arc<Hub>,
    questions: Questions,
    history: Option<History>,
    onlookers: Onlookers,
) -> std::io::Result<CoreThreads> {
    let CoreSeed { receiver, handle } = seed;
    let (batches, to_commit) = bounded::<Output>(1);
    let (reads, to_read) = unbounded::<Vec<MessageId>>();
    let (look_ups, looking_up) = LookUps::start(store.clone(), hub.clone(), history)?;
    let committer = Committer {
        store: store.clone(),
        hub,
        reads,
        look_ups,
        questions,
        onlookers,
        input: handle.input.clone(),
        counts: handle.counts.clone(),
        clock: handle.clock,
    };
    let clock = handle.clock;
    let reader = Reader { store, input: handle.input.clone(), counts: handle.counts.clone() };
    let threads = vec![
        vital::spawn("core", move || run(engine, first, clock, &receiver, &batches))?,
        vital::spawn("commit", move || committer.run(&to_commit))?,
        vital::spawn("read", move || reader.run(&to_read))?,
        looking_up,
    ];
    Ok(CoreThreads { threads })
}

/// A batch smaller than this, right after a commit of a busy time, waits for company ...
const SMALL: usize = 384;
/// ... but no longer than this.
const COMPANY: Duration = Duration::from_millis(3);

fn run(mut engine: Engine, first: Output, clock: Clock, input: &Receiver<Input>, batches: &Sender<Output>) {
    let mut out = first;
    let mut committing = false;
    let mut stopping = false;
    let mut last_size = 0;
    let mut handed_at = Instant::now();
    loop {
        let now = clock.now();
        engine.settle(now, &mut out);
        let size = out.batch.accepted.len() + out.batch.finished.len();
        let mut wait_until =
            engine.deadline().map(|at| Duration::from_millis(at.0.saturating_sub(now.mono.0)));
        if !committing && !out.is_empty() {
            // In a busy time a short wait makes batches larger and each message cheaper; a lone message never waits.
            let waited = handed_at.elapsed();
            if last_size >= SMALL / 8 && size < SMALL && waited < COMPANY && !stopping {
                let left = COMPANY.saturating_sub(waited);
                wait_until = Some(wait_until.map_or(left, |until| until.min(left)));
            } else {
                engine.seal(&mut out);
                last_size = size;
                handed_at = Instant::now();
                if batches.send(std::mem::take(&mut out)).is_err() {
                    return;
                }
                committing = true;
            }
        }
        if stopping && !committing && out.is_empty() {
            return;
        }
        let received = match wait_until {
            Some(wait) => input.recv_timeout(wait),
            None => input.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let first = match received {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let now = clock.now();
        for one in first.into_iter().chain(input.try_iter().take(10_000)) {
            match one {
                Input::Events(events) => {
                    for event in events {
                        engine.apply(now, event, &mut out);
                    }
                }
                Input::Look(look) => look(&engine, now),
                Input::Committed => committing = false,
                Input::Stop => {
                    stopping = true;
                    engine.apply(now, Event::Drain, &mut out);
                }
            }
        }
    }
}

struct Committer {
    store: Arc<Store>,
    hub: Arc<Hub>,
    reads: Sender<Vec<MessageId>>,
    look_ups: LookUps,
    questions: Questions,
    onlookers: Onlookers,
    input: Sender<Input>,
    counts: Arc<LoopCounts>,
    clock: Clock,
}

impl Committer {
    fn run(self, batches: &Receiver<Output>) {
        for Output { batch, commands } in batches {
            self.counts.batch_begun.store(self.clock.micros(), Relaxed);
            if !batch.is_empty() {
                let begun = Instant::now();
                self.counts.commit_begun.store(self.clock.micros(), Relaxed);
                let committed = self.store.commit(&batch);
                self.counts.commit_begun.store(0, Relaxed);
                match committed {
                    Ok(done) => {
                        let taken = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                        self.counts.commits.fetch_add(1, Relaxed);
                        self.counts.rows.fetch_add(done.rows, Relaxed);
                        self.counts.octets.fetch_add(done.octets, Relaxed);
                        self.counts.commit_us.fetch_add(taken, Relaxed);
                        count(&self.counts.times, &TIME_BOUNDS, taken);
                        count(&self.counts.sizes, &SIZE_BOUNDS, done.rows);
                    }
                    Err(error) => fail_stop(&error),
                }
                // Before anybody is told: who was told finds what was told.
                self.onlookers.watch.observe(&batch);
                self.onlookers.pools.observe(&batch.pools);
                if let Some(telemetry) = &self.onlookers.telemetry {
                    let ended = wall();
                    let begun = Timestamp(ended.0.saturating_sub(millis(begun.elapsed())));
                    telemetry.observe(&batch, telemetry::Commit { begun, ended });
                }
            }
            for other in self.hub.dispatch(commands) {
                match self.questions.take(other) {
                    Some(Command::Load { ids }) => drop(self.reads.send(ids)),
                    Some(Command::LookUp { origin, id, source, too_late, to }) => {
                        self.look_ups.ask(LookUp { origin, id, source, too_late, to });
                    }
                    _ => {}
                }
            }
            self.counts.batch_begun.store(0, Relaxed);
            let _ = self.input.send(Input::Committed);
        }
    }
}

/// The disk has failed: nobody may be told anything any more. What was told before is on disk; a restart recovers.
fn fail_stop(error: &StoreError) -> ! {
    tracing::error!(%error, "the store failed; stopping at once, nothing of the failed batch was answered");
    std::process::exit(3);
}

/// Reads the content of messages back from the store, and does nothing else: queues wait for it.
struct Reader {
    store: Arc<Store>,
    input: Sender<Input>,
    counts: Arc<LoopCounts>,
}

impl Reader {
    fn run(self, wanted: &Receiver<Vec<MessageId>>) {
        for ids in wanted {
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

/// Many requests of ours at once; their answers in no order.
pub(crate) fn ask_all(
    core: &CoreHandle,
    hub: &Hub,
    events: impl IntoIterator<Item = impl FnOnce(ReplyTo) -> Event>,
) -> Option<Vec<Answer>> {
    let (link, mut door) = hub.add();
    let events: Vec<Event> = (0..).zip(events).map(|(token, event)| event(ReplyTo { link, token })).collect();
    let count = events.len();
    core.push(events);
    let mut answers = Vec::with_capacity(count);
    while answers.len() < count {
        let Some(deliveries) = door.blocking_recv() else {
            hub.remove(link);
            return None;
        };
        answers.extend(deliveries.into_iter().filter_map(|delivery| match delivery {
            Delivery::Answer { answer, .. } => Some(answer),
            _ => None,
        }));
    }
    hub.remove(link);
    Some(answers)
}

/// A request of ours to the engine that wants an answer: an admin's, for instance.
pub(crate) fn ask(core: &CoreHandle, hub: &Hub, event: impl FnOnce(ReplyTo) -> Event) -> Option<Answer> {
    let (link, mut door) = hub.add();
    core.push(vec![event(ReplyTo { link, token: 0 })]);
    let answer = door.blocking_recv().into_iter().flatten().find_map(|delivery| match delivery {
        Delivery::Answer { answer, .. } => Some(answer),
        _ => None,
    });
    hub.remove(link);
    answer
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use engine::Settings;

    /// A core of which nothing is written.
    pub(crate) fn alone() -> CoreHandle {
        let (CoreSeed { receiver, handle }, core) = seed();
        let (batches, written) = bounded(1);
        let engine = Engine::new(Settings::default());
        vital::spawn("core", move || {
            let _written = written;
            run(engine, Output::default(), handle.clock, &receiver, &batches);
        })
        .unwrap();
        core
    }

    #[test]
    fn a_core_that_does_not_answer_in_time_is_silent() {
        let (seed, core) = seed();
        assert!(!core.answers_within(Duration::from_millis(20)));
        drop(seed);
        assert!(!core.answers_within(Duration::from_secs(60)), "nobody is there to answer");
        assert!(alone().answers_within(Duration::from_secs(60)));
    }
    #[test]
    fn time_while_no_daemon_ran_makes_no_record_older() {
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

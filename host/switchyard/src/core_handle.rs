//! The handle of the core: events and queries for the engine's thread, its clock, and counters of its work.

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use engine::{Engine, EngineAnswer, Event, ReplyTo};
use model::{AgeClock, Moment, Now, Timestamp};
use ports::{EventSink, LinkCommand, LinkHandle, LinkRegistry, Protocol};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A query that runs on the engine's thread.
type EngineQuery = Box<dyn FnOnce(&Engine, Now) + Send>;

/// Input of the core loop.
pub(crate) enum Input {
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
        Self { started: Instant::now(), started_at: Timestamp::now() }
    }

    pub(crate) fn now(self) -> Now {
        // The extra hour allows monotonic times before the start.
        Now { wall: Timestamp::now(), mono: Moment(3_600_000 + millis(self.started.elapsed())) }
    }

    /// Wall-clock time for the ages of durable records. `newest` is the time of the newest record at startup.
    ///
    /// Downtime does not count, because the clock of a machine that has just booted may be wrong by days. After the
    /// start, this time follows the wall clock, but never advances by more than the elapsed time. So jumps of the wall
    /// clock do not age records.
    pub(crate) fn record_age_time(self, newest: Option<Timestamp>) -> Timestamp {
        let start = newest.map_or(self.started_at, |newest| newest.min(self.started_at));
        let ages = AgeClock::trusted(start);
        ages.now(self.started.elapsed(), Timestamp::now()).unwrap_or_default()
    }

    /// The wall clock at the start of the process.
    pub(crate) fn started_at(self) -> Timestamp {
        self.started_at
    }

    /// Microseconds since the start, plus one.
    pub(crate) fn micros(self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX - 1) + 1
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
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
    /// Start of the current commit in microseconds of [`CoreHandle::clock`], at least 1; 0 if there is none.
    pub(crate) commit_begun: AtomicU64,
    /// Start of the current batch, likewise, until its commands are sent.
    pub(crate) batch_begun: AtomicU64,
    pub(crate) disk_low: AtomicBool,
    pub(crate) disk_free: AtomicU64,
    /// Whether the file of text keys cannot be written.
    pub(crate) text_keys_failing: AtomicBool,
}

pub(crate) fn count(buckets: &[AtomicU64; 11], bounds: &[u64; 10], value: u64) {
    let bucket = bounds.iter().position(|bound| value <= *bound).unwrap_or(10);
    buckets[bucket].fetch_add(1, Relaxed);
}

/// Handle of the core.
#[derive(Clone)]
pub(crate) struct CoreHandle {
    pub(crate) input: Sender<Input>,
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

/// Channel of a core that is not started yet: the links need the handle before their registry exists.
pub(crate) struct CoreChannel {
    pub(crate) receiver: Receiver<Input>,
    pub(crate) handle: CoreHandle,
}

pub(crate) fn channel() -> (CoreChannel, CoreHandle) {
    let (input, receiver) = unbounded();
    let handle = CoreHandle { input, counts: Arc::default(), clock: Clock::new() };
    (CoreChannel { receiver, handle: handle.clone() }, handle)
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
mod tests {
    use super::*;

    #[test]
    fn downtime_does_not_age_records() {
        const WEEK: Duration = Duration::from_secs(7 * 86_400);
        let clock = Clock::new();
        let stopped_at = Timestamp(clock.started_at.0.saturating_sub(millis(WEEK)));
        let passed = clock.record_age_time(Some(stopped_at)).0 - stopped_at.0;
        assert!(passed <= millis(clock.started.elapsed()), "{passed} ms");
        assert!(clock.record_age_time(None) >= clock.started_at);
        let early_clock = clock.started_at + WEEK;
        assert!(clock.record_age_time(Some(early_clock)) < early_clock);
    }
}

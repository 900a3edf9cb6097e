//! State of a sink, for the API and the metrics.

use api::{EventSinkView, PumpState};
use journal::Seq;
use model::Timestamp;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// State of a sink, with counters since the start of the daemon.
#[derive(Debug)]
pub(crate) struct SinkMonitor {
    state: Mutex<CurrentState>,
    sent: AtomicU64,
    failed: AtomicU64,
    gaps: AtomicU64,
    lost_records: AtomicU64,
    /// The last record whose events were all accepted.
    position: AtomicU64,
    /// Time at which the oldest record with waiting events was appended; 0 if unknown.
    waiting_since: AtomicU64,
}

#[derive(Debug, Clone)]
struct CurrentState {
    state: PumpState,
    error: Option<String>,
    success: Option<Instant>,
}

impl SinkMonitor {
    pub(crate) fn new(position: Seq) -> Self {
        let state = CurrentState { state: PumpState::Starting, error: None, success: None };
        Self {
            state: Mutex::new(state),
            sent: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
            lost_records: AtomicU64::new(0),
            position: AtomicU64::new(position.0),
            waiting_since: AtomicU64::new(0),
        }
    }

    /// Counts accepted events. Returns whether the sink was down before.
    pub(crate) fn up(&self, events: usize) -> bool {
        self.sent.fetch_add(events as u64, Relaxed);
        let up = CurrentState { state: PumpState::Up, error: None, success: Some(Instant::now()) };
        std::mem::replace(&mut *self.state.lock(), up).state == PumpState::Down
    }

    /// Records a failure. Returns whether the sink was not down before.
    pub(crate) fn down(&self, why: &str) -> bool {
        self.failed.fetch_add(1, Relaxed);
        let mut state = self.state.lock();
        state.error = Some(why.to_owned());
        std::mem::replace(&mut state.state, PumpState::Down) != PumpState::Down
    }

    pub(crate) fn gap(&self, records: u64) {
        self.gaps.fetch_add(1, Relaxed);
        self.lost_records.fetch_add(records, Relaxed);
    }

    /// Events of records from this time on are not accepted yet.
    pub(crate) fn waits_since(&self, at: Timestamp) {
        self.waiting_since.store(at.0.max(1), Relaxed);
    }

    pub(crate) fn set_position(&self, position: Seq) {
        self.position.store(position.0, Relaxed);
    }

    /// All events up to the end of the journal are accepted.
    pub(crate) fn caught_up(&self) {
        self.waiting_since.store(0, Relaxed);
    }

    pub(crate) fn view(&self, (name, kind): (&str, &str), head: Seq, now: Timestamp) -> EventSinkView {
        let CurrentState { state, error, success } = self.state.lock().clone();
        let waiting_since = self.waiting_since.load(Relaxed);
        let lag = if waiting_since == 0 { 0 } else { now.0.saturating_sub(waiting_since) };
        let position = self.position.load(Relaxed);
        EventSinkView {
            name: name.to_owned(),
            kind: kind.to_owned(),
            state,
            error,
            sent: self.sent.load(Relaxed),
            failed: self.failed.load(Relaxed),
            lag_records: head.0.saturating_sub(position),
            lag: Duration::from_millis(lag).into(),
            gaps: self.gaps.load(Relaxed),
            lost_records: self.lost_records.load(Relaxed),
            position,
            since_success: success.map(|at| at.elapsed().into()),
        }
    }
}

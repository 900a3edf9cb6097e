use api::{ArchivePumpView, PumpState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The state of the pump, the error of the database if it is down, and the time of the last success.
#[derive(Debug, Clone)]
struct CurrentState {
    state: PumpState,
    error: Option<String>,
    success: Option<Instant>,
}

/// The pump's state, and counts since its start.
#[derive(Debug)]
pub(crate) struct PumpMonitor {
    state: Mutex<CurrentState>,
    pub(crate) archived: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) trimmed: AtomicU64,
    pub(crate) contents_erased: AtomicU64,
    last_batch: AtomicU64,
}

impl PumpMonitor {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(CurrentState { state: PumpState::Starting, error: None, success: None }),
            archived: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            trimmed: AtomicU64::new(0),
            contents_erased: AtomicU64::new(0),
            last_batch: AtomicU64::new(0),
        }
    }

    /// Records a success. Returns whether the database was not up before.
    pub(crate) fn up(&self) -> bool {
        let up = CurrentState { state: PumpState::Up, error: None, success: Some(Instant::now()) };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *state, up).state != PumpState::Up
    }

    /// Records a failure. Returns whether the database was not down before.
    pub(crate) fn down(&self, why: &str) -> bool {
        self.failures.fetch_add(1, Relaxed);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.error = Some(why.to_owned());
        std::mem::replace(&mut state.state, PumpState::Down) != PumpState::Down
    }

    pub(crate) fn batch(&self, rows: usize, took: Duration) {
        self.archived.fetch_add(rows as u64, Relaxed);
        self.batches.fetch_add(1, Relaxed);
        self.last_batch.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn since_success(&self) -> Option<Duration> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).success.map(|at| at.elapsed())
    }

    pub(crate) fn read(&self, backlog: u64) -> ArchivePumpView {
        let CurrentState { state, error, success } =
            self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ArchivePumpView {
            state,
            error,
            archived: self.archived.load(Relaxed),
            batches: self.batches.load(Relaxed),
            failures: self.failures.load(Relaxed),
            refused: self.refused.load(Relaxed),
            trimmed: self.trimmed.load(Relaxed),
            contents_erased: self.contents_erased.load(Relaxed),
            overwriting: false,
            backlog,
            since_success: success.map(|at| at.elapsed().into()),
            last_batch: Duration::from_micros(self.last_batch.load(Relaxed)).into(),
        }
    }
}

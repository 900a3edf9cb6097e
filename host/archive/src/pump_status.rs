use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The state of the pump.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "state", content = "error", rename_all = "snake_case")]
pub enum PumpState {
    /// It has not reached the database yet.
    Starting,
    /// The database works.
    Up,
    /// The database is down, with the error.
    Down(String),
}

/// Statistics of the pump since its start.
#[derive(Debug, Clone, serde::Serialize)]
pub struct PumpStatus {
    /// The state.
    #[serde(flatten)]
    pub state: PumpState,
    /// Messages archived, without those that were already in the table after a crash.
    pub archived: u64,
    /// Transactions committed.
    pub batches: u64,
    /// Failed attempts: connections, transactions, reads and removals.
    pub failures: u64,
    /// Messages that the database rejects. They stay in the source and are retried.
    pub refused: u64,
    /// Messages deleted for their age.
    pub trimmed: u64,
    /// Messages waiting to be archived.
    pub backlog: u64,
    /// Time since the last success; `None` if there was none.
    pub since_success: Option<Duration>,
    /// Duration of the last transaction.
    pub last_batch: Duration,
}

#[derive(Debug)]
pub(crate) struct PumpMonitor {
    state: Mutex<(PumpState, Option<Instant>)>,
    pub(crate) archived: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) trimmed: AtomicU64,
    last_batch: AtomicU64,
}

impl PumpMonitor {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new((PumpState::Starting, None)),
            archived: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            trimmed: AtomicU64::new(0),
            last_batch: AtomicU64::new(0),
        }
    }

    /// Records a success. Returns whether the database was not up before.
    pub(crate) fn up(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *state, (PumpState::Up, Some(Instant::now())));
        before.0 != PumpState::Up
    }

    /// Records a failure. Returns whether the database was not down before.
    pub(crate) fn down(&self, why: &str) -> bool {
        self.failures.fetch_add(1, Relaxed);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let was_down = matches!(state.0, PumpState::Down(_));
        state.0 = PumpState::Down(why.to_owned());
        !was_down
    }

    pub(crate) fn batch(&self, rows: usize, took: Duration) {
        self.archived.fetch_add(rows as u64, Relaxed);
        self.batches.fetch_add(1, Relaxed);
        self.last_batch.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn since_success(&self) -> Option<Duration> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.map(|at| at.elapsed())
    }

    pub(crate) fn read(&self, backlog: u64) -> PumpStatus {
        let (state, success) = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        PumpStatus {
            state,
            archived: self.archived.load(Relaxed),
            batches: self.batches.load(Relaxed),
            failures: self.failures.load(Relaxed),
            refused: self.refused.load(Relaxed),
            trimmed: self.trimmed.load(Relaxed),
            backlog,
            since_success: success.map(|at| at.elapsed()),
            last_batch: Duration::from_micros(self.last_batch.load(Relaxed)),
        }
    }
}

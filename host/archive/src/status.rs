use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Whether the pump works.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "state", content = "error", rename_all = "snake_case")]
pub enum State {
    /// It has not reached the data base yet.
    Starting,
    /// The data base takes what it is given.
    Up,
    /// It does not; the text says why.
    Down(String),
}

/// What the pump has done since it was started.
#[derive(Debug, Clone, serde::Serialize)]
pub struct PumpStatus {
    /// Whether it works.
    #[serde(flatten)]
    pub state: State,
    /// Messages put into the table. Those that were there already, after a crash, do not count.
    pub archived: u64,
    /// Transactions that did so.
    pub batches: u64,
    /// Attempts that failed: connections, transactions, reads and removals.
    pub failures: u64,
    /// Messages that the data base refuses by themselves. They stay in the queues' store and are tried again.
    pub refused: u64,
    /// Messages deleted for their age.
    pub trimmed: u64,
    /// Messages that wait to be archived.
    pub backlog: u64,
    /// Since the data base last did what it should; `None` if it never did.
    pub since_success: Option<Duration>,
    /// What the last transaction took.
    pub last_batch: Duration,
}

#[derive(Debug)]
pub(crate) struct Status {
    state: Mutex<(State, Option<Instant>)>,
    pub(crate) archived: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) trimmed: AtomicU64,
    last_batch: AtomicU64,
}

impl Status {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new((State::Starting, None)),
            archived: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            trimmed: AtomicU64::new(0),
            last_batch: AtomicU64::new(0),
        }
    }

    /// The data base did something; says whether it was down before.
    pub(crate) fn up(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *state, (State::Up, Some(Instant::now())));
        before.0 != State::Up
    }

    /// It did not; says whether that is new.
    pub(crate) fn down(&self, why: &str) -> bool {
        self.failures.fetch_add(1, Relaxed);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let was_down = matches!(state.0, State::Down(_));
        state.0 = State::Down(why.to_owned());
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

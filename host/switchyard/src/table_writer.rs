//! The thread that brings the tables up to the journal.

use crate::critical_thread::fail_stop;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;

/// Keeps the tables behind the journal: readers apply pending changes too, but nobody else makes them durable.
pub(crate) struct TableWriter {
    pub(crate) store: Arc<Store>,
}

/// The tables are looked after so often.
const TABLES_INTERVAL: Duration = Duration::from_millis(20);
/// The niceness of the thread: the tables need not keep up with a peak. Readers wait for it at times, so that it gets a third
/// of what other threads get, and not a tenth.
const TABLES_NICE: i32 = 5;
/// Pending changes are applied after this time, or as soon as there are so many. What has ended by then is merged.
const APPLY_INTERVAL: Duration = Duration::from_millis(200);
const APPLY_CHANGES: usize = 10_000;
/// The tables are made durable after this time, or after so many changes: the disk must not be busy with them for long,
/// because the journal waits for it too. A start replays what is not durable: so many changes take milliseconds.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);
const CHECKPOINT_CHANGES: usize = 10_000;

impl TableWriter {
    /// Runs until `stop` is closed.
    pub(crate) fn run(self, stop: &Receiver<()>) {
        // Answers do not wait for the tables: on a busy machine the other threads go first.
        if let Err(error) = rustix::process::setpriority_process(None, TABLES_NICE) {
            tracing::warn!(%error, "thread priority unchanged");
        }
        let (mut applied_at, mut durable_at) = (Instant::now(), Instant::now());
        let mut applied = 0;
        while stop.recv_timeout(TABLES_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let pending = self.store.pending_changes();
            if pending < APPLY_CHANGES && applied_at.elapsed() < APPLY_INTERVAL {
                continue;
            }
            applied += pending;
            let is_due = applied >= CHECKPOINT_CHANGES || durable_at.elapsed() >= CHECKPOINT_INTERVAL;
            let done = if is_due { self.store.checkpoint() } else { self.store.apply() };
            if let Err(error) = done {
                fail_stop(&error);
            }
            applied_at = Instant::now();
            if is_due {
                (applied, durable_at) = (0, applied_at);
            }
        }
    }
}

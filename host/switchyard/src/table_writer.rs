//! The thread that applies the journal to the tables.

use crate::critical_thread::fail_stop;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;

/// Applies changes and makes the tables durable. Readers apply pending changes too, but only this thread makes them
/// durable.
pub(crate) struct TableWriter {
    pub(crate) store: Arc<Store>,
}

/// Interval at which the thread checks the tables.
const TABLES_INTERVAL: Duration = Duration::from_millis(20);
/// Niceness of the thread: the tables need not keep up with a peak. Readers sometimes wait for the thread, so it gets a
/// third of the CPU share of other threads, and not a tenth.
const TABLES_NICE: i32 = 5;
/// Pending changes are applied after this time, or from [`APPLY_CHANGES`] changes on. Changes of messages that end
/// before that are merged.
const APPLY_INTERVAL: Duration = Duration::from_millis(200);
const APPLY_CHANGES: usize = 10_000;
/// The tables are made durable after this time, or from [`CHECKPOINT_CHANGES`] changes on: the disk must not be busy
/// for long, because the journal waits for it too. A start replays changes that are not durable: this number takes
/// milliseconds.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);
const CHECKPOINT_CHANGES: usize = 10_000;

impl TableWriter {
    /// Runs until `stop` is closed.
    pub(crate) fn run(self, stop: &Receiver<()>) {
        // Answers do not wait for the tables: on a busy machine, other threads come first.
        if let Err(error) = rustix::process::setpriority_process(None, TABLES_NICE) {
            tracing::warn!(%error, "thread priority unchanged");
        }
        let (mut applied_at, mut durable_at) = (Instant::now(), Instant::now());
        let mut applied = 0;
        while stop.recv_timeout(TABLES_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let pending = self.store.pending_changes();
            if pending < APPLY_CHANGES && applied_at.elapsed() < APPLY_INTERVAL {
                // Soon, while they are in the processor's caches.
                self.store.merge();
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

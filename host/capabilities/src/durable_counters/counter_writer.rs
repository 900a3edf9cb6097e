use super::{ChangedCount, DurableCounters};
use crate::{Error, RedbKvStore};
use model::Timestamp;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The writer collects changed counts for this long before it writes them.
const INTERVAL: Duration = Duration::from_millis(100);
/// Delay after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Minimum time between two log lines about failures.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of counts in one transaction. A plugin that sets a value meanwhile waits for one batch at most.
const BATCH: usize = 4_096;

/// Wakes the writer at the first change after its last visit.
#[derive(Debug, Default)]
pub(super) struct WakeSignal {
    raised: AtomicBool,
    state: Mutex<WakeState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WakeState {
    raised: bool,
    ended: bool,
}

impl WakeSignal {
    /// Cheap if the signal is already raised.
    pub(super) fn raise(&self) {
        if !self.raised.load(Ordering::Relaxed) && !self.raised.swap(true, Ordering::AcqRel) {
            self.state.lock().raised = true;
            self.changed.notify_one();
        }
    }

    fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits for the signal, and then for `delay`. Returns `false` after the end.
    fn wait(&self, delay: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| !state.raised && !state.ended);
        self.changed.wait_while_for(&mut state, |state| !state.ended, delay);
        state.raised = false;
        // Clear the signal before the counts are read: a change after this raises it again.
        self.raised.store(false, Ordering::Release);
        !state.ended
    }
}

/// Writes changed counts and deferred values to the plugins' store, in the background.
#[derive(Debug)]
pub struct CounterWriter {
    counters: Arc<DurableCounters>,
    values: Arc<RedbKvStore>,
    flushing: Mutex<()>,
}

impl CounterWriter {
    /// Creates a writer. It writes nothing before [`Self::run`] or [`Self::flush`]. Values are deferred from now on.
    #[must_use]
    pub fn new(counters: Arc<DurableCounters>, values: Arc<RedbKvStore>) -> Self {
        let wake = counters.wake.clone();
        values.defer_changes(move || wake.raise());
        Self { counters, values, flushing: Mutex::default() }
    }

    /// Writes changed counts and deferred values about every 100 ms until [`Self::end`], then writes the rest. Call it on a dedicated
    /// thread.
    pub fn run(&self) {
        let mut delay = INTERVAL;
        let mut logged: Option<Instant> = None;
        loop {
            let running = self.counters.wake.wait(delay);
            delay = INTERVAL;
            if let Err(error) = self.flush() {
                delay = RETRY_DELAY;
                if !running || logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
                    logged = Some(Instant::now());
                    let failures = self.counters.write_failures();
                    tracing::error!(%error, failures, "counters and values of plugins not written; a restart would lose them");
                }
                self.counters.wake.raise();
            }
            if !running {
                return;
            }
        }
    }

    /// Ends [`Self::run`], which then writes the rest.
    pub fn end(&self) {
        self.counters.wake.end();
    }

    /// Writes all deferred values and changed counts, and deletes counts of past periods. Blocks on the disk.
    ///
    /// # Errors
    /// The file failed. Unwritten changes wait for the next attempt.
    pub fn flush(&self) -> Result<(), Error> {
        let _flushing = self.flushing.lock();
        let written = self.values.write_deferred();
        let flushed = written.and_then(|()| self.write_changed()).and_then(|()| self.delete_expired());
        if flushed.is_err() {
            self.counters.write_failures.fetch_add(1, Ordering::Relaxed);
        }
        flushed
    }

    fn write_changed(&self) -> Result<(), Error> {
        let counters = self.counters.all();
        loop {
            let mut changed: Vec<ChangedCount> = Vec::new();
            for counter in &counters {
                counter.drain_changed(BATCH - changed.len(), &mut changed);
            }
            if changed.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.values.write_counts(changed.iter().map(ChangedCount::row)) {
                for one in changed {
                    one.counter.mark_dirty(one.key, one.period);
                }
                return Err(error);
            }
            // Counts that change during the write are written next time.
            if changed.len() < BATCH {
                return Ok(());
            }
        }
    }

    fn delete_expired(&self) -> Result<(), Error> {
        for counter in self.counters.all() {
            let rolled_over_at = counter.rolled_over_at.swap(0, Ordering::AcqRel);
            if rolled_over_at == 0 {
                continue;
            }
            // Idle shards would otherwise keep the memory and the rows of past periods.
            counter.roll_over_all(Timestamp(rolled_over_at));
            let keep = counter.period_starts();
            let (plugin, name, calendar) = (&counter.plugin, &counter.name, &counter.calendar_text);
            loop {
                match self.values.delete_counts_outside(plugin, name, calendar, &keep) {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(error) => {
                        counter.rolled_over_at.store(rolled_over_at, Ordering::Release);
                        return Err(error);
                    }
                }
            }
            // `roll_over_all` has set it again, for the rows that are deleted now.
            let _ = counter.rolled_over_at.compare_exchange(
                rolled_over_at,
                0,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
        Ok(())
    }
}

use super::{Changed, DurableCounters};
use crate::{Error, KeyValues};
use model::Timestamp;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long changed counts are collected before they are written.
const INTERVAL: Duration = Duration::from_millis(100);
/// How long the writer waits after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Time between two log lines on failures.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Counts of one transaction: a plugin that sets a value in the meantime waits no longer than for so many.
const MOST: usize = 4_096;

/// Wakes the writer when something changes for the first time since it looked.
#[derive(Debug, Default)]
pub(super) struct Wake {
    raised: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    raised: bool,
    ended: bool,
}

impl Wake {
    /// Cheap when it was raised already.
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

    /// Waits until it is raised, and for `collect` after that. `false`: it has ended.
    fn wait(&self, collect: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| !state.raised && !state.ended);
        self.changed.wait_while_for(&mut state, |state| !state.ended, collect);
        state.raised = false;
        // Before the counts are looked at: a change after this raises it again.
        self.raised.store(false, Ordering::Release);
        !state.ended
    }
}

/// Writes changed counts to the plugins' values, in the background.
#[derive(Debug)]
pub struct CounterWriter {
    counters: Arc<DurableCounters>,
    values: Arc<KeyValues>,
    flushing: Mutex<()>,
}

impl CounterWriter {
    /// Writes nothing before [`Self::run`] or [`Self::flush`].
    #[must_use]
    pub fn new(counters: Arc<DurableCounters>, values: Arc<KeyValues>) -> Self {
        Self { counters, values, flushing: Mutex::default() }
    }

    /// Writes changed counts about every 100 ms, until [`Self::end`]; then everything that is left. For a thread of its own.
    pub fn run(&self) {
        let mut collect = INTERVAL;
        let mut logged: Option<Instant> = None;
        loop {
            let goes_on = self.counters.wake.wait(collect);
            collect = INTERVAL;
            if let Err(error) = self.flush() {
                collect = AFTER_FAILURE;
                if !goes_on || logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
                    logged = Some(Instant::now());
                    let failures = self.counters.write_failures();
                    tracing::error!(%error, failures, "durable counters are not written; a restart would lose counts");
                }
                self.counters.wake.raise();
            }
            if !goes_on {
                return;
            }
        }
    }

    /// Ends [`Self::run`], which writes everything that is left.
    pub fn end(&self) {
        self.counters.wake.end();
    }

    /// Writes all changed counts, and deletes those of past periods. Waits for the disk.
    ///
    /// # Errors
    /// The file failed. What is not written stays to be written.
    pub fn flush(&self) -> Result<(), Error> {
        let _flushing = self.flushing.lock();
        let flushed = self.write().and_then(|()| self.delete_past());
        if flushed.is_err() {
            self.counters.write_failures.fetch_add(1, Ordering::Relaxed);
        }
        flushed
    }

    fn write(&self) -> Result<(), Error> {
        let counters = self.counters.all();
        loop {
            let mut changed: Vec<Changed> = Vec::new();
            for counter in &counters {
                counter.take_changed(MOST - changed.len(), &mut changed);
            }
            if changed.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.values.write_counts(changed.iter().map(Changed::row)) {
                for one in changed {
                    one.counter.take_back(one.key, one.period);
                }
                return Err(error);
            }
            // What has changed while this was written is written the next time.
            if changed.len() < MOST {
                return Ok(());
            }
        }
    }

    fn delete_past(&self) -> Result<(), Error> {
        for counter in self.counters.all() {
            let turned = counter.turned.swap(0, Ordering::AcqRel);
            if turned == 0 {
                continue;
            }
            // Shards that nobody has asked since then keep memory and rows of the past otherwise.
            counter.turn_all(Timestamp(turned));
            let keep = counter.starts();
            let (plugin, name, calendar) = (&counter.plugin, &counter.name, &counter.calendar_text);
            loop {
                match self.values.purge_counts(plugin, name, calendar, &keep) {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(error) => {
                        counter.turned.store(turned, Ordering::Release);
                        return Err(error);
                    }
                }
            }
            // `turn_all` has set it again, for what is deleted now.
            let _ = counter.turned.compare_exchange(turned, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
        Ok(())
    }
}

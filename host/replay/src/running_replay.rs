use crate::ReplayError;
use crate::batch_tally::{BatchTally, Comparer};
use crate::candidate::Candidate;
use crate::message_source::{MessageBatch, MessageSource};
use crate::summary::Summary;
use crate::throughput::{WorkTimes, thread_cpu_time};
use api::{ReplayOutcome, ReplayProgress, ReplayReport};
use archive::{ArchivedMessage, DecisionDecoder};
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Instant;

/// Options of a replay, with usable defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Number of comparing threads, at least 1. One more thread reads.
    pub threads: usize,
    /// Maximum number of groups; the groups whose first message has the lowest ids are kept.
    pub groups: usize,
    /// Maximum number of examples of a group.
    pub examples: usize,
    /// Maximum number of accounts with their own prices.
    pub accounts: usize,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self { threads: 1, groups: 1000, examples: 5, accounts: 20 }
    }
}

/// A running replay. Dropping it cancels the replay.
#[derive(Debug)]
pub struct RunningReplay {
    shared: Arc<ReplayState>,
}

/// The shared state of a replay's threads.
#[derive(Debug)]
struct ReplayState {
    cancelled: AtomicBool,
    read: AtomicU64,
    compared: AtomicU64,
    different: AtomicU64,
    /// `u64::MAX`: unknown.
    expected: AtomicU64,
    merging: Mutex<MergeQueue>,
    /// Notified when a batch was merged, and at cancellation.
    merged: Condvar,
    report: Mutex<Option<Arc<ReplayReport>>>,
    reported: Condvar,
}

/// Tallies to be merged into the summary.
#[derive(Debug)]
struct MergeQueue {
    summary: Summary,
    /// The number of the next batch.
    next: u64,
    /// Finished tallies of later batches.
    pending: BTreeMap<u64, BatchTally>,
    times: WorkTimes,
}

/// Maximum number of batches in flight in addition to one per thread: batches that wait for a thread, or for a slower
/// earlier batch.
const EXTRA_BATCHES: u64 = 8;

impl ReplayOptions {
    /// Starts a replay of all of `source` through `candidate`.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(
        self,
        source: impl MessageSource,
        candidate: &Arc<dyn Candidate>,
    ) -> Result<RunningReplay, ReplayError> {
        let shared = Arc::new(ReplayState {
            cancelled: AtomicBool::new(false),
            read: AtomicU64::new(0),
            compared: AtomicU64::new(0),
            different: AtomicU64::new(0),
            expected: AtomicU64::new(u64::MAX),
            merging: Mutex::new(MergeQueue {
                summary: Summary::new(self.groups, self.examples),
                next: 0,
                pending: BTreeMap::new(),
                times: WorkTimes::default(),
            }),
            merged: Condvar::new(),
            report: Mutex::new(None),
            reported: Condvar::new(),
        });
        // From here on, an error cancels the threads that already run.
        let running = RunningReplay { shared: shared.clone() };
        let threads = self.threads.max(1);
        let started = Instant::now();
        let (batches, batch_receiver) = bounded(threads);
        let workers = (0..threads)
            .map(|_| {
                let (shared, batches) = (shared.clone(), batch_receiver.clone());
                let comparer = Comparer::new(candidate.clone(), self.examples);
                spawn("replay-compare", move || shared.compare_batches(comparer, &batches))
            })
            .collect::<Result<Vec<_>, _>>()?;
        drop(batch_receiver);
        spawn("replay-read", move || {
            let read_result = shared.read_batches(source, &batches, threads as u64 + EXTRA_BATCHES);
            drop(batches);
            shared.finish(self, read_result, workers, started);
        })?;
        Ok(running)
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, ReplayError> {
    let low = move || {
        // Traffic takes precedence. Threads that a database driver starts inherit this priority.
        if let Err(error) = rustix::process::setpriority_process(None, 10) {
            tracing::debug!(%error, "replay runs at normal priority");
        }
        work();
    };
    std::thread::Builder::new().name(name.into()).spawn(low).map_err(ReplayError::Thread)
}

impl RunningReplay {
    /// The progress so far.
    #[must_use]
    pub fn progress(&self) -> ReplayProgress {
        let expected = self.shared.expected.load(Relaxed);
        ReplayProgress {
            read: self.shared.read.load(Relaxed),
            compared: self.shared.compared.load(Relaxed),
            different: self.shared.different.load(Relaxed),
            expected: (expected < u64::MAX).then_some(expected),
            ended: self.shared.report.lock().is_some(),
        }
    }

    /// Cancels the replay: each thread finishes its current message. The report then covers the messages that were
    /// compared.
    pub fn cancel(&self) {
        self.shared.cancel();
    }

    /// The report, once it exists.
    #[must_use]
    pub fn report(&self) -> Option<Arc<ReplayReport>> {
        self.shared.report.lock().clone()
    }

    /// Waits for the report.
    #[must_use]
    pub fn wait(&self) -> Arc<ReplayReport> {
        let mut report = self.shared.report.lock();
        loop {
            if let Some(report) = &*report {
                return report.clone();
            }
            self.shared.reported.wait(&mut report);
        }
    }
}

impl Drop for RunningReplay {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl ReplayState {
    fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
        // Take the lock, so that no thread is between its check and its wait.
        let _merging = self.merging.lock();
        self.merged.notify_all();
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// Reads batches and sends them to the comparing threads, with numbers. Waits while too many are in flight. Returns
    /// the number of batches, and how the reading ended.
    fn read_batches(
        &self,
        mut source: impl MessageSource,
        batches: &Sender<(u64, MessageBatch)>,
        limit: u64,
    ) -> (u64, ReplayOutcome) {
        let mut number = 0;
        loop {
            let mut merging = self.merging.lock();
            while number >= merging.next + limit && !self.is_cancelled() {
                self.merged.wait(&mut merging);
            }
            drop(merging);
            if self.is_cancelled() {
                break;
            }
            let started = Instant::now();
            // If a source panics, callers that wait for the report must not wait forever.
            let batch = catch_unwind(AssertUnwindSafe(|| source.next()))
                .unwrap_or_else(|_| Err("the source panicked".into()));
            self.merging.lock().times.reading += started.elapsed();
            let batch = match batch {
                Ok(Some(batch)) => batch,
                Ok(None) => return (number, ReplayOutcome::Complete),
                Err(error) => {
                    tracing::warn!(%error, "replay source failed");
                    return (number, ReplayOutcome::Failed { why: error.to_string() });
                }
            };
            let read = self.read.fetch_add(batch.len() as u64, Relaxed) + batch.len() as u64;
            if let Some(left) = source.expected() {
                self.expected.store(read.saturating_add(left), Relaxed);
            }
            if batches.send((number, batch)).is_err() {
                break;
            }
            number += 1;
        }
        (number, ReplayOutcome::Cancelled)
    }

    /// Compares batches until there are no more.
    fn compare_batches(&self, mut comparer: Comparer, batches: &Receiver<(u64, MessageBatch)>) {
        let _cancel_on_panic = CancelOnPanic(self);
        let mut decoder = DecisionDecoder::new();
        let mut messages: Vec<ArchivedMessage> = Vec::new();
        while let Ok((number, batch)) = batches.recv() {
            if self.is_cancelled() {
                return;
            }
            let started = thread_cpu_time();
            let damaged = decode(batch, &mut decoder, &mut messages);
            let decoded_at = thread_cpu_time();
            let Some(mut tally) = comparer.compare_batch(&mut messages, &|| self.is_cancelled()) else {
                return;
            };
            let compared_at = thread_cpu_time();
            tally.damaged = damaged;
            self.compared.fetch_add(tally.messages, Relaxed);
            self.different.fetch_add(tally.messages - tally.same, Relaxed);
            let mut merging = self.merging.lock();
            merging.times.decoding += decoded_at.saturating_sub(started);
            merging.times.comparing += compared_at.saturating_sub(decoded_at);
            merging.take(number, tally);
            self.merged.notify_all();
        }
    }

    /// Waits for the comparing threads and creates the report.
    fn finish(
        &self,
        options: ReplayOptions,
        read_result: (u64, ReplayOutcome),
        workers: Vec<JoinHandle<()>>,
        started: Instant,
    ) {
        let threads = workers.len();
        let mut panicked = false;
        for worker in workers {
            panicked |= worker.join().is_err();
        }
        let elapsed = started.elapsed();
        let mut merging = self.merging.lock();
        let ended = match read_result {
            _ if panicked => ReplayOutcome::Failed { why: "a thread of the replay panicked".to_owned() },
            (batches, ReplayOutcome::Complete) if merging.next < batches => ReplayOutcome::Cancelled,
            (_, ended) => ended,
        };
        let empty = Summary::new(0, 0);
        let summary = std::mem::replace(&mut merging.summary, empty);
        let report = summary.report(ended, options.accounts, threads, elapsed, merging.times);
        drop(merging);
        *self.report.lock() = Some(Arc::new(report));
        self.reported.notify_all();
    }
}

/// Cancels the replay if a comparing thread panics: its batch will never be merged.
struct CancelOnPanic<'a>(&'a ReplayState);

impl Drop for CancelOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

impl MergeQueue {
    /// Merges a batch when it is next in order.
    fn take(&mut self, number: u64, tally: BatchTally) {
        self.pending.insert(number, tally);
        while let Some(tally) = self.pending.remove(&self.next) {
            self.summary.add(tally);
            self.next += 1;
        }
    }
}

/// Decodes a batch. Returns the number of unreadable messages.
fn decode(batch: MessageBatch, decoder: &mut DecisionDecoder, messages: &mut Vec<ArchivedMessage>) -> u64 {
    messages.clear();
    match batch {
        MessageBatch::Ready(ready) => {
            *messages = ready;
            0
        }
        MessageBatch::Raw(batch) => {
            let mut damaged = 0;
            for message in batch.decode(decoder) {
                match message {
                    Ok(message) => messages.push(message),
                    Err(error) => {
                        tracing::warn!(%error, "message not replayable");
                        damaged += 1;
                    }
                }
            }
            damaged
        }
    }
}

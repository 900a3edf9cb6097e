use crate::ReplayError;
use crate::candidate::Candidate;
use crate::pace::{Times, processor_time};
use crate::report::{Ended, Report};
use crate::source::{Batch, Source};
use crate::summary::Summary;
use crate::tally::{Judge, Tally};
use archive::{ArchivedMessage, Decoder};
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Instant;

/// How a replay is done. The defaults are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// Threads that judge; at least 1. One more reads.
    pub threads: usize,
    /// Groups that are told apart, at most; those that begin with the lowest ids.
    pub groups: usize,
    /// Examples of a group, at most.
    pub examples: usize,
    /// Accounts whose prices are shown, at most.
    pub accounts: usize,
}

impl Default for Replay {
    fn default() -> Self {
        Self { threads: 1, groups: 1000, examples: 5, accounts: 20 }
    }
}

/// A replay at work. It ends by itself; to drop it is to cancel it.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
}

/// How far a replay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Progress {
    /// Messages read so far.
    pub read: u64,
    /// Messages judged so far.
    pub judged: u64,
    /// Of those: the candidate decides otherwise.
    pub different: u64,
    /// Messages in all, at most; `None` where that is not known (yet).
    pub expected: Option<u64>,
    /// Whether there is a report.
    pub ended: bool,
}

/// What the threads of a replay have in common.
#[derive(Debug)]
struct Shared {
    cancelled: AtomicBool,
    read: AtomicU64,
    judged: AtomicU64,
    different: AtomicU64,
    /// `u64::MAX`: not known.
    expected: AtomicU64,
    merging: Mutex<Merging>,
    /// A batch was merged, or nothing is to be waited for any more.
    merged: Condvar,
    report: Mutex<Option<Arc<Report>>>,
    reported: Condvar,
}

/// Tallies on their way into the summary.
#[derive(Debug)]
struct Merging {
    summary: Summary,
    /// The batch that is next.
    next: u64,
    /// Those after it that are done already.
    early: BTreeMap<u64, Tally>,
    times: Times,
}

/// Batches on their way, beyond one for each thread: those that wait to be judged, or to be merged behind a slower one.
const AHEAD: u64 = 8;

impl Replay {
    /// Begins: all of `source` through `candidate`.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(self, source: impl Source, candidate: &Arc<dyn Candidate>) -> Result<Running, ReplayError> {
        let shared = Arc::new(Shared {
            cancelled: AtomicBool::new(false),
            read: AtomicU64::new(0),
            judged: AtomicU64::new(0),
            different: AtomicU64::new(0),
            expected: AtomicU64::new(u64::MAX),
            merging: Mutex::new(Merging {
                summary: Summary::new(self.groups, self.examples),
                next: 0,
                early: BTreeMap::new(),
                times: Times::default(),
            }),
            merged: Condvar::new(),
            report: Mutex::new(None),
            reported: Condvar::new(),
        });
        // From here on, whatever goes wrong cancels what runs already.
        let running = Running { shared: shared.clone() };
        let threads = self.threads.max(1);
        let begun = Instant::now();
        let (batches, judges) = bounded(threads);
        let workers = (0..threads)
            .map(|_| {
                let (shared, batches) = (shared.clone(), judges.clone());
                let judge = Judge::new(candidate.clone(), self.examples);
                spawn("replay-judge", move || shared.judge(judge, &batches))
            })
            .collect::<Result<Vec<_>, _>>()?;
        drop(judges);
        spawn("replay-read", move || {
            let fed = shared.feed(source, &batches, threads as u64 + AHEAD);
            drop(batches);
            shared.finish(self, fed, workers, begun);
        })?;
        Ok(running)
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, ReplayError> {
    let low = move || {
        // Traffic comes first; threads that a data base's driver makes inherit it.
        if let Err(error) = rustix::process::setpriority_process(None, 10) {
            tracing::debug!(%error, "a replay runs with ordinary priority");
        }
        work();
    };
    std::thread::Builder::new().name(name.into()).spawn(low).map_err(ReplayError::Thread)
}

impl Running {
    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let expected = self.shared.expected.load(Relaxed);
        Progress {
            read: self.shared.read.load(Relaxed),
            judged: self.shared.judged.load(Relaxed),
            different: self.shared.different.load(Relaxed),
            expected: (expected < u64::MAX).then_some(expected),
            ended: self.shared.report.lock().is_some(),
        }
    }

    /// Ends it soon: each thread finishes the message at hand. The report then tells of what was done.
    pub fn cancel(&self) {
        self.shared.cancel();
    }

    /// The report, once there is one.
    #[must_use]
    pub fn report(&self) -> Option<Arc<Report>> {
        self.shared.report.lock().clone()
    }

    /// Waits for the report.
    #[must_use]
    pub fn wait(&self) -> Arc<Report> {
        let mut report = self.shared.report.lock();
        loop {
            if let Some(report) = &*report {
                return report.clone();
            }
            self.shared.reported.wait(&mut report);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Shared {
    fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
        // With the lock, so that nobody is between looking and waiting.
        let _merging = self.merging.lock();
        self.merged.notify_all();
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// Reads batches, and gives them to the judges with their numbers; no more of them at a time than there is room for.
    /// Says how many it gave, and why it ended.
    fn feed(&self, mut source: impl Source, batches: &Sender<(u64, Batch)>, room: u64) -> (u64, Ended) {
        let mut number = 0;
        loop {
            let mut merging = self.merging.lock();
            while number >= merging.next + room && !self.is_cancelled() {
                self.merged.wait(&mut merging);
            }
            drop(merging);
            if self.is_cancelled() {
                break;
            }
            let begun = Instant::now();
            // A source that panics must not leave those waiting who want the report.
            let batch = catch_unwind(AssertUnwindSafe(|| source.next()))
                .unwrap_or_else(|_| Err("the source has panicked".into()));
            self.merging.lock().times.reading += begun.elapsed();
            let batch = match batch {
                Ok(Some(batch)) => batch,
                Ok(None) => return (number, Ended::Complete),
                Err(error) => {
                    tracing::warn!(%error, "a replay cannot read on");
                    return (number, Ended::Failed { why: error.to_string() });
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
        (number, Ended::Cancelled)
    }

    /// Judges batches until there are no more.
    fn judge(&self, mut judge: Judge, batches: &Receiver<(u64, Batch)>) {
        let _last_words = LastWords(self);
        let mut decoder = Decoder::new();
        let mut messages: Vec<ArchivedMessage> = Vec::new();
        while let Ok((number, batch)) = batches.recv() {
            if self.is_cancelled() {
                return;
            }
            let begun = processor_time();
            let damaged = decode(batch, &mut decoder, &mut messages);
            let decoded = processor_time();
            let Some(mut tally) = judge.batch(&messages, &|| self.is_cancelled()) else { return };
            let judged = processor_time();
            tally.damaged = damaged;
            self.judged.fetch_add(tally.messages, Relaxed);
            self.different.fetch_add(tally.messages - tally.same, Relaxed);
            let mut merging = self.merging.lock();
            merging.times.decoding += decoded.saturating_sub(begun);
            merging.times.judging += judged.saturating_sub(decoded);
            merging.take(number, tally);
            self.merged.notify_all();
        }
    }

    /// Waits for the judges, and makes the report.
    fn finish(&self, how: Replay, fed: (u64, Ended), workers: Vec<JoinHandle<()>>, begun: Instant) {
        let threads = workers.len();
        let mut died = false;
        for worker in workers {
            died |= worker.join().is_err();
        }
        let whole = begun.elapsed();
        let mut merging = self.merging.lock();
        let ended = match fed {
            _ if died => Ended::Failed { why: "a thread of the replay has died".to_owned() },
            (batches, Ended::Complete) if merging.next < batches => Ended::Cancelled,
            (_, ended) => ended,
        };
        let empty = Summary::new(0, 0);
        let summary = std::mem::replace(&mut merging.summary, empty);
        let report = summary.report(ended, how.accounts, threads, whole, merging.times);
        drop(merging);
        *self.report.lock() = Some(Arc::new(report));
        self.reported.notify_all();
    }
}

/// A judge that dies cancels the others: nobody will merge what it had.
struct LastWords<'a>(&'a Shared);

impl Drop for LastWords<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

impl Merging {
    /// Takes in a batch; in its turn.
    fn take(&mut self, number: u64, tally: Tally) {
        self.early.insert(number, tally);
        while let Some(tally) = self.early.remove(&self.next) {
            self.summary.add(tally);
            self.next += 1;
        }
    }
}

/// Makes messages of a batch; gives how many of them cannot be read.
fn decode(batch: Batch, decoder: &mut Decoder, messages: &mut Vec<ArchivedMessage>) -> u64 {
    messages.clear();
    match batch {
        Batch::Ready(ready) => {
            *messages = ready;
            0
        }
        Batch::Raw(batch) => {
            let mut damaged = 0;
            for message in batch.decode(decoder) {
                match message {
                    Ok(message) => messages.push(message),
                    Err(error) => {
                        tracing::warn!(%error, "a message cannot be replayed");
                        damaged += 1;
                    }
                }
            }
            damaged
        }
    }
}

//! The core loop: one thread applies events, another commits the resulting changes, and commands are sent after the
//! commit.
//!
//! While batch n is committed, events of batch n+1 are applied to memory. The batch size thus adapts to the load: a
//! batch contains the events that arrive during one commit.

use crate::archiving::ArchiveReader;
use crate::batch_size::BatchSize;
use crate::core_handle::{
    Clock, CoreChannel, CoreLoopCounts, Input, SIZE_BOUNDS, TIME_BOUNDS, count, millis,
};
use crate::critical_thread::{self, fail_stop};
use crate::hook_workers::HookWorkers;
use crate::message_lookups::{MessageLookup, MessageLookups};
use crate::peer_observer::PeerObserver;
use crate::table_writer::TableWriter;
use crate::telemetry::{self, Telemetry};
use crate::traffic_flows::{self, AcceptedCounts};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use engine::{Engine, EngineCommand, Event, Output};
use model::{Batch, MessageId, MessageKind, Timestamp};
use ports::{LinkRegistry, PoolFeed};
use shell::MailboxIndex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use store::Store;

/// The threads of the core; [`CoreThreads::join`] waits for them.
pub(crate) struct CoreThreads {
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl CoreThreads {
    pub(crate) fn join(self) {
        for thread in self.threads {
            // A panic has already ended the process.
            let _ = thread.join();
        }
    }
}

/// Observers of committed batches. They run before the batch's commands are sent.
pub(crate) struct BatchObservers {
    pub(crate) mailbox_index: Arc<MailboxIndex>,
    pub(crate) pools: Arc<PoolFeed>,
    pub(crate) peers: PeerObserver,
    /// The trace exporter, if configured.
    pub(crate) telemetry: Option<Telemetry>,
}

/// Starts the core. `first` is the output of the recovery, to be committed first.
pub(crate) fn start(
    channel: CoreChannel,
    (engine, first, batch_size): (Engine, Output, BatchSize),
    store: Arc<Store>,
    registry: Arc<LinkRegistry>,
    hook_workers: HookWorkers,
    history: Option<ArchiveReader>,
    observers: BatchObservers,
) -> std::io::Result<CoreThreads> {
    let CoreChannel { receiver, handle } = channel;
    let (batches, commits) = bounded::<Output>(1);
    let (reads, to_read) = unbounded::<Vec<MessageId>>();
    let (message_lookups, looking_up) = MessageLookups::start(store.clone(), registry.clone(), history)?;
    let committer = Committer {
        store: store.clone(),
        registry,
        reads,
        message_lookups,
        hook_workers,
        observers,
        input: handle.input.clone(),
        counts: handle.counts.clone(),
        clock: handle.clock,
    };
    let clock = handle.clock;
    let table_writer = TableWriter { store: store.clone() };
    let (until, stopped) = bounded(0);
    let reader = Reader { store, input: handle.input.clone(), counts: handle.counts.clone() };
    let threads = vec![
        critical_thread::spawn("core", move || run(engine, first, batch_size, clock, &receiver, &batches))?,
        critical_thread::spawn("commit", move || {
            committer.run(&commits);
            drop(until);
        })?,
        critical_thread::spawn("tables", move || table_writer.run(&stopped))?,
        critical_thread::spawn("read", move || reader.run(&to_read))?,
        looking_up,
    ];
    Ok(CoreThreads { threads })
}

/// A batch smaller than this, soon after a commit under load, waits for more events …
const SMALL_BATCH: usize = 64;
/// … up to this time.
const BATCH_LINGER: Duration = Duration::from_millis(1);
fn run(
    mut engine: Engine,
    first: Output,
    mut batch_size: BatchSize,
    clock: Clock,
    input: &Receiver<Input>,
    batches: &Sender<Output>,
) {
    let mut out = first;
    let mut committing = false;
    let mut stopping = false;
    let mut last_size = 0;
    let mut last_sent = Instant::now();
    let mut deferred = VecDeque::new();
    loop {
        let now = clock.now();
        engine.advance(now, &mut out);
        let size = out.batch.accepted.len() + out.batch.finished.len();
        let mut wait_until =
            engine.deadline().map(|at| Duration::from_millis(at.0.saturating_sub(now.mono.0)));
        if !committing && !out.is_empty() {
            // Under load, a short wait makes batches larger and messages cheaper. A single message never waits.
            let waited = last_sent.elapsed();
            let is_full = stopping || batch_size.update(&out.batch);
            if last_size >= SMALL_BATCH / 8 && size < SMALL_BATCH && waited < BATCH_LINGER && !is_full {
                let left = BATCH_LINGER.saturating_sub(waited);
                wait_until = Some(wait_until.map_or(left, |until| until.min(left)));
            } else {
                engine.seal(&mut out);
                last_size = size;
                last_sent = Instant::now();
                if batches.send(std::mem::take(&mut out)).is_err() {
                    return;
                }
                committing = true;
                batch_size.reset();
            }
        }
        while committing && batch_size.update(&out.batch) {
            match input.recv() {
                Ok(Input::Committed) => committing = false,
                Ok(other) => deferred.push_back(other),
                Err(_) => return,
            }
        }
        if stopping && !committing && out.is_empty() {
            return;
        }
        let received = match wait_until {
            _ if !deferred.is_empty() || batch_size.update(&out.batch) => {
                deferred.pop_front().ok_or(RecvTimeoutError::Timeout)
            }
            Some(wait) => input.recv_timeout(wait),
            None => input.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let first = match received {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let now = clock.now();
        let mut next = first;
        for _ in 0..10_000 {
            let Some(one) = next.take().or_else(|| deferred.pop_front()).or_else(|| input.try_recv().ok())
            else {
                break;
            };
            match one {
                Input::Events(events) => {
                    for event in events {
                        engine.apply(now, event, &mut out);
                    }
                }
                Input::Query(query) => query(&engine, now),
                Input::Committed => committing = false,
                Input::Stop => {
                    stopping = true;
                    engine.apply(now, Event::Drain, &mut out);
                }
            }
            if batch_size.update(&out.batch) {
                break;
            }
        }
    }
}

struct Committer {
    store: Arc<Store>,
    registry: Arc<LinkRegistry>,
    reads: Sender<Vec<MessageId>>,
    message_lookups: MessageLookups,
    hook_workers: HookWorkers,
    observers: BatchObservers,
    input: Sender<Input>,
    counts: Arc<CoreLoopCounts>,
    clock: Clock,
}

impl Committer {
    fn run(self, batches: &Receiver<Output>) {
        for Output { batch, commands, observations } in batches {
            self.counts.batch_begun.store(self.clock.micros(), Relaxed);
            let accepted = accepted_counts(&batch);
            if !batch.is_empty() {
                let begun = Instant::now();
                self.counts.commit_begun.store(self.clock.micros(), Relaxed);
                // Observers run before commands are sent: whoever receives an answer must find its effect.
                let committed = self.store.commit_observed(batch, |batch| self.observe(batch, begun));
                self.counts.commit_begun.store(0, Relaxed);
                match committed {
                    Ok(done) => {
                        let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                        self.counts.commits.fetch_add(1, Relaxed);
                        self.counts.rows.fetch_add(done.rows, Relaxed);
                        self.counts.octets.fetch_add(done.octets, Relaxed);
                        self.counts.commit_us.fetch_add(elapsed_us, Relaxed);
                        count(&self.counts.times, &TIME_BOUNDS, elapsed_us);
                        count(&self.counts.sizes, &SIZE_BOUNDS, done.rows);
                    }
                    Err(error) => fail_stop(&error),
                }
            }
            self.observers.peers.observe(accepted, observations);
            for other in self.registry.dispatch(commands) {
                match self.hook_workers.dispatch(other) {
                    Some(EngineCommand::Load { ids }) => drop(self.reads.send(ids)),
                    Some(EngineCommand::LookUp { origin, id, source, too_late, to }) => {
                        self.message_lookups.submit(MessageLookup { origin, id, source, too_late, to });
                    }
                    _ => {}
                }
            }
            self.counts.batch_begun.store(0, Relaxed);
            let _ = self.input.send(Input::Committed);
        }
        if let Err(error) = self.store.close() {
            fail_stop(&error);
        }
    }

    fn observe(&self, batch: &Batch, begun: Instant) {
        self.observers.mailbox_index.observe(batch);
        self.observers.pools.observe(&batch.pools);
        if let Some(telemetry) = &self.observers.telemetry {
            let ended = Timestamp::now();
            let begun = Timestamp(ended.0.saturating_sub(millis(begun.elapsed())));
            telemetry.observe(batch, telemetry::CommitTimes { begun, ended });
        }
    }
}

/// The accepted messages of a batch by submitter, without DLRs.
fn accepted_counts(batch: &Batch) -> AcceptedCounts {
    let mut accepted = AcceptedCounts::new();
    let messages = batch.accepted.iter().filter(|message| !matches!(message.kind, MessageKind::Dlr(_)));
    messages.for_each(|message| traffic_flows::count_accepted(&mut accepted, message.origin));
    accepted
}

/// Loads contents of messages from the store. It does nothing else, because the queues wait for it.
struct Reader {
    store: Arc<Store>,
    input: Sender<Input>,
    counts: Arc<CoreLoopCounts>,
}

impl Reader {
    fn run(self, requests: &Receiver<Vec<MessageId>>) {
        for ids in requests {
            self.load(&ids);
        }
    }

    fn load(&self, ids: &[MessageId]) {
        self.counts.loads.fetch_add(ids.len() as u64, Relaxed);
        match self.store.load(ids) {
            Ok(messages) => {
                let loaded = ids.iter().zip(messages);
                let events = loaded.map(|(id, message)| Event::Loaded { id: *id, message }).collect();
                let _ = self.input.send(Input::Events(events));
            }
            Err(error) => fail_stop(&error),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::batch_size::BATCH_OCTETS;
    use crate::core_handle::{CoreHandle, channel};
    use engine::Settings;

    /// A core whose output is discarded.
    pub(crate) fn running_core() -> CoreHandle {
        let (CoreChannel { receiver, handle }, core) = channel();
        let (batches, written) = bounded(1);
        let engine = Engine::new(Settings::default());
        critical_thread::spawn("core", move || {
            let _written = written;
            run(engine, Output::default(), BatchSize::new(BATCH_OCTETS), handle.clock, &receiver, &batches);
        })
        .unwrap();
        core
    }

    #[test]
    fn a_core_that_does_not_respond_in_time_is_detected() {
        let (pending, core) = channel();
        assert!(!core.responds_within(Duration::from_millis(20)));
        drop(pending);
        assert!(!core.responds_within(Duration::from_secs(60)), "no answer after shutdown");
        assert!(running_core().responds_within(Duration::from_secs(60)));
    }
}

use crate::backend::Session;
use crate::error::Fault;
use crate::row::Row;
use crate::sql::{Kind, Statement};
use crate::status::Status;
use crate::write::{Written, write};
use crate::{Archive, ArchiveError, BoxError, PumpStatus, Source};
use model::{AgeClock, MessageId, Timestamp};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;

/// The first pause after a failure; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Without being woken, the pump looks for finished messages so often.
const LOOK: Duration = Duration::from_secs(1);

/// With nothing to archive, the data base is asked for a sign of life so often.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// How long a transaction may still run once the pump is to stop.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// So often old messages are looked for.
const TRIM_EVERY: Duration = Duration::from_secs(600);

/// Moves finished messages from a [`Source`] into the archive.
///
/// A message leaves the source only after the transaction that holds its row is committed. Whatever happens between, it
/// is given to the data base again, which knows it by its id: in the table and in the statistics it stands once.
///
/// The data base may be away for as long as it likes: messages wait in the source. A row that it refuses by itself is left
/// there too, is logged and counted, and does not hold up the others.
pub struct Pump {
    archive: Archive,
    source: Arc<dyn Source>,
    status: Arc<Status>,
    wake: Arc<Notify>,
    refused: Arc<Mutex<HashMap<MessageId, Instant>>>,
    stop: watch::Sender<bool>,
}

/// A pump at work.
pub struct RunningPump {
    stop: watch::Sender<bool>,
    status: Arc<Status>,
    wake: Arc<Notify>,
    source: Arc<dyn Source>,
    thread: Option<JoinHandle<()>>,
}

impl RunningPump {
    /// There is something to archive. Cheap, and may be called for every message.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// What it has done so far.
    #[must_use]
    pub fn status(&self) -> PumpStatus {
        self.status.read(self.source.backlog())
    }

    /// Ends it, and waits until it has: the transaction that runs is finished, if it can be within seconds.
    pub fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the pump has been told by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for RunningPump {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// What the reader's thread gives: rows to be written, and where it got to.
struct Read {
    rows: Vec<Row>,
    /// The last id that was looked at; `None` at the end.
    last: Option<MessageId>,
    /// Messages looked at.
    looked_at: usize,
    /// Messages that cannot become rows, or whose time has not come again.
    skipped: Vec<MessageId>,
}

impl Pump {
    pub(crate) fn new(archive: Archive, source: Arc<dyn Source>) -> Self {
        Self {
            archive,
            source,
            status: Arc::new(Status::new()),
            wake: Arc::new(Notify::new()),
            refused: Arc::default(),
            stop: watch::Sender::new(false),
        }
    }

    /// Starts it on a thread of its own, of low priority: traffic comes first.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(self) -> Result<RunningPump, ArchiveError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ArchiveError::Thread)?;
        let (status, wake, source) = (self.status.clone(), self.wake.clone(), self.source.clone());
        let stop = self.stop.clone();
        let thread = std::thread::Builder::new()
            .name("archive".into())
            .spawn(move || {
                // Threads inherit it, those of the SQLite driver and of blocking reads too.
                if let Err(error) = rustix::process::setpriority_process(None, 10) {
                    tracing::debug!(%error, "the pump runs with ordinary priority");
                }
                runtime.block_on(self.run());
                runtime.shutdown_timeout(LAST_WORDS);
            })
            .map_err(ArchiveError::Thread)?;
        Ok(RunningPump { stop, status, wake, source, thread: Some(thread) })
    }

    /// Runs until it is told to stop; on a runtime with I/O and time.
    async fn run(self) {
        let trimming = self.archive.options.keep.map(|keep| {
            let (archive, status) = (self.archive.clone(), self.status.clone());
            tokio::spawn(async move { trim_regularly(archive, status, keep).await })
        });
        let work = async {
            if let Some(session) = self.work().await {
                session.close().await;
            }
        };
        tokio::pin!(work);
        tokio::select! {
            () = &mut work => {}
            () = self.stopped() => {
                // What is cut off here was not committed, or will be found in the table.
                let _ = tokio::time::timeout(LAST_WORDS, work).await;
            }
        }
        if let Some(trimming) = trimming {
            trimming.abort();
        }
    }

    async fn stopped(&self) {
        // It cannot fail: the sender is ours.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    fn stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits, but not beyond a stop.
    async fn pause(&self, length: Duration) {
        let _ = tokio::time::timeout(length, self.stopped()).await;
    }

    /// Until it is stopped: connect, archive all there is, wait for more. Gives back the
    /// connection.
    async fn work(&self) -> Option<Box<dyn Session>> {
        let mut pause = FIRST_PAUSE;
        let mut kept: Option<Box<dyn Session>> = None;
        while !self.stopping() {
            let fresh = kept.is_none();
            let result = match kept.take() {
                Some(session) => Ok(session),
                None => self.patiently(self.archive.backend.connect()).await,
            };
            let result = match result {
                Ok(mut session) => self.pass(&mut *session).await.map(|done| (session, done)),
                Err(fault) => Err(fault),
            };
            match result {
                Ok((session, done)) => {
                    kept = Some(session);
                    pause = FIRST_PAUSE;
                    if done == 0 || self.waiting() < self.archive.options.batch as u64 {
                        self.rest().await;
                    }
                }
                // A server may close a connection that was idle for long; that is no news.
                Err(fault) if !fresh && !matches!(fault, Fault::Down(ArchiveError::Source(_))) => {
                    tracing::debug!(error = %fault, "the archive's connection is gone");
                }
                Err(fault) => {
                    let text = fault.to_string();
                    if self.status.down(&text) {
                        tracing::warn!(
                            error = text,
                            url = self.archive.url(),
                            "the archive is down: finished messages wait"
                        );
                    }
                    self.pause(pause).await;
                    pause = (pause * 2).min(self.archive.options.longest_pause);
                }
            }
        }
        kept
    }

    /// Until there is something to do, or it is time to look.
    async fn rest(&self) {
        tokio::select! {
            () = self.wake.notified() => {
                // Others will follow at once; unless a batch is full already.
                if self.waiting() < self.archive.options.batch as u64 {
                    self.pause(self.archive.options.linger).await;
                }
            }
            () = self.pause(LOOK) => {}
        }
    }

    /// How many wait, but for those that are refused.
    fn waiting(&self) -> u64 {
        self.source.backlog().saturating_sub(self.status.refused.load(Relaxed))
    }

    /// Archives what waits, from the smallest id on, as long as there are full batches: the next one is read and the last
    /// one removed while one is written. Gives how many are in the archive now that were not before.
    async fn pass(&self, session: &mut dyn Session) -> Result<usize, Fault> {
        let mut reading = Some(self.read_after(MessageId(0)));
        let mut removing: Option<tokio::task::JoinHandle<Result<(), BoxError>>> = None;
        let mut skipped = Vec::new();
        let (mut done, mut before) = (0, u64::MAX);
        let result = loop {
            let Some(next) = reading.take() else { break Ok(()) };
            let read = match joined(next.await) {
                Ok(read) => read,
                Err(fault) => break Err(fault),
            };
            skipped.extend(read.skipped);
            let full = read.looked_at >= self.archive.options.batch;
            if read.rows.is_empty() && !full {
                self.forget_refused_but(&skipped);
                break Ok(());
            }
            // Where the batch is not full, nothing is read ahead: a pass that ran after the traffic would write ever
            // smaller batches.
            reading = read.last.filter(|_| full).map(|last| self.read_after(last));
            if self.stopping() {
                break Ok(());
            }
            if read.rows.is_empty() {
                continue;
            }
            let begun = Instant::now();
            let ids: Vec<MessageId> = read.rows.iter().map(Row::id).collect();
            let written =
                match self.patiently(write(session, self.archive.backend.dialect(), read.rows)).await {
                    Ok(written) => written,
                    Err(fault) => break Err(fault),
                };
            self.note(&ids, &written, begun.elapsed());
            done += written.new;
            skipped.extend(written.refused.iter().map(|(id, _)| *id));
            if let Some(last) = removing.take()
                && let Err(fault) = joined(last.await)
            {
                break Err(fault);
            }
            if !written.there.is_empty() {
                let source = self.source.clone();
                removing = Some(spawn_blocking(move || source.removed(written.there)));
            }
            if !full {
                continue;
            }
            let backlog = self.source.backlog();
            if backlog <= before {
                let share = self.archive.options.share.clamp(0.01, 1.0);
                self.pause(begun.elapsed().mul_f64(1.0 / share - 1.0)).await;
            }
            before = backlog;
        };
        // What was committed may leave, whatever happened after it.
        let removed = match removing {
            Some(removing) => joined(removing.await),
            None => Ok(()),
        };
        result?;
        removed?;
        if self.status.since_success().is_none_or(|since| since > SIGN_OF_LIFE) {
            let hello = Statement::new(self.archive.backend.dialect(), "SELECT max(hour) FROM hours");
            self.patiently(session.select(&hello, &[Kind::Big])).await?;
            self.success();
        }
        Ok(done)
    }

    /// The next batch, read and made into rows on a thread of its own.
    fn read_after(&self, after: MessageId) -> tokio::task::JoinHandle<Result<Read, BoxError>> {
        let (source, refused, most) =
            (self.source.clone(), self.refused.clone(), self.archive.options.batch.max(1));
        let again = self.archive.options.refused_again;
        let status = self.status.clone();
        spawn_blocking(move || {
            let messages = source.read(after, most)?;
            let mut read = Read {
                rows: Vec::with_capacity(messages.len()),
                last: messages.last().map(|(message, _)| message.id),
                looked_at: messages.len(),
                skipped: Vec::new(),
            };
            let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
            for (message, ended) in &messages {
                if refused.get(&message.id).is_some_and(|until| *until > Instant::now()) {
                    read.skipped.push(message.id);
                    continue;
                }
                match Row::new(message, ended, &*source) {
                    Ok(row) => read.rows.push(row),
                    Err(error) => {
                        tracing::error!(%error, "a message cannot be archived: it stays in the queues' store");
                        refused.insert(message.id, Instant::now() + again);
                        status.refused.store(refused.len() as u64, Relaxed);
                        read.skipped.push(message.id);
                    }
                }
            }
            Ok(read)
        })
    }

    /// Writes down what a batch came to.
    fn note(&self, ids: &[MessageId], written: &Written, took: Duration) {
        self.success();
        self.status.batch(written.new, took);
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if !refused.is_empty() {
            for id in ids {
                refused.remove(id);
            }
        }
        for (id, error) in &written.refused {
            tracing::error!(
                %id,
                error,
                again_in_s = self.archive.options.refused_again.as_secs(),
                "the archive refuses a message: it stays in the queues' store and is tried again"
            );
            refused.insert(*id, Instant::now() + self.archive.options.refused_again);
        }
        self.status.refused.store(refused.len() as u64, Relaxed);
    }

    /// Those that were not met on a whole pass have left the source by another way.
    fn forget_refused_but(&self, met: &[MessageId]) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if !refused.is_empty() {
            refused.retain(|id, _| met.contains(id));
            self.status.refused.store(refused.len() as u64, Relaxed);
        }
    }

    fn success(&self) {
        if self.status.up() {
            tracing::info!(url = self.archive.url(), backlog = self.source.backlog(), "the archive is up");
        }
    }

    async fn patiently<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let patience = self.archive.options.patience;
        tokio::time::timeout(patience, work)
            .await
            .unwrap_or_else(|_| Err(Fault::Down(ArchiveError::Timeout(patience.as_secs()))))
    }
}

/// What a blocking thread came back with.
fn joined<T>(result: Result<Result<T, BoxError>, tokio::task::JoinError>) -> Result<T, Fault> {
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Fault::Down(ArchiveError::Source(error))),
        Err(error) => Err(Fault::Down(ArchiveError::Source(error.into()))),
    }
}

fn wall() -> Timestamp {
    Timestamp::default() + SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Deletes what is too old, now and then.
async fn trim_regularly(archive: Archive, status: Arc<Status>, keep: Duration) {
    let (begun, started_at) = (Instant::now(), wall());
    let ages = loop {
        match archive.newest_hour_before(started_at).await {
            Ok(newest) => break AgeClock::checked(started_at, newest),
            Err(error) => tracing::debug!(%error, "old messages could not be looked for in the archive"),
        }
        tokio::time::sleep(TRIM_EVERY).await;
    };
    if !ages.is_believed() {
        tracing::warn!(
            "the clock stands more than 30 days after the newest message of the archive: no message is deleted for its age. \
             Check the clock; if it is right, restart the daemon when new messages are archived"
        );
        return;
    }
    loop {
        let now = ages.now(begun.elapsed(), wall()).unwrap_or_default();
        let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        match archive.trim(Timestamp(now.0.saturating_sub(keep))).await {
            Ok(trimmed) if trimmed.messages > 0 => {
                status.trimmed.fetch_add(trimmed.messages, Relaxed);
                tracing::info!(messages = trimmed.messages, "old messages were deleted from the archive");
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "old messages could not be deleted from the archive"),
        }
        tokio::time::sleep(TRIM_EVERY).await;
    }
}

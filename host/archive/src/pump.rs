use crate::backend::Session;
use crate::content_erasure::overwrite_loop;
use crate::error::Fault;
use crate::pump_status::PumpMonitor;
use crate::row::Row;
use crate::sql::{ColumnType, Statement};
use crate::write::{WriteOutcome, write};
use crate::{Archive, ArchiveError, FinishedSource, SourceError};
use api::ArchivePumpView;
use model::{AgeClock, MessageId, Timestamp};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;

/// The first delay after a failure; it doubles up to [`ArchiveOptions::max_retry_delay`](crate::ArchiveOptions).
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The interval at which the pump looks for finished messages without being woken.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The interval at which an idle pump checks the database.
const HEALTH_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum time that a running transaction may take after a stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The interval at which old messages are deleted, and old contents erased.
const TRIM_INTERVAL: Duration = Duration::from_secs(600);

/// Moves finished messages from a [`FinishedSource`] into the archive.
///
/// A message leaves the source after the transaction with its row is committed. If anything fails in between, the
/// message is written again; its id makes that idempotent for table and statistics.
///
/// While the database is down, messages wait in the source. A row that the database rejects stays in the source too, is
/// logged and counted, and does not block other rows.
pub struct Pump {
    archive: Archive,
    source: Arc<dyn FinishedSource>,
    status: Arc<PumpMonitor>,
    wake: Arc<Notify>,
    refused: Arc<Mutex<HashMap<MessageId, Instant>>>,
    stop: watch::Sender<bool>,
}

/// A running pump.
pub struct RunningPump {
    stop: watch::Sender<bool>,
    status: Arc<PumpMonitor>,
    wake: Arc<Notify>,
    source: Arc<dyn FinishedSource>,
    archive: Archive,
    thread: Option<JoinHandle<()>>,
}

impl RunningPump {
    /// Wakes the pump. Cheap; may be called for every message.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// The pump's status.
    #[must_use]
    pub fn status(&self) -> ArchivePumpView {
        ArchivePumpView {
            overwriting: self.archive.is_overwriting(),
            ..self.status.read(self.source.backlog())
        }
    }

    /// Stops the pump and waits until it has ended. A running transaction may finish within seconds.
    pub fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic of the pump.
            let _ = thread.join();
        }
    }
}

impl Drop for RunningPump {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// A batch as read from the source.
struct ReadBatch {
    rows: Vec<Row>,
    /// The last id read; `None` at the end.
    last: Option<MessageId>,
    /// The number of messages read.
    looked_at: usize,
    /// Messages that cannot be converted to rows, or whose retry is not due.
    skipped: Vec<MessageId>,
}

impl Archive {
    /// A pump from `source` into this archive; see [`Pump::start`].
    #[must_use]
    pub fn pump(&self, source: Arc<dyn FinishedSource>) -> Pump {
        Pump::new(self.clone(), source)
    }
}

impl Pump {
    pub(crate) fn new(archive: Archive, source: Arc<dyn FinishedSource>) -> Self {
        Self {
            archive,
            source,
            status: Arc::new(PumpMonitor::new()),
            wake: Arc::new(Notify::new()),
            refused: Arc::default(),
            stop: watch::Sender::new(false),
        }
    }

    /// Starts the pump on its own thread, with low priority, so that traffic comes first.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn start(self) -> Result<RunningPump, ArchiveError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ArchiveError::Thread)?;
        let (status, wake, source) = (self.status.clone(), self.wake.clone(), self.source.clone());
        let (stop, archive) = (self.stop.clone(), self.archive.clone());
        let thread = std::thread::Builder::new()
            .name("archive".into())
            .spawn(move || {
                // Child threads inherit it: the threads of the SQLite driver and of blocking reads.
                if let Err(error) = rustix::process::setpriority_process(None, 10) {
                    tracing::debug!(%error, "lowering the pump's priority failed");
                }
                runtime.block_on(self.run());
                runtime.shutdown_timeout(STOP_TIMEOUT);
            })
            .map_err(ArchiveError::Thread)?;
        Ok(RunningPump { stop, status, wake, source, archive, thread: Some(thread) })
    }

    /// Runs until it is stopped, on a runtime with I/O and time.
    async fn run(self) {
        let trimming = tokio::spawn(trim_loop(self.archive.clone(), self.status.clone()));
        let overwriting = tokio::spawn(overwrite_loop(self.archive.clone()));
        let work = async {
            if let Some(session) = self.work().await {
                session.close().await;
            }
        };
        tokio::pin!(work);
        tokio::select! {
            () = &mut work => {}
            () = self.stopped() => {
                // Work that is aborted here was not committed, or is found in the table later.
                let _ = tokio::time::timeout(STOP_TIMEOUT, work).await;
            }
        }
        trimming.abort();
        overwriting.abort();
    }

    async fn stopped(&self) {
        // Cannot fail: `self` owns the sender.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    fn stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Sleeps, but not beyond a stop.
    async fn pause(&self, length: Duration) {
        let _ = tokio::time::timeout(length, self.stopped()).await;
    }

    /// Connects, archives pending messages and waits for more, until it is stopped. Returns the connection.
    async fn work(&self) -> Option<Box<dyn Session>> {
        let mut pause = FIRST_RETRY_DELAY;
        let mut idle: Option<Box<dyn Session>> = None;
        while !self.stopping() {
            let fresh = idle.is_none();
            let result = match idle.take() {
                Some(session) => Ok(session),
                None => self.with_timeout(self.archive.backend.connect()).await,
            };
            let result = match result {
                Ok(mut session) => self.pass(&mut *session).await.map(|done| (session, done)),
                Err(fault) => Err(fault),
            };
            match result {
                Ok((session, done)) => {
                    idle = Some(session);
                    pause = FIRST_RETRY_DELAY;
                    if done == 0 || self.waiting() < self.archive.options().batch as u64 {
                        self.rest().await;
                    }
                }
                // A server may close an idle connection; that is not an error.
                Err(fault) if !fresh && !matches!(fault, Fault::Down(ArchiveError::FinishedSource(_))) => {
                    tracing::debug!(error = %fault, "archive connection lost");
                }
                Err(fault) => {
                    let text = fault.to_string();
                    if self.status.down(&text) {
                        tracing::warn!(
                            error = text,
                            url = self.archive.url(),
                            "archive down, finished messages wait"
                        );
                    }
                    self.pause(pause).await;
                    pause = (pause * 2).min(self.archive.options().max_retry_delay);
                }
            }
        }
        idle
    }

    /// Waits until the pump is woken or the poll interval has passed.
    async fn rest(&self) {
        tokio::select! {
            () = self.wake.notified() => {
                // More messages follow soon; wait for them unless a batch is full already.
                if self.waiting() < self.archive.options().batch as u64 {
                    self.pause(self.archive.options().linger).await;
                }
            }
            () = self.pause(POLL_INTERVAL) => {}
        }
    }

    /// The number of pending messages, without rejected ones.
    fn waiting(&self) -> u64 {
        self.source.backlog().saturating_sub(self.status.refused.load(Relaxed))
    }

    /// Archives pending messages, by ascending id, as long as batches are full. While one batch is written, the next is
    /// read and the previous one removed. Returns the number of newly archived messages.
    async fn pass(&self, session: &mut dyn Session) -> Result<usize, Fault> {
        // Messages that were erased before this pass are read without their content.
        self.archive.pump_erasures.0.lock().await.clear();
        let mut reading = Some(self.read_after(MessageId(0)));
        let mut removing: Option<tokio::task::JoinHandle<Result<(), SourceError>>> = None;
        let mut skipped = Vec::new();
        let (mut done, mut before) = (0, u64::MAX);
        let result = loop {
            let Some(next) = reading.take() else { break Ok(()) };
            let read = match flatten_join(next.await) {
                Ok(read) => read,
                Err(fault) => break Err(fault),
            };
            skipped.extend(read.skipped);
            let full = read.looked_at >= self.archive.options().batch;
            if read.rows.is_empty() && !full {
                self.retain_refused(&skipped);
                break Ok(());
            }
            // If the batch is not full, do not read ahead: a pass that follows the traffic would write ever smaller
            // batches.
            reading = read.last.filter(|_| full).map(|last| self.read_after(last));
            if self.stopping() {
                break Ok(());
            }
            if read.rows.is_empty() {
                continue;
            }
            let begun = Instant::now();
            let ids: Vec<MessageId> = read.rows.iter().map(Row::id).collect();
            let written = match self.with_timeout(self.write(session, read.rows)).await {
                Ok(written) => written,
                Err(fault) => break Err(fault),
            };
            self.note(&ids, &written, begun.elapsed());
            done += written.new;
            skipped.extend(written.refused.iter().map(|(id, _)| *id));
            if let Some(last) = removing.take()
                && let Err(fault) = flatten_join(last.await)
            {
                break Err(fault);
            }
            if !written.present.is_empty() {
                let source = self.source.clone();
                removing = Some(spawn_blocking(move || source.remove(written.present)));
            }
            if !full {
                continue;
            }
            let backlog = self.source.backlog();
            if backlog <= before {
                let share = self.archive.options().share.clamp(0.01, 1.0);
                self.pause(begun.elapsed().mul_f64(1.0 / share - 1.0)).await;
            }
            before = backlog;
        };
        // Remove the committed messages, even if a later step failed.
        let removed = match removing {
            Some(removing) => flatten_join(removing.await),
            None => Ok(()),
        };
        result?;
        removed?;
        if self.status.since_success().is_none_or(|since| since > HEALTH_CHECK_INTERVAL) {
            let hello = Statement::new(self.archive.backend.dialect(), "SELECT max(hour) FROM hours");
            self.with_timeout(session.select(&hello, &[ColumnType::Big])).await?;
            self.success();
        }
        Ok(done)
    }

    /// Writes rows, without the contents that were erased since they were read.
    async fn write(&self, session: &mut dyn Session, mut rows: Vec<Row>) -> Result<WriteOutcome, Fault> {
        let erasures = self.archive.pump_erasures.0.lock().await;
        if !erasures.is_empty() {
            for row in &mut rows {
                if let Some(erasure) = erasures.get(&row.id()) {
                    row.erase_content(erasure);
                }
            }
        }
        let retention = self.archive.text_retention.accounts();
        if !retention.is_empty() {
            let ids = rows.iter().filter(|row| retention.contains_key(&*row.account)).map(|row| row.id);
            if let Some(lowest) = ids.min() {
                self.archive.text_retention.archived(lowest);
            }
        }
        write(session, self.archive.backend.dialect(), rows).await
    }

    /// Reads the next batch and converts it to rows, on a blocking thread.
    fn read_after(&self, after: MessageId) -> tokio::task::JoinHandle<Result<ReadBatch, SourceError>> {
        let (source, refused, most) =
            (self.source.clone(), self.refused.clone(), self.archive.options().batch.max(1));
        let again = self.archive.options().refused_retry_interval;
        let (status, redaction) = (self.status.clone(), self.archive.redaction.clone());
        let cipher = self.archive.cipher.clone();
        spawn_blocking(move || {
            let now = Timestamp::now();
            let messages = source.read(after, most)?;
            let mut read = ReadBatch {
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
                    Ok(mut row) => {
                        redaction.apply(&mut row, now);
                        if let Some(cipher) = &cipher {
                            row.seal(&**cipher)?;
                        }
                        read.rows.push(row);
                    }
                    Err(error) => {
                        tracing::error!(%error, "message cannot be archived, it stays in the store");
                        refused.insert(message.id, Instant::now() + again);
                        status.refused.store(refused.len() as u64, Relaxed);
                        read.skipped.push(message.id);
                    }
                }
            }
            Ok(read)
        })
    }

    /// Records the result of a batch.
    fn note(&self, ids: &[MessageId], written: &WriteOutcome, took: Duration) {
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
                again_in_s = self.archive.options().refused_retry_interval.as_secs(),
                "archive rejects message, it stays in the store and is retried"
            );
            refused.insert(*id, Instant::now() + self.archive.options().refused_retry_interval);
        }
        self.status.refused.store(refused.len() as u64, Relaxed);
    }

    /// Removes rejected messages that a whole pass did not find: they left the source in another way.
    fn retain_refused(&self, met: &[MessageId]) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if !refused.is_empty() {
            refused.retain(|id, _| met.contains(id));
            self.status.refused.store(refused.len() as u64, Relaxed);
        }
    }

    fn success(&self) {
        if self.status.up() {
            tracing::info!(url = self.archive.url(), backlog = self.source.backlog(), "archive up");
        }
    }

    async fn with_timeout<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let timeout = self.archive.options().timeout;
        tokio::time::timeout(timeout, work)
            .await
            .unwrap_or_else(|_| Err(Fault::Down(ArchiveError::Timeout(timeout.as_secs()))))
    }
}

/// The result of a blocking task.
fn flatten_join<T>(result: Result<Result<T, SourceError>, tokio::task::JoinError>) -> Result<T, Fault> {
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Fault::Down(ArchiveError::FinishedSource(error))),
        Err(error) => Err(Fault::Down(ArchiveError::FinishedSource(error.into()))),
    }
}

/// Deletes old messages and erases old contents regularly.
async fn trim_loop(archive: Archive, status: Arc<PumpMonitor>) {
    let (begun, started_at) = (Instant::now(), Timestamp::now());
    while archive.options().keep.is_none() && archive.text_retention.accounts().is_empty() {
        tokio::time::sleep(TRIM_INTERVAL).await;
    }
    let ages = loop {
        match archive.newest_hour_before(started_at).await {
            Ok(newest) => break AgeClock::checked(started_at, newest),
            Err(error) => tracing::debug!(%error, "finding old archived messages failed"),
        }
        tokio::time::sleep(TRIM_INTERVAL).await;
    };
    if !ages.is_trusted() {
        tracing::warn!(
            "clock more than 30 days ahead of the archive, expired messages are not deleted; check the clock: if it is right, \
             restart the daemon when new messages are archived"
        );
        return;
    }
    let mut is_first = true;
    loop {
        let now = ages.now(begun.elapsed(), Timestamp::now()).unwrap_or_default();
        if let Some(keep) = archive.options().keep {
            let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
            match archive.trim(Timestamp(now.0.saturating_sub(keep))).await {
                Ok(trimmed) if trimmed.messages > 0 => {
                    status.trimmed.fetch_add(trimmed.messages, Relaxed);
                    tracing::info!(messages = trimmed.messages, "old archived messages deleted");
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "deleting old archived messages failed"),
            }
        }
        match archive.erase_expired(now, is_first).await {
            Ok(erased) => {
                is_first = false;
                if erased > 0 {
                    status.contents_erased.fetch_add(erased, Relaxed);
                    tracing::info!(messages = erased, "contents of archived messages erased");
                }
            }
            Err(error) => tracing::debug!(%error, "erasing contents of archived messages failed"),
        }
        tokio::time::sleep(TRIM_INTERVAL).await;
    }
}

//! The thread of one `[[cdr]]`.

use super::fields::CdrRecord;
use super::options::CdrOptions;
use super::writer::CdrWriter;
use crate::EventsError;
use crate::held_positions::HeldPositions;
use crate::message_facts::{MessageDirectory, MessageFacts, MessageWindow};
use crate::record_source::{BatchRecord, NamedMessages, RecordRead, RecordSource};
use crate::sink_status::SinkMonitor;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use journal::{JournalReader, Seq};
use model::Timestamp;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time to wait for new records before the thread checks whether it must stop.
const POLL: Duration = Duration::from_millis(250);
/// After some records, the thread waits this long for more.
const LINGER: Duration = Duration::from_millis(50);
/// Maximum time until a record is durable in the file.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
/// With this number of pending records, the file is written at once.
const MAX_PENDING: u64 = 10_000;
/// First delay after a failure; it doubles up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// The longest delay between two attempts.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Reads the journal for the files of one `[[cdr]]`.
pub(crate) struct CdrThread {
    pub(crate) options: CdrOptions,
    pub(crate) reader: JournalReader,
    pub(crate) directory: Arc<dyn MessageDirectory>,
    pub(crate) writer: CdrWriter,
    pub(crate) held: Arc<HeldPositions>,
    /// Index in `held`.
    pub(crate) index: usize,
    pub(crate) monitor: Arc<SinkMonitor>,
    pub(crate) stop: Receiver<()>,
}

impl CdrThread {
    pub(crate) fn run(mut self) {
        // Traffic has priority.
        if let Err(error) = rustix::process::setpriority_process(None, 10) {
            tracing::debug!(%error, "lowering the priority of CDR files failed");
        }
        let mut delay = FIRST_DELAY;
        while let Err(error) = self.write_until_stopped(&mut delay) {
            if self.monitor.down(&error.to_string()) {
                tracing::error!(
                    cdr = self.options.name,
                    %error,
                    "CDR files cannot be written, trying again; their records wait in the journal"
                );
            }
            if self.is_stopped_within(delay) {
                return;
            }
            delay = (delay * 2).min(MAX_DELAY);
        }
    }

    /// Writes files from the stored position on, until the daemon stops.
    fn write_until_stopped(&mut self, delay: &mut Duration) -> Result<(), EventsError> {
        self.writer.resume()?;
        let mut position = self.writer.position();
        let mut source =
            RecordSource::new(self.reader.another(), self.directory.clone(), position, NamedMessages::ENDED);
        let mut committed = Instant::now();
        loop {
            let wait = match source.read(POLL)? {
                RecordRead::End => Duration::ZERO,
                RecordRead::Gap { first, last } => {
                    let records = last.0.saturating_sub(first.0) + 1;
                    tracing::error!(
                        cdr = self.options.name,
                        first = first.0,
                        last = last.0,
                        "the journal has removed records before they were read, their CDRs are lost"
                    );
                    self.monitor.gap(records);
                    self.writer.add_lost(records);
                    position = last;
                    Duration::ZERO
                }
                RecordRead::Part(part) => {
                    self.monitor.waits_since(part.first_at);
                    let (directory, window) = source.directory_and_window();
                    for record in &part.records {
                        self.add(record, directory, window);
                    }
                    position = part.last;
                    LINGER
                }
            };
            let is_full = self.writer.pending() >= MAX_PENDING || self.writer.is_due(Timestamp::now());
            if is_full || committed.elapsed() >= COMMIT_INTERVAL {
                self.commit(position)?;
                committed = Instant::now();
                *delay = FIRST_DELAY;
                if position >= self.reader.head().seq {
                    self.monitor.caught_up();
                }
            }
            if self.is_stopped_within(wait) {
                return self.commit(position);
            }
        }
    }

    fn commit(&mut self, position: Seq) -> Result<(), EventsError> {
        let records = self.writer.pending();
        self.writer.commit(position, Timestamp::now())?;
        if self.monitor.up(usize::try_from(records).unwrap_or(usize::MAX)) {
            tracing::info!(cdr = self.options.name, "CDR files are written again");
        }
        self.monitor.set_position(position);
        self.held.set(self.index, position);
        Ok(())
    }

    /// Adds the messages that ended in this journal record.
    fn add(&mut self, record: &BatchRecord, directory: &dyn MessageDirectory, window: &mut MessageWindow) {
        for message in &record.batch.replaced {
            window.put(message.id, MessageFacts::of(message));
        }
        for (id, ended) in &record.batch.finished {
            let facts = window.get(*id);
            let account = facts.map(|facts| facts.account(directory, Some(ended)).1).unwrap_or_default();
            if self.options.has_account(&account) {
                let shown = (self.options.numbers.display(), &self.options.redact);
                self.writer.add(&CdrRecord::new((*id, facts), ended, directory, shown), record.at);
            }
            window.remove(*id);
        }
        for id in &record.batch.dropped {
            window.remove(*id);
        }
    }

    fn is_stopped_within(&self, wait: Duration) -> bool {
        self.stop.recv_timeout(wait) != Err(RecvTimeoutError::Timeout)
    }
}

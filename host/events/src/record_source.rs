//! Reader of the journal that adds the facts of the messages that its records name.

use crate::EventsError;
use crate::message_facts::{MessageDirectory, MessageFacts, MessageWindow};
use journal::{JournalError, JournalReader, Seq};
use model::{Batch, MessageId, Step, StepKind, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of one read, in octets.
const PART: usize = 1 << 20;

/// A journal record that has a batch.
#[derive(Debug)]
pub(crate) struct BatchRecord {
    pub(crate) seq: Seq,
    /// Time of the append.
    pub(crate) at: Timestamp,
    pub(crate) batch: Batch,
}

/// Consecutive records of the journal.
#[derive(Debug)]
pub(crate) struct RecordPart {
    /// The records that have a batch.
    pub(crate) records: Vec<BatchRecord>,
    /// The last record, with or without a batch.
    pub(crate) last: Seq,
    /// Time at which the first record was appended.
    pub(crate) first_at: Timestamp,
}

/// Result of a read.
#[derive(Debug)]
pub(crate) enum RecordRead {
    /// The next records.
    Part(RecordPart),
    /// There are no more records yet.
    End,
    /// The journal has removed these records before they were read.
    Gap { first: Seq, last: Seq },
}

/// Which named messages a reader needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedMessages {
    /// Messages with a submit attempt.
    pub(crate) attempts: bool,
    /// Messages with a DLR.
    pub(crate) dlrs: bool,
    /// Messages that have ended.
    pub(crate) ended: bool,
    /// In addition, the names of pools.
    pub(crate) pools: bool,
}

impl NamedMessages {
    /// Messages that have ended.
    pub(crate) const ENDED: Self = Self { attempts: false, dlrs: false, ended: true, pools: false };

    /// The needed messages that a batch names without their content.
    fn of(self, batch: &Batch) -> impl Iterator<Item = MessageId> {
        let attempts = batch.submit_attempts.iter().filter(move |_| self.attempts).map(|attempt| attempt.id);
        let has_dlr = move |steps: &[Step]| self.dlrs && steps.iter().any(is_dlr);
        let progress = batch.progress.iter().filter(move |(_, progress)| has_dlr(&progress.steps));
        let ended = batch.finished.iter().filter(move |(_, ended)| self.ended || has_dlr(&ended.steps));
        attempts.chain(progress.map(|(id, _)| *id)).chain(ended.map(|(id, _)| *id))
    }
}

/// The journal, from a position on.
pub(crate) struct RecordSource {
    reader: JournalReader,
    directory: Arc<dyn MessageDirectory>,
    window: MessageWindow,
    named: NamedMessages,
    /// The last record that was read.
    position: Seq,
}

impl RecordSource {
    pub(crate) fn new(
        reader: JournalReader,
        directory: Arc<dyn MessageDirectory>,
        position: Seq,
        named: NamedMessages,
    ) -> Self {
        Self { reader, directory, window: MessageWindow::default(), named, position }
    }

    pub(crate) fn directory_and_window(&mut self) -> (&dyn MessageDirectory, &mut MessageWindow) {
        (&*self.directory, &mut self.window)
    }

    /// The last record of the journal.
    pub(crate) fn head(&self) -> Seq {
        self.reader.head().seq
    }

    /// Reads the next records; waits up to `timeout` for the first one. On return, the window has the facts of all
    /// messages that the records name, except for unknown messages.
    pub(crate) fn read(&mut self, timeout: Duration) -> Result<RecordRead, EventsError> {
        self.window.trim();
        let next = self.position.next();
        let found = match self.reader.read(next, PART, timeout) {
            Ok(found) => found,
            Err(JournalError::Behind { oldest }) => {
                let last = Seq(oldest.0.saturating_sub(1));
                self.position = last;
                return Ok(RecordRead::Gap { first: next, last });
            }
            Err(error) => return Err(error.into()),
        };
        let (Some(first), Some(last)) = (found.first(), found.last()) else { return Ok(RecordRead::End) };
        let (first_at, last) = (Timestamp(first.at), last.seq);
        let mut records = Vec::with_capacity(found.len());
        for record in &found {
            if let Some(payload) = record.payload() {
                let seq = record.seq;
                let batch = codec::decode_batch_with(payload, self.directory.cipher())
                    .map_err(|source| EventsError::Record { seq, source })?;
                records.push(BatchRecord { seq, at: Timestamp(record.at), batch });
            }
        }
        self.look_up(&records)?;
        self.position = last;
        Ok(RecordRead::Part(RecordPart { records, last, first_at }))
    }

    /// Puts the names of the pools with changed numbers into the window.
    fn look_up_pools(&mut self, records: &[BatchRecord]) -> Result<(), EventsError> {
        for pools in records.iter().map(|record| &record.batch.pools) {
            for pool in &pools.records {
                self.window.put_pool(pool.id, pool.name.as_str().into());
            }
            for part in &pools.journal {
                if self.window.pool(part.pool).is_none() {
                    let found = self.directory.pool_name(part.pool).map_err(EventsError::Messages)?;
                    let name = found.map_or_else(|| "?".into(), |name| name.as_str().into());
                    self.window.put_pool(part.pool, name);
                }
            }
        }
        Ok(())
    }

    /// Puts the messages that the records name into the window.
    fn look_up(&mut self, records: &[BatchRecord]) -> Result<(), EventsError> {
        for message in records.iter().flat_map(|record| &record.batch.accepted) {
            if !self.window.contains(message.id) {
                self.window.put(message.id, MessageFacts::of(message));
            }
        }
        if self.named.pools {
            self.look_up_pools(records)?;
        }
        let mut missing: Vec<MessageId> = records
            .iter()
            .flat_map(|record| self.named.of(&record.batch))
            .filter(|id| !self.window.contains(*id))
            .collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(());
        }
        let found = self.directory.messages(&missing).map_err(EventsError::Messages)?;
        for (id, message) in missing.into_iter().zip(found) {
            if let Some(message) = message {
                self.window.put(id, MessageFacts::of(&message));
            }
        }
        Ok(())
    }
}

/// Whether a step of a trace is a DLR from a peer.
pub(crate) fn is_dlr(step: &Step) -> bool {
    matches!(step.kind, StepKind::DlrReceived { .. } | StepKind::LateDlrReceived { .. })
}

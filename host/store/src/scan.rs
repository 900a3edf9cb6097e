//! Backward scan over waiting and finished messages, in bounded parts.

use crate::decoding::{damaged, decode_finished, decode_waiting};
use crate::finished::FinishedMessages;
use crate::tables::{FINISHED, MESSAGES};
use crate::{Store, StoreError, StoredMessage, checked};
use codec::{RecordDecoder, RecordSummary};
use model::MessageId;
use redb::ReadableTable as _;
use std::collections::BTreeSet;

/// Decision on one scanned record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanStep {
    /// The record is part of the result.
    Take,
    /// The record is skipped.
    Skip,
    /// The scan ends here: older records are not part of the result either.
    Stop,
}

/// Result of one part of a scan.
#[derive(Debug)]
pub struct BackwardScan {
    /// The records of the result, by descending id.
    pub found: Vec<StoredMessage>,
    /// The end of the part: everything from this id on was scanned. `None` if there are no older records.
    pub edge: Option<MessageId>,
    /// Number of scanned records.
    pub looks: usize,
}

/// A scanned message.
enum Scanned<'a> {
    /// A row of table `messages`.
    Waiting(&'a [u8]),
    /// The records of a finished message.
    Finished(&'a [u8]),
}

impl Scanned<'_> {
    fn summary(&self, id: MessageId) -> Result<RecordSummary, StoreError> {
        match self {
            Self::Waiting(row) => checked::record::<u64>(&id.0, row)
                .and_then(codec::read_summary)
                .map_err(damaged("messages", id.0)),
            Self::Finished(record) => codec::read_summary(record).map_err(damaged("finished_blocks", id.0)),
        }
    }

    fn decode(&self, id: MessageId, decoder: &mut RecordDecoder) -> Result<StoredMessage, StoreError> {
        Ok(match self {
            Self::Waiting(row) => StoredMessage::Waiting(decode_waiting(decoder, id, row)?, None),
            Self::Finished(record) => {
                let (message, ended) = decode_finished(decoder, id, record)?;
                StoredMessage::Finished(message, ended)
            }
        })
    }
}

impl Store {
    /// Scans waiting and finished messages with ids below `before`, by descending id: at most `looks` records, up to
    /// `most` results.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn scan_backwards(
        &self,
        before: MessageId,
        looks: usize,
        most: usize,
        mut classify: impl FnMut(MessageId, &RecordSummary) -> ScanStep,
    ) -> Result<BackwardScan, StoreError> {
        let transaction = self.read()?;
        let messages = transaction.open_table(MESSAGES)?;
        let finished = FinishedMessages(transaction.open_table(FINISHED)?);
        let mut waiting = messages.range(..before.0)?.rev();
        let mut ended = finished.before(before)?;
        let (mut next_waiting, mut next_ended) = (waiting.next().transpose()?, ended.next().transpose()?);
        let mut decoder = self.decoder();
        let mut scan = BackwardScan { found: Vec::new(), edge: None, looks: 0 };
        loop {
            let waiting_id = next_waiting.as_ref().map(|(id, _)| MessageId(id.value()));
            let is_ended = next_ended.as_ref().map(|(id, _)| *id) > waiting_id;
            let next = if is_ended {
                next_ended.as_ref().map(|(id, record)| (*id, Scanned::Finished(record)))
            } else {
                waiting_id.zip(next_waiting.as_ref().map(|(_, row)| Scanned::Waiting(row.value())))
            };
            let Some((id, scanned)) = next else {
                scan.edge = None;
                return Ok(scan);
            };
            if scan.looks == looks || scan.found.len() == most {
                return Ok(scan);
            }
            scan.looks += 1;
            scan.edge = Some(id);
            match classify(id, &scanned.summary(id)?) {
                ScanStep::Skip => {}
                ScanStep::Stop => {
                    scan.edge = None;
                    return Ok(scan);
                }
                ScanStep::Take => scan.found.push(scanned.decode(id, &mut decoder)?),
            }
            if is_ended {
                next_ended = ended.next().transpose()?;
            } else {
                next_waiting = waiting.next().transpose()?;
            }
        }
    }
}

impl Store {
    /// Numbers of the keys that encrypt the contents of waiting messages. Takes the time to read the table of waiting
    /// messages.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn content_keys_in_use(&self) -> Result<BTreeSet<u64>, StoreError> {
        let transaction = self.read()?;
        let mut found = BTreeSet::new();
        for row in transaction.open_table(MESSAGES)?.iter()? {
            let (id, value) = row?;
            let record = checked::record::<u64>(&id.value(), value.value());
            found.extend(codec::content_key(record.map_err(damaged("messages", id.value()))?));
        }
        Ok(found)
    }
}

//! Backward scan over waiting and finished messages, in bounded parts.

use crate::decoding::{damaged, decode_finished, decode_waiting};
use crate::tables::{FINISHED, MESSAGES};
use crate::{Store, StoreError, StoredMessage, checked};
use codec::RecordSummary;
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
        let (messages, finished) = (transaction.open_table(MESSAGES)?, transaction.open_table(FINISHED)?);
        let mut waiting = messages.range(..before.0)?.rev();
        let mut ended = finished.range(..before.0)?.rev();
        let (mut next_waiting, mut next_ended) = (waiting.next().transpose()?, ended.next().transpose()?);
        let mut decoder = self.decoder();
        let mut scan = BackwardScan { found: Vec::new(), edge: None, looks: 0 };
        loop {
            let id_of = |row: &Option<(redb::AccessGuard<'_, u64>, redb::AccessGuard<'_, &[u8]>)>| {
                row.as_ref().map(|(id, _)| id.value())
            };
            let is_ended = id_of(&next_ended) > id_of(&next_waiting);
            let next = if is_ended { &mut next_ended } else { &mut next_waiting };
            let Some((id, value)) = next.take() else {
                scan.edge = None;
                return Ok(scan);
            };
            if scan.looks == looks || scan.found.len() == most {
                return Ok(scan);
            }
            let (id, table) = (id.value(), if is_ended { "finished" } else { "messages" });
            scan.looks += 1;
            scan.edge = Some(MessageId(id));
            let summary = checked::record::<u64>(&id, value.value())
                .and_then(codec::read_summary)
                .map_err(damaged(table, id))?;
            match classify(MessageId(id), &summary) {
                ScanStep::Skip => {}
                ScanStep::Stop => {
                    scan.edge = None;
                    return Ok(scan);
                }
                ScanStep::Take if is_ended => {
                    scan.found.push(decode_finished(&mut decoder, MessageId(id), value.value())?);
                }
                ScanStep::Take => {
                    let message = decode_waiting(&mut decoder, MessageId(id), value.value())?;
                    scan.found.push(StoredMessage::Waiting(message, None));
                }
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

//! Queries of the tables.

use crate::decoding::{damaged, decode_finished, decode_progress, decode_waiting, open_recorded_calls};
use crate::finished::FinishedMessages;
use crate::pending::PendingContent;
use crate::tables::{FINISHED, KEYS, MESSAGES, OPERATIONS, OPERATIONS_BY_ACCOUNT, PROGRESS};
use crate::{Store, StoreError, StoredMessage, checked};
use model::{
    Address, FinalRecord, Message, MessageId, MessageKind, OperationRecord, SUBMISSION_IDS, Timestamp,
};
use redb::{ReadTransaction, ReadableTable as _};
use std::sync::Arc;

/// A page of finished messages.
#[derive(Debug)]
pub struct FinishedPage {
    /// The messages, newest first.
    pub messages: Vec<(Message, FinalRecord)>,
    /// The lowest id scanned; `None` if nothing is left below it.
    pub lowest: Option<MessageId>,
}

impl Store {
    /// The contents of waiting messages: from the pending changes, otherwise from the tables.
    pub(crate) fn load_stored(
        &self,
        transaction: &ReadTransaction,
        found: impl Iterator<Item = (MessageId, PendingContent)>,
    ) -> Result<Vec<Option<Arc<Message>>>, StoreError> {
        let messages = transaction.open_table(MESSAGES)?;
        let mut decoder = self.decoder();
        found
            .map(|(id, content)| match content {
                PendingContent::Known(record) => {
                    let (message, _) = decoder.message(id, &record).map_err(damaged("messages", id.0))?;
                    Ok(Some(Arc::new(message)))
                }
                PendingContent::Ended => Ok(None),
                PendingContent::AsStored => {
                    let Some(row) = messages.get(id.0)? else { return Ok(None) };
                    Ok(Some(Arc::new(decode_waiting(&mut decoder, id, row.value())?)))
                }
            })
            .collect()
    }

    /// One message, waiting or finished.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn find(&self, id: MessageId) -> Result<Option<StoredMessage>, StoreError> {
        let transaction = self.read()?;
        let mut decoder = self.decoder();
        if let Some(row) = transaction.open_table(MESSAGES)?.get(id.0)? {
            let message = decode_waiting(&mut decoder, id, row.value())?;
            let progress = match transaction.open_table(PROGRESS)?.get(id.0)? {
                Some(row) => {
                    let mut progress = decode_progress(id, row.value())?;
                    open_recorded_calls(&decoder, id, &mut progress.steps);
                    Some(progress)
                }
                None => None,
            };
            return Ok(Some(StoredMessage::Waiting(message, progress)));
        }
        let Some(record) = FinishedMessages(transaction.open_table(FINISHED)?).get(id)? else {
            return Ok(None);
        };
        let (message, ended) = decode_finished(&mut decoder, id, &record)?;
        Ok(Some(StoredMessage::Finished(message, ended)))
    }

    /// The contents of messages, waiting or finished, in the order of `ids`; `None` for unknown ids.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn contents(&self, ids: &[MessageId]) -> Result<Vec<Option<Message>>, StoreError> {
        let transaction = self.read()?;
        let messages = transaction.open_table(MESSAGES)?;
        let finished = FinishedMessages(transaction.open_table(FINISHED)?);
        let mut decoder = self.decoder();
        let mut contents = Vec::with_capacity(ids.len());
        for id in ids {
            contents.push(if let Some(row) = messages.get(id.0)? {
                Some(decode_waiting(&mut decoder, *id, row.value())?)
            } else if let Some(record) = finished.get(*id)? {
                Some(decode_finished(&mut decoder, *id, &record)?.0)
            } else {
                None
            });
        }
        Ok(contents)
    }

    /// The finished messages in the store that belong to one submission to several destinations, by ascending id. For
    /// the id of a message that was submitted alone, that message.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn finished_of(&self, id: MessageId) -> Result<Vec<(Message, FinalRecord)>, StoreError> {
        let transaction = self.read()?;
        let finished = FinishedMessages(transaction.open_table(FINISHED)?);
        let mut decoder = self.decoder();
        let mut found = Vec::new();
        for each in finished.from(id)? {
            let (at, record) = each?;
            if at.0 >= id.0.saturating_add(SUBMISSION_IDS) {
                break;
            }
            let (message, ended) = decode_finished(&mut decoder, at, &record)?;
            let is_shared = message.submission == Some(id);
            if is_shared || at == id {
                found.push((message, ended));
            }
            if !is_shared {
                break;
            }
        }
        Ok(found)
    }

    /// Finished messages with ids above `after`, by ascending id, at most `most`.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn finished_after(
        &self,
        after: MessageId,
        most: usize,
    ) -> Result<Vec<(Message, FinalRecord)>, StoreError> {
        let transaction = self.read()?;
        let finished = FinishedMessages(transaction.open_table(FINISHED)?);
        let mut decoder = self.decoder();
        let after = finished.from(MessageId(after.0.saturating_add(1)))?.take(most);
        after
            .map(|found| {
                let (id, record) = found?;
                decode_finished(&mut decoder, id, &record)
            })
            .collect()
    }

    /// Finished messages with ids below `before`, newest first, out of at most `most` rows.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn finished_before(&self, before: MessageId, most: usize) -> Result<FinishedPage, StoreError> {
        let transaction = self.read()?;
        let finished = FinishedMessages(transaction.open_table(FINISHED)?);
        let mut decoder = self.decoder();
        let (mut found, mut lowest) = (Vec::new(), None);
        let mut records = finished.before(before)?;
        for each in records.by_ref().take(most) {
            let (id, record) = each?;
            lowest = Some(id);
            found.push(decode_finished(&mut decoder, id, &record)?);
        }
        let is_more = records.next().transpose()?.is_some();
        Ok(FinishedPage { messages: found, lowest: lowest.filter(|_| is_more) })
    }

    /// The newest waiting and finished messages with ids below `before`, by descending id: at most `most`, without
    /// DLRs.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn newest(&self, before: MessageId, most: usize) -> Result<Vec<StoredMessage>, StoreError> {
        let transaction = self.read()?;
        let mut decoder = self.decoder();
        let mut found: Vec<(u64, StoredMessage)> = Vec::new();
        for row in transaction.open_table(MESSAGES)?.range(..before.0)?.rev() {
            if found.len() == most {
                break;
            }
            let (id, value) = row?;
            let id = id.value();
            let message = decode_waiting(&mut decoder, MessageId(id), value.value())?;
            if message.kind == MessageKind::Text {
                found.push((id, StoredMessage::Waiting(message, None)));
            }
        }
        for each in FinishedMessages(transaction.open_table(FINISHED)?).before(before)?.take(most) {
            let (id, record) = each?;
            let (message, ended) = decode_finished(&mut decoder, id, &record)?;
            found.push((id.0, StoredMessage::Finished(message, ended)));
        }
        found.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        let found = found.into_iter().take(most).map(|(_, found)| found).collect();
        Ok(found)
    }

    /// The later of two times: of the newest message and of the newest idempotency key. `None` if there are no such rows.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn newest_time(&self) -> Result<Option<Timestamp>, StoreError> {
        let transaction = self.read()?;
        let key = transaction.open_table(KEYS)?.last()?.map(|(serial, value)| {
            let serial = serial.value();
            checked::record::<u64>(&serial, value.value())
                .and_then(|record| codec::decode_idempotency_key(serial, record))
                .map(|key| key.at)
                .map_err(damaged("keys", serial))
        });
        let message = self.newest(MessageId(u64::MAX), 1)?.pop().map(|found| found.message().accepted_at);
        Ok(key.transpose()?.into_iter().chain(message).max())
    }

    /// The oldest waiting or finished message.
    ///
    /// # Errors
    /// The disk fails.
    pub fn oldest(&self) -> Result<Option<MessageId>, StoreError> {
        let transaction = self.read()?;
        let first = transaction.open_table(MESSAGES)?.first()?.map(|(id, _)| MessageId(id.value()));
        let finished = FinishedMessages(transaction.open_table(FINISHED)?);
        let other = finished.from(MessageId(0))?.next().transpose()?.map(|(id, _)| id);
        Ok(first.into_iter().chain(other).min())
    }

    /// Passes source and destination of every waiting and finished message to `each`, decoding these fields only.
    /// DLRs are skipped.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn parties(&self, mut each: impl FnMut(MessageId, &Address, &Address)) -> Result<(), StoreError> {
        let transaction = self.read()?;
        let mut pass = |id: MessageId, parties| {
            if let Some((source, destination)) = parties {
                each(id, &source, &destination);
            }
        };
        for row in transaction.open_table(MESSAGES)?.iter()? {
            let (id, value) = row?;
            let id = MessageId(id.value());
            let parties = checked::record::<u64>(&id.0, value.value()).and_then(codec::decode_parties);
            pass(id, parties.map_err(damaged("messages", id.0))?);
        }
        for found in FinishedMessages(transaction.open_table(FINISHED)?).from(MessageId(0))? {
            let (id, record) = found?;
            pass(id, codec::decode_parties(&record).map_err(damaged("finished_blocks", id.0))?);
        }
        Ok(())
    }

    /// The balance operations of a ledger account, newest first: at most `most`, with serial numbers below `before`
    /// if given.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn operations(
        &self,
        account: &str,
        before: Option<u64>,
        most: usize,
    ) -> Result<Vec<OperationRecord>, StoreError> {
        let transaction = self.read()?;
        let index = transaction.open_table(OPERATIONS_BY_ACCOUNT)?;
        let operations = transaction.open_table(OPERATIONS)?;
        let mut found = Vec::new();
        for row in index.range((account, 0)..(account, before.unwrap_or(u64::MAX)))?.rev().take(most) {
            let (key, _) = row?;
            let serial = key.value().1;
            if let Some(row) = operations.get(serial)? {
                let record = checked::record::<u64>(&serial, row.value())
                    .and_then(|record| codec::decode_operation(serial, record));
                found.push(record.map_err(damaged("ledger_operations", serial))?);
            }
        }
        Ok(found)
    }
}

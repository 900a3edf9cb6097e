//! Decoding of rows.

use crate::{StoreError, checked};
use codec::{RecordDecoder, RecordError};
use journal::JournalRecord;
use model::{Batch, FinalRecord, Message, MessageId, MessageProgress, Step, StepKind};

/// A message in the store.
#[derive(Debug)]
pub enum StoredMessage {
    /// A waiting message and its progress.
    Waiting(Message, Option<MessageProgress>),
    /// A finished message.
    Finished(Message, FinalRecord),
}

impl StoredMessage {
    /// The message, waiting or finished.
    #[must_use]
    pub fn message(&self) -> &Message {
        let (Self::Waiting(message, _) | Self::Finished(message, _)) = self;
        message
    }

    /// Like [`StoredMessage::message`], by value.
    #[must_use]
    pub fn into_message(self) -> Message {
        let (Self::Waiting(message, _) | Self::Finished(message, _)) = self;
        message
    }
}

/// Decrypts hook calls that are recorded for replays. Calls that cannot be decrypted are left out.
pub(crate) fn open_recorded_calls(decoder: &RecordDecoder, id: MessageId, steps: &mut Vec<Step>) {
    codec::open_recorded_calls(decoder.cipher().map(|cipher| &**cipher), id, steps);
}

pub(crate) fn damaged(table: &'static str, id: u64) -> impl Fn(RecordError) -> StoreError {
    move |source| StoreError::Record { table, id, source }
}

pub(crate) fn decode_waiting(
    decoder: &mut RecordDecoder,
    id: MessageId,
    row: &[u8],
) -> Result<Message, StoreError> {
    let message = checked::record::<u64>(&id.0, row).and_then(|record| decoder.message(id, record));
    message.map(|(message, _)| message).map_err(damaged("messages", id.0))
}

pub(crate) fn decode_progress(id: MessageId, row: &[u8]) -> Result<MessageProgress, StoreError> {
    let progress = checked::record::<u64>(&id.0, row).and_then(codec::decode_progress);
    progress.map_err(damaged("progress", id.0))
}

/// A finished message for rewriting: content whose key the decoder lacks stays encrypted.
pub(crate) fn decode_finished_record(
    decoder: &mut RecordDecoder,
    id: MessageId,
    record: &[u8],
) -> Result<(Message, FinalRecord), StoreError> {
    let (message, length) = decoder.message(id, record).map_err(damaged("finished_blocks", id.0))?;
    let ended = codec::decode_final(record.get(length..).unwrap_or_default());
    Ok((message, ended.map_err(damaged("finished_blocks", id.0))?))
}

/// A finished message for readers: content whose key is missing counts as erased.
pub(crate) fn decode_finished(
    decoder: &mut RecordDecoder,
    id: MessageId,
    record: &[u8],
) -> Result<(Message, FinalRecord), StoreError> {
    let (message, mut ended) = decode_finished_record(decoder, id, record)?;
    open_recorded_calls(decoder, id, &mut ended.steps);
    if let Some(sealed) = &message.sealed
        && ended.content_erased_at().is_none()
    {
        let destroyed_at = decoder.cipher().and_then(|cipher| cipher.destroyed_at(sealed.key));
        let kind = StepKind::ContentErased { by: codec::KEY_DESTROYED.into() };
        ended.steps.push(Step { at: destroyed_at.unwrap_or(ended.at), kind });
    }
    Ok((message, ended))
}

/// The batch of a record of the journal; `None` for a claim.
///
/// # Errors
/// The record cannot be decoded: a newer version wrote it.
pub fn decode_record(record: &JournalRecord) -> Result<Option<Batch>, StoreError> {
    let batch = record.payload().map(codec::decode_batch).transpose();
    batch.map_err(|source| StoreError::JournalRecord { seq: record.seq, source })
}

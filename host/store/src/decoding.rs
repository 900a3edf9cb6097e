//! Decoding of rows.

use crate::StoreError;
use codec::{RecordDecoder, RecordError};
use model::{FinalRecord, Message, MessageId, MessageProgress};

/// A message in the store.
#[derive(Debug)]
pub enum StoredMessage {
    /// A waiting message and its progress.
    Waiting(Message, Option<MessageProgress>),
    /// A finished message.
    Finished(Message, FinalRecord),
}

pub(crate) fn damaged(table: &'static str, id: u64) -> impl Fn(RecordError) -> StoreError {
    move |source| StoreError::Record { table, id, source }
}

pub(crate) fn decode_finished(
    decoder: &mut RecordDecoder,
    id: MessageId,
    octets: &[u8],
) -> Result<StoredMessage, StoreError> {
    let (message, length) = decoder.message(id, octets).map_err(damaged("finished", id.0))?;
    let ended =
        codec::decode_final(octets.get(length..).unwrap_or_default()).map_err(damaged("finished", id.0))?;
    Ok(StoredMessage::Finished(message, ended))
}

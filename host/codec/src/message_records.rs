//! The records of messages in an encoded batch, found without decoding them.

use crate::batch::Section;
use crate::field::Field as _;
use crate::{BatchFormat, Cursor, RecordError};
use model::MessageId;
use std::ops::Range;

/// The kind of a record of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRecordKind {
    /// A new message; see [`encode_message`](crate::encode_message).
    Accepted,
    /// The new content of a waiting message; see [`encode_message`](crate::encode_message).
    Replaced,
    /// The progress of a waiting message; see [`encode_progress`](crate::encode_progress).
    Progress,
    /// The end of a message; see [`encode_final`](crate::encode_final).
    Finished,
}

/// A record of a message in an encoded batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRecord {
    /// Its kind.
    pub kind: MessageRecordKind,
    /// The message.
    pub id: MessageId,
    /// Where its octets are.
    pub octets: Range<usize>,
}

/// The records of messages in the output of [`encode_batch`](crate::encode_batch), by kind.
///
/// # Errors
/// The octets are not a batch.
pub fn message_records(octets: &[u8]) -> Result<Vec<MessageRecord>, RecordError> {
    let BatchFormat::V1 = BatchFormat::of(octets)?;
    let mut cursor = Cursor::new(octets);
    let mut records = Vec::new();
    while !cursor.is_at_end() {
        let section = Section::from_octet(cursor.u8()?).ok_or_else(|| cursor.damaged("unknown section"))?;
        let content = cursor.long()?;
        let kind = match section {
            Section::Accepted => MessageRecordKind::Accepted,
            Section::Replaced => MessageRecordKind::Replaced,
            Section::Progress => MessageRecordKind::Progress,
            Section::Finished => MessageRecordKind::Finished,
            _ => continue,
        };
        let begin = cursor.at() - content.len();
        let mut rows = Cursor::new(content);
        while !rows.is_at_end() {
            let mut row = || Ok((MessageId::read(&mut rows)?, rows.long()?.len()));
            let (id, length) = row().map_err(|error: RecordError| error.behind(begin))?;
            let end = begin + rows.at();
            records.push(MessageRecord { kind, id, octets: end - length..end });
        }
    }
    Ok(records)
}

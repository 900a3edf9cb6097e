//! The formats of records.

use crate::Cursor;

/// The record format that this version writes. It reads all formats up to it.
pub const FORMAT: u8 = 8;

/// The format of a message whose content is encrypted. Other records do not have it.
pub(crate) const SEALED_FORMAT: u8 = 9;

/// Whether this version reads a format.
fn is_known(format: u8) -> bool {
    (1..=FORMAT).contains(&format)
}

/// A record that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} at octet {offset}")]
pub struct RecordError {
    /// The cause.
    pub what: &'static str,
    /// The offset of the fault.
    pub offset: usize,
}

impl RecordError {
    /// The error of a record that begins at this offset.
    pub(crate) fn behind(self, offset: usize) -> Self {
        Self { offset: self.offset + offset, ..self }
    }
}

/// A cursor after the format octet of a record, and the format.
pub(crate) fn begin(octets: &[u8]) -> Result<(Cursor<'_>, u8), RecordError> {
    let mut cursor = Cursor::new(octets);
    let format = cursor.u8()?;
    if is_known(format) {
        return Ok((cursor, format));
    }
    Err(RecordError { what: "unknown record format", offset: 0 })
}

/// A cursor after the format of a message record, and after the number of the key if the content is encrypted; with format
/// and key.
pub(crate) fn begin_message(octets: &[u8]) -> Result<(Cursor<'_>, u8, Option<u64>), RecordError> {
    if octets.first() != Some(&SEALED_FORMAT) {
        let (cursor, format) = begin(octets)?;
        return Ok((cursor, format, None));
    }
    let mut cursor = Cursor::new(octets);
    let (format, key) = (cursor.u8()?, cursor.u64()?);
    Ok((cursor, format, Some(key)))
}

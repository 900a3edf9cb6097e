//! The encoding of the counts of pace buckets.

use crate::format::begin;
use crate::{Cursor, FORMAT, RecordError};
use model::{PaceDay, Timestamp};
use std::sync::Arc;

/// On disk, table `pace_days`, key the bucket's name, value (25 octets, little-endian): 1 format, 8 beginning and 8 end of
/// the day, milliseconds since the Unix epoch, 8 tokens taken.
pub fn encode_pace_day(out: &mut Vec<u8>, record: &PaceDay) {
    out.push(FORMAT);
    out.extend_from_slice(&record.start.0.to_le_bytes());
    out.extend_from_slice(&record.end.0.to_le_bytes());
    out.extend_from_slice(&record.taken.to_le_bytes());
}

/// Decodes the output of [`encode_pace_day`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_pace_day(bucket: Arc<str>, octets: &[u8]) -> Result<PaceDay, RecordError> {
    let cursor: &mut Cursor<'_> = &mut begin(octets)?.0;
    let (start, end) = (Timestamp(cursor.u64()?), Timestamp(cursor.u64()?));
    Ok(PaceDay { bucket, start, end, taken: cursor.u64()? })
}

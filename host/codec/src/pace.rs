//! The encoding of pace buckets and send windows of decisions, and of the counts of days.
//!
//! Of a decision: 2 number of buckets, each name, 1 kind (0 configured, 1 per time, 2 per day), then of a definition 8 amount,
//! 1 unit, and 8 ms or a zone; 2 number of windows, each name, 2 number of hours; if there are any, a zone, and of each 1 days
//! (bit 0 Monday), 2 opens, 2 closes.

use crate::format::begin;
use crate::routing::{FixedLayout, Layout, put_count};
use crate::{Cursor, FORMAT, RecordError};
use model::{
    DefinedPeriod, MessageChanges, PaceBucketDefinition, PaceBucketUse, PaceDay, PaceUnit, SendHours,
    SendWindowDefinition, SendWindowUse, Timestamp,
};
use std::sync::Arc;
use std::time::Duration;

/// Writes the pace buckets and send windows of changes.
pub(crate) fn put_pace<L: Layout>(out: &mut Vec<u8>, changes: &MessageChanges) {
    let count = put_count::<L>(out, changes.pace_buckets.len());
    for bucket in changes.pace_buckets.iter().take(count) {
        L::put_text(out, &bucket.name);
        put_definition::<L>(out, bucket.defined.as_ref());
    }
    let count = put_count::<L>(out, changes.send_windows.len());
    for window in changes.send_windows.iter().take(count) {
        L::put_text(out, &window.name);
        let hours = window.defined.as_ref().map_or(&[][..], |defined| &defined.hours);
        let count = put_count::<L>(out, hours.len());
        if let Some(defined) = window.defined.as_ref().filter(|_| count > 0) {
            L::put_text(out, &defined.zone);
        }
        for hours in hours.iter().take(count) {
            let days = hours.days.iter().rev().fold(0, |days, open| days << 1 | u8::from(*open));
            out.push(days);
            L::put_number(out, u64::from(hours.opens), 2);
            L::put_number(out, u64::from(hours.closes), 2);
        }
    }
}

/// Reads the pace buckets and send windows of changes.
pub(crate) fn read_pace<L: Layout>(
    cursor: &mut Cursor<'_>,
    changes: &mut MessageChanges,
) -> Result<(), RecordError> {
    for _ in 0..L::number(cursor, 2)? {
        let name = L::text(cursor)?.into();
        changes.pace_buckets.push(PaceBucketUse { name, defined: read_definition::<L>(cursor)? });
    }
    for _ in 0..L::number(cursor, 2)? {
        let name = L::text(cursor)?.into();
        let count = L::number(cursor, 2)?;
        let defined = if count == 0 { None } else { Some(read_window::<L>(cursor, count)?) };
        changes.send_windows.push(SendWindowUse { name, defined });
    }
    Ok(())
}

fn read_window<L: Layout>(cursor: &mut Cursor<'_>, count: u64) -> Result<SendWindowDefinition, RecordError> {
    let zone = L::text(cursor)?.into();
    let mut hours = Vec::new();
    for _ in 0..count {
        let bits = cursor.u8()?;
        let minute = |cursor: &mut Cursor<'_>| {
            u16::try_from(L::number(cursor, 2)?).map_err(|_| cursor.damaged("minute too large"))
        };
        let days = std::array::from_fn(|day| bits & 1 << day != 0);
        hours.push(SendHours { days, opens: minute(cursor)?, closes: minute(cursor)? });
    }
    Ok(SendWindowDefinition { zone, hours })
}

fn put_definition<L: Layout>(out: &mut Vec<u8>, defined: Option<&PaceBucketDefinition>) {
    let Some(PaceBucketDefinition { amount, per, counts }) = defined else { return out.push(0) };
    out.push(match per {
        DefinedPeriod::Time(_) => 1,
        DefinedPeriod::Day(_) => 2,
    });
    L::put_number(out, *amount, 8);
    out.push(*counts as u8);
    match per {
        DefinedPeriod::Time(time) => {
            L::put_number(out, u64::try_from(time.as_millis()).unwrap_or(u64::MAX), 8);
        }
        DefinedPeriod::Day(zone) => L::put_text(out, zone),
    }
}

fn read_definition<L: Layout>(cursor: &mut Cursor<'_>) -> Result<Option<PaceBucketDefinition>, RecordError> {
    let kind = cursor.u8()?;
    if kind == 0 {
        return Ok(None);
    }
    let amount = L::number(cursor, 8)?;
    let counts =
        PaceUnit::from_octet(cursor.u8()?).ok_or_else(|| cursor.damaged("unknown unit of a pace bucket"))?;
    let per = match kind {
        1 => DefinedPeriod::Time(Duration::from_millis(L::number(cursor, 8)?)),
        2 => DefinedPeriod::Day(L::text(cursor)?.into()),
        _ => return Err(cursor.damaged("unknown period of a pace bucket")),
    };
    Ok(Some(PaceBucketDefinition { amount, per, counts }))
}

/// On disk, table `pace_days`, key the bucket's name, value (little-endian): 1 format, 8 beginning and 8 end of the day,
/// milliseconds since the Unix epoch, 8 tokens used, the definition if it is a bucket of a plugin, as in a decision.
pub fn encode_pace_day(out: &mut Vec<u8>, record: &PaceDay) {
    out.push(FORMAT);
    out.extend_from_slice(&record.start.0.to_le_bytes());
    out.extend_from_slice(&record.end.0.to_le_bytes());
    out.extend_from_slice(&record.used.to_le_bytes());
    put_definition::<FixedLayout>(out, record.defined.as_ref());
}

/// Decodes the output of [`encode_pace_day`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_pace_day(bucket: Arc<str>, octets: &[u8]) -> Result<PaceDay, RecordError> {
    let cursor: &mut Cursor<'_> = &mut begin(octets)?.0;
    let (start, end) = (Timestamp(cursor.u64()?), Timestamp(cursor.u64()?));
    let used = cursor.u64()?;
    Ok(PaceDay { bucket, start, end, used, defined: read_definition::<FixedLayout>(cursor)? })
}

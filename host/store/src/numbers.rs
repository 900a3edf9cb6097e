//! The octets of numbers of pools. As in `record`, all numbers but those in keys are little-endian and every record begins
//! with its format version.

use crate::RecordError;
use crate::cursor::{Cursor, put_text};
use crate::record::{FORMAT, is_known};
use engine::NumberRow;
use model::{NumberState, Timestamp};

/// On disk, table `numbers`, value: 1 format, 1 state (0 idle and up, 1 idle and down, 2 busy and up, 3 busy and down; 4
/// more where there is an end, 8 more where there is a holder or a reason), 8 stamp, 1 weight, 4 calls; 8 end, where there
/// is one; holder and reason, each 2 length, UTF-8, where there is either.
pub fn encode_number(out: &mut Vec<u8>, row: &NumberRow) {
    let state = match row.state {
        NumberState::IdleUp => 0,
        NumberState::IdleDown => 1,
        NumberState::BusyUp => 2,
        NumberState::BusyDown => 3,
    };
    let named = !row.holder.is_empty() || !row.reason.is_empty();
    out.push(FORMAT);
    out.push(state | if row.ends.is_some() { 4 } else { 0 } | if named { 8 } else { 0 });
    out.extend_from_slice(&row.stamp.to_le_bytes());
    out.push(row.weight);
    out.extend_from_slice(&row.calls.to_le_bytes());
    if let Some(ends) = row.ends {
        out.extend_from_slice(&ends.0.to_le_bytes());
    }
    if named {
        put_text(out, &row.holder);
        put_text(out, &row.reason);
    }
}

/// Reads what [`encode_number`] wrote.
///
/// # Errors
/// When the octets are no such record.
pub fn decode_number(octets: &[u8]) -> Result<NumberRow, RecordError> {
    let mut cursor = Cursor::new(octets);
    if !is_known(cursor.u8()?) {
        return Err(RecordError { what: "unknown record format", offset: 0 });
    }
    let kind = cursor.u8()?;
    if kind > 15 {
        return Err(cursor.damaged("unknown state of a number"));
    }
    let state = match kind & 3 {
        0 => NumberState::IdleUp,
        1 => NumberState::IdleDown,
        2 => NumberState::BusyUp,
        _ => NumberState::BusyDown,
    };
    let (stamp, weight, calls) = (cursor.u64()?, cursor.u8()?, cursor.u32()?);
    let ends = if kind & 4 == 0 { None } else { Some(Timestamp(cursor.u64()?)) };
    let (holder, reason) =
        if kind & 8 == 0 { Default::default() } else { (cursor.text()?.into(), cursor.text()?.into()) };
    Ok(NumberRow { state, stamp, ends, weight, calls, holder, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows() -> impl Strategy<Value = NumberRow> {
        let state = proptest::sample::select(vec![
            NumberState::IdleUp,
            NumberState::IdleDown,
            NumberState::BusyUp,
            NumberState::BusyDown,
        ]);
        let figures = (any::<u64>(), proptest::option::of(any::<u64>()), any::<u8>(), any::<u32>());
        (state, figures, "\\PC{0,20}", "\\PC{0,20}").prop_map(
            |(state, (stamp, ends, weight, calls), holder, reason)| NumberRow {
                state,
                stamp,
                ends: ends.map(Timestamp),
                weight,
                calls,
                holder: holder.into(),
                reason: reason.into(),
            },
        )
    }

    proptest! {
        #[test]
        fn numbers_read_as_written(row in rows()) {
            let mut octets = Vec::new();
            encode_number(&mut octets, &row);
            let read = decode_number(&octets);
            prop_assert_eq!(read.as_ref(), Ok(&row));
            for cut in 0..octets.len() {
                prop_assert!(decode_number(&octets[..cut]).is_err(), "cut at {}", cut);
            }
            octets[0] = FORMAT + 1;
            prop_assert!(decode_number(&octets).is_err());
        }

        #[test]
        fn any_octets_are_read_or_refused(octets: Vec<u8>) {
            let _ = decode_number(&octets);
        }
    }
}

//! The encoding of number pools. All numbers except those in keys are little-endian and every record
//! begins with its format version.

use crate::format::begin;
use crate::{Cursor, FORMAT, RecordError, put_text};
use model::{
    JournalEntry, MessageId, NumberRow, NumberState, PoolChange, PoolId, PoolName, PoolNumber, PoolRecord,
    PoolSettings, Strategy, Timestamp,
};
use std::sync::Arc;
use std::time::Duration;

const STATES: [NumberState; 4] =
    [NumberState::IdleUp, NumberState::IdleDown, NumberState::BusyUp, NumberState::BusyDown];
const STRATEGIES: [Strategy; 5] =
    [Strategy::LongestIdle, Strategy::Random, Strategy::Weighted, Strategy::Sticky, Strategy::Nearest];

fn octet_of<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|other| other == one).and_then(|place| u8::try_from(place).ok()).unwrap_or(0)
}

/// On disk, table `pools`, key: the pool's number; value: 1 format, 1 flags (1: gone), 1 strategy (0 longest idle, 1
/// random, 2 weighted, 3 sticky, 4 nearest), 8 quarantine in milliseconds, 8 last stamp, 8 entries, 8 folded, 2
/// length, name.
pub fn encode_pool(out: &mut Vec<u8>, pool: &PoolRecord) {
    out.extend_from_slice(&[FORMAT, u8::from(pool.removed), octet_of(&STRATEGIES, &pool.settings.strategy)]);
    let quarantine = u64::try_from(pool.settings.quarantine.as_millis()).unwrap_or(u64::MAX);
    for figure in [quarantine, pool.serial, pool.entries, pool.folded] {
        out.extend_from_slice(&figure.to_le_bytes());
    }
    put_text(out, pool.name.as_str());
}

/// Decodes the output of [`encode_pool`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_pool(id: PoolId, octets: &[u8]) -> Result<PoolRecord, RecordError> {
    let (mut cursor, _) = begin(octets)?;
    let removed = cursor.u8()? & 1 == 1;
    let strategy = usize::from(cursor.u8()?);
    let strategy = *STRATEGIES.get(strategy).ok_or_else(|| cursor.damaged("unknown strategy of a pool"))?;
    let quarantine = Duration::from_millis(cursor.u64()?);
    let (serial, entries, folded) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let name = cursor.text()?.parse::<PoolName>().map_err(|_| cursor.damaged("no name of a pool"))?;
    let settings = PoolSettings { strategy, quarantine };
    Ok(PoolRecord { id, name, settings, serial, entries, folded, removed })
}

/// On disk, table `numbers`, key: the pool's id, the number's eight octets; value: 1 format and the row. A row: 1
/// state (0 idle and up, 1 idle and down, 2 busy and up, 3 busy and down; plus 4 with an end, 8 with a holder or a
/// reason, 16 with a message, 32 if its state began at the time of its journal entry), 8 stamp, 1 weight, 4 calls, 4
/// held, 4 lapsed; 8 since, unless 32 is set; 8 end, if any; holder and reason, each 2 length, UTF-8, if there is
/// either; 8 message, if any.
pub fn encode_number(out: &mut Vec<u8>, row: &NumberRow) {
    out.push(FORMAT);
    put_row(out, row, None);
}

/// Decodes the output of [`encode_number`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_number(octets: &[u8]) -> Result<NumberRow, RecordError> {
    let (mut cursor, _) = begin(octets)?;
    row(&mut cursor, None)
}

/// On disk, table `pool_journal`, key: the pool's id, the number of the first entry; value: 1 format, 8 last stamp, 4
/// count, entries. An entry: 8 number, 8 time, 1 change (its octet; plus 128 if the number was removed, 64 if it has
/// an author), 1 length and UTF-8 of the author, a row as in `numbers` unless it was removed.
pub fn encode_journal(out: &mut Vec<u8>, serial: u64, entries: &[JournalEntry]) {
    out.push(FORMAT);
    out.extend_from_slice(&serial.to_le_bytes());
    let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_le_bytes());
    for entry in entries.iter().take(count as usize) {
        out.extend_from_slice(&entry.number.octets());
        out.extend_from_slice(&entry.at.0.to_le_bytes());
        let removed = if entry.row.is_none() { 128 } else { 0 };
        out.push(entry.change as u8 | removed | if entry.by.is_some() { 64 } else { 0 });
        if let Some(by) = &entry.by {
            let by = by.get(..by.floor_char_boundary(255)).unwrap_or_default();
            out.push(u8::try_from(by.len()).unwrap_or(u8::MAX));
            out.extend_from_slice(by.as_bytes());
        }
        if let Some(row) = &entry.row {
            put_row(out, row, Some(entry.at));
        }
    }
}

/// Decodes the output of [`encode_journal`]: the last stamp and the entries.
///
/// # Errors
/// The octets are no such record.
pub fn decode_journal(octets: &[u8]) -> Result<(u64, Vec<JournalEntry>), RecordError> {
    let (mut cursor, _) = begin(octets)?;
    let serial = cursor.u64()?;
    let count = cursor.u32()?;
    let mut entries = Vec::with_capacity((count as usize).min(octets.len() / 17));
    let mut last_by: Option<Arc<str>> = None;
    for _ in 0..count {
        let number = PoolNumber::from_octets(cursor.array()?);
        let number = number.ok_or_else(|| cursor.damaged("no number of a pool"))?;
        let at = Timestamp(cursor.u64()?);
        let kind = cursor.u8()?;
        let change = PoolChange::from_octet(kind & 63);
        let change = change.ok_or_else(|| cursor.damaged("unknown change of a number"))?;
        let by = if kind & 64 == 0 {
            None
        } else {
            let by = std::str::from_utf8(cursor.short()?)
                .map_err(|_| RecordError { what: "a name that is not UTF-8", offset: 0 })?;
            if last_by.as_deref() != Some(by) {
                last_by = Some(by.into());
            }
            last_by.clone()
        };
        let row = if kind & 128 == 0 { Some(row(&mut cursor, Some(at))?) } else { None };
        entries.push(JournalEntry { at, number, change, row, by });
    }
    Ok((serial, entries))
}

fn put_row(out: &mut Vec<u8>, row: &NumberRow, at: Option<Timestamp>) {
    let named = !row.holder.is_empty() || !row.reason.is_empty();
    let flag = |there: bool, value: u8| if there { value } else { 0 };
    let now = at == Some(row.since);
    let flags =
        flag(row.ends.is_some(), 4) | flag(named, 8) | flag(row.message.is_some(), 16) | flag(now, 32);
    out.push(octet_of(&STATES, &row.state) | flags);
    out.extend_from_slice(&row.stamp.to_le_bytes());
    out.push(row.weight);
    for figure in [row.calls, row.held, row.lapsed] {
        out.extend_from_slice(&figure.to_le_bytes());
    }
    if !now {
        out.extend_from_slice(&row.since.0.to_le_bytes());
    }
    if let Some(ends) = row.ends {
        out.extend_from_slice(&ends.0.to_le_bytes());
    }
    if named {
        put_text(out, &row.holder);
        put_text(out, &row.reason);
    }
    if let Some(message) = row.message {
        out.extend_from_slice(&message.0.to_le_bytes());
    }
}

fn row(cursor: &mut Cursor<'_>, at: Option<Timestamp>) -> Result<NumberRow, RecordError> {
    let kind = cursor.u8()?;
    let state = *STATES.get(usize::from(kind & 3)).unwrap_or(&NumberState::IdleDown);
    if kind > 63 {
        return Err(cursor.damaged("unknown state of a number"));
    }
    let (stamp, weight) = (cursor.u64()?, cursor.u8()?);
    let (calls, held, lapsed) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let since = match at {
        Some(at) if kind & 32 != 0 => at,
        None if kind & 32 != 0 => return Err(cursor.damaged("a number without a time")),
        _ => Timestamp(cursor.u64()?),
    };
    let ends = if kind & 4 == 0 { None } else { Some(Timestamp(cursor.u64()?)) };
    let (holder, reason) =
        if kind & 8 == 0 { Default::default() } else { (cursor.text()?.into(), cursor.text()?.into()) };
    let message = if kind & 16 == 0 { None } else { Some(MessageId(cursor.u64()?)) };
    Ok(NumberRow { state, stamp, since, ends, weight, calls, held, lapsed, holder, reason, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use proptest::strategy::Strategy as Generator;

    fn rows() -> impl Generator<Value = NumberRow> {
        let figures = (any::<u64>(), any::<u8>(), any::<u32>(), any::<u32>(), any::<u32>());
        let times = (0..3u64, proptest::option::of(any::<u64>()), proptest::option::of(any::<u64>()));
        let state = proptest::sample::select(STATES.to_vec());
        (state, figures, times, "\\PC{0,20}", "\\PC{0,20}").prop_map(
            |(state, (stamp, weight, calls, held, lapsed), (since, ends, message), holder, reason)| {
                NumberRow {
                    state,
                    stamp,
                    since: Timestamp(since),
                    ends: ends.map(Timestamp),
                    weight,
                    calls,
                    held,
                    lapsed,
                    holder: holder.into(),
                    reason: reason.into(),
                    message: message.map(MessageId),
                }
            },
        )
    }

    fn entries() -> impl Generator<Value = JournalEntry> {
        let change = (0..10u8).prop_map(|octet| PoolChange::from_octet(octet).unwrap());
        let by = proptest::option::of("[a-c]{0,3}");
        ("[0-9+*#]{1,16}", 0..3u64, change, proptest::option::of(rows()), by).prop_map(
            |(number, at, change, row, by)| JournalEntry {
                at: Timestamp(at),
                number: number.parse().unwrap(),
                change,
                row,
                by: by.map(Into::into),
            },
        )
    }

    proptest! {
        #[test]
        fn numbers_round_trip(row in rows()) {
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
        fn journals_round_trip(serial: u64, entries in proptest::collection::vec(entries(), 0..10)) {
            let mut octets = Vec::new();
            encode_journal(&mut octets, serial, &entries);
            prop_assert_eq!(decode_journal(&octets), Ok((serial, entries)));
            for cut in 0..octets.len() {
                prop_assert!(decode_journal(&octets[..cut]).is_err(), "cut at {}", cut);
            }
        }

        #[test]
        fn pools_round_trip(figures: (u64, u64, u64, u64), strategy in 0..5usize, removed: bool) {
            let (quarantine, serial, entries, folded) = figures;
            let settings =
                PoolSettings { strategy: STRATEGIES[strategy], quarantine: Duration::from_millis(quarantine) };
            let name = "support-line".parse().unwrap();
            let pool = PoolRecord { id: PoolId(7), name, settings, serial, entries, folded, removed };
            let mut octets = Vec::new();
            encode_pool(&mut octets, &pool);
            let read = decode_pool(PoolId(7), &octets);
            prop_assert_eq!(read.as_ref(), Ok(&pool));
            for cut in 0..octets.len() {
                prop_assert!(decode_pool(PoolId(7), &octets[..cut]).is_err(), "cut at {}", cut);
            }
        }

        #[test]
        fn any_octets_are_read_or_refused(octets: Vec<u8>) {
            let _ = (decode_number(&octets), decode_pool(PoolId(1), &octets), decode_journal(&octets));
        }
    }
}

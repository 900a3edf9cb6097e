//! The tables of number pools: writes of a batch, and reads.
//!
//! Changes of numbers go to the journal, one row per pool and batch, always at the end of the pool's part of the
//! table: a million numbers cost no more than a thousand. Table `numbers` is updated from time to time. A start reads
//! it and the journal entries that it lacks.

use crate::store::damaged;
use crate::{Store, StoreError};
use codec::{
    RecordError, decode_journal, decode_number, decode_pool, encode_journal, encode_number, encode_pool,
};
use model::{
    JournalEntry, JournalPart, PoolBatch, PoolId, PoolNumber, PoolPurge, PoolRecord, RecoveredRecord,
};
use redb::{ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

/// Pool → its record.
pub(crate) const POOLS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("pools");
/// Pool, number → its row.
pub(crate) const NUMBERS: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("numbers");
/// Pool, number of the first entry → entries.
pub(crate) const JOURNAL: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("pool_journal");

fn key(pool: PoolId, number: PoolNumber) -> (u32, u64) {
    (pool.0, u64::from_be_bytes(number.octets()))
}

/// All keys of a pool.
fn all_of(pool: PoolId) -> std::ops::RangeInclusive<(u32, u64)> {
    (pool.0, 0)..=(pool.0, u64::MAX)
}

/// A part of a pool's history; see [`Store::pool_history`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolHistory {
    /// Entries with their numbers, newest first.
    pub entries: Vec<(u64, JournalEntry)>,
    /// The `before` of the next, older part; `None` after the oldest one.
    pub next: Option<u64>,
}

/// Writes the pool part of a batch. Most batches have none, and do not open the tables.
pub(crate) fn write(
    transaction: &WriteTransaction,
    batch: &PoolBatch,
    buffer: &mut Vec<u8>,
) -> Result<(u64, u64), StoreError> {
    let (mut rows, mut octets) = (0, 0);
    if !batch.records.is_empty() {
        let mut pools = transaction.open_table(POOLS)?;
        for record in &batch.records {
            buffer.clear();
            encode_pool(buffer, record);
            pools.insert(record.id.0, buffer.as_slice())?;
            rows += 1;
            octets += buffer.len() as u64;
        }
    }
    if !(batch.journal.is_empty() && batch.trimmed.is_empty()) {
        let mut journal = transaction.open_table(JOURNAL)?;
        for part in &batch.journal {
            buffer.clear();
            encode_journal(buffer, part.serial, &part.entries);
            journal.insert((part.pool.0, part.first), buffer.as_slice())?;
            rows += part.entries.len() as u64;
            octets += buffer.len() as u64;
        }
        for (pool, before) in &batch.trimmed {
            // The last part that begins before it may hold later entries.
            let last = journal.range((pool.0, 0)..(pool.0, *before))?.next_back().transpose()?;
            if let Some(last) = last.map(|(key, _)| key.value()) {
                journal.retain_in((pool.0, 0)..last, |_, _| false)?;
            }
        }
    }
    if !batch.numbers.is_empty() {
        let mut numbers = transaction.open_table(NUMBERS)?;
        for (pool, number, row) in &batch.numbers {
            match row {
                Some(row) => {
                    buffer.clear();
                    encode_number(buffer, row);
                    numbers.insert(key(*pool, *number), buffer.as_slice())?;
                    octets += buffer.len() as u64;
                }
                None => {
                    numbers.remove(key(*pool, *number))?;
                }
            }
            rows += 1;
        }
    }
    if let Some((pool, purge)) = batch.purged {
        rows += remove(transaction, pool, purge)?;
    }
    Ok((rows, octets))
}

fn remove(transaction: &WriteTransaction, pool: PoolId, purge: PoolPurge) -> Result<u64, StoreError> {
    let mut left = match purge {
        PoolPurge::Some(most) => most,
        PoolPurge::Rest => usize::MAX,
    };
    let mut rows = 0;
    for table in [NUMBERS, JOURNAL] {
        let mut table = transaction.open_table(table)?;
        let keys = table.range(all_of(pool))?.take(left).map(|row| row.map(|(key, _)| key.value()));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        left -= keys.len();
        rows += keys.len() as u64;
        for key in keys {
            table.remove(key)?;
        }
    }
    if purge == PoolPurge::Rest {
        transaction.open_table(POOLS)?.remove(pool.0)?;
        rows += 1;
    }
    Ok(rows)
}

/// Reads all pools, then their numbers, then the journal entries that table `numbers` lacks.
pub(crate) fn recover(
    transaction: &ReadTransaction,
    mut each: impl FnMut(RecoveredRecord),
) -> Result<(), StoreError> {
    let mut found: Vec<PoolRecord> = Vec::new();
    let (numbers, journal) = (transaction.open_table(NUMBERS)?, transaction.open_table(JOURNAL)?);
    for row in transaction.open_table(POOLS)?.iter()? {
        let (id, value) = row?;
        let id = id.value();
        let record = decode_pool(PoolId(id), value.value()).map_err(damaged("pools", u64::from(id)))?;
        if record.removed {
            let left = numbers.range(all_of(record.id))?.count() + journal.range(all_of(record.id))?.count();
            each(RecoveredRecord::PoolRemoved(record.id, left));
        } else {
            each(RecoveredRecord::Pool(record.clone()));
            found.push(record);
        }
    }
    for PoolRecord { id, folded, .. } in found {
        for row in numbers.range(all_of(id))? {
            let (key, value) = row?;
            let octets = key.value().1;
            let fail = damaged("numbers", octets);
            let number = PoolNumber::from_octets(octets.to_be_bytes());
            let number = number.ok_or(RecordError { what: "no number of a pool", offset: 0 });
            let number = number.map_err(&fail)?;
            each(RecoveredRecord::Number(id, number, decode_number(value.value()).map_err(fail)?));
        }
        // The part that holds the first of them may begin earlier.
        let first = journal.range((id.0, 0)..=(id.0, folded))?.next_back().transpose()?;
        let first = first.map_or((id.0, 0), |(key, _)| key.value());
        for row in journal.range(first..=(id.0, u64::MAX))? {
            let (key, value) = row?;
            let first = key.value().1;
            let part = decode_journal(value.value()).map_err(damaged("pool_journal", first))?;
            let (serial, entries) = part;
            each(RecoveredRecord::Journal(JournalPart { pool: id, first, serial, entries }));
        }
    }
    Ok(())
}

impl Store {
    /// The history of a pool, or of one of its numbers, newest first: at most `most` entries before `before`. For a
    /// single number, at most 100,000 entries are scanned; the result may then be shorter and still have a `next`.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn pool_history(
        &self,
        pool: PoolId,
        before: Option<u64>,
        number: Option<PoolNumber>,
        most: usize,
    ) -> Result<PoolHistory, StoreError> {
        const LOOKED_AT: usize = 100_000;
        let transaction = self.database.begin_read()?;
        let journal = transaction.open_table(JOURNAL)?;
        let before = before.unwrap_or(u64::MAX);
        let mut entries = Vec::new();
        let mut looked_at = 0;
        for row in journal.range((pool.0, 0)..(pool.0, before))?.rev() {
            let (key, value) = row?;
            let first = key.value().1;
            let (_, part) = decode_journal(value.value()).map_err(damaged("pool_journal", first))?;
            for (at, entry) in (first..).zip(part).collect::<Vec<_>>().into_iter().rev() {
                if at >= before {
                    continue;
                }
                if entries.len() >= most || looked_at >= LOOKED_AT {
                    return Ok(PoolHistory { entries, next: Some(at + 1) });
                }
                looked_at += 1;
                if number.is_none_or(|number| number == entry.number) {
                    entries.push((at, entry));
                }
            }
        }
        Ok(PoolHistory { entries, next: None })
    }

    /// The journal of a pool from entry `from` on, oldest first: at most `most` entries. It begins with the oldest
    /// stored entry if that is newer.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn pool_journal(
        &self,
        pool: PoolId,
        from: u64,
        most: usize,
    ) -> Result<Vec<(u64, JournalEntry)>, StoreError> {
        let transaction = self.database.begin_read()?;
        let journal = transaction.open_table(JOURNAL)?;
        let mut entries = Vec::new();
        let begin = journal.range((pool.0, 0)..=(pool.0, from))?.next_back().transpose()?;
        let begin = begin.map_or((pool.0, from), |(key, _)| key.value());
        for row in journal.range(begin..=(pool.0, u64::MAX))? {
            if entries.len() >= most {
                break;
            }
            let (key, value) = row?;
            let first = key.value().1;
            let (_, part) = decode_journal(value.value()).map_err(damaged("pool_journal", first))?;
            let part = (first..).zip(part).filter(|(at, _)| *at >= from);
            entries.extend(part.take(most - entries.len()));
        }
        Ok(entries)
    }
}

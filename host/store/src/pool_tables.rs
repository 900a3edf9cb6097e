//! Reads the tables of number pools.
//!
//! Changes of numbers go to the journal table, one row per pool and batch, always at the end of the pool's key range:
//! the cost does not depend on the size of the pool. Table `numbers` is updated from time to time. A start reads it and
//! the later journal entries.

use crate::decoding::damaged;
use crate::pool_changes::all_of;
use crate::tables::{NUMBERS, POOL_JOURNAL, POOLS};
use crate::{Store, StoreError, checked};
use codec::{RecordError, decode_journal, decode_number, decode_pool};
use model::{JournalEntry, JournalPart, PoolId, PoolName, PoolNumber, PoolRecord, RecoveredRecord};
use redb::{ReadTransaction, ReadableTable as _};

/// A part of a pool's history; see [`Store::pool_history`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolHistory {
    /// Entries with their numbers, newest first.
    pub entries: Vec<(u64, JournalEntry)>,
    /// The `before` of the next, older part; `None` after the oldest one.
    pub next: Option<u64>,
}

/// Reads all pools, then their numbers, then the journal entries that are not in table `numbers` yet.
pub(crate) fn recover(
    transaction: &ReadTransaction,
    mut each: impl FnMut(RecoveredRecord),
) -> Result<(), StoreError> {
    let mut found: Vec<PoolRecord> = Vec::new();
    let (numbers, journal) = (transaction.open_table(NUMBERS)?, transaction.open_table(POOL_JOURNAL)?);
    for row in transaction.open_table(POOLS)?.iter()? {
        let (id, value) = row?;
        let id = id.value();
        let record = checked::record::<u32>(&id, value.value())
            .and_then(|record| decode_pool(PoolId(id), record))
            .map_err(damaged("pools", u64::from(id)))?;
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
            let row = checked::record::<(u32, u64)>(&key.value(), value.value()).and_then(decode_number);
            each(RecoveredRecord::Number(id, number, row.map_err(fail)?));
        }
        // The row that contains the first of them may begin earlier.
        let first = journal.range((id.0, 0)..=(id.0, folded))?.next_back().transpose()?;
        let first = first.map_or((id.0, 0), |(key, _)| key.value());
        for row in journal.range(first..=(id.0, u64::MAX))? {
            let (key, value) = row?;
            let first = key.value().1;
            let part = checked::record::<(u32, u64)>(&key.value(), value.value())
                .and_then(decode_journal)
                .map_err(damaged("pool_journal", first))?;
            let (serial, entries) = part;
            each(RecoveredRecord::Journal(JournalPart { pool: id, first, serial, entries }));
        }
    }
    Ok(())
}

impl Store {
    /// The name of a pool, also while it is being removed; `None` if there is none with this id.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn pool_name(&self, pool: PoolId) -> Result<Option<PoolName>, StoreError> {
        let transaction = self.read()?;
        let Some(row) = transaction.open_table(POOLS)?.get(pool.0)? else { return Ok(None) };
        let record = checked::record::<u32>(&pool.0, row.value())
            .and_then(|record| decode_pool(pool, record))
            .map_err(damaged("pools", u64::from(pool.0)))?;
        Ok(Some(record.name))
    }

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
        const MAX_SCANNED_ENTRIES: usize = 100_000;
        let transaction = self.read()?;
        let journal = transaction.open_table(POOL_JOURNAL)?;
        let before = before.unwrap_or(u64::MAX);
        let mut entries = Vec::new();
        let mut scanned = 0;
        for row in journal.range((pool.0, 0)..(pool.0, before))?.rev() {
            let (key, value) = row?;
            let first = key.value().1;
            let (_, part) = checked::record::<(u32, u64)>(&key.value(), value.value())
                .and_then(decode_journal)
                .map_err(damaged("pool_journal", first))?;
            for (at, entry) in (first..).zip(part).collect::<Vec<_>>().into_iter().rev() {
                if at >= before {
                    continue;
                }
                if entries.len() >= most || scanned >= MAX_SCANNED_ENTRIES {
                    return Ok(PoolHistory { entries, next: Some(at + 1) });
                }
                scanned += 1;
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
        let transaction = self.read()?;
        let journal = transaction.open_table(POOL_JOURNAL)?;
        let mut entries = Vec::new();
        let begin = journal.range((pool.0, 0)..=(pool.0, from))?.next_back().transpose()?;
        let begin = begin.map_or((pool.0, from), |(key, _)| key.value());
        for row in journal.range(begin..=(pool.0, u64::MAX))? {
            if entries.len() >= most {
                break;
            }
            let (key, value) = row?;
            let first = key.value().1;
            let (_, part) = checked::record::<(u32, u64)>(&key.value(), value.value())
                .and_then(decode_journal)
                .map_err(damaged("pool_journal", first))?;
            let part = (first..).zip(part).filter(|(at, _)| *at >= from);
            entries.extend(part.take(most - entries.len()));
        }
        Ok(entries)
    }
}

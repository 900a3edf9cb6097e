//! Writes the changes of number pools to the tables.

use crate::tables::{NUMBERS, POOL_JOURNAL, POOLS};
use crate::{StoreError, checked};
use codec::{encode_journal, encode_number, encode_pool};
use model::{PoolBatch, PoolId, PoolNumber, PoolPurge};
use redb::{ReadableTable as _, WriteTransaction};

fn key(pool: PoolId, number: PoolNumber) -> (u32, u64) {
    (pool.0, u64::from_be_bytes(number.octets()))
}

/// All keys of a pool.
pub(crate) fn all_of(pool: PoolId) -> std::ops::RangeInclusive<(u32, u64)> {
    (pool.0, 0)..=(pool.0, u64::MAX)
}

/// Writes the pool changes of a batch. Most batches have none, and do not open the tables.
pub(crate) fn write(
    transaction: &WriteTransaction,
    batch: &PoolBatch,
    buffer: &mut Vec<u8>,
) -> Result<(), StoreError> {
    if !batch.records.is_empty() {
        let mut pools = transaction.open_table(POOLS)?;
        for record in &batch.records {
            checked::insert(&mut pools, &record.id.0, buffer, |out| encode_pool(out, record))?;
        }
    }
    if !(batch.journal.is_empty() && batch.trimmed.is_empty()) {
        let mut journal = transaction.open_table(POOL_JOURNAL)?;
        for part in &batch.journal {
            let encode = |out: &mut Vec<u8>| encode_journal(out, part.serial, &part.entries);
            checked::insert(&mut journal, &(part.pool.0, part.first), buffer, encode)?;
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
                    let encode = |out: &mut Vec<u8>| encode_number(out, row);
                    checked::insert(&mut numbers, &key(*pool, *number), buffer, encode)?;
                }
                None => {
                    numbers.remove(key(*pool, *number))?;
                }
            }
        }
    }
    Ok(())
}

/// Removes rows of a removed pool.
pub(crate) fn remove(
    transaction: &WriteTransaction,
    pool: PoolId,
    purge: PoolPurge,
) -> Result<(), StoreError> {
    let mut left = match purge {
        PoolPurge::Some(most) => most,
        PoolPurge::Rest => usize::MAX,
    };
    for table in [NUMBERS, POOL_JOURNAL] {
        let mut table = transaction.open_table(table)?;
        let keys = table.range(all_of(pool))?.take(left).map(|row| row.map(|(key, _)| key.value()));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        left -= keys.len();
        for key in keys {
            table.remove(key)?;
        }
    }
    if purge == PoolPurge::Rest {
        transaction.open_table(POOLS)?.remove(pool.0)?;
    }
    Ok(())
}

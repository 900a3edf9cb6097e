//! Rows of durable counters.

use super::RedbKvStore;
use super::shared_rows::{RowChange, counter_name};
use crate::Error;
use redb::{
    ReadableDatabase, ReadableTable, TableDefinition, TableError, TableHandle as _, WriteTransaction,
};
use std::ops::RangeInclusive;

/// The key of a row; see [`COUNTERS`].
type RowKey<'a> = (&'a str, &'a str, &'a str, u64, &'a [u8]);

/// Table `counters` on disk, created with the first row.
///
/// Key: plugin, name of the counter, calendar (`day Europe/Berlin`), start of the period (milliseconds since the Unix
/// epoch), key (UTF-8; 0xff and the SHA-256 digest of a key of more than 256 octets).
///
/// Value (17 octets, little-endian):
/// * 1 octet: format version (1)
/// * 8 octets: count
/// * 8 octets: exclusive end of the period, milliseconds since the Unix epoch
pub(super) const COUNTERS: TableDefinition<RowKey<'_>, &[u8]> = TableDefinition::new("counters");

const FORMAT: u8 = 1;
/// Number of rows that one transaction deletes.
const DELETE_BATCH: usize = 10_000;

/// A stored count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterRow<'a> {
    pub(crate) plugin: &'a str,
    pub(crate) name: &'a str,
    pub(crate) calendar: &'a str,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) key: &'a [u8],
    pub(crate) count: u64,
}

/// Decodes count and end of the period; the error is an unknown format version.
fn decode_row(value: &[u8]) -> Result<(u64, u64), u8> {
    let number = |octets: &[u8]| octets.try_into().map(u64::from_le_bytes);
    match value {
        [FORMAT, numbers @ ..] if numbers.len() == 16 => {
            let (count, end) = numbers.split_at(8);
            match (number(count), number(end)) {
                (Ok(count), Ok(end)) => Ok((count, end)),
                _ => Err(FORMAT),
            }
        }
        [format, ..] => Err(*format),
        [] => Err(0),
    }
}

/// The ranges of period starts other than those in `keep`.
fn ranges_outside(keep: &[u64]) -> Vec<RangeInclusive<u64>> {
    let (Some(first), Some(last)) = (keep.first(), keep.last()) else { return vec![0..=u64::MAX] };
    let before = first.checked_sub(1).map(|end| 0..=end);
    let after = last.checked_add(1).map(|start| start..=u64::MAX);
    before.into_iter().chain(after).collect()
}

/// Deletes all counts of a plugin.
pub(super) fn delete_plugin(
    transaction: &WriteTransaction,
    plugin: &str,
    rows: &mut Vec<RowChange>,
) -> Result<(), redb::Error> {
    // Opening the table would create it.
    if !transaction.list_tables()?.any(|table| table.name() == COUNTERS.name()) {
        return Ok(());
    }
    let mut counts = transaction.open_table(COUNTERS)?;
    let end = format!("{plugin}\0");
    let empty: &[u8] = &[];
    counts.retain_in((plugin, "", "", 0, empty)..(end.as_str(), "", "", 0, empty), |key, _| {
        rows.push((counter_name(key), None));
        false
    })?;
    Ok(())
}

impl RedbKvStore {
    /// Reads all counts, ordered by plugin, name, calendar and period.
    ///
    /// # Errors
    /// The file failed, or a newer release wrote a count.
    pub(crate) fn read_counts(&self, mut each: impl FnMut(CounterRow<'_>)) -> Result<(), Error> {
        let mut read = || -> Result<Option<u8>, redb::Error> {
            let counts = match self.database.begin_read()?.open_table(COUNTERS) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                opened => opened?,
            };
            for row in counts.iter()? {
                let (key, value) = row?;
                let (plugin, name, calendar, start, key) = key.value();
                match decode_row(value.value()) {
                    Ok((count, end)) => each(CounterRow { plugin, name, calendar, start, end, key, count }),
                    Err(format) => return Ok(Some(format)),
                }
            }
            Ok(None)
        };
        match read().map_err(|error| self.store_error(error))? {
            None => Ok(()),
            Some(found) => Err(Error::CountFormat { path: self.path.clone(), found, known: FORMAT }),
        }
    }

    /// Writes counts in one transaction, durably.
    ///
    /// # Errors
    /// The file failed. In this case nothing is written.
    pub(crate) fn write_counts<'a>(&self, rows: impl Iterator<Item = CounterRow<'a>>) -> Result<(), Error> {
        let write = || -> Result<(), redb::Error> {
            let mut transaction = self.database.begin_write()?;
            // Keys may be untrusted input.
            transaction.set_two_phase_commit(true);
            let mut changes: Vec<RowChange> = Vec::new();
            {
                let mut counts = transaction.open_table(COUNTERS)?;
                for CounterRow { plugin, name, calendar, start, end, key, count } in rows {
                    let value = [&[FORMAT][..], &count.to_le_bytes(), &end.to_le_bytes()].concat();
                    let key = (plugin, name, calendar, start, key);
                    counts.insert(key, value.as_slice())?;
                    changes.push((counter_name(key), Some(value)));
                }
            }
            self.write_elsewhere(&changes)?;
            transaction.commit()?;
            Ok(())
        };
        // Plugins that set values meanwhile wait for this lock, and then share a transaction.
        let _committing = self.committing.lock();
        write().map_err(|error| self.store_error(error))
    }

    /// Deletes up to 10,000 counts of a counter in one transaction: counts of periods that do not start at a time in `keep`
    /// (ascending). Returns whether all such counts are deleted.
    ///
    /// # Errors
    /// The file failed.
    pub(crate) fn delete_counts_outside(
        &self,
        plugin: &str,
        name: &str,
        calendar: &str,
        keep: &[u64],
    ) -> Result<bool, Error> {
        let purge = || -> Result<bool, redb::Error> {
            let expired = {
                let counts = match self.database.begin_read()?.open_table(COUNTERS) {
                    Err(TableError::TableDoesNotExist(_)) => return Ok(true),
                    opened => opened?,
                };
                let mut expired: Vec<(u64, Vec<u8>)> = Vec::new();
                for starts in ranges_outside(keep) {
                    let empty: &[u8] = &[];
                    let from = (plugin, name, calendar, *starts.start(), empty);
                    // The smallest key after all keys with this prefix.
                    let after = format!("{calendar}\0");
                    let until = match starts.end().checked_add(1) {
                        Some(end) => (plugin, name, calendar, end, empty),
                        None => (plugin, name, after.as_str(), 0, empty),
                    };
                    for row in counts.range(from..until)?.take(DELETE_BATCH - expired.len()) {
                        let (key, _) = row?;
                        let (_, _, _, start, key) = key.value();
                        expired.push((start, key.to_vec()));
                    }
                }
                expired
            };
            if expired.is_empty() {
                return Ok(true);
            }
            let mut transaction = self.database.begin_write()?;
            transaction.set_two_phase_commit(true);
            let mut changes: Vec<RowChange> = Vec::new();
            {
                let mut counts = transaction.open_table(COUNTERS)?;
                for (start, key) in &expired {
                    let key = (plugin, name, calendar, *start, &key[..]);
                    counts.remove(key)?;
                    changes.push((counter_name(key), None));
                }
            }
            self.write_elsewhere(&changes)?;
            transaction.commit()?;
            Ok(expired.len() < DELETE_BATCH)
        };
        let _committing = self.committing.lock();
        purge().map_err(|error| self.store_error(error))
    }
}

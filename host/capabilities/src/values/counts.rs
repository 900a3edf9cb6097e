//! Rows of durable counters.

use super::KeyValues;
use crate::Error;
use redb::{
    ReadableDatabase, ReadableTable, TableDefinition, TableError, TableHandle as _, WriteTransaction,
};
use std::ops::RangeInclusive;

/// The key of a row, as the table's documentation has it.
type RowKey<'a> = (&'a str, &'a str, &'a str, u64, &'a [u8]);

/// On disk, table `counters`, made with the first row.
///
/// Key: plugin, name of the counter, calendar (`day Europe/Berlin`), start of the period (milliseconds since the Unix epoch),
/// key (UTF-8; 0xff and the SHA-256 of a key of more than 256 octets).
///
/// Value (17 octets, little-endian):
/// * 1 octet: format version (1)
/// * 8 octets: count
/// * 8 octets: end of the period, milliseconds since the Unix epoch, not in the period
pub(super) const COUNTS: TableDefinition<RowKey<'_>, &[u8]> = TableDefinition::new("counters");

const FORMAT: u8 = 1;
/// Rows that one transaction deletes.
const PART: usize = 10_000;

/// A count, as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountRow<'a> {
    pub(crate) plugin: &'a str,
    pub(crate) name: &'a str,
    pub(crate) calendar: &'a str,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) key: &'a [u8],
    pub(crate) count: u64,
}

/// Format, count and end of a period.
fn decoded(value: &[u8]) -> Result<(u64, u64), u8> {
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

/// The starts of all periods before and after those that start at `keep`.
fn beside(keep: &[u64]) -> Vec<RangeInclusive<u64>> {
    let (Some(first), Some(last)) = (keep.first(), keep.last()) else { return vec![0..=u64::MAX] };
    let before = first.checked_sub(1).map(|end| 0..=end);
    let after = last.checked_add(1).map(|start| start..=u64::MAX);
    before.into_iter().chain(after).collect()
}

/// Deletes all counts of a plugin.
pub(super) fn clear(transaction: &WriteTransaction, plugin: &str) -> Result<(), redb::Error> {
    // Opening it would make it.
    if !transaction.list_tables()?.any(|table| table.name() == COUNTS.name()) {
        return Ok(());
    }
    let mut counts = transaction.open_table(COUNTS)?;
    let end = format!("{plugin}\0");
    let empty: &[u8] = &[];
    counts.retain_in((plugin, "", "", 0, empty)..(end.as_str(), "", "", 0, empty), |_, _| false)?;
    Ok(())
}

impl KeyValues {
    /// Reads all counts, ordered by plugin, name, calendar and period.
    ///
    /// # Errors
    /// The file failed, or a newer release wrote a count.
    pub(crate) fn read_counts(&self, mut each: impl FnMut(CountRow<'_>)) -> Result<(), Error> {
        let mut read = || -> Result<Option<u8>, redb::Error> {
            let counts = match self.database.begin_read()?.open_table(COUNTS) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                opened => opened?,
            };
            for row in counts.iter()? {
                let (key, value) = row?;
                let (plugin, name, calendar, start, key) = key.value();
                match decoded(value.value()) {
                    Ok((count, end)) => each(CountRow { plugin, name, calendar, start, end, key, count }),
                    Err(format) => return Ok(Some(format)),
                }
            }
            Ok(None)
        };
        match read().map_err(|error| self.failed(error))? {
            None => Ok(()),
            Some(found) => Err(Error::CountFormat { path: self.path.clone(), found, known: FORMAT }),
        }
    }

    /// Writes counts in one transaction, durably.
    ///
    /// # Errors
    /// The file failed. Nothing is written then.
    pub(crate) fn write_counts<'a>(&self, rows: impl Iterator<Item = CountRow<'a>>) -> Result<(), Error> {
        let write = || -> Result<(), redb::Error> {
            let mut transaction = self.database.begin_write()?;
            // Keys may come from strangers.
            transaction.set_two_phase_commit(true);
            {
                let mut counts = transaction.open_table(COUNTS)?;
                for CountRow { plugin, name, calendar, start, end, key, count } in rows {
                    let value = [&[FORMAT][..], &count.to_le_bytes(), &end.to_le_bytes()].concat();
                    counts.insert((plugin, name, calendar, start, key), value.as_slice())?;
                }
            }
            transaction.commit()?;
            Ok(())
        };
        // Plugins that set values come together while this holds the lock, and share a transaction after it.
        let _committing = self.committing.lock();
        write().map_err(|error| self.failed(error))
    }

    /// Deletes up to 10,000 counts of a counter's periods before and after those that start at `keep` (ascending), in one
    /// transaction. Tells whether none is left.
    ///
    /// # Errors
    /// The file failed.
    pub(crate) fn purge_counts(
        &self,
        plugin: &str,
        name: &str,
        calendar: &str,
        keep: &[u64],
    ) -> Result<bool, Error> {
        let purge = || -> Result<bool, redb::Error> {
            let past = {
                let counts = match self.database.begin_read()?.open_table(COUNTS) {
                    Err(TableError::TableDoesNotExist(_)) => return Ok(true),
                    opened => opened?,
                };
                let mut past: Vec<(u64, Vec<u8>)> = Vec::new();
                for starts in beside(keep) {
                    let empty: &[u8] = &[];
                    let from = (plugin, name, calendar, *starts.start(), empty);
                    // The least key after all that begin with this text.
                    let after = format!("{calendar}\0");
                    let until = match starts.end().checked_add(1) {
                        Some(end) => (plugin, name, calendar, end, empty),
                        None => (plugin, name, after.as_str(), 0, empty),
                    };
                    for row in counts.range(from..until)?.take(PART - past.len()) {
                        let (key, _) = row?;
                        let (_, _, _, start, key) = key.value();
                        past.push((start, key.to_vec()));
                    }
                }
                past
            };
            if past.is_empty() {
                return Ok(true);
            }
            let mut transaction = self.database.begin_write()?;
            transaction.set_two_phase_commit(true);
            {
                let mut counts = transaction.open_table(COUNTS)?;
                for (start, key) in &past {
                    counts.remove((plugin, name, calendar, *start, &key[..]))?;
                }
            }
            transaction.commit()?;
            Ok(past.len() < PART)
        };
        let _committing = self.committing.lock();
        purge().map_err(|error| self.failed(error))
    }
}

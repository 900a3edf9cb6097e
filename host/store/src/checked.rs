//! Rows and small tables with checksums.
//!
//! redb has a checksum for every page, but compares it only for a file that was not closed, and on request; not when it
//! reads a page. A damaged octet would be returned as data. So every row of the record tables begins with a checksum of
//! its key and its record:
//! * 1: `0xC5`; 4: CRC32C of the key (as redb stores it) and the record; the record, see [`codec`]
//!
//! In files before format 8, a row is only the record, which begins with its record format, a low number. Small tables
//! without records have one checksum each in table `sums`: the exclusive or of the checksums of their rows.

use crate::StoreError;
use crate::tables::{GROUP_OF, GROUPS, META_FORMAT, META_SUM, NAMES, OPTOUTS, SUMS};
use codec::RecordError;
use redb::{Key, ReadableTable, StorageError, Table, Value, WriteTransaction};

/// The first octet of a row with a checksum.
const CHECKED: u8 = 0xC5;
/// Octets before the record.
const HEADER: usize = 5;

fn checksum<K: Key>(key: &K::SelfType<'_>, value: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(K::as_bytes(key).as_ref()), value)
}

/// Inserts a row; `encode` appends its record to the buffer.
pub(crate) fn insert<K: Key + 'static>(
    table: &mut Table<'_, K, &'static [u8]>,
    key: &K::SelfType<'_>,
    buffer: &mut Vec<u8>,
    encode: impl FnOnce(&mut Vec<u8>),
) -> Result<(), StorageError> {
    buffer.clear();
    buffer.extend_from_slice(&[CHECKED, 0, 0, 0, 0]);
    encode(buffer);
    if let Some((header, record)) = buffer.split_at_mut_checked(HEADER) {
        header[1..].copy_from_slice(&checksum::<K>(key, record).to_le_bytes());
    }
    table.insert(key, buffer.as_slice())?;
    Ok(())
}

/// The record of a row.
///
/// # Errors
/// The row is damaged.
pub(crate) fn record<'a, K: Key>(key: &K::SelfType<'_>, row: &'a [u8]) -> Result<&'a [u8], RecordError> {
    match row {
        [CHECKED, a, b, c, d, record @ ..] => {
            let wanted = u32::from_le_bytes([*a, *b, *c, *d]);
            if checksum::<K>(key, record) == wanted {
                return Ok(record);
            }
            Err(RecordError { what: "the checksum does not match", offset: 0 })
        }
        _ => Ok(row),
    }
}

/// The exclusive or of the checksums of all rows.
fn sum<K: Key + 'static, V: Value + 'static>(table: &impl ReadableTable<K, V>) -> Result<u64, StorageError> {
    let mut sum = 0;
    for row in table.iter()? {
        let (key, value) = row?;
        sum ^= u64::from(checksum::<K>(&key.value(), V::as_bytes(&value.value()).as_ref()));
    }
    Ok(sum)
}

/// The small tables without records.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SmallTable {
    Names,
    Groups,
    GroupOf,
    OptOuts,
}

impl SmallTable {
    const ALL: [Self; 4] = [Self::Names, Self::Groups, Self::GroupOf, Self::OptOuts];

    const fn name(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Groups => "groups",
            Self::GroupOf => "group_of",
            Self::OptOuts => "optouts",
        }
    }

    fn sum_in(self, transaction: &WriteTransaction) -> Result<u64, StoreError> {
        Ok(match self {
            Self::Names => sum(&transaction.open_table(NAMES)?)?,
            Self::Groups => sum(&transaction.open_table(GROUPS)?)?,
            Self::GroupOf => sum(&transaction.open_table(GROUP_OF)?)?,
            Self::OptOuts => sum(&transaction.open_table(OPTOUTS)?)?,
        })
    }
}

/// Collects the changes of a small table's checksum, so that it need not be computed from all rows.
#[derive(Debug, Default)]
pub(crate) struct SumChange(u64);

impl SumChange {
    /// Inserts a row.
    pub(crate) fn insert<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: &mut Table<'_, K, V>,
        key: &K::SelfType<'_>,
        value: &V::SelfType<'_>,
    ) -> Result<(), StorageError> {
        let new = checksum::<K>(key, V::as_bytes(value).as_ref());
        if let Some(old) = table.insert(key, value)? {
            self.0 ^= u64::from(checksum::<K>(key, V::as_bytes(&old.value()).as_ref()));
        }
        self.0 ^= u64::from(new);
        Ok(())
    }

    /// Removes a row.
    pub(crate) fn remove<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: &mut Table<'_, K, V>,
        key: &K::SelfType<'_>,
    ) -> Result<(), StorageError> {
        if let Some(old) = table.remove(key)? {
            self.0 ^= u64::from(checksum::<K>(key, V::as_bytes(&old.value()).as_ref()));
        }
        Ok(())
    }

    /// Writes the checksum of the table.
    pub(crate) fn finish(self, transaction: &WriteTransaction, table: SmallTable) -> Result<(), StoreError> {
        let mut sums = transaction.open_table(SUMS)?;
        let before = sums.get(table.name())?.map_or(0, |sum| sum.value());
        sums.insert(table.name(), before ^ self.0)?;
        Ok(())
    }
}

/// Verifies the checksums of the small tables; writes them if the file has none.
///
/// # Errors
/// A table is damaged; the storage fails.
pub(crate) fn check_small_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    for table in SmallTable::ALL {
        let found = table.sum_in(transaction)?;
        let mut sums = transaction.open_table(SUMS)?;
        let wanted = sums.get(table.name())?.map(|sum| sum.value());
        match wanted {
            Some(wanted) if wanted != found => return Err(StoreError::DamagedTable { table: table.name() }),
            Some(_) => {}
            None => drop(sums.insert(table.name(), found)?),
        }
    }
    Ok(())
}

/// The checksum of table `meta`, without its own row and the format: the format of a snapshot differs from that of the
/// file.
fn meta_sum(meta: &impl ReadableTable<&'static str, u64>) -> Result<u64, StorageError> {
    let mut sum = 0;
    for row in meta.iter()? {
        let (key, value) = row?;
        if key.value() != META_SUM && key.value() != META_FORMAT {
            sum ^= u64::from(checksum::<&str>(&key.value(), u64::as_bytes(&value.value()).as_ref()));
        }
    }
    Ok(sum)
}

/// Updates the checksum of table `meta` after a change.
pub(crate) fn seal_meta(meta: &mut Table<'_, &'static str, u64>) -> Result<(), StorageError> {
    let sum = meta_sum(meta)?;
    meta.insert(META_SUM, sum)?;
    Ok(())
}

/// Verifies the checksum of table `meta`, if it has one.
///
/// # Errors
/// It is damaged; the storage fails.
pub(crate) fn check_meta(meta: &impl ReadableTable<&'static str, u64>) -> Result<(), StoreError> {
    let wanted = meta.get(META_SUM)?.map(|sum| sum.value());
    match (wanted, meta_sum(meta)?) {
        (Some(wanted), found) if wanted != found => Err(StoreError::DamagedTable { table: "meta" }),
        _ => Ok(()),
    }
}

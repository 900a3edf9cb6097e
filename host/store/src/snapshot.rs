//! Snapshot of the whole file, for backups.

use crate::tables::{
    FILE_FORMAT, FINISHED, GROUP_OF, GROUPS, KEYS, LEDGER, MESSAGES, META, META_FORMAT, NAMES, NUMBERS,
    OPERATIONS, OPERATIONS_BY_ACCOUNT, OPTOUTS, ORPHAN_DLRS, PACE_DAYS, POOL_JOURNAL, POOLS, PROGRESS,
    QUEUE_ACTIONS, SEALED_FILE_FORMAT, SETTLEMENTS, SUBMIT_ATTEMPTS, SUMS,
};
use crate::{Store, StoreError};
use snapshot::{Copier, Snapshot};

impl Store {
    /// A snapshot of the tables with all changes of earlier commits. Commits are not blocked. The copy includes the
    /// number of the last journal record that it contains, and can be opened without a journal.
    ///
    /// # Errors
    /// The disk fails.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        self.apply()?;
        let tables = if self.is_sealed() { sealed_tables } else { tables };
        Ok(Snapshot::take(self.path(), &self.database, tables)?)
    }
}

/// Copies all tables of a file whose messages may have encrypted contents.
fn sealed_tables(copier: &mut Copier<'_>) -> Result<(), redb::Error> {
    tables(copier)?;
    copier.set(META, META_FORMAT, SEALED_FILE_FORMAT)
}

fn tables(copier: &mut Copier<'_>) -> Result<(), redb::Error> {
    copier.table(META)?;
    copier.set(META, META_FORMAT, FILE_FORMAT)?;
    copier.table(NAMES)?;
    copier.table(GROUPS)?;
    copier.table(GROUP_OF)?;
    copier.table(MESSAGES)?;
    copier.table(PROGRESS)?;
    copier.table(SUBMIT_ATTEMPTS)?;
    copier.table(FINISHED)?;
    copier.table(KEYS)?;
    copier.table(ORPHAN_DLRS)?;
    copier.table(OPTOUTS)?;
    copier.table(LEDGER)?;
    copier.table(OPERATIONS)?;
    copier.table(OPERATIONS_BY_ACCOUNT)?;
    copier.table(SETTLEMENTS)?;
    copier.table(PACE_DAYS)?;
    copier.table(QUEUE_ACTIONS)?;
    copier.table(POOLS)?;
    copier.table(NUMBERS)?;
    copier.table(POOL_JOURNAL)?;
    copier.table(SUMS)
}

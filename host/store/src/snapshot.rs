//! A snapshot of the whole file, for backups.

use crate::peer_groups::{GROUP_OF, GROUPS};
use crate::store::{
    FINISHED, HANDED, KEYS, LEDGER, MESSAGES, META, NAMES, OPERATIONS, OPERATIONS_OF, OPTOUTS, ORDERS,
    PARKED, PROGRESS, SETTLEMENTS,
};
use crate::{Store, pool_tables};
use snapshot::{Copier, Snapshot, SnapshotError};

impl Store {
    /// A snapshot of the tables. Commits are not blocked.
    ///
    /// # Errors
    /// The disk fails.
    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        Snapshot::take(self.path(), &self.database, tables)
    }
}

fn tables(copier: &mut Copier<'_>) -> Result<(), redb::Error> {
    copier.table(META)?;
    copier.table(NAMES)?;
    copier.table(GROUPS)?;
    copier.table(GROUP_OF)?;
    copier.table(MESSAGES)?;
    copier.table(PROGRESS)?;
    copier.table(HANDED)?;
    copier.table(FINISHED)?;
    copier.table(KEYS)?;
    copier.table(PARKED)?;
    copier.table(OPTOUTS)?;
    copier.table(LEDGER)?;
    copier.table(OPERATIONS)?;
    copier.table(OPERATIONS_OF)?;
    copier.table(SETTLEMENTS)?;
    copier.table(ORDERS)?;
    copier.table(pool_tables::POOLS)?;
    copier.table(pool_tables::NUMBERS)?;
    copier.table(pool_tables::JOURNAL)
}

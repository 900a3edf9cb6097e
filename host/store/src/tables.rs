//! Definitions of the tables.

use redb::{TableDefinition, WriteTransaction};

pub(crate) const MESSAGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("messages");
pub(crate) const PROGRESS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("progress");
pub(crate) const SUBMIT_ATTEMPTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("handed");
/// The group of a block of finished messages, and the journal record with which it was written.
pub(crate) type BlockKey = (u64, u64);
/// Block → finished messages; see [`crate::finished`].
pub(crate) const FINISHED: TableDefinition<'_, BlockKey, &[u8]> = TableDefinition::new("finished_blocks");
/// Id → a finished message: in files before format 10, which are converted when they are opened; see
/// [`crate::finished`].
pub(crate) const FINISHED_ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("finished");
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Serial number → idempotency key and its answer; see [`codec`].
pub(crate) const KEYS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("keys");
/// Number → orphan DLR; see [`codec`].
pub(crate) const ORPHAN_DLRS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("parked");
/// 1 octet length, sender, subscriber, both normalised → nothing: an opt-out.
pub(crate) const OPTOUTS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("optouts");
/// Account → balance; see [`codec`].
pub(crate) const LEDGER: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("ledger");
/// Serial number → balance operation; see [`codec`]. Kept for ever.
pub(crate) const OPERATIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("ledger_operations");
/// Account, serial number → nothing: index of an account's operations.
pub(crate) const OPERATIONS_BY_ACCOUNT: TableDefinition<'_, (&str, u64), ()> =
    TableDefinition::new("ledger_operations_of");
/// Serial number → settlement that the biller is not notified of yet; see [`codec`].
pub(crate) const SETTLEMENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("settlements");
/// Pace bucket → the tokens taken on its day; see [`codec`].
pub(crate) const PACE_DAYS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("pace_days");
/// Id → queue action; see [`codec`].
pub(crate) const QUEUE_ACTIONS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("orders");
/// Peer id → name. Never changed once written.
pub(crate) const NAMES: TableDefinition<'_, u32, &str> = TableDefinition::new("names");

/// Name → id of a peer group. Never changed once written.
pub(crate) const GROUPS: TableDefinition<'_, &str, u32> = TableDefinition::new("groups");
/// Peer id → id of the named group in which the peer was last configured.
pub(crate) const GROUP_OF: TableDefinition<'_, u32, u32> = TableDefinition::new("group_of");

/// Pool → its record.
pub(crate) const POOLS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("pools");
/// Pool, number → its row.
pub(crate) const NUMBERS: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("numbers");
/// Pool, number of the first entry → entries.
pub(crate) const POOL_JOURNAL: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("pool_journal");

/// Name of a small table → its checksum; see [`crate::checked`].
pub(crate) const SUMS: TableDefinition<'_, &str, u64> = TableDefinition::new("sums");

/// The format of files that this version writes. Formats up to 7 are the newest record format in the file; from 8 on,
/// rows have checksums; from 10 on, finished messages are in blocks.
pub(crate) const FILE_FORMAT: u64 = 10;
/// The format of files whose messages may have encrypted contents.
pub(crate) const SEALED_FILE_FORMAT: u64 = 11;
/// The same before there were blocks.
const SEALED_FILE_FORMAT_OF_ROWS: u64 = 9;

/// The format that this version gives a file with this format.
pub(crate) const fn newest_format(found: u64) -> u64 {
    match found % WITH_JOURNAL {
        SEALED_FILE_FORMAT_OF_ROWS | SEALED_FILE_FORMAT => SEALED_FILE_FORMAT,
        _ => FILE_FORMAT,
    }
}

/// Added to the format of a file while the journal may have records that its tables lack, so that a version without a
/// journal refuses to open the file.
pub(crate) const WITH_JOURNAL: u64 = 1000;
/// The same for the file of a cluster node, whose records are in the cluster's log.
pub(crate) const IN_CLUSTER: u64 = 2000;

/// The format of the file.
pub(crate) const META_FORMAT: &str = "format";
pub(crate) const META_NEXT_ID: &str = "next_id";
pub(crate) const META_NEXT_SUBMIT_ROW: &str = "next_handed";
/// The serial number up to which the biller is notified of all settlements.
pub(crate) const META_SETTLED: &str = "settled";
/// The last journal record in the tables.
pub(crate) const META_APPLIED: &str = "applied";
/// The number of finished messages; none if there was never one.
pub(crate) const META_FINISHED: &str = "finished";
/// The number of the cluster whose log these tables follow.
pub(crate) const META_CLUSTER: &str = "cluster";
/// The checksum of the other rows; see [`crate::checked`].
pub(crate) const META_SUM: &str = "sum";

/// Opens all tables, which creates missing ones.
pub(crate) fn create_all(transaction: &WriteTransaction) -> Result<(), redb::TableError> {
    transaction.open_table(MESSAGES)?;
    transaction.open_table(PROGRESS)?;
    transaction.open_table(SUBMIT_ATTEMPTS)?;
    transaction.open_table(FINISHED)?;
    transaction.open_table(NAMES)?;
    transaction.open_table(GROUPS)?;
    transaction.open_table(GROUP_OF)?;
    transaction.open_table(KEYS)?;
    transaction.open_table(ORPHAN_DLRS)?;
    transaction.open_table(OPTOUTS)?;
    transaction.open_table(LEDGER)?;
    transaction.open_table(OPERATIONS)?;
    transaction.open_table(OPERATIONS_BY_ACCOUNT)?;
    transaction.open_table(SETTLEMENTS)?;
    transaction.open_table(PACE_DAYS)?;
    transaction.open_table(QUEUE_ACTIONS)?;
    transaction.open_table(POOLS)?;
    transaction.open_table(NUMBERS)?;
    transaction.open_table(POOL_JOURNAL)?;
    transaction.open_table(SUMS)?;
    Ok(())
}

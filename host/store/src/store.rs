use crate::{StoreError, peer_groups, pool_tables};
use codec::{FORMAT, RecordDecoder, RecordError, put_short};
use model::{
    Address, Batch, Directory, FinalRecord, Message, MessageId, MessageKind, MessageProgress,
    OperationRecord, SUBMISSION_IDS, Timestamp,
};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const MESSAGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("messages");
pub(crate) const PROGRESS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("progress");
pub(crate) const HANDED: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("handed");
pub(crate) const FINISHED: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("finished");
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Serial number → idempotency key and its answer; see [`codec`].
pub(crate) const KEYS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("keys");
/// Number → orphan DLR; see [`codec`].
pub(crate) const PARKED: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("parked");
/// 1 length, sender, subscriber, normalised → nothing: an opt-out.
pub(crate) const OPTOUTS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("optouts");
/// Account → balance; see [`codec`].
pub(crate) const LEDGER: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("ledger");
/// Serial number → balance operation; see [`codec`]. Kept for ever.
pub(crate) const OPERATIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("ledger_operations");
/// Account, serial number → nothing: index of an account's operations.
pub(crate) const OPERATIONS_OF: TableDefinition<'_, (&str, u64), ()> =
    TableDefinition::new("ledger_operations_of");
/// Serial number → settlement that the biller was not notified of; see [`codec`].
pub(crate) const SETTLEMENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("settlements");
/// Id → queue action; see [`codec`].
pub(crate) const ORDERS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("orders");
/// Peer id → name. Never changed once written.
pub(crate) const NAMES: TableDefinition<'_, u32, &str> = TableDefinition::new("names");

/// The format of the file: the newest record format in it.
const META_FORMAT: &str = "format";
pub(crate) const META_NEXT_ID: &str = "next_id";
pub(crate) const META_NEXT_HANDED: &str = "next_handed";
/// The biller was notified of all settlements up to this serial number.
pub(crate) const META_SETTLED: &str = "settled";

/// Options of a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The page cache, in octets.
    pub cache: usize,
    /// Write the allocator's state with every commit, so that a start after a crash need not scan the whole file.
    /// This costs about a tenth more per commit (`commit_speed` example).
    pub quick_repair: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { cache: 256 << 20, quick_repair: true }
    }
}

/// Statistics of a commit.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommitStats {
    /// Rows inserted, changed or removed.
    pub rows: u64,
    /// Octets of records written.
    pub octets: u64,
}

/// A message in the store.
#[derive(Debug)]
pub enum StoredMessage {
    /// A waiting message and its progress.
    Waiting(Message, Option<MessageProgress>),
    /// A finished message.
    Finished(Message, FinalRecord),
}

/// A page of finished messages.
#[derive(Debug)]
pub struct FinishedPage {
    /// The messages, newest first.
    pub messages: Vec<(Message, FinalRecord)>,
    /// The lowest id scanned; `None` if nothing is left below it.
    pub lowest: Option<MessageId>,
}

/// The store.
#[derive(Debug)]
pub struct Store {
    pub(crate) database: Database,
    path: PathBuf,
    options: StoreOptions,
}

impl Store {
    /// Opens the file; creates it if it does not exist.
    ///
    /// # Errors
    /// Another process uses it, a newer daemon wrote it, or it cannot be read.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let failed = |error: redb::DatabaseError| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(path.to_owned()),
            other => StoreError::Open { path: path.to_owned(), source: other.into() },
        };
        if !path.exists() {
            create_file(path).map_err(failed)?;
        }
        let database = Database::builder().set_cache_size(options.cache).create(path).map_err(failed)?;
        Self::initialise(database, path, options)
    }

    /// Opens the tables over another storage, for tests of failing disks.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(backend: impl redb::StorageBackend, options: StoreOptions) -> Result<Self, StoreError> {
        let path = Path::new("(backend)");
        let database = Database::builder()
            .set_cache_size(options.cache)
            .create_with_backend(backend)
            .map_err(|error| StoreError::Open { path: path.to_owned(), source: error.into() })?;
        Self::initialise(database, path, options)
    }

    fn initialise(database: Database, path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let store = Self { database, path: path.to_owned(), options };
        let mut transaction = store.database.begin_write()?;
        transaction.set_two_phase_commit(true);
        {
            let mut meta = transaction.open_table(META)?;
            let found = meta.get(META_FORMAT)?.map(|format| format.value());
            let known = u64::from(FORMAT);
            match found {
                Some(found) if found > known => {
                    return Err(StoreError::TooNew { path: store.path, found, known });
                }
                Some(found) if found == known => {}
                _ => {
                    meta.insert(META_FORMAT, known)?;
                }
            }
            transaction.open_table(MESSAGES)?;
            transaction.open_table(PROGRESS)?;
            transaction.open_table(HANDED)?;
            transaction.open_table(FINISHED)?;
            transaction.open_table(NAMES)?;
            transaction.open_table(peer_groups::GROUPS)?;
            transaction.open_table(peer_groups::GROUP_OF)?;
            transaction.open_table(KEYS)?;
            transaction.open_table(PARKED)?;
            transaction.open_table(OPTOUTS)?;
            transaction.open_table(LEDGER)?;
            transaction.open_table(OPERATIONS)?;
            transaction.open_table(OPERATIONS_OF)?;
            transaction.open_table(SETTLEMENTS)?;
            transaction.open_table(ORDERS)?;
            transaction.open_table(pool_tables::POOLS)?;
            transaction.open_table(pool_tables::NUMBERS)?;
            transaction.open_table(pool_tables::JOURNAL)?;
        }
        transaction.commit()?;
        Ok(store)
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn begin(&self) -> Result<redb::WriteTransaction, StoreError> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        transaction.set_two_phase_commit(true);
        transaction.set_quick_repair(self.options.quick_repair);
        Ok(transaction)
    }

    /// Writes a batch as one transaction, durable on return.
    ///
    /// # Errors
    /// The disk fails. None of the writes is then visible, and no command of the batch may leave.
    pub fn commit(&self, batch: &Batch) -> Result<CommitStats, StoreError> {
        let transaction = self.begin()?;
        let mut done = CommitStats::default();
        let mut buffer = Vec::with_capacity(512);
        {
            let mut messages = transaction.open_table(MESSAGES)?;
            for message in batch.accepted.iter().chain(&batch.replaced) {
                buffer.clear();
                codec::encode_message(&mut buffer, message);
                messages.insert(message.id.0, buffer.as_slice())?;
                done.rows += 1;
                done.octets += buffer.len() as u64;
            }
            if !(batch.progress.is_empty() && batch.finished.is_empty() && batch.dropped.is_empty()) {
                let mut progress = transaction.open_table(PROGRESS)?;
                for (id, state) in &batch.progress {
                    buffer.clear();
                    codec::encode_progress(&mut buffer, state);
                    progress.insert(id.0, buffer.as_slice())?;
                    done.rows += 1;
                    done.octets += buffer.len() as u64;
                }
                // Most messages end without a progress row.
                let any = !progress.is_empty()?;
                let mut finished = transaction.open_table(FINISHED)?;
                for (id, ended) in &batch.finished {
                    if let Some(message) = messages.remove(id.0)? {
                        buffer.clear();
                        buffer.extend_from_slice(message.value());
                        codec::encode_final(&mut buffer, ended);
                        drop(message);
                        finished.insert(id.0, buffer.as_slice())?;
                        done.octets += buffer.len() as u64;
                    }
                    if any {
                        progress.remove(id.0)?;
                    }
                    done.rows += 2;
                }
                for id in &batch.dropped {
                    messages.remove(id.0)?;
                    if any {
                        progress.remove(id.0)?;
                    }
                    done.rows += 1;
                }
            }
            if !(batch.submit_attempts.is_empty() && batch.submit_rows_done.is_empty()) {
                let mut attempts = transaction.open_table(HANDED)?;
                if !batch.submit_attempts.is_empty() {
                    buffer.clear();
                    codec::encode_submit_attempts(&mut buffer, &batch.submit_attempts);
                    attempts.insert(batch.submit_row, buffer.as_slice())?;
                    done.rows += 1;
                    done.octets += buffer.len() as u64;
                }
                for seq in &batch.submit_rows_done {
                    attempts.remove(seq)?;
                    done.rows += 1;
                }
            }
            done.rows += write_side_tables(&transaction, batch, &mut buffer)?;
            done.rows += write_ledger(&transaction, batch, &mut buffer)?;
            let (rows, octets) = pool_tables::write(&transaction, &batch.pools, &mut buffer)?;
            done.rows += rows;
            done.octets += octets;
            if !batch.accepted.is_empty() || !batch.submit_attempts.is_empty() {
                let mut meta = transaction.open_table(META)?;
                meta.insert(META_NEXT_ID, batch.next_id.0)?;
                if !batch.submit_attempts.is_empty() {
                    meta.insert(META_NEXT_HANDED, batch.submit_row + 1)?;
                }
            }
        }
        transaction.commit()?;
        Ok(done)
    }

    /// Waiting messages by id; `None` for others.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn load(&self, ids: &[MessageId]) -> Result<Vec<Option<Arc<Message>>>, StoreError> {
        let transaction = self.database.begin_read()?;
        let messages = transaction.open_table(MESSAGES)?;
        let mut decoder = RecordDecoder::new();
        ids.iter()
            .map(|id| {
                let Some(row) = messages.get(id.0)? else { return Ok(None) };
                let (message, _) = decoder.message(*id, row.value()).map_err(damaged("messages", id.0))?;
                Ok(Some(Arc::new(message)))
            })
            .collect()
    }

    /// One message, waiting or finished.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn find(&self, id: MessageId) -> Result<Option<StoredMessage>, StoreError> {
        let transaction = self.database.begin_read()?;
        let mut decoder = RecordDecoder::new();
        if let Some(row) = transaction.open_table(MESSAGES)?.get(id.0)? {
            let (message, _) = decoder.message(id, row.value()).map_err(damaged("messages", id.0))?;
            let progress = match transaction.open_table(PROGRESS)?.get(id.0)? {
                Some(row) => Some(codec::decode_progress(row.value()).map_err(damaged("progress", id.0))?),
                None => None,
            };
            return Ok(Some(StoredMessage::Waiting(message, progress)));
        }
        if let Some(row) = transaction.open_table(FINISHED)?.get(id.0)? {
            return Ok(Some(decode_finished(&mut decoder, id, row.value())?));
        }
        Ok(None)
    }

    /// The stored finished messages of a submission to several destinations, by ascending id; for the id of a message
    /// that was submitted alone, that message.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn finished_of(&self, id: MessageId) -> Result<Vec<(Message, FinalRecord)>, StoreError> {
        let transaction = self.database.begin_read()?;
        let finished = transaction.open_table(FINISHED)?;
        let mut decoder = RecordDecoder::new();
        let mut found = Vec::new();
        for row in finished.range(id.0..id.0.saturating_add(SUBMISSION_IDS))? {
            let (at, value) = row?;
            let at = MessageId(at.value());
            let StoredMessage::Finished(message, ended) = decode_finished(&mut decoder, at, value.value())?
            else {
                break;
            };
            let is_shared = message.submission == Some(id);
            if is_shared || at == id {
                found.push((message, ended));
            }
            if !is_shared {
                break;
            }
        }
        Ok(found)
    }

    /// The number of waiting and of finished messages.
    ///
    /// # Errors
    /// The disk fails.
    pub fn counts(&self) -> Result<(u64, u64), StoreError> {
        let transaction = self.database.begin_read()?;
        Ok((transaction.open_table(MESSAGES)?.len()?, transaction.open_table(FINISHED)?.len()?))
    }

    /// Finished messages with ids above `after`, by ascending id, at most `most`.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn finished_after(
        &self,
        after: MessageId,
        most: usize,
    ) -> Result<Vec<(Message, FinalRecord)>, StoreError> {
        let transaction = self.database.begin_read()?;
        let finished = transaction.open_table(FINISHED)?;
        let mut decoder = RecordDecoder::new();
        let mut found = Vec::new();
        for row in finished.range(after.0.saturating_add(1)..)?.take(most) {
            let (id, value) = row?;
            if let StoredMessage::Finished(message, ended) =
                decode_finished(&mut decoder, MessageId(id.value()), value.value())?
            {
                found.push((message, ended));
            }
        }
        Ok(found)
    }

    /// Finished messages with ids below `before`, newest first, out of at most `most` rows.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn finished_before(&self, before: MessageId, most: usize) -> Result<FinishedPage, StoreError> {
        let transaction = self.database.begin_read()?;
        let finished = transaction.open_table(FINISHED)?;
        let mut decoder = RecordDecoder::new();
        let (mut found, mut lowest) = (Vec::new(), None);
        let mut rows = finished.range(..before.0)?.rev();
        for row in rows.by_ref().take(most) {
            let (id, value) = row?;
            let id = MessageId(id.value());
            lowest = Some(id);
            if let StoredMessage::Finished(message, ended) = decode_finished(&mut decoder, id, value.value())?
            {
                found.push((message, ended));
            }
        }
        let is_more = rows.next().transpose()?.is_some();
        Ok(FinishedPage { messages: found, lowest: lowest.filter(|_| is_more) })
    }

    /// The newest waiting and finished messages with ids below `before`, by descending id: at most `most`, without
    /// DLRs.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn newest(&self, before: MessageId, most: usize) -> Result<Vec<StoredMessage>, StoreError> {
        let transaction = self.database.begin_read()?;
        let mut decoder = RecordDecoder::new();
        let mut found: Vec<(u64, StoredMessage)> = Vec::new();
        for row in transaction.open_table(MESSAGES)?.range(..before.0)?.rev() {
            if found.len() == most {
                break;
            }
            let (id, value) = row?;
            let id = id.value();
            let (message, _) =
                decoder.message(MessageId(id), value.value()).map_err(damaged("messages", id))?;
            if message.kind == MessageKind::Text {
                found.push((id, StoredMessage::Waiting(message, None)));
            }
        }
        for row in transaction.open_table(FINISHED)?.range(..before.0)?.rev().take(most) {
            let (id, value) = row?;
            let id = id.value();
            found.push((id, decode_finished(&mut decoder, MessageId(id), value.value())?));
        }
        found.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        let found = found.into_iter().take(most).map(|(_, found)| found).collect();
        Ok(found)
    }

    /// The latest time of the newest message and the newest idempotency key. `None` if there are no such rows.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn newest_time(&self) -> Result<Option<Timestamp>, StoreError> {
        let transaction = self.database.begin_read()?;
        let key = transaction.open_table(KEYS)?.last()?.map(|(serial, value)| {
            let serial = serial.value();
            codec::decode_idempotency_key(serial, value.value())
                .map(|key| key.at)
                .map_err(damaged("keys", serial))
        });
        let message = match self.newest(MessageId(u64::MAX), 1)?.pop() {
            Some(StoredMessage::Waiting(message, _) | StoredMessage::Finished(message, _)) => {
                Some(message.accepted_at)
            }
            None => None,
        };
        Ok(key.transpose()?.into_iter().chain(message).max())
    }

    /// The oldest waiting or finished message.
    ///
    /// # Errors
    /// The disk fails.
    pub fn oldest(&self) -> Result<Option<MessageId>, StoreError> {
        let transaction = self.database.begin_read()?;
        let (messages, finished) = (transaction.open_table(MESSAGES)?, transaction.open_table(FINISHED)?);
        let first = messages.first()?.map(|(id, _)| id.value());
        let other = finished.first()?.map(|(id, _)| id.value());
        Ok(first.into_iter().chain(other).min().map(MessageId))
    }

    /// Passes source and destination of every waiting and finished message to `each`, decoding these fields only.
    /// DLRs are skipped.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn parties(&self, mut each: impl FnMut(MessageId, &Address, &Address)) -> Result<(), StoreError> {
        let transaction = self.database.begin_read()?;
        for (table, name) in [(MESSAGES, "messages"), (FINISHED, "finished")] {
            for row in transaction.open_table(table)?.iter()? {
                let (id, value) = row?;
                let id = MessageId(id.value());
                let parties = codec::decode_parties(value.value()).map_err(damaged(name, id.0))?;
                if let Some((source, destination)) = parties {
                    each(id, &source, &destination);
                }
            }
        }
        Ok(())
    }

    /// Removes finished messages that ended before `before`, oldest ids first, at most `most`. Stops at the first
    /// younger one, so a long-lived message keeps those after it as long as itself.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn trim_finished(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        let gone = {
            let transaction = self.database.begin_read()?;
            let finished = transaction.open_table(FINISHED)?;
            let mut decoder = RecordDecoder::new();
            let mut gone = Vec::new();
            for row in finished.iter()?.take(most) {
                let (id, value) = row?;
                let id = MessageId(id.value());
                match decode_finished(&mut decoder, id, value.value())? {
                    StoredMessage::Finished(_, ended) if ended.at < before => gone.push(id.0),
                    _ => break,
                }
            }
            gone
        };
        if !gone.is_empty() {
            let transaction = self.begin()?;
            {
                let mut finished = transaction.open_table(FINISHED)?;
                for id in &gone {
                    finished.remove(id)?;
                }
            }
            transaction.commit()?;
        }
        Ok(gone.len())
    }

    /// The balance operations of a ledger account, newest first: at most `most`, with serial numbers below `before`
    /// if given.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn operations(
        &self,
        account: &str,
        before: Option<u64>,
        most: usize,
    ) -> Result<Vec<OperationRecord>, StoreError> {
        let transaction = self.database.begin_read()?;
        let index = transaction.open_table(OPERATIONS_OF)?;
        let operations = transaction.open_table(OPERATIONS)?;
        let mut found = Vec::new();
        for row in index.range((account, 0)..(account, before.unwrap_or(u64::MAX)))?.rev().take(most) {
            let (key, _) = row?;
            let serial = key.value().1;
            if let Some(row) = operations.get(serial)? {
                let record = codec::decode_operation(serial, row.value());
                found.push(record.map_err(damaged("ledger_operations", serial))?);
            }
        }
        Ok(found)
    }

    /// The directory of all peers; new names in `wanted` get ids, durable on return.
    ///
    /// # Errors
    /// The disk fails.
    pub fn directory(&self, wanted: &[String]) -> Result<Directory, StoreError> {
        let mut directory = Directory::new();
        {
            let transaction = self.database.begin_read()?;
            for row in transaction.open_table(NAMES)?.iter()? {
                let (_, name) = row?;
                // Ids are consecutive, so reading in their order assigns them again.
                let _ = directory.intern(name.value());
            }
        }
        let mut batch = Batch::default();
        for name in wanted {
            if let Ok((id, true)) = directory.intern(name) {
                batch.names.push((id, name.as_str().into()));
            }
        }
        if !batch.names.is_empty() {
            self.commit(&batch)?;
        }
        Ok(directory)
    }
}

/// Writes the tables other than those of messages. Most batches need none of them, and do not open them.
fn write_side_tables(
    transaction: &redb::WriteTransaction,
    batch: &Batch,
    buffer: &mut Vec<u8>,
) -> Result<u64, StoreError> {
    let mut rows = 0;
    if !batch.names.is_empty() {
        let mut names = transaction.open_table(NAMES)?;
        for (id, name) in &batch.names {
            names.insert(id.0, &**name)?;
            rows += 1;
        }
    }
    if !(batch.idempotency_keys.is_empty() && batch.idempotency_keys_done.is_none()) {
        let mut keys = transaction.open_table(KEYS)?;
        for record in &batch.idempotency_keys {
            buffer.clear();
            codec::encode_idempotency_key(buffer, record);
            keys.insert(record.serial, buffer.as_slice())?;
            rows += 1;
        }
        if let Some(left) = batch.idempotency_keys_done {
            keys.retain_in(..left, |_, _| false)?;
        }
    }
    if !(batch.orphan_dlrs.is_empty() && batch.orphan_dlrs_done.is_empty()) {
        let mut orphans = transaction.open_table(PARKED)?;
        for record in &batch.orphan_dlrs {
            buffer.clear();
            codec::encode_orphan_dlr(buffer, record);
            orphans.insert(record.number, buffer.as_slice())?;
            rows += 1;
        }
        for number in &batch.orphan_dlrs_done {
            orphans.remove(number)?;
            rows += 1;
        }
    }
    if !batch.opt_outs.is_empty() {
        let mut optouts = transaction.open_table(OPTOUTS)?;
        for (opt_out, stop) in &batch.opt_outs {
            buffer.clear();
            put_short(buffer, &opt_out.sender);
            buffer.extend_from_slice(&opt_out.subscriber);
            if *stop {
                optouts.insert(buffer.as_slice(), ())?;
            } else {
                optouts.remove(buffer.as_slice())?;
            }
            rows += 1;
        }
    }
    if !(batch.queue_actions.is_empty() && batch.queue_actions_done.is_empty()) {
        let mut table = transaction.open_table(ORDERS)?;
        for order in &batch.queue_actions {
            buffer.clear();
            codec::encode_queue_action(buffer, order);
            table.insert(order.id.0, buffer.as_slice())?;
            rows += 1;
        }
        for id in &batch.queue_actions_done {
            table.remove(id.0)?;
            rows += 1;
        }
    }
    if !batch.archived.is_empty() {
        let mut finished = transaction.open_table(FINISHED)?;
        for id in &batch.archived {
            finished.remove(id.0)?;
            rows += 1;
        }
    }
    Ok(rows)
}

/// Writes the ledger tables. Without a biller most batches need none of them.
fn write_ledger(
    transaction: &redb::WriteTransaction,
    batch: &Batch,
    buffer: &mut Vec<u8>,
) -> Result<u64, StoreError> {
    let mut rows = 0;
    if !batch.balances.is_empty() {
        let mut accounts = transaction.open_table(LEDGER)?;
        for (name, balance) in &batch.balances {
            buffer.clear();
            codec::encode_balance(buffer, balance);
            accounts.insert(&**name, buffer.as_slice())?;
            rows += 1;
        }
    }
    if !batch.operations.is_empty() {
        let mut operations = transaction.open_table(OPERATIONS)?;
        let mut index = transaction.open_table(OPERATIONS_OF)?;
        for record in &batch.operations {
            buffer.clear();
            codec::encode_operation(buffer, record);
            operations.insert(record.serial, buffer.as_slice())?;
            index.insert((&*record.operation.account, record.serial), ())?;
            rows += 2;
        }
    }
    if !(batch.settlements.is_empty() && batch.settled.is_none()) {
        let mut settlements = transaction.open_table(SETTLEMENTS)?;
        for settlement in &batch.settlements {
            buffer.clear();
            codec::encode_settlement(buffer, settlement);
            settlements.insert(settlement.serial, buffer.as_slice())?;
            rows += 1;
        }
        if let Some(upto) = batch.settled {
            settlements.retain_in(..=upto, |_, _| false)?;
            transaction.open_table(META)?.insert(META_SETTLED, upto)?;
            rows += 1;
        }
    }
    Ok(rows)
}

/// Creates an empty file under a temporary name and links it to its own once it is complete: a power cut leaves no
/// partial file.
///
/// Two daemons may do so at once. Each has its own temporary name, and a link, unlike a rename, never replaces an
/// existing file: the second daemon opens the first one's file, and finds it in use.
fn create_file(path: &Path) -> Result<(), redb::DatabaseError> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    ignore_not_found(std::fs::remove_file(&new))?;
    drop(Database::create(&new)?);
    std::fs::File::open(&new)?.sync_all()?;
    match std::fs::hard_link(&new, path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    ignore_not_found(std::fs::remove_file(&new))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(folder)?.sync_all()?;
    Ok(())
}

/// A missing file need not be removed.
fn ignore_not_found(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(crate) fn damaged(table: &'static str, id: u64) -> impl Fn(RecordError) -> StoreError {
    move |source| StoreError::Record { table, id, source }
}

pub(crate) fn decode_finished(
    decoder: &mut RecordDecoder,
    id: MessageId,
    octets: &[u8],
) -> Result<StoredMessage, StoreError> {
    let (message, length) = decoder.message(id, octets).map_err(damaged("finished", id.0))?;
    let ended =
        codec::decode_final(octets.get(length..).unwrap_or_default()).map_err(damaged("finished", id.0))?;
    Ok(StoredMessage::Finished(message, ended))
}

/// Whether another process has a store open.
///
/// # Errors
/// The file cannot be opened, or the system does not tell.
pub fn is_in_use(path: &Path) -> std::io::Result<bool> {
    // redb holds this lock on open files; this function's lock ends with its file handle.
    let file = std::fs::File::open(path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Free octets on the disk of `path`, for an ordinary user.
///
/// # Errors
/// The system does not tell.
pub fn free_space(path: &Path) -> Result<u64, StoreError> {
    let stat = rustix::fs::statvfs(path)
        .map_err(|error| StoreError::FreeSpace { path: path.to_owned(), source: error.into() })?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

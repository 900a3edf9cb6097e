//! Table `finished_blocks`: finished messages, many in one row.
//!
//! To insert a row costs several times as much as to encode the message in it, and most messages with neighbouring ids
//! end at about the same time. So the messages of a group of ids whose ends are applied together share a row, a block. A
//! message that ends later than its neighbours has a block of its own, beside theirs.
//!
//! Key: the group, which is the id of a message divided by [`GROUP`], and the number of the journal record with which the
//! block was written. Value, as in [`checked`]:
//! * 8: the messages in the block, a bit each; the lowest bit is the lowest id of the group
//! * 4 each: length of the message's record, by ascending id
//! * the records, by ascending id: the message and its final record, see [`codec`]

use crate::decoding::damaged;
use crate::tables::{
    self, BlockKey as Key, FINISHED, FINISHED_ROWS, META, META_FINISHED, META_FORMAT, WITH_JOURNAL,
};
use crate::{StoreError, checked};
use bytes::Bytes;
use codec::RecordError;
use journal::Seq;
use model::MessageId;
use redb::{AccessGuard, ReadableTable, StorageError, Table, TableHandle as _, WriteTransaction};
use std::iter::Peekable;

type Row<'t> = Result<(AccessGuard<'t, Key>, AccessGuard<'t, &'static [u8]>), StorageError>;

const NAME: &str = "finished_blocks";

/// Number of ids in a group: the bits of a block's set of messages.
const GROUP: u64 = u64::BITS as u64;
/// Octets before the lengths.
const SET: usize = 8;

const fn bit_of(id: u64) -> u64 {
    1 << (id % GROUP)
}

/// A block: its messages and their records.
#[derive(Debug, Default)]
struct Block {
    members: u64,
    lengths: Vec<u32>,
    records: Vec<u8>,
}

impl Block {
    /// Appends a message, whose id is above those in the block.
    fn push(&mut self, id: u64, encode: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.records.len();
        encode(&mut self.records);
        self.members |= bit_of(id);
        self.lengths.push((self.records.len() - begin) as u32);
    }

    fn clear(&mut self) {
        self.members = 0;
        self.lengths.clear();
        self.records.clear();
    }

    fn insert(
        &self,
        table: &mut Table<'_, Key, &'static [u8]>,
        key: Key,
        buffer: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        checked::insert(table, &key, buffer, |out| {
            out.extend_from_slice(&self.members.to_le_bytes());
            for length in &self.lengths {
                out.extend_from_slice(&length.to_le_bytes());
            }
            out.extend_from_slice(&self.records);
        })
    }
}

/// The ids of the messages in a block, ascending.
fn ids_of(group: u64, members: u64) -> impl Iterator<Item = u64> {
    let ids = (0..GROUP).map(move |bit| group.wrapping_mul(GROUP) | bit);
    ids.filter(move |id| members & bit_of(*id) != 0)
}

/// The set of messages of a row, and their records.
fn members(key: Key, row: &[u8]) -> Result<(u64, Vec<&[u8]>), StoreError> {
    let wrong = |what| RecordError { what, offset: 0 };
    let parse = || {
        let block = checked::record::<Key>(&key, row)?;
        let (set, rest) = block.split_first_chunk::<SET>().ok_or(wrong("the block is too short"))?;
        let members = u64::from_le_bytes(*set);
        let lengths = rest.get(..members.count_ones() as usize * 4).ok_or(wrong("the block is too short"))?;
        let mut left = &rest[lengths.len()..];
        let mut records = Vec::with_capacity(members.count_ones() as usize);
        for length in lengths.as_chunks::<4>().0 {
            let length = u32::from_le_bytes(*length) as usize;
            let (record, after) = left.split_at_checked(length).ok_or(wrong("a record is cut"))?;
            records.push(record);
            left = after;
        }
        if left.is_empty() { Ok((members, records)) } else { Err(wrong("octets after the last record")) }
    };
    parse().map_err(damaged(NAME, key.0.wrapping_mul(GROUP)))
}

/// The records of a finished message.
fn record_in(key: Key, row: &[u8], id: u64) -> Result<Option<&[u8]>, StoreError> {
    let (members, records) = members(key, row)?;
    let before = (members & (bit_of(id) - 1)).count_ones() as usize;
    Ok(if members & bit_of(id) == 0 { None } else { records.get(before).copied() })
}

/// Reads finished messages.
pub(crate) struct FinishedMessages<T>(pub(crate) T);

impl<T: ReadableTable<Key, &'static [u8]>> FinishedMessages<T> {
    /// The records of a message.
    pub(crate) fn get(&self, id: MessageId) -> Result<Option<Vec<u8>>, StoreError> {
        let group = id.0 / GROUP;
        for row in self.0.range((group, 0)..=(group, u64::MAX))? {
            let (key, row) = row?;
            if let Some(record) = record_in(key.value(), row.value(), id.0)? {
                return Ok(Some(record.to_vec()));
            }
        }
        Ok(None)
    }

    /// The messages from this id on, by ascending id.
    pub(crate) fn from(&self, first: MessageId) -> Result<impl Iterator<Item = Found>, StoreError> {
        let rows = self.0.range((first.0 / GROUP, 0)..)?;
        Ok(Groups { rows: rows.peekable(), ready: Vec::new(), descending: false, ids: first.0..u64::MAX })
    }

    /// The messages below this id, by descending id.
    pub(crate) fn before(&self, before: MessageId) -> Result<impl Iterator<Item = Found>, StoreError> {
        let rows = self.0.range(..=(before.0 / GROUP, u64::MAX))?.rev();
        Ok(Groups { rows: rows.peekable(), ready: Vec::new(), descending: true, ids: 0..before.0 })
    }
}

/// Converts the finished messages of a file before format 10, which are in a row each.
///
/// # Errors
/// A row is damaged; the storage fails.
pub(crate) fn convert_rows(transaction: &WriteTransaction) -> Result<(), StoreError> {
    let is_old = |table: redb::UntypedTableHandle| table.name() == FINISHED_ROWS.name();
    if !transaction.list_tables()?.any(is_old) {
        return Ok(());
    }
    let mut finished = FinishedWriter::new(transaction.open_table(FINISHED)?, Seq(0));
    for row in transaction.open_table(FINISHED_ROWS)?.iter()? {
        let (id, row) = row?;
        let id = id.value();
        let record = checked::record::<u64>(&id, row.value()).map_err(damaged("finished", id))?;
        finished.insert(id, |out| {
            out.extend_from_slice(record);
            Ok(())
        })?;
    }
    let messages = finished.finish()?;
    transaction.delete_table(FINISHED_ROWS)?;
    let mut meta = transaction.open_table(META)?;
    // An older version must not open the file any more: it would miss these messages.
    let format = meta.get(META_FORMAT)?.map(|format| format.value());
    if let Some(format) = format {
        meta.insert(META_FORMAT, format - format % WITH_JOURNAL + tables::newest_format(format))?;
    }
    count_finished(&mut meta, messages)?;
    checked::seal_meta(&mut meta)?;
    tracing::info!(messages, "finished messages converted: they are in blocks from now on");
    Ok(())
}

/// Changes the number of finished messages. The checksum of the table must be updated after that.
pub(crate) fn count_finished(
    meta: &mut redb::Table<'_, &'static str, u64>,
    more: i64,
) -> Result<(), redb::StorageError> {
    if more != 0 {
        let before = meta.get(META_FINISHED)?.map_or(0, |count| count.value());
        meta.insert(META_FINISHED, before.saturating_add_signed(more))?;
    }
    Ok(())
}

/// A message, and its records.
pub(crate) type Found = Result<(MessageId, Bytes), StoreError>;

/// The messages of consecutive rows, group by group.
struct Groups<'t, R: Iterator<Item = Row<'t>>> {
    rows: Peekable<R>,
    /// Messages of a group; the next one is the last.
    ready: Vec<(MessageId, Bytes)>,
    descending: bool,
    ids: std::ops::Range<u64>,
}

impl<'t, R: Iterator<Item = Row<'t>>> Groups<'t, R> {
    /// Reads the rows of the next group. Returns whether there was one.
    fn read_group(&mut self) -> Result<bool, StoreError> {
        let mut group = None;
        let in_group = |row: &Row<'t>, group: Option<u64>| match row {
            Ok((key, _)) => group.is_none_or(|group| key.value().0 == group),
            Err(_) => true,
        };
        while let Some(row) = self.rows.next_if(|row| in_group(row, group)) {
            let (key, row) = row?;
            let (key, row) = (key.value(), Bytes::copy_from_slice(row.value()));
            group = Some(key.0);
            let (members, records) = members(key, &row)?;
            let found = ids_of(key.0, members).zip(records).filter(|(id, _)| self.ids.contains(id));
            self.ready.extend(found.map(|(id, record)| (MessageId(id), row.slice_ref(record))));
        }
        self.ready.sort_unstable_by_key(|(id, _)| *id);
        if !self.descending {
            self.ready.reverse();
        }
        Ok(group.is_some())
    }
}

impl<'t, R: Iterator<Item = Row<'t>>> Iterator for Groups<'t, R> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            if let Some(next) = self.ready.pop() {
                return Some(Ok(next));
            }
            match self.read_group() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Writes finished messages. All calls are by ascending id.
pub(crate) struct FinishedWriter<'t> {
    table: Table<'t, Key, &'static [u8]>,
    /// The second part of the keys of new blocks.
    last: Seq,
    /// The group of the last call.
    group: u64,
    /// New messages of the group.
    new: Block,
    /// Messages of the group that are removed.
    removed: u64,
    buffer: Vec<u8>,
    /// Difference of the number of messages in the table.
    change: i64,
}

impl<'t> FinishedWriter<'t> {
    /// `last`: the newest journal record of the changes.
    pub(crate) fn new(table: Table<'t, Key, &'static [u8]>, last: Seq) -> Self {
        Self {
            table,
            last,
            group: 0,
            new: Block::default(),
            removed: 0,
            buffer: Vec::with_capacity(1 << 16),
            change: 0,
        }
    }

    /// Inserts a message; `encode` appends its records.
    pub(crate) fn insert(
        &mut self,
        id: u64,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.advance(id)?;
        let mut outcome = Ok(());
        self.new.push(id, |out| outcome = encode(out));
        outcome
    }

    /// Removes a message, if it is there.
    pub(crate) fn remove(&mut self, id: u64) -> Result<(), StoreError> {
        self.advance(id)?;
        self.removed |= bit_of(id);
        Ok(())
    }

    /// Changes the records of a message, if it is there.
    pub(crate) fn change(
        &mut self,
        id: u64,
        change: impl Fn(&[u8], &mut Vec<u8>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.advance(id)?;
        let mut found = None;
        for row in self.table.range((self.group, 0)..=(self.group, u64::MAX))? {
            let (key, row) = row?;
            if record_in(key.value(), row.value(), id)?.is_some() {
                found = Some((key.value(), row.value().to_vec()));
                break;
            }
        }
        let Some((key, row)) = found else { return Ok(()) };
        let (members, records) = members(key, &row)?;
        let mut block = Block::default();
        for (member, record) in ids_of(key.0, members).zip(records) {
            let mut outcome = Ok(());
            block.push(member, |out| {
                if member == id {
                    outcome = change(record, out);
                } else {
                    out.extend_from_slice(record);
                }
            });
            outcome?;
        }
        Ok(block.insert(&mut self.table, key, &mut self.buffer)?)
    }

    /// Writes what is left. Returns by how much the number of messages in the table has changed.
    pub(crate) fn finish(mut self) -> Result<i64, StoreError> {
        self.write_group()?;
        Ok(self.change)
    }

    /// Begins the group of a message.
    fn advance(&mut self, id: u64) -> Result<(), StoreError> {
        if id / GROUP != self.group {
            self.write_group()?;
            self.group = id / GROUP;
        }
        Ok(())
    }

    /// Writes the changes of the present group.
    fn write_group(&mut self) -> Result<(), StoreError> {
        if self.removed != 0 {
            self.remove_from_rows()?;
            self.removed = 0;
        }
        if self.new.members != 0 {
            self.new.insert(&mut self.table, (self.group, self.last.0), &mut self.buffer)?;
            self.change += i64::from(self.new.members.count_ones());
            self.new.clear();
        }
        Ok(())
    }

    fn remove_from_rows(&mut self) -> Result<(), StoreError> {
        let mut affected = Vec::new();
        for row in self.table.range((self.group, 0)..=(self.group, u64::MAX))? {
            let (key, row) = row?;
            let (key, row) = (key.value(), row.value());
            let (members, records) = members(key, row)?;
            if members & self.removed == 0 {
                continue;
            }
            let mut left = Block::default();
            let kept = ids_of(key.0, members).zip(records).filter(|(id, _)| self.removed & bit_of(*id) == 0);
            for (id, record) in kept {
                left.push(id, |out| out.extend_from_slice(record));
            }
            self.change -= i64::from((members & self.removed).count_ones());
            affected.push((key, left));
        }
        for (key, left) in affected {
            if left.members == 0 {
                self.table.remove(key)?;
            } else {
                left.insert(&mut self.table, key, &mut self.buffer)?;
            }
        }
        Ok(())
    }
}

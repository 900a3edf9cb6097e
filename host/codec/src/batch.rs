//! Whole batches.

use crate::field::Field;
use crate::{
    BatchFormat, CipherError, ContentCipher, Cursor, RecordDecoder, RecordError, decode_balance,
    decode_final, decode_idempotency_key, decode_journal, decode_number, decode_operation, decode_orphan_dlr,
    decode_pace_day, decode_pool, decode_progress, decode_queue_action, decode_settlement,
    decode_submit_attempts, encode_balance, encode_final, encode_idempotency_key, encode_journal,
    encode_message_with, encode_number, encode_operation, encode_orphan_dlr, encode_pace_day, encode_pool,
    encode_progress, encode_queue_action, encode_settlement, encode_submit_attempts, put_short,
};
use model::{
    AddressBytes, Batch, ContentErasure, JournalPart, MessageId, Notice, OptOut, PoolBatch, PoolPurge,
};
use std::sync::Arc;

/// A section of a batch; its octet begins it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Section {
    /// 8 next id, 8 number of the row of submit attempts. Always first.
    Head = 1,
    /// Per peer: 4 id, name.
    Names = 2,
    /// Per message: 8 id, record.
    Accepted = 3,
    /// Per message: 8 id, record.
    Replaced = 4,
    /// One record.
    SubmitAttempts = 5,
    /// 8 number each.
    SubmitRowsDone = 6,
    /// Per message: 8 id, record.
    Progress = 7,
    /// Per message: 8 id, record.
    Finished = 8,
    /// 8 id each.
    Dropped = 9,
    /// Per key: 8 serial number, record.
    IdempotencyKeys = 10,
    /// 8 serial number.
    IdempotencyKeysDone = 11,
    /// Per DLR: 8 number, record.
    OrphanDlrs = 12,
    /// 8 number each.
    OrphanDlrsDone = 13,
    /// Per opt-out: 1 whether it opts out, sender, subscriber: each 1 length, octets.
    OptOuts = 14,
    /// Per account: name, record.
    Balances = 15,
    /// Per operation: 8 serial number, record.
    Operations = 16,
    /// Per settlement: 8 serial number, record.
    Settlements = 17,
    /// 8 serial number.
    Settled = 18,
    /// Per queue action: 4 id, record.
    QueueActions = 19,
    /// 4 id each.
    QueueActionsDone = 20,
    /// 8 id each.
    Archived = 21,
    /// Per pool: 4 id, record.
    Pools = 22,
    /// Per part: 4 pool, 8 number of its first entry, record.
    PoolJournal = 23,
    /// Per number: 4 pool, 8 number, record; an empty one if it was removed.
    PoolNumbers = 24,
    /// Per pool: 4 pool, 8 number of an entry.
    PoolTrimmed = 25,
    /// 4 pool, 1 kind (0 some: 8 number of rows, 1 the rest).
    PoolPurged = 26,
    /// Per new name of a peer group: name, 4 id.
    GroupNames = 27,
    /// Per peer: 4 id, 4 id of its group; 0: it is in none.
    Groups = 28,
    /// Per pace bucket: name, record.
    PaceDays = 29,
    /// Per notice: 1 kind, id, 8 at, data; id and data as names.
    Notices = 30,
    /// Per message: 8 id, record: 8 at, by.
    Erased = 31,
}

impl Section {
    /// All sections, in ascending order.
    const ALL: [Self; 31] = [
        Self::Head,
        Self::Names,
        Self::Accepted,
        Self::Replaced,
        Self::SubmitAttempts,
        Self::SubmitRowsDone,
        Self::Progress,
        Self::Finished,
        Self::Dropped,
        Self::IdempotencyKeys,
        Self::IdempotencyKeysDone,
        Self::OrphanDlrs,
        Self::OrphanDlrsDone,
        Self::OptOuts,
        Self::Balances,
        Self::Operations,
        Self::Settlements,
        Self::Settled,
        Self::QueueActions,
        Self::QueueActionsDone,
        Self::Archived,
        Self::Pools,
        Self::PoolJournal,
        Self::PoolNumbers,
        Self::PoolTrimmed,
        Self::PoolPurged,
        Self::GroupNames,
        Self::Groups,
        Self::PaceDays,
        Self::Notices,
        Self::Erased,
    ];

    pub(crate) fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|section| *section as u8 == octet)
    }
}

/// Encodes a batch in the newest format: a sequence of sections, in ascending order, each at most once: 1 section, 4 length,
/// content. A section without content is omitted. A record is preceded by its length in 4 octets. It is the value of its
/// table, so that it can be written there without decoding. A name is 2 length, UTF-8.
///
/// Fields that no table stores are not encoded: whether a key is required, and its lifetime. A section may have 4 GiB.
pub fn encode_batch(out: &mut Vec<u8>, batch: &Batch) {
    // Without a cipher, nothing fails.
    let _ = encode_batch_with(out, batch, None);
}

/// As [`encode_batch`]; encrypts the contents of messages for which [`ContentCipher::encrypts`] is true.
///
/// # Errors
/// The cipher has no key for a content. In this case `out` is not a valid batch.
pub fn encode_batch_with(
    out: &mut Vec<u8>,
    batch: &Batch,
    cipher: Option<&dyn ContentCipher>,
) -> Result<(), CipherError> {
    encode_batch_as(BatchFormat::NEWEST, out, batch, cipher)
}

/// As [`encode_batch_with`], in this format, for readers that do not read newer formats.
///
/// # Errors
/// As [`encode_batch_with`].
pub fn encode_batch_as(
    format: BatchFormat,
    out: &mut Vec<u8>,
    batch: &Batch,
    cipher: Option<&dyn ContentCipher>,
) -> Result<(), CipherError> {
    match format {
        BatchFormat::V1 => encode_sections(out, batch, cipher),
    }
}

fn encode_sections(
    out: &mut Vec<u8>,
    batch: &Batch,
    cipher: Option<&dyn ContentCipher>,
) -> Result<(), CipherError> {
    // All fields by name: a new one must get a section.
    let Batch {
        names,
        group_names,
        groups,
        accepted,
        replaced,
        submit_attempts,
        submit_row,
        submit_rows_done,
        progress,
        finished,
        dropped,
        idempotency_keys,
        idempotency_keys_done,
        orphan_dlrs,
        orphan_dlrs_done,
        opt_outs,
        balances,
        operations,
        settlements,
        settled,
        pace_days,
        notices,
        queue_actions,
        queue_actions_done,
        erased,
        archived,
        pools: PoolBatch { records: pools, journal, numbers, trimmed, purged },
        next_id,
    } = batch;
    put_section(out, Section::Head, [&()], |out, ()| {
        next_id.put(out);
        submit_row.put(out);
    });
    put_section(out, Section::Names, names, |out, (id, name)| {
        id.put(out);
        name.put(out);
    });
    for (section, messages) in [(Section::Accepted, accepted), (Section::Replaced, replaced)] {
        let mut encoded = Ok(());
        put_section(out, section, messages, |out, message| {
            put_row(out, &message.id, |out| {
                if encoded.is_ok() {
                    encoded = encode_message_with(out, message, cipher);
                }
            });
        });
        encoded?;
    }
    if !submit_attempts.is_empty() {
        put_section(out, Section::SubmitAttempts, [submit_attempts], |out, attempts| {
            encode_submit_attempts(out, attempts);
        });
    }
    put_section(out, Section::SubmitRowsDone, submit_rows_done, put);
    put_section(out, Section::Progress, progress, |out, (id, state)| {
        put_row(out, id, |out| encode_progress(out, state));
    });
    put_section(out, Section::Finished, finished, |out, (id, ended)| {
        put_row(out, id, |out| encode_final(out, ended));
    });
    put_section(out, Section::Dropped, dropped, put);
    put_section(out, Section::IdempotencyKeys, idempotency_keys, |out, key| {
        put_row(out, &key.serial, |out| encode_idempotency_key(out, key));
    });
    put_section(out, Section::IdempotencyKeysDone, idempotency_keys_done, put);
    put_section(out, Section::OrphanDlrs, orphan_dlrs, |out, dlr| {
        put_row(out, &dlr.number, |out| encode_orphan_dlr(out, dlr));
    });
    put_section(out, Section::OrphanDlrsDone, orphan_dlrs_done, put);
    put_section(out, Section::OptOuts, opt_outs, |out, (opt_out, stop)| {
        stop.put(out);
        put_short(out, &opt_out.sender);
        put_short(out, &opt_out.subscriber);
    });
    put_section(out, Section::Balances, balances, |out, (account, balance)| {
        put_row(out, account, |out| encode_balance(out, balance));
    });
    put_section(out, Section::Operations, operations, |out, operation| {
        put_row(out, &operation.serial, |out| encode_operation(out, operation));
    });
    put_section(out, Section::Settlements, settlements, |out, settlement| {
        put_row(out, &settlement.serial, |out| encode_settlement(out, settlement));
    });
    put_section(out, Section::Settled, settled, put);
    put_section(out, Section::QueueActions, queue_actions, |out, action| {
        put_row(out, &action.id, |out| encode_queue_action(out, action));
    });
    put_section(out, Section::QueueActionsDone, queue_actions_done, put);
    put_section(out, Section::Archived, archived, put);
    put_section(out, Section::Pools, pools, |out, pool| {
        put_row(out, &pool.id, |out| encode_pool(out, pool));
    });
    put_section(out, Section::PoolJournal, journal, |out, part| {
        part.pool.put(out);
        put_row(out, &part.first, |out| encode_journal(out, part.serial, &part.entries));
    });
    put_section(out, Section::PoolNumbers, numbers, |out, (pool, number, row)| {
        pool.put(out);
        put_row(out, number, |out| {
            if let Some(row) = row {
                encode_number(out, row);
            }
        });
    });
    put_section(out, Section::PoolTrimmed, trimmed, |out, (pool, before)| {
        pool.put(out);
        before.put(out);
    });
    put_section(out, Section::PoolPurged, purged, |out, (pool, purge)| {
        pool.put(out);
        match purge {
            PoolPurge::Some(most) => {
                out.push(0);
                (*most as u64).put(out);
            }
            PoolPurge::Rest => out.push(1),
        }
    });
    put_section(out, Section::GroupNames, group_names, |out, (name, group)| {
        name.put(out);
        group.put(out);
    });
    put_section(out, Section::Groups, groups, |out, (peer, group)| {
        peer.put(out);
        group.unwrap_or_default().put(out);
    });
    put_section(out, Section::PaceDays, pace_days, |out, day| {
        put_row(out, &day.bucket, |out| encode_pace_day(out, day));
    });
    put_section(out, Section::Notices, notices, |out, notice| {
        notice.kind.put(out);
        notice.id.put(out);
        notice.at.put(out);
        notice.data.put(out);
    });
    put_section(out, Section::Erased, erased, |out, erasure| {
        put_row(out, &erasure.id, |out| {
            erasure.at.put(out);
            erasure.by.put(out);
        });
    });
    Ok(())
}

/// Decodes the output of [`encode_batch`], and of [`encode_batch_as`] in any format. Records may have any format that this version
/// reads.
///
/// # Errors
/// The octets are not a batch, or only a newer version knows the format or a section.
pub fn decode_batch(octets: &[u8]) -> Result<Batch, RecordError> {
    decode_batch_with(octets, None)
}

/// As [`decode_batch`]; decrypts the contents of messages.
///
/// # Errors
/// As [`decode_batch`].
pub fn decode_batch_with(
    octets: &[u8],
    cipher: Option<Arc<dyn ContentCipher>>,
) -> Result<Batch, RecordError> {
    match BatchFormat::of(octets)? {
        BatchFormat::V1 => decode_sections(octets, cipher),
    }
}

fn decode_sections(octets: &[u8], cipher: Option<Arc<dyn ContentCipher>>) -> Result<Batch, RecordError> {
    let mut batch = Batch::default();
    let mut decoder = RecordDecoder::with_cipher(cipher);
    let mut cursor = Cursor::new(octets);
    let mut last = None;
    while !cursor.is_at_end() {
        let section = Section::from_octet(cursor.u8()?).ok_or_else(|| cursor.damaged("unknown section"))?;
        if last >= Some(section) || last.is_none() != (section == Section::Head) {
            return Err(cursor.damaged("a section in the wrong place"));
        }
        last = Some(section);
        let content = cursor.long()?;
        let begin = cursor.at() - content.len();
        decode_section(&mut batch, &mut decoder, section, content).map_err(|error| error.behind(begin))?;
    }
    Ok(batch)
}

fn decode_section(
    batch: &mut Batch,
    decoder: &mut RecordDecoder,
    section: Section,
    content: &[u8],
) -> Result<(), RecordError> {
    let mut cursor = Cursor::new(content);
    let pools = &mut batch.pools;
    while !cursor.is_at_end() {
        let at = &mut cursor;
        match section {
            Section::Head => (batch.next_id, batch.submit_row) = (Field::read(at)?, Field::read(at)?),
            Section::Names => batch.names.push((Field::read(at)?, Field::read(at)?)),
            Section::Accepted | Section::Replaced => {
                let message = row(at, |id: MessageId, octets| {
                    let (message, length) = decoder.message(id, octets)?;
                    if length < octets.len() {
                        return Err(RecordError { what: "octets behind a message", offset: length });
                    }
                    Ok(Arc::new(message))
                })?;
                if section == Section::Accepted { &mut batch.accepted } else { &mut batch.replaced }
                    .push(message);
            }
            Section::SubmitAttempts => {
                batch.submit_attempts = decode_submit_attempts(at.take(content.len())?)?;
            }
            Section::SubmitRowsDone => batch.submit_rows_done.push(Field::read(at)?),
            Section::Progress => {
                batch.progress.push(row(at, |id, octets| Ok((id, decode_progress(octets)?)))?);
            }
            Section::Finished => batch.finished.push(row(at, |id, octets| Ok((id, decode_final(octets)?)))?),
            Section::Dropped => batch.dropped.push(Field::read(at)?),
            Section::IdempotencyKeys => batch.idempotency_keys.push(row(at, decode_idempotency_key)?),
            Section::IdempotencyKeysDone => batch.idempotency_keys_done = Some(Field::read(at)?),
            Section::OrphanDlrs => batch.orphan_dlrs.push(row(at, decode_orphan_dlr)?),
            Section::OrphanDlrsDone => batch.orphan_dlrs_done.push(Field::read(at)?),
            Section::OptOuts => {
                let stop = Field::read(at)?;
                let sender = AddressBytes::from_slice(at.short()?);
                let subscriber = AddressBytes::from_slice(at.short()?);
                batch.opt_outs.push((OptOut { sender, subscriber }, stop));
            }
            Section::Balances => {
                batch.balances.push(row(at, |account, octets| Ok((account, decode_balance(octets)?)))?);
            }
            Section::Operations => batch.operations.push(row(at, decode_operation)?),
            Section::Settlements => batch.settlements.push(row(at, decode_settlement)?),
            Section::Settled => batch.settled = Some(Field::read(at)?),
            Section::QueueActions => batch.queue_actions.push(row(at, decode_queue_action)?),
            Section::QueueActionsDone => batch.queue_actions_done.push(Field::read(at)?),
            Section::Archived => batch.archived.push(Field::read(at)?),
            Section::Pools => pools.records.push(row(at, decode_pool)?),
            Section::PoolJournal => {
                let pool = Field::read(at)?;
                pools.journal.push(row(at, |first, octets| {
                    let (serial, entries) = decode_journal(octets)?;
                    Ok(JournalPart { pool, first, serial, entries })
                })?);
            }
            Section::PoolNumbers => {
                let pool = Field::read(at)?;
                pools.numbers.push(row(at, |number, octets| {
                    let row = if octets.is_empty() { None } else { Some(decode_number(octets)?) };
                    Ok((pool, number, row))
                })?);
            }
            Section::PoolTrimmed => pools.trimmed.push((Field::read(at)?, Field::read(at)?)),
            Section::PoolPurged => {
                let pool = Field::read(at)?;
                let purge = match at.u8()? {
                    0 => PoolPurge::Some(usize::try_from(at.u64()?).unwrap_or(usize::MAX)),
                    1 => PoolPurge::Rest,
                    _ => return Err(at.damaged("unknown purge of a pool")),
                };
                pools.purged = Some((pool, purge));
            }
            Section::GroupNames => batch.group_names.push((Field::read(at)?, Field::read(at)?)),
            Section::PaceDays => batch.pace_days.push(row(at, decode_pace_day)?),
            Section::Notices => batch.notices.push(Notice {
                kind: Field::read(at)?,
                id: Field::read(at)?,
                at: Field::read(at)?,
                data: Field::read(at)?,
            }),
            Section::Erased => batch.erased.push(row(at, |id, octets| {
                let mut cursor = Cursor::new(octets);
                let (at, by) = (Field::read(&mut cursor)?, Field::read(&mut cursor)?);
                Ok(ContentErasure { id, at, by })
            })?),
            Section::Groups => {
                let peer = Field::read(at)?;
                let group: u32 = Field::read(at)?;
                batch.groups.push((peer, (group != 0).then_some(group)));
            }
        }
    }
    Ok(())
}

fn put<T: Field>(out: &mut Vec<u8>, field: &T) {
    field.put(out);
}

fn put_section<'a, T: 'a>(
    out: &mut Vec<u8>,
    section: Section,
    rows: impl IntoIterator<Item = &'a T>,
    mut put: impl FnMut(&mut Vec<u8>, &T),
) {
    let begin = out.len();
    out.push(section as u8);
    put_long_with(out, |out| rows.into_iter().for_each(|row| put(out, row)));
    if out.len() == begin + 5 {
        out.truncate(begin);
    }
}

/// Writes the output of `put`, after its length in 4 octets.
fn put_long_with(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    put(out);
    let length = u32::try_from(out.len() - begin - 4).unwrap_or(u32::MAX);
    if let Some(octets) = out.get_mut(begin..begin + 4) {
        octets.copy_from_slice(&length.to_le_bytes());
    }
}

fn put_row(out: &mut Vec<u8>, key: &impl Field, encode: impl FnOnce(&mut Vec<u8>)) {
    key.put(out);
    put_long_with(out, encode);
}

fn row<K: Field, T>(
    cursor: &mut Cursor<'_>,
    decode: impl FnOnce(K, &[u8]) -> Result<T, RecordError>,
) -> Result<T, RecordError> {
    let key = K::read(cursor)?;
    let record = cursor.long()?;
    decode(key, record).map_err(|error| error.behind(cursor.at() - record.len()))
}

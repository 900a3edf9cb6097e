//! Applies pending changes to the tables.

use crate::checked::{self, SmallTable, SumChange};
use crate::decoding::{damaged, decode_finished_record};
use crate::finished::{FinishedWriter, count_finished};
use crate::pending::{MessageChange, MessageState, Pending, StoredIn};
use crate::tables::{
    FINISHED, GROUP_OF, GROUPS, KEYS, LEDGER, MESSAGES, META, META_APPLIED, META_NEXT_ID,
    META_NEXT_SUBMIT_ROW, META_SETTLED, NAMES, OPERATIONS, OPERATIONS_BY_ACCOUNT, OPTOUTS, ORPHAN_DLRS,
    PACE_DAYS, PROGRESS, QUEUE_ACTIONS, SETTLEMENTS, SUBMIT_ATTEMPTS,
};
use crate::{StoreError, pool_changes};
use codec::{ContentCipher, RecordDecoder, put_short};
use model::{Batch, ContentErasure};
use redb::{ReadableTableMetadata as _, WriteTransaction};

/// Applies merged changes.
pub(crate) fn apply(
    transaction: &WriteTransaction,
    pending: &Pending,
    cipher: Option<&dyn ContentCipher>,
) -> Result<(), StoreError> {
    let mut buffer = Vec::with_capacity(512);
    let mut more_finished = 0;
    if !pending.messages.is_empty() {
        more_finished = write_messages(transaction, pending, cipher, &mut buffer)?;
    }
    if !(pending.submit_attempts.is_empty() && pending.submit_rows_done.is_empty()) {
        let mut attempts = transaction.open_table(SUBMIT_ATTEMPTS)?;
        for (row, attempts_of_row) in &pending.submit_attempts {
            checked::insert(&mut attempts, row, &mut buffer, |out| {
                codec::encode_submit_attempts(out, attempts_of_row);
            })?;
        }
        for row in &pending.submit_rows_done {
            attempts.remove(row)?;
        }
    }
    write_side_tables(transaction, &pending.rest, &mut buffer)?;
    write_ledger(transaction, pending, &mut buffer)?;
    pool_changes::write(transaction, &pending.rest.pools, &mut buffer)?;
    for (pool, purge) in &pending.purged {
        pool_changes::remove(transaction, *pool, *purge)?;
    }
    let mut meta = transaction.open_table(META)?;
    if let Some(next) = pending.next_id {
        meta.insert(META_NEXT_ID, next.0)?;
    }
    if let Some(next) = pending.next_submit_row {
        meta.insert(META_NEXT_SUBMIT_ROW, next)?;
    }
    meta.insert(META_APPLIED, pending.last.0)?;
    count_finished(&mut meta, more_finished)?;
    Ok(checked::seal_meta(&mut meta)?)
}

/// Writes the changes of messages. Returns by how much the number of finished messages has changed.
fn write_messages(
    transaction: &WriteTransaction,
    pending: &Pending,
    cipher: Option<&dyn ContentCipher>,
    buffer: &mut Vec<u8>,
) -> Result<i64, StoreError> {
    let mut messages = transaction.open_table(MESSAGES)?;
    let mut progress_table = transaction.open_table(PROGRESS)?;
    let mut finished = FinishedWriter::new(transaction.open_table(FINISHED)?, pending.last);
    // Most messages end without a progress row.
    let has_progress = !progress_table.is_empty()?;
    // In ascending order, neighbouring rows are written to one page.
    let mut changes: Vec<(&u64, &MessageChange)> = pending.messages.iter().collect();
    changes.sort_unstable_by_key(|(id, _)| **id);
    for (id, MessageChange { stored, state }) in changes {
        let is_waiting_row = *stored == StoredIn::Messages;
        match state {
            MessageState::Waiting { message, progress } => {
                if let Some(message) = message {
                    checked::insert(&mut messages, id, buffer, |out| {
                        out.extend_from_slice(pending.octets(*message));
                    })?;
                }
                if let Some(progress) = progress {
                    checked::insert(&mut progress_table, id, buffer, |out| {
                        out.extend_from_slice(pending.octets(*progress));
                    })?;
                }
            }
            MessageState::Finished { message, ended, erased } => {
                let row = if is_waiting_row { messages.remove(id)? } else { None };
                let record = match (message, &row) {
                    (Some(message), _) => pending.octets(*message),
                    (None, Some(row)) => {
                        checked::record::<u64>(id, row.value()).map_err(damaged("messages", *id))?
                    }
                    (None, None) => continue,
                };
                let ended = pending.octets(*ended);
                finished.insert(*id, |out| match erased {
                    None => {
                        out.extend_from_slice(record);
                        out.extend_from_slice(ended);
                        Ok(())
                    }
                    Some(erasure) => erase_content(out, erasure, &[record, ended].concat(), cipher),
                })?;
                if is_waiting_row && has_progress {
                    progress_table.remove(id)?;
                }
            }
            // It may be archived already, or not be finished.
            MessageState::ContentErased(erasure) => {
                finished.change(*id, |record, out| erase_content(out, erasure, record, cipher))?;
            }
            MessageState::Removed if *stored == StoredIn::Finished => finished.remove(*id)?,
            MessageState::Removed => {
                messages.remove(id)?;
                if has_progress {
                    progress_table.remove(id)?;
                }
            }
        }
    }
    finished.finish()
}

/// Appends the records of a finished message without its content.
fn erase_content(
    out: &mut Vec<u8>,
    erasure: &ContentErasure,
    record: &[u8],
    cipher: Option<&dyn ContentCipher>,
) -> Result<(), StoreError> {
    let (mut message, mut ended) = decode_finished_record(&mut RecordDecoder::new(), erasure.id, record)?;
    erasure.apply(&mut message, &mut ended);
    codec::encode_message_with(out, &message, cipher)?;
    codec::encode_final(out, &ended);
    Ok(())
}

/// Writes the tables other than those of messages. Most batches have no changes for them, and do not open them.
fn write_side_tables(
    transaction: &WriteTransaction,
    batch: &Batch,
    buffer: &mut Vec<u8>,
) -> Result<(), StoreError> {
    if !batch.names.is_empty() {
        let (mut names, mut sum) = (transaction.open_table(NAMES)?, SumChange::default());
        for (id, name) in &batch.names {
            sum.insert(&mut names, &id.0, &&**name)?;
        }
        sum.finish(transaction, SmallTable::Names)?;
    }
    write_groups(transaction, batch)?;
    if !(batch.idempotency_keys.is_empty() && batch.idempotency_keys_done.is_none()) {
        let mut keys = transaction.open_table(KEYS)?;
        for record in &batch.idempotency_keys {
            checked::insert(&mut keys, &record.serial, buffer, |out| {
                codec::encode_idempotency_key(out, record);
            })?;
        }
        if let Some(left) = batch.idempotency_keys_done {
            keys.retain_in(..left, |_, _| false)?;
        }
    }
    if !(batch.orphan_dlrs.is_empty() && batch.orphan_dlrs_done.is_empty()) {
        let mut orphans = transaction.open_table(ORPHAN_DLRS)?;
        for record in &batch.orphan_dlrs {
            checked::insert(&mut orphans, &record.number, buffer, |out| {
                codec::encode_orphan_dlr(out, record);
            })?;
        }
        for number in &batch.orphan_dlrs_done {
            orphans.remove(number)?;
        }
    }
    if !batch.opt_outs.is_empty() {
        let (mut optouts, mut sum) = (transaction.open_table(OPTOUTS)?, SumChange::default());
        for (opt_out, stop) in &batch.opt_outs {
            buffer.clear();
            put_short(buffer, &opt_out.sender);
            buffer.extend_from_slice(&opt_out.subscriber);
            if *stop {
                sum.insert(&mut optouts, &buffer.as_slice(), &())?;
            } else {
                sum.remove(&mut optouts, &buffer.as_slice())?;
            }
        }
        sum.finish(transaction, SmallTable::OptOuts)?;
    }
    if !batch.pace_days.is_empty() {
        let mut table = transaction.open_table(PACE_DAYS)?;
        for day in &batch.pace_days {
            if day.used == 0 {
                table.remove(&*day.bucket)?;
                continue;
            }
            checked::insert(&mut table, &&*day.bucket, buffer, |out| codec::encode_pace_day(out, day))?;
        }
    }
    if !(batch.queue_actions.is_empty() && batch.queue_actions_done.is_empty()) {
        let mut table = transaction.open_table(QUEUE_ACTIONS)?;
        for order in &batch.queue_actions {
            checked::insert(&mut table, &order.id.0, buffer, |out| codec::encode_queue_action(out, order))?;
        }
        for id in &batch.queue_actions_done {
            table.remove(id.0)?;
        }
    }
    Ok(())
}

/// Writes the ledger tables. Without a biller, most batches have no changes for them.
fn write_ledger(
    transaction: &WriteTransaction,
    pending: &Pending,
    buffer: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let batch = &pending.rest;
    if !pending.balances.is_empty() {
        let mut accounts = transaction.open_table(LEDGER)?;
        for (name, balance) in &pending.balances {
            checked::insert(&mut accounts, &&**name, buffer, |out| codec::encode_balance(out, balance))?;
        }
    }
    if !batch.operations.is_empty() {
        let mut operations = transaction.open_table(OPERATIONS)?;
        let mut index = transaction.open_table(OPERATIONS_BY_ACCOUNT)?;
        for record in &batch.operations {
            checked::insert(&mut operations, &record.serial, buffer, |out| {
                codec::encode_operation(out, record);
            })?;
            index.insert((&*record.operation.account, record.serial), ())?;
        }
    }
    if !(batch.settlements.is_empty() && batch.settled.is_none()) {
        let mut settlements = transaction.open_table(SETTLEMENTS)?;
        for settlement in &batch.settlements {
            checked::insert(&mut settlements, &settlement.serial, buffer, |out| {
                codec::encode_settlement(out, settlement);
            })?;
        }
        if let Some(upto) = batch.settled {
            settlements.retain_in(..=upto, |_, _| false)?;
            transaction.open_table(META)?.insert(META_SETTLED, upto)?;
        }
    }
    Ok(())
}

/// Writes the peer groups of a batch.
fn write_groups(transaction: &WriteTransaction, batch: &Batch) -> Result<(), StoreError> {
    if !batch.group_names.is_empty() {
        let (mut groups, mut sum) = (transaction.open_table(GROUPS)?, SumChange::default());
        for (name, group) in &batch.group_names {
            sum.insert(&mut groups, &&**name, group)?;
        }
        sum.finish(transaction, SmallTable::Groups)?;
    }
    if !batch.groups.is_empty() {
        let (mut group_of, mut sum) = (transaction.open_table(GROUP_OF)?, SumChange::default());
        for (peer, group) in &batch.groups {
            match group {
                Some(group) => sum.insert(&mut group_of, &peer.0, group)?,
                None => sum.remove(&mut group_of, &peer.0)?,
            }
        }
        sum.finish(transaction, SmallTable::GroupOf)?;
    }
    Ok(())
}

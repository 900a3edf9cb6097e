//! Writing pending changes to the tables.

use crate::pending::{MessageChange, MessageState, Pending, StoredIn};
use crate::tables::{
    FINISHED, GROUP_OF, GROUPS, HANDED, KEYS, LEDGER, MESSAGES, META, META_APPLIED, META_NEXT_HANDED,
    META_NEXT_ID, META_SETTLED, NAMES, OPERATIONS, OPERATIONS_OF, OPTOUTS, ORDERS, PARKED, PROGRESS,
    SETTLEMENTS,
};
use crate::{StoreError, pool_changes};
use codec::put_short;
use model::Batch;
use redb::{ReadableTableMetadata as _, WriteTransaction};

/// Writes merged changes.
pub(crate) fn apply(transaction: &WriteTransaction, pending: &Pending) -> Result<(), StoreError> {
    let mut buffer = Vec::with_capacity(512);
    if !pending.messages.is_empty() {
        write_messages(transaction, pending, &mut buffer)?;
    }
    if !(pending.submit_attempts.is_empty() && pending.submit_rows_done.is_empty()) {
        let mut attempts = transaction.open_table(HANDED)?;
        for (row, attempts_of_row) in &pending.submit_attempts {
            buffer.clear();
            codec::encode_submit_attempts(&mut buffer, attempts_of_row);
            attempts.insert(row, buffer.as_slice())?;
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
        meta.insert(META_NEXT_HANDED, next)?;
    }
    meta.insert(META_APPLIED, pending.last.0)?;
    Ok(())
}

fn write_messages(
    transaction: &WriteTransaction,
    pending: &Pending,
    buffer: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let mut messages = transaction.open_table(MESSAGES)?;
    let mut progress_table = transaction.open_table(PROGRESS)?;
    let mut finished = transaction.open_table(FINISHED)?;
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
                    buffer.clear();
                    codec::encode_message(buffer, message);
                    messages.insert(id, buffer.as_slice())?;
                }
                if let Some(progress) = progress {
                    buffer.clear();
                    codec::encode_progress(buffer, progress);
                    progress_table.insert(id, buffer.as_slice())?;
                }
            }
            MessageState::Finished { message, ended } => {
                buffer.clear();
                let row = if is_waiting_row { messages.remove(id)? } else { None };
                match (message, row) {
                    (Some(message), _) => codec::encode_message(buffer, message),
                    (None, Some(row)) => buffer.extend_from_slice(row.value()),
                    (None, None) => continue,
                }
                codec::encode_final(buffer, ended);
                finished.insert(id, buffer.as_slice())?;
                if is_waiting_row && has_progress {
                    progress_table.remove(id)?;
                }
            }
            MessageState::Removed if *stored == StoredIn::Finished => {
                finished.remove(id)?;
            }
            MessageState::Removed => {
                messages.remove(id)?;
                if has_progress {
                    progress_table.remove(id)?;
                }
            }
        }
    }
    Ok(())
}

/// Writes the tables other than those of messages. Most batches need none of them, and do not open them.
fn write_side_tables(
    transaction: &WriteTransaction,
    batch: &Batch,
    buffer: &mut Vec<u8>,
) -> Result<(), StoreError> {
    if !batch.names.is_empty() {
        let mut names = transaction.open_table(NAMES)?;
        for (id, name) in &batch.names {
            names.insert(id.0, &**name)?;
        }
    }
    write_groups(transaction, batch)?;
    if !(batch.idempotency_keys.is_empty() && batch.idempotency_keys_done.is_none()) {
        let mut keys = transaction.open_table(KEYS)?;
        for record in &batch.idempotency_keys {
            buffer.clear();
            codec::encode_idempotency_key(buffer, record);
            keys.insert(record.serial, buffer.as_slice())?;
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
        }
        for number in &batch.orphan_dlrs_done {
            orphans.remove(number)?;
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
        }
    }
    if !(batch.queue_actions.is_empty() && batch.queue_actions_done.is_empty()) {
        let mut table = transaction.open_table(ORDERS)?;
        for order in &batch.queue_actions {
            buffer.clear();
            codec::encode_queue_action(buffer, order);
            table.insert(order.id.0, buffer.as_slice())?;
        }
        for id in &batch.queue_actions_done {
            table.remove(id.0)?;
        }
    }
    Ok(())
}

/// Writes the ledger tables. Without a biller most batches need none of them.
fn write_ledger(
    transaction: &WriteTransaction,
    pending: &Pending,
    buffer: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let batch = &pending.rest;
    if !pending.balances.is_empty() {
        let mut accounts = transaction.open_table(LEDGER)?;
        for (name, balance) in &pending.balances {
            buffer.clear();
            codec::encode_balance(buffer, balance);
            accounts.insert(&**name, buffer.as_slice())?;
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
        }
    }
    if !(batch.settlements.is_empty() && batch.settled.is_none()) {
        let mut settlements = transaction.open_table(SETTLEMENTS)?;
        for settlement in &batch.settlements {
            buffer.clear();
            codec::encode_settlement(buffer, settlement);
            settlements.insert(settlement.serial, buffer.as_slice())?;
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
        let mut groups = transaction.open_table(GROUPS)?;
        for (name, group) in &batch.group_names {
            groups.insert(&**name, group)?;
        }
    }
    if !batch.groups.is_empty() {
        let mut group_of = transaction.open_table(GROUP_OF)?;
        for (peer, group) in &batch.groups {
            match group {
                Some(group) => group_of.insert(peer.0, group)?,
                None => group_of.remove(peer.0)?,
            };
        }
    }
    Ok(())
}

use crate::decoding::{damaged, decode_progress, decode_waiting};
use crate::tables::{
    GROUP_OF, KEYS, LEDGER, MESSAGES, META, META_NEXT_ID, META_NEXT_SUBMIT_ROW, META_SETTLED, OPERATIONS,
    OPTOUTS, ORPHAN_DLRS, PACE_DAYS, PROGRESS, QUEUE_ACTIONS, SETTLEMENTS, SUBMIT_ATTEMPTS,
};
use crate::{Store, StoreError, checked, pool_tables};
use codec::Cursor;
use model::{
    AddressBytes, MessageId, OptOut, PeerId, QueueActionId, RecoveredMessage, RecoveredRecord, SubmitAttempt,
};
use redb::ReadableTable;
use rustc_hash::FxHashMap;

/// Counters of a recovered store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The number of waiting messages.
    pub messages: u64,
    /// The next message id.
    pub next_id: MessageId,
    /// The next row of table `handed`.
    pub next_submit_row: u64,
    /// The rows of table `handed`; they can be removed once the engine has recovered their messages.
    pub rows: Vec<u64>,
}

impl Store {
    /// Passes every waiting message, with its progress and its newest submit attempt, to `each`, by ascending id.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn recover(&self, mut each: impl FnMut(RecoveredMessage)) -> Result<Recovery, StoreError> {
        let transaction = self.read()?;
        let mut recovery = Recovery::default();
        let meta = transaction.open_table(META)?;
        let number = |key| -> Result<u64, StoreError> { Ok(meta.get(key)?.map_or(0, |value| value.value())) };
        recovery.next_id = MessageId(number(META_NEXT_ID)?).max(MessageId::FIRST);
        recovery.next_submit_row = number(META_NEXT_SUBMIT_ROW)?.max(1);
        let mut newest: FxHashMap<u64, (SubmitAttempt, u64)> = FxHashMap::default();
        for row in transaction.open_table(SUBMIT_ATTEMPTS)?.iter()? {
            let (seq, value) = row?;
            let seq = seq.value();
            recovery.rows.push(seq);
            for attempt in checked::record::<u64>(&seq, value.value())
                .and_then(codec::decode_submit_attempts)
                .map_err(damaged("handed", seq))?
            {
                // Rows are in order: a later attempt of the same message replaces an earlier one.
                newest.insert(attempt.id.0, (attempt, seq));
            }
        }
        let messages = transaction.open_table(MESSAGES)?;
        let progress = transaction.open_table(PROGRESS)?;
        let mut states = progress.iter()?;
        let mut state = states.next().transpose()?;
        let mut decoder = self.decoder();
        for row in messages.iter()? {
            let (id, value) = row?;
            let id = id.value();
            let message = decode_waiting(&mut decoder, MessageId(id), value.value())?;
            while state.as_ref().is_some_and(|(key, _)| key.value() < id) {
                state = states.next().transpose()?;
            }
            let progress = match &state {
                Some((key, value)) if key.value() == id => {
                    Some(decode_progress(MessageId(id), value.value())?)
                }
                _ => None,
            };
            let (attempt, submit_row) = match newest.get(&id) {
                Some((attempt, seq)) => (Some(*attempt), *seq),
                None => (None, 0),
            };
            recovery.messages += 1;
            each(RecoveredMessage { message, progress, attempt, submit_row });
        }
        Ok(recovery)
    }

    /// Passes all records other than messages to `each`: peer groups; idempotency keys, orphan DLRs and settlements by
    /// ascending number; opt-outs, queue actions, ledger accounts and balance operations. The engine needs them before
    /// the messages.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn recover_records(&self, mut each: impl FnMut(RecoveredRecord)) -> Result<(), StoreError> {
        let transaction = self.read()?;
        for row in transaction.open_table(GROUP_OF)?.iter()? {
            let (peer, group) = row?;
            each(RecoveredRecord::Group(PeerId(peer.value()), group.value()));
        }
        for row in transaction.open_table(KEYS)?.iter()? {
            let (serial, value) = row?;
            let serial = serial.value();
            let record = checked::record::<u64>(&serial, value.value())
                .and_then(|record| codec::decode_idempotency_key(serial, record))
                .map_err(damaged("keys", serial))?;
            each(RecoveredRecord::IdempotencyKey(record));
        }
        for row in transaction.open_table(ORPHAN_DLRS)?.iter()? {
            let (number, value) = row?;
            let number = number.value();
            let record = checked::record::<u64>(&number, value.value())
                .and_then(|record| codec::decode_orphan_dlr(number, record))
                .map_err(damaged("parked", number))?;
            each(RecoveredRecord::OrphanDlr(record));
        }
        for row in transaction.open_table(OPTOUTS)?.iter()? {
            let (pair, _) = row?;
            let mut cursor = Cursor::new(pair.value());
            let sender = cursor.short().map_err(damaged("optouts", 0))?;
            let subscriber = pair.value().get(cursor.at()..).unwrap_or_default();
            each(RecoveredRecord::OptOut(OptOut {
                sender: AddressBytes::from_slice(sender),
                subscriber: AddressBytes::from_slice(subscriber),
            }));
        }
        for row in transaction.open_table(QUEUE_ACTIONS)?.iter()? {
            let (id, value) = row?;
            let id = id.value();
            let order = checked::record::<u32>(&id, value.value())
                .and_then(|record| codec::decode_queue_action(QueueActionId(id), record))
                .map_err(damaged("orders", u64::from(id)))?;
            each(RecoveredRecord::QueueAction(order));
        }
        for row in transaction.open_table(PACE_DAYS)?.iter()? {
            let (bucket, value) = row?;
            let day = checked::record::<&str>(&bucket.value(), value.value())
                .and_then(|record| codec::decode_pace_day(bucket.value().into(), record))
                .map_err(damaged("pace_days", 0))?;
            each(RecoveredRecord::PaceDay(day));
        }
        recover_ledger(&transaction, &mut each)?;
        pool_tables::recover(&transaction, each)
    }
}

fn recover_ledger(
    transaction: &redb::ReadTransaction,
    mut each: impl FnMut(RecoveredRecord),
) -> Result<(), StoreError> {
    for row in transaction.open_table(LEDGER)?.iter()? {
        let (name, value) = row?;
        let balance = checked::record::<&str>(&name.value(), value.value())
            .and_then(codec::decode_balance)
            .map_err(damaged("ledger", 0))?;
        each(RecoveredRecord::Balance(name.value().into(), balance));
    }
    for row in transaction.open_table(OPERATIONS)?.iter()? {
        let (serial, value) = row?;
        let serial = serial.value();
        let record = checked::record::<u64>(&serial, value.value())
            .and_then(|record| codec::decode_operation(serial, record));
        each(RecoveredRecord::Operation(record.map_err(damaged("ledger_operations", serial))?));
    }
    if let Some(upto) = transaction.open_table(META)?.get(META_SETTLED)? {
        each(RecoveredRecord::BillerNotified(upto.value()));
    }
    for row in transaction.open_table(SETTLEMENTS)?.iter()? {
        let (serial, value) = row?;
        let serial = serial.value();
        let settlement = checked::record::<u64>(&serial, value.value())
            .and_then(|record| codec::decode_settlement(serial, record));
        each(RecoveredRecord::Settlement(settlement.map_err(damaged("settlements", serial))?));
    }
    Ok(())
}

use crate::cursor::Cursor;
use crate::groups::GROUP_OF;
use crate::record::{self, Decoder};
use crate::store::{
    HANDED, KEYS, LEDGER, MESSAGES, META, META_NEXT_HANDED, META_NEXT_ID, META_SETTLED, OPERATIONS, OPTOUTS,
    ORDERS, PARKED, PROGRESS, SETTLEMENTS, damaged,
};
use crate::{Store, StoreError, ledger, money, orders, pool_tables};
use engine::{Consent, Handed, Recovered, Remembered};
use model::{AddressBytes, MessageId, PeerId};
use redb::{ReadableDatabase, ReadableTable};
use rustc_hash::FxHashMap;

/// Where ids and rows go on after a start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Messages found.
    pub messages: u64,
    /// The next id to give out.
    pub next_id: MessageId,
    /// The next `handed` row.
    pub next_handed_seq: u64,
    /// The `handed` rows found; all of them can go once the engine has dealt with their messages.
    pub rows: Vec<u64>,
}

impl Store {
    /// Hands every waiting message, with its progress and its newest hand-over, to `each`, by growing id.
    ///
    /// # Errors
    /// When the disk fails or a record is damaged.
    pub fn recover(&self, mut each: impl FnMut(Recovered)) -> Result<Recovery, StoreError> {
        let transaction = self.database.begin_read()?;
        let mut recovery = Recovery::default();
        let meta = transaction.open_table(META)?;
        let number = |key| -> Result<u64, StoreError> { Ok(meta.get(key)?.map_or(0, |value| value.value())) };
        recovery.next_id = MessageId(number(META_NEXT_ID)?).max(MessageId::FIRST);
        recovery.next_handed_seq = number(META_NEXT_HANDED)?.max(1);
        let mut newest: FxHashMap<u64, (Handed, u64)> = FxHashMap::default();
        for row in transaction.open_table(HANDED)?.iter()? {
            let (seq, value) = row?;
            let seq = seq.value();
            recovery.rows.push(seq);
            for handed in record::decode_handed(value.value()).map_err(damaged("handed", seq))? {
                // Rows come in their order: a later hand-over of the same message replaces an earlier.
                newest.insert(handed.id.0, (handed, seq));
            }
        }
        let messages = transaction.open_table(MESSAGES)?;
        let progress = transaction.open_table(PROGRESS)?;
        let mut states = progress.iter()?;
        let mut state = states.next().transpose()?;
        let mut decoder = Decoder::new();
        for row in messages.iter()? {
            let (id, value) = row?;
            let id = id.value();
            let (message, _) =
                decoder.message(MessageId(id), value.value()).map_err(damaged("messages", id))?;
            while state.as_ref().is_some_and(|(key, _)| key.value() < id) {
                state = states.next().transpose()?;
            }
            let progress = match &state {
                Some((key, value)) if key.value() == id => {
                    Some(record::decode_progress(value.value()).map_err(damaged("progress", id))?)
                }
                _ => None,
            };
            let (handed, handed_seq) = match newest.get(&id) {
                Some((handed, seq)) => (Some(*handed), *seq),
                None => (None, 0),
            };
            recovery.messages += 1;
            each(Recovered { message, progress, handed, handed_seq });
        }
        Ok(recovery)
    }

    /// Hands over what is written down beside messages: groups of peers, submission keys, parked receipts and settlements by growing
    /// number, the subscribers' stops, admins' orders, ledger accounts and what was done to them. The engine wants it before the messages.
    ///
    /// # Errors
    /// When the disk fails or a record is damaged.
    pub fn recover_remembered(&self, mut each: impl FnMut(Remembered)) -> Result<(), StoreError> {
        let transaction = self.database.begin_read()?;
        for row in transaction.open_table(GROUP_OF)?.iter()? {
            let (peer, group) = row?;
            each(Remembered::Group(PeerId(peer.value()), group.value()));
        }
        for row in transaction.open_table(KEYS)?.iter()? {
            let (serial, value) = row?;
            let serial = serial.value();
            let record = ledger::decode_key(serial, value.value()).map_err(damaged("keys", serial))?;
            each(Remembered::Key(record));
        }
        for row in transaction.open_table(PARKED)?.iter()? {
            let (number, value) = row?;
            let number = number.value();
            let record = ledger::decode_parked(number, value.value()).map_err(damaged("parked", number))?;
            each(Remembered::Parked(record));
        }
        for row in transaction.open_table(OPTOUTS)?.iter()? {
            let (pair, _) = row?;
            let mut cursor = Cursor::new(pair.value());
            let sender = cursor.short().map_err(damaged("optouts", 0))?;
            let subscriber = pair.value().get(cursor.at()..).unwrap_or_default();
            each(Remembered::Stopped(Consent {
                sender: AddressBytes::from_slice(sender),
                subscriber: AddressBytes::from_slice(subscriber),
            }));
        }
        for row in transaction.open_table(ORDERS)?.iter()? {
            let (id, value) = row?;
            let id = id.value();
            let order = orders::decode_order(id, value.value()).map_err(damaged("orders", u64::from(id)))?;
            each(Remembered::Order(order));
        }
        recover_money(&transaction, &mut each)?;
        pool_tables::recover(&transaction, each)
    }
}

fn recover_money(
    transaction: &redb::ReadTransaction,
    mut each: impl FnMut(Remembered),
) -> Result<(), StoreError> {
    for row in transaction.open_table(LEDGER)?.iter()? {
        let (name, value) = row?;
        let balance = money::decode_balance(value.value()).map_err(damaged("ledger", 0))?;
        each(Remembered::Balance(name.value().into(), balance));
    }
    for row in transaction.open_table(OPERATIONS)?.iter()? {
        let (serial, value) = row?;
        let serial = serial.value();
        let record = money::decode_operation(serial, value.value());
        each(Remembered::Operation(record.map_err(damaged("ledger_operations", serial))?));
    }
    if let Some(upto) = transaction.open_table(META)?.get(META_SETTLED)? {
        each(Remembered::Settled(upto.value()));
    }
    for row in transaction.open_table(SETTLEMENTS)?.iter()? {
        let (serial, value) = row?;
        let serial = serial.value();
        let settlement = money::decode_settlement(serial, value.value());
        each(Remembered::Settlement(settlement.map_err(damaged("settlements", serial))?));
    }
    Ok(())
}

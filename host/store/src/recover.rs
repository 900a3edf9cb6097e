use crate::record::{self, Decoder};
use crate::store::{HANDED, MESSAGES, META, META_NEXT_HANDED, META_NEXT_ID, PROGRESS, damaged};
use crate::{Store, StoreError};
use engine::{Handed, Recovered};
use model::MessageId;
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
}

//! Removal of old finished messages.

use crate::decoding::decode_finished;
use crate::tables::FINISHED;
use crate::{Follower, Store, StoreError, StoredMessage};
use codec::RecordDecoder;
use model::{MessageId, Timestamp};
use redb::{Database, Durability, ReadableDatabase as _, ReadableTable as _};

impl Store {
    /// Removes finished messages that ended before `before`, oldest ids first, at most `most`. Stops at the first
    /// message that ended later, so messages with higher ids are kept until that one is removed.
    ///
    /// # Errors
    /// The disk fails or a record is damaged.
    pub fn trim_finished(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        self.apply()?;
        trim(&self.database, before, most)
    }
}

impl Follower {
    /// As [`Store::trim_finished`], for the tables of a follower.
    ///
    /// # Errors
    /// As [`Store::trim_finished`].
    pub fn trim_finished(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        trim(&self.database, before, most)
    }
}

fn trim(database: &Database, before: Timestamp, most: usize) -> Result<usize, StoreError> {
    let gone = {
        let transaction = database.begin_read()?;
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
        let mut transaction = database.begin_write()?;
        // The next checkpoint makes it durable; until then, nothing depends on it.
        transaction.set_durability(Durability::None)?;
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

//! Removal of old finished messages.

use crate::decoding::decode_finished_record;
use crate::finished::{FinishedMessages, FinishedWriter, count_finished};
use crate::tables::{FINISHED, META};
use crate::{Follower, Store, StoreError, checked};
use codec::RecordDecoder;
use journal::Seq;
use model::{MessageId, Timestamp};
use redb::{Database, Durability, ReadableDatabase as _};

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
        let finished = FinishedMessages(transaction.open_table(FINISHED)?);
        let mut decoder = RecordDecoder::new();
        let mut gone = Vec::new();
        for found in finished.from(MessageId(0))?.take(most) {
            let (id, record) = found?;
            if decode_finished_record(&mut decoder, id, &record)?.1.at >= before {
                break;
            }
            gone.push(id.0);
        }
        gone
    };
    if !gone.is_empty() {
        let mut transaction = database.begin_write()?;
        // The next checkpoint makes it durable; until then, nothing depends on it.
        transaction.set_durability(Durability::None)?;
        {
            // It inserts nothing, so the number of a journal record is not needed.
            let mut finished = FinishedWriter::new(transaction.open_table(FINISHED)?, Seq(0));
            for id in &gone {
                finished.remove(*id)?;
            }
            let mut meta = transaction.open_table(META)?;
            count_finished(&mut meta, finished.finish()?)?;
            checked::seal_meta(&mut meta)?;
        }
        transaction.commit()?;
    }
    Ok(gone.len())
}

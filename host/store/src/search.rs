//! Looking back over what is here, waiting or finished, from the newest on, so many records at a time.

use crate::record::{self, Decoder, Glance};
use crate::store::{FINISHED, MESSAGES, damaged, decode_finished};
use crate::{Found, Store, StoreError};
use model::MessageId;
use redb::ReadableDatabase;

/// What a glance at a record has told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It is wanted.
    Wanted,
    /// It is not.
    Passed,
    /// Neither is anything older.
    Enough,
}

/// What a look back has found.
#[derive(Debug)]
pub struct Looked {
    /// What was wanted, by falling id.
    pub found: Vec<Found>,
    /// Where the look ended: everything from this id on was looked at. `None` where there is nothing older.
    pub edge: Option<MessageId>,
    /// Records that were looked at.
    pub looks: usize,
}

impl Store {
    /// Looks at messages with ids below `before`, waiting and finished ones, by falling id: at no more than `looks`
    /// records, and until `most` were wanted.
    ///
    /// # Errors
    /// When the disk fails or a record is damaged.
    pub fn look_back(
        &self,
        before: MessageId,
        looks: usize,
        most: usize,
        mut wanted: impl FnMut(MessageId, &Glance) -> Seen,
    ) -> Result<Looked, StoreError> {
        let transaction = self.database.begin_read()?;
        let (messages, finished) = (transaction.open_table(MESSAGES)?, transaction.open_table(FINISHED)?);
        let mut waiting = messages.range(..before.0)?.rev();
        let mut ended = finished.range(..before.0)?.rev();
        let (mut next_waiting, mut next_ended) = (waiting.next().transpose()?, ended.next().transpose()?);
        let mut decoder = Decoder::new();
        let mut looked = Looked { found: Vec::new(), edge: None, looks: 0 };
        loop {
            let id_of = |row: &Option<(redb::AccessGuard<'_, u64>, redb::AccessGuard<'_, &[u8]>)>| {
                row.as_ref().map(|(id, _)| id.value())
            };
            let is_ended = id_of(&next_ended) > id_of(&next_waiting);
            let next = if is_ended { &mut next_ended } else { &mut next_waiting };
            let Some((id, value)) = next.take() else {
                looked.edge = None;
                return Ok(looked);
            };
            if looked.looks == looks || looked.found.len() == most {
                return Ok(looked);
            }
            let (id, table) = (id.value(), if is_ended { "finished" } else { "messages" });
            looked.looks += 1;
            looked.edge = Some(MessageId(id));
            let glance = record::glance(value.value()).map_err(damaged(table, id))?;
            match wanted(MessageId(id), &glance) {
                Seen::Passed => {}
                Seen::Enough => {
                    looked.edge = None;
                    return Ok(looked);
                }
                Seen::Wanted if is_ended => {
                    looked.found.push(decode_finished(&mut decoder, MessageId(id), value.value())?);
                }
                Seen::Wanted => {
                    let (message, _) =
                        decoder.message(MessageId(id), value.value()).map_err(damaged("messages", id))?;
                    looked.found.push(Found::Waiting(message, None));
                }
            }
            if is_ended {
                next_ended = ended.next().transpose()?;
            } else {
                next_waiting = waiting.next().transpose()?;
            }
        }
    }
}

//! Putting rows into the table, each exactly once, whatever state the table is in.

use crate::ArchiveError;
use crate::backend::Session;
use crate::error::Fault;
use crate::measure::Sums;
use crate::row::Row;
use crate::sql::{Dialect, Kind, Statement};
use model::MessageId;
use std::collections::HashSet;

/// What became of the rows of a batch.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Ids that are in the table now, also those that were there before.
    pub(crate) there: Vec<MessageId>,
    /// How many of them are new.
    pub(crate) new: usize,
    /// Ids of rows that the data base refuses by themselves, and why.
    pub(crate) refused: Vec<(MessageId, String)>,
}

/// Rows that may fail one by one, for reasons we do not know, before it is held that no row is to blame.
const UNCLEAR: usize = 8;

/// Writes all rows but those that the data base refuses by themselves.
///
/// Normally that is one transaction. Where it fails because rows are there already (their removal from the queues' store
/// was cut off by a crash), it is done again without them, so that they are not counted twice in the statistics. Where it
/// fails because of a row, the batch is halved until the row is alone.
///
/// # Errors
/// When no row is to blame. What was written until then is written; the next attempt finds it there.
pub(crate) async fn write(
    session: &mut dyn Session,
    dialect: Dialect,
    rows: Vec<Row>,
) -> Result<Written, Fault> {
    let mut written = Written::default();
    let mut unclear: Vec<(MessageId, String)> = Vec::new();
    let mut waiting = vec![rows];
    while let Some(mut rows) = waiting.pop() {
        let sums = Sums::of(&rows);
        let text = match session.insert(&rows, &sums).await {
            Ok(()) => {
                written.new += rows.len();
                written.there.extend(rows.iter().map(Row::id));
                continue;
            }
            Err(Fault::Duplicate) => {
                let there = existing(session, dialect, &rows).await?;
                let before = rows.len();
                rows.retain(|row| !there.contains(&row.id()));
                if rows.len() == before {
                    // Somebody else's transaction has them and may yet take them back.
                    return Err(Fault::Down(ArchiveError::Database(
                        "ids are being written by somebody else at the same time".into(),
                    )));
                }
                written.there.extend(there);
                if !rows.is_empty() {
                    waiting.push(rows);
                }
                continue;
            }
            Err(Fault::Row(text)) => {
                if let [row] = rows.as_slice() {
                    written.refused.push((row.id(), text));
                    continue;
                }
                text
            }
            Err(Fault::Unclear(text)) => {
                if let [row] = rows.as_slice() {
                    unclear.push((row.id(), text.clone()));
                    if written.new == 0 && unclear.len() >= UNCLEAR {
                        return Err(Fault::Down(ArchiveError::Database(text)));
                    }
                    continue;
                }
                text
            }
            Err(down) => return Err(down),
        };
        tracing::debug!(rows = rows.len(), error = text, "a batch is refused: looking for the row to blame");
        let second = rows.split_off(rows.len() / 2);
        waiting.push(second);
        waiting.push(rows);
    }
    match unclear.first() {
        // Others of the same batch went in: it is the rows.
        Some(_) if written.new > 0 => written.refused.append(&mut unclear),
        Some((_, text)) => return Err(Fault::Down(ArchiveError::Database(text.clone()))),
        None => {}
    }
    Ok(written)
}

/// Which of the rows' ids are in the table.
async fn existing(
    session: &mut dyn Session,
    dialect: Dialect,
    rows: &[Row],
) -> Result<HashSet<MessageId>, Fault> {
    let mut there = HashSet::new();
    for some in rows.chunks(1000) {
        let mut statement = Statement::new(dialect, "SELECT id FROM messages WHERE id IN (");
        for (index, row) in some.iter().enumerate() {
            if index > 0 {
                statement.push(",");
            }
            statement.push(&row.id.to_string());
        }
        statement.push(")");
        let found = session.select(&statement, &[Kind::Big]).await?;
        there.extend(
            found.iter().filter_map(|row| Some(MessageId(u64::try_from(row.first()?.number()?).ok()?))),
        );
    }
    Ok(there)
}

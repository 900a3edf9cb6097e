//! Inserts rows, each exactly once, even if the table already contains some of them.

use crate::ArchiveError;
use crate::backend::Session;
use crate::error::Fault;
use crate::measures::StatisticsDelta;
use crate::row::Row;
use crate::sql::{ColumnType, Dialect, Statement};
use model::MessageId;
use std::collections::HashSet;

/// The result of writing a batch.
#[derive(Debug, Default)]
pub(crate) struct WriteOutcome {
    /// Ids that are in the table now, including those that were there before.
    pub(crate) present: Vec<MessageId>,
    /// The number of ids that are new.
    pub(crate) new: usize,
    /// Ids of rows that the database rejects, with the reasons.
    pub(crate) refused: Vec<(MessageId, String)>,
}

/// Number of rows that may fail for unknown reasons before the failure is blamed on the database.
const MAX_UNCLEAR: usize = 8;

/// Inserts all rows except those that the database rejects.
///
/// Normally this is one transaction. If rows already exist (a crash prevented their removal from the source), it is
/// repeated without them, so that statistics count them once. If a row is rejected, the batch is halved until the row
/// is found.
///
/// # Errors
/// Fails if no single row is the cause. Earlier parts remain; the next attempt finds them in the table.
pub(crate) async fn write(
    session: &mut dyn Session,
    dialect: Dialect,
    rows: Vec<Row>,
) -> Result<WriteOutcome, Fault> {
    let mut written = WriteOutcome::default();
    let mut unclear: Vec<(MessageId, String)> = Vec::new();
    let mut waiting = vec![rows];
    while let Some(mut rows) = waiting.pop() {
        let sums = StatisticsDelta::of(&rows);
        let text = match session.insert(&rows, &sums).await {
            Ok(()) => {
                written.new += rows.len();
                written.present.extend(rows.iter().map(Row::id));
                continue;
            }
            Err(Fault::Duplicate) => {
                let present = existing(session, dialect, &rows).await?;
                let before = rows.len();
                rows.retain(|row| !present.contains(&row.id()));
                if rows.len() == before {
                    // Another transaction has inserted them and may still roll back.
                    return Err(Fault::Down(ArchiveError::Database(
                        "concurrent writer: ids are written by another process".into(),
                    )));
                }
                written.present.extend(present);
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
                    if written.new == 0 && unclear.len() >= MAX_UNCLEAR {
                        return Err(Fault::Down(ArchiveError::Database(text)));
                    }
                    continue;
                }
                text
            }
            Err(down) => return Err(down),
        };
        tracing::debug!(rows = rows.len(), error = text, "batch rejected, splitting it");
        let second = rows.split_off(rows.len() / 2);
        waiting.push(second);
        waiting.push(rows);
    }
    match unclear.first() {
        // Other rows of the batch were inserted, so these rows are the cause.
        Some(_) if written.new > 0 => written.refused.append(&mut unclear),
        Some((_, text)) => return Err(Fault::Down(ArchiveError::Database(text.clone()))),
        None => {}
    }
    Ok(written)
}

/// The ids of the rows that are already in the table.
async fn existing(
    session: &mut dyn Session,
    dialect: Dialect,
    rows: &[Row],
) -> Result<HashSet<MessageId>, Fault> {
    let mut present = HashSet::new();
    for some in rows.chunks(1000) {
        let mut statement = Statement::new(dialect, "SELECT id FROM messages WHERE id IN (");
        for (index, row) in some.iter().enumerate() {
            if index > 0 {
                statement.push(",");
            }
            statement.push(&row.id.to_string());
        }
        statement.push(")");
        let found = session.select(&statement, &[ColumnType::Big]).await?;
        present.extend(
            found.iter().filter_map(|row| Some(MessageId(u64::try_from(row.first()?.number()?).ok()?))),
        );
    }
    Ok(present)
}

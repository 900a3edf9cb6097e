//! Deletes old messages without blocking the pump.

use crate::backend::Session;
use crate::error::Fault;
use crate::measures::HOUR;
use crate::sql::{ColumnType, Dialect, Statement};
use model::Timestamp;
use std::time::{Duration, Instant};

/// Rows per statement. Deleting them takes some milliseconds, during which locks are held (SQLite: on the file).
const STEP: i64 = 500;

/// The result of [`crate::Archive::trim`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrimReport {
    /// Messages deleted.
    pub messages: u64,
    /// Statements executed.
    pub steps: u64,
}

/// The number in the first column of the first row, if it is one.
pub(crate) async fn first_number(
    session: &mut dyn Session,
    statement: &Statement,
) -> Result<Option<i64>, Fault> {
    let table = session.select(statement, &[ColumnType::Big]).await?;
    Ok(table.first().and_then(|row| row.first()?.number()))
}

/// Deletes messages of hours that ended before `before`, by ranges of ids, oldest first.
pub(crate) async fn trim(
    session: &mut dyn Session,
    dialect: Dialect,
    before: Timestamp,
) -> Result<TrimReport, Fault> {
    let mut trimmed = TrimReport::default();
    let before = i64::try_from(before.0).unwrap_or(i64::MAX);
    let mut last = Statement::new(dialect, "SELECT max(last_id) FROM hours WHERE hour < ");
    last.number(before / HOUR);
    let Some(last) = first_number(session, &last).await? else { return Ok(trimmed) };
    let mut from = i64::MIN;
    session.mark_erasure().await?;
    loop {
        let begun = Instant::now();
        let mut upper = Statement::new(dialect, "SELECT max(id) FROM (SELECT id FROM messages WHERE id > ");
        upper.number(from).push(" AND id <= ").number(last);
        upper.push(" ORDER BY id LIMIT ").push(&STEP.to_string()).push(") AS next_ones");
        let Some(to) = first_number(session, &upper).await? else { return Ok(trimmed) };
        let mut delete = Statement::new(dialect, "DELETE FROM messages WHERE id > ");
        delete.number(from).push(" AND id <= ").number(to);
        delete.push(" AND accepted_at < ").number(before / HOUR * HOUR);
        trimmed.messages += session.execute(&delete).await?;
        trimmed.steps += 1;
        from = to;
        // At most a fifth of the time, so that the pump finds the database unlocked.
        tokio::time::sleep((begun.elapsed() * 4).max(Duration::from_millis(2))).await;
    }
}

/// The end of the newest hour that began before the hour of `at`.
pub(crate) async fn newest_hour_before(
    session: &mut dyn Session,
    dialect: Dialect,
    at: Timestamp,
) -> Result<Option<Timestamp>, Fault> {
    let mut newest = Statement::new(dialect, "SELECT max(hour) FROM hours WHERE hour < ");
    newest.number(i64::try_from(at.0).unwrap_or(i64::MAX) / HOUR);
    let newest = first_number(session, &newest).await?;
    Ok(newest.map(|hour| Timestamp(u64::try_from((hour + 1) * HOUR).unwrap_or(0))))
}

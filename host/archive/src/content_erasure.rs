//! Erases the contents of archived messages: texts, and all data that can quote them.
//!
//! A row loses its text and its decision, since host calls and recorded calls can quote the text. Its trace loses the text
//! that a screen replaced, and gets a step with the time and the author of the erasure.

use crate::backend::Session;
use crate::erased_trace::trace_without_content;
use crate::error::Fault;
use crate::sql::{ColumnType, Dialect, Statement};
use crate::{Archive, ArchiveError};
use model::{ContentErasure, MessageId};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};

/// Rows per statement: enough for a low cost per row, few enough to hold locks for only some milliseconds.
pub(crate) const STEP: usize = 100;

/// Erasures of messages that the pump may have read before they were erased in the source.
///
/// The pump holds the lock while it writes a batch. So a message that was read with its content is either written before
/// its row is erased, or is in this map when it is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct PumpErasures(pub(crate) Arc<Mutex<HashMap<MessageId, ContentErasure>>>);

impl Archive {
    /// Erases the contents of messages in the archive, and of messages that the pump is about to write. Messages that the
    /// source still has must be erased there first. Returns the number of changed rows; rows that were erased before stay
    /// unchanged.
    ///
    /// With SQLite the values are overwritten, and the write-ahead log is emptied; copies in unused parts of the file are
    /// overwritten by the pump's thread soon after, see [`Archive::is_overwriting`]. MySQL and PostgreSQL keep old versions
    /// of rows until they are purged or vacuumed.
    ///
    /// # Errors
    /// Fails if the database does not answer. Earlier steps remain, and a repetition continues.
    pub async fn erase_content(&self, erasures: Vec<ContentErasure>) -> Result<u64, ArchiveError> {
        let note = async {
            self.pump_erasures.0.lock().await.extend(erasures.iter().map(|one| (one.id, one.clone())));
            Ok(())
        };
        self.with_timeout(note).await?;
        let mut session = self.with_timeout(self.backend.connect()).await?;
        let work = async {
            session.mark_erasure().await?;
            let mut erased = 0;
            for some in erasures.chunks(STEP) {
                erased += erase_rows(&mut *session, self.backend.dialect(), some).await?;
            }
            // Again, since the unused parts may have been overwritten in the meantime.
            session.mark_erasure().await?;
            self.overwriting.begin();
            session.overwrite_erased().await?;
            Ok(erased)
        };
        let erased = self.with_timeout(work).await;
        session.close().await;
        erased
    }

    /// Lets the pump's thread overwrite unused octets of the database.
    pub(crate) fn begin_overwriting(&self) {
        self.overwriting.begin();
    }

    /// Whether copies of erased values may still be in unused parts of the database's file, which the pump's thread is
    /// overwriting. Always false for MySQL and PostgreSQL, which clean up automatically.
    #[must_use]
    pub fn is_overwriting(&self) -> bool {
        let state = &self.overwriting.0;
        self.backend.dialect() == Dialect::Sqlite && state.done.load(Relaxed) != state.erasures.load(Relaxed)
    }
}

/// Whether the pump's thread has to overwrite unused octets of the database.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overwriting(Arc<OverwritingState>);

#[derive(Debug, Default)]
struct OverwritingState {
    /// The number of erasures.
    erasures: AtomicU64,
    /// The number of erasures whose values have been overwritten.
    done: AtomicU64,
    wake: Notify,
}

impl Overwriting {
    /// Starts the overwriting on the pump's thread.
    fn begin(&self) {
        self.0.erasures.fetch_add(1, Relaxed);
        self.0.wake.notify_one();
    }
}

/// Interval at which rows deleted by retention are overwritten.
const OVERWRITE_INTERVAL: Duration = Duration::from_secs(6 * 3600);

/// Delay before a failed overwriting is retried.
const OVERWRITE_RETRY: Duration = Duration::from_secs(30);

/// Overwrites unused octets of the database: after a start, after an erasure, and regularly.
pub(crate) async fn overwrite_loop(archive: Archive) {
    let state = archive.overwriting.0.clone();
    // An earlier process may not have finished it.
    state.erasures.fetch_add(1, Relaxed);
    loop {
        let erasures = state.erasures.load(Relaxed);
        let wait = match archive.backend.overwrite_unused().await {
            Ok(()) => {
                state.done.store(erasures, Relaxed);
                OVERWRITE_INTERVAL
            }
            Err(error) => {
                tracing::warn!(%error, "overwriting unused parts of the archive failed, trying again");
                OVERWRITE_RETRY
            }
        };
        // The timeout only means that nothing was erased.
        let _ = tokio::time::timeout(wait, state.wake.notified()).await;
    }
}

/// Erases the contents of at most [`STEP`] messages in one statement.
pub(crate) async fn erase_rows(
    session: &mut dyn Session,
    dialect: Dialect,
    erasures: &[ContentErasure],
) -> Result<u64, Fault> {
    let mut select = Statement::new(dialect, "SELECT id, trace FROM messages WHERE id IN (");
    push_ids(&mut select, erasures.iter().filter_map(|erasure| i64::try_from(erasure.id.0).ok()));
    select.push(") AND content_erased_at IS NULL");
    let found = session.select(&select, &[ColumnType::Big, ColumnType::Text]).await?;
    let by_id: HashMap<u64, &ContentErasure> = erasures.iter().map(|one| (one.id.0, one)).collect();
    let mut rows = Vec::with_capacity(found.len());
    for row in found {
        let mut cells = row.into_iter();
        let (id, trace) = (cells.next(), cells.next());
        let Some(id) = id.and_then(|cell| cell.number()) else { continue };
        let erasure = u64::try_from(id).ok().and_then(|id| by_id.get(&id));
        let Some(erasure) = erasure else { continue };
        let trace = trace.and_then(crate::sql::Cell::into_text).unwrap_or_default();
        let trace = trace_without_content(&trace, erasure.at, &erasure.by)
            // The trace is unreadable.
            .unwrap_or_else(|| "{}".to_owned());
        rows.push((id, trace, crate::row::milliseconds(erasure.at)));
    }
    if rows.is_empty() {
        return Ok(0);
    }
    let mut update =
        Statement::new(dialect, "UPDATE messages SET body = NULL, decision = NULL, trace = CASE id");
    for (id, trace, _) in &rows {
        update.push(" WHEN ").push(&id.to_string()).push(" THEN ").text(trace);
    }
    update.push(" ELSE trace END, content_erased_at = CASE id");
    for (id, _, at) in &rows {
        update.push(" WHEN ").push(&id.to_string()).push(" THEN ").push(&at.to_string());
    }
    update.push(" ELSE content_erased_at END WHERE id IN (");
    push_ids(&mut update, rows.iter().map(|(id, ..)| *id));
    update.push(")");
    session.execute(&update).await
}

/// A list of ids, without parentheses; `NULL` if there are none.
pub(crate) fn push_ids(statement: &mut Statement, ids: impl Iterator<Item = i64>) {
    let ids: Vec<_> = ids.map(|id| id.to_string()).collect();
    statement.push(if ids.is_empty() { "NULL" } else { "" }).push(&ids.join(","));
}

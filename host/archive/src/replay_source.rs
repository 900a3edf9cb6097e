//! Archived messages by ascending id, for replays: one thread reads octets, others decode them.

use crate::backend::Session;
use crate::content_erasure::push_ids;
use crate::error::Fault;
use crate::history::{ReadConnection, conditions, range};
use crate::raw_batch::{BATCH_ROWS, RawRow, RowParts};
use crate::record::{columns, record};
use crate::sql::{ColumnType, Statement};
use crate::{Archive, ArchiveError, ArchiveFilter, RawBatch, Record};
use model::{MessageId, Timestamp};

/// The messages to replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayRange {
    /// Accepted at this time or later.
    pub from: Option<Timestamp>,
    /// Accepted before this time.
    pub until: Option<Timestamp>,
    /// Maximum number of messages, oldest first.
    pub limit: Option<u64>,
    /// Only the newest messages, up to this number; DLRs created by the appliance are not counted, because no router is
    /// called for them.
    pub last: Option<u64>,
    /// Only the message with this id.
    pub id: Option<MessageId>,
    /// Whether to read texts, for routers that use them.
    pub body: bool,
    /// Whether to read traces, for receipt policies.
    pub trace: bool,
}

/// Archived messages by ascending id; created by [`Archive::replay_source`].
pub struct ReplaySource {
    archive: Archive,
    range: ReplayRange,
    session: Option<Box<dyn Session>>,
    /// The remaining range of ids, inclusive; `None` before the first batch.
    ids: Option<(i64, i64)>,
    left: u64,
}

impl std::fmt::Debug for ReplaySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplaySource").field("range", &self.range).field("ids", &self.ids).finish()
    }
}

impl Archive {
    /// Messages of a time range in batches, by ascending id, for replays. It has its own connection, so readers do not
    /// wait for it; it connects at the first batch, on the caller's runtime.
    #[must_use]
    pub fn replay_source(&self, range: ReplayRange) -> ReplaySource {
        ReplaySource::new(self.clone(), range)
    }
}

impl ReplaySource {
    pub(crate) fn new(archive: Archive, range: ReplayRange) -> Self {
        let left = range.limit.unwrap_or(u64::MAX).min(if range.last == Some(0) { 0 } else { u64::MAX });
        Self { archive, range, session: None, ids: None, left }
    }

    /// Maximum number of remaining messages; `None` before the first batch. Ids have gaps (unfinished or deleted
    /// messages), so there may be fewer.
    #[must_use]
    pub fn expected(&self) -> Option<u64> {
        let (first, last) = self.ids?;
        Some(u64::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or(0).min(self.left))
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// Fails if the database does not answer. The next call continues on a new connection.
    pub async fn next(&mut self) -> Result<Option<RawBatch>, ArchiveError> {
        let archive = self.archive.clone();
        let batch = archive.with_timeout(self.read()).await;
        match (&batch, self.session.take()) {
            (Ok(Some(_)), session) => self.session = session,
            (Ok(None), Some(session)) => session.close().await,
            // A connection with a running query cannot be reused.
            (Ok(None), None) | (Err(_), _) => {}
        }
        batch
    }

    async fn read(&mut self) -> Result<Option<RawBatch>, Fault> {
        let backend = self.archive.backend.clone();
        let filter =
            ArchiveFilter { from: self.range.from, until: self.range.until, ..ArchiveFilter::default() };
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(backend.connect().await?),
        };
        let one = self.range.id.map(|id| i64::try_from(id.0).map_or((1, 0), |id| (id, id)));
        let ids = match self.ids.or(one) {
            Some(ids) => ids,
            None => {
                let connection = ReadConnection::Own(&mut **session, backend.dialect());
                let whole = range(connection, &filter, None).await?.unwrap_or((1, 0));
                match self.range.last {
                    Some(last) => newest(&mut **session, &backend, &filter, whole, last).await?,
                    None => whole,
                }
            }
        };
        self.ids = Some(ids);
        let (first, last) = ids;
        if first > last || self.left == 0 {
            return Ok(None);
        }
        let most = BATCH_ROWS.min(self.left);
        let parts = RowParts { body: self.range.body, trace: self.range.trace };
        let mut statement = Statement::new(backend.dialect(), &format!("SELECT {}", parts.columns()));
        statement.push(" FROM messages");
        conditions(&mut statement, &filter, (first, last));
        statement.push(" ORDER BY id LIMIT ").push(&most.to_string());
        let batch = session.scan(&statement, parts).await?;
        let mut batch = batch.opened(self.archive.cipher.as_deref()).map_err(Fault::Down)?;
        let Some(reached) = batch.rows.last().map(|row| row.id) else {
            self.ids = Some((1, 0));
            return Ok(None);
        };
        if batch.rows.iter().any(RawRow::lacks_decision) {
            let unreadable: Vec<i64> =
                batch.rows.iter().filter(|row| row.lacks_decision()).map(|row| row.id).collect();
            batch.undecided_rows =
                undecided_rows(&mut **session, &self.archive, &filter, ((first, reached), &unreadable))
                    .await?;
        }
        self.left -= (batch.rows.len() as u64).min(self.left);
        self.ids = Some((reached.saturating_add(1), last));
        Ok(Some(batch))
    }
}

/// The part of a range of ids that contains the newest `last` messages, without DLRs created by the appliance; the
/// whole range if there are fewer.
async fn newest(
    session: &mut dyn Session,
    backend: &std::sync::Arc<dyn crate::backend::Backend>,
    filter: &ArchiveFilter,
    whole: (i64, i64),
    last: u64,
) -> Result<(i64, i64), Fault> {
    // `last` is 0: nothing will be read.
    let Some(before) = last.checked_sub(1) else { return Ok(whole) };
    let mut statement = Statement::new(backend.dialect(), "SELECT id FROM messages");
    conditions(&mut statement, filter, whole);
    statement
        .push(" AND NOT (router = 'receipt' AND router_version = '') ORDER BY id DESC LIMIT 1 OFFSET ")
        .push(&before.min(i64::MAX as u64).to_string());
    let table = session.select(&statement, &[ColumnType::Big]).await?;
    let oldest = table.first().and_then(|row| row.first()?.number());
    Ok((oldest.unwrap_or(whole.0), whole.1))
}

/// All columns of rows that an older version wrote or whose content is erased, by ascending id.
async fn undecided_rows(
    session: &mut dyn Session,
    archive: &Archive,
    filter: &ArchiveFilter,
    (ids, wanted): ((i64, i64), &[i64]),
) -> Result<Vec<Record>, Fault> {
    let columns = columns(true, true);
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let mut statement =
        Statement::new(archive.backend.dialect(), &format!("SELECT {} FROM messages", names.join(", ")));
    conditions(&mut statement, filter, ids);
    statement.push(" AND id IN (");
    push_ids(&mut statement, wanted.iter().copied());
    statement.push(") ORDER BY id");
    let kinds: Vec<_> = columns.iter().map(|(_, kind)| *kind).collect();
    let table = session.select(&statement, &kinds).await?;
    let damaged = |(id, what)| Fault::Down(ArchiveError::Damaged { id, what });
    table
        .into_iter()
        .map(|cells| record(&columns, cells, archive.cipher.as_deref()).map_err(damaged))
        .collect()
}

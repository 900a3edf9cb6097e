use crate::backend::{Backend, Session, Table};
use crate::error::Fault;
use crate::measures::HOUR;
use crate::record::{columns, record};
use crate::sql::{ColumnType, Dialect, Statement};
use crate::{ArchiveError, ArchiveRedaction, Record};
use codec::ContentCipher;
use model::{Direction, FinalState, MessageId, Timestamp, escape};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The side of a message on which a number is matched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// Source or destination.
    #[default]
    Either,
    /// Destination only.
    Destination,
}

impl Side {
    fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Either => &["destination", "source"],
            Self::Destination => &["destination"],
        }
    }
}

/// Filter criteria; all must match. An empty filter matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ArchiveFilter {
    /// A number or name, with or without a leading plus.
    pub number: Option<String>,
    /// The side on which `number` is matched.
    pub side: Side,
    /// The account.
    pub account: Option<String>,
    /// Only messages of these accounts; `None`: all accounts.
    pub within: Option<Arc<[Arc<str>]>>,
    /// The peer.
    pub peer: Option<String>,
    /// The final state.
    pub state: Option<FinalState>,
    /// The direction.
    pub direction: Option<Direction>,
    /// Accepted at this time or later.
    pub from: Option<Timestamp>,
    /// Accepted before this time.
    pub until: Option<Timestamp>,
    /// Minimum message id.
    pub first: Option<MessageId>,
}

/// Optional columns of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RecordFields {
    /// The text.
    pub body: bool,
    /// The trace.
    pub trace: bool,
}

/// A page of messages, newest first.
#[derive(Debug, Clone)]
pub struct ArchivePage {
    /// The messages. A page may have fewer messages than requested, even none, although there are more: a search with few
    /// matches ends after some seconds.
    pub records: Vec<Record>,
    /// Messages older than this one are on the next page; `None` at the end.
    pub next: Option<MessageId>,
}

/// The back end with the rows, the redaction rules that were applied to them, and the cipher that decrypts them.
type Rows<'a> = (&'a dyn Backend, &'a ArchiveRedaction, Option<&'a dyn ContentCipher>);

/// Maximum number of messages per page.
pub(crate) const MAX_PAGE: usize = 1000;

pub(crate) async fn get(
    backend: &dyn Backend,
    cipher: Option<&dyn ContentCipher>,
    id: MessageId,
) -> Result<Option<Record>, Fault> {
    let Ok(id) = i64::try_from(id.0) else { return Ok(None) };
    let columns = columns(true, true);
    let mut statement = select(backend.dialect(), &columns);
    statement.push(" WHERE id = ").number(id);
    Ok(read((backend, cipher), &columns, &statement).await?.pop())
}

/// Number of ids in the first range scanned; after a fast scan the range doubles.
const INITIAL_SCAN_IDS: i64 = 20_000;

/// A scan is fast if it takes less than this fraction of the timeout.
const QUICK_FRACTION: u32 = 8;

/// Default time after which a search ends with the messages found so far.
pub(crate) const DEFAULT_SEARCH_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) async fn page(
    (backend, redaction, cipher): Rows<'_>,
    filter: &ArchiveFilter,
    after: Option<MessageId>,
    limit: usize,
    fields: RecordFields,
    timeout: Duration,
) -> Result<ArchivePage, Fault> {
    let limit = limit.clamp(1, MAX_PAGE);
    let mut page = ArchivePage { records: Vec::new(), next: None };
    let Some((first, mut last)) = range(ReadConnection::Pool(backend), filter, after).await? else {
        return Ok(page);
    };
    // Ids and numbers are indexed; other criteria are compared row by row, one range of the table at a time.
    let compares = filter.account.is_some()
        || filter.within.is_some()
        || filter.peer.is_some()
        || filter.state.is_some()
        || filter.direction.is_some();
    let (begun, mut scan_size) = (Instant::now(), if compares { INITIAL_SCAN_IDS } else { i64::MAX });
    while last >= first && page.records.len() <= limit {
        let low = first.max(last.saturating_sub(scan_size - 1));
        let most = limit + 1 - page.records.len();
        let this = Instant::now();
        page.records
            .extend(scan_range((backend, redaction, cipher), filter, (low, last), most, fields).await?);
        if this.elapsed() < (timeout / QUICK_FRACTION).min(DEFAULT_SEARCH_TIMEOUT / (5 * QUICK_FRACTION)) {
            scan_size = scan_size.saturating_mul(2);
        }
        last = low.saturating_sub(1);
        // After a scan, never before the first, so that a caller who keeps paging makes progress with any timeout.
        if begun.elapsed() >= timeout && last >= first && page.records.len() <= limit {
            page.next = u64::try_from(low).ok().map(MessageId);
            return Ok(page);
        }
    }
    if page.records.len() > limit {
        page.records.truncate(limit);
        page.next = page.records.last().map(|last| last.id);
    }
    Ok(page)
}

/// The newest matching messages of a range of ids.
async fn scan_range(
    (backend, redaction, cipher): Rows<'_>,
    filter: &ArchiveFilter,
    range: (i64, i64),
    most: usize,
    fields: RecordFields,
) -> Result<Vec<Record>, Fault> {
    let columns = columns(fields.body, fields.trace);
    let mut statement = select(backend.dialect(), &columns);
    match &filter.number {
        // With a number, find the ids first: both indexes return them in order without reading rows.
        Some(number) => {
            let ids = find_ids_by_number((backend, redaction), filter, number, range, most).await?;
            if ids.is_empty() {
                return Ok(Vec::new());
            }
            let ids: Vec<_> = ids.iter().map(i64::to_string).collect();
            statement.push(" WHERE id IN (").push(&ids.join(",")).push(")");
        }
        None => conditions(&mut statement, filter, range),
    }
    statement.push(" ORDER BY id DESC LIMIT ").push(&most.to_string());
    read((backend, cipher), &columns, &statement).await
}

/// The connection of a query.
pub(crate) enum ReadConnection<'a> {
    /// From the readers' pool, which lives on the runtime of its first caller.
    Pool(&'a dyn Backend),
    /// A dedicated connection.
    Own(&'a mut dyn Session, Dialect),
}

impl ReadConnection<'_> {
    fn dialect(&self) -> Dialect {
        match self {
            Self::Pool(backend) => backend.dialect(),
            Self::Own(_, dialect) => *dialect,
        }
    }

    async fn select(&mut self, statement: &Statement, kinds: &[ColumnType]) -> Result<Table, Fault> {
        match self {
            Self::Pool(backend) => backend.select(statement, kinds).await,
            Self::Own(session, _) => session.select(statement, kinds).await,
        }
    }
}

/// The range of ids, inclusive, that can match; `None` if it is empty.
pub(crate) async fn range(
    mut connection: ReadConnection<'_>,
    filter: &ArchiveFilter,
    after: Option<MessageId>,
) -> Result<Option<(i64, i64)>, Fault> {
    // One aggregate per SELECT: SQLite reads one end of the index for each, but the whole table for two.
    let ends = "SELECT (SELECT min(id) FROM messages), (SELECT max(id) FROM messages)";
    let table = connection
        .select(&Statement::new(connection.dialect(), ends), &[ColumnType::Big, ColumnType::Big])
        .await?;
    let Some((mut first, mut last)) = id_bounds(&table) else { return Ok(None) };
    if let Some(id) = after {
        last = last.min(i64::try_from(id.0).unwrap_or(i64::MAX).saturating_sub(1));
    }
    if let Some(id) = filter.first {
        first = first.max(i64::try_from(id.0).unwrap_or(i64::MAX));
    }
    if filter.from.is_some() || filter.until.is_some() {
        let hour = |at: Timestamp| i64::try_from(at.0).unwrap_or(i64::MAX) / HOUR;
        let mut statement = Statement::new(
            connection.dialect(),
            "SELECT min(first_id), max(last_id) FROM hours WHERE hour >= ",
        );
        statement.number(filter.from.map_or(0, hour)).push(" AND hour <= ");
        statement.number(filter.until.map_or(i64::MAX, hour));
        let table = connection.select(&statement, &[ColumnType::Big, ColumnType::Big]).await?;
        let Some(ends) = id_bounds(&table) else { return Ok(None) };
        (first, last) = (first.max(ends.0), last.min(ends.1));
    }
    Ok((first <= last).then_some((first, last)))
}

fn id_bounds(table: &Table) -> Option<(i64, i64)> {
    let row = table.first()?;
    Some((row.first()?.number()?, row.get(1)?.number()?))
}

/// Restricts a statement to rows of these accounts; an empty list matches no row.
pub(crate) fn within_accounts(statement: &mut Statement, accounts: Option<&[Arc<str>]>) {
    let Some(accounts) = accounts else { return };
    statement.push(" AND ");
    let Some((first, others)) = accounts.split_first() else {
        statement.push("1 = 0");
        return;
    };
    statement.push("account IN (").text(&plain(first));
    for account in others {
        statement.push(", ").text(&plain(account));
    }
    statement.push(")");
}

/// Adds all criteria except the number.
pub(crate) fn conditions(statement: &mut Statement, filter: &ArchiveFilter, (first, last): (i64, i64)) {
    statement.push(" WHERE id >= ").number(first).push(" AND id <= ").number(last);
    let time = |at: Timestamp| i64::try_from(at.0).unwrap_or(i64::MAX);
    if let Some(from) = filter.from {
        statement.push(" AND accepted_at >= ").number(time(from));
    }
    if let Some(until) = filter.until {
        statement.push(" AND accepted_at < ").number(time(until));
    }
    if let Some(account) = &filter.account {
        statement.push(" AND account = ").text(&plain(account));
    }
    within_accounts(statement, filter.within.as_deref());
    if let Some(peer) = &filter.peer {
        statement.push(" AND peer = ").text(&plain(peer));
    }
    if let Some(state) = filter.state {
        statement.push(" AND state = ").text(state.name());
    }
    if let Some(direction) = filter.direction {
        statement.push(" AND direction = ").text(direction.name());
    }
}

/// The newest ids with this number, newest first.
async fn find_ids_by_number(
    (backend, redaction): (&dyn Backend, &ArchiveRedaction),
    filter: &ArchiveFilter,
    number: &str,
    range: (i64, i64),
    most: usize,
) -> Result<Vec<i64>, Fault> {
    let number = escape(number.as_bytes());
    let mut ids = Vec::new();
    for column in filter.side.columns() {
        for form in &redaction.forms(column, &number) {
            let mut statement = Statement::new(backend.dialect(), "SELECT id FROM messages");
            // The planner's statistics may be stale, and it might choose the primary key for a rare number.
            match backend.dialect() {
                Dialect::Sqlite => statement.push(" INDEXED BY messages_").push(column),
                Dialect::MySql => statement.push(" FORCE INDEX (messages_").push(column).push(")"),
                Dialect::Postgres => &mut statement,
            };
            conditions(&mut statement, filter, range);
            statement.push(" AND ").push(column).push(" = ").text(form);
            // The order of the index: it makes PostgreSQL's planner choose the index on the number.
            match backend.dialect() {
                Dialect::Postgres => statement.push(" ORDER BY ").push(column).push(" DESC, id DESC"),
                Dialect::Sqlite | Dialect::MySql => statement.push(" ORDER BY id DESC"),
            };
            statement.push(" LIMIT ").push(&most.to_string());
            let table = backend.select(&statement, &[ColumnType::Big]).await?;
            ids.extend(table.iter().filter_map(|row| row.first()?.number()));
        }
    }
    ids.sort_unstable_by(|one, other| other.cmp(one));
    ids.dedup();
    ids.truncate(most);
    Ok(ids)
}

fn plain(name: &str) -> String {
    model::replace_nul(name)
}

fn select(dialect: Dialect, columns: &[(&'static str, ColumnType)]) -> Statement {
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    Statement::new(dialect, &format!("SELECT {} FROM messages", names.join(", ")))
}

async fn read(
    (backend, cipher): (&dyn Backend, Option<&dyn ContentCipher>),
    columns: &[(&'static str, ColumnType)],
    statement: &Statement,
) -> Result<Vec<Record>, Fault> {
    let kinds: Vec<_> = columns.iter().map(|(_, kind)| *kind).collect();
    let table = backend.select(statement, &kinds).await?;
    let damaged = |(id, what)| Fault::Down(ArchiveError::Damaged { id, what });
    table.into_iter().map(|cells| record(columns, cells, cipher).map_err(damaged)).collect()
}

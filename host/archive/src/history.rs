use crate::backend::{Backend, Session, Table};
use crate::error::Fault;
use crate::measure::HOUR;
use crate::record::{columns, record};
use crate::sql::{Dialect, Kind, Statement};
use crate::storable::storable;
use crate::{ArchiveError, Direction, Record};
use model::{FinalState, MessageId, Timestamp};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// On which side of a message a number is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// On either.
    #[default]
    Either,
    /// As the addressee only.
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

/// Which messages are asked for; all conditions must hold, and an empty filter matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Source or destination is this number or name, with or without a leading plus.
    pub number: Option<String>,
    /// On which side the number must be.
    pub side: Side,
    /// The customer of the house.
    pub account: Option<String>,
    /// The gateway.
    pub peer: Option<String>,
    /// How it ended.
    pub state: Option<FinalState>,
    /// Which way it went.
    pub direction: Option<Direction>,
    /// Accepted at this time or later.
    pub from: Option<Timestamp>,
    /// Accepted before this time.
    pub until: Option<Timestamp>,
    /// With this id or a greater one.
    pub first: Option<MessageId>,
}

/// What of each message is wanted beside the ordinary columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The text's octets.
    pub body: bool,
    /// The trace.
    pub trace: bool,
}

/// Where a page ended. A text for whoever pages; not meant to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor(i64);

impl Cursor {
    /// Goes on with what is older than this message.
    #[must_use]
    pub fn before(id: MessageId) -> Self {
        Self(i64::try_from(id.0).unwrap_or(i64::MAX))
    }

    /// The message that what follows is older than.
    #[must_use]
    pub fn id(self) -> MessageId {
        MessageId(u64::try_from(self.0).unwrap_or(0))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{:x}", self.0)
    }
}

impl FromStr for Cursor {
    type Err = ArchiveError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text.strip_prefix('b').filter(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()));
        id.and_then(|digits| i64::from_str_radix(digits, 16).ok())
            .map(Self)
            .ok_or_else(|| ArchiveError::Cursor(text.to_owned()))
    }
}

/// Some messages, newest first.
#[derive(Debug, Clone)]
pub struct Page {
    /// The messages. There may be fewer than asked for, even none, though there are more: where a filter finds little in
    /// much, a page ends after some seconds of looking.
    pub records: Vec<Record>,
    /// Where to go on; `None` when there are no more.
    pub next: Option<Cursor>,
}

/// Messages of a page, at most.
pub(crate) const LIMIT: usize = 1000;

pub(crate) async fn get(backend: &dyn Backend, id: MessageId) -> Result<Option<Record>, Fault> {
    let Ok(id) = i64::try_from(id.0) else { return Ok(None) };
    let columns = columns(true, true);
    let mut statement = select(backend.dialect(), &columns);
    statement.push(" WHERE id = ").number(id);
    Ok(read(backend, &columns, &statement).await?.pop())
}

/// Ids that the first look through a filter takes in; a look that was quick is followed by one of twice as many.
const LOOK: i64 = 20_000;

/// A look that takes less than this part of the patience is quick.
const QUICK: u32 = 8;

/// After so long, a page ends with what was found, unless whoever asks has less patience.
pub(crate) const ENOUGH: Duration = Duration::from_secs(2);

pub(crate) async fn page(
    backend: &dyn Backend,
    filter: &Filter,
    after: Option<Cursor>,
    limit: usize,
    wanted: Wanted,
    patience: Duration,
) -> Result<Page, Fault> {
    let limit = limit.clamp(1, LIMIT);
    let mut page = Page { records: Vec::new(), next: None };
    let Some((first, mut last)) = range(Asked::Pool(backend), filter, after).await? else { return Ok(page) };
    // Ids and numbers have indexes; whatever else is asked is compared row by row, a part of the table at a time.
    let compares = filter.account.is_some()
        || filter.peer.is_some()
        || filter.state.is_some()
        || filter.direction.is_some();
    let (begun, mut look) = (Instant::now(), if compares { LOOK } else { i64::MAX });
    while last >= first && page.records.len() <= limit {
        let low = first.max(last.saturating_sub(look - 1));
        let most = limit + 1 - page.records.len();
        let this = Instant::now();
        page.records.extend(look_through(backend, filter, (low, last), most, wanted).await?);
        if this.elapsed() < (patience / QUICK).min(ENOUGH / (5 * QUICK)) {
            look = look.saturating_mul(2);
        }
        last = low.saturating_sub(1);
        // After a look, never before the first: whoever goes on and on comes to an end, however little patience there is.
        if begun.elapsed() >= patience && last >= first && page.records.len() <= limit {
            page.next = Some(Cursor(low));
            return Ok(page);
        }
    }
    if page.records.len() > limit {
        page.records.truncate(limit);
        page.next = page.records.last().and_then(|last| i64::try_from(last.id.0).ok()).map(Cursor);
    }
    Ok(page)
}

/// The newest that match of these ids.
async fn look_through(
    backend: &dyn Backend,
    filter: &Filter,
    range: (i64, i64),
    most: usize,
    wanted: Wanted,
) -> Result<Vec<Record>, Fault> {
    let columns = columns(wanted.body, wanted.trace);
    let mut statement = select(backend.dialect(), &columns);
    match &filter.number {
        // With a number, ids first: they come from the two indexes in the right order, and nothing but them is read.
        Some(number) => {
            let ids = ids_of(backend, filter, number, range, most).await?;
            if ids.is_empty() {
                return Ok(Vec::new());
            }
            let ids: Vec<_> = ids.iter().map(i64::to_string).collect();
            statement.push(" WHERE id IN (").push(&ids.join(",")).push(")");
        }
        None => conditions(&mut statement, filter, range),
    }
    statement.push(" ORDER BY id DESC LIMIT ").push(&most.to_string());
    read(backend, &columns, &statement).await
}

/// Whom a question goes to.
pub(crate) enum Asked<'a> {
    /// A connection of the readers' pool, which lives on the runtime of whoever asked first.
    Pool(&'a dyn Backend),
    /// A connection of one's own.
    Own(&'a mut dyn Session, Dialect),
}

impl Asked<'_> {
    fn dialect(&self) -> Dialect {
        match self {
            Self::Pool(backend) => backend.dialect(),
            Self::Own(_, dialect) => *dialect,
        }
    }

    async fn select(&mut self, statement: &Statement, kinds: &[Kind]) -> Result<Table, Fault> {
        match self {
            Self::Pool(backend) => backend.select(statement, kinds).await,
            Self::Own(session, _) => session.select(statement, kinds).await,
        }
    }
}

/// Ids between which everything lies that may match, both included; `None` when nothing can.
pub(crate) async fn range(
    mut asked: Asked<'_>,
    filter: &Filter,
    after: Option<Cursor>,
) -> Result<Option<(i64, i64)>, Fault> {
    // One aggregate a SELECT: SQLite looks at one end of the table for each, and at all of it for two at once.
    let ends = "SELECT (SELECT min(id) FROM messages), (SELECT max(id) FROM messages)";
    let table = asked.select(&Statement::new(asked.dialect(), ends), &[Kind::Big, Kind::Big]).await?;
    let Some((mut first, mut last)) = two_numbers(&table) else { return Ok(None) };
    if let Some(cursor) = after {
        last = last.min(cursor.0.saturating_sub(1));
    }
    if let Some(id) = filter.first {
        first = first.max(i64::try_from(id.0).unwrap_or(i64::MAX));
    }
    if filter.from.is_some() || filter.until.is_some() {
        let hour = |at: Timestamp| i64::try_from(at.0).unwrap_or(i64::MAX) / HOUR;
        let mut statement =
            Statement::new(asked.dialect(), "SELECT min(first_id), max(last_id) FROM hours WHERE hour >= ");
        statement.number(filter.from.map_or(0, hour)).push(" AND hour <= ");
        statement.number(filter.until.map_or(i64::MAX, hour));
        let table = asked.select(&statement, &[Kind::Big, Kind::Big]).await?;
        let Some(ends) = two_numbers(&table) else { return Ok(None) };
        (first, last) = (first.max(ends.0), last.min(ends.1));
    }
    Ok((first <= last).then_some((first, last)))
}

fn two_numbers(table: &Table) -> Option<(i64, i64)> {
    let row = table.first()?;
    Some((row.first()?.number()?, row.get(1)?.number()?))
}

/// Everything of the filter but the number.
pub(crate) fn conditions(statement: &mut Statement, filter: &Filter, (first, last): (i64, i64)) {
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

/// The newest ids with this number on either side, newest first.
async fn ids_of(
    backend: &dyn Backend,
    filter: &Filter,
    number: &str,
    range: (i64, i64),
    most: usize,
) -> Result<Vec<i64>, Fault> {
    let bare = storable(number.strip_prefix('+').unwrap_or(number).as_bytes());
    let forms = [format!("+{bare}"), bare];
    let mut ids = Vec::new();
    for column in filter.side.columns() {
        for form in &forms {
            let mut statement = Statement::new(backend.dialect(), "SELECT id FROM messages");
            // The planner's figures may be old, and an index on ids with a filter is the wrong way to a rare number.
            match backend.dialect() {
                Dialect::Sqlite => statement.push(" INDEXED BY messages_").push(column),
                Dialect::MySql => statement.push(" FORCE INDEX (messages_").push(column).push(")"),
                Dialect::Postgres => &mut statement,
            };
            conditions(&mut statement, filter, range);
            statement.push(" AND ").push(column).push(" = ").text(form);
            // The order of the index; PostgreSQL's planner sees by it that only the index on the number will do.
            match backend.dialect() {
                Dialect::Postgres => statement.push(" ORDER BY ").push(column).push(" DESC, id DESC"),
                Dialect::Sqlite | Dialect::MySql => statement.push(" ORDER BY id DESC"),
            };
            statement.push(" LIMIT ").push(&most.to_string());
            let table = backend.select(&statement, &[Kind::Big]).await?;
            ids.extend(table.iter().filter_map(|row| row.first()?.number()));
        }
    }
    ids.sort_unstable_by(|one, other| other.cmp(one));
    ids.dedup();
    ids.truncate(most);
    Ok(ids)
}

fn plain(name: &str) -> String {
    crate::storable::without_nul(name)
}

fn select(dialect: Dialect, columns: &[(&'static str, Kind)]) -> Statement {
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    Statement::new(dialect, &format!("SELECT {} FROM messages", names.join(", ")))
}

async fn read(
    backend: &dyn Backend,
    columns: &[(&'static str, Kind)],
    statement: &Statement,
) -> Result<Vec<Record>, Fault> {
    let kinds: Vec<_> = columns.iter().map(|(_, kind)| *kind).collect();
    let table = backend.select(statement, &kinds).await?;
    let damaged = |(id, what)| Fault::Down(ArchiveError::Damaged { id, what });
    table.into_iter().map(|cells| record(columns, cells).map_err(damaged)).collect()
}

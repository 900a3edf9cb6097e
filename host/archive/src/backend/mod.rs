//! Data bases behind one narrow interface.
//!
//! A [`Backend`] makes [`Session`]s for whoever writes, one connection each, and answers readers from a small pool. All
//! three speak the same statements of `sql.rs`; what differs (how rows go in, what an error means, how a transaction
//! begins) is in their files.

pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod sqlite;

use crate::error::Fault;
use crate::measure::Sums;
use crate::replay_source::Collected;
use crate::row::Row;
use crate::sql::{Bound, Cell, Dialect, Kind, Statement};
use crate::{ArchiveError, Options, RawBatch};
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Arguments, AssertSqlSafe, ColumnIndex, Database, Decode, Encode, Executor, IntoArguments, Type};
use std::sync::Arc;
use std::time::Duration;

/// Rows of cells, as a query gives them.
pub(crate) type Table = Vec<Vec<Cell>>;

/// How long a reader waits for a connection: for one to become free, or for the server to come back.
const ACQUIRE: Duration = Duration::from_secs(5);

/// One data base.
pub(crate) trait Backend: Send + Sync {
    /// How it is spoken to.
    fn dialect(&self) -> Dialect;

    /// Connects, and brings the tables up to date.
    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn Session>, Fault>>;

    /// Reads, on a connection of the readers' pool.
    fn select<'a>(
        &'a self,
        statement: &'a Statement,
        kinds: &'a [Kind],
    ) -> BoxFuture<'a, Result<Table, Fault>>;
}

/// One connection, for writing.
pub(crate) trait Session: Send {
    /// Rows and what they add to the sums, in one transaction: all or nothing.
    fn insert<'a>(&'a mut self, rows: &'a [Row], sums: &'a Sums) -> BoxFuture<'a, Result<(), Fault>>;

    /// Says goodbye; without it the server writes of a broken connection into its log.
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// One statement; gives the number of rows that it changed.
    fn execute<'a>(&'a mut self, statement: &'a Statement) -> BoxFuture<'a, Result<u64, Fault>>;

    /// Reads.
    fn select<'a>(
        &'a mut self,
        statement: &'a Statement,
        kinds: &'a [Kind],
    ) -> BoxFuture<'a, Result<Table, Fault>>;

    /// Reads rows for a replay: id, decision and, with `body`, body; until the batch is full.
    fn scan<'a>(&'a mut self, statement: &'a Statement, body: bool)
    -> BoxFuture<'a, Result<RawBatch, Fault>>;
}

/// The back end that a URL names.
pub(crate) fn open(url: &str, options: &Options) -> Result<Arc<dyn Backend>, ArchiveError> {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    let result: Result<Arc<dyn Backend>, sqlx::Error> = match scheme {
        "sqlite" if !rest.trim_start_matches('/').is_empty() => {
            sqlite::Sqlite::new(url, options).map(|backend| Arc::new(backend) as _)
        }
        "mysql" | "mariadb" => {
            mysql::MySql::new(&format!("mysql:{rest}"), options).map(|backend| Arc::new(backend) as _)
        }
        "postgres" | "postgresql" => {
            postgres::Postgres::new(url, options).map(|backend| Arc::new(backend) as _)
        }
        _ => return Err(ArchiveError::Url),
    };
    result.map_err(|_| ArchiveError::Url)
}

/// A URL as it may be shown: without its password, and without its query, which may hold another.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split('?').next().unwrap_or(rest);
    match rest.rsplit_once('@') {
        Some((user, place)) => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}:***@{place}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

/// Brings the tables up to date, under the driver's lock where `lock` says so. Two daemons may do so at once: where the driver has no lock for it (SQLite), the second
/// finds that the first has been there, and looks again.
async fn migrate<C: Migrate>(
    connection: &mut C,
    steps: &[(i64, &'static str, &'static str)],
    lock: bool,
) -> Result<(), Fault> {
    let migrations = steps.iter().map(|(version, name, sql)| {
        let sql = sqlx::SqlSafeStr::into_sql_str(*sql);
        Migration::new(*version, (*name).into(), MigrationType::Simple, sql, false)
    });
    let known = steps.iter().map(|(version, ..)| *version).max().unwrap_or(0);
    let mut migrator = Migrator::with_migrations(migrations.collect());
    migrator.dangerous_set_table_name("schema_versions");
    migrator.set_locking(lock);
    for attempt in 1.. {
        match migrator.run_direct(None, connection, false).await {
            Ok(()) => break,
            Err(MigrateError::VersionMissing(found)) => {
                return Err(Fault::Down(ArchiveError::NewerSchema { found, known }));
            }
            Err(_) if attempt < 5 => tokio::time::sleep(Duration::from_millis(20 * attempt)).await,
            Err(error) => return Err(Fault::Down(ArchiveError::Migration(error.to_string()))),
        }
    }
    Ok(())
}

/// What is bound to a statement, as the driver wants it.
fn arguments<DB>(bound: &[Bound]) -> Result<DB::Arguments, sqlx::Error>
where
    DB: Database,
    for<'q> i64: Encode<'q, DB> + Type<DB>,
    for<'q> &'q str: Encode<'q, DB> + Type<DB>,
{
    let mut arguments = DB::Arguments::default();
    for value in bound {
        match value {
            Bound::Number(number) => arguments.add(*number),
            Bound::Text(text) => arguments.add(text.as_str()),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// Runs a statement that gives no rows.
async fn execute<'c, DB, E>(on: E, statement: &Statement) -> Result<DB::QueryResult, sqlx::Error>
where
    DB: Database,
    DB::Arguments: IntoArguments<DB>,
    E: Executor<'c, Database = DB>,
    for<'q> i64: Encode<'q, DB> + Type<DB>,
    for<'q> &'q str: Encode<'q, DB> + Type<DB>,
{
    let arguments = arguments::<DB>(&statement.bound)?;
    sqlx::query_with::<DB, _>(AssertSqlSafe(statement.sql.clone()), arguments).execute(on).await
}

/// Runs a query.
async fn select<'c, DB, E>(on: E, statement: &Statement, kinds: &[Kind]) -> Result<Table, sqlx::Error>
where
    DB: Database,
    DB::Arguments: IntoArguments<DB>,
    E: Executor<'c, Database = DB>,
    for<'q> i64: Encode<'q, DB> + Decode<'q, DB> + Type<DB>,
    for<'q> i16: Decode<'q, DB> + Type<DB>,
    for<'q> &'q str: Encode<'q, DB> + Type<DB>,
    for<'q> String: Decode<'q, DB> + Type<DB>,
    for<'q> Vec<u8>: Decode<'q, DB> + Type<DB>,
    usize: ColumnIndex<DB::Row>,
{
    use sqlx::Row as _;
    let sql = AssertSqlSafe(statement.sql.clone());
    let rows = if statement.bound.is_empty() {
        // Lists of ids, mostly, of which every one is different: nothing to prepare and to remember.
        sqlx::raw_sql(sql).fetch_all(on).await?
    } else {
        let arguments = arguments::<DB>(&statement.bound)?;
        sqlx::query_with::<DB, _>(sql, arguments).fetch_all(on).await?
    };
    let cell = |row: &DB::Row, index: usize, kind: Kind| {
        Ok::<_, sqlx::Error>(
            match kind {
                Kind::Big => row.try_get::<Option<i64>, _>(index)?.map(Cell::Number),
                Kind::Small => {
                    row.try_get::<Option<i16>, _>(index)?.map(|number| Cell::Number(number.into()))
                }
                Kind::Text => row.try_get::<Option<String>, _>(index)?.map(Cell::Text),
                Kind::Octets => row.try_get::<Option<Vec<u8>>, _>(index)?.map(Cell::Octets),
            }
            .unwrap_or(Cell::Null),
        )
    };
    rows.iter()
        .map(|row| kinds.iter().enumerate().map(|(index, kind)| cell(row, index, *kind)).collect())
        .collect()
}

/// Runs a query for a replay.
async fn scan<'c, DB, E>(on: E, statement: &Statement, body: bool) -> Result<RawBatch, sqlx::Error>
where
    DB: Database,
    DB::Arguments: IntoArguments<DB>,
    E: Executor<'c, Database = DB>,
    for<'q> i64: Encode<'q, DB> + Decode<'q, DB> + Type<DB>,
    for<'q> &'q str: Encode<'q, DB> + Type<DB>,
    for<'q> &'q [u8]: Decode<'q, DB> + Type<DB>,
    usize: ColumnIndex<DB::Row>,
{
    use sqlx::Row as _;
    let arguments = arguments::<DB>(&statement.bound)?;
    let mut rows = sqlx::query_with::<DB, _>(AssertSqlSafe(statement.sql.clone()), arguments).fetch(on);
    let mut batch = Collected::new(body);
    while let Some(row) = rows.try_next().await? {
        let decision = row.try_get::<Option<&[u8]>, _>(1)?.unwrap_or_default();
        let text = if body { row.try_get::<Option<&[u8]>, _>(2)?.unwrap_or_default() } else { &[] };
        if !batch.push(row.try_get(0)?, decision, text) {
            break;
        }
    }
    Ok(batch.finish())
}

/// What an error of the driver means; `row` says whether the data base's own code blames a value.
fn fault(error: sqlx::Error, blame: impl Fn(&dyn sqlx::error::DatabaseError) -> Blame) -> Fault {
    if let Some(refusal) = error.as_database_error() {
        let text = refusal.to_string();
        return match blame(refusal) {
            Blame::Duplicate => Fault::Duplicate,
            Blame::Row => Fault::Row(text),
            Blame::Unclear => Fault::Unclear(text),
            Blame::Server => Fault::Down(ArchiveError::Database(text)),
        };
    }
    match error {
        sqlx::Error::Encode(error) => Fault::Row(error.to_string()),
        sqlx::Error::PoolTimedOut => {
            Fault::Down(ArchiveError::Database(format!("no connection within {} s", ACQUIRE.as_secs())))
        }
        error => Fault::Down(ArchiveError::Database(error.to_string())),
    }
}

/// What a refusal is about.
enum Blame {
    Duplicate,
    Row,
    Unclear,
    Server,
}

/// By SQLSTATE class (ISO/IEC 9075-2 §24.1), for what no code of the product's own has settled.
fn by_state(state: &str) -> Blame {
    match state.get(..2) {
        // Data exception, integrity constraint, program limit exceeded (PostgreSQL), raised by a trigger.
        Some("22" | "23" | "44" | "54") => Blame::Row,
        _ if matches!(state, "45000" | "P0001") => Blame::Row,
        // Connection, rollback (deadlock), authorisation, resources, operator intervention, system error.
        Some("08" | "40" | "28" | "3D" | "53" | "57" | "58" | "55" | "25") => Blame::Server,
        _ => Blame::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_their_passwords() {
        assert_eq!(without_password("mysql://a:b@h:1/n"), "mysql://a:***@h:1/n");
        assert_eq!(without_password("mysql://a:p@ss@h:1/n"), "mysql://a:***@h:1/n");
        assert_eq!(without_password("mysql://a:b/c@h:1/n"), "mysql://a:***@h:1/n");
        assert_eq!(without_password("postgres://h/n?user=a&password=b"), "postgres://h/n");
        assert_eq!(without_password("postgres://h/n"), "postgres://h/n");
        assert_eq!(without_password("sqlite:x.db"), "sqlite:x.db");
    }

    #[test]
    fn urls_of_nothing_are_refused() {
        for url in ["", "sqlite", "sqlite:", "oracle://h/n", "mysql://h:port/n"] {
            let refused = open(url, &Options::default()).err().map(|error| error.to_string());
            assert!(refused.is_some_and(|text| text.contains("names no data base")), "{url}");
        }
    }
}

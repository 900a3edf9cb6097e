//! Database back ends behind a common interface.
//!
//! A [`Backend`] creates [`Session`]s for writers, one connection each, and serves readers from a small pool. All back
//! ends share the statements of `sql.rs`; differences (bulk inserts, error codes, transactions) are in their files.

use crate::error::Fault;
use crate::measures::StatisticsDelta;
use crate::raw_batch::{RawBatchBuilder, RowParts};
use crate::row::Row;
use crate::sql::{COLUMNS, Cell, ColumnType, Dialect, Parameter, Statement, Value, values};
use crate::{ArchiveError, ArchiveOptions, RawBatch};
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::pool::PoolOptions;
use sqlx::{
    Arguments, AssertSqlSafe, ColumnIndex, Connection, Database, Decode, Encode, Executor, IntoArguments,
    Pool, Type,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Rows of cells, as returned by a query.
pub(crate) type Table = Vec<Vec<Cell>>;

/// Maximum time that a reader waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// The pool of a back end's readers. It connects at the first query.
struct Readers<DB: Database> {
    most: u32,
    pool: OnceCell<Pool<DB>>,
}

impl<DB: Database> Readers<DB> {
    fn new(options: &ArchiveOptions) -> Self {
        Self { most: options.readers.max(1), pool: OnceCell::new() }
    }

    /// The pool. The first reader may come before the pump: `connection` migrates the tables.
    async fn pool(
        &self,
        connection: impl Future<Output = Result<DB::Connection, Fault>>,
        options: impl FnOnce() -> <DB::Connection as Connection>::Options,
    ) -> Result<&Pool<DB>, Fault> {
        let open = || async {
            // All statements have ended, so nothing is lost.
            let _ = connection.await?.close().await;
            let pool = PoolOptions::new().min_connections(0).max_connections(self.most);
            Ok(pool.acquire_timeout(ACQUIRE_TIMEOUT).connect_lazy_with(options()))
        };
        self.pool.get_or_try_init(open).await
    }
}

/// The methods of a [`Session`] that are equal for all drivers. `field` is the driver's connection, unless it is the
/// session itself.
macro_rules! driver_methods {
    ($($field:ident)?) => {
        fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
            async move {
                // No transaction is open, so nothing is lost.
                let _ = Connection::close((*self)$(.$field)?).await;
            }
            .boxed()
        }

        fn execute<'a>(&'a mut self, statement: &'a Statement) -> BoxFuture<'a, Result<u64, Fault>> {
            async move {
                let result = super::execute(&mut (*self)$(.$field)?, statement).await;
                result.map(|result| result.rows_affected()).map_err(classify)
            }
            .boxed()
        }

        fn select<'a>(
            &'a mut self,
            statement: &'a Statement,
            kinds: &'a [ColumnType],
        ) -> BoxFuture<'a, Result<Table, Fault>> {
            async move { super::select(&mut (*self)$(.$field)?, statement, kinds).await.map_err(classify) }.boxed()
        }
    };
}

mod mysql;
mod postgres;
mod sqlite;

/// A database back end.
pub(crate) trait Backend: Send + Sync {
    /// The SQL dialect.
    fn dialect(&self) -> Dialect;

    /// Overwrites all unused octets of the database, in small steps with pauses, if values were erased since the last time.
    fn overwrite_unused(&self) -> BoxFuture<'_, Result<(), Fault>>;

    /// Connects and migrates the tables.
    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn Session>, Fault>>;

    /// Runs a query on a connection of the readers' pool.
    fn select<'a>(
        &'a self,
        statement: &'a Statement,
        kinds: &'a [ColumnType],
    ) -> BoxFuture<'a, Result<Table, Fault>>;
}

/// A connection for a writer.
pub(crate) trait Session: Send {
    /// Inserts rows and their statistics in one transaction.
    fn insert<'a>(
        &'a mut self,
        rows: &'a [Row],
        sums: &'a StatisticsDelta,
    ) -> BoxFuture<'a, Result<(), Fault>>;

    /// Closes the connection properly; otherwise the server logs a broken connection.
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Executes a statement and returns the number of changed rows.
    fn execute<'a>(&'a mut self, statement: &'a Statement) -> BoxFuture<'a, Result<u64, Fault>>;

    /// Runs a query.
    fn select<'a>(
        &'a mut self,
        statement: &'a Statement,
        kinds: &'a [ColumnType],
    ) -> BoxFuture<'a, Result<Table, Fault>>;

    /// Records durably that values are about to be erased, for [`Backend::overwrite_unused`].
    fn mark_erasure(&mut self) -> BoxFuture<'_, Result<(), Fault>>;

    /// Makes the database overwrite erased values, as far as a statement can.
    fn overwrite_erased(&mut self) -> BoxFuture<'_, Result<(), Fault>>;

    /// Reads rows for a replay (id, decision and, with `body`, body) until the batch is full.
    fn scan<'a>(
        &'a mut self,
        statement: &'a Statement,
        parts: RowParts,
    ) -> BoxFuture<'a, Result<RawBatch, Fault>>;
}

/// Opens the back end of a URL.
pub(crate) fn open(url: &str, options: &ArchiveOptions) -> Result<Arc<dyn Backend>, ArchiveError> {
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

/// A URL for display: without its password, and without its query, which may contain a password too.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split('?').next().unwrap_or(rest);
    match rest.rsplit_once('@') {
        Some((user, position)) => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}:***@{position}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

/// Migrates the tables, under the driver's lock if `lock` is set. Two daemons may migrate at the same time; if the driver
/// has no lock (SQLite), the second one finds the result of the first and retries.
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

/// Converts parameters for the driver.
fn arguments<DB>(bound: &[Parameter]) -> Result<DB::Arguments, sqlx::Error>
where
    DB: Database,
    for<'q> i64: Encode<'q, DB> + Type<DB>,
    for<'q> &'q str: Encode<'q, DB> + Type<DB>,
{
    let mut arguments = DB::Arguments::default();
    for value in bound {
        match value {
            Parameter::Number(number) => arguments.add(*number),
            Parameter::Text(text) => arguments.add(text.as_str()),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// The values of rows, for one INSERT.
fn row_arguments<DB>(rows: &[Row]) -> Result<DB::Arguments, Fault>
where
    DB: Database,
    for<'q> i64: Encode<'q, DB> + Type<DB>,
    for<'q> Option<i64>: Encode<'q, DB> + Type<DB>,
    for<'q> Option<&'q str>: Encode<'q, DB> + Type<DB>,
    for<'q> Option<&'q [u8]>: Encode<'q, DB> + Type<DB>,
{
    let mut arguments = DB::Arguments::default();
    arguments.reserve(rows.len() * COLUMNS.len(), rows.iter().map(Row::weight).sum());
    for value in rows.iter().flat_map(values) {
        match value {
            Value::Number(number) => arguments.add(number),
            Value::OptionalNumber(number) => arguments.add(number),
            Value::Text(text) => arguments.add(text),
            Value::Octets(octets) => arguments.add(octets),
        }
        .map_err(|error| Fault::Row(error.to_string()))?;
    }
    Ok(arguments)
}

/// Executes a statement without results.
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
async fn select<'c, DB, E>(on: E, statement: &Statement, kinds: &[ColumnType]) -> Result<Table, sqlx::Error>
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
        // Mostly lists of ids, each different: preparing them is useless.
        sqlx::raw_sql(sql).fetch_all(on).await?
    } else {
        let arguments = arguments::<DB>(&statement.bound)?;
        sqlx::query_with::<DB, _>(sql, arguments).fetch_all(on).await?
    };
    let cell = |row: &DB::Row, index: usize, kind: ColumnType| {
        Ok::<_, sqlx::Error>(
            match kind {
                ColumnType::Big => row.try_get::<Option<i64>, _>(index)?.map(Cell::Number),
                ColumnType::Small => {
                    row.try_get::<Option<i16>, _>(index)?.map(|number| Cell::Number(number.into()))
                }
                ColumnType::Text => row.try_get::<Option<String>, _>(index)?.map(Cell::Text),
                ColumnType::Octets => row.try_get::<Option<Vec<u8>>, _>(index)?.map(Cell::Octets),
            }
            .unwrap_or(Cell::Null),
        )
    };
    rows.iter()
        .map(|row| kinds.iter().enumerate().map(|(index, kind)| cell(row, index, *kind)).collect())
        .collect()
}

/// Runs a query for a replay.
async fn scan<'c, DB, E>(on: E, statement: &Statement, parts: RowParts) -> Result<RawBatch, sqlx::Error>
where
    DB: Database,
    DB::Arguments: IntoArguments<DB>,
    E: Executor<'c, Database = DB>,
    for<'q> i64: Encode<'q, DB> + Decode<'q, DB> + Type<DB>,
    for<'q> &'q str: Encode<'q, DB> + Decode<'q, DB> + Type<DB>,
    for<'q> &'q [u8]: Decode<'q, DB> + Type<DB>,
    usize: ColumnIndex<DB::Row>,
{
    use sqlx::Row as _;
    let arguments = arguments::<DB>(&statement.bound)?;
    let mut rows = sqlx::query_with::<DB, _>(AssertSqlSafe(statement.sql.clone()), arguments).fetch(on);
    let mut batch = RawBatchBuilder::new(parts);
    while let Some(row) = rows.try_next().await? {
        let decision = row.try_get::<Option<&[u8]>, _>(1)?.unwrap_or_default();
        let text = match parts.body_column() {
            Some(column) => row.try_get::<Option<&[u8]>, _>(column)?.unwrap_or_default(),
            None => &[],
        };
        let trace = match parts.trace_column() {
            Some(column) => row.try_get::<Option<&str>, _>(column)?.unwrap_or_default(),
            None => "",
        };
        let key = row.try_get::<Option<i64>, _>(2)?;
        if !batch.push(row.try_get(0)?, (decision, key), text, trace.as_bytes()) {
            break;
        }
    }
    Ok(batch.finish())
}

/// Classifies a driver error; `cause` interprets the database's error code.
fn fault(error: sqlx::Error, cause: impl Fn(&dyn sqlx::error::DatabaseError) -> ErrorCause) -> Fault {
    if let Some(refusal) = error.as_database_error() {
        let text = refusal.to_string();
        return match cause(refusal) {
            ErrorCause::Duplicate => Fault::Duplicate,
            ErrorCause::Row => Fault::Row(text),
            ErrorCause::Unclear => Fault::Unclear(text),
            ErrorCause::Server => Fault::Down(ArchiveError::Database(text)),
        };
    }
    match error {
        sqlx::Error::Encode(error) => Fault::Row(error.to_string()),
        sqlx::Error::PoolTimedOut => Fault::Down(ArchiveError::Database(format!(
            "no connection within {} s",
            ACQUIRE_TIMEOUT.as_secs()
        ))),
        error => Fault::Down(ArchiveError::Database(error.to_string())),
    }
}

/// The cause of a database error.
enum ErrorCause {
    Duplicate,
    Row,
    Unclear,
    Server,
}

/// Classifies by SQLSTATE class (ISO/IEC 9075-2 §24.1) if no product-specific code applies.
fn cause_of_sqlstate(state: &str) -> ErrorCause {
    match state.get(..2) {
        // Data exception, integrity constraint, program limit exceeded (PostgreSQL), raised by a trigger.
        Some("22" | "23" | "44" | "54") => ErrorCause::Row,
        _ if matches!(state, "45000" | "P0001") => ErrorCause::Row,
        // Connection, rollback (deadlock), authorisation, resources, operator intervention, system error.
        Some("08" | "40" | "28" | "3D" | "53" | "57" | "58" | "55" | "25") => ErrorCause::Server,
        _ => ErrorCause::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_removed_from_urls() {
        assert_eq!(without_password("mysql://a:b@h:1/n"), "mysql://a:***@h:1/n");
        assert_eq!(without_password("mysql://a:p@ss@h:1/n"), "mysql://a:***@h:1/n");
        assert_eq!(without_password("mysql://a:b/c@h:1/n"), "mysql://a:***@h:1/n");
        assert_eq!(without_password("postgres://h/n?user=a&password=b"), "postgres://h/n");
        assert_eq!(without_password("postgres://h/n"), "postgres://h/n");
        assert_eq!(without_password("sqlite:x.db"), "sqlite:x.db");
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for url in ["", "sqlite", "sqlite:", "oracle://h/n", "mysql://h:port/n"] {
            let refused = open(url, &ArchiveOptions::default()).err().map(|error| error.to_string());
            assert!(refused.is_some_and(|text| text.contains("is not a database URL")), "{url}");
        }
    }
}

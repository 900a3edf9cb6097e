//! SQLite: one file in the folder of the store; the default.

mod unused_octets;

use super::{Backend, ErrorCause, Readers, Session, Table, fault};
use crate::error::Fault;
use crate::measures::StatisticsDelta;
use crate::raw_batch::{RawBatchBuilder, RowParts};
use crate::row::Row;
use crate::sql::{ColumnType, Dialect, Parameter, Statement, add_sums, insert_rows};
use crate::{ArchiveError, ArchiveOptions, RawBatch};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rusqlite::OpenFlags;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const MIGRATIONS: [(i64, &str, &str); 5] = [
    (1, "messages", include_str!("../../migrations/sqlite/0001_messages.sql")),
    (2, "decisions", include_str!("../../migrations/sqlite/0002_decisions.sql")),
    (3, "audit", include_str!("../../migrations/sqlite/0003_audit.sql")),
    (4, "content erased", include_str!("../../migrations/sqlite/0004_content_erased.sql")),
    (5, "text key", include_str!("../../migrations/sqlite/0005_text_key.sql")),
];

/// Maximum time to wait for another writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Rows per statement: enough for a low cost per row, and below SQLite's limit of 32,766 values.
const ROWS: usize = 64;

/// Pages whose unused octets are overwritten in one transaction: 1 MiB.
const OVERWRITTEN_PAGES: u32 = 256;

pub(crate) struct Sqlite {
    options: SqliteConnectOptions,
    readers: Readers<sqlx::Sqlite>,
    /// The number of erasures since the start; locked while the file's mark of an erasure is changed.
    erasures: Arc<Mutex<u64>>,
}

impl Sqlite {
    pub(crate) fn new(url: &str, options: &ArchiveOptions) -> Result<Self, sqlx::Error> {
        let connect = SqliteConnectOptions::from_str(url)?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // FULL: a message leaves the store once it is committed here, so a commit must survive a power failure.
            // NORMAL syncs the WAL at checkpoints only.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            // The two indexes on numbers are written randomly; their upper levels should stay in memory.
            .pragma("cache_size", "-65536")
            // A checkpoint costs about the same for few and many pages that were written often; 16 MiB between them.
            .pragma("wal_autocheckpoint", "4000")
            // Erased and deleted values must not stay in the file.
            .pragma("secure_delete", "on")
            .disable_statement_logging();
        Ok(Self { options: connect, readers: Readers::new(options), erasures: Arc::default() })
    }

    async fn connection(&self) -> Result<SqliteConnection, Fault> {
        let mut attempt = 0;
        let mut connection = loop {
            match SqliteConnection::connect_with(&self.options).await {
                Ok(connection) => break connection,
                // Switching a new file to WAL needs an exclusive lock, and the busy timeout does not apply to it.
                Err(error) if is_busy(&error) && attempt < 50 => {
                    attempt += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => return Err(classify(error)),
            }
        };
        super::migrate(&mut connection, &MIGRATIONS, true).await?;
        Ok(connection)
    }
}

impl Backend for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn Session>, Fault>> {
        async {
            let connection = self.connection().await?;
            let file = self.options.get_filename().to_owned();
            let erasures = self.erasures.clone();
            Ok(Box::new(SqliteSession { connection, file, bulk: None, erasures }) as Box<dyn Session>)
        }
        .boxed()
    }

    fn overwrite_unused(&self) -> BoxFuture<'_, Result<(), Fault>> {
        async {
            let mut session = self.connect().await?;
            let file = self.options.get_filename().to_owned();
            let failed = |error: rusqlite::Error| Fault::Down(ArchiveError::Database(error.to_string()));
            let mut connection = {
                let opened = blocking(move || open(&file, OpenFlags::SQLITE_OPEN_READ_WRITE)).await;
                Some(opened.map_err(failed)?)
            };
            loop {
                let erasures = *self.erasures.lock().await;
                if !overwrite_pages(&mut connection).await.map_err(failed)? {
                    break;
                }
                let erasures_now = self.erasures.lock().await;
                if *erasures_now == erasures {
                    let unmark = Statement::new(Dialect::Sqlite, "PRAGMA user_version = 0");
                    session.execute(&unmark).await?;
                    break;
                }
            }
            session.overwrite_erased().await?;
            session.close().await;
            Ok(())
        }
        .boxed()
    }

    fn select<'a>(
        &'a self,
        statement: &'a Statement,
        kinds: &'a [ColumnType],
    ) -> BoxFuture<'a, Result<Table, Fault>> {
        async {
            let pool = self
                .readers
                .pool(self.connection(), || self.options.clone().pragma("query_only", "on"))
                .await?;
            super::select(pool, statement, kinds).await.map_err(classify)
        }
        .boxed()
    }
}

/// A connection, and a second one for bulk reads.
struct SqliteSession {
    connection: SqliteConnection,
    file: PathBuf,
    /// The driver passes rows one by one from its own thread, which costs five times as much as reading them
    /// (`cargo run --release -p replay --example throughput`).
    bulk: Option<rusqlite::Connection>,
    erasures: Arc<Mutex<u64>>,
}

/// Overwrites the unused octets of all pages, if values were erased since the last time; in small steps with pauses.
/// Returns whether overwriting was due. `connection` is `None` while another thread uses it.
async fn overwrite_pages(connection: &mut Option<rusqlite::Connection>) -> rusqlite::Result<bool> {
    let mut next = 1;
    loop {
        let begun = Instant::now();
        let Some(mut used) = connection.take() else { return Ok(false) };
        let (used, step) = blocking(move || {
            let step: rusqlite::Result<(bool, u32)> = (|| {
                let last = unused_octets::page_count(&used)?;
                if next == 1 && !unused_octets::is_due(&used)? {
                    return Ok((false, last));
                }
                if last > unused_octets::MAX_PAGES {
                    tracing::warn!(
                        "archive file over 128 GiB, its unused octets are not overwritten: run VACUUM"
                    );
                } else {
                    unused_octets::overwrite(&mut used, next..=last.min(next + OVERWRITTEN_PAGES - 1))?;
                }
                Ok((true, last))
            })();
            Ok((used, step))
        })
        .await?;
        *connection = Some(used);
        let (is_due, last) = step?;
        next += OVERWRITTEN_PAGES;
        if !is_due || next > last || last > unused_octets::MAX_PAGES {
            return Ok(is_due);
        }
        // At most a fifth of the time, so that the pump finds the file unlocked.
        tokio::time::sleep((begun.elapsed() * 4).max(Duration::from_millis(2))).await;
    }
}

/// Runs work on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> rusqlite::Result<T> {
    // The runtime ends, or the panic hook has reported the details.
    tokio::task::spawn_blocking(work).await.map_err(|_| rusqlite::Error::InvalidQuery)?
}

/// Opens another connection to a migrated file.
fn open(file: &Path, mode: OpenFlags) -> rusqlite::Result<rusqlite::Connection> {
    let connection = rusqlite::Connection::open_with_flags(file, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Runs a query for a replay.
fn scan(
    connection: &rusqlite::Connection,
    statement: &Statement,
    parts: RowParts,
) -> rusqlite::Result<RawBatch> {
    let bound = statement.bound.iter().map(|value| match value {
        Parameter::Number(number) => rusqlite::types::Value::from(*number),
        Parameter::Text(text) => rusqlite::types::Value::from(text.clone()),
    });
    let mut prepared = connection.prepare(&statement.sql)?;
    let mut rows = prepared.query(rusqlite::params_from_iter(bound))?;
    let mut batch = RawBatchBuilder::new(parts);
    while let Some(row) = rows.next()? {
        let octets =
            |index| Ok::<_, rusqlite::Error>(row.get_ref(index)?.as_bytes_or_null()?.unwrap_or_default());
        let text = parts.body_column().map_or(Ok(&[][..]), octets)?;
        let trace = parts.trace_column().map_or(Ok(&[][..]), octets)?;
        if !batch.push(row.get(0)?, (octets(1)?, row.get(2)?), text, trace) {
            break;
        }
    }
    Ok(batch.finish())
}

impl Session for SqliteSession {
    driver_methods!(connection);

    fn insert<'a>(
        &'a mut self,
        rows: &'a [Row],
        sums: &'a StatisticsDelta,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        async {
            // IMMEDIATE: wait for another writer now, not later with a stale snapshot.
            let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await.map_err(classify)?;
            for some in rows.chunks(ROWS) {
                let arguments = super::row_arguments::<sqlx::Sqlite>(some)?;
                let sql = AssertSqlSafe(insert_rows(Dialect::Sqlite, some.len()));
                sqlx::query_with(sql, arguments)
                    // Full chunks always use the same statement; the last one can have any size.
                    .persistent(some.len() == ROWS)
                    .execute(&mut *transaction)
                    .await
                    .map_err(classify)?;
            }
            for statement in add_sums(Dialect::Sqlite, sums, &[256]) {
                super::execute(&mut *transaction, &statement).await.map_err(classify)?;
            }
            transaction.commit().await.map_err(classify)
        }
        .boxed()
    }

    fn mark_erasure(&mut self) -> BoxFuture<'_, Result<(), Fault>> {
        async {
            let erasures = self.erasures.clone();
            let mut erasures = erasures.lock().await;
            *erasures += 1;
            let mark = Statement::new(Dialect::Sqlite, "PRAGMA user_version = 1");
            self.execute(&mark).await.map(drop)
        }
        .boxed()
    }

    fn overwrite_erased(&mut self) -> BoxFuture<'_, Result<(), Fault>> {
        async {
            // The write-ahead log still has the old pages. TRUNCATE waits for readers, at most as long as the busy timeout.
            let checkpoint = Statement::new(Dialect::Sqlite, "PRAGMA wal_checkpoint(TRUNCATE)");
            let begun = Instant::now();
            loop {
                let result = self.select(&checkpoint, &[ColumnType::Big]).await?;
                match result.first().and_then(|row| row.first()?.number()) {
                    Some(0) => return Ok(()),
                    // The busy timeout does not apply while another connection writes a checkpoint.
                    _ if begun.elapsed() < BUSY_TIMEOUT => {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    _ => {
                        return Err(Fault::Down(ArchiveError::Database(
                            "the write-ahead log still has erased values, because a reader uses it; try again"
                                .into(),
                        )));
                    }
                }
            }
        }
        .boxed()
    }

    fn scan<'a>(
        &'a mut self,
        statement: &'a Statement,
        parts: RowParts,
    ) -> BoxFuture<'a, Result<RawBatch, Fault>> {
        async move {
            let (bulk, file, statement) = (self.bulk.take(), self.file.clone(), statement.clone());
            let reading = tokio::task::spawn_blocking(move || {
                let bulk = match bulk {
                    Some(bulk) => bulk,
                    None => open(&file, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
                };
                let batch = scan(&bulk, &statement, parts)?;
                Ok::<_, rusqlite::Error>((bulk, batch))
            });
            let down = |text: String| Fault::Down(ArchiveError::Database(text));
            let (bulk, batch) = reading
                .await
                .map_err(|error| down(error.to_string()))?
                .map_err(|error| down(error.to_string()))?;
            self.bulk = Some(bulk);
            Ok(batch)
        }
        .boxed()
    }
}

/// SQLITE_BUSY with any extended code.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|refusal| refusal.code()?.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}

/// Classifies by SQLite's extended result code.
fn classify(error: sqlx::Error) -> Fault {
    fault(error, |refusal| {
        let code = refusal.code().and_then(|code| code.parse::<u32>().ok()).unwrap_or(0);
        match code {
            // SQLITE_CONSTRAINT_PRIMARYKEY; only table `messages` can raise it.
            1555 | 2579 => ErrorCause::Duplicate,
            code => match code & 0xff {
                // TOOBIG, CONSTRAINT, MISMATCH, RANGE.
                18 | 19 | 20 | 25 => ErrorCause::Row,
                // PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL, NOTADB.
                3 | 5..=11 | 13..=15 | 26 => ErrorCause::Server,
                _ => ErrorCause::Unclear,
            },
        }
    })
}

//! The baseline: prepared multi-row INSERTs of rows that are already in memory.

use anyhow::{Context, Result};
use archive::{Archive, ArchiveFilter, Record, RecordFields};
use sqlx::mysql::{MySqlArguments, MySqlConnection};
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection};
use sqlx::{Arguments, AssertSqlSafe, Connection, Database, Encode, IntoArguments, Type};
use std::str::FromStr;
use std::time::Instant;

const COLUMNS: [&str; 24] = [
    "id",
    "accepted_at",
    "ended_at",
    "direction",
    "account",
    "peer",
    "source",
    "source_ton",
    "source_npi",
    "destination",
    "destination_ton",
    "destination_npi",
    "state",
    "error",
    "peer_message_id",
    "attempts",
    "priority",
    "data_coding",
    "udhi",
    "body",
    "router",
    "router_version",
    "note",
    "trace",
];

/// Rows that the pump has written, read back.
pub(crate) async fn rows(archive: &Archive, most: u64) -> Result<Vec<Record>> {
    let (mut rows, mut after) = (Vec::new(), None);
    while (rows.len() as u64) < most {
        let page = archive
            .page(&ArchiveFilter::default(), after, 1000, RecordFields { body: true, trace: true })
            .await?;
        rows.extend(page.records);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    rows.reverse();
    Ok(rows)
}

/// A database connection.
pub(crate) enum PlainInserter {
    Sqlite(SqliteConnection),
    MySql(MySqlConnection),
    Postgres(PgConnection),
}

impl PlainInserter {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        Ok(match url.split(':').next() {
            Some("sqlite") => {
                // As durable as the pump, with the same amount of memory.
                let options = SqliteConnectOptions::from_str(url)?
                    .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
                    .synchronous(sqlx::sqlite::SqliteSynchronous::Full)
                    .pragma("cache_size", "-65536")
                    .pragma("wal_autocheckpoint", "4000");
                Self::Sqlite(SqliteConnection::connect_with(&options).await?)
            }
            Some("postgres") => Self::Postgres(PgConnection::connect(url).await?),
            _ => Self::MySql(MySqlConnection::connect(url).await?),
        })
    }

    /// Statement sizes (in rows) to try.
    pub(crate) fn sizes(&self) -> &'static [usize] {
        match self {
            Self::Sqlite(_) => &[1, 50, 500],
            Self::MySql(_) | Self::Postgres(_) => &[100, 500, 2000],
        }
    }

    /// Inserts all rows under new ids, in transactions of the same size as the pump's; returns the rate.
    pub(crate) async fn insert(&mut self, rows: &[Record], id: &mut i64, size: usize) -> Result<f64> {
        let begun = Instant::now();
        for batch in rows.chunks(super::BATCH) {
            match self {
                Self::Sqlite(connection) => {
                    let mut transaction = connection.begin().await?;
                    for some in batch.chunks(size) {
                        let arguments = arguments::<sqlx::Sqlite, SqliteArguments>(some, id)?;
                        let sql = AssertSqlSafe(statement(some.len(), false));
                        sqlx::query_with(sql, arguments).execute(&mut *transaction).await?;
                    }
                    transaction.commit().await?;
                }
                Self::MySql(connection) => {
                    let mut transaction = connection.begin().await?;
                    for some in batch.chunks(size) {
                        let arguments = arguments::<sqlx::MySql, MySqlArguments>(some, id)?;
                        let sql = AssertSqlSafe(statement(some.len(), false));
                        sqlx::query_with(sql, arguments).execute(&mut *transaction).await?;
                    }
                    transaction.commit().await?;
                }
                Self::Postgres(connection) => {
                    let mut transaction = connection.begin().await?;
                    for some in batch.chunks(size) {
                        let arguments = arguments::<sqlx::Postgres, PgArguments>(some, id)?;
                        let sql = AssertSqlSafe(statement(some.len(), true));
                        sqlx::query_with(sql, arguments).execute(&mut *transaction).await?;
                    }
                    transaction.commit().await?;
                }
            }
        }
        Ok(rows.len() as f64 / begun.elapsed().as_secs_f64())
    }
}

fn statement(rows: usize, numbered: bool) -> String {
    let mut number = 0;
    let mut place = || {
        number += 1;
        if numbered { format!("${number}") } else { "?".to_owned() }
    };
    let rows: Vec<_> = (0..rows)
        .map(|_| format!("({})", (0..COLUMNS.len()).map(|_| place()).collect::<Vec<_>>().join(",")))
        .collect();
    format!("INSERT INTO messages ({}) VALUES {}", COLUMNS.join(","), rows.join(","))
}

fn arguments<DB, A>(rows: &[Record], id: &mut i64) -> Result<A>
where
    DB: Database<Arguments = A>,
    A: Arguments<Database = DB> + IntoArguments<DB>,
    for<'q> i64: Encode<'q, DB> + Type<DB>,
    for<'q> i16: Encode<'q, DB> + Type<DB>,
    for<'q> &'q str: Encode<'q, DB> + Type<DB>,
    for<'q> Option<&'q str>: Encode<'q, DB> + Type<DB>,
    for<'q> Option<&'q [u8]>: Encode<'q, DB> + Type<DB>,
{
    let mut all = A::default();
    let failed = |error| anyhow::anyhow!("a value cannot be bound: {error}");
    for row in rows {
        *id += 1;
        let milliseconds = |at: model::Timestamp| i64::try_from(at.0).context("a time");
        all.add(*id).map_err(failed)?;
        all.add(milliseconds(row.accepted_at)?).map_err(failed)?;
        all.add(milliseconds(row.ended_at)?).map_err(failed)?;
        all.add(row.direction.name()).map_err(failed)?;
        all.add(row.account.as_str()).map_err(failed)?;
        all.add(row.peer.as_str()).map_err(failed)?;
        all.add(row.source.as_str()).map_err(failed)?;
        all.add(i16::from(row.source_ton)).map_err(failed)?;
        all.add(i16::from(row.source_npi)).map_err(failed)?;
        all.add(row.destination.as_str()).map_err(failed)?;
        all.add(i16::from(row.destination_ton)).map_err(failed)?;
        all.add(i16::from(row.destination_npi)).map_err(failed)?;
        all.add(row.state.name()).map_err(failed)?;
        all.add(i64::from(row.error)).map_err(failed)?;
        all.add(row.peer_message_id.as_deref()).map_err(failed)?;
        all.add(i16::try_from(row.attempts)?).map_err(failed)?;
        all.add(i16::from(row.priority)).map_err(failed)?;
        all.add(i16::from(row.data_coding)).map_err(failed)?;
        all.add(i16::from(row.udhi)).map_err(failed)?;
        all.add(row.body.as_deref()).map_err(failed)?;
        all.add(row.router.as_str()).map_err(failed)?;
        all.add(row.router_version.as_str()).map_err(failed)?;
        all.add(row.note.as_deref()).map_err(failed)?;
        all.add(row.trace.as_deref().map(serde_json::value::RawValue::get)).map_err(failed)?;
    }
    Ok(all)
}

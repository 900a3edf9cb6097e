//! PostgreSQL.

use super::{Backend, ErrorCause, Readers, Session, Table, cause_of_sqlstate, fault};
use crate::error::Fault;
use crate::measures::StatisticsDelta;
use crate::raw_batch::RowParts;
use crate::row::Row;
use crate::sql::{COLUMNS, ColumnType, Dialect, Statement, Value, add_sums, values};
use crate::{ArchiveOptions, RawBatch};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use std::str::FromStr;

const MIGRATIONS: [(i64, &str, &str); 5] = [
    (1, "messages", include_str!("../../migrations/postgres/0001_messages.sql")),
    (2, "decisions", include_str!("../../migrations/postgres/0002_decisions.sql")),
    (3, "audit", include_str!("../../migrations/postgres/0003_audit.sql")),
    (4, "content erased", include_str!("../../migrations/postgres/0004_content_erased.sql")),
    (5, "text key", include_str!("../../migrations/postgres/0005_text_key.sql")),
];

pub(crate) struct Postgres {
    options: PgConnectOptions,
    readers: Readers<sqlx::Postgres>,
}

impl Postgres {
    pub(crate) fn new(url: &str, options: &ArchiveOptions) -> Result<Self, sqlx::Error> {
        let connect = PgConnectOptions::from_str(url)?
            .application_name("switchyard")
            // Hides notices such as "relation already exists, skipping".
            .options([("client_min_messages", "warning"), ("lock_timeout", "10000")])
            .disable_statement_logging();
        Ok(Self { options: connect, readers: Readers::new(options) })
    }

    async fn connection(&self) -> Result<PgConnection, Fault> {
        let mut connection = PgConnection::connect_with(&self.options).await.map_err(classify)?;
        super::migrate(&mut connection, &MIGRATIONS, true).await?;
        Ok(connection)
    }
}

impl Backend for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn overwrite_unused(&self) -> BoxFuture<'_, Result<(), Fault>> {
        async { Ok(()) }.boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn Session>, Fault>> {
        async { Ok(Box::new(self.connection().await?) as Box<dyn Session>) }.boxed()
    }

    fn select<'a>(
        &'a self,
        statement: &'a Statement,
        kinds: &'a [ColumnType],
    ) -> BoxFuture<'a, Result<Table, Fault>> {
        async {
            let pool = self.readers.pool(self.connection(), || self.options.clone()).await?;
            super::select(pool, statement, kinds).await.map_err(classify)
        }
        .boxed()
    }
}

impl Session for PgConnection {
    driver_methods!();

    fn insert<'a>(
        &'a mut self,
        rows: &'a [Row],
        sums: &'a StatisticsDelta,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        async {
            let copied = copied(rows)?;
            let mut transaction = self.begin().await.map_err(classify)?;
            let mut copy = transaction.copy_in_raw(&copy_statement()).await.map_err(classify)?;
            copy.send(copied).await.map_err(classify)?;
            copy.finish().await.map_err(classify)?;
            for statement in add_sums(Dialect::Postgres, sums, &[256]) {
                super::execute(&mut *transaction, &statement).await.map_err(classify)?;
            }
            transaction.commit().await.map_err(classify)
        }
        .boxed()
    }

    fn mark_erasure(&mut self) -> BoxFuture<'_, Result<(), Fault>> {
        async { Ok(()) }.boxed()
    }

    fn overwrite_erased(&mut self) -> BoxFuture<'_, Result<(), Fault>> {
        // The server purges old versions of rows itself.
        async { Ok(()) }.boxed()
    }

    fn scan<'a>(
        &'a mut self,
        statement: &'a Statement,
        parts: RowParts,
    ) -> BoxFuture<'a, Result<RawBatch, Fault>> {
        async move { super::scan(self, statement, parts).await.map_err(classify) }.boxed()
    }
}

/// `COPY … FROM STDIN` costs the server about half as much as an INSERT of the same rows.
fn copy_statement() -> String {
    let names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
    format!("COPY messages ({}) FROM STDIN (FORMAT binary)", names.join(","))
}

/// Rows in COPY's binary format (PostgreSQL documentation, "COPY", section "Binary Format"): signature, flags, no
/// extension; per row the number of fields and each field with its length, -1 for NULL; finally -1.
fn copied(rows: &[Row]) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::with_capacity(rows.iter().map(|row| row.weight() + 4 * COLUMNS.len()).sum());
    out.extend_from_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
    let fields = i16::try_from(COLUMNS.len()).unwrap_or(i16::MAX);
    for row in rows {
        out.extend_from_slice(&fields.to_be_bytes());
        for ((_, kind), value) in COLUMNS.iter().zip(values(row)) {
            match (kind, value) {
                (ColumnType::Small, Value::Number(number)) => {
                    let number = i16::try_from(number)
                        .map_err(|_| Fault::Row(format!("{number} has more than 16 bits")))?;
                    field(&mut out, Some(&number.to_be_bytes()))?;
                }
                (_, Value::Number(number)) => field(&mut out, Some(&number.to_be_bytes()))?,
                (_, Value::OptionalNumber(number)) => {
                    field(&mut out, number.map(i64::to_be_bytes).as_ref().map(|octets| &octets[..]))?;
                }
                (_, Value::Text(text)) => field(&mut out, text.map(str::as_bytes))?,
                (_, Value::Octets(octets)) => field(&mut out, octets)?,
            }
        }
    }
    out.extend_from_slice(&(-1i16).to_be_bytes());
    Ok(out)
}

fn field(out: &mut Vec<u8>, octets: Option<&[u8]>) -> Result<(), Fault> {
    let Some(octets) = octets else {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    };
    let length = i32::try_from(octets.len())
        .map_err(|_| Fault::Row(format!("a value of {} octets is too long", octets.len())))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(octets);
    Ok(())
}

/// Classifies by SQLSTATE (PostgreSQL documentation, appendix "Error Codes").
fn classify(error: sqlx::Error) -> Fault {
    fault(error, |refusal| match refusal.code().as_deref() {
        // unique_violation; only table `messages` can raise it, because rows of other tables are upserted.
        Some("23505") => ErrorCause::Duplicate,
        Some(state) => cause_of_sqlstate(state),
        None => ErrorCause::Unclear,
    })
}

//! MySQL and MariaDB.

use super::{Backend, ErrorCause, Readers, Session, Table, cause_of_sqlstate, fault};
use crate::error::Fault;
use crate::measures::StatisticsDelta;
use crate::raw_batch::RowParts;
use crate::row::Row;
use crate::sql::{ColumnType, Dialect, Statement, add_sums, insert_rows, split_by_sizes};
use crate::{ArchiveError, ArchiveOptions, RawBatch};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use std::str::FromStr;

const MIGRATIONS: [(i64, &str, &str); 5] = [
    (1, "messages", include_str!("../../migrations/mysql/0001_messages.sql")),
    (2, "decisions", include_str!("../../migrations/mysql/0002_decisions.sql")),
    (3, "audit", include_str!("../../migrations/mysql/0003_audit.sql")),
    (4, "content erased", include_str!("../../migrations/mysql/0004_content_erased.sql")),
    (5, "text key", include_str!("../../migrations/mysql/0005_text_key.sql")),
];

/// Rows per statement. Few sizes keep the number of prepared statements small: dropping one costs 40 ms, because the
/// driver leaves Nagle's algorithm on and a command without a response (COM_STMT_CLOSE) delays the next.
const ROWS: [usize; 5] = [256, 64, 16, 4, 1];

/// The same for statistics keys.
const KEYS: [usize; 4] = [64, 16, 4, 1];

/// Maximum size of one statement's values in octets; a server accepts packets of at least 4 MiB by default.
const BATCH_OCTETS: usize = 1 << 20;

pub(crate) struct MySql {
    options: MySqlConnectOptions,
    readers: Readers<sqlx::MySql>,
}

impl MySql {
    pub(crate) fn new(url: &str, options: &ArchiveOptions) -> Result<Self, sqlx::Error> {
        let connect = MySqlConnectOptions::from_str(url)?.charset("utf8mb4").disable_statement_logging();
        Ok(Self { options: connect, readers: Readers::new(options) })
    }

    async fn connection(&self) -> Result<MySqlConnection, Fault> {
        let mut connection = MySqlConnection::connect_with(&self.options).await.map_err(classify)?;
        // A server without strict mode would truncate silently, and a deadlocked reader must not block the pump for
        // InnoDB's 50 s.
        sqlx::raw_sql(
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 10",
        )
        .execute(&mut connection)
        .await
        .map_err(classify)?;
        // One daemon at a time. The driver's own lock requests an endless timeout, which MariaDB does not support.
        let lock = "SELECT GET_LOCK(SHA1(CONCAT('switchyard archive ', DATABASE())), 60)";
        let locked: Option<i64> =
            sqlx::query_scalar(lock).fetch_one(&mut connection).await.map_err(classify)?;
        if locked != Some(1) {
            return Err(Fault::Down(ArchiveError::Migration(
                "lock timeout: another daemon is migrating the tables".into(),
            )));
        }
        // DDL is not transactional here. The migrations are idempotent, so an interrupted one is run again.
        let _ = sqlx::raw_sql("DELETE FROM schema_versions WHERE success = 0").execute(&mut connection).await;
        super::migrate(&mut connection, &MIGRATIONS, false).await?;
        sqlx::raw_sql("DO RELEASE_LOCK(SHA1(CONCAT('switchyard archive ', DATABASE())))")
            .execute(&mut connection)
            .await
            .map_err(classify)?;
        Ok(connection)
    }
}

impl Backend for MySql {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
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

impl Session for MySqlConnection {
    driver_methods!();

    fn insert<'a>(
        &'a mut self,
        rows: &'a [Row],
        sums: &'a StatisticsDelta,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        async {
            let mut transaction = self.begin().await.map_err(classify)?;
            let heavy = rows.iter().map(Row::weight).max().unwrap_or(0) * ROWS[0] > BATCH_OCTETS;
            for some in split_by_sizes(rows, if heavy { &ROWS[3..] } else { &ROWS }) {
                let arguments = super::row_arguments::<sqlx::MySql>(some)?;
                let sql = AssertSqlSafe(insert_rows(Dialect::MySql, some.len()));
                sqlx::query_with(sql, arguments).execute(&mut *transaction).await.map_err(classify)?;
            }
            for statement in add_sums(Dialect::MySql, sums, &KEYS) {
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

/// Classifies by error number (identical in MySQL and MariaDB), then by SQLSTATE.
fn classify(error: sqlx::Error) -> Fault {
    fault(error, |refusal| {
        let number = refusal.try_downcast_ref::<MySqlDatabaseError>().map_or(0, MySqlDatabaseError::number);
        match number {
            // ER_DUP_ENTRY; only table `messages` can raise it, because rows of other tables are upserted.
            1062 => ErrorCause::Duplicate,
            // Incorrect value, incorrect string, packet, row or record too large; a check constraint.
            1366 | 1292 | 1153 | 1118 | 139 | 1301 | 3819 | 4025 => ErrorCause::Row,
            // Disk full, out of memory, too many connections, read-only, lock wait, deadlock, shutdown, killed.
            1021 | 1037 | 1038 | 1040 | 1041 | 1053 | 1114 | 1205 | 1213 | 1290 | 1317 | 1836 | 1927
            | 3024 => ErrorCause::Server,
            _ => refusal.code().map_or(ErrorCause::Unclear, |state| cause_of_sqlstate(&state)),
        }
    })
}

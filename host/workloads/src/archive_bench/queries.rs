//! Queries of a large history.

use super::memory_source::{SUBSCRIBERS, number};
use anyhow::{Result, ensure};
use archive::{Archive, ArchiveFilter, RecordFields};
use model::MessageId;
use sqlx::{AssertSqlSafe, Connection};
use std::time::Instant;

/// Query latencies in milliseconds.
pub(crate) struct QueryTimes {
    pub(crate) rows: u64,
    /// p50, p99 and maximum.
    pub(crate) by_number: (f64, f64, f64),
    /// p50.
    pub(crate) by_id: f64,
}

/// Rows copied by one statement.
const STEP: u64 = 100_000;

pub(crate) fn measure(
    archive: &Archive,
    url: &str,
    rows: u64,
    questions: u64,
    runtime: &tokio::runtime::Runtime,
) -> Result<QueryTimes> {
    let rows = runtime.block_on(fill(url, rows))?;
    let (mut by_number, mut by_id) = (Vec::new(), Vec::new());
    let mut found = 0;
    for question in 0..questions.max(1) {
        // In a short history, not all subscribers have a message.
        let subscriber = question.wrapping_mul(7_368_787) % SUBSCRIBERS.min(rows);
        let filter = ArchiveFilter { number: Some(number(subscriber)), ..ArchiveFilter::default() };
        let begun = Instant::now();
        let page = runtime.block_on(archive.page(&filter, None, 50, RecordFields::default()))?;
        by_number.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(!page.records.is_empty(), "no message for subscriber {subscriber}");
        found += page.records.len();
        let id = MessageId(MessageId::FIRST.0 + question.wrapping_mul(48_271_939) % rows);
        let begun = Instant::now();
        ensure!(runtime.block_on(archive.get(id))?.is_some(), "message {id} is not there");
        by_id.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    by_number.sort_by(f64::total_cmp);
    by_id.sort_by(f64::total_cmp);
    let share = |times: &[f64], share: f64| {
        times.get(((times.len() - 1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
    };
    println!("    {} messages per query by number, of {} rows", found / by_number.len(), rows);
    Ok(QueryTimes {
        rows,
        by_number: (share(&by_number, 0.5), share(&by_number, 0.99), share(&by_number, 1.0)),
        by_id: share(&by_id, 0.5),
    })
}

/// Copies the existing rows with other ids, numbers and times until there are `wanted` rows.
pub(crate) async fn fill(url: &str, wanted: u64) -> Result<u64> {
    let first = MessageId::FIRST.0;
    let (mut have, begun) = (count(url).await?, Instant::now());
    let block = have.min(STEP);
    ensure!(block > 0, "nothing to copy");
    // Copies from a separate table: MySQL buffers the rows of a statement that reads the table it writes to.
    let seed = format!("CREATE TABLE seed AS SELECT * FROM messages WHERE id < {}", first + block);
    run(url, &seed).await?;
    while have < wanted {
        let (offset, upper) = (have, first + block.min(wanted - have));
        // The same mixing as in `number`, in arithmetic that all three databases support.
        let id = format!("(id + {offset})");
        let mixed = format!("{} + ({id} * 48271) % {SUBSCRIBERS}", 491_700_000_000_u64);
        let destination = if url.starts_with("sqlite") || url.starts_with("postgres") {
            format!("CAST({mixed} AS TEXT)")
        } else {
            format!("CAST({mixed} AS CHAR)")
        };
        run(
            url,
            &format!(
                "INSERT INTO messages SELECT {id}, accepted_at + {offset} * 2, ended_at + {offset} * 2, direction, account, \
                 peer, source, source_ton, source_npi, {destination}, destination_ton, destination_npi, state, error, \
                 peer_message_id, attempts, priority, data_coding, udhi, body, router, router_version, note, trace, price, \
                 price_account, price_state, decision \
                 FROM seed WHERE id < {upper}"
            ),
        )
        .await?;
        have = offset + (upper - first);
    }
    // Maintenance that a server does by itself within minutes after many inserts. It must not overlap the measured
    // queries.
    let settle = match url.split(':').next() {
        Some("sqlite") => "PRAGMA wal_checkpoint(TRUNCATE)",
        Some("postgres") => "VACUUM (ANALYZE) messages",
        _ => "ANALYZE TABLE messages",
    };
    run(url, settle).await?;
    if url.starts_with("postgres") {
        run(url, "CHECKPOINT").await?;
    }
    println!("    filled up to {have} rows in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(have)
}

async fn run(url: &str, statement: &str) -> Result<()> {
    let sql = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
    match url.split(':').next() {
        Some("sqlite") => {
            let mut connection = sqlx::SqliteConnection::connect(url).await?;
            sql.execute(&mut connection).await?;
            connection.close().await?;
        }
        Some("postgres") => {
            let mut connection = sqlx::PgConnection::connect(url).await?;
            sql.execute(&mut connection).await?;
            connection.close().await?;
        }
        _ => {
            let mut connection = sqlx::MySqlConnection::connect(url).await?;
            sql.execute(&mut connection).await?;
            connection.close().await?;
        }
    }
    Ok(())
}

async fn count(url: &str) -> Result<u64> {
    let sql = "SELECT count(*) FROM messages";
    let count: i64 = match url.split(':').next() {
        Some("sqlite") => {
            sqlx::query_scalar(sql).fetch_one(&mut sqlx::SqliteConnection::connect(url).await?).await?
        }
        Some("postgres") => {
            sqlx::query_scalar(sql).fetch_one(&mut sqlx::PgConnection::connect(url).await?).await?
        }
        _ => sqlx::query_scalar(sql).fetch_one(&mut sqlx::MySqlConnection::connect(url).await?).await?,
    };
    Ok(u64::try_from(count)?)
}

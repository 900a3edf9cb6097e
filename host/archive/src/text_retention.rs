//! Erases the contents of messages of accounts that keep texts for a limited time.
//!
//! The table `text_retention` has, for each account, the id up to which its contents are erased. So a run reads only new
//! rows. After a start, the rows of the last two weeks are read again, for messages that were archived late.

use crate::Archive;
use crate::backend::Session;
use crate::content_erasure::{STEP, erase_rows};
use crate::error::Fault;
use crate::measures::HOUR;
use crate::retention::first_number;
use crate::sql::{Cell, ColumnType, Dialect, Statement};
use model::{ContentErasure, MessageId, Timestamp};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The author of the erasure, in the trace of a message.
const BY: &str = "text-retention";

/// Number of rows that one statement scans.
const WINDOW: i64 = 500;

/// After a start, messages that were accepted within this number of hours before the last erased one are scanned again.
const LATE_HOURS: i64 = 14 * 24;

/// The text retention of accounts, by their names.
#[derive(Debug, Clone)]
pub(crate) struct TextRetention(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    accounts: Mutex<Arc<BTreeMap<String, Duration>>>,
    /// The lowest id that was archived for such an account since the last run.
    lowest_new: AtomicI64,
}

impl Default for TextRetention {
    fn default() -> Self {
        Self(Arc::new(Shared { accounts: Mutex::default(), lowest_new: AtomicI64::new(i64::MAX) }))
    }
}

impl TextRetention {
    pub(crate) fn accounts(&self) -> Arc<BTreeMap<String, Duration>> {
        self.0.accounts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records an archived message: it may be older than the messages whose contents were erased.
    pub(crate) fn archived(&self, id: i64) {
        self.0.lowest_new.fetch_min(id, Relaxed);
    }
}

impl Archive {
    /// Sets the text retention of accounts; other accounts keep texts as long as the messages. Applies within ten minutes,
    /// also while the pump runs.
    pub fn set_text_retention(&self, accounts: BTreeMap<String, Duration>) {
        *self.text_retention.0.accounts.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(accounts);
    }

    /// Erases the contents of messages whose text retention has ended at `now`, in small steps with pauses. Returns their
    /// number.
    pub(crate) async fn erase_expired(&self, now: Timestamp, is_first: bool) -> Result<u64, Fault> {
        let accounts = self.text_retention.accounts();
        if accounts.is_empty() {
            return Ok(0);
        }
        let lowest_new = self.text_retention.0.lowest_new.swap(i64::MAX, Relaxed);
        let dialect = self.backend.dialect();
        let mut session = self.backend.connect().await?;
        let run = Run { dialect, now, lowest_new, is_first };
        let erased = run.all(&mut *session, &accounts).await;
        if erased.is_err() {
            self.text_retention.archived(lowest_new);
        }
        session.close().await;
        erased
    }
}

/// One run over the table.
struct Run {
    dialect: Dialect,
    now: Timestamp,
    lowest_new: i64,
    is_first: bool,
}

impl Run {
    async fn all(
        &self,
        session: &mut dyn Session,
        accounts: &BTreeMap<String, Duration>,
    ) -> Result<u64, Fault> {
        let done = self.progress(session).await?;
        // Accounts with the same retention and the same progress share a search.
        let mut groups: BTreeMap<(u64, i64), Vec<&str>> = BTreeMap::new();
        for (account, retention) in accounts {
            let retention = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
            let from = done.get(account).copied().unwrap_or(i64::MIN);
            groups.entry((retention, from)).or_default().push(account);
        }
        let mut erased = 0;
        for ((retention, from), accounts) in groups {
            let before = i64::try_from(self.now.0.saturating_sub(retention)).unwrap_or(i64::MAX);
            erased += self.group(session, (from, before), &accounts).await?;
        }
        if erased > 0 {
            session.overwrite_erased().await?;
        }
        Ok(erased)
    }

    /// Erases the contents of these accounts' messages that were accepted before a time and have ids above `from`.
    async fn group(
        &self,
        session: &mut dyn Session,
        (from, before): (i64, i64),
        accounts: &[&str],
    ) -> Result<u64, Fault> {
        let hour = before / HOUR;
        let whole = self.newest_id(session, "hour < ", hour).await?;
        let Some(last) = self.newest_id(session, "hour <= ", hour).await? else { return Ok(0) };
        let mut at = from.min(self.lowest_new.saturating_sub(1));
        if self.is_first && from > i64::MIN {
            at = at.min(self.late(session, from).await?);
        }
        let mut erased = 0;
        loop {
            let begun = Instant::now();
            let mut upper =
                Statement::new(self.dialect, "SELECT max(id) FROM (SELECT id FROM messages WHERE id > ");
            upper.number(at).push(" AND id <= ").number(last);
            upper.push(" ORDER BY id LIMIT ").push(&WINDOW.to_string()).push(") AS next_ones");
            let Some(to) = first_number(session, &upper).await? else { break };
            erased += self.window(session, (at, to), before, accounts).await?;
            at = to;
            // At most a fifth of the time, so that the pump finds the database unlocked.
            tokio::time::sleep((begun.elapsed() * 4).max(Duration::from_millis(2))).await;
        }
        match whole {
            Some(whole) if whole > from => self.save(session, accounts, whole).await?,
            _ => {}
        }
        Ok(erased)
    }

    /// Erases the contents of one window of ids.
    async fn window(
        &self,
        session: &mut dyn Session,
        (from, to): (i64, i64),
        before: i64,
        accounts: &[&str],
    ) -> Result<u64, Fault> {
        let mut find = Statement::new(self.dialect, "SELECT id FROM messages WHERE id > ");
        find.number(from).push(" AND id <= ").number(to);
        find.push(" AND accepted_at < ")
            .number(before)
            .push(" AND content_erased_at IS NULL AND account IN (");
        for (index, account) in accounts.iter().enumerate() {
            find.push(if index == 0 { "" } else { "," }).text(account);
        }
        find.push(")");
        let found = session.select(&find, &[ColumnType::Big]).await?;
        let ids = found.iter().filter_map(|row| u64::try_from(row.first()?.number()?).ok());
        let erasures: Vec<ContentErasure> =
            ids.map(|id| ContentErasure { id: MessageId(id), at: self.now, by: BY.into() }).collect();
        let mut erased = 0;
        if !erasures.is_empty() {
            session.mark_erasure().await?;
        }
        for some in erasures.chunks(STEP) {
            erased += erase_rows(session, self.dialect, some).await?;
        }
        Ok(erased)
    }

    /// The progress of the erasures by account: the id up to which contents are erased.
    async fn progress(&self, session: &mut dyn Session) -> Result<BTreeMap<String, i64>, Fault> {
        let select = Statement::new(self.dialect, "SELECT account, erased_to FROM text_retention");
        let rows = session.select(&select, &[ColumnType::Text, ColumnType::Big]).await?;
        let progress = rows.into_iter().filter_map(|row| {
            let mut cells = row.into_iter();
            let (account, to) = (cells.next()?, cells.next()?);
            Some((account.into_text()?, Cell::number(&to)?))
        });
        Ok(progress.collect())
    }

    async fn save(&self, session: &mut dyn Session, accounts: &[&str], to: i64) -> Result<(), Fault> {
        for some in accounts.chunks(STEP) {
            let mut save =
                Statement::new(self.dialect, "INSERT INTO text_retention (account, erased_to) VALUES ");
            for (index, account) in some.iter().enumerate() {
                save.push(if index == 0 { "(" } else { ",(" }).text(account).push(",").number(to).push(")");
            }
            save.push(match self.dialect {
                Dialect::MySql => " ON DUPLICATE KEY UPDATE erased_to = VALUES(erased_to)",
                Dialect::Sqlite | Dialect::Postgres => {
                    " ON CONFLICT (account) DO UPDATE SET erased_to = excluded.erased_to"
                }
            });
            session.execute(&save).await?;
        }
        Ok(())
    }

    async fn newest_id(
        &self,
        session: &mut dyn Session,
        condition: &str,
        hour: i64,
    ) -> Result<Option<i64>, Fault> {
        let mut newest = Statement::new(self.dialect, "SELECT max(last_id) FROM hours WHERE ");
        newest.push(condition).number(hour);
        first_number(session, &newest).await
    }

    /// The last id before the [`LATE_HOURS`] hours that precede the message with id `from`.
    async fn late(&self, session: &mut dyn Session, from: i64) -> Result<i64, Fault> {
        let mut hour = Statement::new(self.dialect, "SELECT max(hour) FROM hours WHERE first_id <= ");
        hour.number(from);
        let Some(hour) = first_number(session, &hour).await? else { return Ok(from) };
        let mut first = Statement::new(self.dialect, "SELECT min(first_id) FROM hours WHERE hour >= ");
        first.number(hour.saturating_sub(LATE_HOURS));
        Ok(first_number(session, &first).await?.map_or(from, |first| first.saturating_sub(1)))
    }
}

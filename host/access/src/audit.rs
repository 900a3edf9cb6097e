//! The audit log: what was done, by whom. Lines are added, none is ever changed; the oldest go when they are old enough.

use crate::AccessError;
use model::{AgeClock, Timestamp};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use utoipa::ToSchema;

/// Serial, counted from 1 without a gap but for the oldest that have gone, to what was done, as the JSON of a [`Deed`] in UTF-8.
pub(crate) const AUDIT: TableDefinition<u64, &[u8]> = TableDefinition::new("audit");

/// Characters that are kept of a field: it may come from anybody.
const LONGEST: usize = 1024;
/// How long a line is kept, unless said otherwise.
pub const AUDIT_KEPT: Duration = Duration::from_secs(400 * 86_400);

/// Lines that go with one transaction, at most: none has to wait long for those of a year.
const GOING: usize = 256;
/// Entries that one question looks at, at most.
const LOOKED_AT: usize = 100_000;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was done, or shown.
    Done,
    /// It was refused: not allowed, or wrong.
    Refused,
    /// It failed through a fault of the appliance's.
    Failed,
}

/// Something that was done or refused.
///
/// On disk, table `audit`, the value: JSON in UTF-8 of exactly these fields; those that are `None` are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deed {
    /// When, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub at: Timestamp,
    /// Who: a user's name, `token` for the house's, `token:NAME` for one that was made.
    pub by: String,
    /// What: method and route, such as `PATCH /v1/users/{name}`.
    pub what: String,
    /// To what: the parts of the path that were filled in.
    pub subject: String,
    /// More, where there is more to tell. Never a secret, never a text of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
    /// From which address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub from: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// The HTTP status.
    pub status: u16,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditEntry {
    /// Its number: counted from 1 without a gap. The oldest lines go in time, and no number comes again.
    pub serial: u64,
    /// What it says.
    #[serde(flatten)]
    pub deed: Deed,
}

/// Which lines are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    /// Only those before this one.
    pub before: Option<u64>,
    /// Lines, at most.
    pub limit: usize,
    /// Only by him.
    pub by: Option<String>,
    /// Only those in whose `what` this stands.
    pub what: Option<String>,
    /// Only to this.
    pub subject: Option<String>,
}

/// Some lines, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditPage {
    /// The lines.
    pub entries: Vec<AuditEntry>,
    /// `before` of the next page; nothing at the end. A page may be short, even empty, and not be the last: only so many lines
    /// are looked at for one.
    #[schema(required)]
    pub next: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    database: Arc<Database>,
    kept: Duration,
    ages: AgeClock,
    opened: Instant,
    waiting: parking_lot::Mutex<Vec<Waiting>>,
    committing: parking_lot::Mutex<()>,
}

#[derive(Debug)]
struct Waiting {
    deed: Deed,
    answer: Answer,
}

/// Where the one that commits puts the serial of a line.
type Answer = Arc<parking_lot::Mutex<Option<Result<u64, AccessError>>>>;

fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(at);
        text.push('…');
    }
}

impl Audit {
    pub(crate) fn new(path: &Path, database: Arc<Database>) -> Result<Self, AccessError> {
        let opened = Instant::now();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ages = AgeClock::believed(Timestamp::default() + wall);
        let (waiting, committing) = Default::default();
        let mut audit =
            Self { path: path.to_owned(), database, kept: AUDIT_KEPT, ages, opened, waiting, committing };
        let newest = audit.newest().map_err(|error| audit.failed(error))?;
        audit.ages = AgeClock::checked(Timestamp::default() + wall, newest);
        Ok(audit)
    }

    /// When the newest line was written; one that cannot be read is of no time that is near.
    fn newest(&self) -> Result<Option<Timestamp>, redb::Error> {
        let table = self.database.begin_read()?.open_table(AUDIT)?;
        let newest = table.last()?;
        Ok(newest.map(|(_, line)| {
            serde_json::from_slice::<Deed>(line.value()).map_or(Timestamp::default(), |deed| deed.at)
        }))
    }

    /// Whether lines go when they are old enough: not while the clock of this start is doubted.
    pub(crate) fn lets_go(&self) -> bool {
        self.ages.is_believed()
    }

    pub(crate) fn keep(&mut self, kept: Duration) {
        self.kept = kept;
    }

    fn failed(&self, error: redb::Error) -> AccessError {
        AccessError::Store { path: self.path.clone(), source: Arc::new(error) }
    }

    /// Adds a line; it is durable when this returns. Those that come while one is written share the next transaction: whoever
    /// gets the lock first commits for all that wait.
    pub(crate) fn add(&self, mut deed: Deed) -> Result<u64, AccessError> {
        for text in [&mut deed.by, &mut deed.what, &mut deed.subject].into_iter().chain(&mut deed.detail) {
            cut(text);
        }
        let answer = Answer::default();
        self.waiting.lock().push(Waiting { deed, answer: answer.clone() });
        let committing = self.committing.lock();
        if let Some(answered) = answer.lock().take() {
            return answered;
        }
        let together = std::mem::take(&mut *self.waiting.lock());
        let written = self.write(&together);
        for (turn, waiting) in together.iter().enumerate() {
            let serial = written.as_ref().map(|first| first + turn as u64).map_err(Clone::clone);
            *waiting.answer.lock() = Some(serial);
        }
        drop(committing);
        let mine = answer.lock().take();
        mine.unwrap_or_else(|| Err(self.damaged("a line that was to be written was lost")))
    }

    /// Gives back the serial of the first line.
    fn write(&self, together: &[Waiting]) -> Result<u64, AccessError> {
        let write = || -> Result<u64, redb::Error> {
            let transaction = self.database.begin_write()?;
            let first = {
                let mut table = transaction.open_table(AUDIT)?;
                let first = table.last()?.map_or(1, |(serial, _)| serial.value() + 1);
                for (serial, waiting) in (first..).zip(together) {
                    let octets = serde_json::to_vec(&waiting.deed).map_err(std::io::Error::other)?;
                    table.insert(serial, octets.as_slice())?;
                }
                // After the new ones, so that the log is never empty and a serial never comes twice.
                let newest = together.iter().map(|waiting| waiting.deed.at.0).max().unwrap_or(0);
                if let Some(now) = self.ages.now(self.opened.elapsed(), Timestamp(newest)) {
                    self.let_go(&mut table, now.0, first)?;
                }
                first
            };
            transaction.commit()?;
            Ok(first)
        };
        write().map_err(|error| self.failed(error))
    }

    /// Takes lines away from the old end, up to the first that is young enough; one that cannot be read stays for those who ask.
    fn let_go(
        &self,
        table: &mut redb::Table<'_, u64, &[u8]>,
        newest: u64,
        first: u64,
    ) -> Result<(), redb::Error> {
        let kept = u64::try_from(self.kept.as_millis()).unwrap_or(u64::MAX);
        let Some(until) = newest.checked_sub(kept) else { return Ok(()) };
        let mut end = None;
        for row in table.range(..first)?.take(GOING) {
            let (serial, value) = row?;
            match serde_json::from_slice::<Deed>(value.value()) {
                Ok(deed) if deed.at.0 < until => end = Some(serial.value()),
                _ => break,
            }
        }
        let Some(end) = end else { return Ok(()) };
        table.retain_in(..=end, |_, _| false)?;
        Ok(())
    }

    fn damaged(&self, what: impl Into<String>) -> AccessError {
        AccessError::Damaged { path: self.path.clone(), what: what.into() }
    }

    pub(crate) fn page(&self, query: &AuditQuery) -> Result<AuditPage, AccessError> {
        let failed = |error: redb::Error| self.failed(error);
        let transaction = self.database.begin_read().map_err(|error| failed(error.into()))?;
        let table = transaction.open_table(AUDIT).map_err(|error| failed(error.into()))?;
        let rows = table.range(..query.before.unwrap_or(u64::MAX)).map_err(|error| failed(error.into()))?;
        let mut entries = Vec::new();
        for (looked_at, row) in rows.rev().enumerate() {
            let (serial, value) = row.map_err(|error| failed(error.into()))?;
            let serial = serial.value();
            if entries.len() >= query.limit.max(1) || looked_at >= LOOKED_AT {
                return Ok(AuditPage { entries, next: Some(serial + 1) });
            }
            let deed: Deed = serde_json::from_slice(value.value())
                .map_err(|error| self.damaged(format!("line {serial} of the audit log: {error}")))?;
            if query.takes(&deed) {
                entries.push(AuditEntry { serial, deed });
            }
        }
        Ok(AuditPage { entries, next: None })
    }
}

impl AuditQuery {
    fn takes(&self, deed: &Deed) -> bool {
        self.by.as_ref().is_none_or(|by| *by == deed.by)
            && self.what.as_ref().is_none_or(|what| deed.what.contains(what))
            && self.subject.as_ref().is_none_or(|subject| *subject == deed.subject)
    }
}

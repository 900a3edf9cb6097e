//! The audit log of admin operations, with caller and time. Records are appended and never changed. Expired records are
//! deleted, oldest first.

use crate::AccessError;
use api::{AuditEntry, AuditPage, AuditRecord};
use model::{AccountScope, AgeClock, Timestamp};
use parking_lot::Mutex;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Table of audit records. Key: serial, counted from 1 without a gap; value: JSON of an [`AuditRecord`] in UTF-8.
pub(crate) const AUDIT: TableDefinition<u64, &[u8]> = TableDefinition::new("audit");

/// Maximum characters of a text field. Callers control the texts.
const MAX_FIELD_CHARS: usize = 1024;
/// Default retention of audit records: 400 days.
pub const DEFAULT_AUDIT_RETENTION: Duration = Duration::from_secs(400 * 86_400);

/// Maximum expired records deleted in one transaction. It bounds the latency of an append.
const TRIM_BATCH: usize = 256;
/// Maximum records scanned for one page.
const SCAN_LIMIT: usize = 100_000;

/// A query of the audit log. All conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    /// Only records before this serial.
    pub before: Option<u64>,
    /// Maximum number of records.
    pub limit: usize,
    /// Only operations of this caller.
    pub by: Option<String>,
    /// Only records whose `what` contains this text.
    pub what: Option<String>,
    /// Only operations on this subject.
    pub subject: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    database: Arc<Database>,
    retention: Mutex<Duration>,
    age_clock: AgeClock,
    opened: Instant,
    pending: parking_lot::Mutex<Vec<PendingRecord>>,
    commit_lock: parking_lot::Mutex<()>,
}

#[derive(Debug)]
struct PendingRecord {
    record: AuditRecord,
    answer: SerialSlot,
}

/// Slot for the serial of a record. The thread that commits the batch fills it.
type SerialSlot = Arc<parking_lot::Mutex<Option<Result<u64, AccessError>>>>;

fn truncate_field(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(MAX_FIELD_CHARS) {
        text.truncate(at);
        text.push('…');
    }
}

impl Audit {
    pub(crate) fn new(path: &Path, database: Arc<Database>) -> Result<Self, AccessError> {
        let opened = Instant::now();
        let now = Timestamp::now();
        let age_clock = AgeClock::trusted(now);
        let (pending, commit_lock) = Default::default();
        let mut audit = Self {
            path: path.to_owned(),
            database,
            retention: Mutex::new(DEFAULT_AUDIT_RETENTION),
            age_clock,
            opened,
            pending,
            commit_lock,
        };
        let newest = audit.newest().map_err(|error| audit.failed(error))?;
        audit.age_clock = AgeClock::checked(now, newest);
        Ok(audit)
    }

    /// The time of the newest record; the epoch if that record cannot be read.
    fn newest(&self) -> Result<Option<Timestamp>, redb::Error> {
        let table = self.database.begin_read()?.open_table(AUDIT)?;
        let newest = table.last()?;
        Ok(newest.map(|(_, line)| {
            serde_json::from_slice::<AuditRecord>(line.value())
                .map_or(Timestamp::default(), |record| record.at)
        }))
    }

    /// Whether expired records are deleted. False while the clock of this start is not trusted.
    pub(crate) fn trims(&self) -> bool {
        self.age_clock.is_trusted()
    }

    pub(crate) fn set_retention(&self, retention: Duration) {
        *self.retention.lock() = retention;
    }

    fn failed(&self, error: redb::Error) -> AccessError {
        AccessError::Store { path: self.path.clone(), source: Arc::new(error) }
    }

    /// Appends a record; it is durable on return. Records that arrive during a commit share the next transaction: the first
    /// thread to get the lock commits the whole batch.
    pub(crate) fn add(&self, mut record: AuditRecord) -> Result<u64, AccessError> {
        for text in
            [&mut record.by, &mut record.what, &mut record.subject].into_iter().chain(&mut record.detail)
        {
            truncate_field(text);
        }
        let answer = SerialSlot::default();
        self.pending.lock().push(PendingRecord { record, answer: answer.clone() });
        let commit_lock = self.commit_lock.lock();
        if let Some(answered) = answer.lock().take() {
            return answered;
        }
        let batch = std::mem::take(&mut *self.pending.lock());
        let written = self.write(&batch);
        for (turn, pending) in batch.iter().enumerate() {
            let serial = written.as_ref().map(|first| first + turn as u64).map_err(Clone::clone);
            *pending.answer.lock() = Some(serial);
        }
        drop(commit_lock);
        let mine = answer.lock().take();
        mine.unwrap_or_else(|| Err(self.damaged("a pending audit record was lost")))
    }

    /// Writes a batch in one transaction and returns the serial of its first record.
    fn write(&self, batch: &[PendingRecord]) -> Result<u64, AccessError> {
        let write = || -> Result<u64, redb::Error> {
            let transaction = self.database.begin_write()?;
            let first = {
                let mut table = transaction.open_table(AUDIT)?;
                let first = table.last()?.map_or(1, |(serial, _)| serial.value() + 1);
                for (serial, pending) in (first..).zip(batch) {
                    let octets = serde_json::to_vec(&pending.record).map_err(std::io::Error::other)?;
                    table.insert(serial, octets.as_slice())?;
                }
                // Delete after inserting: the log never becomes empty, so no serial is reused.
                let newest = batch.iter().map(|pending| pending.record.at.0).max().unwrap_or(0);
                if let Some(now) = self.age_clock.now(self.opened.elapsed(), Timestamp(newest)) {
                    self.trim(&mut table, now.0, first)?;
                }
                first
            };
            transaction.commit()?;
            Ok(first)
        };
        write().map_err(|error| self.failed(error))
    }

    /// Deletes expired records from the oldest on. Stops at the first record that has not expired or cannot be read.
    fn trim(
        &self,
        table: &mut redb::Table<'_, u64, &[u8]>,
        newest: u64,
        first: u64,
    ) -> Result<(), redb::Error> {
        let retention = u64::try_from(self.retention.lock().as_millis()).unwrap_or(u64::MAX);
        let Some(until) = newest.checked_sub(retention) else { return Ok(()) };
        let mut end = None;
        for row in table.range(..first)?.take(TRIM_BATCH) {
            let (serial, value) = row?;
            match serde_json::from_slice::<AuditRecord>(value.value()) {
                Ok(record) if record.at.0 < until => end = Some(serial.value()),
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

    fn decode(&self, serial: u64, octets: &[u8]) -> Result<AuditEntry, AccessError> {
        let record = serde_json::from_slice(octets)
            .map_err(|error| self.damaged(format!("record {serial} of the audit log: {error}")))?;
        Ok(AuditEntry { serial, record })
    }

    /// The records after this one, oldest first.
    pub(crate) fn after(&self, serial: u64, limit: usize) -> Result<Vec<AuditEntry>, AccessError> {
        let read = || -> Result<Vec<(u64, Vec<u8>)>, redb::Error> {
            let table = self.database.begin_read()?.open_table(AUDIT)?;
            let rows = table.range(serial.saturating_add(1)..)?.take(limit);
            rows.map(|row| row.map(|(serial, value)| (serial.value(), value.value().to_vec())))
                .collect::<Result<_, _>>()
                .map_err(Into::into)
        };
        let rows = read().map_err(|error| self.failed(error))?;
        rows.iter().map(|(serial, octets)| self.decode(*serial, octets)).collect()
    }

    /// A page of the records that are in the scope.
    pub(crate) fn page(&self, query: &AuditQuery, scope: &AccountScope) -> Result<AuditPage, AccessError> {
        let failed = |error: redb::Error| self.failed(error);
        let transaction = self.database.begin_read().map_err(|error| failed(error.into()))?;
        let table = transaction.open_table(AUDIT).map_err(|error| failed(error.into()))?;
        let rows = table.range(..query.before.unwrap_or(u64::MAX)).map_err(|error| failed(error.into()))?;
        let mut entries = Vec::new();
        for (scanned, row) in rows.rev().enumerate() {
            let (serial, value) = row.map_err(|error| failed(error.into()))?;
            let serial = serial.value();
            if entries.len() >= query.limit.max(1) || scanned >= SCAN_LIMIT {
                return Ok(AuditPage { entries, next: Some(serial + 1) });
            }
            let entry = self.decode(serial, value.value())?;
            if scope.has_tenant(entry.record.tenant.as_deref()) && query.matches(&entry.record) {
                entries.push(entry);
            }
        }
        Ok(AuditPage { entries, next: None })
    }
}

impl AuditQuery {
    fn matches(&self, record: &AuditRecord) -> bool {
        self.by.as_ref().is_none_or(|by| *by == record.by)
            && self.what.as_ref().is_none_or(|what| record.what.contains(what))
            && self.subject.as_ref().is_none_or(|subject| *subject == record.subject)
    }
}

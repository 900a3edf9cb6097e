//! Copy of the log on the disk of a node, for the readers of the journal: event sinks and CDR files.
//!
//! etcd keeps only the last records. Each node writes the records that it appends or follows into a local journal, with
//! the numbers of the log. So a new leader has the records that the readers of the previous leader had not read. A
//! thread writes the copy shortly after the log; records that the copy lacks after a crash are read from etcd again.
//! The copy contains only records that a majority of etcd has.

use journal::{Journal as _, JournalError, JournalHold, JournalOptions, JournalReader, JournalRecord};
use journal::{LocalJournal, Seq};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Maximum number of records in the queue of the thread. When it is full, the log waits.
const MAX_WAITING: usize = 1024;
/// Number of records after which segments that no reader needs are removed, at the latest.
const RETIRE_INTERVAL: usize = 64;

/// Copy of the log on the disk of this node.
///
/// On disk: a local journal in a folder named by the number of the cluster, inside a folder of the data directory.
pub struct LogCopy {
    queue: Option<SyncSender<JournalRecord>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
    reader: JournalReader,
    /// The last record that is written or in the queue.
    last: Seq,
}

impl std::fmt::Debug for LogCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogCopy").field("last", &self.last).finish_non_exhaustive()
    }
}

impl LogCopy {
    /// Opens the copy of this cluster's log; a new one begins after record `applied`. `hold` tells which records are
    /// needed.
    ///
    /// A damaged copy is replaced by an empty one: the records are in etcd and in the tables.
    ///
    /// # Errors
    /// Another process uses the copy, a newer version wrote it, or the disk fails.
    pub fn open(
        folder: &Path,
        cluster: u64,
        hold: Arc<JournalHold>,
        applied: Seq,
    ) -> Result<Self, JournalError> {
        let path = remove_others(folder, cluster)?;
        let options = JournalOptions { hold: Some(hold), ..JournalOptions::default() };
        let journal = match LocalJournal::open_copy(&path, options.clone()) {
            Err(JournalError::NotFound(_)) => LocalJournal::create(&path, options, applied)?,
            Err(error @ JournalError::Damaged { .. }) => {
                tracing::error!(%error, "the copy of the log is damaged and is started again, sinks may lose older records");
                return Self::restart_copy(folder, cluster, options, applied);
            }
            other => other?,
        };
        Self::start(journal)
    }

    /// Replaces the copy by one that begins after record `applied`, when the log no longer has the records in between.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn replace(
        folder: &Path,
        cluster: u64,
        hold: Arc<JournalHold>,
        applied: Seq,
    ) -> Result<Self, JournalError> {
        let options = JournalOptions { hold: Some(hold), ..JournalOptions::default() };
        Self::restart_copy(folder, cluster, options, applied)
    }

    fn restart_copy(
        folder: &Path,
        cluster: u64,
        options: JournalOptions,
        applied: Seq,
    ) -> Result<Self, JournalError> {
        let path = folder.join(folder_name(cluster));
        match std::fs::remove_dir_all(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(JournalError::Io { path, what: "removing", source });
            }
            _ => {}
        }
        Self::start(LocalJournal::create(&path, options, applied)?)
    }

    fn start(journal: LocalJournal) -> Result<Self, JournalError> {
        let (queue, records) = sync_channel(MAX_WAITING);
        let failure = Arc::new(Mutex::new(None));
        let (reader, last) = (journal.reader(), journal.head().seq);
        let failed = failure.clone();
        let thread = std::thread::Builder::new()
            .name("log-copy".to_owned())
            .spawn(move || write(journal, &records, &failed))
            .map_err(|source| JournalError::Io {
                path: PathBuf::from("log-copy"),
                what: "starting a thread",
                source,
            })?;
        Ok(Self { queue: Some(queue), thread: Some(thread), failure, reader, last })
    }

    /// The last record that is written or in the queue.
    #[must_use]
    pub const fn last(&self) -> Seq {
        self.last
    }

    /// A reader of the copy.
    #[must_use]
    pub fn reader(&self) -> JournalReader {
        self.reader.another()
    }

    /// Queues the next record of the log; ignores a record that the copy has. Waits while the queue is full.
    ///
    /// # Errors
    /// The disk has failed, or the record does not follow the last one. In both cases, the process must stop.
    pub(crate) fn push(&mut self, record: JournalRecord) -> Result<(), JournalError> {
        if record.seq <= self.last {
            return Ok(());
        }
        let poisoned = |cause| JournalError::Poisoned { cause };
        if record.seq != self.last.next() {
            return Err(poisoned(format!("the copy of the log ends at record {}", self.last)));
        }
        self.last = record.seq;
        let sent = self.queue.as_ref().is_some_and(|queue| queue.send(record).is_ok());
        if sent {
            return Ok(());
        }
        let cause = self.failure.lock().clone();
        Err(poisoned(cause.unwrap_or_else(|| "the thread of the copy of the log has ended".to_owned())))
    }
}

impl Drop for LogCopy {
    fn drop(&mut self) {
        // Ends the thread, which releases the folder.
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes records until the queue is closed or a write fails.
fn write(mut journal: LocalJournal, records: &Receiver<JournalRecord>, failed: &Mutex<Option<String>>) {
    while let Ok(first) = records.recv() {
        let more = records.try_iter().take(RETIRE_INTERVAL);
        for record in std::iter::once(first).chain(more) {
            if let Err(error) = journal.append_copy(&record) {
                tracing::error!(%error, "writing the copy of the log failed");
                *failed.lock() = Some(error.to_string());
                return;
            }
        }
        let head = journal.head().seq;
        // Only the readers need the records, and the hold knows which ones. On a local disk, the call cannot fail.
        let _ = journal.applied(head);
    }
}

fn folder_name(cluster: u64) -> String {
    format!("{cluster:016x}")
}

/// Removes copies of other clusters' logs. Returns the path of this cluster's copy.
fn remove_others(folder: &Path, cluster: u64) -> Result<PathBuf, JournalError> {
    let failed = |what| move |source| JournalError::Io { path: folder.to_owned(), what, source };
    std::fs::create_dir_all(folder).map_err(failed("creating"))?;
    let own = folder.join(folder_name(cluster));
    for entry in std::fs::read_dir(folder).map_err(failed("listing"))?.flatten() {
        if entry.path() != own && entry.path().is_dir() {
            std::fs::remove_dir_all(entry.path()).map_err(failed("removing the copy of another log in"))?;
        }
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::{Entry, Term};
    use std::time::Duration;

    fn record(seq: u64) -> JournalRecord {
        let entry = Entry::Payload(vec![seq as u8; 9]);
        // The log has checksums of its own.
        JournalRecord { term: Term(7), seq: Seq(seq), predecessor: 1, crc: 2, at: 1_000 + seq, entry }
    }

    fn hold() -> Arc<JournalHold> {
        Arc::new(JournalHold::new(Seq(0), 1 << 30))
    }

    fn read(copy: &LogCopy, from: u64, count: usize) -> Vec<(u64, u64)> {
        let mut reader = copy.reader();
        let mut found = Vec::new();
        while found.len() < count {
            let from = Seq(from + found.len() as u64);
            let records = reader.read(from, 1 << 20, Duration::from_secs(10)).unwrap();
            found.extend(records.into_iter().map(|record| (record.seq.0, record.at)));
        }
        found
    }

    #[test]
    fn a_copy_begins_in_the_middle_and_goes_on_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = LogCopy::open(folder.path(), 5, hold(), Seq(100)).unwrap();
        for seq in 101..=110 {
            copy.push(record(seq)).unwrap();
        }
        assert_eq!(read(&copy, 101, 10), (101..=110).map(|seq| (seq, 1_000 + seq)).collect::<Vec<_>>());
        drop(copy);
        let mut copy = LogCopy::open(folder.path(), 5, hold(), Seq(300)).unwrap();
        assert_eq!(copy.last(), Seq(110));
        // Records that it has are ignored; a gap is refused.
        for seq in 109..=112 {
            copy.push(record(seq)).unwrap();
        }
        assert!(copy.push(record(114)).is_err());
        assert_eq!(read(&copy, 109, 4).len(), 4);
        drop(copy);
        let copy = LogCopy::replace(folder.path(), 5, hold(), Seq(300)).unwrap();
        assert_eq!((copy.last(), copy.reader().oldest()), (Seq(300), Seq(301)));
        drop(copy);
        // The copy of another cluster is removed.
        let copy = LogCopy::open(folder.path(), 6, hold(), Seq(0)).unwrap();
        assert_eq!(copy.last(), Seq(0));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_copy_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = LogCopy::open(folder.path(), 5, hold(), Seq(100)).unwrap();
        for seq in 101..=110 {
            copy.push(record(seq)).unwrap();
        }
        drop(copy);
        let path = std::fs::read_dir(folder.path().join("0000000000000005"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
            .min();
        let path = path.unwrap();
        let mut octets = std::fs::read(&path).unwrap();
        octets[200] ^= 1;
        std::fs::write(&path, octets).unwrap();
        let copy = LogCopy::open(folder.path(), 5, hold(), Seq(110)).unwrap();
        assert_eq!(copy.last(), Seq(110));
    }
}

use crate::{Seq, Term};
use std::io::ErrorKind;
use std::path::PathBuf;

/// Errors of a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process uses the directory.
    #[error(
        "the journal {0} is in use by another process: stop the other switchyard, or name another data directory"
    )]
    InUse(PathBuf),
    /// A newer daemon wrote the file.
    #[error(
        "{path} has journal format {found}, and this switchyard knows format {known}: start the version that wrote it, \
         or name another data directory"
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u32,
        /// The known format.
        known: u32,
    },
    /// The checksum is right, but the contents have an unknown form.
    #[error(
        "{path} has {what} at octet {offset}, which this switchyard does not know: start the version that wrote it"
    )]
    UnknownContent {
        /// The file.
        path: PathBuf,
        /// Offset in the file, in octets.
        offset: u64,
        /// The unknown part.
        what: String,
    },
    /// Acknowledged data are damaged or missing.
    #[error(
        "{path} is damaged at octet {offset}: {what}. Records from {seq} on cannot be trusted. Check the disk, keep a copy of \
         the directory, and restore the last backup; deleting the file loses acknowledged messages"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset in the file, in octets.
        offset: u64,
        /// The first record that cannot be read.
        seq: Seq,
        /// The fault.
        what: &'static str,
    },
    /// The tables are ahead of the journal: its last records are lost.
    #[error(
        "the journal {path} ends at record {end}, but the tables have applied record {applied}: its last records are damaged, \
         or the two come from different backups. Check the disk, and restore journal and tables from the same backup"
    )]
    MissingRecords {
        /// The directory.
        path: PathBuf,
        /// The last record.
        end: Seq,
        /// The last record that the tables have applied.
        applied: Seq,
    },
    /// There is no journal, but the tables have applied records of one.
    #[error(
        "there is no journal in {path}, but the tables have applied record {applied} of one: mount the disk that has it, or \
         restore journal and tables from the same backup"
    )]
    Missing {
        /// The directory.
        path: PathBuf,
        /// The last record that the tables have applied.
        applied: Seq,
    },
    /// There is no journal.
    #[error("there is no journal in {0}: name the directory that has its journal.id")]
    NotFound(PathBuf),
    /// The directory already has a journal.
    #[error("{0} already has a journal: name an empty directory")]
    Exists(PathBuf),
    /// The record is no longer in the journal.
    #[error("the journal begins at record {oldest}: older records are only in backups")]
    Behind {
        /// The oldest record of the journal.
        oldest: Seq,
    },
    /// Another writer has claimed the journal.
    #[error("another writer has claimed the journal, with term {by}")]
    Fenced {
        /// The term of the other writer.
        by: Term,
    },
    /// It is unknown whether the record is durable.
    #[error("it is unknown whether the record is durable")]
    Unknown,
    /// In a cluster: the log cannot be read at present.
    #[error("the log of the cluster cannot be read: {reason}. Check etcd and the network")]
    Unavailable {
        /// The request and its answer.
        reason: String,
    },
    /// In a cluster: the log does not accept records. Nothing is written.
    #[error(
        "the log of the cluster accepts no records: {reason}. See `etcdctl alarm list`, and the user of cluster.user"
    )]
    Refused {
        /// The request and its answer.
        reason: String,
    },
    /// The payload is too long for a record.
    #[error("a payload of {octets} octets is too long for a record of the journal: at most {limit}")]
    TooLarge {
        /// The length of the payload.
        octets: usize,
        /// The maximum.
        limit: usize,
    },
    /// The disk has no space for the next record. Nothing is written.
    #[error("{path} cannot be written: the disk is full ({source}). Free some space")]
    Full {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Reading or writing failed.
    #[error(
        "{path}: {what} failed: {source}. Check whether the disk is full or failing, and who owns the file"
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation.
        what: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// An earlier write failed. It is unknown what is on the disk, and a repetition could report success without writing.
    #[error("the journal accepts no records after an earlier failure ({cause}): restart the daemon")]
    Poisoned {
        /// The earlier failure.
        cause: String,
    },
}

impl JournalError {
    pub(crate) fn io(path: PathBuf, what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| {
            if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
                Self::Full { path, source }
            } else {
                Self::Io { path, what, source }
            }
        }
    }
}

//! The journal: an ordered, durable sequence of records with one writer at a time.
//!
//! A batch of changes is durable as soon as its record is appended; the store applies it to its tables afterwards.
//! After a crash, the store reads the records that its tables lack, and applies them. The journal does not interpret
//! batches: the payload of a record is octets.
//!
//! [`Journal`] is the interface. [`LocalJournal`] keeps the records in the files of one directory and needs one
//! `fdatasync` per record. A cluster replicates the same record format ([`record`]); [`segment`] describes the format
//! of the files.
#![forbid(unsafe_code)]

pub mod clock;
pub mod directory;
mod error;
mod hold;
mod lease;
mod local;
mod preparer;
mod reader;
pub mod record;
mod scan;
pub mod segment;
#[cfg(feature = "simulation")]
pub mod simulation;
mod window;

pub use error::JournalError;
pub use hold::JournalHold;
pub use lease::{BootTime, LeaderLease};
pub use local::{DiscardedTail, JournalOptions, LocalJournal};
pub use preparer::Preparation;
pub use reader::{JournalReader, Records, SegmentSummary};
pub use record::{Entry, JournalRecord};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Number of a record in the journal. The first record is 1; 0 stands for the empty journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// The next number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Number of a writer's term: each claim begins the next one. 0 stands for the empty journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl Term {
    /// The next term.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A machine that writes to the journal. A single appliance is node 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// The end of the journal: the last record, which the next one must follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The term of the last record.
    pub term: Term,
    /// The last record.
    pub seq: Seq,
    /// The checksum of the last record; 0 in an empty journal.
    pub crc: u32,
}

/// The right to append, obtained by [`Journal::claim`] and lost to the next claim.
#[derive(Debug, PartialEq, Eq)]
pub struct Writer {
    head: Head,
}

impl Writer {
    /// For implementations of [`Journal`]: the right to continue `head` in its term.
    #[must_use]
    pub const fn new(head: Head) -> Self {
        Self { head }
    }

    /// The term that the claim began.
    #[must_use]
    pub const fn term(&self) -> Term {
        self.head.term
    }

    /// The last record: the claim, then each append.
    #[must_use]
    pub const fn last(&self) -> Seq {
        self.head.seq
    }

    /// The end of the journal as this writer knows it.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.head
    }

    /// For implementations of [`Journal`]: the head after an append.
    pub const fn advance(&mut self, seq: Seq, crc: u32) {
        self.head.seq = seq;
        self.head.crc = crc;
    }
}

/// An ordered, durable sequence of records with one writer at a time.
pub trait Journal: Send {
    /// Takes the right to append from its current holder, whose next append fails with [`JournalError::Fenced`].
    /// The claim is itself a record, the first of the next term.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn claim(&mut self, node: NodeId) -> Result<Writer, JournalError>;

    /// Appends a record with this payload. When it returns, the record is durable: on this disk, or on a majority of
    /// the cluster. An implementation resolves unknown outcomes itself: it repeats the same octets and never others.
    ///
    /// # Errors
    /// [`JournalError::Fenced`]: another writer has claimed the journal. [`JournalError::TooLarge`] and
    /// [`JournalError::Full`]: nothing is written, and a later append may succeed. Any other error: it is unknown
    /// whether the record is durable, nothing may be promised, and the process must stop.
    fn append(&mut self, writer: &mut Writer, payload: &[u8]) -> Result<Seq, JournalError>;

    /// The records from `from` on, each checked against its predecessor, until their payloads have `octets` octets
    /// together; at least one if there is one. Where another node may append, waits up to `timeout` for the first
    /// record; otherwise the result is empty at the end of the journal. An error after the first record is returned by
    /// the next call.
    ///
    /// # Errors
    /// [`JournalError::Behind`]: the record is no longer in the journal. [`JournalError::Damaged`],
    /// [`JournalError::Io`].
    fn read(
        &mut self,
        from: Seq,
        octets: usize,
        timeout: Duration,
    ) -> Result<Vec<JournalRecord>, JournalError>;

    /// Confirms that all records up to `seq` are durable in the tables of this node. They may be overwritten.
    ///
    /// # Errors
    /// In a cluster: the other nodes cannot be informed.
    fn applied(&mut self, seq: Seq) -> Result<(), JournalError>;

    /// Number of records that the journal keeps: a record is overwritten after that many others, whether or not the
    /// tables of this node have it. `None` if records are kept until [`applied`](Self::applied).
    fn capacity(&self) -> Option<u64> {
        None
    }

    /// In a cluster: the newest payload format that all nodes read, by their published records; `None` if only this
    /// machine reads the journal.
    fn payload_format(&self) -> Option<u8> {
        None
    }

    /// At an orderly end: allows another node to claim at once.
    ///
    /// # Errors
    /// As [`append`](Self::append). Nothing is lost: the other nodes wait a little longer.
    fn resign(&mut self, _writer: &Writer) -> Result<(), JournalError> {
        Ok(())
    }

    /// A reader of the records in files of this machine, for another thread; `None` if there are no such files.
    fn reader(&self) -> Option<JournalReader> {
        None
    }

    /// The lease under which the writer may submit messages to links; [`append`](Self::append) extends it.
    fn lease(&self) -> Arc<LeaderLease>;
}

use journal::JournalError;
use std::path::PathBuf;

/// Errors of event sinks and CDR files.
#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    /// The file with a position cannot be read or written.
    #[error("{path}: {source}. Check who owns the file, and whether the disk is full")]
    PositionFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// In a cluster, a shared position cannot be read or written.
    #[error("{location}: {source}")]
    SharedPosition {
        /// Path of the position in the store.
        location: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A stored position cannot be parsed.
    #[error(
        "{location}: not a valid position in the journal ({what}). Remove it to start with new events; earlier events are not sent"
    )]
    PositionDamaged {
        /// File or path of the position.
        location: String,
        /// The fault.
        what: String,
    },
    /// Another node leads.
    #[error("node {node:?} leads now and writes the CDR files")]
    OtherNode {
        /// The node.
        node: String,
    },
    /// The journal cannot be read.
    #[error("reading the journal failed: {0}")]
    Journal(#[from] JournalError),
    /// A record of the journal has no batch.
    #[error("record {seq} of the journal cannot be decoded: {source}")]
    Record {
        /// Its number.
        seq: journal::Seq,
        /// The cause.
        source: codec::RecordError,
    },
    /// The messages that the events are about cannot be read.
    #[error("reading messages failed: {0}")]
    Messages(Box<dyn std::error::Error + Send + Sync>),
    /// The certificate authority of a sink cannot be read.
    #[error("event sink {sink:?}: {source}")]
    Authority {
        /// The sink.
        sink: String,
        /// The cause.
        source: client::ClientError,
    },
    /// The certificate authority of a sink cannot be used.
    #[error("event sink {sink:?}: {path}: {what}. Set `ca` to a file with certificates in PEM")]
    Roots {
        /// The sink.
        sink: String,
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// A CDR file cannot be written.
    #[error("{path}: {source}. Check who owns the folder, and whether the disk is full")]
    CdrFile {
        /// The file or its folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// An open CDR file has lost octets.
    #[error(
        "{path}: has {octets} octets, and {expected} were written: something else has changed the file. Bring it back, or remove \
         the state of this name in the folder `events` of the data directory to begin another file"
    )]
    CdrShort {
        /// The file.
        path: PathBuf,
        /// Its length.
        octets: u64,
        /// The length that was written.
        expected: u64,
    },
    /// A thread cannot be started.
    #[error("starting the thread of event sink {sink:?} failed: {source}")]
    Thread {
        /// The sink.
        sink: String,
        /// The cause.
        source: std::io::Error,
    },
}

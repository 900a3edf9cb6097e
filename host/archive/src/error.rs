use std::fmt;

/// Whatever the owner of the queues may report.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What can go wrong with the archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The URL names no data base that we know. The error quotes no part of it: the URL may hold a password, or be the text of
    /// another file that was named by mistake. What the driver says quotes it, too.
    #[error(
        "archive: the URL names no data base: expected sqlite:PATH, mysql://USER:PASSWORD@HOST:PORT/NAME, mariadb://… or postgres://USER:PASSWORD@HOST:PORT/NAME"
    )]
    Url,
    /// The tables were made by a newer daemon.
    #[error(
        "archive: the data base has schema version {found}, this daemon knows versions up to {known}: start the newer daemon, or give this one another data base"
    )]
    NewerSchema {
        /// The version in the data base.
        found: i64,
        /// The newest that we know.
        known: i64,
    },
    /// The tables could not be made or brought up to date.
    #[error("archive: the tables could not be brought up to date: {0}")]
    Migration(String),
    /// The data base is not there, or does not work.
    #[error("archive: the data base does not answer as it should: {0}")]
    Database(String),
    /// The data base refuses what it was given.
    #[error("archive: the data base refuses a value: {0}")]
    Refused(String),
    /// The statement took too long.
    #[error("archive: the data base did not answer within {0} s")]
    Timeout(u64),
    /// What stands in a row is not what we write into rows.
    #[error("archive: row {id} of the data base is damaged: {what}")]
    Damaged {
        /// The row's id, as far as it could be read.
        id: i64,
        /// What is wrong.
        what: String,
    },
    /// A cursor that we did not give out.
    #[error("archive: {0:?} is no cursor: take the one that came with the page before")]
    Cursor(String),
    /// The owner of the queues could not read or remove finished messages.
    #[error("archive: finished messages cannot be read or removed: {0}")]
    Source(#[source] BoxError),
    /// The receiver of an export does not take it.
    #[error("archive: the export cannot be written: {0}")]
    Export(#[from] std::io::Error),
    /// Threads or a runtime could not be made.
    #[error("archive: the pump's thread cannot be started: {0}")]
    Thread(#[source] std::io::Error),
}

/// What a failed write means for what is to be done next.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Some of the ids are in the table already.
    Duplicate,
    /// A value is refused: one of the rows is to blame.
    Row(String),
    /// The data base says no for a reason that we do not know: a row may be to blame, or all of it.
    Unclear(String),
    /// The data base is gone, full, locked or wrong; no row is to blame.
    Down(ArchiveError),
}

impl Fault {
    /// As an error for whoever asked.
    pub(crate) fn into_error(self) -> ArchiveError {
        match self {
            Self::Duplicate => ArchiveError::Refused("an id is there already".into()),
            Self::Row(text) => ArchiveError::Refused(text),
            Self::Unclear(text) => ArchiveError::Database(text),
            Self::Down(error) => error,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate => f.write_str("an id is there already"),
            Self::Row(text) | Self::Unclear(text) => f.write_str(text),
            Self::Down(error) => write!(f, "{error}"),
        }
    }
}

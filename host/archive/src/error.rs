use std::fmt;

/// An error of the [`FinishedSource`](crate::FinishedSource).
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// An error of the archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The URL is not a supported database URL. The message does not quote it, because it may contain a password, or the
    /// text of a wrong file; nor does it quote the driver's error.
    #[error(
        "archive: the URL is not a database URL: expected sqlite:PATH, mysql://USER:PASSWORD@HOST:PORT/NAME, mariadb://… or postgres://USER:PASSWORD@HOST:PORT/NAME"
    )]
    Url,
    /// The tables were created by a newer daemon.
    #[error(
        "archive: the database has schema version {found}, this daemon supports versions up to {known}: start the newer daemon, or configure another database"
    )]
    NewerSchema {
        /// The schema version of the database.
        found: i64,
        /// The newest schema version that this daemon knows.
        known: i64,
    },
    /// The tables could not be created or migrated.
    #[error("archive: schema migration failed: {0}")]
    Migration(String),
    /// The database is unreachable or failed.
    #[error("archive: database error: {0}")]
    Database(String),
    /// The database rejected a value.
    #[error("archive: the database rejected a value: {0}")]
    Refused(String),
    /// A statement timed out.
    #[error("archive: the database did not answer within {0} s")]
    Timeout(u64),
    /// A row contains a value that this daemon did not write.
    #[error("archive: row {id} of the database is damaged: {what}")]
    Damaged {
        /// The row's id, if it could be read.
        id: i64,
        /// The error of the row.
        what: String,
    },
    /// The source could not read or remove finished messages.
    #[error("archive: reading or removing finished messages failed: {0}")]
    FinishedSource(#[source] SourceError),
    /// The receiver of an export failed.
    #[error("archive: writing the export failed: {0}")]
    Export(#[from] std::io::Error),
    /// A thread or runtime could not be started.
    #[error("archive: starting the pump thread failed: {0}")]
    Thread(#[source] std::io::Error),
}

/// The class of a failed write, which decides the next step.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Some ids already exist in the table.
    Duplicate,
    /// The database rejected a value of one of the rows.
    Row(String),
    /// Rejected for an unknown reason: one row or all of them may be the cause.
    Unclear(String),
    /// The database is down, full, locked or misconfigured; no row is the cause.
    Down(ArchiveError),
}

impl Fault {
    /// Converts into the public error.
    pub(crate) fn into_error(self) -> ArchiveError {
        match self {
            Self::Duplicate => ArchiveError::Refused("duplicate id".into()),
            Self::Row(text) => ArchiveError::Refused(text),
            Self::Unclear(text) => ArchiveError::Database(text),
            Self::Down(error) => error,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate => f.write_str("duplicate id"),
            Self::Row(text) | Self::Unclear(text) => f.write_str(text),
            Self::Down(error) => write!(f, "{error}"),
        }
    }
}

use std::path::PathBuf;
use std::sync::Arc;

/// What can go wrong with what plugins are given.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A grant that names no place.
    #[error("grant {grant:?}: {what}; a grant is a place like https://hlr.example:8443/v1")]
    Grant {
        /// As it was written.
        grant: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The HTTP client cannot be made.
    #[error(
        "no HTTP client for plugins: {0}; look at the certificates in the configuration and on the machine"
    )]
    Client(String),

    /// A durable counter that cannot be granted.
    #[error("counter {name:?}: {what}")]
    CounterGrant {
        /// Its name, as it was written.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// A newer release wrote a count.
    #[error(
        "the plugins' values in {path} have a durable counter of format {found}, and this release reads format {known}. Start \
         the release that wrote it"
    )]
    CountFormat {
        /// The file.
        path: PathBuf,
        /// The format of the row.
        found: u8,
        /// The newest format that this release reads.
        known: u8,
    },

    /// A key of a value is too long.
    #[error("a key of {octets} octets is longer than the {most} that are allowed")]
    Key {
        /// How long it is.
        octets: usize,
        /// How long it may be.
        most: usize,
    },
    /// A value is too large.
    #[error("a value of {octets} octets is larger than the {most} that are allowed")]
    Value {
        /// How large it is.
        octets: usize,
        /// How large it may be.
        most: usize,
    },
    /// The plugin's values would exceed its quota.
    #[error("keys and values would make {octets} octets, and the binding's quota is {quota}")]
    Quota {
        /// All keys and values of the plugin, this one included.
        octets: u64,
        /// How many the binding grants.
        quota: u64,
    },
    /// The file of values failed.
    #[error("the plugins' values in {path} failed: {source}. Look whether the disk is full or failing")]
    Values {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Arc<redb::Error>,
    },

    /// A table's name cannot be used.
    #[error("table name {0:?}: 1 to 64 of the characters a-z, 0-9, - and _")]
    TableName(String),
    /// A line of a table is wrong.
    #[error("line {line}: {what}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A table is too large.
    #[error("line {line}: the table has more than the {most} {of} that are allowed")]
    TooLarge {
        /// Counted from 1.
        line: u64,
        /// How many are allowed.
        most: u64,
        /// "rows" or "octets".
        of: &'static str,
    },
    /// What was being uploaded broke off.
    #[error("the upload broke off in line {line}: {source}; the table is as it was")]
    Upload {
        /// Counted from 1.
        line: u64,
        /// Why.
        source: Arc<std::io::Error>,
    },
    /// The folder of tables failed.
    #[error("{path}: {source}. Look whether the disk is full or failing and who owns the folder")]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: Arc<std::io::Error>,
    },
    /// A file in the folder of tables is not as it was written.
    #[error("{path} is damaged: {what}. Upload the table again, or remove it")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

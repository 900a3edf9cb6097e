use std::path::PathBuf;
use std::sync::Arc;

/// Errors of plugin capabilities.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// An HTTP grant is invalid.
    #[error("grant {grant:?}: {what}; a grant is a URL prefix like https://hlr.example:8443/v1")]
    HttpGrant {
        /// The grant as written.
        grant: String,
        /// The reason.
        what: &'static str,
    },
    /// The HTTP client cannot be created.
    #[error(
        "no HTTP client for plugins: {0}; check the certificates in the configuration and on the machine"
    )]
    Client(String),

    /// A durable counter grant is invalid.
    #[error("counter {name:?}: {what}")]
    CounterGrant {
        /// The name as written.
        name: String,
        /// The reason.
        what: String,
    },
    /// A grant of DNS queries is invalid.
    #[error("dns: {0}")]
    DnsGrant(String),
    /// A grant of observations of peers is invalid.
    #[error("{0}")]
    QualityGrant(String),
    /// A newer release wrote a count.
    #[error(
        "the plugins' values in {path} have a durable counter of format {found}, but this release reads format {known}. Start \
         the release that wrote it"
    )]
    CountFormat {
        /// The file.
        path: PathBuf,
        /// The format of the row.
        found: u8,
        /// The newest format that this release supports.
        known: u8,
    },

    /// A key is too long.
    #[error("a key of {octets} octets exceeds the limit of {most}")]
    Key {
        /// Its length.
        octets: usize,
        /// The maximum length.
        most: usize,
    },
    /// A value is too large.
    #[error("a value of {octets} octets exceeds the limit of {most}")]
    Value {
        /// Its size.
        octets: usize,
        /// The maximum size.
        most: usize,
    },
    /// The change would exceed the plugin's quota.
    #[error("keys and values would take {octets} octets, but the binding's quota is {quota}")]
    Quota {
        /// Total size of all keys and values of the plugin, with this one.
        octets: u64,
        /// The quota of the binding.
        quota: u64,
    },
    /// Too many changes wait for the disk.
    #[error("the values that wait for the disk take {most} octets already: write less, or try again later")]
    WriteBacklogFull {
        /// The maximum.
        most: usize,
    },
    /// The store file failed.
    #[error("the plugins' values in {path} failed: {source}. Check the disk for space and errors")]
    KvStore {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Arc<redb::Error>,
    },

    /// A table name is invalid.
    #[error("table name {0:?}: 1 to 64 of the characters a-z, 0-9, - and _")]
    TableName(String),
    /// A line of a table is invalid.
    #[error("line {line}: {what}")]
    Line {
        /// The line, counted from 1.
        line: u64,
        /// The reason.
        what: String,
    },
    /// A table is too large.
    #[error("line {line}: the table exceeds the limit of {most} {of}")]
    TooLarge {
        /// The line, counted from 1.
        line: u64,
        /// The maximum.
        most: u64,
        /// "rows" or "octets".
        of: &'static str,
    },
    /// An upload was interrupted.
    #[error("the upload was interrupted in line {line}: {source}; the table is unchanged")]
    Upload {
        /// The line, counted from 1.
        line: u64,
        /// The cause.
        source: Arc<std::io::Error>,
    },
    /// The folder of tables failed.
    #[error("{path}: {source}. Check the disk for space and errors, and the owner of the folder")]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: Arc<std::io::Error>,
    },
    /// A table file is damaged.
    #[error("{path} is damaged: {what}. Upload the table again, or remove it")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
}

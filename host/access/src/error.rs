use std::path::PathBuf;
use std::sync::Arc;

/// What can go wrong with users, tokens, sessions and the audit log.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AccessError {
    /// The file failed.
    #[error(
        "the users and the audit log in {path} failed: {source}. Look whether the disk is full or failing"
    )]
    Store {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Arc<redb::Error>,
    },
    /// A record is not as it was written.
    #[error("{path} is damaged: {what}. Restore it from a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which record, and what is wrong with it.
        what: String,
    },
    /// The system has no randomness to give.
    #[error("no randomness from the system: {0}")]
    Random(getrandom::Error),
    /// A field of a request is wrong.
    #[error("{field}: {what}")]
    Invalid {
        /// Which field.
        field: &'static str,
        /// What is wrong with it, and what would be right.
        what: String,
    },
    /// There is no such user or token.
    #[error("there is no {what} {name:?}")]
    Missing {
        /// "user" or "token".
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The name is taken.
    #[error("there is a {what} {name:?} already")]
    Taken {
        /// "user" or "token".
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// It would leave users, but none that may manage them.
    #[error("{0:?} is the last admin: make another user admin first")]
    LastAdmin(String),
    /// Somebody was faster.
    #[error("user {name:?} is at version {version} by now: read it again, and repeat what is still right")]
    Outdated {
        /// Who was to be changed.
        name: String,
        /// What version there is.
        version: u64,
    },
}

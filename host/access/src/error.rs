use std::path::PathBuf;
use std::sync::Arc;

/// An error of users, tokens, sessions or the audit log.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AccessError {
    /// The file `access.redb` failed.
    #[error("cannot use the access store {path}: {source}. Check whether the disk is full or failing")]
    Store {
        /// Path of the file.
        path: PathBuf,
        /// The error of redb.
        source: Arc<redb::Error>,
    },
    /// A record cannot be decoded.
    #[error("{path} is damaged: {what}. Restore it from a backup")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// The record and its defect.
        what: String,
    },
    /// The system provides no randomness.
    #[error("no randomness from the system: {0}")]
    Random(getrandom::Error),
    /// A field of a request is invalid.
    #[error("{field}: {what}")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        /// The defect and the allowed values.
        what: String,
    },
    /// There is no such user or token.
    #[error("there is no {what} {name:?}")]
    Missing {
        /// `user` or `token`.
        what: &'static str,
        /// The requested name.
        name: String,
    },
    /// The name is taken.
    #[error("the {what} {name:?} already exists")]
    NameInUse {
        /// `user` or `token`.
        what: &'static str,
        /// The taken name.
        name: String,
    },
    /// The change would leave no user with the role admin.
    #[error("{0:?} is the last admin: give another user the role admin first")]
    LastAdmin(String),
    /// The user was changed since the caller read it.
    #[error("user {name:?} is now at version {version}: read the user again, then repeat the change")]
    Outdated {
        /// Name of the user.
        name: String,
        /// The current version.
        version: u64,
    },
}

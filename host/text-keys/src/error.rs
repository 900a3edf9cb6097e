use std::io;
use std::path::{Path, PathBuf};

/// Reasons why text keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TextKeyError {
    /// The root key cannot be read.
    #[error(
        "the root key {path} cannot be read: {source}. Put the file there, or name it with root-key-file of [privacy]; without \
         it nobody can read the texts that it protects"
    )]
    RootKeyMissing {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The root key file does not have the length of a root key.
    #[error(
        "the root key {0} must have exactly 32 octets: create one with `switchyard privacy new-root-key FILE`"
    )]
    NotARootKey(PathBuf),
    /// Users other than the owner can read the root key.
    #[error("the root key {0} can be read by other users: run chmod 600 on it")]
    RootKeyExposed(PathBuf),
    /// The file of a new root key exists.
    #[error("{0} exists: name a new file, so that no key is lost")]
    RootKeyExists(PathBuf),
    /// The key file was written with another root key.
    #[error(
        "{0} was written with another root key: name the right file with root-key-file of [privacy]; to give up all texts that \
         these keys protect, move {0} away"
    )]
    WrongRootKey(PathBuf),
    /// The key file has another format, or is damaged.
    #[error(
        "{path} is damaged at octet {offset}: put a copy of the file there; to give up all texts that its keys protect, move it away"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset of the damage.
        offset: usize,
    },
    /// A newer version wrote the key file.
    #[error("{0} was written by a newer switchyard: start that version")]
    TooNew(PathBuf),
    /// The key file was created after the start, so its keys are unknown.
    #[error("{0} appeared after the start, and its keys have not been read: restart the daemon")]
    NotRead(PathBuf),
    /// The key file cannot be read or written.
    #[error(
        "{path} cannot be {doing}: {source}. Check whether the disk is full or failing, and who owns the file"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The failed operation: `read`, `written`.
        doing: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    /// No key has this number.
    #[error("{path} has no key {number:016x}: `switchyard privacy keys` lists them")]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The number.
        number: u64,
    },
}

impl TextKeyError {
    pub(crate) fn file(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), doing, source }
    }
}

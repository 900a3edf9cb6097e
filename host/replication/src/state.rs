use crate::ReplicationError;
use cluster::{SharedContent, SharedFile};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The content of a name on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalContent {
    /// These octets.
    Value(Vec<u8>),
    /// A file of this node.
    File(SharedFile, PathBuf),
}

impl LocalContent {
    /// A digest of the content.
    pub(crate) fn sha256(&self) -> String {
        match self {
            Self::Value(value) => sha256_hex(value),
            Self::File(file, _) => file.sha256.clone(),
        }
    }

    /// The content, as etcd has it.
    pub(crate) fn shared(&self) -> SharedContent {
        match self {
            Self::Value(value) => SharedContent::Value(value.clone()),
            Self::File(file, _) => SharedContent::File(file.clone()),
        }
    }
}

pub(crate) fn sha256_hex(octets: &[u8]) -> String {
    model::hex(&Sha256::digest(octets))
}

/// A part of the state that the nodes share, as a store of this node has it. All methods may block.
pub trait SharedState: Send + Sync {
    /// The part's name: in etcd its names begin with this and a slash.
    fn part(&self) -> &'static str;

    /// A number that is another one whenever the content is another one.
    ///
    /// # Errors
    /// If the store fails.
    fn version(&self) -> Result<u64, ReplicationError>;

    /// All content, by name.
    ///
    /// # Errors
    /// If the store fails.
    fn read(&self) -> Result<BTreeMap<String, LocalContent>, ReplicationError>;

    /// Sets these names, durably, in this order; `None` removes one. A file is moved to where it belongs, or copied.
    ///
    /// # Errors
    /// If the store fails, or a content is none for it.
    fn apply(&self, changes: Vec<(String, Option<LocalContent>)>) -> Result<(), ReplicationError>;

    /// Whether the store itself writes each change to etcd before it makes it, so that the [`Publisher`](crate::Publisher) need
    /// not look for changes.
    fn writes_through(&self) -> bool {
        false
    }
}

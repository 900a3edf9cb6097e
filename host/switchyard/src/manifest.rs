//! The manifest of a backup, by which a restore verifies that it is complete.

use serde::{Deserialize, Serialize};
use std::path::{Component, Path};

/// The prefix of folders in a data directory that hold copies.
pub(crate) const COPY_PREFIX: &str = "backup-";
/// The name of the first member of the tar file.
pub(crate) const NAME: &str = "manifest.json";
/// The format that this version writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 1;

/// The first member of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    /// The daemon's version.
    pub(crate) version: String,
    /// The time of the backup, in milliseconds since the epoch.
    pub(crate) at: u64,
    /// The appliance's name.
    pub(crate) name: String,
    /// All other members, in order.
    pub(crate) files: Vec<ArchiveMember>,
}

/// A file in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchiveMember {
    /// The path in the data directory, separated by `/`.
    pub(crate) path: String,
    /// The size in octets.
    pub(crate) size: u64,
    /// The SHA-256 checksum, hexadecimal.
    pub(crate) sha256: String,
}

/// Whether a path stays inside its base folder.
pub(crate) fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::is_inside;

    #[test]
    fn members_stay_inside_the_data_directory() {
        for right in ["token", "plugins/kv.redb", "plugins/components/a/b.wasm", "a..b"] {
            assert!(is_inside(right), "{right}");
        }
        for wrong in ["", "/etc/passwd", "../token", "plugins/../../x", "./token", "a\0b"] {
            assert!(!is_inside(wrong), "{wrong:?}");
        }
    }
}

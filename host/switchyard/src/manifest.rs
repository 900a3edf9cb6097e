//! What stands at the head of a backup: what is in it, so that its reader can tell whether it is whole.

use serde::{Deserialize, Serialize};
use std::path::{Component, Path};

/// The name of the tar file's first member.
pub(crate) const NAME: &str = "manifest.json";
/// The form of backups that this version writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 1;

/// The first member of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    /// The daemon's version.
    pub(crate) version: String,
    /// When it was taken, milliseconds since the epoch.
    pub(crate) at: u64,
    /// The appliance's name.
    pub(crate) name: String,
    /// All other members, in their order.
    pub(crate) files: Vec<Member>,
}

/// A file in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    /// Its place in the data directory, with `/` between the names.
    pub(crate) path: String,
    /// Octets.
    pub(crate) size: u64,
    /// Hexadecimal SHA-256.
    pub(crate) sha256: String,
}

/// Whether a path stays within the folder that it is taken from.
pub(crate) fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::is_inside;

    #[test]
    fn a_member_stays_in_the_data_directory() {
        for right in ["token", "plugins/kv.redb", "plugins/components/a/b.wasm", "a..b"] {
            assert!(is_inside(right), "{right}");
        }
        for wrong in ["", "/etc/passwd", "../token", "plugins/../../x", "./token", "a\0b"] {
            assert!(!is_inside(wrong), "{wrong:?}");
        }
    }
}

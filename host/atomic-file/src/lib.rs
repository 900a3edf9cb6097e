//! Replaces files atomically: a reader, also after a crash, finds either the old or the new contents, never a part.
#![forbid(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The mode of a world-readable file; the process's umask applies.
pub const PUBLIC: u32 = 0o666;
/// The mode of a file that only its owner may read.
pub const PRIVATE: u32 = 0o600;

/// Writes a temporary file in the folder of `path`, makes it durable, and renames it to `path`. The file is created with
/// this mode, less the process's umask. Concurrent calls for one path are safe; the last one counts.
///
/// # Errors
/// If the folder does not exist, or the folder or the file cannot be written. In this case an old file stays unchanged,
/// unless only the sync of the folder failed.
pub fn replace_file(path: &Path, octets: &[u8], mode: u32) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let unfinished =
        path.with_extension(format!("{}-{}.new", std::process::id(), NUMBER.fetch_add(1, Relaxed)));
    // A crashed process with the same id may have left a file with another mode.
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished)?;
        file.write_all(octets)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, path)
    };
    if let Err(error) = write() {
        // The file may contain a secret. If it cannot be removed, the first error is more useful.
        let _ = std::fs::remove_file(&unfinished);
        return Err(error);
    }
    // A path without a folder refers to the current folder.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_replaced_with_its_mode_and_without_remains() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token.json");
        std::fs::write(&path, "old").unwrap();
        replace_file(&path, b"new", PRIVATE).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_keeps_the_old_file_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // A folder cannot be replaced by a file.
        let path = folder.path().join("taken");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("content"), "old").unwrap();
        assert!(replace_file(&path, b"new", PUBLIC).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace_file(&folder.path().join("missing/file"), b"new", PUBLIC).is_err());
    }

    #[test]
    fn concurrent_replacements_leave_one_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        std::thread::scope(|scope| {
            for octet in b'a'..=b'h' {
                let path = &path;
                scope.spawn(move || replace_file(path, &[octet; 4_096], PUBLIC).unwrap());
            }
        });
        let found = std::fs::read(&path).unwrap();
        assert!(found.len() == 4_096 && found.iter().all(|octet| *octet == found[0]));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

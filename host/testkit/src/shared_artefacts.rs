//! Compiled plugins that the daemons of a test run share. Compiling one takes seconds in a debug build, and a run
//! starts hundreds of daemons with the same few plugins. Without this, daemons with a large plugin did not start in
//! time on a busy machine.
//!
//! A daemon verifies an artefact by the digests of its octets and of its component, so a wrong or damaged one is
//! compiled again.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, DirEntry};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use workspace::ARTEFACTS_VARIABLE;

/// Maximum age of artefacts; older ones are removed.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The folder of the artefacts in the data folder of a daemon.
fn folder_in(data: &Path) -> PathBuf {
    data.join("plugins/artefacts")
}

fn shared() -> Option<PathBuf> {
    std::env::var_os(ARTEFACTS_VARIABLE).map(PathBuf::from)
}

fn artefacts(folder: &Path) -> impl Iterator<Item = DirEntry> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension() == Some(OsStr::new("cwasm")))
}

/// Links the shared artefacts into the data folder of a daemon that is about to start. Without a folder to share, does nothing.
pub(crate) fn link_into(data: &Path) -> io::Result<()> {
    let Some(shared) = shared() else { return Ok(()) };
    let folder = folder_in(data);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    for artefact in artefacts(&shared) {
        let age = artefact.metadata()?.modified()?.elapsed().unwrap_or_default();
        if age > MAX_AGE {
            // Another test may have removed it.
            let _ = fs::remove_file(artefact.path());
        } else if let Err(error) = symlink(artefact.path(), folder.join(artefact.file_name()))
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Copies the artefacts that an ended daemon has compiled to the shared folder.
pub(crate) fn collect(data: &Path) -> io::Result<()> {
    let Some(shared) = shared() else { return Ok(()) };
    for artefact in artefacts(&folder_in(data)) {
        let target = shared.join(artefact.file_name());
        if artefact.file_type()?.is_file() && !target.exists() {
            let copy = tempfile::NamedTempFile::new_in(&shared)?;
            fs::copy(artefact.path(), copy.path())?;
            copy.persist(target)?;
        }
    }
    Ok(())
}

//! The data directory.

use crate::backup;
use anyhow::{Context as _, Result};
use std::path::Path;

/// Creates the directory, accessible by this user only, and removes leftovers of interrupted backups.
pub(crate) fn prepare(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    restrict_permissions(folder)?;
    backup::remove_leftovers(folder).with_context(|| format!("removing leftovers in {}", folder.display()))
}

/// Restricts a directory to this user.
pub(crate) fn restrict_permissions(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
        .with_context(|| format!("setting permissions of {}", folder.display()))
}

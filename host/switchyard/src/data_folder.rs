//! The data folder.

use crate::backup;
use anyhow::{Context as _, Result};
use std::path::Path;

/// Makes the folder, for this user only, and removes what an interrupted backup left.
pub(crate) fn prepare(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    restrict_permissions(folder)?;
    backup::remove_leftovers(folder).with_context(|| format!("removing leftovers in {}", folder.display()))
}

/// Lets only this user into a folder.
pub(crate) fn restrict_permissions(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
        .with_context(|| format!("setting permissions of {}", folder.display()))
}

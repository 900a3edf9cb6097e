//! Where the tools run the appliance.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use xtask::appliance::Blueprint;
use xtask::house;

/// Everything that a run of a tool needs.
pub(crate) struct Place {
    /// On the disk of the build: a memory file system would make a commit free.
    pub(crate) folder: tempfile::TempDir,
    /// The daemon: the release build, unless the caller named another.
    pub(crate) binary: PathBuf,
    /// The default router.
    pub(crate) component: PathBuf,
}

/// Everything to `upstream`.
pub(crate) const POLICY: &str =
    "[default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything upstream\"\n";

impl Place {
    /// Builds the daemon (unless `binary` names one) and its guests, and runs `work` in a new folder. The folder is removed
    /// after success and kept after a failure, with the log in it.
    pub(crate) fn with<T>(
        name: &str,
        binary: Option<&Path>,
        work: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<T> {
        let component = crate::plugins::build()?.join("prefix_router.wasm");
        let binary = match binary {
            Some(binary) => binary.canonicalize().with_context(|| format!("{}", binary.display()))?,
            None => house::daemon(true)?,
        };
        let folder = tempfile::Builder::new().prefix(name).tempdir_in(runs()?)?;
        let place = Self { folder, binary, component };
        let outcome = work(&place);
        if outcome.is_err() {
            // Its path stands in the message of the failure.
            let _ = place.folder.keep();
        }
        outcome
    }

    /// A configuration with the account `load`, in a folder of its own.
    pub(crate) fn blueprint(&self, name: &str) -> Result<Blueprint> {
        let mut blueprint = Blueprint::new(&self.binary, &self.folder.path().join(name))?;
        blueprint.account("load", "window = 4000\nsessions = 20\nqueue-limit = 100000000");
        Ok(blueprint)
    }
}

/// Where the tools make their folders: on the disk of the build.
pub(crate) fn runs() -> Result<PathBuf> {
    let above = house::target().join("runs");
    std::fs::create_dir_all(&above).with_context(|| format!("creating {}", above.display()))?;
    Ok(above)
}

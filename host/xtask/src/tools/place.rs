//! Where the tools run the appliance.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use xtask::appliance::Blueprint;
use xtask::house;

/// Everything that a run of a tool needs.
pub(crate) struct Place {
    /// Removed at the end, unless something went wrong.
    pub(crate) folder: tempfile::TempDir,
    /// The release build.
    pub(crate) binary: PathBuf,
    /// The default router.
    pub(crate) component: PathBuf,
}

/// Everything to `upstream`.
pub(crate) const POLICY: &str =
    "[default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything upstream\"\n";

impl Place {
    /// Builds the appliance and its guests, and makes a folder on the disk of the build (a memory file system would make
    /// a commit free).
    pub(crate) fn prepare(name: &str, binary: Option<&Path>) -> Result<Self> {
        let component = crate::plugins::build()?.join("prefix_router.wasm");
        let binary = match binary {
            Some(binary) => binary.canonicalize().with_context(|| format!("{}", binary.display()))?,
            None => house::daemon(true)?,
        };
        let above = house::target().join("runs");
        std::fs::create_dir_all(&above)?;
        let folder = tempfile::Builder::new().prefix(name).tempdir_in(above)?;
        Ok(Self { folder, binary, component })
    }

    /// A configuration with the account `load`, in a folder of its own.
    pub(crate) fn blueprint(&self, name: &str) -> Result<Blueprint> {
        let mut blueprint = Blueprint::new(&self.binary, &self.folder.path().join(name))?;
        blueprint.account("load", "window = 4000\nsessions = 20\nqueue-limit = 100000000");
        Ok(blueprint)
    }

    /// Keeps the folder, for somebody to look into.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

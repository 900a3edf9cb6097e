//! Where a test plays: the built programs, and a folder of its own.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use xtask::appliance::Blueprint;
use xtask::house;

/// Everything to the peer `upstream`.
pub const POLICY: &str = "[default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything upstream\"\n";

struct Built {
    binary: PathBuf,
    plugins: PathBuf,
}

/// Builds the daemon and the guests once for each test program: a test of an old binary would prove nothing.
fn built() -> &'static Result<Built> {
    static BUILT: OnceLock<Result<Built>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let binary = house::daemon(false)?;
        let mut plugins = house::cargo();
        plugins.args(["run", "--quiet", "--package", "xtask", "--", "plugins"]);
        house::run(plugins.stdout(std::process::Stdio::null())).context("building the guests")?;
        Ok(Built { binary, plugins: house::root().join("target/plugins") })
    })
}

/// A folder of one test, removed with it.
#[derive(Debug)]
pub struct Stage {
    folder: tempfile::TempDir,
    binary: PathBuf,
    plugins: PathBuf,
}

impl Stage {
    /// Builds what is to be tested, and makes the folder.
    pub fn new() -> Result<Self> {
        let built = match built() {
            Ok(built) => built,
            Err(error) => anyhow::bail!("{error:#}"),
        };
        let folder = tempfile::tempdir()?;
        Ok(Self { folder, binary: built.binary.clone(), plugins: built.plugins.clone() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The daemon.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// A built guest, such as `prefix_router`.
    pub fn guest(&self, name: &str) -> PathBuf {
        self.plugins.join(format!("{name}.wasm"))
    }

    /// A configuration in which the default router sends everything to the peer `upstream`; neither that peer nor an
    /// account is in it yet.
    pub fn blueprint(&self) -> Result<Blueprint> {
        let mut blueprint = Blueprint::new(&self.binary, &self.folder.path().join("appliance"))?;
        blueprint.router(&self.guest("prefix_router"), POLICY)?;
        Ok(blueprint)
    }
}

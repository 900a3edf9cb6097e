//! The environment in which the tools run the appliance.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;
use testkit::built;
use testkit::test_daemon::TestDaemonConfig;

/// The environment of a run of a tool.
pub(crate) struct ToolRun {
    /// On the build disk: on a memory file system, a commit would cost nothing.
    pub(crate) folder: tempfile::TempDir,
    /// The daemon: by default the one that was built for this run.
    pub(crate) binary: PathBuf,
    /// The default router.
    pub(crate) component: PathBuf,
}

/// A policy that routes everything to `upstream`.
pub(crate) const POLICY: &str =
    "[default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything upstream\"\n";

/// A policy that routes numbers `99…` to `elsewhere`, a peer that is down, and all others to `upstream`.
pub(crate) const POLICY_WITH_ELSEWHERE: &str = "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"elsewhere\" }]\n\
     [default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything upstream\"\n";

/// Path of the daemon: `binary`, or by default the one that was built for this run.
pub(crate) fn daemon(binary: Option<&Path>) -> Result<PathBuf> {
    match binary {
        Some(binary) => binary.canonicalize().with_context(|| format!("{}", binary.display())),
        None => built::daemon(),
    }
}

impl ToolRun {
    /// Runs `work` in a new folder, which is removed after success and kept after a failure, with the log in it.
    pub(crate) fn with<T>(
        name: &str,
        binary: Option<&Path>,
        work: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<T> {
        let component = built::plugins()?.join("prefix_router.wasm");
        let binary = daemon(binary)?;
        let folder = tempfile::Builder::new().prefix(name).tempdir_in(runs_dir()?)?;
        let tool_run = Self { folder, binary, component };
        let outcome = work(&tool_run);
        if outcome.is_err() {
            // The error message contains its path.
            let _ = tool_run.folder.keep();
        }
        outcome
    }

    /// A configuration with the account `load`, in its own folder.
    pub(crate) fn config(&self, name: &str) -> Result<TestDaemonConfig> {
        let mut config = TestDaemonConfig::new(&self.binary, &self.folder.path().join(name))?;
        // Deliveries get as large a window as submissions: otherwise receipts wait for their window, and not for a processor.
        config
            .account("load", "window = 4000\ndeliver-window = 4000\nsessions = 20\nqueue-limit = 100000000");
        Ok(config)
    }
}

/// Folder in which the tools create theirs, on the build disk.
pub(crate) fn runs_dir() -> Result<PathBuf> {
    let above = workspace::target().join("runs");
    std::fs::create_dir_all(&above).with_context(|| format!("creating {}", above.display()))?;
    remove_old_runs(&above)?;
    Ok(above)
}

/// Number of folders of failed and interrupted runs that are kept. A folder may take a gigabyte.
const KEPT_RUNS: usize = 4;

/// Maximum time of a run: an older folder does not belong to a running one.
const MAX_RUN_TIME: Duration = Duration::from_secs(6 * 3600);

fn remove_old_runs(above: &Path) -> Result<()> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(above)? {
        let entry = entry?;
        // Another run may remove its folder at the same time.
        if let Ok(changed) = entry.metadata().and_then(|metadata| metadata.modified()) {
            folders.push((changed, entry.path()));
        }
    }
    folders.sort();
    let kept = folders.len().saturating_sub(KEPT_RUNS);
    for (changed, folder) in folders.into_iter().take(kept) {
        if changed.elapsed().is_ok_and(|age| age > MAX_RUN_TIME) {
            std::fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
        }
    }
    Ok(())
}

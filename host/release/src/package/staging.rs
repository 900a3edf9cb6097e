//! The files that every package format contains: the stripped binary, plugins, completions, manual pages.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder with all built files. Files of the source tree are not copied into it.
#[derive(Debug)]
pub(super) struct StagingDir {
    pub(super) folder: PathBuf,
}

impl StagingDir {
    /// Creates the folder for this binary. Its path is fixed, because the Debian package's list of files contains it.
    pub(super) fn make(binary: &Path) -> Result<Self> {
        let folder = super::folder().join("stage");
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        for part in ["completions", "man", "plugins"] {
            std::fs::create_dir_all(folder.join(part))?;
        }
        let stripped = folder.join("switchyard");
        let mut strip = Command::new("strip");
        workspace::run(strip.args(["--strip-unneeded", "-o"]).arg(&stripped).arg(binary))?;

        for (shell, name) in [("bash", "switchyard"), ("zsh", "_switchyard"), ("fish", "switchyard.fish")] {
            let output =
                Command::new(&stripped).args(["completions", shell]).stderr(Stdio::inherit()).output()?;
            ensure!(output.status.success(), "switchyard completions {shell}: {}", output.status);
            std::fs::write(folder.join("completions").join(name), output.stdout)?;
        }
        let mut man = Command::new(&stripped);
        workspace::run(man.arg("man").arg(folder.join("man")).stdout(Stdio::null()))?;

        let built = workspace::plugins::build()?;
        for entry in std::fs::read_dir(&built).with_context(|| format!("reading {}", built.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // The test plugins that misbehave are not packaged.
            if path.extension().is_some_and(|end| end == "wasm") && !name.starts_with("test_") {
                std::fs::copy(&path, folder.join("plugins").join(name))?;
            }
        }
        ensure!(folder.join("plugins/prefix_router.wasm").exists(), "the default router was not built");
        Ok(Self { folder })
    }

    /// The stripped daemon.
    pub(super) fn binary(&self) -> PathBuf {
        self.folder.join("switchyard")
    }
}

/// `appliance-image/package`.
pub(super) fn sources() -> PathBuf {
    workspace::root().join("appliance-image/package")
}

/// Copies a file, and creates its parent folders.
pub(super) fn put(from: &Path, to: &Path) -> Result<()> {
    if let Some(above) = to.parent() {
        std::fs::create_dir_all(above)?;
    }
    std::fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Copies the files of a folder.
pub(super) fn put_all(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let path = entry?.path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            put(&path, &to.join(name))?;
        }
    }
    Ok(())
}

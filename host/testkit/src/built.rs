//! The programs under test. `cargo xtask` builds them once per run, and passes their paths in environment variables. A
//! test that built them itself would wait for cargo; one that used an existing file might test an old daemon.

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use workspace::{DAEMON_VARIABLE, OLDER_DAEMON_VARIABLE, PLUGINS_VARIABLE};

fn path(variable: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    let path = path.with_context(|| {
        format!("{variable} is not set; run tests with `cargo xtask test --only NAME`, which builds what they need")
    })?;
    ensure!(path.exists(), "{variable}: there is no {}", path.display());
    Ok(path)
}

/// The daemon.
///
/// # Errors
/// If the caller did not pass it.
pub fn daemon() -> Result<PathBuf> {
    path(DAEMON_VARIABLE)
}

/// A daemon of an earlier version, from which an upgrade begins; by default the same daemon.
///
/// # Errors
/// If the file does not exist.
pub fn older_daemon() -> Result<PathBuf> {
    match std::env::var_os(OLDER_DAEMON_VARIABLE) {
        Some(_) => path(OLDER_DAEMON_VARIABLE),
        None => daemon(),
    }
}

/// Folder of the built plugins.
///
/// # Errors
/// If the caller did not pass it.
pub fn plugins() -> Result<PathBuf> {
    path(PLUGINS_VARIABLE)
}

//! Common environment of a test: the built programs, and a folder of its own.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::built;
use testkit::load::SourceOptions;
use testkit::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};

/// A policy that routes all messages to the peer `upstream`.
pub const POLICY: &str = "[default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything upstream\"\n";

/// The programs under test, and a folder of one test, removed with it.
#[derive(Debug)]
pub struct Fixture {
    folder: tempfile::TempDir,
    binary: PathBuf,
    plugins: PathBuf,
}

impl Fixture {
    /// Makes the folder, for the programs that the runner has built.
    pub fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, binary: built::daemon()?, plugins: built::plugins()? })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The daemon's path.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// `switchyard` as a command line client of this daemon, with the root token.
    pub fn command(&self, appliance: &TestDaemon) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env("SWITCHYARD_URL", format!("http://{}", appliance.config().http()))
            .env("SWITCHYARD_TOKEN_FILE", appliance.config().data().join("token"))
            .env_remove("SWITCHYARD_TOKEN")
            .env_remove("SWITCHYARD_CONFIG")
            .stdin(Stdio::null());
        command
    }

    /// Path of a built plugin, for example `prefix_router`.
    pub fn guest(&self, name: &str) -> PathBuf {
        self.plugins.join(format!("{name}.wasm"))
    }

    /// The octets of a built plugin.
    pub fn component(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.guest(name);
        std::fs::read(&path).with_context(|| format!("reading {}", path.display()))
    }

    /// A configuration in which the default router sends all messages to the peer `upstream`; it contains neither that
    /// peer nor an account yet.
    pub fn config(&self) -> Result<TestDaemonConfig> {
        let mut config = TestDaemonConfig::new(&self.binary, &self.folder.path().join("appliance"))?;
        config.router(&self.guest("prefix_router"), POLICY)?;
        Ok(config)
    }
}

/// A policy document of `policies/`, for example `retries`.
pub fn shipped_policy(policy: &str) -> Result<String> {
    let path = workspace::root().join("policies").join(format!("{policy}.toml"));
    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// Traffic at a rate that a debug build delivers on a busy machine too. Without a limit, the test would have to wait at its end until the backlog
/// is delivered.
pub fn steady_traffic(appliance: &TestDaemon, account: &str) -> SourceOptions {
    let mut options = SourceOptions::new(appliance.smpp(), account, PASSWORD);
    options.rate = Some(300.0);
    options
}

/// Uploads a component; returns its version.
pub fn upload(appliance: &TestDaemon, plugin: &str, component: &[u8]) -> Result<String> {
    let uploaded = appliance.ask("PUT", &format!("/v1/plugins/{plugin}"), component)?;
    Ok(uploaded["version"].as_str().context("no version")?.to_owned())
}

/// Makes this version the only plugin of a hook. `more` are further keys of the binding.
pub fn activate(
    appliance: &TestDaemon,
    hook: &str,
    (plugin, version): (&str, &str),
    policy: &str,
    more: &Value,
) -> Result<()> {
    let mut binding = json!({ "plugin": plugin, "version": version, "policy": policy });
    if let (Some(binding), Some(more)) = (binding.as_object_mut(), more.as_object()) {
        binding.extend(more.clone());
    }
    appliance.ask("POST", &format!("/v1/hooks/{hook}/activate"), binding.to_string().as_bytes())?;
    Ok(())
}

/// Uploads and activates a component; returns its version.
pub fn bind(
    appliance: &TestDaemon,
    hook: &str,
    plugin: &str,
    component: &[u8],
    policy: &str,
    more: &Value,
) -> Result<String> {
    let version = upload(appliance, plugin, component)?;
    activate(appliance, hook, (plugin, &version), policy, more)?;
    Ok(version)
}

/// The steps of a message's trace, in words.
pub fn steps(trace: &Value) -> Vec<&str> {
    trace["steps"].as_array().into_iter().flatten().filter_map(|step| step["what"].as_str()).collect()
}

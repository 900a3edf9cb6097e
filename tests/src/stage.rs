//! Where a test plays: the built programs, and a folder of its own.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use xtask::appliance::{Appliance, Blueprint};
use xtask::house;

/// Everything to the peer `upstream`.
pub const POLICY: &str = "[default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything upstream\"\n";

/// Builds the daemon once for each test program: a test of an old binary would prove nothing.
fn daemon() -> Result<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf>> = OnceLock::new();
    match BUILT.get_or_init(|| house::daemon(false)) {
        Ok(binary) => Ok(binary),
        Err(error) => anyhow::bail!("{error:#}"),
    }
}

/// Builds the guests, once as well.
fn guests() -> Result<()> {
    static BUILT: OnceLock<Result<()>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let mut plugins = house::cargo();
        // By the alias, which asks for the features that the tests were built with.
        plugins.args(["xtask", "plugins"]);
        house::run(plugins.stdout(Stdio::null())).context("building the guests")?;
        Ok(())
    });
    match built {
        Ok(()) => Ok(()),
        Err(error) => anyhow::bail!("{error:#}"),
    }
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
        let stage = Self::without_guests()?;
        guests()?;
        Ok(stage)
    }

    /// The same for a test that has no use for plugins.
    pub fn without_guests() -> Result<Self> {
        let binary = daemon()?.to_owned();
        let plugins = house::root().join("target/plugins");
        Ok(Self { folder: tempfile::tempdir()?, binary, plugins })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The daemon.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// `switchyard` on the command line, as an admin of this appliance.
    pub fn command(&self, appliance: &Appliance) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env("SWITCHYARD_URL", format!("http://{}", appliance.blueprint().http()))
            .env("SWITCHYARD_TOKEN_FILE", appliance.blueprint().data().join("token"))
            .env_remove("SWITCHYARD_TOKEN")
            .env_remove("SWITCHYARD_CONFIG")
            .stdin(Stdio::null());
        command
    }

    /// A built guest, such as `prefix_router`.
    pub fn guest(&self, name: &str) -> PathBuf {
        self.plugins.join(format!("{name}.wasm"))
    }

    /// What is in it.
    pub fn component(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.guest(name);
        std::fs::read(&path).with_context(|| format!("reading {}", path.display()))
    }

    /// A configuration in which the default router sends everything to the peer `upstream`; neither that peer nor an
    /// account is in it yet.
    pub fn blueprint(&self) -> Result<Blueprint> {
        let mut blueprint = Blueprint::new(&self.binary, &self.folder.path().join("appliance"))?;
        blueprint.router(&self.guest("prefix_router"), POLICY)?;
        Ok(blueprint)
    }
}

/// A policy document as it is shipped, such as `retries`.
pub fn shipped(policy: &str) -> Result<String> {
    let path = house::root().join("policies").join(format!("{policy}.toml"));
    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// Gives a component to the appliance; gives back its version.
pub fn upload(appliance: &Appliance, plugin: &str, component: &[u8]) -> Result<String> {
    let uploaded = appliance.ask("PUT", &format!("/v1/plugins/{plugin}"), component)?;
    Ok(uploaded["version"].as_str().context("no version")?.to_owned())
}

/// Makes a plugin's version the only plugin of a hook. `more` are further keys of the binding.
pub fn activate(
    appliance: &Appliance,
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

/// Both; gives back the version.
pub fn bind(
    appliance: &Appliance,
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

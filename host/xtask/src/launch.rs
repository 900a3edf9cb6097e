//! Builds and starts the programs that do the work of a verb.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use workspace::{DAEMON_VARIABLE, PLUGINS_VARIABLE, Profile, Program, plugins};

/// Arguments that the started program parses.
#[derive(Debug, clap::Args)]
pub(crate) struct ForwardedArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl ForwardedArgs {
    fn asks_for_help(&self) -> bool {
        self.has("--help") || self.has("-h")
    }

    /// Whether an option is among the arguments.
    fn has(&self, option: &str) -> bool {
        self.arguments.iter().filter_map(|argument| argument.to_str()).any(|argument| {
            argument.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    }
}

/// The daemon.
pub(crate) const DAEMON: Program = Program::Binary("switchyard");
/// The program that runs workloads.
pub(crate) const WORKLOADS: Program = Program::Binary("workloads");
/// The program that builds release artifacts.
pub(crate) const RELEASE: Program = Program::Binary("release");
/// Calls plugins without a daemon, for `bench hooks`.
pub(crate) const MEASURE_HOOKS: Program = Program::Example { package: "hooks", name: "measure_hooks" };

/// Builds programs and returns their folder. In a test, the runner has built them already.
fn build(profile: Profile, programs: &[Program]) -> Result<PathBuf> {
    match std::env::var_os(DAEMON_VARIABLE) {
        Some(daemon) => Ok(PathBuf::from(daemon).parent().context("the daemon's folder")?.to_owned()),
        None => workspace::build(profile, programs),
    }
}

/// Shows the help of a program.
fn help(program: Program, name: &str, verb: &str, forwarded: &ForwardedArgs) -> Result<()> {
    let folder = build(Profile::Debug, &[program])?;
    replace_process(Command::new(folder.join(name)).arg(verb).args(&forwarded.arguments))
}

/// Starts a demo, without optimisation unless `--release` is given: that build takes minutes less, and is fast enough.
pub(crate) fn demo(no_aims: bool, forwarded: &ForwardedArgs) -> Result<()> {
    if forwarded.asks_for_help() {
        return help(WORKLOADS, "workloads", "demo", forwarded);
    }
    println!("demo: the first run builds everything, which takes some minutes");
    let plugins = plugins::build_only(&["prefix-router", "hlr-resolver"])?;
    let profile = if forwarded.has("--release") { Profile::Release } else { Profile::Debug };
    let programs: &[_] = if forwarded.has("--binary") { &[WORKLOADS] } else { &[DAEMON, WORKLOADS] };
    start_workload("demo", no_aims, forwarded, &workspace::build(profile, programs)?, &plugins)
}

/// Starts another workload, with optimisation unless `no_aims` is set.
pub(crate) fn workload(verb: &str, no_aims: bool, forwarded: &ForwardedArgs) -> Result<()> {
    if forwarded.asks_for_help() {
        return help(WORKLOADS, "workloads", verb, forwarded);
    }
    let plugins = plugins::build()?;
    let profile = if no_aims { Profile::Debug } else { Profile::Release };
    let programs: &[_] = match forwarded.has("--binary") {
        true => &[WORKLOADS],
        false => &[DAEMON, WORKLOADS, MEASURE_HOOKS],
    };
    start_workload(verb, no_aims, forwarded, &workspace::build(profile, programs)?, &plugins)
}

/// Makes the pictures of the manual: without an appliance, and without optimisation.
pub(crate) fn screenshots(forwarded: &ForwardedArgs) -> Result<()> {
    let folder = build(Profile::Debug, &[WORKLOADS])?;
    replace_process(Command::new(folder.join("workloads")).arg("screenshots").args(&forwarded.arguments))
}

fn start_workload(
    verb: &str,
    no_aims: bool,
    forwarded: &ForwardedArgs,
    folder: &Path,
    plugins: &Path,
) -> Result<()> {
    let mut workloads = Command::new(folder.join("workloads"));
    if no_aims {
        workloads.arg("--no-aims");
    }
    workloads.arg(verb).args(&forwarded.arguments);
    workloads.env(DAEMON_VARIABLE, folder.join("switchyard")).env(PLUGINS_VARIABLE, plugins);
    replace_process(&mut workloads)
}

/// Makes release artifacts.
pub(crate) fn release(verb: &str, forwarded: &ForwardedArgs) -> Result<()> {
    let folder = build(Profile::Debug, &[RELEASE])?;
    replace_process(Command::new(folder.join("release")).arg(verb).args(&forwarded.arguments))
}

/// Becomes the program: its exit status is ours, and so are signals.
fn replace_process(program: &mut Command) -> Result<()> {
    let error = program.exec();
    Err(error).with_context(|| format!("starting {program:?}"))
}

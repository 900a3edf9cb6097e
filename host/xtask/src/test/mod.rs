//! `cargo xtask test`: tests by tier.
//!
//! | tier | runs |
//! |---|---|
//! | `check` | formatting, lints, unit tests |
//! | `behaviour` | `check`, the integration tests of the crates, and behaviour tests that need no foreign program |
//! | `all` | `behaviour`, tests with foreign programs, licences, documentation, and every verb of this program |
//! | `nightly` | `all`, fuzzing, crash rounds, benchmarks, release artifacts and the image |
//!
//! A test needs foreign programs if its path contains the module `foreign`.

mod build;
mod executable;
mod filtered_out;
mod nightly;
mod phases;
mod policies;
mod run;
mod verbs;

use crate::launch;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use executable::{Executable, TestKind};
use phases::Phases;
use run::Selection;
use workspace::{ARTEFACTS_VARIABLE, DAEMON_VARIABLE, PLUGINS_VARIABLE, Profile, packages, plugins};

/// Name of the modules of tests that need foreign programs.
const FOREIGN: &str = "foreign::";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Tier {
    /// Formatting, lints, unit tests.
    Check,
    /// The crates' integration tests and the behaviour tests, without foreign programs.
    Behaviour,
    /// Foreign programs, licences, documentation, and every verb of this program.
    All,
    /// Fuzzing, crash rounds, benchmarks, release artifacts, the image.
    Nightly,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Tier to run; each tier includes the previous ones.
    #[arg(value_enum, default_value_t = Tier::Behaviour)]
    tier: Tier,
    /// Run only one executable (`gsm`, a crate), or only tests whose path contains this; also with foreign programs. In the nightly tier:
    /// only one of its own steps.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Run only the verbs of this program, each of them briefly.
    #[arg(long, conflicts_with = "only")]
    verbs: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut phases = Phases::default();
    let outcome = run_tier(options, &mut phases);
    phases.print();
    outcome
}

fn run_tier(options: &Options, phases: &mut Phases) -> Result<()> {
    if options.verbs {
        return run_verbs(phases);
    }
    if let Some(name) = &options.only {
        return match options.tier {
            Tier::Nightly => nightly::run(phases, Some(name)),
            _ => run_only(name, phases),
        };
    }
    let tier = options.tier;
    if tier >= Tier::All {
        phases.time("packages", packages::install_all)?;
    }
    phases.time("formatting", || {
        formatting(&[]).context("formatting: run cargo fmt")?;
        formatting(PLUGINS_WORKSPACE).context("formatting: run cargo fmt in the folder plugins")
    })?;
    phases.time("lints", || lints(&[]).context("lints: not clean"))?;
    phases.time("lints of plugins", || lints(PLUGINS_WORKSPACE).context("lints of plugins: not clean"))?;
    if tier >= Tier::All {
        phases.time("documentation", policies::documentation)?;
        phases.time("licences", policies::dependencies)?;
    }
    if tier >= Tier::Behaviour {
        prepare(phases)?;
    }
    let mut executables = phases.time("building tests", || match tier {
        Tier::Check => build::tests(&["--workspace", "--lib", "--bins"]),
        _ => build::tests(&["--workspace"]),
    })?;
    executables.extend(phases.time("building tests of plugins", build::policy_tests)?);
    if tier == Tier::Check {
        executables.retain(|one| one.kind == TestKind::Unit);
    }
    let selection = Selection { foreign: tier >= Tier::All, ignored: tier == Tier::Nightly, filter: None };
    let tests = phases.time("tests", || run::all(executables, &selection))?;
    tests.print();
    tests.require_success()?;
    if tier >= Tier::Behaviour {
        phases.time("examples in the documentation", policies::examples)?;
    }
    match tier {
        Tier::Check => filtered_out::without_behaviour()?,
        Tier::Behaviour => filtered_out::without_foreign(&tests),
        Tier::All | Tier::Nightly => run_verbs(phases)?,
    }
    match tier {
        Tier::All => filtered_out::without_nightly(),
        Tier::Nightly => nightly::run(phases, None)?,
        Tier::Check | Tier::Behaviour => {}
    }
    println!("test: {} tests passed; formatting and lints are clean", tests.passed());
    Ok(())
}

/// Builds the programs that the tests run, and sets their paths in the environment.
fn prepare(phases: &mut Phases) -> Result<()> {
    let folder = phases.time("plugins", plugins::build)?;
    let programs = [launch::DAEMON, launch::WORKLOADS, launch::RELEASE, launch::MEASURE_HOOKS];
    let programs = phases.time("programs", || workspace::build(Profile::Debug, &programs))?;
    run::pass(PLUGINS_VARIABLE, folder);
    run::pass(DAEMON_VARIABLE, programs.join("switchyard"));
    let artefacts = workspace::target().join("test-artefacts");
    std::fs::create_dir_all(&artefacts).with_context(|| format!("making {}", artefacts.display()))?;
    run::pass(ARTEFACTS_VARIABLE, artefacts);
    Ok(())
}

fn run_only(name: &str, phases: &mut Phases) -> Result<()> {
    phases.time("packages", packages::install_all)?;
    prepare(phases)?;
    let mut executables = phases.time("building tests", || build::tests(&["--workspace"]))?;
    executables.extend(phases.time("building tests of plugins", build::policy_tests)?);
    let named: Vec<_> = executables.iter().filter(|one| one.has_name(name)).cloned().collect();
    let selection =
        Selection { foreign: true, ignored: false, filter: named.is_empty().then(|| name.to_owned()) };
    let executables: Vec<Executable> = if named.is_empty() { executables } else { named };
    let tests = phases.time("tests", || run::all(executables, &selection))?;
    tests.print();
    tests.require_success()?;
    ensure!(tests.passed() > 0, "no executable and no test has {name:?} in its name");
    Ok(())
}

fn run_verbs(phases: &mut Phases) -> Result<()> {
    phases.time("verbs", verbs::run)
}

/// The workspace of the plugins. It is linted for this machine: no plugin has code for WebAssembly only.
const PLUGINS_WORKSPACE: &[&str] = &["--manifest-path", build::PLUGINS_MANIFEST];

fn formatting(workspace: &[&str]) -> Result<()> {
    cargo(&[&["fmt", "--all", "--check"], workspace].concat())
}

fn lints(workspace: &[&str]) -> Result<()> {
    let clippy = ["clippy", "--quiet", "--workspace", "--all-targets"];
    cargo(&[&clippy, workspace, &["--", "--deny", "warnings"]].concat())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    workspace::run(workspace::cargo().args(arguments))
}

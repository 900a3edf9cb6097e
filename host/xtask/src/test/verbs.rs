//! Runs every subcommand of this program briefly, built without optimisation: a subcommand that nothing runs
//! breaks unnoticed. The output of each run goes to a log; a failure shows its end.

use anyhow::{Context, Result, bail, ensure};
use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The runs: as few arguments as prove that the subcommand works.
const RUNS: &[&[&str]] = &[
    &["plugins"],
    &["load", "--count", "20000"],
    &["demo", "--exit"],
    &["demo", "--sgip", "--exit"],
    &["demo", "--china", "--exit"],
    &["demo", "--gsm", "--exit"],
    &["demo", "--cluster", "--exit"],
    &["crash", "--kills", "2"],
    &["crash", "--kills", "2", "--with", "archive,dlrs,pools", "--rate", "500"],
    &["cluster", "--rounds", "3", "--rate", "100"],
    &["swap", "--swaps", "2", "--rollbacks", "1", "--rate", "200"],
    &["reconfigure", "--changes", "5", "--rate", "200"],
    &["bench", "--seconds", "1", "--window", "40", "--waiting", "400"],
    &["bench", "archive", "--rows", "2000", "--questions", "5", "--messages", "4000", "--rounds", "1"],
    &["bench", "cluster", "--seconds", "1", "--window", "40", "--waiting", "400"],
    &["bench", "console", "--peers", "3", "--accounts", "3", "--messages", "2000", "--rounds", "1"],
    &["bench", "gsm", "--messages", "200", "--window", "40", "--subscribers", "50", "--questions", "50"],
    &["bench", "hooks", "--only", "traffic", "--pairs", "1", "--seconds", "0.5"],
    &["bench", "hooks", "--only", "replay", "--messages", "1000"],
    &["bench", "hooks", "--only", "table", "--rows", "20000", "--rounds", "1"],
    &["bench", "hooks", "--only", "tenants", "--tenants", "20", "--tenant-calls", "200", "--rounds", "1"],
    &["bench", "hooks", "--only", "peer", "--pairs", "1", "--submissions", "500"],
    &["bench", "--seconds", "1", "--window", "40", "outage"],
    &[
        "bench",
        "pool",
        "--seconds",
        "0.2",
        "--rounds",
        "1",
        "--connections",
        "2",
        "--pipeline",
        "4",
        "--numbers",
        "1000",
        "--sizes",
        "1000",
    ],
    &["screenshots", "--folder", "target/verbs/screenshots"],
    &["package", "--stage", "--binary", DAEMON],
];

/// Placeholder for the path of the daemon that the tests have built.
const DAEMON: &str = "DAEMON";

/// Subcommands that are not run, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("setup", "runs before the tests"),
    ("test", "runs this check"),
    ("fuzz", "builds its targets with other flags; the nightly tier runs it"),
    ("bench hooks, its parts calls and exchange", "they build plugins in five languages"),
    ("package as a whole", "builds two releases, and once cargo-deb and cargo-cyclonedx"),
    ("image", "builds a Debian system as root, in twenty minutes"),
];

/// Number of parallel runs: most of their time they wait for timers.
const MAX_PARALLEL: usize = 3;

/// Runs all verbs in parallel, except those that use the ports of the sample configuration, which run one after the
/// other.
pub(super) fn run() -> Result<()> {
    let xtask = std::env::current_exe().context("finding this program")?;
    let folder = workspace::target().join("verbs");
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let begun = Instant::now();
    let (demos, others): (Vec<_>, Vec<_>) = RUNS.iter().copied().partition(|words| words[0] == "demo");
    let groups = std::iter::once(demos).chain(others.into_iter().map(|one| vec![one]));
    let waiting = Mutex::new(groups.collect::<VecDeque<_>>());
    let failed = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..MAX_PARALLEL {
            scope.spawn(|| {
                while let Some(group) = next() {
                    for words in group {
                        let shown = words.join(" ");
                        let one = Instant::now();
                        let log = folder.join(format!("{}.log", name(words)));
                        let outcome = run_one(&xtask, words, &log);
                        let result = if outcome.is_ok() { "ok" } else { "FAILED" };
                        println!("verb {shown} ... {result} ({:.1} s)", one.elapsed().as_secs_f64());
                        if let Err(error) = outcome {
                            println!("{error:#}");
                            failed.lock().unwrap_or_else(PoisonError::into_inner).push(shown);
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (verb, reason) in NOT_RUN {
        println!("verb {verb}: not run here: {reason}");
    }
    println!(
        "verbs: {} passed, {} failed ({:.0} s)",
        RUNS.len() - failed.len(),
        failed.len(),
        begun.elapsed().as_secs_f64()
    );
    ensure!(failed.is_empty(), "failed subcommands: {}", failed.join("; "));
    Ok(())
}

fn run_one(xtask: &Path, words: &[&str], log: &Path) -> Result<()> {
    let output = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    let mut verb = Command::new(xtask);
    // The error sentence matters; a backtrace of this program would push it out of the shown lines.
    verb.env("RUST_BACKTRACE", "0");
    verb.arg("--no-aims").args(words.iter().map(|word| match *word {
        DAEMON => workspace::target().join("debug/switchyard").into_os_string(),
        word => word.into(),
    }));
    verb.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let status = verb.status().with_context(|| format!("running {}", xtask.display()))?;
    if !status.success() {
        let text = std::fs::read(log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        bail!("{}\n{status}; {}", lines[lines.len().saturating_sub(30)..].join("\n"), log.display());
    }
    Ok(())
}

/// The name of a run's log: its words without the values of options.
fn name(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.replace("--", "")).collect();
    words.join("-").replace(['.', ',', '/'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn command() -> clap::Command {
        crate::Arguments::command()
    }

    #[test]
    fn every_subcommand_is_run_or_listed_with_a_reason() {
        for verb in command().get_subcommands() {
            let name = verb.get_name();
            let run = RUNS.iter().any(|words| words[0] == name);
            let is_named = NOT_RUN.iter().any(|(not, _)| not.split(' ').next() == Some(name));
            assert!(run || is_named, "cargo xtask {name} is neither run nor named as not run");
        }
    }

    #[test]
    fn every_run_has_its_own_log() {
        let names: std::collections::BTreeSet<_> = RUNS.iter().map(|words| name(words)).collect();
        assert_eq!(names.len(), RUNS.len());
        for name in names {
            assert_eq!(Path::new(&name).components().count(), 1, "{name} names a folder");
        }
    }
}

//! The steps of the tier `nightly`, which take hours or need root.

use super::phases::Phases;
use crate::fuzz;
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Steps that run a verb of this program, with its arguments.
const STEPS: &[(&str, &[&str])] = &[
    ("crash", &["crash", "--kills", "100"]),
    ("crash-with", &["crash", "--kills", "100", "--with", "archive,dlrs,pools"]),
    ("cluster", &["cluster", "--rounds", "20"]),
    ("crash-await-dlr", &["crash", "--kills", "50", "--uncertain", "await-dlr"]),
    ("swap", &["swap"]),
    ("reconfigure", &["reconfigure"]),
    ("bench", &["bench"]),
    ("bench-outage", &["bench", "outage"]),
    ("bench-archive", &["bench", "archive"]),
    ("bench-console", &["bench", "console"]),
    ("bench-gsm", &["bench", "gsm"]),
    ("bench-hooks", &["bench", "hooks"]),
    ("bench-pool", &["bench", "pool"]),
    ("package", &["package", "--test"]),
    ("image", &["image", "--test"]),
];

/// The name of the step that fuzzes.
const FUZZ: &str = "fuzz";
/// Seconds per fuzz target.
const FUZZ_SECONDS: u32 = 300;

/// The names of all steps.
pub(super) fn names() -> Vec<&'static str> {
    std::iter::once(FUZZ).chain(STEPS.iter().map(|(name, _)| *name)).collect()
}

/// Runs all steps, or one. After a failure, the other steps still run.
pub(super) fn run(phases: &mut Phases, only: Option<&str>) -> Result<()> {
    let wants = |name: &str| only.is_none_or(|only| only == name);
    ensure!(names().into_iter().any(wants), "the nightly tier has these steps: {}", names().join(", "));
    let mut failed = Vec::new();
    if wants(FUZZ) {
        let options = fuzz::Options { target: "all".to_owned(), seconds: FUZZ_SECONDS };
        if let Err(error) = phases.time(FUZZ, || fuzz::run(&options)) {
            println!("FAILED {FUZZ}: {error:#}");
            failed.push(FUZZ);
        }
    }
    let xtask = std::env::current_exe().context("finding this program")?;
    for (name, words) in STEPS.iter().filter(|(name, _)| wants(name)) {
        if let Err(error) = phases.time(name, || workspace::run(Command::new(&xtask).args(*words))) {
            println!("FAILED {name}: {error:#}");
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "failed steps: {}", failed.join(", "));
    Ok(())
}

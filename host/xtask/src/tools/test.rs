//! `cargo xtask test`: everything that must pass before a change is accepted.

use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;
use xtask::workspace;

/// The policies of the default plugins are ordinary crates and have tests; the components around them have none.
const POLICIES: &[&str] = &[
    "--package=policy-values",
    "--package=prefix-policy",
    "--package=fraud-guard-policy",
    "--package=least-cost-policy",
    "--package=resolver-policy",
    "--package=retry-ladder-policy",
    "--package=prepaid-policy",
];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only run the subcommands of this program, each of them briefly.
    #[arg(long)]
    verbs: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    super::setup::run()?;
    if options.verbs {
        return verbs();
    }
    crate::plugins::build()?;
    step("formatting", &["fmt", "--all", "--check"])?;
    step("lints", &["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"])?;
    // The behaviour tests run the binary; it is built before them, so that its errors show as such.
    workspace::daemon(false)?;
    let passed = tests(&["test", "--workspace", "--no-fail-fast"])?
        + tests(&[&["test", "--manifest-path", "plugins/Cargo.toml"], POLICIES].concat())?;
    verbs()?;
    println!("test: {passed} tests passed, formatting and lints are clean ({} s)", begun.elapsed().as_secs());
    Ok(())
}

/// Runs the subcommands, with the daemon and the measuring program that the tests have built.
fn verbs() -> Result<()> {
    let daemon = workspace::daemon(false)?;
    let mut example = workspace::cargo();
    workspace::run(example.args(["build", "--quiet", "--workspace", "--example", "measure_hooks"]))?;
    super::verbs::run(&daemon)
}

fn step(name: &str, arguments: &[&str]) -> Result<()> {
    let what = format!("test: {name}");
    workspace::timed(&what, || workspace::run(workspace::cargo().args(arguments)))
        .with_context(|| format!("{name}: not clean"))
}

/// Runs tests and returns their number.
fn tests(arguments: &[&str]) -> Result<u64> {
    println!("test: cargo {}", arguments.join(" "));
    let mut child = workspace::cargo().args(arguments).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("no standard output")?;
    let mut passed = 0;
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        // "test result: ok. 12 passed; 0 failed; …"
        if let Some(counts) = line.strip_prefix("test result: ") {
            let words: Vec<_> = counts.split_ascii_whitespace().collect();
            passed += words.get(1).and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    ensure!(child.wait()?.success(), "tests failed");
    ensure!(passed > 0, "no test ran");
    Ok(passed)
}

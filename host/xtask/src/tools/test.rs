//! `cargo xtask test`: everything that must hold before a change is taken.

use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;
use xtask::house;

/// What the default plugins decide is ordinary code, tested as such; the components around it are not.
const POLICIES: &[&str] = &[
    "--package=policy-words",
    "--package=prefix-policy",
    "--package=fraud-guard-policy",
    "--package=least-cost-policy",
    "--package=resolver-policy",
    "--package=retry-ladder-policy",
    "--package=prepaid-policy",
];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only run the verbs of this program, each of them shortly.
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
    // The behaviour tests run the binary; built before them, its errors are seen as what they are.
    house::daemon(false)?;
    let passed = tests(&["test", "--workspace", "--no-fail-fast"])?
        + tests(&[&["test", "--manifest-path", "plugins/Cargo.toml"], POLICIES].concat())?;
    verbs()?;
    println!(
        "test: all well: {passed} tests passed, formatting and lints are clean ({} s)",
        begun.elapsed().as_secs()
    );
    Ok(())
}

/// Runs the verbs, with the daemon and the measuring program as the tests have built them.
fn verbs() -> Result<()> {
    let daemon = house::daemon(false)?;
    let mut example = house::cargo();
    house::run(example.args(["build", "--quiet", "--workspace", "--example", "measure_hooks"]))?;
    super::verbs::run(&daemon)
}

fn step(name: &str, arguments: &[&str]) -> Result<()> {
    let what = format!("test: {name}");
    house::phase(&what, || house::run(house::cargo().args(arguments)))
        .with_context(|| format!("{name}: not clean"))
}

/// Runs tests and gives their number.
fn tests(arguments: &[&str]) -> Result<u64> {
    println!("test: cargo {}", arguments.join(" "));
    let mut child = house::cargo().args(arguments).stdout(Stdio::piped()).spawn()?;
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

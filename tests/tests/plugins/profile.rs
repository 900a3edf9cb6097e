//! `switchyard plugin profile` of a component with a file of cases.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use std::process::Command;

const SAMPLES: u64 = 200;

#[test]
fn functions_of_the_plugin_and_of_the_host_are_sampled() -> Result<()> {
    let fixture = Fixture::new()?;
    let (component, folder) = (fixture.folder().join("adaptive.wasm"), fixture.folder());
    std::fs::write(&component, fixture.component("adaptive")?)?;
    let cases = workspace::root().join("plugins/adaptive/cases.toml");
    let profile = |more: &[&str]| {
        let mut command = Command::new(fixture.binary());
        command.current_dir(folder).args(["plugin", "profile", "adaptive.wasm", "--cases"]).arg(&cases);
        command.args(more).output()
    };
    let output = profile(&["--samples", &SAMPLES.to_string(), "--folded", "stacks.txt"])?;
    let printed = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    ensure!(printed.contains(" of 8 cases\nSELF "), "{printed}");
    ensure!(printed.contains("  host: quality.observed  "), "{printed}");
    ensure!(
        printed.ends_with("stacks.txt: the stacks as text\nadaptive.svg: the flame graph\n"),
        "{printed}"
    );

    // The router calls the host, not the other way round; the shares are those of the samples.
    let folded = std::fs::read_to_string(folder.join("stacks.txt"))?;
    let mut samples = 0;
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').with_context(|| format!("no count: {line}"))?;
        samples += count.parse::<u64>()?;
        ensure!(!stack.contains("host: ") || stack.contains(";host: "), "{line}");
    }
    ensure!(samples >= SAMPLES, "{samples} samples");
    let observed = folded.lines().find(|line| line.contains(";host: quality.observed "));
    ensure!(observed.is_some_and(|line| line.contains("Adaptive")), "{folded}");

    let drawn = std::fs::read_to_string(folder.join("adaptive.svg"))?;
    ensure!(drawn.contains("<title>host: quality.observed: ") && !drawn.contains("<script"), "{drawn}");
    ensure!(drawn.contains(&format!("<title>all calls: {samples} samples, 100.0 %; 0 in itself")), "{drawn}");

    // Without a sample there is nothing to draw.
    let output = profile(&["--rounds", "0", "--out", "none.svg"])?;
    let words = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(1) && words.contains("no sample in 0 rounds of 8 cases"), "{words}");
    ensure!(!folder.join("none.svg").exists(), "it has drawn something");
    Ok(())
}

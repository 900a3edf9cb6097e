//! `switchyard plugin profile` of a folder, with the debug information of its build; in C, whose components are small.

use anyhow::{Result, ensure};
use behaviour_tests::Fixture;
use std::process::Command;

#[test]
fn frames_have_the_places_of_the_source() -> Result<()> {
    let fixture = Fixture::new()?;
    let run = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(fixture.binary());
        let output = command.current_dir(fixture.folder()).args(arguments).output()?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{arguments:?}: {errors}");
        Ok(String::from_utf8(output.stdout)?)
    };
    run(&["plugin", "new", "--lang", "c", "first"])?;
    let printed = run(&["plugin", "profile", "first", "--samples", "500", "--out", "graph.svg"])?;
    ensure!(printed.contains("graph.svg: the flame graph"), "{printed}");
    let drawn = std::fs::read_to_string(fixture.folder().join("graph.svg"))?;
    ensure!(drawn.contains("<title>exports_switchyard_hooks_routing_route (./plugin.c:"), "{drawn}");
    Ok(())
}

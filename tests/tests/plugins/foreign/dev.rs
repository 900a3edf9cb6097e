//! `switchyard plugin dev`, and `plugin fuzz` of a folder; in C, whose components are small: a debug build loads others slowly.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder from the template for routers.
fn new_folder(fixture: &Fixture, language: &str) -> Result<PathBuf> {
    let folder = fixture.folder().join("first");
    let mut new = Command::new(fixture.binary());
    new.args(["plugin", "new", "--lang", language, "first", "--folder"]).arg(&folder);
    ensure!(new.output()?.status.success(), "no folder");
    Ok(folder)
}

/// Replaces a text in a source.
fn edit(source: &Path, from: &str, to: &str) -> Result<()> {
    let text = std::fs::read_to_string(source)?;
    ensure!(text.contains(from), "the template has no {from:?}");
    std::fs::write(source, text.replacen(from, to, 1))?;
    Ok(())
}

#[test]
fn an_edit_is_built_tested_and_tried_in_shadow() -> Result<()> {
    let fixture = Fixture::new()?;
    let folder = new_folder(&fixture, "c")?;
    let source = folder.join("plugin.c");
    let mut config = fixture.config()?;
    for peer in ["north", "south", "bulk"] {
        config.peer(peer, config.smpp(), "links = 1");
    }
    let appliance = config.start()?;
    let mut dev = fixture.command(&appliance);
    dev.args(["plugin", "dev", "--rounds", "3"]).arg(&folder).stdout(Stdio::piped());
    let mut dev = dev.spawn()?;
    let mut lines = BufReader::new(dev.stdout.take().context("no output")?).lines();
    let mut line_with = |words: &str| -> Result<String> {
        loop {
            let line = lines.next().with_context(|| format!("it ended without {words:?}"))??;
            if line.contains(words) {
                return Ok(line);
            }
        }
    };
    line_with(", round 1")?;
    let first = line_with("built, version ")?;
    line_with("cases, all right")?;
    let shadow = line_with("shadow")?;
    let version = |line: &str| line.rsplit(' ').next().unwrap_or_default().to_owned();
    ensure!(shadow.contains("router: first ") && version(&shadow) == version(&first), "{first}\n{shadow}");
    let candidate = || -> Result<String> {
        let state = appliance.get("/v1/hooks/router")?;
        Ok(state["candidate"]["chain"][0]["version"].as_str().unwrap_or_default().to_owned())
    };
    ensure!(candidate()? == version(&first), "{} is not on trial", version(&first));

    // A mistake does not end it, and is not tried: notes are cut off.
    edit(&source, "char text[256];", "char text[8];")?;
    line_with(", round 2")?;
    line_with("of 12 failed")?;
    line_with("not started")?;
    ensure!(candidate()? == version(&first), "the mistake is on trial");

    edit(&source, "char text[8];", "char text[264];")?;
    line_with(", round 3")?;
    let third = line_with("built, version ")?;
    ensure!(version(&third) != version(&first), "{third}");
    line_with("shadow")?;
    ensure!(dev.wait()?.success(), "it failed");
    ensure!(candidate()? == version(&third), "{} is not on trial", version(&third));
    Ok(())
}

#[test]
fn an_answer_that_depends_on_the_instance_is_found() -> Result<()> {
    let fixture = Fixture::new()?;
    let folder = new_folder(&fixture, "c")?;
    let source = folder.join("plugin.c");
    // After a message with priority 3, the reason of refusals is another one.
    let begin = "  memset(ret, 0, sizeof *ret);\n";
    let counting = "  static bool lenient = false;\n  lenient = lenient || message->priority == 3;\n";
    edit(&source, begin, &format!("{counting}{begin}"))?;
    let reason = "ret->verdict.val.reject = SWITCHYARD_HOOKS_TYPES_REJECT_REASON_";
    edit(
        &source,
        &format!("{reason}PROHIBITED;"),
        &format!("{reason}PROHIBITED;\n    if (lenient) {reason}NO_ROUTE;"),
    )?;
    let mut fuzz = Command::new(fixture.binary());
    let output = fuzz.args(["plugin", "fuzz", "--seed", "1", "--seconds", "600"]).arg(&folder).output()?;
    let (stdout, stderr) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    ensure!(
        output.status.code() == Some(1) && stderr.contains("depends on the instance"),
        "{stdout}{stderr}"
    );
    let earlier = stdout.lines().filter(|line| line.starts_with("    { route = ")).count();
    ensure!(earlier == 1 && stdout.contains("priority = 3"), "{stdout}");

    // The case fails as long as the answers differ, and passes with the right plugin.
    let cases = folder.join("cases.toml");
    let text = std::fs::read_to_string(&cases)?;
    std::fs::write(&cases, format!("{text}\n{stdout}"))?;
    let test = || Command::new(fixture.binary()).args(["plugin", "test"]).arg(&folder).output();
    let failed = String::from_utf8(test()?.stderr)?;
    ensure!(
        failed.contains("1 of 13 cases failed\n") && failed.contains("FAIL  fuzz: differs, seed 1"),
        "{failed}"
    );
    edit(&source, "if (lenient)", "if (false)")?;
    let passed = String::from_utf8(test()?.stdout)?;
    ensure!(passed.contains("13 cases, all right"), "{passed}");
    Ok(())
}

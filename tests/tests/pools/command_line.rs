//! Number pools on the command line: `switchyard pool`.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use behaviour_tests::pools::http::config;
use behaviour_tests::test_daemon::TestDaemon;
use serde_json::{Value, json};
use std::process::Stdio;

/// Exit status and output of a command, both streams.
fn switchyard(
    (fixture, appliance): (&Fixture, &TestDaemon),
    input: &str,
    arguments: &[&str],
) -> Result<(i32, String, String)> {
    let mut command = fixture
        .command(appliance)
        .arg("pool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    std::io::Write::write_all(&mut command.stdin.take().context("no input")?, input.as_bytes())?;
    let output = command.wait_with_output()?;
    let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
    Ok((output.status.code().context("killed")?, text(output.stdout), text(output.stderr)))
}

#[test]
fn the_command_line() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    // Output of a command that succeeds.
    let run = |arguments: &[&str]| -> Result<String> {
        let (code, out, error) = switchyard((&fixture, &appliance), "", arguments)?;
        ensure!(code == 0, "{arguments:?}: {code} {out} {error}");
        Ok(out)
    };
    // Reason of a command that the appliance refuses.
    let refused = |arguments: &[&str]| -> Result<String> {
        let (code, out, error) = switchyard((&fixture, &appliance), "", arguments)?;
        ensure!(code == 1 && out.is_empty(), "{arguments:?}: {code} {out} {error}");
        let reason = error.strip_prefix("switchyard: ").and_then(|reason| reason.split(':').next());
        Ok(reason.with_context(|| error.clone())?.to_owned())
    };
    let shown = run(&["create", "a:b?%", "--strategy", "longest-idle", "--quarantine", "0s"])?;
    assert!(shown.contains("longest-idle") && shown.contains("a:b?%"), "{shown}");
    assert_eq!(refused(&["call", "a:b?%"])?, "empty");
    assert_eq!(run(&["add", "a:b?%", "100", "101", "--reg"])?, "100 idle+up\n101 idle+up\n");
    assert_eq!(run(&["unreg", "a:b?%", "101"])?, "101 idle+down\n");
    assert_eq!(run(&["reg", "a:b?%", "101"])?, "101 idle+up\n");
    let given = run(&["call", "a:b?%", "--holder", "cr\u{7}m", "--reason", "r", "--lease", "1h"])?;
    let ticket = given.trim().strip_prefix("100 ").context("not 100")?.to_owned();
    assert_eq!(run(&["call", "a:b?%", "--number", "101"])?.split(' ').next(), Some("101"));
    assert_eq!(refused(&["call", "a:b?%"])?, "all-busy");
    assert_eq!(refused(&["hangup", "a:b?%", "100", "--ticket", "0"])?, "other-ticket");
    assert_eq!(run(&["renew", "a:b?%", "100", "--ticket", &ticket, "--lease", "2h"])?, "100 busy+up\n");
    let one = run(&["show", "a:b?%", "100"])?;
    assert!(one.contains("cr␇m") && one.contains("1h 59m"), "{one}");
    assert_eq!(run(&["hangup", "a:b?%", "100", "--ticket", &ticket])?, "100 idle+up\n");
    assert_eq!(refused(&["hangup", "a:b?%", "100"])?, "wrong-state");
    assert_eq!(refused(&["show", "a:b?%", "999"])?, "not-in-pool");
    assert_eq!(refused(&["show", "other"])?, "no-pool");
    assert_eq!(refused(&["remove", "a:b?%"])?, "not-empty");

    // Tables for people, JSON for programs.
    let pools = run(&["list"])?;
    assert!(pools.starts_with("POOL ") && pools.lines().count() == 2, "{pools}");
    let numbers = run(&["list", "a:b?%"])?;
    assert!(numbers.starts_with("NUMBER ") && numbers.lines().count() == 3, "{numbers}");
    assert_eq!(run(&["list", "a:b?%", "--state", "busy+up"])?.lines().count(), 2);
    assert_eq!(run(&["list", "a:b?%", "--prefix", "2"])?.lines().count(), 1);
    let pool: Value = serde_json::from_str(&run(&["show", "a:b?%", "--json"])?)?;
    assert_eq!(pool["numbers"]["total"], 2);
    let listed: Value = serde_json::from_str(&run(&["--json", "list", "a:b?%", "--limit", "1"])?)?;
    assert!(
        listed["numbers"].as_array().is_some_and(|numbers| numbers.len() == 1) && listed["next"].is_u64()
    );
    let (code, _, error) =
        switchyard((&fixture, &appliance), "", &["call", "a:b?%", "--number", "5", "--json"])?;
    let problem: Value = serde_json::from_str(&error)?;
    assert_eq!((code, &problem["reason"]), (1, &json!("not-in-pool")));
    let history = run(&["history", "a:b?%", "--number", "100", "--limit", "2"])?;
    assert!(history.lines().count() == 3 && history.contains("hangup"), "{history}");

    // Several requests, of which some are refused.
    let (code, out, error) = switchyard((&fixture, &appliance), "", &["reg", "a:b?%", "100", "5", "101"])?;
    assert_eq!((code, out.as_str()), (1, "100 idle+up\n101 busy+up\n"));
    assert!(error.contains("5: not-in-pool") && error.contains("1 of 3"), "{error}");

    // Watching: past and new events.
    let events = run(&["watch", "a:b?%", "--from", "0", "--count", "3", "--json"])?;
    let events: Vec<Value> = events.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let entries: Vec<_> = events.iter().map(|event| (&event["event"], &event["number"])).collect();
    let (add, reg) = (json!("add"), json!("reg"));
    assert_eq!(entries, [(&add, &json!("100")), (&reg, &json!("100")), (&add, &json!("101"))]);
    let lines = run(&["watch", "a:b?%", "--from", "1", "--count", "1"])?;
    assert!(lines.contains("reg") && lines.contains("100") && lines.contains("admin"), "{lines}");
    let next = pool["entries"].as_u64().context("no entries")?;
    let live = std::thread::scope(|scope| -> Result<String> {
        let watch = scope.spawn(|| run(&["watch", "a:b?%", "--from", &next.to_string(), "--count", "1"]));
        run(&["del", "a:b?%", "101"])?;
        watch.join().map_err(|_| anyhow::anyhow!("panicked"))?
    })?;
    assert!(live.contains("del") && live.contains("none"), "{live}");

    // Files.
    let (code, out, _) =
        switchyard((&fixture, &appliance), "200\n201\nx\n", &["import", "a:b?%", "-", "--reg"])?;
    assert_eq!((code, out.as_str()), (1, "2 added, 0 already exist\n"), "one line is wrong");
    let file = fixture.folder().join("numbers.ndjson");
    let path = file.to_str().context("no path")?;
    run(&["export", "a:b?%", path])?;
    assert_eq!(run(&["import", "copy", path])?, "3 added, 0 already exist\n");
    let sorted = |text: String| -> Vec<String> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(run(&["export", "copy"])?), sorted(run(&["export", "a:b?%"])?));
    assert_eq!(run(&["remove", "copy", "--with-numbers"])?, "");

    // Wrong usage, a wrong token, and no daemon.
    for arguments in [
        &["call"][..],
        &["steal", "a"],
        &["call", "a", "--lease", "soon"],
        &["add", "a"],
        &["add", "a", "x"],
        &["create", "a b"],
        &["create", "a", "--strategy", "best"],
        &["list", "--token", "wrong"],
        &["list", "--url", "http://127.0.0.1:1"],
        &["import", "a", "/nowhere/at/all"],
    ] {
        let (code, out, error) = switchyard((&fixture, &appliance), "", arguments)?;
        assert!(code == 2 && out.is_empty() && !error.is_empty(), "{arguments:?}: {code} {out} {error}");
    }
    let help = run(&["--help"])?;
    assert!(help.contains("Exit status") && help.contains("Examples"), "{help}");
    Ok(())
}

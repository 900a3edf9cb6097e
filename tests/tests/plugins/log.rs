//! `switchyard plugin log --follow`.

use anyhow::{Context, Result, ensure};
use behaviour_tests::{Fixture, bind};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A command that runs until it is killed.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        Ok(Self { child, lines })
    }

    /// Reads lines up to one that contains these words.
    fn line_with(&mut self, words: &str) -> Result<String> {
        loop {
            let line = self.lines.next().with_context(|| format!("it ended without {words:?}"))??;
            if line.contains(words) {
                return Ok(line);
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn new_events_are_shown_as_they_come() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = fixture.config()?.start()?;
    let follow = |more: &[&str]| {
        let mut command = fixture.command(&appliance);
        command.args(["plugin", "log", "router", "--follow"]).args(more);
        Follower::start(command)
    };
    let (mut people, mut programs) = (follow(&[])?, follow(&["--json"])?);
    let policy = "[default]\nreject = \"no-route\"\n";
    bind(&appliance, "router", "first", &fixture.component("prefix_router")?, policy, &json!({}))?;
    let shown = people.line_with("  first ")?;
    ensure!(shown.contains("activated"), "{shown}");
    let (status, text) = appliance.request("POST", "/v1/hooks/router/rollback", b"{}")?;
    ensure!(status == 200, "{status} {text}");
    people.line_with("rolled-back")?;
    let event: Value = serde_json::from_str(&programs.line_with("rolled-back")?)?;
    ensure!(event["event"]["kind"] == "rolled-back" && event["event"]["at"].is_u64(), "{event}");
    Ok(())
}

//! The plugin authors' part of the manual, `docs/plugin-author`: runs its commands and compares their output.
//!
//! In the guide a block marked `sh` is run, in an empty folder; `sh fails` must end with 1; `sh appliance` needs an
//! appliance.

use anyhow::{Context, Result, bail, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Source, SourceOptions, StopFlag, Tally};
use behaviour_tests::manual::{CommandBlock, ManualPage, missing_line};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, TIMEOUT};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Messages that the appliance has before the guide uses it.
const MESSAGES: u64 = 200;

struct Author<'a> {
    fixture: &'a Fixture,
    folder: &'a Path,
    appliance: Option<&'a TestDaemon>,
}

impl Author<'_> {
    fn command(&self, program: &str) -> Result<Command> {
        let binary = self.fixture.binary().parent().context("the binary is in a folder")?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(binary.to_owned()).chain(std::env::split_paths(&path));
        let mut command = Command::new(program);
        command.current_dir(self.folder).env("PATH", std::env::join_paths(folders)?);
        let private = workspace::root().join(".state/guest-toolchain");
        if private.join("complete").exists() {
            command.env("SWITCHYARD_GUEST_RUSTC", private.join("bin/rustc"));
        }
        if let Some(appliance) = self.appliance {
            command.env("SWITCHYARD_URL", format!("http://{}", appliance.config().http()));
            command.env("SWITCHYARD_TOKEN_FILE", appliance.config().data().join("token"));
        }
        Ok(command)
    }

    fn follow(&self, block: &CommandBlock) -> Result<()> {
        let output = self.command("bash")?.args(["-eu", "-o", "pipefail", "-c", &block.script]).output()?;
        let printed = String::from_utf8([output.stdout, output.stderr].concat())?;
        let failure_text = || format!("the guide says\n{}\nbut the output was\n{printed}", block.script);
        let code = i32::from(block.mark == "sh fails");
        ensure!(output.status.code() == Some(code), "{}\n{}", failure_text(), output.status);
        if let Some(line) = missing_line(&printed, &block.printed) {
            bail!("{}\nwhere should have been: {line}", failure_text());
        }
        Ok(())
    }

    /// The router in `status`.
    fn router(&self) -> Result<Value> {
        let output = self.command("switchyard")?.args(["plugin", "status", "--json"]).output()?;
        ensure!(output.status.success(), "status: {}", String::from_utf8_lossy(&output.stderr));
        let hooks: Vec<Value> = serde_json::from_slice(&output.stdout)?;
        hooks.into_iter().find(|state| state["hook"] == "router").context("no router in the status")
    }

    /// The router's candidate in `status`.
    fn candidate(&self) -> Result<Value> {
        Ok(self.router()?["candidate"].take())
    }
}

fn until(what: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
    let (pause, deadline) = (StopFlag::default(), Instant::now() + 2 * TIMEOUT);
    while !holds()? {
        ensure!(Instant::now() < deadline, "timeout: {what}");
        pause.pause(Duration::from_millis(50));
    }
    Ok(())
}

/// The commands of all chapters, in the order of the manual.
fn commands() -> Result<Vec<CommandBlock>> {
    let contents = std::fs::read_to_string(workspace::root().join("docs/SUMMARY.md"))?;
    let chapters = contents.split("](plugin-author/").skip(1).filter_map(|rest| rest.split(')').next());
    let mut blocks = Vec::new();
    for chapter in chapters {
        let path = format!("docs/plugin-author/{chapter}");
        blocks.extend(ManualPage::read(&path, &["sh", "sh fails", "sh appliance"])?.blocks);
    }
    Ok(blocks)
}

#[test]
fn the_guide_can_be_followed_from_an_empty_folder_to_a_canary_and_back() -> Result<()> {
    let blocks = commands()?;
    let first = blocks.iter().position(|block| block.mark == "sh appliance");
    let (offline, online) = blocks.split_at(first.context("the guide has no `sh appliance` block")?);
    ensure!(offline.len() >= 5 && online.len() >= 5, "the guide is shorter than it was: {blocks:?}");

    let fixture = Fixture::new()?;
    let folder = fixture.folder().join("author");
    std::fs::create_dir(&folder)?;
    let author = Author { fixture: &fixture, folder: &folder, appliance: None };
    for block in offline {
        author.follow(block)?;
    }

    // As in the guide: the author's key is trusted, and unsigned plugins are refused.
    let key = std::fs::read_to_string(folder.join("author.key.pub"))?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "window = 100").peer("upstream", sink.address(), "dlrs = false");
    config.archive(&format!("sqlite:{}", fixture.folder().join("archive.db").display()));
    config.tables(&format!("[plugins]\ntrusted-keys = {{ author = {:?} }}\n", key.trim()));
    let appliance = config.start()?;
    let send = |count| -> Result<()> {
        let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
        (options.count, options.prefix) = (Some(count), "86".to_owned());
        Source::start(&options, &tally)?.join()?;
        Ok(())
    };
    send(MESSAGES)?;
    let author = Author { appliance: Some(&appliance), ..author };
    let archived = || -> Result<bool> {
        let (_, metrics) = appliance.request("GET", "/metrics", b"")?;
        Ok(metrics.lines().any(|line| {
            line.starts_with("switchyard_archive_messages_total") && line.ends_with(&format!(" {MESSAGES}"))
        }))
    };
    until("the archive has all messages", archived)?;
    for block in online {
        author.follow(block)?;
        let tried = |what: &str| block.script.contains(what);
        if tried(" replay ") {
            let (_, replays) = appliance.request("GET", "/v1/replays/1", b"")?;
            let report: Value = serde_json::from_str(&replays)?;
            ensure!(report["report"]["messages"] == MESSAGES, "not all was replayed: {report}");
        } else if tried(" shadow ") {
            send(MESSAGES)?;
            let compared = |state: &Value| state["comparison"]["compared"] == MESSAGES;
            until("every message is compared", || Ok(compared(&author.candidate()?)))?;
        } else if tried(" canary ") {
            send(MESSAGES)?;
            let state = author.candidate()?;
            let [asked, bypassed] =
                ["asked", "bypassed"].map(|count| state[count].as_u64().unwrap_or_default());
            ensure!(asked + bypassed == MESSAGES && (1..MESSAGES / 2).contains(&asked), "no tenth: {state}");
            ensure!(state["failed"] == 0, "{state}");
        }
    }
    let router = author.router()?;
    ensure!(router["live"]["chain"][0]["plugin"] == "first", "{router}");
    let (status, _) = appliance.stop()?;
    ensure!(status.success());
    Ok(())
}

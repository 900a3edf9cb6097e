//! The guide in `plugins/README.md`, command by command: what stands there is run, and prints what stands there.
//!
//! In the guide a block marked `sh` is run, in an empty folder; `sh fails` must end with 1; `sh appliance` needs an
//! appliance.

use anyhow::{Context, Result, bail, ensure};
use behaviour_tests::appliance::{Appliance, PASSWORD};
use behaviour_tests::load::{Sink, SinkOptions, Source, SourceOptions, Stop, Tally};
use behaviour_tests::manual::{Block, Page, missing};
use behaviour_tests::{PATIENCE, Stage};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use xtask::house;

/// Messages that the appliance has seen when the guide comes to it.
const MESSAGES: u64 = 200;

struct Author<'a> {
    stage: &'a Stage,
    folder: &'a Path,
    appliance: Option<&'a Appliance>,
}

impl Author<'_> {
    fn command(&self, program: &str) -> Result<Command> {
        let binary = self.stage.binary().parent().context("the binary is in a folder")?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(binary.to_owned()).chain(std::env::split_paths(&path));
        let mut command = Command::new(program);
        command.current_dir(self.folder).env("PATH", std::env::join_paths(folders)?);
        let private = house::root().join(".state/guest-toolchain");
        if private.join("complete").exists() {
            command.env("SWITCHYARD_GUEST_RUSTC", private.join("bin/rustc"));
        }
        if let Some(appliance) = self.appliance {
            command.env("SWITCHYARD_URL", format!("http://{}", appliance.blueprint().http()));
            command.env("SWITCHYARD_TOKEN_FILE", appliance.blueprint().data().join("token"));
        }
        Ok(command)
    }

    fn follow(&self, block: &Block) -> Result<()> {
        let output = self.command("bash")?.args(["-eu", "-o", "pipefail", "-c", &block.script]).output()?;
        let printed = String::from_utf8([output.stdout, output.stderr].concat())?;
        let told = || format!("the guide says\n{}\nand this came of it:\n{printed}", block.script);
        let code = i32::from(block.mark == "sh fails");
        ensure!(output.status.code() == Some(code), "{}\n{}", told(), output.status);
        if let Some(line) = missing(&printed, &block.printed) {
            bail!("{}\nwhere should have been: {line}", told());
        }
        Ok(())
    }

    /// What `status` says of the router.
    fn router(&self) -> Result<Value> {
        let output = self.command("switchyard")?.args(["plugin", "status", "--json"]).output()?;
        ensure!(output.status.success(), "status: {}", String::from_utf8_lossy(&output.stderr));
        let hooks: Vec<Value> = serde_json::from_slice(&output.stdout)?;
        hooks.into_iter().find(|state| state["hook"] == "router").context("there is no router in it")
    }

    /// What `status` says of the router's candidate.
    fn candidate(&self) -> Result<Value> {
        Ok(self.router()?["candidate"].take())
    }
}

fn until(what: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
    let (pause, deadline) = (Stop::default(), Instant::now() + 2 * PATIENCE);
    while !holds()? {
        ensure!(Instant::now() < deadline, "in vain: {what}");
        pause.pause(Duration::from_millis(50));
    }
    Ok(())
}

#[test]
fn the_guide_can_be_followed_from_an_empty_folder_to_a_canary_and_back() -> Result<()> {
    let blocks = Page::read("plugins/README.md", &["sh", "sh fails", "sh appliance"])?.blocks;
    let first = blocks.iter().position(|block| block.mark == "sh appliance");
    let (offline, online) = blocks.split_at(first.context("the guide never comes to an appliance")?);
    ensure!(offline.len() >= 5 && online.len() >= 5, "the guide is shorter than it was: {blocks:?}");

    let stage = Stage::new()?;
    let folder = stage.folder().join("author");
    std::fs::create_dir(&folder)?;
    let author = Author { stage: &stage, folder: &folder, appliance: None };
    for block in offline {
        author.follow(block)?;
    }

    // The configuration is as the guide says: the author's key is trusted, and nothing goes without one.
    let key = std::fs::read_to_string(folder.join("author.key.pub"))?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "window = 100").peer("upstream", sink.address(), "receipts = false");
    blueprint.archive(&format!("sqlite:{}", stage.folder().join("archive.db").display()));
    blueprint.tables(&format!("[plugins]\ntrusted-keys = {{ author = {:?} }}\n", key.trim()));
    let appliance = blueprint.start()?;
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
    until("the archive has what was sent", archived)?;
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
            let [asked, passed] = ["asked", "passed"].map(|count| state[count].as_u64().unwrap_or_default());
            ensure!(asked + passed == MESSAGES && (1..MESSAGES / 2).contains(&asked), "no tenth: {state}");
            ensure!(state["failed"] == 0, "{state}");
        }
    }
    let router = author.router()?;
    ensure!(router["live"]["chain"][0]["plugin"] == "first", "{router}");
    let (status, _) = appliance.stop()?;
    ensure!(status.success());
    Ok(())
}

//! The manual is correct: runs the commands of the tutorial and of the guide, in two walks. Each walk is one shell in one folder. The
//! pages use curl, jq, redis-cli and Python.

use crate::guide::{GUIDE, MARKS, TUTORIAL};
use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::manual::{ManualPage, ManualShell, Substitutions};
use behaviour_tests::test_daemon::free_port;
use behaviour_tests::{Fixture, until};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use testkit::docker_registry::{DockerRegistry, RegistryAccess};
use testkit::osmocom::Hlr;

fn read_walk(paths: &[&str]) -> Result<Vec<ManualPage>> {
    paths.iter().map(|path| ManualPage::read(path, &MARKS)).collect()
}

fn block_count(pages: &[ManualPage]) -> usize {
    pages.iter().flat_map(|page| &page.blocks).filter(|block| block.mark == "sh").count()
}

/// The number of links to peers that are up.
fn links_up(fixture: &Fixture, folder: &Path, http: u16) -> Result<u64> {
    let mut status = Command::new(fixture.binary());
    status
        .args(["status", "--json"])
        .env("SWITCHYARD_URL", format!("http://127.0.0.1:{http}"))
        .env("SWITCHYARD_TOKEN_FILE", folder.join("data/token"));
    let status: serde_json::Value = serde_json::from_slice(&status.output()?.stdout)?;
    Ok(status["links"]["up"].as_u64().unwrap_or(0))
}

#[test]
fn the_tutorial_goes_from_nothing_to_a_message_and_on() -> Result<()> {
    let pages = read_walk(&TUTORIAL)?;
    ensure!(block_count(&pages) >= 15, "the tutorial is shorter than it was: {} blocks", block_count(&pages));
    let fixture = Fixture::new()?;
    let folder = fixture.folder().join("admin");
    std::fs::create_dir(&folder)?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let http = free_port()?;
    let mut substitutions = Substitutions::default();
    substitutions.port(8080, http).port(2775, free_port()?).port(2776, sink.address().port());
    let mut shell = ManualShell::start(&fixture, &folder, http)?;
    for (path, page) in TUTORIAL.iter().zip(&pages) {
        let after = |script: &str| -> Result<()> {
            if script.contains("message send") {
                until("the peer has the message", || Ok(sink.message_count() >= 1))?;
            }
            // The change of the peer's window may have closed its link.
            if script.contains("config rollback") {
                until("the peer's link is up", || Ok(links_up(&fixture, &folder, http)? > 0))?;
            }
            Ok(())
        };
        shell
            .follow(page, &substitutions, |block| after(&block.script))
            .with_context(|| (*path).to_owned())?;
    }
    // The output of the pages agrees with the daemon.
    let status: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("status.json"))?)?;
    ensure!(status["links"]["up"].as_u64() > Some(0) && status["uncertain"] == 0, "{status:#}");
    let metrics = std::fs::read_to_string(folder.join("metrics.txt"))?;
    ensure!(metrics.contains("switchyard_messages_accepted_total 1\n"), "{metrics:.2000}");
    ensure!(folder.join("restored/switchyard.redb").exists(), "nothing was restored");
    Ok(())
}

/// In a folder that looks like the source tree, on the sample configuration and all that the pages add to it.
#[test]
fn the_guide_does_what_it_says() -> Result<()> {
    let pages = read_walk(&GUIDE)?;
    ensure!(block_count(&pages) >= 18, "the guide is shorter than it was: {} blocks", block_count(&pages));
    let fixture = Fixture::new()?;
    let folder = fixture.folder().join("switchyard");
    std::fs::create_dir_all(folder.join("host/switchyard"))?;
    std::fs::create_dir(folder.join("target"))?;
    let guests = fixture.guest("prefix_router");
    symlink(guests.parent().context("the guests are in a folder")?, folder.join("target/plugins"))?;
    symlink(workspace::root().join("policies"), folder.join("policies"))?;
    // Here it matters whether a request is refused.
    std::fs::write(folder.join(".curlrc"), "fail-with-body\nshow-error\nwrite-out = \"\\n\"\n")?;

    let hlr = Hlr::start(fixture.folder())?;
    hlr.subscriber("001010000000001", "16195550199")?;
    let (http, redis) = (free_port()?, free_port()?);
    let me = String::from_utf8(Command::new("id").arg("-un").output()?.stdout)?;
    let run = folder.display().to_string();
    let mut substitutions = Substitutions::default();
    substitutions.port(8080, http).port(8081, free_port()?).port(2775, free_port()?).port(6379, redis);
    substitutions.port(2776, free_port()?);
    substitutions.put("0.0.0.0:4222", &format!("127.0.0.1:{}", free_port()?));
    substitutions
        .put("127.0.0.2:4222", &hlr.gsup().to_string())
        .put("127.0.0.2:4259", &hlr.ctrl().to_string());
    substitutions.put("/run/switchyard", &run).put("\"alice\"", &format!("{:?}", me.trim()));
    substitutions.put("switchyard sms ", &format!("switchyard sms --socket {run}/sms.sock "));
    // With the output for people.
    substitutions.put("redis-cli ", &format!("redis-cli --no-raw -p {redis} "));

    let registry = DockerRegistry::start(&fixture.folder().join("registry"), &RegistryAccess::Open)?;
    substitutions
        .put("registry.example", &registry.address().to_string())
        .put("/media/stick", &format!("{run}/stick"));

    let sample = "host/switchyard/switchyard.toml";
    let mut configuration = std::fs::read_to_string(workspace::root().join(sample))?;
    configuration.extend(pages.iter().map(|page| &*page.configuration));
    std::fs::write(folder.join(sample), substitutions.read(&configuration))?;
    let mut shell = ManualShell::start(&fixture, &folder, http)?;
    let inbox = || -> Result<bool> {
        let mut inbox = Command::new(fixture.binary());
        inbox.args(["sms", "inbox", "--socket"]).arg(folder.join("sms.sock"));
        Ok(String::from_utf8(inbox.output()?.stdout)?.contains("buy milk"))
    };
    for (path, page) in GUIDE.iter().zip(&pages) {
        let after = |script: &str| -> Result<()> {
            if script.contains("localhost:8080/v1/messages -d") {
                let log = folder.join(".state/sink.log");
                until("the sample SMSC has the message", || {
                    Ok(std::fs::read_to_string(&log)?.contains("8613012345678: hi\n"))
                })?;
            }
            if script.contains("sms send") {
                until("the subscriber has the text", inbox)?;
            }
            Ok(())
        };
        shell
            .follow(page, &substitutions, |block| after(&block.script))
            .with_context(|| (*path).to_owned())?;
    }
    ensure!(folder.join("restored/switchyard.redb").exists(), "nothing was restored");
    Ok(())
}

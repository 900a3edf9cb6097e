//! What the manual says is what happens: the admin's guide (`host/switchyard/GUIDE.md`) and the README, command by command,
//! with a peer that takes the messages.

use anyhow::{Context, Result, bail, ensure};
use behaviour_tests::appliance::free_port;
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::manual::{Here, Page, Shell};
use behaviour_tests::{Stage, until};
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;
use xtask::house;
use xtask::osmocom::Hlr;

const GUIDE: &str = "host/switchyard/GUIDE.md";
const README: &str = "README.md";
const MARKS: [&str; 4] = ["sh", "sh build", "sh elsewhere", "sh machine"];

/// The commands that no test runs as the README has them, and why.
const ELSEWHERE: [(&str, &str); 4] = [
    ("cargo xtask demo", "runs until it is interrupted; `cargo xtask test` runs it with --exit"),
    ("cargo xtask package", "builds two releases; `cargo xtask test` runs its part --stage"),
    ("cargo xtask image", "builds a system of Debian's packages, as root"),
    ("cargo xtask test", "is what runs this test"),
];

#[test]
fn the_guide_goes_from_nothing_to_a_message_and_on() -> Result<()> {
    let guide = Page::read(GUIDE, &MARKS)?;
    ensure!(guide.blocks.len() >= 15, "the guide is shorter than it was: {} blocks", guide.blocks.len());
    let stage = Stage::new()?;
    let folder = stage.folder().join("admin");
    std::fs::create_dir(&folder)?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let http = free_port()?;
    let mut here = Here::default();
    here.port(8080, http).port(2775, free_port()?).port(2776, sink.address().port());
    Shell::start(&stage, &folder, http)?.follow(&guide, &here, |block| {
        match block.script.contains("message send") {
            true => until("the peer has the message", || Ok(sink.messages_so_far() >= 1)),
            false => Ok(()),
        }
    })?;
    // What the guide wrote down is what it says.
    let status: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("status.json"))?)?;
    ensure!(status["links"]["up"].as_u64() > Some(0) && status["uncertain"] == 0, "{status:#}");
    let metrics = std::fs::read_to_string(folder.join("metrics.txt"))?;
    ensure!(metrics.contains("switchyard_messages_accepted_total 1\n"), "{metrics:.2000}");
    ensure!(folder.join("restored/switchyard.redb").exists(), "nothing was restored");
    Ok(())
}

/// In a folder that looks like the source tree, on the sample configuration and all that the README adds to it.
#[test]
fn the_readme_does_what_it_says() -> Result<()> {
    let readme = Page::read(README, &MARKS)?;
    ensure!(readme.blocks.len() >= 18, "the README is shorter than it was: {} blocks", readme.blocks.len());
    let stage = Stage::new()?;
    let folder = stage.folder().join("switchyard");
    std::fs::create_dir_all(folder.join("host/switchyard"))?;
    std::fs::create_dir(folder.join("target"))?;
    let guests = stage.guest("prefix_router");
    symlink(guests.parent().context("the guests are in a folder")?, folder.join("target/plugins"))?;
    symlink(house::root().join("policies"), folder.join("policies"))?;
    // Here it matters whether a request is refused.
    std::fs::write(folder.join(".curlrc"), "fail-with-body\nshow-error\nwrite-out = \"\\n\"\n")?;

    let hlr = Hlr::start(stage.folder())?;
    hlr.subscriber("001010000000001", "16195550199")?;
    let (http, redis) = (free_port()?, free_port()?);
    let me = String::from_utf8(Command::new("id").arg("-un").output()?.stdout)?;
    let run = folder.display().to_string();
    let mut here = Here::default();
    here.port(8080, http).port(8081, free_port()?).port(2775, free_port()?).port(6379, redis);
    here.port(2776, free_port()?);
    here.put("0.0.0.0:4222", &format!("127.0.0.1:{}", free_port()?));
    here.put("127.0.0.2:4222", &hlr.gsup().to_string()).put("127.0.0.2:4259", &hlr.ctrl().to_string());
    here.put("/run/switchyard", &run).put("\"alice\"", &format!("{:?}", me.trim()));
    here.put("switchyard sms ", &format!("switchyard sms --socket {run}/sms.sock "));
    // As it prints for people.
    here.put("redis-cli ", &format!("redis-cli --no-raw -p {redis} "));

    let sample = "host/switchyard/switchyard.toml";
    let configuration = std::fs::read_to_string(house::root().join(sample))? + &readme.configuration;
    std::fs::write(folder.join(sample), here.read(&configuration))?;
    let mut shell = Shell::start(&stage, &folder, http)?;
    let inbox = || -> Result<bool> {
        let mut inbox = Command::new(stage.binary());
        inbox.args(["sms", "inbox", "--socket"]).arg(folder.join("sms.sock"));
        Ok(String::from_utf8(inbox.output()?.stdout)?.contains("buy milk"))
    };
    shell.follow(&readme, &here, |block| match &block.script {
        script if script.contains("/v1/messages -d") => {
            let log = folder.join(".state/sink.log");
            until("the sample SMSC has the message", || {
                Ok(std::fs::read_to_string(&log)?.contains("8613012345678: hi\n"))
            })
        }
        script if script.contains("sms send") => until("the subscriber has the text", inbox),
        _ => Ok(()),
    })?;
    ensure!(folder.join("restored/switchyard.redb").exists(), "nothing was restored");
    Ok(())
}

/// What no test runs as it stands is at least understood by the programs: each command, each option.
#[test]
fn commands_that_are_named_in_passing_are_there() -> Result<()> {
    let stage = Stage::without_guests()?;
    let (readme, guide) = (Page::read(README, &MARKS)?, Page::read(GUIDE, &MARKS)?);
    let elsewhere: BTreeSet<&str> = readme.elsewhere().chain(guide.elsewhere()).collect();
    let known: BTreeSet<&str> = ELSEWHERE.iter().map(|(command, _)| *command).collect();
    ensure!(
        elsewhere == known,
        "these are run nowhere: {elsewhere:?}; there is a reason for these: {known:?}"
    );
    let named: BTreeSet<String> = readme.named().into_iter().chain(guide.named()).collect();
    ensure!(named.len() >= 20, "fewer than there were: {named:?}");
    let mut wrong = String::new();
    for command in &named {
        let mut words = command.split_whitespace();
        let mut program = match words.next() {
            Some("cargo") => {
                let mut cargo = house::cargo();
                cargo.args(["xtask"]);
                ensure!(words.next() == Some("xtask"), "what is this? {command}");
                cargo
            }
            Some("switchyard") => Command::new(stage.binary()),
            _ => bail!("what is this? {command}"),
        };
        let output = program.args(words).arg("--help").output()?;
        if !output.status.success() {
            wrong.push_str(&format!("{command}: {}\n", String::from_utf8_lossy(&output.stderr)));
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    Ok(())
}

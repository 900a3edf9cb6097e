//! Privacy: contents that are erased, on request and by retention, and what is left of them.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{TestDaemon, TestDaemonConfig};
use behaviour_tests::{Fixture, TIMEOUT, until};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// An appliance with an account and a peer that accepts everything.
struct Setup {
    fixture: Fixture,
    sink: Sink,
}

impl Setup {
    fn new(options: SinkOptions) -> Result<Self> {
        Ok(Self { fixture: Fixture::new()?, sink: Sink::start(options, &Arc::new(Tally::new(100)))? })
    }

    fn config(&self, account_keys: &str) -> Result<TestDaemonConfig> {
        let mut config =
            TestDaemonConfig::new(self.fixture.binary(), &self.fixture.folder().join("appliance"))?;
        config.native("upstream").account("acme", account_keys);
        config.peer("upstream", self.sink.address(), "dlrs = false\nretry = [\"50ms\"]\nmax-attempts = 1000");
        Ok(config)
    }

    fn archive_folder(&self) -> Result<std::path::PathBuf> {
        let folder = self.fixture.folder().join("archive");
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    fn with_archive(&self, mut config: TestDaemonConfig) -> Result<TestDaemonConfig> {
        config.archive(&format!("sqlite:{}", self.archive_folder()?.join("archive.db").display()));
        Ok(config)
    }
}

fn send(appliance: &TestDaemon, to: &str, text: &str) -> Result<String> {
    let message = json!({ "account": "acme", "from": "1", "to": to, "text": text });
    let sent = appliance.ask("POST", "/v1/messages", message.to_string().as_bytes())?;
    Ok(sent["id"].as_str().context("no id")?.to_owned())
}

fn trace(appliance: &TestDaemon, id: &str) -> Result<Value> {
    appliance.get(&format!("/v1/messages/{id}?body=true"))
}

fn wait_until_finished(appliance: &TestDaemon, id: &str) -> Result<()> {
    until("the message has ended", || Ok(trace(appliance, id)?["finished"] == true))
}

fn wait_until_archived(appliance: &TestDaemon, count: u64) -> Result<()> {
    appliance.wait_until(TIMEOUT, "/v1/archive", |pump| {
        pump["archived"].as_u64() >= Some(count) && pump["backlog"] == 0
    })?;
    Ok(())
}

/// The files of a folder that have one of these octets.
fn files_with(folder: &Path, texts: &[&[u8]]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        let octets = std::fs::read(&path)?;
        if texts.iter().any(|text| octets.windows(text.len()).any(|part| part == *text)) {
            found.push(path.display().to_string());
        }
    }
    Ok(found)
}

#[test]
fn the_content_of_an_archived_message_is_erased_from_the_files_of_the_archive() -> Result<()> {
    let setup = Setup::new(SinkOptions::default())?;
    let appliance = setup.with_archive(setup.config("")?)?.start()?;
    let (secret, other) =
        (send(&appliance, "8613", "the secret is 4711")?, send(&appliance, "8613", "hello")?);
    wait_until_archived(&appliance, 2)?;
    let folder = setup.archive_folder()?;
    ensure!(!files_with(&folder, &[b"the secret is 4711"])?.is_empty(), "the search finds texts");
    let erase = || appliance.ask("DELETE", &format!("/v1/messages/{secret}/content"), b"");
    let erased = erase()?;
    ensure!(erased["id"] == secret, "{erased}");
    let shown = trace(&appliance, &secret)?;
    ensure!(
        shown["content_erased_at"] == erased["content_erased_at"] && shown["body"].is_null(),
        "{shown:#}"
    );
    ensure!(shown["steps"].to_string().contains("content erased, by token"), "{shown:#}");
    ensure!(shown["destination"] == "8613" && shown["state"] == "relayed", "the message stays: {shown:#}");
    ensure!(erase()? == erased, "a repetition changes nothing");
    ensure!(trace(&appliance, &other)?["body"] == "hello");
    let history = appliance.get("/v1/history?body=1&trace=1")?;
    ensure!(!history.to_string().contains(&model::hex(b"the secret is 4711")), "{history:#}");
    appliance.wait_until(TIMEOUT, "/v1/archive", |pump| pump["overwriting"] == false)?;
    let texts: [&[u8]; 2] = [b"the secret is 4711", model::hex(b"the secret is 4711").as_bytes()];
    ensure!(files_with(&folder, &texts)?.is_empty(), "{:?}", files_with(&folder, &texts)?);
    let audit = appliance.get("/v1/audit")?.to_string();
    ensure!(audit.contains("DELETE /v1/messages/{id}/content") && !audit.contains("secret"), "{audit}");
    appliance.stop()?;
    ensure!(files_with(&folder, &texts)?.is_empty());
    setup.sink.stop()?;
    Ok(())
}

#[test]
fn a_message_in_flight_keeps_its_content_and_one_that_waits_for_the_archive_loses_it_over_a_crash()
-> Result<()> {
    let refusing = SinkOptions { error_status: 0x08, error_every: 1, ..SinkOptions::default() };
    let setup = Setup::new(refusing)?;
    let appliance = setup.config("")?.start()?;
    let id = send(&appliance, "8613", "the secret is 4711")?;
    let path = format!("/v1/messages/{id}/content");
    let (status, answer) = appliance.request("DELETE", &path, b"")?;
    ensure!(
        status == 409 && answer.contains("has not ended") && answer.contains("validity ends at 20"),
        "{answer}"
    );
    setup.sink.behave(SinkOptions::default());
    wait_until_finished(&appliance, &id)?;
    let erased = appliance.ask("DELETE", &path, b"")?;
    // The store's tables follow the journal later, so the crash may need its record.
    let appliance = appliance.kill()?.start()?;
    let shown = trace(&appliance, &id)?;
    ensure!(
        shown["content_erased_at"] == erased["content_erased_at"] && shown["body"].is_null(),
        "{shown:#}"
    );
    let (_, config) = appliance.stop()?;
    let appliance = setup.with_archive(config)?.start()?;
    wait_until_archived(&appliance, 1)?;
    ensure!(trace(&appliance, &id)? == shown, "archived: {:#}", trace(&appliance, &id)?);
    ensure!(files_with(&setup.archive_folder()?, &[b"the secret is 4711"])?.is_empty());
    let (status, answer) = appliance.request("DELETE", "/v1/messages/77777777/content", b"")?;
    ensure!(status == 404, "{answer}");
    appliance.stop()?;
    setup.sink.stop()?;
    Ok(())
}

#[test]
fn texts_of_an_account_are_erased_after_its_retention() -> Result<()> {
    let setup = Setup::new(SinkOptions::default())?;
    let mut config = setup.with_archive(setup.config("")?)?;
    config.account("other", "");
    let appliance = config.start()?;
    let id = send(&appliance, "8613", "the secret is 4711")?;
    let kept = json!({ "account": "other", "from": "1", "to": "8613", "text": "to be kept" }).to_string();
    let kept = appliance.ask("POST", "/v1/messages", kept.as_bytes())?;
    wait_until_archived(&appliance, 2)?;
    ensure!(trace(&appliance, &id)?["body"] == "the secret is 4711");
    appliance.stop()?;
    let mut config = setup.with_archive(setup.config("text-retention = \"1ms\"")?)?;
    config.account("other", "");
    let appliance = config.start()?;
    let pump = appliance.wait_until(TIMEOUT, "/v1/archive", |pump| pump["contents_erased"] == 1)?;
    ensure!(pump["trimmed"] == 0, "{pump:#}");
    let shown = trace(&appliance, &id)?;
    ensure!(shown["steps"].to_string().contains("content erased, by text-retention"), "{shown:#}");
    ensure!(trace(&appliance, kept["id"].as_str().context("no id")?)?["body"] == "to be kept");
    appliance.stop()?;
    setup.sink.stop()?;
    Ok(())
}

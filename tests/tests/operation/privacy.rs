//! Privacy: erasure of contents on request and by retention, and remaining traces of them.

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
    let hex = model::hex(b"the secret is 4711");
    let history = appliance.get("/v1/history?body=1&trace=1")?;
    ensure!(!history.to_string().contains(&hex), "{history:#}");
    appliance.wait_until(TIMEOUT, "/v1/archive", |pump| pump["overwriting"] == false)?;
    let texts: [&[u8]; 2] = [b"the secret is 4711", hex.as_bytes()];
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

#[test]
fn all_of_one_number_is_erased_with_a_receipt() -> Result<()> {
    let setup = Setup::new(SinkOptions::default())?;
    let appliance = setup.with_archive(setup.config("")?)?.start()?;
    let number = "8613012345678";
    let mut ids = Vec::new();
    for text in ["the secret is 4711", "another secret"] {
        ids.push(send(&appliance, number, text)?);
    }
    let other = send(&appliance, "8613099999999", "hello")?;
    wait_until_archived(&appliance, 3)?;
    setup.sink.behave(SinkOptions { error_status: 0x08, error_every: 1, ..SinkOptions::default() });
    let waiting = send(&appliance, number, "in flight")?;

    let erase = || {
        appliance.ask(
            "POST",
            "/v1/erasures",
            json!({ "number": format!("+{number}") }).to_string().as_bytes(),
        )
    };
    let receipt = erase()?;
    ensure!(receipt["rows"] == 2 && receipt["contents"] == 2 && receipt["in_flight"] == 1, "{receipt:#}");
    ensure!(
        receipt["complete"] == false && receipt["not_reached"].to_string().contains("backups"),
        "{receipt:#}"
    );
    ensure!(!receipt.to_string().contains(number), "the receipt masks the number: {receipt:#}");
    for id in &ids {
        let shown = trace(&appliance, id)?;
        ensure!(shown["destination"] == "erased" && !shown["content_erased_at"].is_null(), "{shown:#}");
    }
    ensure!(trace(&appliance, &other)?["body"] == "hello");
    let found = appliance.get(&format!("/v1/messages?number={number}"))?;
    let found: Vec<_> = found["messages"].as_array().into_iter().flatten().map(|row| &row["id"]).collect();
    ensure!(found == [&json!(waiting)], "{found:?}");
    appliance.wait_until(TIMEOUT, "/v1/archive", |pump| pump["overwriting"] == false)?;
    let folder = setup.archive_folder()?;
    let texts: [&[u8]; 2] = [number.as_bytes(), b"the secret is 4711"];
    ensure!(files_with(&folder, &texts)?.is_empty(), "{:?}", files_with(&folder, &texts)?);

    setup.sink.behave(SinkOptions::default());
    wait_until_archived(&appliance, 4)?;
    let output = setup.fixture.command(&appliance).args(["erase", number, "--json"]).output()?;
    let receipt: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(receipt["rows"] == 1 && receipt["complete"] == true, "{receipt:#}");
    ensure!(erase()?["rows"] == 0, "a repetition changes nothing");
    let audit = appliance.get("/v1/audit")?.to_string();
    ensure!(audit.contains("POST /v1/erasures") && audit.contains("2 rows, 2 contents"), "{audit}");
    ensure!(!audit.contains(number), "{audit}");
    let (status, answer) = appliance.request("POST", "/v1/erasures", br#"{"number": "acme"}"#)?;
    ensure!(status == 400, "{answer}");
    appliance.stop()?;
    setup.sink.stop()?;
    Ok(())
}

#[test]
fn numbers_and_texts_are_redacted_by_rule_in_archive_and_cdr_files() -> Result<()> {
    let setup = Setup::new(SinkOptions::default())?;
    let number = "8613012345678";
    let rules = r#"
[archive.redact]
destination = "hash"
text = "drop"

[[cdr]]
name = "billing"
max-age = "1s"

[cdr.redact]
destination = "cut 4"
"#;
    let mut config = setup.with_archive(setup.config("")?)?;
    config.tables(rules);
    let (is_right, problems) = config.check()?;
    ensure!(!is_right && problems.contains("needs `key` or `key-file` of [redaction]"), "{problems}");
    config.tables("[redaction]\nkey = \"a key for this test\"\n");
    let appliance = config.start()?;
    let id = send(&appliance, number, "the secret is 4711")?;
    wait_until_archived(&appliance, 1)?;
    let found = appliance.get(&format!("/v1/history?number=%2B{number}&body=1&trace=1"))?;
    let message = &found["messages"][0];
    let hash = message["destination"].as_str().context("no destination")?;
    ensure!(hash.starts_with("hash:") && hash.len() == 37, "{message:#}");
    ensure!(message["id"] == id && message["source"] == "1" && message["body"] == "", "{message:#}");
    ensure!(!message["content_erased_at"].is_null() && !message.to_string().contains(number), "{message:#}");
    let texts: [&[u8]; 2] = [number.as_bytes(), b"the secret is 4711"];
    ensure!(files_with(&setup.archive_folder()?, &texts)?.is_empty(), "the archive never had it");
    let folder = appliance.config().data().join("cdr/billing");
    until("the CDR file is closed", || {
        Ok(!files_with(&folder, &[b"T,billing"]).unwrap_or_default().is_empty())
    })?;
    ensure!(!files_with(&folder, &[b",861301234,"])?.is_empty(), "cut");
    ensure!(files_with(&folder, &[number.as_bytes()])?.is_empty(), "whole");
    let configuration = appliance.get("/v1/configuration")?.to_string();
    ensure!(!configuration.contains("a key for this test"), "the key is a secret");
    let erased = appliance.ask("POST", "/v1/erasures", json!({ "number": number }).to_string().as_bytes())?;
    ensure!(erased["rows"] == 1 && erased["complete"] == true, "a hashed number is erased, too: {erased:#}");
    ensure!(!trace(&appliance, &id)?.to_string().contains(hash));
    appliance.stop()?;
    setup.sink.stop()?;
    Ok(())
}

//! Comparison of the API with its document, by PyPI `schemathesis`.

use anyhow::{Context, Result, ensure};
use behaviour_tests::fake_image_service::FakeImageService;
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, POLICY, bind, until};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The configuration of a run, with its token, and the words that no answer may have.
pub(super) struct Run<'a> {
    pub(super) configuration: &'a str,
    pub(super) token: &'a str,
    pub(super) foreign_words: &'a str,
}

/// Runs schemathesis against a daemon. All its checks must pass, and the daemon must continue to run.
pub(super) fn run_schemathesis(appliance: &mut TestDaemon, folder: &Path, run: &Run<'_>) -> Result<()> {
    let program = workspace::schemathesis();
    ensure!(program.exists(), "{} is missing; run: cargo xtask setup", program.display());
    let address = format!("http://{}", appliance.config().http());
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/schemathesis");
    let output = Command::new(program)
        .arg("--config-file")
        .arg(own.join(run.configuration))
        .args(["run", &format!("{address}/v1/openapi.json"), "--url", &address])
        .env("SWITCHYARD_TOKEN", run.token)
        .env("SWITCHYARD_FOREIGN_WORDS", run.foreign_words)
        .env("SCHEMATHESIS_HOOKS", own.join("hooks.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_COLOR", "1")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()?;
    let report_text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(appliance.ended()?.is_none(), "the appliance has ended:\n{}\n{report_text}", appliance.log(50));
    // Its findings, without header and footer.
    let found = report_text.find("=== ").map_or(&*report_text, |at| &report_text[at..]);
    let found = found.split("=== WARNINGS ===").next().unwrap_or_default();
    ensure!(output.status.success(), "{found}\n{errors}\n{}", appliance.log(20));
    let panicked = appliance.log(20_000).lines().find(|line| line.contains("panicked")).map(str::to_owned);
    ensure!(panicked.is_none(), "{panicked:?}");
    appliance.get("/v1/status").context("it does not answer any more")?;
    Ok(())
}

#[test]
fn the_api_conforms_to_its_document() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config
        .account("acme", "")
        .peer("upstream", sink.address(), "dlrs = false\nuncertain = \"send-again\"")
        .archive(&format!("sqlite:{}", fixture.folder().join("archive.db").display()))
        .environment("SWITCHYARD_OPERATE", FakeImageService::start(fixture.folder())?.socket());
    let mut appliance = config.start()?;
    // Objects to be shown.
    bind(&appliance, "router", "prefix-router", &fixture.component("prefix_router")?, POLICY, &json!({}))?;
    let mut probe = Probe::bind(appliance.smpp(), "acme", PASSWORD, "4917", false)?;
    probe.submit(1)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    let finished = |page: &Value| page["messages"].as_array().is_some_and(|all| !all.is_empty());
    until("a message is archived", || Ok(finished(&appliance.get("/v1/history")?)))?;

    let token = appliance.token()?;
    let run = Run { configuration: "schemathesis.toml", token: &token, foreign_words: "" };
    run_schemathesis(&mut appliance, fixture.folder(), &run)
}

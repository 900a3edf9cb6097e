//! The API document against the API, by PyPI `schemathesis`.

use anyhow::{Context, Result, ensure};
use behaviour_tests::fake_image_service::FakeImageService;
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::PASSWORD;
use behaviour_tests::{Fixture, POLICY, bind, until};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

#[test]
fn the_api_conforms_to_its_document() -> Result<()> {
    let program = workspace::schemathesis();
    ensure!(program.exists(), "{} is missing; run: cargo xtask setup", program.display());
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

    let address = format!("http://{}", appliance.config().http());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/schemathesis");
    let output = Command::new(program)
        .arg("--config-file")
        .arg(folder.join("schemathesis.toml"))
        .args(["run", &format!("{address}/v1/openapi.json"), "--url", &address])
        .env("SWITCHYARD_TOKEN", appliance.token()?)
        .env("SCHEMATHESIS_HOOKS", folder.join("hooks.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_COLOR", "1")
        .current_dir(fixture.folder())
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

//! An invalid configuration, policy or component is refused with the reason, and the current one stays in use.

use anyhow::{Context, Result};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, POLICY};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn an_invalid_configuration_is_refused_with_line_key_and_remedy() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "");
    let (content, words) = config.check()?;
    assert!(content, "{words}");
    config.tables("[[account]]\nname = \"acme\"\nwindw = 5\n");
    let (content, words) = config.check()?;
    assert!(!content);
    let line = std::fs::read_to_string(config.write()?)?
        .lines()
        .position(|line| line == "windw = 5")
        .context("gone")?
        + 1;
    for part in ["switchyard.toml", &format!("line {line}:"), "windw", "window", "password-hash", "acme"] {
        assert!(words.contains(part), "{part:?} is not in:\n{words}");
    }
    // And the daemon does not start with it.
    let refusal = config.start().map(|_| ()).unwrap_err();
    assert!(format!("{refusal:#}").contains("windw"), "{refusal:#}");
    Ok(())
}

#[test]
fn a_missing_or_malformed_configuration_is_refused() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.tables("this is = = no TOML");
    let (content, words) = config.check()?;
    assert!(!content && words.contains("TOML"), "{words}");
    let output = std::process::Command::new(fixture.binary())
        .args(["check", "--config", "/nowhere/at/all.toml"])
        .output()?;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/at/all.toml"));
    Ok(())
}

struct RouterFixture {
    appliance: TestDaemon,
    _sink: Sink,
    esme: Probe,
    number: u64,
}

impl RouterFixture {
    fn open(fixture: &Fixture) -> Result<Self> {
        let tally = Arc::new(Tally::new(1000));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let mut config = fixture.config()?;
        config.account("acme", "").peer("upstream", sink.address(), "dlrs = false");
        let appliance = config.start()?;
        let esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
        Ok(Self { appliance, _sink: sink, esme, number: 0 })
    }

    /// Submits a message; returns the version in its trace, or the status of its refusal.
    fn decided_by(&mut self) -> Result<Result<String, u32>> {
        self.number += 1;
        let id = match self.esme.submit(self.number)? {
            Ok(id) => id,
            Err(status) => return Ok(Err(status)),
        };
        let trace = self.appliance.get(&format!("/v1/messages/{id}"))?;
        Ok(Ok(trace["routing"]["version"].as_str().context("no version")?.to_owned()))
    }

    fn post(&self, path: &str, body: &Value) -> Result<(u16, String)> {
        self.appliance.request("POST", path, body.to_string().as_bytes())
    }
}

#[test]
fn an_invalid_router_is_refused_and_the_current_one_stays_live() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = RouterFixture::open(&fixture)?;
    let version = setup.decided_by()?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    // An empty core module, an empty component, plain text, a truncated router.
    let router = std::fs::read(fixture.guest("prefix_router"))?;
    let inputs: [(&str, &[u8]); 5] = [
        ("a core module", b"\0asm\x01\0\0\0"),
        ("an empty component", b"\0asm\x0d\0\x01\0"),
        ("text", b"this is not WebAssembly"),
        ("nothing", b""),
        ("half a router", &router[..router.len() / 2]),
    ];
    for (name, octets) in inputs {
        let (status, words) = setup.appliance.request("PUT", "/v1/plugins/other", octets)?;
        assert!((400..500).contains(&status), "{name}: {status} {words}");
        assert!(words.len() > 20, "{name}: no reason in {words:?}");
    }
    // A document that the plugin refuses, an unknown peer, an unknown version, invalid JSON.
    for (name, body) in [
        (
            "broken policy",
            json!({ "plugin": "prefix-router", "version": version, "policy": "[[route]]\nprefix = 7" }),
        ),
        ("empty policy", json!({ "plugin": "prefix-router", "version": version, "policy": "" })),
        (
            "unknown version",
            json!({ "plugin": "prefix-router", "version": "000000000000", "policy": POLICY }),
        ),
        ("unknown plugin", json!({ "plugin": "nobody", "version": version, "policy": POLICY })),
        (
            "unknown key",
            json!({ "plugin": "prefix-router", "version": version, "policy": POLICY, "colour": "red" }),
        ),
    ] {
        let (status, words) = setup.post("/v1/hooks/router/activate", &body)?;
        assert!((400..500).contains(&status), "{name}: {status} {words}");
    }
    let (status, words) = setup.appliance.request("POST", "/v1/hooks/router/activate", b"{ no JSON")?;
    assert!((400..500).contains(&status), "{status} {words}");
    assert_eq!(setup.decided_by()?, Ok(version));
    Ok(())
}

#[test]
fn requests_without_the_token_are_refused() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new()?;
    let setup = RouterFixture::open(&fixture)?;
    let path = setup.appliance.config().data().join("token");
    assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(&path)?;
    std::fs::write(&path, "something else")?;
    let (status, _) = setup.appliance.request("GET", "/v1/status", &[])?;
    assert_eq!(status, 401);
    let (status, _) = setup.appliance.request("POST", "/v1/hooks/router/rollback", b"{}")?;
    assert_eq!(status, 401);
    std::fs::write(&path, token)?;
    assert_eq!(setup.appliance.request("GET", "/v1/status", &[])?.0, 200);
    Ok(())
}

/// A plugin that traps, loops or exhausts its memory affects only its own call; `on-fault` decides.
#[test]
fn a_misbehaving_plugin_is_contained() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = RouterFixture::open(&fixture)?;
    let good = setup.decided_by()?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    let mut victim = Probe::bind(setup.appliance.smpp(), "acme", PASSWORD, "666", false)?;
    let mut number = 1_000;
    let component = fixture.component("test_moody_router")?;
    for guest in ["trap", "loop", "hog", "unknown-peer"] {
        let uploaded = setup.appliance.ask("PUT", &format!("/v1/plugins/{guest}"), &component)?;
        for (on_fault, refused) in [(json!("reject"), true), (json!("hold"), false)] {
            // The plugin sends all messages to the peer in its document, and fails according to its mood for numbers
            // that begin with 666.
            let body = json!({
                "plugin": guest, "version": uploaded["version"], "policy": format!("{guest} upstream"), "on-fault": on_fault,
            });
            let (status, words) = setup.post("/v1/hooks/router/activate", &body)?;
            assert_eq!(status, 200, "{guest}: {words}");
            number += 1;
            match victim.submit(number)? {
                Err(status) => assert!(refused && status == 0x08, "{guest}, {on_fault}: {status:#x}"),
                Ok(id) => {
                    assert!(!refused, "{guest}, {on_fault}: accepted");
                    let trace = setup.appliance.get(&format!("/v1/messages/{id}"))?;
                    assert_eq!(trace["state"], "held", "{guest}: {trace}");
                    let note = trace["routing"]["note"].as_str().unwrap_or_default();
                    assert!(note.starts_with("fault ("), "{guest}: {note:?}");
                }
            }
            // The next message, on another connection, is not affected.
            let other = setup.decided_by()?;
            assert_eq!(other, Ok(uploaded["version"].as_str().context("no version")?.to_owned()), "{guest}");
            let (status, words) = setup.post("/v1/hooks/router/rollback", &json!({}))?;
            assert_eq!(status, 200, "{words}");
        }
        assert_eq!(setup.decided_by()?, Ok(good.clone()), "after {guest}");
    }
    Ok(())
}

//! A broken configuration, policy or component is refused with the reason, and what ran before goes on.

use anyhow::{Context, Result};
use behaviour_tests::appliance::{Appliance, PASSWORD};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::{POLICY, Stage};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn a_broken_configuration_is_refused_with_line_key_and_remedy() -> Result<()> {
    let stage = Stage::new()?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "");
    let (content, words) = blueprint.check()?;
    assert!(content, "{words}");
    blueprint.tables("[[account]]\nname = \"acme\"\nwindw = 5\n");
    let (content, words) = blueprint.check()?;
    assert!(!content);
    let line = std::fs::read_to_string(blueprint.write()?)?
        .lines()
        .position(|line| line == "windw = 5")
        .context("gone")?
        + 1;
    for part in ["switchyard.toml", &format!("line {line}:"), "windw", "window", "password-hash", "acme"] {
        assert!(words.contains(part), "{part:?} is not in:\n{words}");
    }
    // And it does not start with it.
    let refusal = blueprint.start().map(|_| ()).unwrap_err();
    assert!(format!("{refusal:#}").contains("windw"), "{refusal:#}");
    Ok(())
}

#[test]
fn a_configuration_that_is_no_toml_or_not_there_is_refused() -> Result<()> {
    let stage = Stage::new()?;
    let mut blueprint = stage.blueprint()?;
    blueprint.tables("this is = = no TOML");
    let (content, words) = blueprint.check()?;
    assert!(!content && words.contains("TOML"), "{words}");
    let output = std::process::Command::new(stage.binary())
        .args(["check", "--config", "/nowhere/at/all.toml"])
        .output()?;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/at/all.toml"));
    Ok(())
}

struct House {
    appliance: Appliance,
    _sink: Sink,
    esme: Probe,
    number: u64,
}

impl House {
    fn open(stage: &Stage) -> Result<Self> {
        let tally = Arc::new(Tally::new(1000));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let mut blueprint = stage.blueprint()?;
        blueprint.account("acme", "").peer("upstream", sink.address(), "receipts = false");
        let appliance = blueprint.start()?;
        let esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
        Ok(Self { appliance, _sink: sink, esme, number: 0 })
    }

    /// Submits a message; gives the version that its trace names, or the status of its refusal.
    fn decided_by(&mut self) -> Result<Result<String, u32>> {
        self.number += 1;
        let id = match self.esme.submit(self.number)? {
            Ok(id) => id,
            Err(status) => return Ok(Err(status)),
        };
        let trace = self.appliance.get(&format!("/v1/messages/{id}"))?;
        Ok(Ok(trace["why_here"]["version"].as_str().context("no version")?.to_owned()))
    }

    fn post(&self, path: &str, body: &Value) -> Result<(u16, String)> {
        self.appliance.request("POST", path, body.to_string().as_bytes())
    }
}

#[test]
fn what_is_no_router_is_refused_and_the_old_one_goes_on() -> Result<()> {
    let stage = Stage::new()?;
    let mut house = House::open(&stage)?;
    let version = house.decided_by()?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    // An empty core module, an empty component, plain text, a router cut short.
    let router = std::fs::read(stage.guest("prefix_router"))?;
    let inputs: [(&str, &[u8]); 5] = [
        ("a core module", b"\0asm\x01\0\0\0"),
        ("an empty component", b"\0asm\x0d\0\x01\0"),
        ("text", b"this is not WebAssembly"),
        ("nothing", b""),
        ("half a router", &router[..router.len() / 2]),
    ];
    for (name, octets) in inputs {
        let (status, words) = house.appliance.request("PUT", "/v1/plugins/other", octets)?;
        assert!((400..500).contains(&status), "{name}: {status} {words}");
        assert!(words.len() > 20, "{name}: no reason in {words:?}");
    }
    // A document that the plugin refuses, a peer that is not there, a version that is not there, no JSON.
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
        let (status, words) = house.post("/v1/hooks/router/activate", &body)?;
        assert!((400..500).contains(&status), "{name}: {status} {words}");
    }
    let (status, words) = house.appliance.request("POST", "/v1/hooks/router/activate", b"{ no JSON")?;
    assert!((400..500).contains(&status), "{status} {words}");
    assert_eq!(house.decided_by()?, Ok(version));
    Ok(())
}

#[test]
fn requests_without_the_token_are_refused() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new()?;
    let house = House::open(&stage)?;
    let path = house.appliance.blueprint().data().join("token");
    assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(&path)?;
    std::fs::write(&path, "something else")?;
    let (status, _) = house.appliance.request("GET", "/v1/status", &[])?;
    assert_eq!(status, 401);
    let (status, _) = house.appliance.request("POST", "/v1/hooks/router/rollback", b"{}")?;
    assert_eq!(status, 401);
    std::fs::write(&path, token)?;
    assert_eq!(house.appliance.request("GET", "/v1/status", &[])?.0, 200);
    Ok(())
}

/// A guest that traps, loops or eats memory hurts only its own call; `on-fault` decides.
#[test]
fn a_guest_that_misbehaves_is_contained() -> Result<()> {
    let stage = Stage::new()?;
    let mut house = House::open(&stage)?;
    let good = house.decided_by()?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    let mut victim = Probe::bind(house.appliance.smpp(), "acme", PASSWORD, "666", false)?;
    let mut number = 1_000;
    for guest in ["test_trap", "test_loop", "test_hog", "test_badpeer"] {
        let uploaded = house.appliance.ask(
            "PUT",
            &format!("/v1/plugins/{guest}"),
            &std::fs::read(stage.guest(guest))?,
        )?;
        for (on_fault, refused) in [(json!("reject"), true), (json!("hold"), false)] {
            // These guests send everything to the peer that their document names, and misbehave on numbers of 666.
            let body = json!({
                "plugin": guest, "version": uploaded["version"], "policy": "upstream", "on-fault": on_fault,
            });
            let (status, words) = house.post("/v1/hooks/router/activate", &body)?;
            assert_eq!(status, 200, "{guest}: {words}");
            number += 1;
            match victim.submit(number)? {
                Err(status) => assert!(refused && status == 0x08, "{guest}, {on_fault}: {status:#x}"),
                Ok(id) => {
                    assert!(!refused, "{guest}, {on_fault}: accepted");
                    let trace = house.appliance.get(&format!("/v1/messages/{id}"))?;
                    assert_eq!(trace["state"], "held", "{guest}: {trace}");
                    let note = trace["why_here"]["note"].as_str().unwrap_or_default();
                    assert!(note.starts_with("fault ("), "{guest}: {note:?}");
                }
            }
            // The next message, of another connection, does not notice.
            let other = house.decided_by()?;
            assert_eq!(other, Ok(uploaded["version"].as_str().context("no version")?.to_owned()), "{guest}");
            let (status, words) = house.post("/v1/hooks/router/rollback", &json!({}))?;
            assert_eq!(status, 200, "{words}");
        }
        assert_eq!(house.decided_by()?, Ok(good.clone()), "after {guest}");
    }
    Ok(())
}

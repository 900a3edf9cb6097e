//! The lifecycle of a plugin: a Rust router from a template is live; a JavaScript router from a template is replayed,
//! put in shadow, made a canary and made live; it begins to trap, and is rolled back automatically. No message is lost.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use testkit::load::{Sink, SinkOptions, Source, SourceOptions, Tally};
use testkit::test_daemon::{PASSWORD, TestDaemon};

/// Messages in the replay.
const ARCHIVED: u64 = 100_000;
/// Messages seen by the shadow.
const SHADOWED: u64 = 4_000;
/// Messages of which the canary gets a share.
const SHARED: u64 = 20_000;
/// Messages on which the candidate traps.
const TRAPPING: u64 = 2_000;

const LIVE: &str = "route 86 north\n";
const CANDIDATE: &str = "route 86 north\nroute 861000005 south\nreject 861000007\n";
/// The same for numbers after the archived ones.
const SHADOW: &str = "route 86 north\nroute 861000010 south\n";
const CANARY: &str = "route 86 south\n";

/// The candidate's expected decision: numbers are 861 and ten digits.
fn decided(number: u64) -> &'static str {
    let destination = format!("861{number:010}");
    if destination.starts_with("861000007") {
        "reject prohibited"
    } else if destination.starts_with("861000005") {
        "forward south"
    } else {
        "forward north"
    }
}

/// Runs `switchyard plugin ...`.
fn plugin(fixture: &Fixture, arguments: &[&str]) -> Result<String> {
    let output = Command::new(fixture.binary())
        .arg("plugin")
        .args(arguments)
        .current_dir(fixture.folder())
        .output()?;
    let words = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "switchyard plugin {arguments:?}: {words}");
    Ok(words)
}

/// A router from a language's template, with `change` applied to its source.
fn from_template(fixture: &Fixture, language: &str, source: &str, change: [&str; 2]) -> Result<PathBuf> {
    let name = format!("setup-{language}");
    plugin(fixture, &["new", "--lang", language, &name])?;
    let folder = fixture.folder().join(&name);
    let text = std::fs::read_to_string(folder.join(source))?;
    ensure!(text.contains(change[0]), "the template has no {:?}", change[0]);
    std::fs::write(folder.join(source), text.replace(change[0], change[1]))?;
    plugin(fixture, &["build", &name])?;
    Ok(folder.join(format!("{name}.wasm")))
}

struct PluginFixture {
    appliance: TestDaemon,
    tally: Arc<Tally>,
    version: String,
}

impl PluginFixture {
    /// A binding of the JavaScript router.
    fn binding(&self, policy: &str) -> Value {
        json!({ "plugin": "setup-js", "version": self.version, "policy": policy, "deadline-ms": 1000 })
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.appliance.ask("POST", path, body.to_string().as_bytes())
    }

    /// Submits messages, and waits until all have arrived.
    fn traffic(&self, prefix: &str, count: u64, rate: Option<f64>) -> Result<()> {
        let options = SourceOptions {
            count: Some(count),
            rate,
            connections: 2,
            prefix: prefix.to_owned(),
            ..SourceOptions::new(self.appliance.smpp(), "acme", PASSWORD)
        };
        let before = self.tally.arrived_count();
        let report = Source::start(&options, &self.tally)?.join()?;
        ensure!(report.refusals.is_empty(), "{:?}", report.refusals);
        self.appliance.wait_until(Duration::from_secs(120), "/v1/status", |_| {
            self.tally.arrived_count() >= before + count
        })?;
        Ok(())
    }

    fn router(&self) -> Result<Value> {
        self.appliance.get("/v1/hooks/router")
    }

    fn event(&self, kind: &str) -> Result<Option<u64>> {
        Ok(newest(&self.router()?, kind))
    }

    /// Sends traffic on which the candidate traps, until there is an event of this kind. All messages are accepted and arrive.
    fn traps(&self, kind: &str) -> Result<()> {
        let before = self.event(kind)?;
        self.traffic("86666", TRAPPING, None)?;
        let path = "/v1/hooks/router";
        self.appliance.wait_until(Duration::from_secs(60), path, |state| newest(state, kind) > before)?;
        Ok(())
    }
}

/// The time of the newest event of a kind.
fn newest(state: &Value, kind: &str) -> Option<u64> {
    let events = state["events"].as_array().into_iter().flatten();
    events.filter(|event| event["kind"] == kind).filter_map(|event| event["at"].as_u64()).max()
}

fn check_replay(setup: &PluginFixture) -> Result<()> {
    let mut request = setup.binding(CANDIDATE);
    request["limit"] = ARCHIVED.into();
    let id = setup.post("/v1/replays", &request)?["id"].as_str().context("no id")?.to_owned();
    let path = format!("/v1/replays/{id}");
    let done =
        setup.appliance.wait_until(Duration::from_secs(240), &path, |replay| replay["state"] != "running")?;
    let report = &done["report"];
    assert_eq!(report["messages"], ARCHIVED, "{report:#}");
    assert_eq!(report["exact"], ARCHIVED, "{report:#}");

    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    for number in 0..ARCHIVED {
        *expected.entry(("forward north".to_owned(), decided(number).to_owned())).or_default() += 1;
    }
    let same = expected.remove(&("forward north".to_owned(), "forward north".to_owned())).unwrap_or(0);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let groups = report["groups"].as_array().context("no groups")?.iter();
    let found: BTreeMap<(String, String), u64> = groups
        .map(|group| ((word(&group["from"]), word(&group["to"])), group["count"].as_u64().unwrap_or(0)))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(report["same"], same);
    assert_eq!(
        report["new_rejects"],
        expected[&("forward north".to_owned(), "reject prohibited".to_owned())]
    );
    // Its examples match the counts.
    for group in report["groups"].as_array().into_iter().flatten() {
        for example in group["examples"].as_array().into_iter().flatten() {
            let path = format!("/v1/messages/{}?body=1", word(&example["id"]));
            let destination = word(&setup.appliance.get(&path)?["destination"]);
            let number: u64 = destination.strip_prefix("861").context("another number")?.parse()?;
            assert_eq!(decided(number), word(&group["to"]), "{destination}");
        }
    }
    Ok(())
}

/// Refuses the last thousand of the archived messages.
const NEWEST: &str = "route 86 north\nreject 8610000099\n";

/// A replay of only the last accepted messages.
fn check_replay_of_last(setup: &PluginFixture) -> Result<()> {
    const LAST: u64 = 40;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let newest = setup.appliance.get(&format!("/v1/history?limit={LAST}"))?;
    let newest: Vec<String> =
        newest["messages"].as_array().into_iter().flatten().map(|one| word(&one["id"])).collect();
    assert_eq!(newest.len() as u64, LAST);
    let mut request = setup.binding(NEWEST);
    request["last"] = LAST.into();
    let id = setup.post("/v1/replays", &request)?["id"].as_str().context("no id")?.to_owned();
    let path = format!("/v1/replays/{id}");
    let done =
        setup.appliance.wait_until(Duration::from_secs(240), &path, |replay| replay["state"] != "running")?;
    assert_eq!((&done["last"], &done["limit"]), (&LAST.into(), &Value::Null));
    let report = &done["report"];
    assert_eq!((&report["messages"], &report["new_rejects"]), (&LAST.into(), &LAST.into()), "{report:#}");
    let groups = report["groups"].as_array().into_iter().flatten();
    let mut examples = groups.flat_map(|group| group["examples"].as_array().into_iter().flatten()).peekable();
    assert!(examples.peek().is_some(), "{report:#}");
    for example in examples {
        let id = word(&example["id"]);
        assert!(newest.contains(&id), "{id} is none of the last {LAST}");
    }
    Ok(())
}

/// Faults of a version are listed with examples, each with the trace of its message; also after the rollback.
fn check_fault_examples(setup: &PluginFixture) -> Result<()> {
    let state = setup.router()?;
    let faulty = state["faults"].as_array().context("no faults")?;
    let faulty = faulty.iter().find(|one| one["version"] == setup.version.as_str());
    let faulty = faulty.with_context(|| format!("no faults of {}: {state:#}", setup.version))?;
    let examples = faulty["examples"].as_array().context("no examples")?;
    assert!(faulty["faults"].as_u64() >= Some(examples.len() as u64) && !examples.is_empty(), "{faulty:#}");
    for example in examples {
        assert_eq!(example["kind"], "trap", "{example:#}");
        assert!(example["what"].as_str().is_some_and(|what| what.starts_with("trapped")), "{example:#}");
        let id = example["message"].as_str().with_context(|| format!("no message: {example:#}"))?;
        let destination = setup.appliance.get(&format!("/v1/messages/{id}?body=1"))?["destination"].take();
        let destination = destination.as_str().context("no destination")?;
        assert!(destination.contains("86666"), "{destination}");
        let question = example["question"].as_str().unwrap_or_default();
        assert!(!question.contains(destination) && question.starts_with("acme: "), "{question}");
    }
    Ok(())
}

fn run_shadow(setup: &PluginFixture) -> Result<()> {
    let mut request = setup.binding(SHADOW);
    request["mode"] = "shadow".into();
    setup.post("/v1/hooks/router/candidate", &request)?;
    setup.traffic("861", SHADOWED, Some(2_000.0))?;
    let state = setup.appliance.wait_until(Duration::from_secs(60), "/v1/hooks/router", |state| {
        let shadow = &state["candidate"]["comparison"];
        let seen = [&shadow["compared"], &shadow["skipped"]].map(|count| count.as_u64().unwrap_or(0));
        seen.iter().sum::<u64>() >= SHADOWED
    })?;
    let shadow = &state["candidate"]["comparison"];
    let count = |name: &str| shadow[name].as_u64().unwrap_or(0);
    assert_eq!(count("compared") + count("skipped"), SHADOWED, "{shadow:#}");
    assert_eq!(count("same") + count("different"), count("compared"), "{shadow:#}");
    assert!(count("compared") > SHADOWED / 2, "{shadow:#}");
    // All of them begin with 000010; the candidate sends those to the other peer, but none went there.
    assert_eq!(count("different"), count("compared"), "{shadow:#}");
    let difference = &shadow["differences"][0];
    assert!(difference["from"].as_str().unwrap_or_default().contains("north"), "{difference:#}");
    assert!(difference["to"].as_str().unwrap_or_default().contains("south"), "{difference:#}");
    let id = difference["messages"][0].as_str().with_context(|| format!("no message: {difference:#}"))?;
    assert_eq!(setup.appliance.get(&format!("/v1/messages/{id}"))?["id"], id);
    Ok(())
}

fn run_canary(setup: &PluginFixture, south: &Sink) -> Result<()> {
    let (before, mut request) = (south.message_count(), setup.binding(CANARY));
    request["mode"] = "canary".into();
    request["share"] = 10.0.into();
    setup.post("/v1/hooks/router/candidate", &request)?;
    setup.traffic("861", SHARED, None)?;
    let went_south = south.message_count() - before;
    let candidate = setup.router()?["candidate"].take();
    assert_eq!(candidate["asked"], went_south, "{candidate:#}");
    assert_eq!(candidate["bypassed"], SHARED - went_south, "{candidate:#}");
    assert_eq!(candidate["failed"], 0, "{candidate:#}");
    let share = went_south as f64 / SHARED as f64;
    assert!((share - 0.10).abs() <= 0.01, "requested share 10 %, actual {:.2} %", share * 100.0);
    // Both versions at the same time.
    for (plugins, what) in [(&candidate["counts"], "candidate"), (&setup.router()?["counts"], "live")] {
        assert!(plugins[0]["calls"].as_u64() > Some(0), "{what}: {plugins:#}");
    }
    Ok(())
}

/// First a canary, then live.
fn check_rollback(setup: &PluginFixture, rust: &str) -> Result<()> {
    setup.traps("candidate-faulty")?;
    assert_eq!(setup.router()?["candidate"], Value::Null);

    let record = setup.post("/v1/hooks/router/activate", &setup.binding(CANARY))?;
    assert_eq!(record["chain"][0]["version"], setup.version.as_str());
    setup.traps("rolled-back-by-itself")?;
    let state = setup.router()?;
    assert_eq!(state["live"]["chain"][0]["version"], rust, "{state:#}");
    let condemned = state["history"].as_array().into_iter().flatten().any(|record| {
        record["chain"][0]["version"] == setup.version.as_str() && record["condemned"].is_string()
    });
    assert!(condemned, "no reason for the rollback: {:#}", state["history"]);
    Ok(())
}

#[test]
fn from_two_templates_to_live_traffic_and_back() -> Result<()> {
    let fixture = Fixture::new()?;
    let rust = from_template(&fixture, "rust", "src/lib.rs", ["struct Plugin;", "struct Plugin;"])?;
    let trap = "if (message.destination.value.startsWith('86666')) throw new Error('out of order');";
    let route = ["  route(message) {\n", &format!("  route(message) {{\n    {trap}\n")];
    let javascript = from_template(&fixture, "js", "plugin.js", route)?;

    let tally = Arc::new(Tally::new(300_000));
    let north = Sink::start(SinkOptions::default(), &tally)?;
    let south = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config
        .router(&rust, LIVE)?
        .hold("1s")
        .archive("sqlite:archive.db")
        .account("acme", "system-id = \"acme\"");
    for (name, sink) in [("north", &north), ("south", &south)] {
        config.peer(name, sink.address(), "links = 2\nwindow = 500\ndlrs = false");
    }
    let appliance = config.start()?;
    let first = appliance.get("/v1/hooks/router")?["live"]["chain"][0]["version"].as_str().map(str::to_owned);
    let first = first.context("no router")?;
    let version = pushed(&fixture, &appliance, &javascript)?;
    let setup = PluginFixture { appliance, tally, version };

    setup.traffic("861", ARCHIVED, None)?;
    setup.appliance.wait_until(Duration::from_secs(120), "/v1/archive", |_| {
        setup
            .appliance
            .metric("switchyard_archive_messages_total")
            .is_ok_and(|count| count as u64 >= ARCHIVED)
    })?;
    check_replay(&setup)?;
    check_replay_of_last(&setup)?;
    run_shadow(&setup)?;
    assert_eq!(south.message_count(), 0, "a shadow's decision is not applied");
    run_canary(&setup, &south)?;
    check_rollback(&setup, &first)?;
    check_fault_examples(&setup)?;

    let metrics = setup.appliance.metrics()?;
    let of = |version: &str| {
        metrics.iter().any(|(name, _)| name.contains("hook_seconds") && name.contains(version))
    };
    assert!(of(&first), "no metrics of the live version");
    let waits = "/v1/status";
    setup.appliance.wait_until(Duration::from_secs(60), waits, |status| status["waiting"] == 0)?;
    let sums = setup.tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.unanswered), (0, 0, 0), "{sums:?}");
    let (status, _) = setup.appliance.stop()?;
    assert!(status.success());
    Ok(())
}

/// Uploads with `switchyard plugin push`.
fn pushed(fixture: &Fixture, appliance: &TestDaemon, component: &Path) -> Result<String> {
    let url = format!("http://{}", appliance.config().http());
    let token = appliance.config().data().join("token");
    let said = plugin(
        fixture,
        &[
            "push",
            "--json",
            &component.display().to_string(),
            "--url",
            &url,
            "--token-file",
            &token.display().to_string(),
        ],
    )?;
    let info: Value = serde_json::from_str(&said).with_context(|| said.clone())?;
    Ok(info["version"].as_str().context("no version")?.to_owned())
}

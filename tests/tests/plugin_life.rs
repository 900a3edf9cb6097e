//! The life of a plugin, as one story: a Rust router from a template is live, a JavaScript router from a template is replayed,
//! put in shadow, made a canary, made live; it begins to trap, and goes back by itself. Nothing is lost on the way.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Stage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xtask::appliance::{Appliance, PASSWORD};
use xtask::load::{Sink, SinkOptions, Source, SourceOptions, Tally};

/// Messages that the replay judges.
const ARCHIVED: u64 = 100_000;
/// Messages that the shadow sees.
const SHADOWED: u64 = 4_000;
/// Messages of which the canary gets a share.
const SHARED: u64 = 20_000;
/// Messages on which the candidate traps.
const TRAPPING: u64 = 2_000;

const LIVE: &str = "route 86 north\n";
const CANDIDATE: &str = "route 86 north\nroute 861000005 south\nreject 861000007\n";
/// The same, for numbers that come after the archived ones.
const SHADOW: &str = "route 86 north\nroute 861000010 south\n";
const CANARY: &str = "route 86 south\n";

/// What the candidate is to decide, computed without it: numbers are submitted as 861 and ten digits.
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
fn plugin(stage: &Stage, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(stage.binary()).arg("plugin").args(arguments).current_dir(stage.folder()).output()?;
    let words = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "switchyard plugin {arguments:?}: {words}");
    Ok(words)
}

/// A router from the template of a language, with `change` made to its source.
fn from_template(stage: &Stage, language: &str, source: &str, change: [&str; 2]) -> Result<PathBuf> {
    let name = format!("story-{language}");
    plugin(stage, &["new", "--lang", language, &name])?;
    let folder = stage.folder().join(&name);
    let text = std::fs::read_to_string(folder.join(source))?;
    ensure!(text.contains(change[0]), "the template has no {:?}", change[0]);
    std::fs::write(folder.join(source), text.replace(change[0], change[1]))?;
    plugin(stage, &["build", &name])?;
    Ok(folder.join(format!("{name}.wasm")))
}

struct Story {
    appliance: Appliance,
    tally: Arc<Tally>,
    version: String,
}

impl Story {
    /// A binding of the JavaScript router.
    fn binding(&self, policy: &str) -> Value {
        json!({ "plugin": "story-js", "version": self.version, "policy": policy, "deadline-ms": 1000 })
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.appliance.ask("POST", path, body.to_string().as_bytes())
    }

    /// Submits so many messages, and waits until all of them are where they belong.
    fn traffic(&self, prefix: &str, count: u64, rate: Option<f64>) -> Result<()> {
        let options = SourceOptions {
            count: Some(count),
            rate,
            connections: 2,
            prefix: prefix.to_owned(),
            ..SourceOptions::new(self.appliance.smpp(), "acme", PASSWORD)
        };
        let before = self.tally.arrived_so_far();
        let report = Source::start(&options, &self.tally)?.join()?;
        ensure!(report.refusals.is_empty(), "{:?}", report.refusals);
        self.appliance.wait_until(Duration::from_secs(120), "/v1/status", |_| {
            self.tally.arrived_so_far() >= before + count
        })?;
        Ok(())
    }

    fn router(&self) -> Result<Value> {
        self.appliance.get("/v1/hooks/router")
    }

    fn event(&self, kind: &str) -> Result<Option<u64>> {
        Ok(newest(&self.router()?, kind))
    }

    /// Sends traffic on which the candidate traps; there is an event of this kind then. Gives back how many milliseconds
    /// after the first message that was. All of it is accepted, and arrives, all the same.
    fn traps(&self, kind: &str) -> Result<u64> {
        let before = self.event(kind)?;
        let begun = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
        self.traffic("86666", TRAPPING, None)?;
        let path = "/v1/hooks/router";
        self.appliance.wait_until(Duration::from_secs(60), path, |state| newest(state, kind) > before)?;
        Ok(self.event(kind)?.unwrap_or(u64::MAX).saturating_sub(begun))
    }
}

/// The time of the newest event of a kind.
fn newest(state: &Value, kind: &str) -> Option<u64> {
    let events = state["events"].as_array().into_iter().flatten();
    events.filter(|event| event["kind"] == kind).filter_map(|event| event["at"].as_u64()).max()
}

fn replayed(story: &Story) -> Result<()> {
    let mut order = story.binding(CANDIDATE);
    order["limit"] = ARCHIVED.into();
    let id = story.post("/v1/replays", &order)?["id"].as_str().context("no id")?.to_owned();
    let path = format!("/v1/replays/{id}");
    let done =
        story.appliance.wait_until(Duration::from_secs(240), &path, |replay| replay["state"] != "running")?;
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
    // Its examples are what they are said to be.
    for group in report["groups"].as_array().into_iter().flatten() {
        for example in group["examples"].as_array().into_iter().flatten() {
            let path = format!("/v1/messages/{}?body=1", word(&example["id"]));
            let destination = word(&story.appliance.get(&path)?["destination"]);
            let number: u64 = destination.strip_prefix("861").context("another number")?.parse()?;
            assert_eq!(decided(number), word(&group["to"]), "{destination}");
        }
    }
    Ok(())
}

/// Refuses the last thousand of the archived messages.
const NEWEST: &str = "route 86 north\nreject 8610000099\n";

/// Of the archive only what was accepted last: as many as were asked for.
fn replayed_the_last(story: &Story) -> Result<()> {
    const LAST: u64 = 40;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let newest = story.appliance.get(&format!("/v1/history?limit={LAST}"))?;
    let newest: Vec<String> =
        newest["messages"].as_array().into_iter().flatten().map(|one| word(&one["id"])).collect();
    assert_eq!(newest.len() as u64, LAST);
    let mut order = story.binding(NEWEST);
    order["last"] = LAST.into();
    let id = story.post("/v1/replays", &order)?["id"].as_str().context("no id")?.to_owned();
    let path = format!("/v1/replays/{id}");
    let done =
        story.appliance.wait_until(Duration::from_secs(240), &path, |replay| replay["state"] != "running")?;
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

/// What a version failed at is told with examples, each with the trace of its message; also after it was taken back.
fn faults_have_examples(story: &Story) -> Result<()> {
    let state = story.router()?;
    let faulty = state["faults"].as_array().context("no faults")?;
    let faulty = faulty.iter().find(|one| one["version"] == story.version.as_str());
    let faulty = faulty.with_context(|| format!("no faults of {}: {state:#}", story.version))?;
    let examples = faulty["examples"].as_array().context("no examples")?;
    assert!(faulty["faults"].as_u64() >= Some(examples.len() as u64) && !examples.is_empty(), "{faulty:#}");
    for example in examples {
        assert_eq!(example["kind"], "trap", "{example:#}");
        assert!(example["what"].as_str().is_some_and(|what| what.starts_with("trapped")), "{example:#}");
        let id = example["message"].as_str().with_context(|| format!("no message: {example:#}"))?;
        let destination = story.appliance.get(&format!("/v1/messages/{id}?body=1"))?["destination"].take();
        let destination = destination.as_str().context("no destination")?;
        assert!(destination.contains("86666"), "{destination}");
        let question = example["question"].as_str().unwrap_or_default();
        assert!(!question.contains(destination) && question.starts_with("acme: "), "{question}");
    }
    Ok(())
}

fn in_shadow(story: &Story) -> Result<()> {
    let mut order = story.binding(SHADOW);
    order["mode"] = "shadow".into();
    story.post("/v1/hooks/router/candidate", &order)?;
    story.traffic("861", SHADOWED, Some(2_000.0))?;
    let state = story.appliance.wait_until(Duration::from_secs(60), "/v1/hooks/router", |state| {
        let shadow = &state["candidate"]["comparison"];
        let seen = [&shadow["compared"], &shadow["skipped"]].map(|count| count.as_u64().unwrap_or(0));
        seen.iter().sum::<u64>() >= SHADOWED
    })?;
    let shadow = &state["candidate"]["comparison"];
    let count = |name: &str| shadow[name].as_u64().unwrap_or(0);
    assert_eq!(count("compared") + count("skipped"), SHADOWED, "{shadow:#}");
    assert_eq!(count("same") + count("different"), count("compared"), "{shadow:#}");
    assert!(count("compared") > SHADOWED / 2, "{shadow:#}");
    // All of them begin with 000010; the candidate sends those to the other peer, and none went there.
    assert_eq!(count("different"), count("compared"), "{shadow:#}");
    let difference = &shadow["differences"][0];
    assert!(difference["from"].as_str().unwrap_or_default().contains("north"), "{difference:#}");
    assert!(difference["to"].as_str().unwrap_or_default().contains("south"), "{difference:#}");
    let id = difference["messages"][0].as_str().with_context(|| format!("no message: {difference:#}"))?;
    assert_eq!(story.appliance.get(&format!("/v1/messages/{id}"))?["id"], id);
    Ok(())
}

fn as_a_canary(story: &Story, south: &Sink) -> Result<()> {
    let (before, mut order) = (south.messages_so_far(), story.binding(CANARY));
    order["mode"] = "canary".into();
    order["share"] = 10.0.into();
    story.post("/v1/hooks/router/candidate", &order)?;
    story.traffic("861", SHARED, None)?;
    let went_south = south.messages_so_far() - before;
    let candidate = story.router()?["candidate"].take();
    assert_eq!(candidate["asked"], went_south, "{candidate:#}");
    assert_eq!(candidate["passed"], SHARED - went_south, "{candidate:#}");
    assert_eq!(candidate["failed"], 0, "{candidate:#}");
    let share = went_south as f64 / SHARED as f64;
    assert!((share - 0.10).abs() <= 0.01, "10 % were asked for, and {:.2} % went there", share * 100.0);
    // Both versions, side by side.
    for (plugins, what) in [(&candidate["counts"], "candidate"), (&story.router()?["counts"], "live")] {
        assert!(plugins[0]["calls"].as_u64() > Some(0), "{what}: {plugins:#}");
    }
    Ok(())
}

/// As a canary first, and then live.
fn it_begins_to_trap(story: &Story, rust: &str) -> Result<()> {
    let after = story.traps("candidate-faulty")?;
    assert!(after <= 1_000, "the canary went after {after} ms");
    assert_eq!(story.router()?["candidate"], Value::Null);

    let record = story.post("/v1/hooks/router/activate", &story.binding(CANARY))?;
    assert_eq!(record["chain"][0]["version"], story.version.as_str());
    let after = story.traps("rolled-back-by-itself")?;
    assert!(after <= 1_000, "the live router went after {after} ms");
    let state = story.router()?;
    assert_eq!(state["live"]["chain"][0]["version"], rust, "{state:#}");
    let condemned = state["history"].as_array().into_iter().flatten().any(|record| {
        record["chain"][0]["version"] == story.version.as_str() && record["condemned"].is_string()
    });
    assert!(condemned, "nobody says why it went: {:#}", state["history"]);
    Ok(())
}

#[test]
fn from_two_templates_to_live_traffic_and_back() -> Result<()> {
    let stage = Stage::new()?;
    let rust = from_template(&stage, "rust", "src/lib.rs", ["struct Plugin;", "struct Plugin;"])?;
    let trap = "if (message.destination.value.startsWith('86666')) throw new Error('out of order');";
    let route = ["  route(message) {\n", &format!("  route(message) {{\n    {trap}\n")];
    let javascript = from_template(&stage, "js", "plugin.js", route)?;

    let tally = Arc::new(Tally::new(300_000));
    let north = Sink::start(SinkOptions::default(), &tally)?;
    let south = Sink::start(SinkOptions::default(), &tally)?;
    let mut blueprint = stage.blueprint()?;
    blueprint
        .router(&rust, LIVE)?
        .hold("1s")
        .archive("sqlite:archive.db")
        .account("acme", "system-id = \"acme\"");
    for (name, sink) in [("north", &north), ("south", &south)] {
        blueprint.peer(name, sink.address(), "links = 2\nwindow = 500\nreceipts = false");
    }
    let appliance = blueprint.start()?;
    let first = appliance.get("/v1/hooks/router")?["live"]["chain"][0]["version"].as_str().map(str::to_owned);
    let first = first.context("no router")?;
    let version = pushed(&stage, &appliance, &javascript)?;
    let story = Story { appliance, tally, version };

    story.traffic("861", ARCHIVED, None)?;
    story.appliance.wait_until(Duration::from_secs(120), "/v1/archive", |_| {
        story
            .appliance
            .metric("switchyard_archive_messages_total")
            .is_ok_and(|count| count as u64 >= ARCHIVED)
    })?;
    replayed(&story)?;
    replayed_the_last(&story)?;
    in_shadow(&story)?;
    assert_eq!(south.messages_so_far(), 0, "what a shadow says is not done");
    as_a_canary(&story, &south)?;
    it_begins_to_trap(&story, &first)?;
    faults_have_examples(&story)?;

    let metrics = story.appliance.metrics()?;
    let of = |version: &str| {
        metrics.iter().any(|(name, _)| name.contains("hook_seconds") && name.contains(version))
    };
    assert!(of(&first), "no metrics of the live version");
    let waits = "/v1/status";
    story.appliance.wait_until(Duration::from_secs(60), waits, |status| status["waiting"] == 0)?;
    let sums = story.tally.accounts();
    assert_eq!((sums.missing, sums.duplicates, sums.unanswered), (0, 0, 0), "{sums:?}");
    let (status, _) = story.appliance.stop()?;
    assert!(status.success());
    Ok(())
}

/// Uploads with the author's command.
fn pushed(stage: &Stage, appliance: &Appliance, component: &Path) -> Result<String> {
    let url = format!("http://{}", appliance.blueprint().http());
    let token = appliance.blueprint().data().join("token");
    let said = plugin(
        stage,
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

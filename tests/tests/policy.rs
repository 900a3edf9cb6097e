//! What follows a refused attempt: as the delivery policy's document says, or, where the policy fails, as the peer's own
//! schedule says.

use anyhow::{Context, Result};
use behaviour_tests::appliance::{Appliance, PASSWORD};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::{PATIENCE, Stage, bind, shipped, steps, until};
use serde_json::{Value, json};
use std::sync::Arc;

/// North first, then south.
const BOTH: &str = "[default]\nlegs = [{ peer = \"north\" }, { peer = \"south\", rank = 1 }]\nnote = \"north, then south\"\n";

/// A ladder that is climbed in no time.
const SHORT: &str = "[temporary]\nwaits = [\"10ms\", \"20ms\"]\nattempts-per-leg = 3\n[permanent]\n\
                     [absent]\n[memory-full]\n[throttled]\nwaits = [\"0s\"]\n";

/// ESME_RSYSERR, ESME_RINVDSTADR, ESME_RTHROTTLED.
const TEMPORARY: u32 = 0x08;
const PERMANENT: u32 = 0x0B;
const THROTTLED: u32 = 0x58;

/// Refuses everything.
fn refusing(status: u32) -> SinkOptions {
    SinkOptions { error_status: status, ..SinkOptions::default() }
}

struct House {
    appliance: Appliance,
    tally: Arc<Tally>,
    north: Sink,
    south: Sink,
    esme: Probe,
    number: u64,
}

impl House {
    /// The peers `north`, with more keys, and `south`; the account's messages of interest go to numbers of `prefix`.
    fn open(stage: &Stage, north_keys: &str, prefix: &str) -> Result<Self> {
        let tally = Arc::new(Tally::new(100_000));
        let (north, south) =
            (Sink::start(SinkOptions::default(), &tally)?, Sink::start(SinkOptions::default(), &tally)?);
        let mut blueprint = stage.blueprint()?;
        blueprint
            .router(&stage.guest("prefix_router"), BOTH)?
            .account("acme", "window = 1000")
            .peer("north", north.address(), &format!("receipts = false\n{north_keys}"))
            .peer("south", south.address(), "receipts = false");
        let appliance = blueprint.start()?;
        let esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, prefix, false)?;
        Ok(Self { appliance, tally, north, south, esme, number: 90_000 })
    }

    fn bind(&self, stage: &Stage, plugin: &str, guest: &str, policy: &str) -> Result<String> {
        // However slow the machine is: ten faults are too many.
        let more = json!({ "tolerance": { "faults": 10, "window-ms": 3_600_000 } });
        bind(&self.appliance, "delivery-policy", plugin, &stage.component(guest)?, policy, &more)
    }

    /// Submits one message; gives its id.
    fn submit(&mut self) -> Result<String> {
        self.number += 1;
        self.esme.submit(self.number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))
    }

    /// Its trace, once it is to the taste of `content`.
    fn trace(&self, id: &str, content: impl Fn(&Value) -> bool) -> Result<Value> {
        self.appliance.wait_until(PATIENCE, &format!("/v1/messages/{id}"), content)
    }

    fn policy(&self) -> Result<Value> {
        self.appliance.get("/v1/hooks/delivery-policy")
    }
}

/// How often a step stands in a trace.
fn times(trace: &Value, step: &str) -> usize {
    steps(trace).iter().filter(|found| **found == step).count()
}

#[test]
fn what_the_peer_answers_leads_to_what_the_shipped_document_says() -> Result<()> {
    let stage = Stage::new()?;
    let mut house = House::open(&stage, "", "861")?;
    let version = house.bind(&stage, "retry-ladder", "retry_ladder", &shipped("retries")?)?;
    let decided = |note: &str| format!("decided by retry-ladder {version} (delivery-policy): {note}");

    // Not now: again in 30 seconds.
    house.north.behave(refusing(TEMPORARY));
    let id = house.submit()?;
    let trace = house.trace(&id, |trace| trace["state"] == "deferred")?;
    assert_eq!(times(&trace, "refused by the peer: 0x08 RSYSERR"), 1, "{trace:#}");
    assert_eq!(times(&trace, &decided("temporary: attempt 1, again in 30 s")), 1, "{trace:#}");
    let refused = trace["steps"].as_array().into_iter().flatten().rev().find_map(|step| step["at"].as_u64());
    let due = steps(&trace).last().and_then(|step| step.strip_prefix("deferred until "));
    let due: u64 = due.with_context(|| format!("{trace:#}"))?.parse()?;
    assert_eq!(refused.map(|at| at + 30_000), Some(due), "{trace:#}");

    // Never here: the next leg, at once.
    house.north.behave(refusing(PERMANENT));
    let id = house.submit()?;
    let trace = house.trace(&id, |trace| trace["finished"] == true)?;
    assert_eq!((&trace["state"], house.south.messages_so_far()), (&json!("relayed"), 1), "{trace:#}");
    assert_eq!(times(&trace, &decided("permanent: next leg")), 1, "{trace:#}");
    assert_eq!(times(&trace, "next leg: south"), 1, "{trace:#}");

    // Never anywhere: it fails.
    house.south.behave(refusing(PERMANENT));
    let id = house.submit()?;
    let trace = house.trace(&id, |trace| trace["finished"] == true)?;
    assert_eq!(times(&trace, &decided("permanent: and no leg is left")), 1, "{trace:#}");
    assert_eq!(steps(&trace).last(), Some(&"ended: failed, error 11: 0x0B RINVDSTADR"), "{trace:#}");

    // Too fast: again from its place, as soon as the peer is no longer left alone.
    house.north.behave(refusing(THROTTLED));
    let id = house.submit()?;
    let again = decided("throttled: attempt 1, again in 0 s");
    house.trace(&id, |trace| times(trace, &again) == 1)?;
    house.north.behave(SinkOptions::default());
    let trace = house.trace(&id, |trace| trace["finished"] == true)?;
    assert_eq!((&trace["state"], times(&trace, "next leg: south")), (&json!("relayed"), 0), "{trace:#}");
    assert_eq!(house.appliance.metric("switchyard_hook_faults_total")?, 0.0);
    Ok(())
}

#[test]
fn the_steps_of_a_ladder_are_climbed_and_the_next_leg_taken() -> Result<()> {
    let stage = Stage::new()?;
    let mut house = House::open(&stage, "", "861")?;
    let version = house.bind(&stage, "retry-ladder", "retry_ladder", SHORT)?;
    house.north.behave(refusing(TEMPORARY));
    let id = house.submit()?;
    let trace = house.trace(&id, |trace| trace["finished"] == true)?;
    let expected = [
        "temporary: attempt 1, again in 0.01 s",
        "temporary: attempt 2, again in 0.02 s",
        "temporary: 3 attempts are enough, next leg",
    ];
    let begin = format!("decided by retry-ladder {version} (delivery-policy): ");
    let steps = steps(&trace);
    let notes: Vec<_> = steps.iter().filter_map(|step| step.strip_prefix(begin.as_str())).collect();
    assert_eq!(notes, expected, "{trace:#}");
    let tried: Vec<_> = steps.iter().filter_map(|step| step.strip_prefix("submitted to ")).collect();
    let expected = ["north, attempt 1", "north, attempt 2", "north, attempt 3", "south, attempt 4"];
    assert_eq!((&trace["state"], tried), (&json!("relayed"), expected.to_vec()), "{trace:#}");
    Ok(())
}

#[test]
fn a_policy_that_traps_leaves_the_decision_to_the_schedule_and_goes_back_by_itself() -> Result<()> {
    let stage = Stage::new()?;
    let mut house = House::open(&stage, "retry = [\"10ms\"]\nmax-attempts = 3", "666")?;
    let good = house.bind(&stage, "retry-ladder", "retry_ladder", SHORT)?;
    // It traps on what goes to numbers of 666, and wants to try everything else again after a second.
    let bad = house.bind(&stage, "moody", "test_moody_policy", "trap")?;
    house.north.behave(refusing(TEMPORARY));
    let id = house.submit()?;
    let trace = house.trace(&id, |trace| trace["finished"] == true)?;
    let decided = steps(&trace).iter().filter(|step| step.contains("delivery-policy")).count();
    assert_eq!(
        (&trace["state"], decided, times(&trace, "next leg: south")),
        (&json!("relayed"), 0, 1),
        "{trace:#}"
    );
    assert_eq!(times(&trace, "refused by the peer: 0x08 RSYSERR"), 3, "{trace:#}");
    let counts = &house.policy()?["counts"][0];
    assert_eq!((&counts["version"], &counts["faults"]["trap"]), (&json!(bad), &json!(3)), "{counts}");

    // Ten such faults are too many. What it was asked about meanwhile arrives all the same, and so does everything else.
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(house.submit()?);
    }
    until("the policy goes back", || Ok(house.policy()?["live"]["chain"][0]["version"] == json!(good)))?;
    let state = house.policy()?;
    assert_eq!(state["live"]["how"], "rolled-back-by-itself", "{state:#}");
    assert!(state["events"][0]["what"].as_str().is_some_and(|what| what.contains("10 trap")), "{state:#}");
    house.north.behave(SinkOptions { error_every: 3, ..refusing(PERMANENT) });
    let options =
        SourceOptions { count: Some(3_000), ..SourceOptions::new(house.appliance.smpp(), "acme", PASSWORD) };
    let report = Source::start(&options, &house.tally)?.join()?;
    assert!(report.refusals.is_empty(), "{:?}", report.refusals);
    until("all arrive", || Ok(house.tally.accounts().missing == 0))?;
    for id in ids {
        house.trace(&id, |trace| trace["state"] == "relayed")?;
    }
    let sums = house.tally.accounts();
    assert_eq!((sums.missing, sums.duplicates, sums.strangers), (0, 0, 0), "{sums:?}");
    Ok(())
}

/// At every way in: the API, a canary, the command line. What the API is told to do all the same is shown as long as it lasts.
#[test]
fn a_policy_that_names_what_does_not_exist_does_not_go_live_by_mistake() -> Result<()> {
    let stage = Stage::new()?;
    let house = House::open(&stage, "", "86")?;
    let component = stage.component("shared_sender")?;
    let version = behaviour_tests::upload(&house.appliance, "shared-sender", &component)?;
    let policy = "[[share]]\npool = \"lines\"\npeers = [\"north\", \"west\"]\n";
    let mut request = json!({ "plugin": "shared-sender", "version": version, "policy": policy });
    let ask = |path: &str, request: &Value| -> Result<(u16, String)> {
        house.appliance.request("POST", path, request.to_string().as_bytes())
    };
    let (status, text) = ask("/v1/hooks/router/activate", &request)?;
    anyhow::ensure!(
        status == 422 && text.contains("peer \\\"west\\\", pool \\\"lines\\\""),
        "{status} {text}"
    );
    let mut canary = request.clone();
    canary["mode"] = json!("canary");
    canary["share"] = json!(5);
    let (status, text) = ask("/v1/hooks/router/candidate", &canary)?;
    anyhow::ensure!(status == 422, "{status} {text}");
    let file = stage.folder().join("policy.toml");
    std::fs::write(&file, policy)?;
    let activate = |more: &[&str]| -> Result<std::process::Output> {
        let mut command = std::process::Command::new(stage.binary());
        command.args(["plugin", "activate", "router"]).arg(stage.guest("shared_sender"));
        command.args(["--policy"]).arg(&file).args(more);
        command.env("SWITCHYARD_URL", format!("http://{}", house.appliance.blueprint().http()));
        Ok(command.env("SWITCHYARD_TOKEN_FILE", house.appliance.blueprint().data().join("token")).output()?)
    };
    behaviour_tests::upload(&house.appliance, "shared_sender", &component)?;
    let refused = activate(&[])?;
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    anyhow::ensure!(!refused.status.success() && words.contains("--force"), "{words}");

    // As soon as both exist, it is taken; a pool that was just made counts at once.
    let (status, text) = house.appliance.request("PUT", "/v1/pools/lines", b"{}")?;
    anyhow::ensure!(status < 300, "{status} {text}");
    let (status, text) = ask("/v1/hooks/router/activate", &request)?;
    anyhow::ensure!(status == 422 && !text.contains("lines"), "{status} {text}");
    request["force"] = json!(true);
    let (status, text) = ask("/v1/hooks/router/activate", &request)?;
    anyhow::ensure!(status == 200, "{status} {text}");
    let unknown = house.appliance.get("/v1/hooks/router")?["unknown"].clone();
    let expected = json!([{ "plugin": "shared-sender", "kind": "peer", "name": "west" }]);
    anyhow::ensure!(unknown == expected, "{unknown}");
    let forced = activate(&["--force"])?;
    anyhow::ensure!(forced.status.success(), "{}", String::from_utf8_lossy(&forced.stderr));
    Ok(())
}

//! After a refused attempt, the delivery policy's document decides; if the policy fails, the peer's retry
//! schedule does.

use anyhow::{Context, Result};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, TIMEOUT, bind, shipped_policy, steps, until};
use serde_json::{Value, json};
use std::sync::Arc;

/// North first, then south.
const BOTH: &str = "[default]\nlegs = [{ peer = \"north\" }, { peer = \"south\", rank = 1 }]\nnote = \"north, then south\"\n";

/// A retry schedule with short waits.
const SHORT: &str = "[temporary]\nwaits = [\"10ms\", \"20ms\"]\nattempts-per-leg = 3\n[permanent]\n\
                     [absent]\n[memory-full]\n[throttled]\nwaits = [\"0s\"]\n";

/// ESME_RSYSERR, ESME_RINVDSTADR, ESME_RTHROTTLED.
const TEMPORARY: u32 = 0x08;
const PERMANENT: u32 = 0x0B;
const THROTTLED: u32 = 0x58;

/// A sink that refuses everything.
fn refusing(status: u32) -> SinkOptions {
    SinkOptions { error_status: status, ..SinkOptions::default() }
}

struct PolicyFixture {
    appliance: TestDaemon,
    tally: Arc<Tally>,
    north: Sink,
    south: Sink,
    esme: Probe,
    number: u64,
}

impl PolicyFixture {
    /// The peers `north`, with more keys, and `south`; the account's messages of interest go to numbers with this `prefix`.
    fn open(fixture: &Fixture, north_keys: &str, prefix: &str) -> Result<Self> {
        let tally = Arc::new(Tally::new(100_000));
        let (north, south) =
            (Sink::start(SinkOptions::default(), &tally)?, Sink::start(SinkOptions::default(), &tally)?);
        let mut config = fixture.config()?;
        config
            .router(&fixture.guest("prefix_router"), BOTH)?
            .account("acme", "window = 1000")
            .peer("north", north.address(), &format!("dlrs = false\n{north_keys}"))
            .peer("south", south.address(), "dlrs = false");
        let appliance = config.start()?;
        let esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, prefix, false)?;
        Ok(Self { appliance, tally, north, south, esme, number: 90_000 })
    }

    fn bind(&self, fixture: &Fixture, plugin: &str, guest: &str, policy: &str) -> Result<String> {
        // Even on a slow machine ten faults are too many.
        let more = json!({ "tolerance": { "faults": 10, "window-ms": 3_600_000 } });
        bind(&self.appliance, "delivery-policy", plugin, &fixture.component(guest)?, policy, &more)
    }

    /// Submits one message; returns its id.
    fn submit(&mut self) -> Result<String> {
        self.number += 1;
        self.esme.submit(self.number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))
    }

    /// Its trace, once it satisfies `content`.
    fn trace(&self, id: &str, content: impl Fn(&Value) -> bool) -> Result<Value> {
        self.appliance.wait_until(TIMEOUT, &format!("/v1/messages/{id}"), content)
    }

    fn policy(&self) -> Result<Value> {
        self.appliance.get("/v1/hooks/delivery-policy")
    }
}

/// How often a step occurs in a trace.
fn times(trace: &Value, step: &str) -> usize {
    steps(trace).iter().filter(|found| **found == step).count()
}

#[test]
fn the_shipped_policy_decides_by_the_peers_answer() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = PolicyFixture::open(&fixture, "", "861")?;
    let version = setup.bind(&fixture, "retry-ladder", "retry_ladder", &shipped_policy("retries")?)?;
    let decided = |note: &str| format!("decided by retry-ladder {version} (delivery-policy): {note}");

    // Temporary: retry in 30 seconds.
    setup.north.behave(refusing(TEMPORARY));
    let id = setup.submit()?;
    let trace = setup.trace(&id, |trace| trace["state"] == "deferred")?;
    assert_eq!(times(&trace, "refused by the peer: 0x08 RSYSERR"), 1, "{trace:#}");
    assert_eq!(times(&trace, &decided("temporary: attempt 1, again in 30 s")), 1, "{trace:#}");
    let refused = trace["steps"].as_array().into_iter().flatten().rev().find_map(|step| step["at"].as_u64());
    let due = steps(&trace).last().and_then(|step| step.strip_prefix("deferred until "));
    let due: u64 = due.with_context(|| format!("{trace:#}"))?.parse()?;
    assert_eq!(refused.map(|at| at + 30_000), Some(due), "{trace:#}");

    // Permanent for this peer: the next leg, immediately.
    setup.north.behave(refusing(PERMANENT));
    let id = setup.submit()?;
    let trace = setup.trace(&id, |trace| trace["finished"] == true)?;
    assert_eq!((&trace["state"], setup.south.message_count()), (&json!("relayed"), 1), "{trace:#}");
    assert_eq!(times(&trace, &decided("permanent: next leg")), 1, "{trace:#}");
    assert_eq!(times(&trace, "next leg: south"), 1, "{trace:#}");

    // Permanent for all peers: it fails.
    setup.south.behave(refusing(PERMANENT));
    let id = setup.submit()?;
    let trace = setup.trace(&id, |trace| trace["finished"] == true)?;
    assert_eq!(times(&trace, &decided("permanent: and no leg is left")), 1, "{trace:#}");
    assert_eq!(steps(&trace).last(), Some(&"ended: failed, error 11: 0x0B RINVDSTADR"), "{trace:#}");

    // Throttled: retry from the same position, as soon as the peer's pause is over.
    setup.north.behave(refusing(THROTTLED));
    let id = setup.submit()?;
    let again = decided("throttled: attempt 1, again in 0 s");
    setup.trace(&id, |trace| times(trace, &again) == 1)?;
    setup.north.behave(SinkOptions::default());
    let trace = setup.trace(&id, |trace| trace["finished"] == true)?;
    assert_eq!((&trace["state"], times(&trace, "next leg: south")), (&json!("relayed"), 0), "{trace:#}");
    assert_eq!(setup.appliance.metric("switchyard_hook_faults_total")?, 0.0);
    Ok(())
}

#[test]
fn the_retry_schedule_is_followed_and_then_the_next_leg_is_used() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = PolicyFixture::open(&fixture, "", "861")?;
    let version = setup.bind(&fixture, "retry-ladder", "retry_ladder", SHORT)?;
    setup.north.behave(refusing(TEMPORARY));
    let id = setup.submit()?;
    let trace = setup.trace(&id, |trace| trace["finished"] == true)?;
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
fn a_trapping_policy_is_replaced_by_the_schedule_and_rolled_back() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = PolicyFixture::open(&fixture, "retry = [\"10ms\"]\nmax-attempts = 3", "666")?;
    let good = setup.bind(&fixture, "retry-ladder", "retry_ladder", SHORT)?;
    // It traps for numbers that begin with 666, and retries everything else after a second.
    let bad = setup.bind(&fixture, "moody", "test_moody_policy", "trap")?;
    setup.north.behave(refusing(TEMPORARY));
    let id = setup.submit()?;
    let trace = setup.trace(&id, |trace| trace["finished"] == true)?;
    let decided = steps(&trace).iter().filter(|step| step.contains("delivery-policy")).count();
    assert_eq!(
        (&trace["state"], decided, times(&trace, "next leg: south")),
        (&json!("relayed"), 0, 1),
        "{trace:#}"
    );
    assert_eq!(times(&trace, "refused by the peer: 0x08 RSYSERR"), 3, "{trace:#}");
    let counts = &setup.policy()?["counts"][0];
    assert_eq!((&counts["version"], &counts["faults"]["trap"]), (&json!(bad), &json!(3)), "{counts}");

    // Ten such faults are too many. The affected messages arrive nevertheless, and so does everything else.
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(setup.submit()?);
    }
    until("the policy is rolled back", || Ok(setup.policy()?["live"]["chain"][0]["version"] == json!(good)))?;
    let state = setup.policy()?;
    assert_eq!(state["live"]["how"], "rolled-back-by-itself", "{state:#}");
    assert!(state["events"][0]["what"].as_str().is_some_and(|what| what.contains("10 trap")), "{state:#}");
    setup.north.behave(SinkOptions { error_every: 3, ..refusing(PERMANENT) });
    let options =
        SourceOptions { count: Some(3_000), ..SourceOptions::new(setup.appliance.smpp(), "acme", PASSWORD) };
    let report = Source::start(&options, &setup.tally)?.join()?;
    assert!(report.refusals.is_empty(), "{:?}", report.refusals);
    until("all arrive", || Ok(setup.tally.summary().missing == 0))?;
    for id in ids {
        setup.trace(&id, |trace| trace["state"] == "relayed")?;
    }
    let sums = setup.tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.unknown), (0, 0, 0), "{sums:?}");
    Ok(())
}

/// In every interface: the API, a canary, the command line. If the API is told to proceed, the finding is shown as long
/// as it applies.
#[test]
fn a_policy_with_unknown_references_does_not_go_live_by_mistake() -> Result<()> {
    let fixture = Fixture::new()?;
    let setup = PolicyFixture::open(&fixture, "", "86")?;
    let component = fixture.component("shared_sender")?;
    let version = behaviour_tests::upload(&setup.appliance, "shared-sender", &component)?;
    let policy = "[[share]]\npool = \"lines\"\npeers = [\"north\", \"west\"]\n";
    let mut request = json!({ "plugin": "shared-sender", "version": version, "policy": policy });
    let ask = |path: &str, request: &Value| -> Result<(u16, String)> {
        setup.appliance.request("POST", path, request.to_string().as_bytes())
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
    let file = fixture.folder().join("policy.toml");
    std::fs::write(&file, policy)?;
    let activate = |more: &[&str]| -> Result<std::process::Output> {
        let mut command = std::process::Command::new(fixture.binary());
        command.args(["plugin", "activate", "router"]).arg(fixture.guest("shared_sender"));
        command.args(["--policy"]).arg(&file).args(more);
        command.env("SWITCHYARD_URL", format!("http://{}", setup.appliance.config().http()));
        Ok(command.env("SWITCHYARD_TOKEN_FILE", setup.appliance.config().data().join("token")).output()?)
    };
    behaviour_tests::upload(&setup.appliance, "shared_sender", &component)?;
    let refused = activate(&[])?;
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    anyhow::ensure!(!refused.status.success() && words.contains("--force"), "{words}");

    // As soon as both exist, it is accepted; a new pool counts immediately.
    let (status, text) = setup.appliance.request("PUT", "/v1/pools/lines", b"{}")?;
    anyhow::ensure!(status < 300, "{status} {text}");
    let (status, text) = ask("/v1/hooks/router/activate", &request)?;
    anyhow::ensure!(status == 422 && !text.contains("lines"), "{status} {text}");
    request["force"] = json!(true);
    let (status, text) = ask("/v1/hooks/router/activate", &request)?;
    anyhow::ensure!(status == 200, "{status} {text}");
    let unknown = setup.appliance.get("/v1/hooks/router")?["unknown"].clone();
    let expected = json!([{ "plugin": "shared-sender", "kind": "peer", "name": "west" }]);
    anyhow::ensure!(unknown == expected, "{unknown}");
    let forced = activate(&["--force"])?;
    anyhow::ensure!(forced.status.success(), "{}", String::from_utf8_lossy(&forced.stderr));
    Ok(())
}

//! Messages whose subscriber must be resolved first: while a resolver is replaced, hangs, or does not know the number.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{Directory, Fixture, RawConnection, TIMEOUT, activate, bind, steps, until};
use serde_json::{Value, json};
use std::sync::Arc;

/// Numbers that begin with 861 are home numbers.
const HOME: &str = "[[route]]\nprefix = \"861\"\nhome = true\nnote = \"at home\"\n\n\
                    [default]\nlegs = [{ peer = \"upstream\" }]\n";

/// Parallel calls of the resolver.
const THREADS: usize = 8;

/// The account `acme`, and the peer `upstream`, which serves home numbers.
fn config(fixture: &Fixture, upstream: &Sink) -> Result<TestDaemonConfig> {
    let mut config = fixture.config()?;
    config
        .router(&fixture.guest("prefix_router"), HOME)?
        .account("acme", "window = 1000")
        .peer("upstream", upstream.address(), "dlrs = false\nuncertain = \"send-again\"")
        .tables("[home]\npeer = \"upstream\"\n")
        .tables(&format!("[plugins]\nresolver-threads = {THREADS}\n"));
    Ok(config)
}

/// Submits messages to different numbers; all are accepted.
fn submit(appliance: &TestDaemon, tally: &Arc<Tally>, prefix: &str, count: u64, numbers: u64) -> Result<()> {
    let options = SourceOptions {
        count: Some(count),
        destinations: Some(numbers),
        prefix: prefix.to_owned(),
        ..SourceOptions::new(appliance.smpp(), "acme", PASSWORD)
    };
    let report = Source::start(&options, tally)?.join()?;
    ensure!(report.refusals.is_empty(), "{:?}", report.refusals);
    Ok(())
}

/// The trace of a message, once it is in this state.
fn wait_for_state(appliance: &TestDaemon, id: &str, state: &str) -> Result<Value> {
    appliance.wait_until(TIMEOUT, &format!("/v1/messages/{id}"), |trace| trace["state"] == state)
}

/// Number of messages that wait for a resolver, according to the queues.
fn resolving(appliance: &TestDaemon) -> Result<u64> {
    let queues = appliance.get("/v1/queues")?;
    let queues = queues.as_array().context("no queues")?;
    Ok(queues.iter().filter_map(|queue| queue["resolving"].as_u64()).sum())
}

#[test]
fn a_resolver_is_replaced_while_5000_messages_wait_for_it() -> Result<()> {
    const MESSAGES: u64 = 5_000;
    const NUMBERS: u64 = 500;
    let (fixture, directory) = (Fixture::new()?, Directory::start()?);
    directory.block("old");
    directory.block("new");
    let tally = Arc::new(Tally::new(MESSAGES as usize + 2));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let component = fixture.component("http_resolver")?;
    let grants = json!({ "grants": { "http": [directory.base_url()], "http-timeout-ms": 60_000 } });
    let make_live = |component: &[u8], way: &str| {
        bind(&appliance, "resolver", "http-resolver", component, &directory.policy(way, "1h"), &grants)
    };
    let old = make_live(&component, "old")?;

    // One number is submitted before all others, and one after them; so the old version is called for the first, and
    // the new version for the last.
    let mut probe = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let refused = |status: u32| anyhow::anyhow!("refused: {status:#x}");
    let first = probe.submit(MESSAGES)?.map_err(refused)?;
    until("the first question", || Ok(directory.request_count("old") == 1))?;
    submit(&appliance, &tally, "861", MESSAGES, NUMBERS)?;
    until("as many questions as may be open", || Ok(directory.request_count("old") == THREADS))?;
    let last = probe.submit(MESSAGES + 1)?.map_err(refused)?;
    assert_eq!(resolving(&appliance)?, MESSAGES + 2);
    let metrics = appliance.metrics()?;
    let numbers = metrics.iter().find(|(name, _)| name == "switchyard_resolving{what=\"numbers\"}");
    assert_eq!(numbers.map(|(_, count)| *count), Some((NUMBERS + 2) as f64));
    let waiting = wait_for_state(&appliance, &first, "resolving")?;
    assert_eq!(steps(&waiting).last(), Some(&"waiting for number resolution"));

    let new = make_live(&testkit::guest::variant(&component, "another"), "new")?;
    assert_ne!(old, new);
    assert_eq!((tally.arrived_count(), resolving(&appliance)?), (0, MESSAGES + 2));
    directory.unblock("new");
    directory.unblock("old");
    until("all arrive", || Ok(tally.arrived_count() == MESSAGES + 2))?;

    let asked = directory.requests_by_number();
    assert_eq!(asked.len() as u64, NUMBERS + 2);
    assert!(asked.values().all(|times| *times == 1), "asked twice: {asked:?}");
    assert_eq!(directory.request_count("old"), THREADS);
    for (id, version) in [(&first, &old), (&last, &new)] {
        let trace = wait_for_state(&appliance, id, "relayed")?;
        let words = format!("decided by http-resolver {version} (resolver): status 200");
        let trace = steps(&trace);
        assert!(trace.contains(&words.as_str()), "{trace:#?}");
        assert!(trace.contains(&"subscriber found: upstream"), "{trace:#?}");
    }
    assert_eq!(appliance.metric("switchyard_resolver_questions_total")?, (NUMBERS + 2) as f64);
    assert_eq!(resolving(&appliance)?, 0);
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    sink.stop()?;
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.unknown), (0, 0, 0), "{sums:?}");
    Ok(())
}

/// Submits a message to a home number with a validity of two seconds (SMPP 3.4 §7.1.1); returns its id.
fn submit_short_lived(appliance: &TestDaemon) -> Result<String> {
    let mut esme = RawConnection::connect(appliance.smpp())?;
    assert_eq!(esme.bind("acme", PASSWORD)?, 0);
    let addresses: [&[u8]; 2] = [b"\x00\x01\x0110655\x00", b"\x01\x018619999999999\x00"];
    let rest: [&[u8]; 2] = [b"\x00\x00\x00\x00000000000002000R\x00", b"\0\0\0\0\x05short"];
    esme.send_pdu(4, 2, &[addresses.concat(), rest.concat()].concat())?;
    let (id, status, _, body) = esme.receive()?;
    assert_eq!((id, status), (0x8000_0004, 0));
    Ok(String::from_utf8_lossy(body.strip_suffix(&[0]).unwrap_or(&body)).into_owned())
}

#[test]
fn a_hanging_resolver_delays_only_its_own_messages() -> Result<()> {
    const WAITING: u64 = 200;
    const NUMBERS: u64 = 40;
    const LAST: u64 = 9_999;
    let (fixture, directory) = (Fixture::new()?, Directory::start()?);
    directory.block("silent");
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let component = fixture.component("http_resolver")?;
    let grants = json!({ "grants": { "http": [directory.base_url()], "http-timeout-ms": 200 } });
    let silent = directory.policy("silent", "1s");
    let version = bind(&appliance, "resolver", "http-resolver", &component, &silent, &grants)?;

    submit(&appliance, &tally, "861", WAITING, NUMBERS)?;
    let short = submit_short_lived(&appliance)?;
    until("questions are repeated", || {
        Ok(directory.requests_by_number().values().filter(|times| **times > 1).count() > 0)
    })?;
    submit(&appliance, &tally, "49", 2_000, 1_000)?;
    until("the others arrive", || Ok(tally.arrived_count() == 2_000))?;
    let trace = wait_for_state(&appliance, &short, "expired")?;
    assert_eq!(steps(&trace).last(), Some(&"ended: expired"), "{trace:#}");
    appliance.wait_until(TIMEOUT, "/v1/status", |status| status["waiting"] == WAITING)?;
    // One more message: its answer shows that all earlier ones are on disk.
    let mut probe = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let last = probe.submit(LAST)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    let why = format!("; http-resolver {version} deferred: no reply in time");
    appliance.wait_until(TIMEOUT, &format!("/v1/messages/{last}"), |trace| {
        trace["waiting_for"].as_str().is_some_and(|late| late.contains(&why))
    })?;
    assert_eq!(resolving(&appliance)?, WAITING + 1);

    let appliance = appliance.kill()?.start()?;
    assert_eq!(appliance.logged("recovered", "messages"), Some(WAITING + 1));
    submit(&appliance, &tally, "49", 500, 100)?;
    until("the others arrive after the kill", || Ok(tally.arrived_count() == 2_500))?;
    assert_eq!(resolving(&appliance)?, WAITING + 1);

    // A better version takes over immediately, although the former one asked to wait for an hour.
    let make_live =
        |document: &str| activate(&appliance, "resolver", ("http-resolver", &version), document, &grants);
    directory.block("patient");
    make_live(&directory.policy("patient", "1h"))?;
    let open = "switchyard_resolving{what=\"questions\"}";
    until("an hour's rest", || {
        let open = appliance.metrics()?.iter().any(|(name, count)| name == open && *count > 0.0);
        Ok(directory.request_count("patient") as u64 == NUMBERS + 1 && !open)
    })?;
    assert_eq!(resolving(&appliance)?, WAITING + 1);
    make_live(&directory.policy("prompt", "1h"))?;
    until("all arrive", || Ok(tally.arrived_count() == 2_500 + WAITING + 1))?;
    assert_eq!(directory.request_count("prompt") as u64, NUMBERS + 1);
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    sink.stop()?;
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.unknown), (0, 0, 0), "{sums:?}");
    Ok(())
}

#[test]
fn subscribers_in_a_table_are_reached_and_unknown_ones_fail() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(100));
    let upstream = Sink::start(SinkOptions::default(), &tally)?;
    let north = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = config(&fixture, &upstream)?;
    config.peer("north", north.address(), "dlrs = false");
    let appliance = config.start()?;
    let rows = "key,value\n8610000000000,\"001010000000000,north\"\n8610000000001,001010000000001\n";
    appliance.ask("PUT", "/v1/tables/hlr?kind=exact", rows.as_bytes())?;
    let policy = "table = \"hlr\"\nunknown-valid = \"0s\"\n";
    let grants = json!({ "grants": { "tables": ["hlr"] } });
    let component = fixture.component("table_resolver")?;
    let version = bind(&appliance, "resolver", "table-resolver", &component, policy, &grants)?;

    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", true)?;
    let mut submit = |number| -> Result<String> {
        esme.submit(number)?.map_err(|status| anyhow::anyhow!("message {number}: {status:#x}"))
    };
    let decided = |note: &str| format!("decided by table-resolver {version} (resolver): {note} hlr");
    for (number, peer) in [(0, "north"), (1, "upstream")] {
        let trace = wait_for_state(&appliance, &submit(number)?, "relayed")?;
        let steps = steps(&trace);
        assert!(steps.contains(&decided("in table").as_str()), "{steps:#?}");
        assert!(steps.contains(&format!("subscriber found: {peer}").as_str()), "{steps:#?}");
    }
    assert_eq!((north.message_count(), upstream.message_count()), (1, 1));

    let unknown = submit(2)?;
    let trace = wait_for_state(&appliance, &unknown, "failed")?;
    let unknown_steps = steps(&trace);
    assert!(unknown_steps.contains(&decided("not in table").as_str()), "{unknown_steps:#?}");
    assert!(unknown_steps.contains(&"no such subscriber"), "{unknown_steps:#?}");
    assert_eq!(unknown_steps.last(), Some(&"ended: failed, error 1: no such subscriber"));

    // From now on the number belongs to a subscriber.
    let rows = "8610000000002,001010000000002\n";
    appliance.ask("PUT", "/v1/tables/hlr?kind=exact", rows.as_bytes())?;
    wait_for_state(&appliance, &submit(2)?, "relayed")?;
    assert_eq!(upstream.message_count(), 2);

    // Three that were accepted, and one that was not.
    esme.wait_for_delivered(4, TIMEOUT)?;
    let receipt = esme.delivered.iter().find(|text| text.contains(&format!("id:{unknown} ")));
    let receipt = receipt.with_context(|| format!("no receipt of {unknown}: {:?}", esme.delivered))?;
    assert!(receipt.contains(" stat:UNDELIV err:001 "), "{receipt}");
    Ok(())
}

/// The sample configuration has a resolver whose table is uploaded over the API after the start.
#[test]
fn a_first_start_needs_no_table() -> Result<()> {
    let (fixture, tally) = (Fixture::new()?, Arc::new(Tally::new(1)));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = config(&fixture, &sink)?;
    let policy = fixture.folder().join("subscribers.toml");
    std::fs::write(&policy, behaviour_tests::shipped_policy("subscribers")?)?;
    config.tables(&format!(
        "[resolver]\ncomponent = {:?}\npolicy = {policy:?}\n[resolver.grants]\ntables = [\"hlr\"]\n",
        fixture.guest("table_resolver")
    ));
    let appliance = config.start()?;
    let unknown = || Ok::<_, anyhow::Error>(appliance.get("/v1/hooks/resolver")?["unknown"].clone());
    let named = unknown()?;
    ensure!(named == json!([{ "plugin": "table-resolver", "kind": "table", "name": "hlr" }]), "{named}");
    appliance.ask("PUT", "/v1/tables/hlr?kind=exact", b"8613012345678,262011234567890\n")?;
    let named = unknown()?;
    ensure!(named.is_null(), "{named}");
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let id = esme.submit_to(3_012_345_678, 0)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    let trace = wait_for_state(&appliance, &id, "relayed")?;
    ensure!(steps(&trace).contains(&"subscriber found: upstream"), "{trace:#}");
    Ok(())
}

/// Bad data of a good plugin: it is not rolled back, and the trace names the peer.
#[test]
fn a_number_served_by_an_unknown_peer_waits_until_the_table_is_corrected() -> Result<()> {
    let (fixture, tally) = (Fixture::new()?, Arc::new(Tally::new(1)));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let upload = |peer: &str| {
        let rows = format!("key,value\n8610000000000,\"001010000000000,{peer}\"\n");
        appliance.ask("PUT", "/v1/tables/hlr?kind=exact", rows.as_bytes())
    };
    upload("nowhere")?;
    let policy = "table = \"hlr\"\n";
    let grants =
        json!({ "grants": { "tables": ["hlr"] }, "tolerance": { "faults": 1, "window-ms": 60_000 } });
    let component = fixture.component("table_resolver")?;
    let version = bind(&appliance, "resolver", "table-resolver", &component, policy, &grants)?;

    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let id = esme.submit(0)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    let note = "served by peer \"nowhere\", which is not in the configuration; in table hlr";
    let why = format!("; table-resolver {version} deferred: {note}");
    appliance.wait_until(TIMEOUT, &format!("/v1/messages/{id}"), |trace| {
        trace["waiting_for"].as_str().is_some_and(|text| text.contains(&why))
    })?;
    let state = appliance.get("/v1/hooks/resolver")?;
    let faults = &state["faults"];
    ensure!(faults.as_array().is_none_or(Vec::is_empty), "{faults}");

    upload("upstream")?;
    activate(&appliance, "resolver", ("table-resolver", &version), policy, &grants)?;
    let trace = wait_for_state(&appliance, &id, "relayed")?;
    ensure!(steps(&trace).contains(&"subscriber found: upstream"), "{trace:#}");
    Ok(())
}

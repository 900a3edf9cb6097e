//! Money: messages are reserved, charged on delivery and released on failure, and no crash creates or
//! destroys any of it.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Source, SourceOptions, SourceReport, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{Fixture, TIMEOUT, bind, shipped_policy, steps, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Price of a message by the shipped price list, in millionths.
const PRICE: i64 = 50_000;
/// The answer to a submission that the account cannot pay: ESME_RSUBMITFAIL.
const NO_CREDIT: u32 = 0x45;
/// The answer of a peer that refuses every message: ESME_RINVDSTADR.
const NEVER: SinkOptions = SinkOptions {
    error_status: 0x0B,
    error_every: 1,
    receipts: false,
    undelivered: 0,
    per_second: 0,
    sole_bind: false,
    delay: std::time::Duration::ZERO,
};

/// The account `acme` and the peer `upstream`.
fn config(fixture: &Fixture, upstream: &Sink) -> Result<TestDaemonConfig> {
    let mut config = fixture.config()?;
    config.account("acme", "window = 1000").peer(
        "upstream",
        upstream.address(),
        "links = 2\nwindow = 500\ndlrs = false\nuncertain = \"send-again\"",
    );
    Ok(config)
}

/// Binds the default biller with the shipped prices; returns its version.
fn bill(fixture: &Fixture, appliance: &TestDaemon) -> Result<String> {
    bind(
        appliance,
        "biller",
        "prepaid",
        &fixture.component("prepaid")?,
        &shipped_policy("prices")?,
        &json!({}),
    )
}

/// A balance operation that succeeds.
fn operate(appliance: &TestDaemon, key: &str, mut operation: Value) -> Result<Value> {
    operation["reason"] = "a test".into();
    let (status, answer) = appliance.ledger("acme", key, &operation)?;
    ensure!(status == 200, "{operation}: {status} {answer}");
    Ok(answer)
}

/// A ledger account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LedgerBalance {
    balance: i64,
    reserved: i64,
    captured: i64,
    funded: i64,
}

/// Reads the account. At any time, money must be conserved, and the credit limit respected.
fn read_balance(appliance: &TestDaemon) -> Result<LedgerBalance> {
    let shown = appliance.get("/v1/ledger/acme")?;
    let amount = |name: &str| shown[name].as_i64().with_context(|| format!("no {name} in {shown}"));
    let found = LedgerBalance {
        balance: amount("balance")?,
        reserved: amount("reserved")?,
        captured: amount("captured")?,
        funded: amount("funded")?,
    };
    ensure!(
        found.balance + found.reserved + found.captured == found.funded,
        "money is not conserved: {shown}"
    );
    ensure!(found.balance >= -amount("credit")?, "beyond the limit: {shown}");
    Ok(found)
}

/// Submits messages; returns the refusals.
fn submit(appliance: &TestDaemon, tally: &Arc<Tally>, count: u64) -> Result<BTreeMap<u32, u64>> {
    let options =
        SourceOptions { count: Some(count), ..SourceOptions::new(appliance.smpp(), "acme", PASSWORD) };
    let SourceReport { refusals, .. } = Source::start(&options, tally)?.join()?;
    Ok(refusals)
}

/// Waits until nothing is reserved; every balance read on the way must be consistent.
fn settled(appliance: &TestDaemon) -> Result<LedgerBalance> {
    until("all charges end", || Ok(read_balance(appliance)?.reserved == 0))?;
    read_balance(appliance)
}

#[test]
fn a_balance_operation_is_idempotent_and_logged() -> Result<()> {
    let fixture = Fixture::new()?;
    let sink = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(1)))?;
    let appliance = config(&fixture, &sink)?.start()?;
    let fund = |amount: i64| json!({ "fund": amount, "actor": "ann", "reason": "invoice 7" });
    let status = |appliance: &TestDaemon, key: &str, operation: &Value| -> Result<u16> {
        Ok(appliance.ledger("acme", key, operation)?.0)
    };
    assert_eq!(status(&appliance, "a", &fund(5))?, 404, "the account does not exist yet");
    assert_eq!(appliance.request("GET", "/v1/ledger/acme", &[])?.0, 404);
    let opening = json!({ "credit": 10, "actor": "bob", "reason": "contract" });
    assert_eq!(status(&appliance, "open", &opening)?, 200);

    let (code, first) = appliance.ledger("acme", "a", &fund(100))?;
    assert_eq!((code, &first["balance"], &first["repeated"]), (200, &json!(100), &json!(false)));
    let (code, again) = appliance.ledger("acme", "a", &fund(100))?;
    assert_eq!((code, &again["balance"], &again["repeated"]), (200, &json!(100), &json!(true)));
    assert_eq!(status(&appliance, "a", &fund(101))?, 409, "the key with another content");
    assert_eq!(status(&appliance, "a", &json!({ "credit": 100, "reason": "?" }))?, 409);
    let (code, _) = appliance.ledger("other", "a", &fund(100))?;
    assert_eq!(code, 409, "the key for another account");
    assert_eq!(status(&appliance, "too-much", &fund(-111))?, 409, "beyond the limit");
    assert_eq!(status(&appliance, "back", &fund(-110))?, 200);
    for (what, operation) in [
        ("no reason", json!({ "fund": 1 })),
        ("an empty reason", json!({ "fund": 1, "reason": " " })),
        ("both", json!({ "fund": 1, "credit": 1, "reason": "x" })),
        ("neither", json!({ "reason": "x" })),
        ("half a millionth", json!({ "fund": 0.5, "reason": "x" })),
        ("a negative credit", json!({ "credit": -1, "reason": "x" })),
        ("an unknown word", json!({ "fund": 1, "reason": "x", "colour": "red" })),
    ] {
        assert_eq!(status(&appliance, "bad", &operation)?, 400, "{what}");
    }
    let (code, words) = appliance.request("POST", "/v1/ledger/acme", fund(1).to_string().as_bytes())?;
    assert!(code == 400 && words.contains("Idempotency-Key"), "{code} {words}");

    let expected = LedgerBalance { balance: -10, reserved: 0, captured: 0, funded: -10 };
    assert_eq!(read_balance(&appliance)?, expected);
    let audit = appliance.get("/v1/ledger/acme/operations")?;
    let reply = |name: &str| -> Vec<Value> {
        audit.as_array().into_iter().flatten().map(|operation| operation[name].clone()).collect()
    };
    assert_eq!(reply("idempotency_key"), ["back", "a", "open"]);
    assert_eq!(reply("actor"), ["ann", "ann", "bob"]);
    assert_eq!(reply("reason"), ["invoice 7", "invoice 7", "contract"]);
    assert_eq!(reply("fund"), [json!(-110), json!(100), Value::Null]);
    assert_eq!(reply("credit"), [Value::Null, Value::Null, json!(10)]);
    let after: Vec<_> = reply("after").iter().map(|after| after["balance"].clone()).collect();
    assert_eq!(after, [-10, 100, 0]);

    // Paging; and after a crash everything is as before, idempotency keys included.
    let second = reply("serial")[1].as_u64().context("no serial")?;
    let page = appliance.get(&format!("/v1/ledger/acme/operations?limit=1&before={second}"))?;
    assert_eq!((page[0]["idempotency_key"].as_str(), page[1].as_object()), (Some("open"), None));
    let appliance = appliance.kill()?.start()?;
    assert_eq!(read_balance(&appliance)?, expected);
    assert_eq!(appliance.get("/v1/ledger/acme/operations")?, audit);
    let (code, again) = appliance.ledger("acme", "back", &fund(-110))?;
    assert_eq!((code, &again["repeated"]), (200, &json!(true)));
    assert_eq!(status(&appliance, "back", &fund(-109))?, 409);
    Ok(())
}

#[test]
fn submissions_without_credit_are_refused_and_failed_messages_are_released() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    let version = bill(&fixture, &appliance)?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let ended = |id: &str, state: &str| {
        appliance.wait_until(TIMEOUT, &format!("/v1/messages/{id}"), |trace| trace["state"] == state)
    };
    assert_eq!(esme.submit(9_000)?, Err(NO_CREDIT), "the ledger account does not exist yet");
    operate(&appliance, "open", json!({ "credit": 0 }))?;
    assert_eq!(esme.submit(9_000)?, Err(NO_CREDIT), "its balance is zero");

    operate(&appliance, "first", json!({ "fund": PRICE }))?;
    let delivered = esme.submit(9_000)?.map_err(|status| anyhow::anyhow!("{status:#x}"))?;
    let trace = ended(&delivered, "relayed")?;
    let price = &trace["price"];
    assert_eq!((&price["plugin"], &price["version"]), (&json!("prepaid"), &json!(version)), "{price}");
    assert_eq!((&price["account"], &price["amount"]), (&json!("acme"), &json!(PRICE)), "{price}");
    assert!(price["note"].as_str().is_some_and(|note| note.contains("standard")), "{price}");
    assert!(steps(&trace).contains(&format!("charged {PRICE}").as_str()), "{trace:#}");
    let spent = LedgerBalance { balance: 0, reserved: 0, captured: PRICE, funded: PRICE };
    assert_eq!(read_balance(&appliance)?, spent);
    assert_eq!(esme.submit(9_001)?, Err(NO_CREDIT), "it is spent");

    operate(&appliance, "second", json!({ "fund": PRICE }))?;
    sink.behave(NEVER);
    let failed = esme.submit(9_001)?.map_err(|status| anyhow::anyhow!("{status:#x}"))?;
    let trace = ended(&failed, "failed")?;
    assert!(steps(&trace).contains(&format!("refunded {PRICE}").as_str()), "{trace:#}");
    assert_eq!(read_balance(&appliance)?, LedgerBalance { balance: PRICE, funded: 2 * PRICE, ..spent });
    assert_eq!(appliance.metric("switchyard_submissions_unpaid_total")?, 3.0);

    // The balance pays for 400 messages and the credit for 20. Exactly 420 of 1,000 messages are accepted, in whatever order they
    // arrive over four connections.
    sink.behave(SinkOptions::default());
    operate(&appliance, "third", json!({ "fund": 399 * PRICE }))?;
    operate(&appliance, "limit", json!({ "credit": 20 * PRICE }))?;
    let before = tally.arrived_count();
    assert_eq!(submit(&appliance, &tally, 1_000)?, BTreeMap::from([(NO_CREDIT, 580)]));
    let end = settled(&appliance)?;
    assert_eq!((end.balance, end.captured), (-20 * PRICE, 421 * PRICE));
    assert_eq!(tally.arrived_count() - before, 420);

    // Every third message fails: delivered ones are charged, the others are released.
    operate(&appliance, "fourth", json!({ "fund": 3_000 * PRICE }))?;
    sink.behave(SinkOptions { error_every: 3, ..NEVER });
    let before = tally.arrived_count();
    assert_eq!(submit(&appliance, &tally, 2_000)?, BTreeMap::new());
    let paid = settled(&appliance)?.captured - end.captured;
    let arrived = (tally.arrived_count() - before) as i64;
    assert_eq!(paid, arrived * PRICE);
    assert!((1_300..1_400).contains(&arrived), "{arrived}");
    Ok(())
}

#[test]
fn money_is_conserved_under_load_and_over_kills() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut appliance = config(&fixture, &sink)?.start()?;
    bill(&fixture, &appliance)?;
    operate(&appliance, "open", json!({ "credit": 0 }))?;
    operate(&appliance, "money", json!({ "fund": 2_000_000 * PRICE }))?;
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    options.reconnect = true;
    let source = Source::start(&options, &tally)?;
    for turn in 0..3 {
        let before = tally.accepted_count();
        until("traffic", || {
            read_balance(&appliance)?;
            Ok(tally.accepted_count() > before + 2_000)
        })?;
        appliance = appliance.kill()?.start()?;
        read_balance(&appliance)?;
        // Funding continues at the same time, and is not lost.
        operate(&appliance, &format!("more {turn}"), json!({ "fund": PRICE }))?;
    }
    let before = tally.accepted_count();
    until("traffic after the last start", || {
        read_balance(&appliance)?;
        Ok(tally.accepted_count() > before + 2_000)
    })?;
    source.stop();
    let report = source.join()?;
    assert!(report.losses >= 3, "the source lost only {} connections: was it under load?", report.losses);
    until("all accepted arrive", || Ok(tally.summary().missing == 0))?;
    let end = settled(&appliance)?;
    assert_eq!(end.funded, 2_000_003 * PRICE);
    // Everything accepted arrived, even without an answer; each message is charged once, however often it was sent.
    assert_eq!(end.captured, tally.arrived_count() as i64 * PRICE);
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.unknown, sums.refused), (0, 0, 0), "{sums:?}");
    Ok(())
}

/// An explanation is open to viewers: it returns the result of an acceptance, including reasons, and changes nothing.
#[test]
fn an_explanation_predicts_refusals_and_changes_nothing() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = config(&fixture, &sink)?.start()?;
    bill(&fixture, &appliance)?;
    operate(&appliance, "open", json!({ "credit": 0 }))?;
    let question =
        json!({ "origin": "acme", "source": "10655", "destination": "8613012345678", "text": "x" });
    let answer = || -> Result<String> {
        let reply = appliance.ask("POST", "/v1/explain", question.to_string().as_bytes())?;
        Ok(reply["answer"].as_str().unwrap_or_default().to_owned())
    };
    let counts = || appliance.get("/v1/hooks").map(|hooks| hooks.to_string());
    let before = counts()?;
    ensure!(answer()? == "refused: no credit", "{}", answer()?);
    operate(&appliance, "money", json!({ "fund": PRICE }))?;
    let funded = appliance.get("/v1/ledger")?;
    ensure!(answer()? == "accepted", "{}", answer()?);
    ensure!(appliance.get("/v1/ledger")? == funded, "something was reserved");
    let stop = json!({ "subscriber": "8613012345678", "sender": "10655", "stop": true });
    appliance.ask("POST", "/v1/opt-outs", stop.to_string().as_bytes())?;
    ensure!(answer()?.contains("opted out of this sender"), "{}", answer()?);
    ensure!(counts()? == before, "{} and then {}", before, counts()?);
    Ok(())
}

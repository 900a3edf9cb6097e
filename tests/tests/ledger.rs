//! Money: it is there once, it is paid for what was delivered and given back for what was not, and no crash makes or
//! destroys any of it.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint, PASSWORD};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Source, SourceOptions, SourceReport, Tally};
use behaviour_tests::{PATIENCE, Stage, bind, shipped, steps, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a message costs by the shipped prices, in millionths.
const PRICE: i64 = 50_000;
/// The answer to a submission that the account cannot pay: ESME_RSUBMITFAIL.
const NO_CREDIT: u32 = 0x45;
/// The answer of a peer that will never take a message: ESME_RINVDSTADR.
const NEVER: SinkOptions = SinkOptions {
    error_status: 0x0B,
    error_every: 1,
    receipts: false,
    per_second: 0,
    delay: std::time::Duration::ZERO,
};

/// The account `acme`, and the peer `upstream`.
fn blueprint(stage: &Stage, upstream: &Sink) -> Result<Blueprint> {
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "window = 1000").peer(
        "upstream",
        upstream.address(),
        "links = 2\nwindow = 500\nreceipts = false\nuncertain = \"send-again\"",
    );
    Ok(blueprint)
}

/// Binds the default biller with the shipped prices; gives back its version.
fn bill(stage: &Stage, appliance: &Appliance) -> Result<String> {
    bind(appliance, "biller", "prepaid", &stage.component("prepaid")?, &shipped("prices")?, &json!({}))
}

/// A balance operation that succeeds.
fn operate(appliance: &Appliance, key: &str, mut operation: Value) -> Result<Value> {
    operation["reason"] = "a test".into();
    let (status, answer) = appliance.ledger("acme", key, &operation)?;
    ensure!(status == 200, "{operation}: {status} {answer}");
    Ok(answer)
}

/// A ledger account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Balance {
    balance: i64,
    reserved: i64,
    captured: i64,
    funded: i64,
}

/// Looks at the account. Whenever that is, no money may be made or gone, and no more be spent than there was.
fn look(appliance: &Appliance) -> Result<Balance> {
    let shown = appliance.get("/v1/ledger/acme")?;
    let amount = |name: &str| shown[name].as_i64().with_context(|| format!("no {name} in {shown}"));
    let found = Balance {
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

/// Submits so many messages; gives back what was refused.
fn submit(appliance: &Appliance, tally: &Arc<Tally>, count: u64) -> Result<BTreeMap<u32, u64>> {
    let options =
        SourceOptions { count: Some(count), ..SourceOptions::new(appliance.smpp(), "acme", PASSWORD) };
    let SourceReport { refusals, .. } = Source::start(&options, tally)?.join()?;
    Ok(refusals)
}

/// Waits until nothing is reserved any more; every look on the way is a good one.
fn settled(appliance: &Appliance) -> Result<Balance> {
    until("all charges end", || Ok(look(appliance)?.reserved == 0))?;
    look(appliance)
}

#[test]
fn a_balance_operation_counts_once_and_is_kept_for_the_audit() -> Result<()> {
    let stage = Stage::new()?;
    let sink = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(1)))?;
    let appliance = blueprint(&stage, &sink)?.start()?;
    let fund = |amount: i64| json!({ "fund": amount, "actor": "ann", "reason": "invoice 7" });
    let status = |appliance: &Appliance, key: &str, operation: &Value| -> Result<u16> {
        Ok(appliance.ledger("acme", key, operation)?.0)
    };
    assert_eq!(status(&appliance, "a", &fund(5))?, 404, "there is no account yet");
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

    let expected = Balance { balance: -10, reserved: 0, captured: 0, funded: -10 };
    assert_eq!(look(&appliance)?, expected);
    let audit = appliance.get("/v1/ledger/acme/operations")?;
    let told = |name: &str| -> Vec<Value> {
        audit.as_array().into_iter().flatten().map(|operation| operation[name].clone()).collect()
    };
    assert_eq!(told("key"), ["back", "a", "open"]);
    assert_eq!(told("actor"), ["ann", "ann", "bob"]);
    assert_eq!(told("reason"), ["invoice 7", "invoice 7", "contract"]);
    assert_eq!(told("fund"), [json!(-110), json!(100), Value::Null]);
    assert_eq!(told("credit"), [Value::Null, Value::Null, json!(10)]);
    let after: Vec<_> = told("after").iter().map(|after| after["balance"].clone()).collect();
    assert_eq!(after, [-10, 100, 0]);

    // A page at a time; and after a crash all is as it was, the keys too.
    let second = told("serial")[1].as_u64().context("no serial")?;
    let page = appliance.get(&format!("/v1/ledger/acme/operations?limit=1&before={second}"))?;
    assert_eq!((page[0]["key"].as_str(), page[1].as_object()), (Some("open"), None));
    let appliance = appliance.kill()?.start()?;
    assert_eq!(look(&appliance)?, expected);
    assert_eq!(appliance.get("/v1/ledger/acme/operations")?, audit);
    let (code, again) = appliance.ledger("acme", "back", &fund(-110))?;
    assert_eq!((code, &again["repeated"]), (200, &json!(true)));
    assert_eq!(status(&appliance, "back", &fund(-109))?, 409);
    Ok(())
}

#[test]
fn what_cannot_be_paid_is_refused_and_what_fails_is_given_back() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = blueprint(&stage, &sink)?.start()?;
    let version = bill(&stage, &appliance)?;
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    let ended = |id: &str, state: &str| {
        appliance.wait_until(PATIENCE, &format!("/v1/messages/{id}"), |trace| trace["state"] == state)
    };
    assert_eq!(esme.submit(9_000)?, Err(NO_CREDIT), "there is no ledger account yet");
    operate(&appliance, "open", json!({ "credit": 0 }))?;
    assert_eq!(esme.submit(9_000)?, Err(NO_CREDIT), "there is nothing on it");

    operate(&appliance, "first", json!({ "fund": PRICE }))?;
    let delivered = esme.submit(9_000)?.map_err(|status| anyhow::anyhow!("{status:#x}"))?;
    let trace = ended(&delivered, "relayed")?;
    let price = &trace["price"];
    assert_eq!((&price["plugin"], &price["version"]), (&json!("prepaid"), &json!(version)), "{price}");
    assert_eq!((&price["account"], &price["amount"]), (&json!("acme"), &json!(PRICE)), "{price}");
    assert!(price["note"].as_str().is_some_and(|note| note.contains("standard")), "{price}");
    assert!(steps(&trace).contains(&format!("charged {PRICE}").as_str()), "{trace:#}");
    let spent = Balance { balance: 0, reserved: 0, captured: PRICE, funded: PRICE };
    assert_eq!(look(&appliance)?, spent);
    assert_eq!(esme.submit(9_001)?, Err(NO_CREDIT), "it is spent");

    operate(&appliance, "second", json!({ "fund": PRICE }))?;
    sink.behave(NEVER);
    let failed = esme.submit(9_001)?.map_err(|status| anyhow::anyhow!("{status:#x}"))?;
    let trace = ended(&failed, "failed")?;
    assert!(steps(&trace).contains(&format!("given back {PRICE}").as_str()), "{trace:#}");
    assert_eq!(look(&appliance)?, Balance { balance: PRICE, funded: 2 * PRICE, ..spent });
    assert_eq!(appliance.metric("switchyard_submissions_unpaid_total")?, 3.0);

    // Money for 400 messages, of which one is there, and credit for 20: whatever the order in which 1,000 come over four
    // connections, so many are taken.
    sink.behave(SinkOptions::default());
    operate(&appliance, "third", json!({ "fund": 399 * PRICE }))?;
    operate(&appliance, "limit", json!({ "credit": 20 * PRICE }))?;
    let before = tally.arrived_so_far();
    assert_eq!(submit(&appliance, &tally, 1_000)?, BTreeMap::from([(NO_CREDIT, 580)]));
    let end = settled(&appliance)?;
    assert_eq!((end.balance, end.captured), (-20 * PRICE, 421 * PRICE));
    assert_eq!(tally.arrived_so_far() - before, 420);

    // Every third one fails: what arrives is paid for, the rest is given back.
    operate(&appliance, "fourth", json!({ "fund": 3_000 * PRICE }))?;
    sink.behave(SinkOptions { error_every: 3, ..NEVER });
    let before = tally.arrived_so_far();
    assert_eq!(submit(&appliance, &tally, 2_000)?, BTreeMap::new());
    let paid = settled(&appliance)?.captured - end.captured;
    let arrived = (tally.arrived_so_far() - before) as i64;
    assert_eq!(paid, arrived * PRICE);
    assert!((1_300..1_400).contains(&arrived), "{arrived}");
    Ok(())
}

#[test]
fn money_is_conserved_at_every_look_under_load_and_over_kills() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut appliance = blueprint(&stage, &sink)?.start()?;
    bill(&stage, &appliance)?;
    operate(&appliance, "open", json!({ "credit": 0 }))?;
    operate(&appliance, "money", json!({ "fund": 2_000_000 * PRICE }))?;
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    options.reconnect = true;
    let source = Source::start(&options, &tally)?;
    for turn in 0..3 {
        let before = tally.accepted_so_far();
        until("traffic", || {
            look(&appliance)?;
            Ok(tally.accepted_so_far() > before + 2_000)
        })?;
        appliance = appliance.kill()?.start()?;
        look(&appliance)?;
        // Funding goes on meanwhile, and what was funded stays.
        operate(&appliance, &format!("more {turn}"), json!({ "fund": PRICE }))?;
    }
    let before = tally.accepted_so_far();
    until("traffic after the last start", || {
        look(&appliance)?;
        Ok(tally.accepted_so_far() > before + 2_000)
    })?;
    source.stop();
    let report = source.join()?;
    assert!(report.losses >= 3, "the source lost only {} connections: was it under load?", report.losses);
    until("all accepted arrive", || Ok(tally.accounts().missing == 0))?;
    let end = settled(&appliance)?;
    assert_eq!(end.funded, 2_000_003 * PRICE);
    // Whatever was taken arrived, also where no answer came; each message is paid for once, however often it was sent.
    assert_eq!(end.captured, tally.arrived_so_far() as i64 * PRICE);
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    let sums = tally.accounts();
    assert_eq!((sums.missing, sums.strangers, sums.refused), (0, 0, 0), "{sums:?}");
    Ok(())
}

/// It is a viewer's question: it says what an acceptance would, for its reasons too, and leaves no trace of itself.
#[test]
fn an_explanation_says_what_would_be_refused_and_changes_nothing() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let appliance = blueprint(&stage, &sink)?.start()?;
    bill(&stage, &appliance)?;
    operate(&appliance, "open", json!({ "credit": 0 }))?;
    let question =
        json!({ "origin": "acme", "source": "10655", "destination": "8613012345678", "text": "x" });
    let answer = || -> Result<String> {
        let told = appliance.ask("POST", "/v1/explain", question.to_string().as_bytes())?;
        Ok(told["answer"].as_str().unwrap_or_default().to_owned())
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
    ensure!(answer()?.contains("told this sender to stop"), "{}", answer()?);
    ensure!(counts()? == before, "{} and then {}", before, counts()?);
    Ok(())
}

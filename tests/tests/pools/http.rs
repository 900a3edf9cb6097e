//! Number pools over HTTP: every operation, invalid requests, and concurrency.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use behaviour_tests::pools::http::{Pool, ask, config};
use behaviour_tests::pools::{PoolEvent, transition};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn each_cell_of_the_state_table() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    for state in ["none", "idle+up", "idle+down", "busy+up", "busy+down"] {
        for event in PoolEvent::ALL {
            let (expected, event) = (transition(state, event), event.name());
            let pool = Pool::new(&appliance, &format!("{}-{event}", state.replace('+', "-")));
            pool.configure(&Value::Null)?;
            let ways: &[&str] = match state {
                "none" => &[],
                "idle+down" => &["add"],
                "idle+up" => &["add", "reg"],
                "busy+up" => &["add", "reg", "call"],
                _ => &["add", "reg", "call", "unreg"],
            };
            for event in ways {
                pool.done(&json!({ "event": event, "number": "100" }))?;
            }
            let (asked, after) = (json!({ "event": event, "number": "100" }), expected.state);
            if expected.ok {
                let reply = pool.done(&asked)?;
                assert_eq!((&reply["number"], &reply["state"]), (&json!("100"), &json!(after)), "{reply}");
            } else if state == "none" {
                assert_eq!(pool.refused(&asked)?["reason"], "not-in-pool", "{event}");
            } else {
                let reply = pool.refused(&asked)?;
                assert_eq!(
                    (&reply["reason"], &reply["state"]),
                    (&json!("wrong-state"), &json!(state)),
                    "{event}"
                );
            }
            let standing = match after {
                "none" => {
                    let (status, _) =
                        ask(&appliance, "GET", &format!("{}/numbers/100", pool.path), &Value::Null)?;
                    assert_eq!(status, 404, "{state} {event}");
                    "none".to_owned()
                }
                _ => pool.number("100")?["state"].as_str().unwrap_or_default().to_owned(),
            };
            assert_eq!(standing, after, "{state} {event}");
            let ready = pool.get("")?["ready"] == 1;
            assert_eq!(ready, after == "idle+up", "{state} {event}: the idle list");
        }
    }
    Ok(())
}

#[test]
fn a_number_is_leased_held_and_released() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    let pool = Pool::new(&appliance, "support");
    assert_eq!(pool.refused(&json!({ "event": "call" }))?["reason"], "empty");
    pool.done(&json!({ "event": "add", "number": "100" }))?;
    assert_eq!(pool.refused(&json!({ "event": "call" }))?["reason"], "all-down");
    pool.fill(&["100", "101", "102"])?;

    // The number that has been idle longest, and its holder.
    let given =
        pool.done(&json!({ "event": "call", "holder": "crm", "reason": "case 7", "lease-ms": 3_600_000 }))?;
    assert_eq!((&given["number"], &given["state"]), (&json!("100"), &json!("busy+up")));
    let standing = pool.number("100")?;
    assert_eq!(standing["ticket"], given["ticket"]);
    assert_eq!((&standing["holder"], &standing["reason"]), (&json!("crm"), &json!("case 7")), "{standing}");
    let left = standing["lease-left-ms"].as_u64().context("no lease")?;
    assert!((1..=3_600_000).contains(&left), "{standing}");
    assert_eq!((&standing["calls"], &standing["weight"]), (&json!(1), &json!(1)), "{standing}");
    assert_eq!(pool.call()?.0, "101");
    let (third, ticket) = pool.call()?;
    assert_eq!(third, "102");

    // No available number, and when one will be.
    let reply = pool.refused(&json!({ "event": "call" }))?;
    assert_eq!(reply["reason"], "all-busy");
    assert!(reply["retry-after-ms"].as_u64().is_some_and(|left| (1..=3_600_000).contains(&left)), "{reply}");
    pool.done(&json!({ "event": "renew", "number": "100" }))?;
    let reply = pool.refused(&json!({ "event": "call" }))?;
    assert!(
        reply["reason"] == "all-busy" && reply.get("retry-after-ms").is_none(),
        "no lease has an end: {reply}"
    );
    assert!(pool.number("100")?.get("lease-ends").is_none());

    // Tickets.
    let other = json!({ "event": "hangup", "number": "102", "ticket": ticket + 1 });
    assert_eq!(pool.refused(&other)?["reason"], "other-ticket");
    let renewed =
        pool.done(&json!({ "event": "renew", "number": "102", "ticket": ticket, "lease-ms": 60_000 }))?;
    assert_eq!((&renewed["state"], &renewed["ticket"]), (&json!("busy+up"), &json!(ticket)));
    let back = pool.done(&json!({ "event": "hangup", "number": "102", "ticket": ticket }))?;
    assert_eq!(back["state"], "idle+up");
    assert_eq!(
        pool.refused(&json!({ "event": "hangup", "number": "102", "ticket": ticket }))?["reason"],
        "wrong-state"
    );
    assert_eq!(pool.refused(&json!({ "event": "renew", "number": "999" }))?["reason"], "not-in-pool");
    let long = "x".repeat(256);
    assert_eq!(pool.refused(&json!({ "event": "call", "holder": long }))?["reason"], "too-long");

    // Quarantine.
    pool.configure(&json!({ "quarantine-ms": 3_600_000 }))?;
    pool.done(&json!({ "event": "call", "number": "102" }))?;
    pool.done(&json!({ "event": "hangup", "number": "102" }))?;
    let reply = pool.refused(&json!({ "event": "call", "number": "102" }))?;
    assert!(reply["reason"] == "resting" && reply["retry-after-ms"].is_u64(), "{reply}");
    let reply = pool.refused(&json!({ "event": "call" }))?;
    assert!(reply["reason"] == "all-resting" && reply["retry-after-ms"].is_u64(), "{reply}");
    assert!(pool.number("102")?["rest-left-ms"].is_u64());

    // The pool as a whole.
    let shown = pool.get("")?;
    let numbers = json!({ "idle+up": 1, "idle+down": 0, "busy+up": 2, "busy+down": 0, "total": 3 });
    assert_eq!((&shown["numbers"], &shown["ready"]), (&numbers, &json!(0)), "{shown}");
    assert_eq!(shown["settings"], json!({ "strategy": "longest-idle", "quarantine-ms": 3_600_000 }));
    assert!(shown["acquired"] == 4 && shown["none"].as_u64().is_some_and(|none| none >= 4), "{shown}");
    let all = appliance.get("/v1/pools")?;
    assert_eq!(all["pools"][0]["name"], "support");
    let series: BTreeMap<String, f64> = appliance.metrics()?.into_iter().collect();
    assert_eq!(series.get("switchyard_pool_numbers{pool=\"support\",state=\"busy+up\"}"), Some(&2.0));
    assert_eq!(series.get("switchyard_pool_calls_total{pool=\"support\",result=\"acquired\"}"), Some(&4.0));
    assert_eq!(series.get("switchyard_pools"), Some(&1.0));

    // The history, newest first, with paging and by number.
    let history = pool.get("/history?limit=2")?;
    let last = history["entries"].as_array().context("no entries")?;
    assert_eq!(
        (last.len(), &last[0]["event"], &last[0]["by"]),
        (2, &json!("hangup"), &json!("admin")),
        "{history}"
    );
    let next = history["next"].as_u64().context("no next")?;
    let older = pool.get(&format!("/history?before={next}"))?;
    let entries = shown["entries"].as_u64().context("no entries")?;
    assert_eq!(older["entries"].as_array().map(Vec::len), usize::try_from(entries - 2).ok());
    assert_eq!(older["next"], Value::Null);
    let one = pool.get("/history?number=101")?;
    let events: Vec<&str> =
        one["entries"].as_array().into_iter().flatten().filter_map(|entry| entry["event"].as_str()).collect();
    assert_eq!(events, ["call", "reg", "add"]);

    // It can be deleted only when it is empty, or with `with-numbers`.
    let (status, reply) = ask(&appliance, "DELETE", &pool.path, &Value::Null)?;
    assert_eq!((status, &reply["reason"]), (409, &json!("not-empty")), "{reply}");
    let removal = format!("{}?with-numbers=true", pool.path);
    assert_eq!(ask(&appliance, "DELETE", &removal, &Value::Null)?.0, 204);
    let (status, reply) = ask(&appliance, "GET", &pool.path, &Value::Null)?;
    assert_eq!((status, &reply["reason"]), (404, &json!("no-pool")));
    assert_eq!(ask(&appliance, "DELETE", &removal, &Value::Null)?.0, 404);
    Ok(())
}

#[test]
fn numbers_are_listed_by_state_and_prefix_with_paging() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    let pool = Pool::new(&appliance, "list");
    let numbers: Vec<String> = (0..250).map(|number| format!("49{number:03}")).collect();
    let events: Vec<Value> =
        numbers.iter().map(|number| json!({ "event": "add", "number": number })).collect();
    pool.done(&Value::Array(events))?;
    pool.fill(&["+1", "49007"])?;
    assert_eq!(pool.states()?.len(), 251);
    let listed = |query: &str| -> Result<Vec<String>> {
        let page = pool.get(&format!("/numbers{query}"))?;
        let numbers = page["numbers"].as_array().context("no numbers")?;
        Ok(numbers.iter().filter_map(|number| number["number"].as_str()).map(str::to_owned).collect())
    };
    assert_eq!(listed("")?.len(), 100);
    assert_eq!(listed("?prefix=490&limit=1000")?.len(), 100);
    assert_eq!(listed("?prefix=%2B")?, ["+1"]);
    assert_eq!(listed("?state=idle%2Bup&prefix=49")?, ["49007"]);
    assert_eq!(listed("?state=busy%2Bup")?.len(), 0);
    let first = pool.get("/numbers?limit=200&state=idle%2Bdown")?;
    let next = first["next"].as_u64().context("no next")?;
    let second = pool.get(&format!("/numbers?limit=200&state=idle%2Bdown&cursor={next}"))?;
    let count = |page: &Value| page["numbers"].as_array().map_or(0, Vec::len);
    assert_eq!((count(&first), count(&second), &second["next"]), (200, 49, &Value::Null));
    Ok(())
}

#[test]
fn a_batch_is_applied_in_order_with_a_result_per_event() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    let pool = Pool::new(&appliance, "batch");
    let reply = pool.done(&json!([
        { "event": "add", "number": "1", "weight": 16 },
        { "event": "call" },
        { "event": "reg", "number": "1" },
        { "event": "call", "holder": "a" },
        { "event": "call", "number": "1" },
        { "event": "call", "number": "2" },
        { "event": "del", "number": "1" },
        { "event": "hangup", "number": "1" },
    ]))?;
    let reply: Vec<_> = reply.as_array().context("no array")?.iter().collect();
    let words: Vec<&str> = reply
        .iter()
        .map(|reply| {
            reply.get("reason").or_else(|| reply.get("state")).and_then(Value::as_str).unwrap_or("?")
        })
        .collect();
    let expected =
        ["idle+down", "all-down", "idle+up", "busy+up", "wrong-state", "not-in-pool", "none", "not-in-pool"];
    assert_eq!(words, expected);
    let results: Vec<&str> = reply.iter().filter_map(|reply| reply["result"].as_str()).collect();
    assert_eq!(results, ["done", "refused", "done", "done", "refused", "refused", "done", "refused"]);
    assert!(reply[3]["number"] == "1" && reply[3]["ticket"].is_u64(), "{}", reply[3]);
    assert!(reply[4]["state"] == "busy+up" && reply[4]["detail"].is_string(), "{}", reply[4]);
    assert_eq!(pool.done(&json!([]))?, json!([]));

    // One invalid event: nothing is applied. Too many events: the same.
    let before = pool.get("")?["entries"].clone();
    let (status, reply) =
        pool.event(&json!([{ "event": "add", "number": "5" }, { "event": "add", "number": "x" }]))?;
    assert!(
        status == 400 && reply["detail"].as_str().is_some_and(|detail| detail.contains("event 1")),
        "{reply}"
    );
    let many = vec![json!({ "event": "add", "number": "5" }); 10_001];
    assert_eq!(pool.event(&Value::Array(many))?.0, 400);
    assert_eq!(pool.get("")?["entries"], before);
    let most = (0..10_000).map(|number| json!({ "event": "add", "number": number.to_string() }));
    assert_eq!(pool.done(&most.collect())?.as_array().map(Vec::len), Some(10_000));
    assert_eq!(pool.get("")?["numbers"]["total"], 10_000);
    Ok(())
}

#[test]
fn invalid_requests_are_refused_with_a_reason_and_change_nothing() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    let pool = Pool::new(&appliance, "pool");
    pool.fill(&["1"])?;
    let before = (pool.states()?, pool.get("")?["entries"].clone());
    for (method, path, body, status, word) in [
        ("POST", "/v1/pools/pool/events", "", 400, "the body is invalid"),
        ("POST", "/v1/pools/pool/events", "{", 400, "the body is invalid"),
        ("POST", "/v1/pools/pool/events", "\"call\"", 400, "object"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"steal","number":"1"}"#, 400, "steal"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"add"}"#, 400, "number"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"add","number":7}"#, 400, "string"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"add","number":"abc"}"#, 400, "is not a pool number"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"add","number":"12345678901234567"}"#, 400, "1 to 16"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"add","number":"1","weight":0}"#, 400, "weight"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"call","number":"1","lease-ms":0}"#, 400, "lease-ms"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"call","number":"1","lease-ms":-5}"#, 400, "-5"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"call","number":"1","color":"red"}"#, 400, "color"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"hangup","number":"1","ticket":"x"}"#, 400, "u64"),
        ("POST", "/v1/pools/a%20b/events", r#"{"event":"add","number":"1"}"#, 400, "name of a pool"),
        ("PUT", "/v1/pools/a%7Bb", "", 400, "name of a pool"),
        ("PUT", "/v1/pools/pool", r#"{"strategy":"best"}"#, 400, "best"),
        ("PUT", "/v1/pools/pool", r#"{"quarantine-ms":18446744073709551615}"#, 400, "3650"),
        ("PUT", "/v1/pools/pool", r#"{"colour":1}"#, 400, "colour"),
        ("DELETE", "/v1/pools/pool?with-numbers=maybe", "", 400, "true or false"),
        ("DELETE", "/v1/pools/pool?force=1", "", 400, "force"),
        ("GET", "/v1/pools?x=1", "", 400, "unknown"),
        ("GET", "/v1/pools/none", "", 404, "no pool"),
        ("GET", "/v1/pools/none/numbers", "", 404, "no pool"),
        ("GET", "/v1/pools/none/numbers/1", "", 404, "no pool"),
        ("GET", "/v1/pools/none/history", "", 404, "no pool"),
        ("GET", "/v1/pools/none/watch", "", 404, "no pool"),
        ("GET", "/v1/pools/none/export", "", 404, "no pool"),
        ("GET", "/v1/pools/pool/numbers/2", "", 404, "not in the pool"),
        ("GET", "/v1/pools/pool/numbers/x", "", 400, "is not a pool number"),
        ("GET", "/v1/pools/pool/numbers?state=asleep", "", 400, "state"),
        ("GET", "/v1/pools/pool/numbers?limit=0", "", 400, "limit"),
        ("GET", "/v1/pools/pool/numbers?limit=1001", "", 400, "limit"),
        ("GET", "/v1/pools/pool/numbers?cursor=x", "", 400, "cursor"),
        ("GET", "/v1/pools/pool/numbers?prefix=x", "", 400, "is not a pool number"),
        ("GET", "/v1/pools/pool/history?before=x", "", 400, "before"),
        ("GET", "/v1/pools/pool/watch?from=99", "", 400, "99"),
        ("GET", "/v1/pools/pool/watch?from=-1", "", 400, "from"),
        ("GET", "/v1/pools/pool/export?format=xml", "", 400, "xml"),
        ("POST", "/v1/pools/pool/import", "5", 400, "Content-Type"),
        ("PATCH", "/v1/pools/pool", "", 405, ""),
    ] {
        let (code, reply) = appliance.request(method, path, body.as_bytes())?;
        ensure!(code == status && reply.contains(word), "{method} {path} {body}: {code} {reply}");
    }
    for (id, word) in [("x", "Last-Event-ID"), ("7", "2 entries"), ("-1", "Last-Event-ID")] {
        let (code, reply) = appliance.send("GET", "/v1/pools/pool/watch", &[], &[("last-event-id", id)])?;
        ensure!(code == 400 && reply.contains(word), "{id}: {code} {reply}");
    }
    let document = appliance.get("/v1/openapi.json")?;
    for (path, methods) in document["paths"].as_object().context("no paths")? {
        if !path.starts_with("/v1/pools") {
            continue;
        }
        let path = path.replace("{pool}", "pool").replace("{number}", "1");
        for method in methods.as_object().into_iter().flat_map(|methods| methods.keys()) {
            for word in ["Bearer wrong", ""] {
                let (code, reply) =
                    appliance.send(&method.to_uppercase(), &path, b"{}", &[("authorization", word)])?;
                ensure!(code == 401, "{method} {path}: {code} {reply}");
            }
        }
    }
    assert_eq!((pool.states()?, pool.get("")?["entries"].clone()), before);
    Ok(())
}

#[test]
fn concurrent_callers_never_share_a_number() -> Result<()> {
    const CLIENTS: usize = 16;
    const NUMBERS: usize = 8;
    const CALLS: usize = 50;
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    let pool = Pool::new(&appliance, "race");
    // All clients create the pool and add the same numbers.
    let numbers: Vec<String> = (0..NUMBERS).map(|number| (100 + number).to_string()).collect();
    let everybody = |work: &(dyn Fn(usize) -> Result<()> + Sync)| -> Result<()> {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || work(client))).collect();
            for client in clients {
                client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            }
            Ok(())
        })
    };
    everybody(&|_| pool.fill(&numbers.iter().map(String::as_str).collect::<Vec<_>>()))?;
    assert_eq!(pool.get("")?["numbers"]["total"], NUMBERS);

    // Each client records its leases in a shared set, and removes them before it releases them.
    let held = parking_lot::Mutex::new(BTreeSet::new());
    let tickets = parking_lot::Mutex::new(BTreeSet::new());
    everybody(&|client| {
        let holder = json!(format!("client {client}"));
        for _ in 0..CALLS {
            let (status, reply) = pool.event(&json!({ "event": "call", "holder": holder }))?;
            if status == 409 {
                ensure!(reply["reason"] == "all-busy", "{reply}");
                continue;
            }
            let number = reply["number"].as_str().context("no number")?;
            ensure!(held.lock().insert(number.to_owned()), "{number} was leased twice");
            ensure!(tickets.lock().insert(reply["ticket"].as_u64()), "a ticket was used twice");
            let standing = pool.number(number)?;
            ensure!(standing["holder"] == holder, "somebody else has it: {standing}");
            held.lock().remove(number);
            pool.done(&json!({ "event": "hangup", "number": number, "ticket": reply["ticket"] }))?;
        }
        Ok(())
    })?;
    let shown = pool.get("")?;
    assert_eq!((&shown["ready"], &shown["numbers"]["busy+up"]), (&json!(NUMBERS), &json!(0)), "{shown}");
    assert_eq!(shown["acquired"], tickets.lock().len());
    Ok(())
}

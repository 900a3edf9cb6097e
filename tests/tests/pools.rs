//! Number pools over HTTP and on the command line: every operation, what is wrong with a request, many at once, the stream of
//! events, bulk import and export, and restarts.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint};
use behaviour_tests::{PATIENCE, Stage, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Lines};
use std::process::{Command, Stdio};

fn blueprint(stage: &Stage) -> Result<Blueprint> {
    Blueprint::new(stage.binary(), &stage.folder().join("appliance"))
}

/// An answer: its status, and its body, as JSON where it is some.
fn send(
    appliance: &Appliance,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<(u16, String)> {
    let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(4 * PATIENCE));
    let agent = ureq::Agent::new_with_config(config.build());
    let mut request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("http://{}{path}", appliance.blueprint().http()));
    if !headers.iter().any(|(name, _)| *name == "authorization") {
        request = request.header("authorization", format!("Bearer {}", appliance.token()?));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = agent.run(request.body(body.to_vec())?).with_context(|| format!("{method} {path}"))?;
    let text = answer.body_mut().with_config().limit(1 << 30).read_to_string()?;
    Ok((answer.status().as_u16(), text))
}

fn ask(appliance: &Appliance, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, text) = send(appliance, method, path, &[], body.as_bytes())?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

/// One pool of an appliance.
struct Pool<'a> {
    appliance: &'a Appliance,
    path: String,
}

impl<'a> Pool<'a> {
    fn new(appliance: &'a Appliance, name: &str) -> Self {
        Self { appliance, path: format!("/v1/pools/{name}") }
    }

    fn event(&self, event: &Value) -> Result<(u16, Value)> {
        ask(self.appliance, "POST", &format!("{}/events", self.path), event)
    }

    /// An event that is done.
    fn done(&self, event: &Value) -> Result<Value> {
        let (status, answer) = self.event(event)?;
        ensure!(status == 200, "{event}: {status} {answer}");
        Ok(answer)
    }

    /// Why an event is refused.
    fn refused(&self, event: &Value) -> Result<Value> {
        let (status, answer) = self.event(event)?;
        ensure!(status == 409 && answer["status"] == 409, "{event}: {status} {answer}");
        ensure!(answer["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{answer}");
        Ok(answer)
    }

    /// Adds numbers and brings them up.
    fn fill(&self, numbers: &[&str]) -> Result<()> {
        for number in numbers {
            self.done(&json!({ "event": "add", "number": number }))?;
            self.done(&json!({ "event": "reg", "number": number }))?;
        }
        Ok(())
    }

    fn call(&self) -> Result<(String, u64)> {
        let given = self.done(&json!({ "event": "call" }))?;
        let number = given["number"].as_str().context("no number")?.to_owned();
        Ok((number, given["ticket"].as_u64().context("no ticket")?))
    }

    fn get(&self, rest: &str) -> Result<Value> {
        self.appliance.get(&format!("{}{rest}", self.path))
    }

    fn number(&self, number: &str) -> Result<Value> {
        self.get(&format!("/numbers/{number}"))
    }

    fn configure(&self, settings: &Value) -> Result<Value> {
        let (status, pool) = ask(self.appliance, "PUT", &self.path, settings)?;
        ensure!(status == 200, "{status} {pool}");
        Ok(pool)
    }

    /// Numbers and states, over all pages.
    fn states(&self) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("/numbers?limit=1000{cursor}"))?;
            for number in page["numbers"].as_array().context("no numbers")? {
                let word = |name: &str| number[name].as_str().unwrap_or_default().to_owned();
                ensure!(found.insert(word("number"), word("state")).is_none(), "twice: {number}");
            }
            match page["next"].as_u64() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(found),
            }
        }
    }

    fn watch(&self, query: &str, last: Option<u64>) -> Result<Stream> {
        Stream::open(self.appliance, &format!("{}/watch{query}", self.path), last)
    }
}

/// A server-sent event.
#[derive(Debug)]
struct Told {
    id: Option<u64>,
    kind: String,
    data: Value,
}

/// A stream of server-sent events.
struct Stream {
    lines: Lines<BufReader<ureq::BodyReader<'static>>>,
}

impl Stream {
    /// Opens it; once this returns, nothing that happens is missed.
    fn open(appliance: &Appliance, path: &str, last: Option<u64>) -> Result<Self> {
        let config = ureq::Agent::config_builder().timeout_global(Some(4 * PATIENCE));
        let agent = ureq::Agent::new_with_config(config.build());
        let mut request = agent
            .get(format!("http://{}{path}", appliance.blueprint().http()))
            .header("authorization", format!("Bearer {}", appliance.token()?));
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let answer = request.call().with_context(|| format!("GET {path}"))?;
        let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        ensure!(kind.is_some_and(|kind| kind.starts_with("text/event-stream")), "{kind:?}");
        Ok(Self { lines: BufReader::new(answer.into_body().into_reader()).lines() })
    }

    /// The next event; `None` when the stream has ended.
    fn next(&mut self) -> Result<Option<Told>> {
        let mut told = Told { id: None, kind: String::new(), data: Value::Null };
        for line in self.lines.by_ref() {
            let Ok(line) = line else { return Ok(None) };
            match line.split_once(": ") {
                Some(("id", id)) => told.id = Some(id.parse()?),
                Some(("event", kind)) => kind.clone_into(&mut told.kind),
                Some(("data", data)) => told.data = serde_json::from_str(data)?,
                None if line.is_empty() && !told.data.is_null() => return Ok(Some(told)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The next entry: what happened, to which number, and its state afterwards.
    fn entry(&mut self) -> Result<(u64, String, String, String)> {
        let told = self.next()?.context("the stream has ended")?;
        let id = told.id.context("an event without an id")?;
        ensure!(told.data["id"] == id, "{told:?}");
        let word = |name: &str| told.data[name].as_str().unwrap_or_default().to_owned();
        Ok((id, word("event"), word("number"), word("state")))
    }

    /// What happens next, without the entry's number.
    fn happens(&mut self) -> Result<(String, String, String)> {
        let (_, event, number, state) = self.entry()?;
        Ok((event, number, state))
    }
}

fn entry(event: &str, number: &str, state: &str) -> (String, String, String) {
    (event.to_owned(), number.to_owned(), state.to_owned())
}

const EVENTS: [&str; 6] = ["add", "del", "reg", "unreg", "call", "hangup"];

/// The older system's table: what becomes of a number in this state, or why nothing does. A row a state, a column an event.
const TABLE: [(&str, [Result<&str, &str>; 6]); 5] = [
    (
        "none",
        [
            Ok("idle+down"),
            Ok("none"),
            Err("not-in-pool"),
            Err("not-in-pool"),
            Err("not-in-pool"),
            Err("not-in-pool"),
        ],
    ),
    (
        "idle+up",
        [Ok("idle+up"), Ok("none"), Ok("idle+up"), Ok("idle+down"), Ok("busy+up"), Err("wrong-state")],
    ),
    (
        "idle+down",
        [Ok("idle+down"), Ok("none"), Ok("idle+up"), Ok("idle+down"), Err("wrong-state"), Err("wrong-state")],
    ),
    (
        "busy+up",
        [Ok("busy+up"), Ok("none"), Ok("busy+up"), Ok("busy+down"), Err("wrong-state"), Ok("idle+up")],
    ),
    (
        "busy+down",
        [Ok("busy+down"), Ok("none"), Ok("busy+up"), Ok("busy+down"), Err("wrong-state"), Ok("idle+down")],
    ),
];

#[test]
fn each_cell_of_the_state_table() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.start()?;
    for (state, cells) in TABLE {
        for (event, expected) in EVENTS.into_iter().zip(cells) {
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
            let after = match expected {
                Ok(after) => {
                    let told = pool.done(&json!({ "event": event, "number": "100" }))?;
                    assert_eq!((&told["number"], &told["state"]), (&json!("100"), &json!(after)), "{told}");
                    after
                }
                Err(reason) => {
                    let told = pool.refused(&json!({ "event": event, "number": "100" }))?;
                    assert_eq!(told["reason"], reason, "{state} {event}: {told}");
                    if reason == "wrong-state" {
                        assert_eq!(told["state"], state, "{told}");
                    }
                    state
                }
            };
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
fn a_number_is_given_held_and_given_back() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.start()?;
    let pool = Pool::new(&appliance, "support");
    assert_eq!(pool.refused(&json!({ "event": "call" }))?["reason"], "empty");
    pool.done(&json!({ "event": "add", "number": "100" }))?;
    assert_eq!(pool.refused(&json!({ "event": "call" }))?["reason"], "all-down");
    pool.fill(&["100", "101", "102"])?;

    // The one that has been idle longest, and who has it.
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

    // None is to be had, and when one is.
    let told = pool.refused(&json!({ "event": "call" }))?;
    assert_eq!(told["reason"], "all-busy");
    assert!(told["retry-after-ms"].as_u64().is_some_and(|left| (1..=3_600_000).contains(&left)), "{told}");
    pool.done(&json!({ "event": "renew", "number": "100" }))?;
    let told = pool.refused(&json!({ "event": "call" }))?;
    assert!(
        told["reason"] == "all-busy" && told.get("retry-after-ms").is_none(),
        "no lease has an end: {told}"
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

    // A number that rests.
    pool.configure(&json!({ "quarantine-ms": 3_600_000 }))?;
    pool.done(&json!({ "event": "call", "number": "102" }))?;
    pool.done(&json!({ "event": "hangup", "number": "102" }))?;
    let told = pool.refused(&json!({ "event": "call", "number": "102" }))?;
    assert!(told["reason"] == "resting" && told["retry-after-ms"].is_u64(), "{told}");
    let told = pool.refused(&json!({ "event": "call" }))?;
    assert!(told["reason"] == "all-resting" && told["retry-after-ms"].is_u64(), "{told}");
    assert!(pool.number("102")?["rest-left-ms"].is_u64());

    // The pool as a whole.
    let shown = pool.get("")?;
    let numbers = json!({ "idle+up": 1, "idle+down": 0, "busy+up": 2, "busy+down": 0, "total": 3 });
    assert_eq!((&shown["numbers"], &shown["ready"]), (&numbers, &json!(0)), "{shown}");
    assert_eq!(shown["settings"], json!({ "strategy": "longest-idle", "quarantine-ms": 3_600_000 }));
    assert!(shown["given"] == 4 && shown["none"].as_u64().is_some_and(|none| none >= 4), "{shown}");
    let all = appliance.get("/v1/pools")?;
    assert_eq!(all["pools"][0]["name"], "support");
    let series: BTreeMap<String, f64> = appliance.metrics()?.into_iter().collect();
    assert_eq!(series.get("switchyard_pool_numbers{pool=\"support\",state=\"busy+up\"}"), Some(&2.0));
    assert_eq!(series.get("switchyard_pool_calls_total{pool=\"support\",result=\"given\"}"), Some(&4.0));
    assert_eq!(series.get("switchyard_pools"), Some(&1.0));

    // What has happened, newest first, a page at a time and of one number.
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

    // It goes only when it is empty, or when that is wanted.
    let (status, told) = ask(&appliance, "DELETE", &pool.path, &Value::Null)?;
    assert_eq!((status, &told["reason"]), (409, &json!("not-empty")), "{told}");
    let removal = format!("{}?with-numbers=true", pool.path);
    assert_eq!(ask(&appliance, "DELETE", &removal, &Value::Null)?.0, 204);
    let (status, told) = ask(&appliance, "GET", &pool.path, &Value::Null)?;
    assert_eq!((status, &told["reason"]), (404, &json!("no-pool")));
    assert_eq!(ask(&appliance, "DELETE", &removal, &Value::Null)?.0, 404);
    Ok(())
}

#[test]
fn numbers_are_listed_by_state_and_beginning_a_page_at_a_time() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.start()?;
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
fn a_batch_is_done_in_order_and_each_event_has_its_result() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.start()?;
    let pool = Pool::new(&appliance, "batch");
    let told = pool.done(&json!([
        { "event": "add", "number": "1", "weight": 16 },
        { "event": "call" },
        { "event": "reg", "number": "1" },
        { "event": "call", "holder": "a" },
        { "event": "call", "number": "1" },
        { "event": "call", "number": "2" },
        { "event": "del", "number": "1" },
        { "event": "hangup", "number": "1" },
    ]))?;
    let told: Vec<_> = told.as_array().context("no array")?.iter().collect();
    let words: Vec<&str> = told
        .iter()
        .map(|told| told.get("reason").or_else(|| told.get("state")).and_then(Value::as_str).unwrap_or("?"))
        .collect();
    let expected =
        ["idle+down", "all-down", "idle+up", "busy+up", "wrong-state", "not-in-pool", "none", "not-in-pool"];
    assert_eq!(words, expected);
    let results: Vec<&str> = told.iter().filter_map(|told| told["result"].as_str()).collect();
    assert_eq!(results, ["done", "refused", "done", "done", "refused", "refused", "done", "refused"]);
    assert!(told[3]["number"] == "1" && told[3]["ticket"].is_u64(), "{}", told[3]);
    assert!(told[4]["state"] == "busy+up" && told[4]["detail"].is_string(), "{}", told[4]);
    assert_eq!(pool.done(&json!([]))?, json!([]));

    // Wrong in one place: nothing is done. Too many: neither.
    let before = pool.get("")?["entries"].clone();
    let (status, told) =
        pool.event(&json!([{ "event": "add", "number": "5" }, { "event": "add", "number": "x" }]))?;
    assert!(
        status == 400 && told["detail"].as_str().is_some_and(|detail| detail.contains("event 1")),
        "{told}"
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
fn what_is_wrong_with_a_request_is_told_and_nothing_is_done() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.start()?;
    let pool = Pool::new(&appliance, "pool");
    pool.fill(&["1"])?;
    let before = (pool.states()?, pool.get("")?["entries"].clone());
    for (method, path, body, status, word) in [
        ("POST", "/v1/pools/pool/events", "", 400, "not as expected"),
        ("POST", "/v1/pools/pool/events", "{", 400, "not as expected"),
        ("POST", "/v1/pools/pool/events", "\"call\"", 400, "object"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"steal","number":"1"}"#, 400, "steal"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"add"}"#, 400, "number"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"add","number":7}"#, 400, "string"),
        ("POST", "/v1/pools/pool/events", r#"{"event":"add","number":"abc"}"#, 400, "cannot be a number"),
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
        ("GET", "/v1/pools/pool/numbers/x", "", 400, "cannot be a number"),
        ("GET", "/v1/pools/pool/numbers?state=asleep", "", 400, "state"),
        ("GET", "/v1/pools/pool/numbers?limit=0", "", 400, "limit"),
        ("GET", "/v1/pools/pool/numbers?limit=1001", "", 400, "limit"),
        ("GET", "/v1/pools/pool/numbers?cursor=x", "", 400, "cursor"),
        ("GET", "/v1/pools/pool/numbers?prefix=x", "", 400, "cannot be a number"),
        ("GET", "/v1/pools/pool/history?before=x", "", 400, "before"),
        ("GET", "/v1/pools/pool/watch?from=99", "", 400, "99"),
        ("GET", "/v1/pools/pool/watch?from=-1", "", 400, "from"),
        ("GET", "/v1/pools/pool/export?format=xml", "", 400, "xml"),
        ("POST", "/v1/pools/pool/import", "5", 400, "Content-Type"),
        ("PATCH", "/v1/pools/pool", "", 405, ""),
    ] {
        let (code, told) = send(&appliance, method, path, &[], body.as_bytes())?;
        ensure!(code == status && told.contains(word), "{method} {path} {body}: {code} {told}");
    }
    for (id, word) in [("x", "Last-Event-ID"), ("7", "2 entries"), ("-1", "Last-Event-ID")] {
        let (code, told) = send(&appliance, "GET", "/v1/pools/pool/watch", &[("last-event-id", id)], &[])?;
        ensure!(code == 400 && told.contains(word), "{id}: {code} {told}");
    }
    let document = appliance.get("/v1/openapi.json")?;
    for (path, methods) in document["paths"].as_object().context("no paths")? {
        if !path.starts_with("/v1/pools") {
            continue;
        }
        let path = path.replace("{pool}", "pool").replace("{number}", "1");
        for method in methods.as_object().into_iter().flat_map(|methods| methods.keys()) {
            for word in ["Bearer wrong", ""] {
                let (code, told) =
                    send(&appliance, &method.to_uppercase(), &path, &[("authorization", word)], b"{}")?;
                ensure!(code == 401, "{method} {path}: {code} {told}");
            }
        }
    }
    assert_eq!((pool.states()?, pool.get("")?["entries"].clone()), before);
    Ok(())
}

#[test]
fn many_at_once_never_share_a_number() -> Result<()> {
    const CLIENTS: usize = 16;
    const NUMBERS: usize = 8;
    const CALLS: usize = 50;
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.start()?;
    let pool = Pool::new(&appliance, "race");
    // All make the pool, and all add the same numbers.
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

    // Each client enters what it has into a book of its own making, and crosses it out before it gives it back.
    let held = parking_lot::Mutex::new(BTreeSet::new());
    let tickets = parking_lot::Mutex::new(BTreeSet::new());
    everybody(&|client| {
        let holder = json!(format!("client {client}"));
        for _ in 0..CALLS {
            let (status, told) = pool.event(&json!({ "event": "call", "holder": holder }))?;
            if status == 409 {
                ensure!(told["reason"] == "all-busy", "{told}");
                continue;
            }
            let number = told["number"].as_str().context("no number")?;
            ensure!(held.lock().insert(number.to_owned()), "{number} was given to two");
            ensure!(tickets.lock().insert(told["ticket"].as_u64()), "a ticket was given twice");
            let standing = pool.number(number)?;
            ensure!(standing["holder"] == holder, "somebody else has it: {standing}");
            held.lock().remove(number);
            pool.done(&json!({ "event": "hangup", "number": number, "ticket": told["ticket"] }))?;
        }
        Ok(())
    })?;
    let shown = pool.get("")?;
    assert_eq!((&shown["ready"], &shown["numbers"]["busy+up"]), (&json!(NUMBERS), &json!(0)), "{shown}");
    assert_eq!(shown["given"], tickets.lock().len());
    Ok(())
}

#[test]
fn watchers_see_everything_once_and_in_order_and_go_on_where_they_were() -> Result<()> {
    const ROUNDS: usize = 300;
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.start()?;
    let pool = Pool::new(&appliance, "watched");
    pool.fill(&["100", "101"])?;
    let mut live = pool.watch("", None)?;
    let mut all = pool.watch("?from=0", None)?;
    let mut after = pool.watch("?from=99", Some(1))?;
    assert_eq!(all.happens()?, entry("add", "100", "idle+down"));
    assert_eq!(after.entry()?, (2, "add".to_owned(), "101".to_owned(), "idle+down".to_owned()));
    pool.done(&json!({ "event": "del", "number": "101" }))?;
    assert_eq!(live.entry()?, (4, "del".to_owned(), "101".to_owned(), "none".to_owned()));

    // While a lot happens, watchers begin, end and go on.
    let (first, seen) = std::thread::scope(|scope| -> Result<_> {
        let work = scope.spawn(|| -> Result<()> {
            for _ in 0..ROUNDS {
                let (number, ticket) = pool.call()?;
                pool.done(&json!({ "event": "hangup", "number": number, "ticket": ticket }))?;
            }
            Ok(())
        });
        let mut seen = Vec::new();
        let end = 5 + 2 * ROUNDS as u64;
        let mut last = 4;
        let mut size = 1;
        while last + 1 < end {
            let mut watcher = pool.watch("", Some(last))?;
            for _ in 0..size {
                if last + 1 < end {
                    let (id, event, _, _) = watcher.entry()?;
                    seen.push((id, event));
                    last = id;
                }
            }
            size += 7;
        }
        work.join().map_err(|_| anyhow::anyhow!("panicked"))??;
        Ok((5, seen))
    })?;
    let expected: Vec<(u64, String)> = (first..)
        .zip((0..2 * ROUNDS).map(|turn| if turn % 2 == 0 { "call" } else { "hangup" }.to_owned()))
        .collect();
    assert_eq!(seen, expected);
    for (id, event) in &expected {
        let told = live.entry()?;
        assert_eq!((told.0, &told.1), (*id, event), "one that began before and read all the while");
    }

    // Another pool of the name has another history.
    assert_eq!(ask(&appliance, "DELETE", &format!("{}?with-numbers=1", pool.path), &Value::Null)?.0, 204);
    let told = live.next()?.context("no word of the end")?;
    assert_eq!((told.kind.as_str(), told.id), ("removed", None));
    assert!(live.next()?.is_none(), "the stream ends with its pool");
    pool.configure(&Value::Null)?;
    let mut anew = pool.watch("", None)?;
    pool.fill(&["7"])?;
    assert_eq!(anew.entry()?.0, 0);

    // A stop ends the streams, and waits for nobody who reads nothing.
    let idle: Vec<Stream> = (0..20).map(|_| pool.watch("?from=0", None)).collect::<Result<_>>()?;
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    assert_eq!(anew.entry()?.1, "reg");
    assert!(anew.next()?.is_none());
    drop(idle);
    Ok(())
}

#[test]
fn leases_and_rests_end_by_themselves() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.start()?;
    let pool = Pool::new(&appliance, "timed");
    pool.configure(&json!({ "strategy": "random", "quarantine-ms": 50 }))?;
    pool.fill(&["100"])?;
    let mut watch = pool.watch("", None)?;
    let given = pool.done(&json!({ "event": "call", "lease-ms": 100 }))?;
    assert_eq!(watch.happens()?, entry("call", "100", "busy+up"));
    assert_eq!(watch.happens()?, entry("lapse", "100", "idle+up"));
    assert_eq!(watch.happens()?, entry("rested", "100", "idle+up"));
    let late = json!({ "event": "hangup", "number": "100", "ticket": given["ticket"] });
    assert_eq!(pool.refused(&late)?["reason"], "wrong-state");
    let (_, ticket) = pool.call()?;
    assert_eq!(watch.happens()?, entry("call", "100", "busy+up"));
    assert_eq!(pool.refused(&late)?["reason"], "other-ticket", "somebody else has it now");
    // A lease that begins later; one of a number that is down ends as well.
    pool.done(&json!({ "event": "unreg", "number": "100" }))?;
    assert_eq!(watch.happens()?, entry("unreg", "100", "busy+down"));
    pool.done(&json!({ "event": "renew", "number": "100", "ticket": ticket, "lease-ms": 1 }))?;
    assert_eq!(watch.happens()?, entry("renew", "100", "busy+down"));
    assert_eq!(watch.happens()?, entry("lapse", "100", "idle+down"));
    let shown = pool.get("")?;
    assert_eq!(shown["lapsed"], 2, "{shown}");
    assert_eq!(pool.number("100")?["lapsed"], 2);
    Ok(())
}

#[test]
fn what_is_held_survives_restarts() -> Result<()> {
    let stage = Stage::without_guests()?;
    let mut appliance = blueprint(&stage)?.start()?;
    let pool = Pool::new(&appliance, "kept");
    pool.configure(&json!({ "strategy": "nearest", "quarantine-ms": 3_600_000 }))?;
    pool.fill(&["100", "101", "102", "103"])?;
    pool.done(&json!({ "event": "add", "number": "104", "weight": 9 }))?;
    let held =
        json!({ "event": "call", "number": "100", "holder": "crm", "reason": "r", "lease-ms": 3_600_000 });
    pool.done(&held)?;
    pool.done(&json!({ "event": "call", "number": "101" }))?;
    pool.done(&json!({ "event": "unreg", "number": "101" }))?;
    pool.done(&json!({ "event": "call", "number": "102" }))?;
    pool.done(&json!({ "event": "hangup", "number": "102" }))?;
    for turn in 0..4 {
        let pool = Pool::new(&appliance, "kept");
        // All that a restart must not change, and the ends of times.
        let look = |pool: &Pool<'_>| -> Result<(Value, Vec<u64>)> {
            let mut numbers = pool.get("/numbers?limit=1000")?["numbers"].clone();
            let numbers = numbers.as_array_mut().context("no numbers")?;
            numbers.sort_by_key(|number| number["number"].to_string());
            let mut ends = Vec::new();
            for number in numbers.iter_mut().filter_map(Value::as_object_mut) {
                number.retain(|name, _| !name.ends_with("-left-ms"));
                for end in ["lease-ends", "rests-until"] {
                    ends.extend(number.remove(end).and_then(|end| end.as_u64()));
                }
            }
            let shown = pool.get("")?;
            let kept = json!([numbers, shown["settings"], shown["entries"], pool.get("/history")?]);
            Ok((kept, ends))
        };
        let (before, ends) = look(&pool)?;
        let blueprint = if turn % 2 == 0 { appliance.kill()? } else { appliance.stop()?.1 };
        appliance = blueprint.start()?;
        let pool = Pool::new(&appliance, "kept");
        let (after, later) = look(&pool)?;
        assert_eq!(after, before, "turn {turn}");
        assert_eq!((ends.len(), later.len()), (2, 2));
        // They are counted by another clock than the wall's, which another process reads a little differently.
        assert!(
            ends.iter().zip(&later).all(|(one, other)| one.abs_diff(*other) < 10_000),
            "{ends:?} {later:?}"
        );
        // What comes after it goes on in the same journal, with other tickets.
        let mut watch = pool.watch("", None)?;
        let (number, ticket) = pool.call()?;
        assert_eq!(number, "103");
        pool.done(&json!({ "event": "del", "number": "103" }))?;
        pool.fill(&["103"])?;
        assert_eq!(watch.entry()?.0, before[2].as_u64().context("no entries")?);
        assert!(ticket > 0);
    }
    // A lease that ends while nobody is there.
    let pool = Pool::new(&appliance, "kept");
    let given = pool.done(&json!({ "event": "call", "number": "103", "lease-ms": 1 }))?;
    let entries = pool.get("")?["entries"].as_u64().context("no entries")?;
    let appliance = appliance.kill()?.start()?;
    let pool = Pool::new(&appliance, "kept");
    let mut watch = pool.watch(&format!("?from={}", entries - 2), None)?;
    until("the lease to end", || Ok(watch.happens()? == entry("lapse", "103", "idle+up")))?;
    let late = json!({ "event": "renew", "number": "103", "ticket": given["ticket"], "lease-ms": 1000 });
    assert_eq!(pool.refused(&late)?["reason"], "wrong-state");
    Ok(())
}

#[test]
fn a_hundred_thousand_numbers_go_in_and_out() -> Result<()> {
    const NUMBERS: usize = 100_000;
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.start()?;
    let pool = Pool::new(&appliance, "bulk");
    let mut file = String::from("number,state,weight\n");
    for number in 0..NUMBERS {
        let state = ["idle+up", "idle+down", "busy+up", "busy+down", "up", ""][number % 6];
        file.push_str(&format!("+86{number:08},{state},{}\n", 1 + number % 16));
    }
    let import = |pool: &Pool<'_>, query: &str, kind: &str, body: &str| -> Result<Value> {
        let path = format!("{}/import{query}", pool.path);
        let (status, told) = send(pool.appliance, "POST", &path, &[("content-type", kind)], body.as_bytes())?;
        ensure!(status == 200, "{status} {told}");
        Ok(serde_json::from_str(&told)?)
    };
    let counted = |told: &Value| -> Vec<Option<u64>> {
        ["lines", "added", "already", "refused", "wrong"].map(|name| told[name].as_u64()).to_vec()
    };
    let n = NUMBERS as u64;
    let told = import(&pool, "", "text/csv", &file)?;
    assert_eq!(counted(&told), [n + 1, n, 0, 0, 0].map(Some));
    let told = import(&pool, "", "text/csv", &file)?;
    assert_eq!(counted(&told), [n + 1, 0, n, 0, 0].map(Some));
    let numbers = pool.get("")?["numbers"].clone();
    assert_eq!(numbers["total"], n);
    assert_eq!(numbers["idle+up"], (0..NUMBERS).filter(|number| [0, 2, 4].contains(&(number % 6))).count());

    // Out, and into another pool, in both forms: the same numbers, states and weights.
    let export = |pool: &Pool<'_>, query: &str, accept: &str| -> Result<Vec<String>> {
        let path = format!("{}/export{query}", pool.path);
        let (status, text) = send(pool.appliance, "GET", &path, &[("accept", accept)], &[])?;
        ensure!(status == 200, "{status}");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        Ok(lines)
    };
    let csv = export(&pool, "", "*/*")?;
    assert_eq!(csv.len(), NUMBERS + 1);
    assert!(csv.contains(&"+8600000003,idle+down,4".to_owned()));
    let lines = export(&pool, "", "application/x-ndjson")?;
    assert_eq!(lines, export(&pool, "?format=ndjson", "text/csv")?);
    assert!(lines.contains(&r#"{"number":"+8600000003","state":"idle+down","weight":4}"#.to_owned()));
    let other = Pool::new(&appliance, "other");
    let told = import(&other, "", "application/x-ndjson", &lines.join("\n"))?;
    assert_eq!(counted(&told), [n, n, 0, 0, 0].map(Some));
    assert_eq!(export(&other, "?format=csv", "*/*")?, csv);

    // Plain numbers, all up; wrong lines are told, the first hundred of them singly.
    let plain = Pool::new(&appliance, "plain");
    let mut file = "1\r\n2\n\n1\n3".to_owned();
    let told = import(&plain, "?reg=true", "text/csv", &file)?;
    assert_eq!(counted(&told), [5, 3, 1, 0, 0].map(Some));
    assert_eq!(plain.get("")?["ready"], 3);
    for line in 0..150 {
        file.push_str(&format!("\nwrong {line}"));
    }
    file.push_str(&format!("\n{}\n4,asleep\n5,up,17\n6\n", "7".repeat(17 << 20)));
    let told = import(&plain, "", "text/plain", &file)?;
    assert_eq!(counted(&told), [159, 1, 4, 0, 153].map(Some));
    let errors = told["errors"].as_array().context("no errors")?;
    assert_eq!((errors.len(), &errors[0]["line"]), (100, &json!(6)), "{}", errors[0]);
    assert!(errors[0]["detail"].as_str().is_some_and(|detail| detail.contains("wrong 0")));
    let empty = import(&plain, "", "text/csv", "")?;
    assert_eq!(counted(&empty), [0; 5].map(Some));

    // A body that breaks off leaves what came before.
    let appliance = appliance.kill()?.start()?;
    let other = Pool::new(&appliance, "other");
    assert_eq!(export(&other, "?format=csv", "*/*")?, csv, "after a crash");
    Ok(())
}

/// What a command did: its exit status, and what it printed on both streams.
fn switchyard(
    (stage, appliance): (&Stage, &Appliance),
    input: &str,
    arguments: &[&str],
) -> Result<(i32, String, String)> {
    let token = appliance.blueprint().data().join("token");
    let mut command = Command::new(stage.binary())
        .arg("pool")
        .args(arguments)
        .env("SWITCHYARD_URL", format!("http://{}", appliance.blueprint().http()))
        .env("SWITCHYARD_TOKEN_FILE", token)
        .env_remove("SWITCHYARD_TOKEN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    std::io::Write::write_all(&mut command.stdin.take().context("no input")?, input.as_bytes())?;
    let output = command.wait_with_output()?;
    let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
    Ok((output.status.code().context("killed")?, text(output.stdout), text(output.stderr)))
}

#[test]
fn the_command_line() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.start()?;
    // What a command prints when it succeeds.
    let run = |arguments: &[&str]| -> Result<String> {
        let (code, out, error) = switchyard((&stage, &appliance), "", arguments)?;
        ensure!(code == 0, "{arguments:?}: {code} {out} {error}");
        Ok(out)
    };
    // The reason that it tells when the appliance refuses.
    let refused = |arguments: &[&str]| -> Result<String> {
        let (code, out, error) = switchyard((&stage, &appliance), "", arguments)?;
        ensure!(code == 1 && out.is_empty(), "{arguments:?}: {code} {out} {error}");
        let told = error.strip_prefix("switchyard: ").and_then(|told| told.split(':').next());
        Ok(told.with_context(|| error.clone())?.to_owned())
    };
    let shown = run(&["create", "a:b?%", "--strategy", "longest-idle", "--quarantine", "0s"])?;
    assert!(shown.contains("longest-idle") && shown.contains("a:b?%"), "{shown}");
    assert_eq!(refused(&["call", "a:b?%"])?, "empty");
    assert_eq!(run(&["add", "a:b?%", "100", "101", "--reg"])?, "100 idle+up\n101 idle+up\n");
    assert_eq!(run(&["unreg", "a:b?%", "101"])?, "101 idle+down\n");
    assert_eq!(run(&["reg", "a:b?%", "101"])?, "101 idle+up\n");
    let given = run(&["call", "a:b?%", "--holder", "cr\u{7}m", "--reason", "r", "--lease", "1h"])?;
    let ticket = given.trim().strip_prefix("100 ").context("not 100")?.to_owned();
    assert_eq!(run(&["call", "a:b?%", "--number", "101"])?.split(' ').next(), Some("101"));
    assert_eq!(refused(&["call", "a:b?%"])?, "all-busy");
    assert_eq!(refused(&["hangup", "a:b?%", "100", "--ticket", "0"])?, "other-ticket");
    assert_eq!(run(&["renew", "a:b?%", "100", "--ticket", &ticket, "--lease", "2h"])?, "100 busy+up\n");
    let one = run(&["show", "a:b?%", "100"])?;
    assert!(one.contains("cr␇m") && one.contains("1h 59m"), "{one}");
    assert_eq!(run(&["hangup", "a:b?%", "100", "--ticket", &ticket])?, "100 idle+up\n");
    assert_eq!(refused(&["hangup", "a:b?%", "100"])?, "wrong-state");
    assert_eq!(refused(&["show", "a:b?%", "999"])?, "not-in-pool");
    assert_eq!(refused(&["show", "other"])?, "no-pool");
    assert_eq!(refused(&["remove", "a:b?%"])?, "not-empty");

    // Tables for people, documents for programs.
    let pools = run(&["list"])?;
    assert!(pools.starts_with("POOL ") && pools.lines().count() == 2, "{pools}");
    let numbers = run(&["list", "a:b?%"])?;
    assert!(numbers.starts_with("NUMBER ") && numbers.lines().count() == 3, "{numbers}");
    assert_eq!(run(&["list", "a:b?%", "--state", "busy+up"])?.lines().count(), 2);
    assert_eq!(run(&["list", "a:b?%", "--prefix", "2"])?.lines().count(), 1);
    let pool: Value = serde_json::from_str(&run(&["show", "a:b?%", "--json"])?)?;
    assert_eq!(pool["numbers"]["total"], 2);
    let listed: Value = serde_json::from_str(&run(&["--json", "list", "a:b?%", "--limit", "1"])?)?;
    assert!(
        listed["numbers"].as_array().is_some_and(|numbers| numbers.len() == 1) && listed["next"].is_u64()
    );
    let (code, _, error) =
        switchyard((&stage, &appliance), "", &["call", "a:b?%", "--number", "5", "--json"])?;
    let problem: Value = serde_json::from_str(&error)?;
    assert_eq!((code, &problem["reason"]), (1, &json!("not-in-pool")));
    let history = run(&["history", "a:b?%", "--number", "100", "--limit", "2"])?;
    assert!(history.lines().count() == 3 && history.contains("hangup"), "{history}");

    // Several at a time, of which some are refused.
    let (code, out, error) = switchyard((&stage, &appliance), "", &["reg", "a:b?%", "100", "5", "101"])?;
    assert_eq!((code, out.as_str()), (1, "100 idle+up\n101 busy+up\n"));
    assert!(error.contains("5: not-in-pool") && error.contains("1 of 3"), "{error}");

    // Watching: what is kept, and what comes.
    let events = run(&["watch", "a:b?%", "--from", "0", "--count", "3", "--json"])?;
    let events: Vec<Value> = events.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let told: Vec<_> = events.iter().map(|event| (&event["event"], &event["number"])).collect();
    let (add, reg) = (json!("add"), json!("reg"));
    assert_eq!(told, [(&add, &json!("100")), (&reg, &json!("100")), (&add, &json!("101"))]);
    let lines = run(&["watch", "a:b?%", "--from", "1", "--count", "1"])?;
    assert!(lines.contains("reg") && lines.contains("100") && lines.contains("admin"), "{lines}");
    let next = pool["entries"].as_u64().context("no entries")?;
    let live = std::thread::scope(|scope| -> Result<String> {
        let watch = scope.spawn(|| run(&["watch", "a:b?%", "--from", &next.to_string(), "--count", "1"]));
        run(&["del", "a:b?%", "101"])?;
        watch.join().map_err(|_| anyhow::anyhow!("panicked"))?
    })?;
    assert!(live.contains("del") && live.contains("none"), "{live}");

    // Files.
    let (code, out, _) =
        switchyard((&stage, &appliance), "200\n201\nx\n", &["import", "a:b?%", "-", "--reg"])?;
    assert_eq!((code, out.as_str()), (1, "2 added, 0 there already\n"), "one line is wrong");
    let file = stage.folder().join("numbers.ndjson");
    let path = file.to_str().context("no path")?;
    run(&["export", "a:b?%", path])?;
    assert_eq!(run(&["import", "copy", path])?, "3 added, 0 there already\n");
    let sorted = |text: String| -> Vec<String> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(run(&["export", "copy"])?), sorted(run(&["export", "a:b?%"])?));
    assert_eq!(run(&["remove", "copy", "--with-numbers"])?, "");

    // Usage, a wrong token, and nobody there.
    for arguments in [
        &["call"][..],
        &["steal", "a"],
        &["call", "a", "--lease", "soon"],
        &["add", "a"],
        &["add", "a", "x"],
        &["create", "a b"],
        &["create", "a", "--strategy", "best"],
        &["list", "--token", "wrong"],
        &["list", "--url", "http://127.0.0.1:1"],
        &["import", "a", "/nowhere/at/all"],
    ] {
        let (code, out, error) = switchyard((&stage, &appliance), "", arguments)?;
        assert!(code == 2 && out.is_empty() && !error.is_empty(), "{arguments:?}: {code} {out} {error}");
    }
    let help = run(&["--help"])?;
    assert!(help.contains("Exit status") && help.contains("Examples"), "{help}");
    Ok(())
}

//! Every operation of the API: what succeeds, what is wrong with a request, who may not, and two who come at the same time.
//!
//! The operations are those of the document that the appliance serves; a request that succeeds is in `table.rs` for each. What
//! can be thought of for any operation is made from the document.

mod conforms;
mod row;
mod stand;
mod table;

use anyhow::{Context, Result, ensure};
use row::{AtOnce, Row};
use serde_json::{Value, json};
use stand::{Request, Stand};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;

/// The operations of the document, as `(method, path)`.
fn described(document: &Value) -> BTreeMap<(String, String), &Value> {
    let mut all = BTreeMap::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            all.insert((method.to_uppercase(), path.clone()), operation);
        }
    }
    all
}

fn operation<'a>(document: &'a Value, row: &Row) -> Result<&'a Value> {
    let found = described(document).get(&(row.method.to_owned(), row.path.to_owned())).copied();
    found.with_context(|| format!("{} {} is not described", row.method, row.path))
}

/// Whether an answer is as it is described.
fn conforms(document: &Value, operation: &Value, status: u16, told: &str) -> Result<()> {
    let responses = &operation["responses"];
    let response = responses.get(status.to_string()).unwrap_or(&responses["default"]);
    let response = match response["$ref"].as_str().and_then(|place| place.strip_prefix('#')) {
        Some(place) => document.pointer(place).context("a reference to nothing")?,
        None => response,
    };
    for (kind, content) in response["content"].as_object().into_iter().flatten() {
        if kind.ends_with("json") && !kind.contains("ndjson") {
            let value: Value =
                serde_json::from_str(told).with_context(|| format!("{status}: {told:.200}"))?;
            conforms::check(document, &content["schema"], &value, "")?;
        }
    }
    if response.get("content").is_none() {
        ensure!(told.is_empty(), "{status} is described without a content, and has {told:.200}");
    }
    Ok(())
}

#[test]
fn every_operation_is_in_the_table_and_succeeds_as_it_is_described() -> Result<()> {
    let stand = Stand::start()?;
    let rows = table::rows();
    let mut missing: BTreeSet<_> = described(&stand.document).into_keys().collect();
    for row in &rows {
        ensure!(
            missing.remove(&(row.method.to_owned(), row.path.to_owned())),
            "{} {} is not described",
            row.method,
            row.path
        );
    }
    ensure!(missing.is_empty(), "operations without a row in table.rs: {missing:#?}");
    for row in &rows {
        let operation = operation(&stand.document, row)?;
        stand.prepare(row)?;
        let request = stand.request(row)?;
        if row.is_endless {
            let status = begins(&stand, &request)?;
            ensure!(status == row.status, "{} {}: {status}", row.method, row.at);
            continue;
        }
        let (status, told) = request.send(&stand.appliance)?;
        ensure!(status == row.status, "{} {}: {status} {told}", row.method, row.at);
        conforms(&stand.document, operation, status, &told)
            .with_context(|| format!("{} {}: {told:.2000}", row.method, row.at))?;
    }
    Ok(())
}

/// The status of an answer that has no end.
fn begins(stand: &Stand, request: &Request) -> Result<u16> {
    let mut call = ureq::get(format!("http://{}{}", stand.appliance.blueprint().http(), request.at));
    call = call.header("authorization", format!("Bearer {}", stand.appliance.token()?));
    Ok(call.call()?.status().as_u16())
}

/// Requests that are wrong, for any operation: what is wrong with them, and the statuses that say so.
fn wrong(operation: &Value, row: &Row, good: &Request) -> Vec<(String, Request, Vec<u16>)> {
    let mut all = Vec::new();
    let and = if good.at.contains('?') { '&' } else { '?' };
    let asked = |query: &str| Request { at: format!("{}{and}{query}", good.at), ..good.clone() };
    all.push(("a parameter that nobody knows".to_owned(), asked("no-such-parameter=1"), vec![400]));
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    for parameter in parameters {
        let name = parameter["name"].as_str().unwrap_or_default();
        let schema = &parameter["schema"];
        let is_number = schema["type"].to_string().contains("integer");
        match parameter["in"].as_str() {
            Some("query") if is_number || schema.get("enum").is_some() => {
                // Beside the good one it would be given twice, which is wrong for another reason.
                let path = good.at.split('?').next().unwrap_or_default();
                let request = Request { at: format!("{path}?{name}=no-such-word"), ..good.clone() };
                all.push((format!("{name} of another kind"), request, vec![400]));
            }
            Some("path") => {
                let place = row.path.split('/').position(|part| part == format!("{{{name}}}"));
                let parts = good.at.split('?').next().unwrap_or_default().split('/').enumerate();
                let parts: Vec<_> =
                    parts.map(|(index, part)| if Some(index) == place { "%FF" } else { part }).collect();
                let request = Request { at: parts.join("/"), ..good.clone() };
                all.push((format!("{name} that is no text"), request, vec![400]));
            }
            Some("header") if parameter["required"] == true => {
                let mut request = good.clone();
                request.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
                all.push((format!("no {name}"), request, vec![400, 428]));
            }
            _ => {}
        }
    }
    let kinds = operation["requestBody"]["content"].as_object().into_iter().flatten();
    let is_json =
        kinds.map(|(kind, _)| kind.as_str()).any(|kind| kind.ends_with("json") && !kind.contains("nd"));
    if is_json && row.judges {
        let request = Request { body: b"{".to_vec(), ..good.clone() };
        all.push(("half a body".to_owned(), request, vec![400]));
    } else if is_json {
        for body in ["{", "[[", "\"a text\"", "7", "{\"no-such-key\":1}", "\u{0}"] {
            let request = Request { body: body.into(), ..good.clone() };
            all.push((format!("the body {body:?}"), request, vec![400, 422]));
        }
    }
    for (body, status) in &row.bad {
        let request = Request { body: body.to_vec(), ..good.clone() };
        all.push((format!("the body {:?}", String::from_utf8_lossy(body)), request, vec![*status]));
    }
    all
}

#[test]
fn what_is_wrong_with_a_request_is_told_as_a_problem() -> Result<()> {
    let stand = Stand::start()?;
    for row in table::rows() {
        let operation = operation(&stand.document, &row)?;
        stand.prepare(&row)?;
        for (what, request, statuses) in wrong(operation, &row, &stand.request(&row)?) {
            let (status, told) = request.send(&stand.appliance)?;
            let say = || format!("{} {} with {what}: {status} {told:.500}", request.method, request.at);
            ensure!(statuses.contains(&status), "{}; expected was {statuses:?}", say());
            let problem = stand.document.pointer("/components/schemas/Problem").context("no Problem")?;
            let told: Value = serde_json::from_str(&told).with_context(say)?;
            conforms::check(&stand.document, problem, &told, "").with_context(say)?;
            ensure!(told["status"] == status, "{}", say());
        }
        // What is wrong with the method, and with who asks.
        let (status, told) = stand.appliance.request("PATCH", &stand.request(&row)?.at, b"{}")?;
        let patched = described(&stand.document).contains_key(&("PATCH".to_owned(), row.path.to_owned()));
        ensure!(patched || status == 405, "PATCH {}: {status} {told}", row.at);
    }
    Ok(())
}

/// What a role may, written down a second time.
fn may(role: &str, right: &str) -> bool {
    match right {
        "own" => true,
        "read" => role != "account",
        "operate" => ["operator", "admin"].contains(&role),
        _ => role == "admin",
    }
}

#[test]
fn who_has_not_the_right_is_refused_whatever_is_asked() -> Result<()> {
    let stand = Stand::start()?;
    let mut tokens = BTreeMap::new();
    for role in ["account", "viewer", "operator", "admin"] {
        let mut wanted = json!({ "name": format!("of-{role}"), "role": role });
        if role == "account" {
            wanted["account"] = "acme".into();
        }
        let made = stand.appliance.ask("POST", "/v1/tokens", wanted.to_string().as_bytes())?;
        tokens.insert(role, made["token"].as_str().context("no token")?.to_owned());
    }
    let mut refused = 0;
    for row in table::rows() {
        let operation = operation(&stand.document, &row)?;
        stand.prepare(&row)?;
        // Without its body: who is turned away is so before all of a large one is read.
        let request = Request { body: Vec::new(), ..stand.request(&row)? };
        let Some(right) = operation["x-right"].as_str() else {
            ensure!(
                operation["security"] == json!([]),
                "{} {} has no right and is not open",
                row.method,
                row.path
            );
            continue;
        };
        for word in ["", "Bearer wrong", "Basic YTpi"] {
            let (status, told) = request.clone().with("authorization", word).send(&stand.appliance)?;
            ensure!(status == 401, "{} {} with {word:?}: {status} {told}", row.method, row.at);
        }
        for (role, token) in &tokens {
            if may(role, right) {
                continue;
            }
            let asked = request.clone().with("authorization", &format!("Bearer {token}"));
            let (status, told) = asked.send(&stand.appliance)?;
            ensure!(status == 403, "{} {} as {role}: {status} {told}", row.method, row.at);
            refused += 1;
        }
    }
    ensure!(refused > 100, "only {refused} requests were refused: is nothing guarded any more?");
    Ok(())
}

#[test]
fn of_two_who_come_at_the_same_time_both_are_served_or_one_is_told() -> Result<()> {
    let stand = Stand::start()?;
    for row in table::rows().iter().filter(|row| row.method != "GET") {
        stand.prepare(row)?;
        let request = stand.request(row)?;
        let start = Barrier::new(2);
        let answers = std::thread::scope(|scope| {
            let send = || {
                start.wait();
                request.send(&stand.appliance)
            };
            let both = [scope.spawn(send), scope.spawn(send)];
            both.map(|one| one.join().map_err(|_| anyhow::anyhow!("it panicked"))?)
        });
        let mut statuses = Vec::new();
        for answer in answers {
            statuses.push(answer?);
        }
        let done = statuses.iter().filter(|(status, _)| *status == row.status).count();
        let lost: Vec<u16> =
            statuses.iter().map(|(status, _)| *status).filter(|status| *status != row.status).collect();
        let fits = match row.at_once {
            AtOnce::Both => done == 2,
            AtOnce::One(status) => lost == [status],
            AtOnce::Either(status) => done == 2 || lost == [status],
        };
        ensure!(fits, "{} {}: {:?}, and there were {statuses:#?}", row.method, row.at, row.at_once);
    }
    Ok(())
}

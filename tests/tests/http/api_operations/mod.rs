//! Every operation of the API: a successful request, invalid requests, missing permissions, and two concurrent requests.
//!
//! The operations are those of the served API document; `table.rs` has a successful request for each. Invalid requests are derived
//! from the document.

mod api_fixture;
mod conforms;
mod numbers;
mod row;
mod table;

use anyhow::{Context, Result, ensure};
use api_fixture::{ApiFixture, Request};
use row::{ConcurrentOutcome, Row};
use serde_json::{Value, json};
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

/// Checks that an answer conforms to the document.
fn conforms(document: &Value, operation: &Value, status: u16, reply: &str) -> Result<()> {
    let responses = &operation["responses"];
    let response = responses.get(status.to_string()).unwrap_or(&responses["default"]);
    let response = match response["$ref"].as_str().and_then(|place| place.strip_prefix('#')) {
        Some(place) => document.pointer(place).context("a reference to nothing")?,
        None => response,
    };
    for (kind, content) in response["content"].as_object().into_iter().flatten() {
        if kind.ends_with("json") && !kind.contains("ndjson") {
            let value: Value =
                serde_json::from_str(reply).with_context(|| format!("{status}: {reply:.200}"))?;
            conforms::check(document, &content["schema"], &value, "")?;
        }
    }
    if response.get("content").is_none() {
        ensure!(reply.is_empty(), "{status} is documented without a body, but has {reply:.200}");
    }
    Ok(())
}

#[test]
fn every_operation_succeeds_as_documented() -> Result<()> {
    let api = ApiFixture::start()?;
    let rows = table::rows();
    let mut missing: BTreeSet<_> = described(&api.document).into_keys().collect();
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
        let operation = operation(&api.document, row)?;
        api.prepare(row)?;
        let request = api.request(row)?;
        if row.is_endless {
            let status = stream_status(&api, &request)?;
            ensure!(status == row.status, "{} {}: {status}", row.method, row.at);
            continue;
        }
        let (status, reply) = request.send(&api.appliance)?;
        ensure!(status == row.status, "{} {}: {status} {reply}", row.method, row.at);
        conforms(&api.document, operation, status, &reply)
            .with_context(|| format!("{} {}: {reply:.2000}", row.method, row.at))?;
    }
    Ok(())
}

/// The status of an answer whose body has no end.
fn stream_status(api: &ApiFixture, request: &Request) -> Result<u16> {
    let mut call = ureq::get(format!("http://{}{}", api.appliance.config().http(), request.at));
    call = call.header("authorization", format!("Bearer {}", api.appliance.token()?));
    Ok(call.call()?.status().as_u16())
}

/// Invalid variants of a request: the error, the request, and the allowed statuses.
fn invalid_variants(operation: &Value, row: &Row, good: &Request) -> Vec<(String, Request, Vec<u16>)> {
    let mut all = Vec::new();
    let and = if good.at.contains('?') { '&' } else { '?' };
    let asked = |query: &str| Request { at: format!("{}{and}{query}", good.at), ..good.clone() };
    all.push(("an unknown parameter".to_owned(), asked("no-such-parameter=1"), vec![400]));
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    for parameter in parameters {
        let name = parameter["name"].as_str().unwrap_or_default();
        let schema = &parameter["schema"];
        let is_number = schema["type"].to_string().contains("integer");
        match parameter["in"].as_str() {
            Some("query") if is_number || schema.get("enum").is_some() => {
                // In addition to the valid one, it would be given twice, which is another error.
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
                all.push((format!("{name} that is not UTF-8"), request, vec![400]));
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
    if is_json && row.validates {
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
fn invalid_requests_get_problem_documents() -> Result<()> {
    let api = ApiFixture::start()?;
    for row in table::rows() {
        let operation = operation(&api.document, &row)?;
        api.prepare(&row)?;
        for (what, request, statuses) in invalid_variants(operation, &row, &api.request(&row)?) {
            let (status, reply) = request.send(&api.appliance)?;
            let say = || format!("{} {} with {what}: {status} {reply:.500}", request.method, request.at);
            ensure!(statuses.contains(&status), "{}; expected was {statuses:?}", say());
            let problem = api.document.pointer("/components/schemas/Problem").context("no Problem")?;
            let reply: Value = serde_json::from_str(&reply).with_context(say)?;
            conforms::check(&api.document, problem, &reply, "").with_context(say)?;
            ensure!(reply["status"] == status, "{}", say());
        }
        // Wrong method, wrong credentials.
        let (status, reply) = api.appliance.request("PATCH", &api.request(&row)?.at, b"{}")?;
        let patched = described(&api.document).contains_key(&("PATCH".to_owned(), row.path.to_owned()));
        ensure!(patched || status == 405, "PATCH {}: {status} {reply}", row.at);
    }
    Ok(())
}

/// The permissions of a role, defined independently.
fn role_allows(role: &str, right: &str) -> bool {
    match right {
        "own" => true,
        "read" => role != "account",
        "operate" => ["operator", "admin"].contains(&role),
        _ => role == "admin",
    }
}

#[test]
fn missing_permissions_are_refused_for_every_operation() -> Result<()> {
    let api = ApiFixture::start()?;
    let mut tokens = BTreeMap::new();
    for role in ["account", "viewer", "operator", "admin"] {
        let mut wanted = json!({ "name": format!("of-{role}"), "role": role });
        if role == "account" {
            wanted["account"] = "acme".into();
        }
        let made = api.appliance.ask("POST", "/v1/tokens", wanted.to_string().as_bytes())?;
        tokens.insert(role, made["token"].as_str().context("no token")?.to_owned());
    }
    let mut refused = 0;
    for row in table::rows() {
        let operation = operation(&api.document, &row)?;
        api.prepare(&row)?;
        // Without its body: refused requests are refused before a large body is read.
        let request = Request { body: Vec::new(), ..api.request(&row)? };
        let Some(right) = operation["x-permission"].as_str() else {
            ensure!(
                operation["security"] == json!([]),
                "{} {} has no right and is not open",
                row.method,
                row.path
            );
            continue;
        };
        for word in ["", "Bearer wrong", "Basic YTpi"] {
            let (status, reply) = request.clone().with("authorization", word).send(&api.appliance)?;
            ensure!(status == 401, "{} {} with {word:?}: {status} {reply}", row.method, row.at);
        }
        for (role, token) in &tokens {
            if role_allows(role, right) {
                continue;
            }
            let asked = request.clone().with("authorization", &format!("Bearer {token}"));
            let (status, reply) = asked.send(&api.appliance)?;
            ensure!(status == 403, "{} {} as {role}: {status} {reply}", row.method, row.at);
            refused += 1;
        }
    }
    ensure!(refused > 100, "only {refused} requests were refused: is nothing guarded any more?");
    Ok(())
}

#[test]
fn concurrent_requests_both_succeed_or_conflict() -> Result<()> {
    let api = ApiFixture::start()?;
    for row in table::rows().iter().filter(|row| row.method != "GET") {
        api.prepare(row)?;
        let request = api.request(row)?;
        let start = Barrier::new(2);
        let answers = std::thread::scope(|scope| {
            let send = || {
                start.wait();
                request.send(&api.appliance)
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
        let fits = match row.concurrent {
            ConcurrentOutcome::Both => done == 2,
            ConcurrentOutcome::One(status) => lost == [status],
            ConcurrentOutcome::Either(status) => done == 2 || lost == [status],
        };
        ensure!(fits, "{} {}: {:?}, and there were {statuses:#?}", row.method, row.at, row.concurrent);
    }
    Ok(())
}

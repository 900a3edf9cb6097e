//! A number pool over HTTP.

use super::EventStream;
use crate::Fixture;
use crate::test_daemon::{TestDaemon, TestDaemonConfig};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A daemon without plugins.
pub fn config(fixture: &Fixture) -> Result<TestDaemonConfig> {
    TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))
}

/// Status and body of an answer; the body is a string if it is not JSON. `body` may be null.
pub fn ask(appliance: &TestDaemon, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, text) = appliance.request(method, path, body.as_bytes())?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

/// A pool of a daemon.
pub struct Pool<'a> {
    /// The daemon.
    pub appliance: &'a TestDaemon,
    /// Its API path.
    pub path: String,
}

impl<'a> Pool<'a> {
    /// The pool with this name, which need not exist yet.
    pub fn new(appliance: &'a TestDaemon, name: &str) -> Self {
        Self { appliance, path: format!("/v1/pools/{name}") }
    }

    /// Sends an event, or several: status and answer.
    pub fn event(&self, event: &Value) -> Result<(u16, Value)> {
        ask(self.appliance, "POST", &format!("{}/events", self.path), event)
    }

    /// Sends an event that must succeed.
    pub fn done(&self, event: &Value) -> Result<Value> {
        let (status, answer) = self.event(event)?;
        ensure!(status == 200, "{event}: {status} {answer}");
        Ok(answer)
    }

    /// Sends an event that must be refused.
    pub fn refused(&self, event: &Value) -> Result<Value> {
        let (status, answer) = self.event(event)?;
        ensure!(status == 409 && answer["status"] == 409, "{event}: {status} {answer}");
        ensure!(answer["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{answer}");
        Ok(answer)
    }

    /// Adds numbers and registers them.
    pub fn fill(&self, numbers: &[&str]) -> Result<()> {
        for number in numbers {
            self.done(&json!({ "event": "add", "number": number }))?;
            self.done(&json!({ "event": "reg", "number": number }))?;
        }
        Ok(())
    }

    /// Leases any number: the number and its ticket.
    pub fn call(&self) -> Result<(String, u64)> {
        let given = self.done(&json!({ "event": "call" }))?;
        let number = given["number"].as_str().context("no number")?.to_owned();
        Ok((number, given["ticket"].as_u64().context("no ticket")?))
    }

    /// GET of a path below the pool's.
    pub fn get(&self, rest: &str) -> Result<Value> {
        self.appliance.get(&format!("{}{rest}", self.path))
    }

    /// The state of a number.
    pub fn number(&self, number: &str) -> Result<Value> {
        self.get(&format!("/numbers/{number}"))
    }

    /// Creates the pool or changes its settings.
    pub fn configure(&self, settings: &Value) -> Result<Value> {
        let (status, pool) = ask(self.appliance, "PUT", &self.path, settings)?;
        ensure!(status == 200, "{status} {pool}");
        Ok(pool)
    }

    /// Numbers and states, over all pages.
    pub fn states(&self) -> Result<BTreeMap<String, String>> {
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

    /// Follows the events, after the entry `last` if given.
    pub fn watch(&self, query: &str, last: Option<u64>) -> Result<EventStream> {
        EventStream::open(self.appliance, &format!("{}/watch{query}", self.path), last)
    }
}

//! One number pool over HTTP.

use super::Stream;
use crate::Stage;
use crate::appliance::{Appliance, Blueprint};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An appliance without any plugin.
pub fn blueprint(stage: &Stage) -> Result<Blueprint> {
    Blueprint::new(stage.binary(), &stage.folder().join("appliance"))
}

/// An answer: its status, and its body, as JSON where it is some. The body of the request may be null.
pub fn ask(appliance: &Appliance, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, text) = appliance.request(method, path, body.as_bytes())?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

/// One pool of an appliance.
pub struct Pool<'a> {
    /// Where it is.
    pub appliance: &'a Appliance,
    /// Its path of the API.
    pub path: String,
}

impl<'a> Pool<'a> {
    /// The pool of this name, which need not be there yet.
    pub fn new(appliance: &'a Appliance, name: &str) -> Self {
        Self { appliance, path: format!("/v1/pools/{name}") }
    }

    /// An event, or several: status and answer.
    pub fn event(&self, event: &Value) -> Result<(u16, Value)> {
        ask(self.appliance, "POST", &format!("{}/events", self.path), event)
    }

    /// An event that is done.
    pub fn done(&self, event: &Value) -> Result<Value> {
        let (status, answer) = self.event(event)?;
        ensure!(status == 200, "{event}: {status} {answer}");
        Ok(answer)
    }

    /// Why an event is refused.
    pub fn refused(&self, event: &Value) -> Result<Value> {
        let (status, answer) = self.event(event)?;
        ensure!(status == 409 && answer["status"] == 409, "{event}: {status} {answer}");
        ensure!(answer["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{answer}");
        Ok(answer)
    }

    /// Adds numbers and brings them up.
    pub fn fill(&self, numbers: &[&str]) -> Result<()> {
        for number in numbers {
            self.done(&json!({ "event": "add", "number": number }))?;
            self.done(&json!({ "event": "reg", "number": number }))?;
        }
        Ok(())
    }

    /// Any number: which, and its ticket.
    pub fn call(&self) -> Result<(String, u64)> {
        let given = self.done(&json!({ "event": "call" }))?;
        let number = given["number"].as_str().context("no number")?.to_owned();
        Ok((number, given["ticket"].as_u64().context("no ticket")?))
    }

    /// What the API says at a path below the pool's.
    pub fn get(&self, rest: &str) -> Result<Value> {
        self.appliance.get(&format!("{}{rest}", self.path))
    }

    /// How a number stands.
    pub fn number(&self, number: &str) -> Result<Value> {
        self.get(&format!("/numbers/{number}"))
    }

    /// Makes it, or gives it other settings.
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

    /// Follows what happens, after the entry `last` where that is given.
    pub fn watch(&self, query: &str, last: Option<u64>) -> Result<Stream> {
        Stream::open(self.appliance, &format!("{}/watch{query}", self.path), last)
    }
}

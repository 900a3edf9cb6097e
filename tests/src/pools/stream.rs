//! What happens to the numbers of a pool, as it happens: server-sent events.

use crate::PATIENCE;
use crate::appliance::Appliance;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines};

/// A server-sent event.
#[derive(Debug)]
pub struct ServerSent {
    /// The number of the entry that it tells of.
    pub id: Option<u64>,
    /// Its kind.
    pub kind: String,
    /// What it says.
    pub data: Value,
}

/// A stream of server-sent events.
pub struct Stream {
    lines: Lines<BufReader<ureq::BodyReader<'static>>>,
}

impl Stream {
    /// Opens it; once this returns, nothing that happens is missed.
    pub(super) fn open(appliance: &Appliance, path: &str, last: Option<u64>) -> Result<Self> {
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
    pub fn next_event(&mut self) -> Result<Option<ServerSent>> {
        let mut told = ServerSent { id: None, kind: String::new(), data: Value::Null };
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
    pub fn entry(&mut self) -> Result<(u64, String, String, String)> {
        let told = self.next_event()?.context("the stream has ended")?;
        let id = told.id.context("an event without an id")?;
        ensure!(told.data["id"] == id, "{told:?}");
        let word = |name: &str| told.data[name].as_str().unwrap_or_default().to_owned();
        Ok((id, word("event"), word("number"), word("state")))
    }

    /// What happens next, without the entry's number.
    pub fn happens(&mut self) -> Result<(String, String, String)> {
        let (_, event, number, state) = self.entry()?;
        Ok((event, number, state))
    }
}

/// What [`Stream::happens`] is to tell.
pub fn entry(event: &str, number: &str, state: &str) -> (String, String, String) {
    (event.to_owned(), number.to_owned(), state.to_owned())
}

//! The events of a number pool as server-sent events.

use crate::TIMEOUT;
use crate::test_daemon::TestDaemon;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines};

/// A server-sent event.
#[derive(Debug)]
pub struct ServerSentEvent {
    /// The number of the journal entry.
    pub id: Option<u64>,
    /// Its type.
    pub kind: String,
    /// Its data.
    pub data: Value,
}

/// A stream of server-sent events.
pub struct EventStream {
    lines: Lines<BufReader<ureq::BodyReader<'static>>>,
}

impl EventStream {
    /// Opens the stream; once this returns, no event is missed.
    pub(super) fn open(appliance: &TestDaemon, path: &str, last: Option<u64>) -> Result<Self> {
        let config = ureq::Agent::config_builder().timeout_global(Some(4 * TIMEOUT));
        let agent = ureq::Agent::new_with_config(config.build());
        let mut request = agent
            .get(format!("http://{}{path}", appliance.config().http()))
            .header("authorization", format!("Bearer {}", appliance.token()?));
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let answer = request.call().with_context(|| format!("GET {path}"))?;
        let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        ensure!(kind.is_some_and(|kind| kind.starts_with("text/event-stream")), "{kind:?}");
        Ok(Self { lines: BufReader::new(answer.into_body().into_reader()).lines() })
    }

    /// The next event; `None` at the end of the stream.
    pub fn next_event(&mut self) -> Result<Option<ServerSentEvent>> {
        let mut reply = ServerSentEvent { id: None, kind: String::new(), data: Value::Null };
        for line in self.lines.by_ref() {
            let Ok(line) = line else { return Ok(None) };
            match line.split_once(": ") {
                Some(("id", id)) => reply.id = Some(id.parse()?),
                Some(("event", kind)) => kind.clone_into(&mut reply.kind),
                Some(("data", data)) => reply.data = serde_json::from_str(data)?,
                None if line.is_empty() && !reply.data.is_null() => return Ok(Some(reply)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The next entry: id, event, number, resulting state.
    pub fn next_entry(&mut self) -> Result<(u64, String, String, String)> {
        let reply = self.next_event()?.context("the stream has ended")?;
        let id = reply.id.context("an event without an id")?;
        ensure!(reply.data["id"] == id, "{reply:?}");
        let word = |name: &str| reply.data[name].as_str().unwrap_or_default().to_owned();
        Ok((id, word("event"), word("number"), word("state")))
    }

    /// The next entry without its id.
    pub fn next_change(&mut self) -> Result<(String, String, String)> {
        let (_, event, number, state) = self.next_entry()?;
        Ok((event, number, state))
    }
}

/// The expected value of [`EventStream::next_change`].
pub fn expected_change(event: &str, number: &str, state: &str) -> (String, String, String) {
    (event.to_owned(), number.to_owned(), state.to_owned())
}

//! Traces of a share of the messages, for a collector of OpenTelemetry's (OTLP over HTTP, in JSON).
//!
//! A message is a trace: a span from its acceptance to its end, and in it one for the commit that made it durable and one for each
//! attempt. They are made of what is written down anyway, once the message's end is durable; without `[telemetry]` nothing of
//! this exists. A collector that does not keep up or does not answer loses traces, never messages. No span has a number or a text.

use arc_swap::ArcSwap;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use engine::Batch;
use model::{DecidedBy, Directory, Final, FinalState, Kind, MessageId, PeerId, Step, StepKind, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What is traced, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Where the collector is, such as `http://127.0.0.1:4318`.
    pub(crate) otlp: String,
    /// One message of so many is traced.
    pub(crate) one_in: u64,
}

/// Messages that are traced and have not ended; more are not traced.
const OPEN: usize = 100_000;
/// Traces that wait to be sent; more are lost.
const WAITING: usize = 4_096;
/// Traces of one request.
const TOGETHER: usize = 512;
/// How long traces wait for company.
const COMPANY: Duration = Duration::from_secs(2);
/// How long the collector has for its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is said that the collector does not answer.
const QUIET: Duration = Duration::from_secs(60);

/// A commit, as its messages' traces show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Commit {
    pub(crate) begun: Timestamp,
    pub(crate) ended: Timestamp,
}

/// A message that has not ended.
#[derive(Debug)]
struct Open {
    accepted_at: Timestamp,
    origin: PeerId,
    by: Arc<DecidedBy>,
    commit: Commit,
}

/// A message that has.
#[derive(Debug)]
struct Told {
    id: MessageId,
    open: Open,
    ended: Final,
}

/// Watches batches, and hands what has ended to the thread that sends it.
#[derive(Debug)]
pub(crate) struct Telemetry {
    one_in: u64,
    open: Mutex<HashMap<MessageId, Open>>,
    told: Sender<Told>,
    lost: Arc<AtomicU64>,
}

impl Telemetry {
    /// Begins to trace. The thread ends with this.
    pub(crate) fn start(
        settings: &Settings,
        name: &str,
        directory: Arc<ArcSwap<Directory>>,
    ) -> anyhow::Result<Self> {
        let (told, receiver) = bounded(WAITING);
        let client = ureq::Agent::new_with_config(
            ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build(),
        );
        let lost = Arc::new(AtomicU64::new(0));
        let exporter = Exporter {
            client,
            url: format!("{}/v1/traces", settings.otlp.trim_end_matches('/')),
            name: name.to_owned(),
            seed: getrandom::u64().map_err(|error| anyhow::anyhow!("no randomness: {error}"))?,
            directory,
            lost: lost.clone(),
            complained: None,
        };
        std::thread::Builder::new().name("traces".to_owned()).spawn(move || exporter.run(&receiver))?;
        Ok(Self { one_in: settings.one_in.max(1), open: Mutex::default(), told, lost })
    }

    /// Looks at a batch that is durable.
    pub(crate) fn observe(&self, batch: &Batch, commit: Commit) {
        let is_traced = |id: MessageId| id.0.is_multiple_of(self.one_in);
        if !batch.accepted.iter().any(|message| is_traced(message.id))
            && !batch.finished.iter().any(|(id, _)| is_traced(*id))
        {
            return;
        }
        let mut open = self.open.lock();
        for message in
            batch.accepted.iter().filter(|message| message.kind == Kind::Text && is_traced(message.id))
        {
            if open.len() < OPEN {
                let (accepted_at, origin) = (message.accepted_at, message.origin);
                let by = message.routed.by.clone();
                open.insert(message.id, Open { accepted_at, origin, by, commit });
            }
        }
        for (id, ended) in batch.finished.iter().filter(|(id, _)| is_traced(*id)) {
            let Some(open) = open.remove(id) else { continue };
            match self.told.try_send(Told { id: *id, open, ended: ended.clone() }) {
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                    self.lost.fetch_add(1, Relaxed);
                }
                Ok(()) => {}
            }
        }
    }
}

struct Exporter {
    client: ureq::Agent,
    url: String,
    name: String,
    /// The first half of all trace ids; the second is the message's id, so that one can be found by the other.
    seed: u64,
    directory: Arc<ArcSwap<Directory>>,
    lost: Arc<AtomicU64>,
    complained: Option<Instant>,
}

impl Exporter {
    fn run(mut self, told: &Receiver<Told>) {
        loop {
            let Ok(first) = told.recv() else { return };
            let mut traces = vec![first];
            let until = Instant::now() + COMPANY;
            let mut over = false;
            while traces.len() < TOGETHER {
                match told.recv_deadline(until) {
                    Ok(more) => traces.push(more),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => {
                        over = true;
                        break;
                    }
                }
            }
            self.send(&traces);
            if over {
                return;
            }
        }
    }

    fn send(&mut self, traces: &[Told]) {
        let spans: Vec<Value> = traces.iter().flat_map(|told| self.spans(told)).collect();
        let document = json!({ "resourceSpans": [{
            "resource": { "attributes": [
                text("service.name", "switchyard"),
                text("service.instance.id", &self.name),
                text("service.version", env!("CARGO_PKG_VERSION")),
            ] },
            "scopeSpans": [{ "scope": { "name": "switchyard" }, "spans": spans }],
        }] });
        let sent =
            self.client.post(&self.url).header("content-type", "application/json").send(document.to_string());
        if let Err(error) = sent {
            let lost = self.lost.fetch_add(traces.len() as u64, Relaxed) + traces.len() as u64;
            if self.complained.is_none_or(|at| at.elapsed() >= QUIET) {
                tracing::warn!(url = self.url, %error, lost, "traces not sent; the collector does not take them");
                self.complained = Some(Instant::now());
            }
        }
    }

    fn spans(&self, told: &Told) -> Vec<Value> {
        let Told { id, open, ended } = told;
        let names = self.directory.load();
        let trace = format!("{:016x}{:016x}", self.seed, id.0);
        let good = matches!(ended.state, FinalState::Delivered | FinalState::Relayed);
        let mut attributes = vec![
            text("switchyard.message.id", &id.to_string()),
            text("switchyard.account", &names.name(open.origin)),
            text("switchyard.state", ended.state.name()),
            text("switchyard.router", &open.by.plugin),
            text("switchyard.router.version", &open.by.version),
        ];
        if let Some(peer) = ended.peer {
            attributes.push(text("switchyard.peer", &names.name(peer)));
        }
        let span = |number: u64,
                    name: &str,
                    begun: Timestamp,
                    over: Timestamp,
                    attributes: Vec<Value>,
                    good: bool| {
            let mut span = json!({
                "traceId": trace,
                "spanId": format!("{number:016x}"),
                "name": name,
                "kind": if number == ROOT { 5 } else { 1 },
                "startTimeUnixNano": nanos(begun),
                "endTimeUnixNano": nanos(over.max(begun)),
                "attributes": attributes,
                "status": if good { json!({}) } else { json!({ "code": 2 }) },
            });
            if number != ROOT {
                span["parentSpanId"] = json!(format!("{ROOT:016x}"));
            }
            span
        };
        let Commit { begun, ended: written } = open.commit;
        let mut spans = vec![
            span(ROOT, "message", open.accepted_at, ended.at, attributes, good),
            span(ROOT + 1, "commit", begun, written, Vec::new(), true),
        ];
        for attempt in attempts(&ended.steps, ended.at) {
            let mut attributes = vec![
                text("switchyard.peer", &names.name(attempt.peer)),
                number("switchyard.attempt", attempt.number.into()),
            ];
            attributes.extend(attempt.code.map(|code| number("switchyard.code", code.into())));
            let id = ROOT + 2 + u64::try_from(spans.len()).unwrap_or(0);
            spans.push(span(id, "attempt", attempt.begun, attempt.over, attributes, attempt.good));
        }
        spans
    }
}

/// The span that all others of a trace are in.
const ROOT: u64 = 1;

/// One attempt, out of a message's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Attempt {
    peer: PeerId,
    number: u16,
    begun: Timestamp,
    over: Timestamp,
    code: Option<u32>,
    good: bool,
}

/// The attempts of a message, each up to the step that ended it.
fn attempts(steps: &[Step], end: Timestamp) -> Vec<Attempt> {
    let mut found: Vec<Attempt> = Vec::new();
    let mut is_open = false;
    for step in steps {
        let mut close = |code, good| {
            if let Some(last) = found.last_mut().filter(|_| is_open) {
                (last.over, last.code, last.good) = (step.at, code, good);
            }
            is_open = false;
        };
        match &step.kind {
            StepKind::Submitted { peer, attempt } => {
                let begun = step.at;
                let (peer, number) = (*peer, *attempt);
                found.push(Attempt { peer, number, begun, over: end, code: None, good: true });
                is_open = true;
            }
            StepKind::Responded { .. } => close(None, true),
            StepKind::Refused { code } => close(Some(*code), false),
            StepKind::NotSent | StepKind::Unanswered => close(None, false),
            _ => {}
        }
    }
    found
}

fn nanos(at: Timestamp) -> String {
    // The protocol's JSON has 64-bit numbers as texts.
    format!("{}000000", at.0)
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PeerMessageId;

    #[test]
    fn an_attempt_ends_with_its_answer_and_the_last_one_with_the_message() {
        let step = |at, kind| Step { at: Timestamp(at), kind };
        let submitted = |attempt| StepKind::Submitted { peer: PeerId(3), attempt };
        let steps = [
            step(10, submitted(1)),
            step(12, StepKind::Refused { code: 0x58 }),
            step(12, StepKind::Deferred { until: Timestamp(50) }),
            step(50, submitted(2)),
            step(57, StepKind::Responded { id: PeerMessageId::new(b"x") }),
            step(60, submitted(3)),
        ];
        let found = attempts(&steps, Timestamp(99));
        let shown: Vec<_> =
            found.iter().map(|one| (one.number, one.begun.0, one.over.0, one.code, one.good)).collect();
        assert_eq!(shown, [(1, 10, 12, Some(0x58), false), (2, 50, 57, None, true), (3, 60, 99, None, true)]);
        assert_eq!(attempts(&[], Timestamp(1)), []);
    }
}

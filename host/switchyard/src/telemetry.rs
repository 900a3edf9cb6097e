//! OpenTelemetry traces of a sample of messages (OTLP over HTTP, JSON).
//!
//! A message is a trace: a span from acceptance to its final state, with child spans for the commit that made it
//! durable and for each attempt. Spans are built from the message's steps once its final state is durable; without
//! `[telemetry]` there is no overhead. If the collector is slow or down, traces are lost, never messages. Spans contain
//! no numbers or texts.

use arc_swap::ArcSwap;
use configuration::Keys;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use model::{
    Batch, Directory, FinalRecord, FinalState, MessageId, MessageKind, PeerId, PluginVersion, Step, StepKind,
    Timestamp,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The settings of `[telemetry]`.
#[derive(Debug, Clone, PartialEq, Eq, Keys)]
pub(crate) struct TelemetrySettings {
    /// The OTLP/HTTP endpoint of the collector, for example `http://127.0.0.1:4318`.
    #[key(example = "http://127.0.0.1:4318", check = endpoint)]
    pub(crate) otlp: String,
    /// One message in this many is traced.
    #[key(range = 1..=1_000_000_000, default = 100)]
    pub(crate) one_in: u64,
}

fn endpoint(url: &str) -> Result<(), String> {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or_default();
    if !url.is_empty() && (host.is_empty() || host.contains(char::is_whitespace)) {
        return Err("must be the address of a collector, such as \"http://127.0.0.1:4318\"".to_owned());
    }
    Ok(())
}

/// Maximum number of traced messages that have not finished; more are not traced.
const MAX_OPEN: usize = 100_000;
/// Maximum number of traces queued for the exporter; more are lost.
const MAX_QUEUED: usize = 4_096;
/// Maximum number of traces per request.
const MAX_BATCH: usize = 512;
/// Maximum time that a request waits for more traces.
const BATCH_LINGER: Duration = Duration::from_secs(2);
/// Maximum time for the collector's response.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval of warnings that the collector fails.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The start and end of a commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommitTimes {
    pub(crate) begun: Timestamp,
    pub(crate) ended: Timestamp,
}

/// A traced message that has not finished.
#[derive(Debug)]
struct OpenTrace {
    accepted_at: Timestamp,
    origin: PeerId,
    by: Arc<PluginVersion>,
    commit: CommitTimes,
}

/// A traced message that has finished.
#[derive(Debug)]
struct FinishedTrace {
    id: MessageId,
    open: OpenTrace,
    ended: FinalRecord,
}

/// Observes batches and passes finished messages to the exporter thread.
#[derive(Debug)]
pub(crate) struct Telemetry {
    one_in: u64,
    open: Mutex<HashMap<MessageId, OpenTrace>>,
    finished: Sender<FinishedTrace>,
    lost: Arc<AtomicU64>,
}

impl Telemetry {
    /// Starts the exporter thread, which ends when this is dropped.
    pub(crate) fn start(
        settings: &TelemetrySettings,
        name: &str,
        directory: Arc<ArcSwap<Directory>>,
    ) -> anyhow::Result<Self> {
        let (finished, receiver) = bounded(MAX_QUEUED);
        let client = ureq::Agent::new_with_config(
            ureq::Agent::config_builder().timeout_global(Some(EXPORT_TIMEOUT)).build(),
        );
        let lost = Arc::new(AtomicU64::new(0));
        let exporter = Exporter {
            client,
            url: format!("{}/v1/traces", settings.otlp.trim_end_matches('/')),
            name: name.to_owned(),
            seed: getrandom::u64()
                .map_err(|error| anyhow::anyhow!("system random numbers unavailable: {error}"))?,
            directory,
            lost: lost.clone(),
            last_warning: None,
        };
        std::thread::Builder::new().name("traces".to_owned()).spawn(move || exporter.run(&receiver))?;
        Ok(Self { one_in: settings.one_in.max(1), open: Mutex::default(), finished, lost })
    }

    /// Observes a durable batch.
    pub(crate) fn observe(&self, batch: &Batch, commit: CommitTimes) {
        let is_traced = |id: MessageId| id.0.is_multiple_of(self.one_in);
        if !batch.accepted.iter().any(|message| is_traced(message.id))
            && !batch.finished.iter().any(|(id, _)| is_traced(*id))
        {
            return;
        }
        let mut open = self.open.lock();
        for message in
            batch.accepted.iter().filter(|message| message.kind == MessageKind::Text && is_traced(message.id))
        {
            if open.len() < MAX_OPEN {
                let (accepted_at, origin) = (message.accepted_at, message.origin);
                let by = message.routed.by.clone();
                open.insert(message.id, OpenTrace { accepted_at, origin, by, commit });
            }
        }
        for (id, ended) in batch.finished.iter().filter(|(id, _)| is_traced(*id)) {
            let Some(open) = open.remove(id) else { continue };
            match self.finished.try_send(FinishedTrace { id: *id, open, ended: ended.clone() }) {
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
    /// The first half of all trace ids; the second half is the message id, so that one can be derived from the other.
    seed: u64,
    directory: Arc<ArcSwap<Directory>>,
    lost: Arc<AtomicU64>,
    last_warning: Option<Instant>,
}

impl Exporter {
    fn run(mut self, finished: &Receiver<FinishedTrace>) {
        loop {
            let Ok(first) = finished.recv() else { return };
            let mut traces = vec![first];
            let until = Instant::now() + BATCH_LINGER;
            let mut over = false;
            while traces.len() < MAX_BATCH {
                match finished.recv_deadline(until) {
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

    fn send(&mut self, traces: &[FinishedTrace]) {
        let spans: Vec<Value> = traces.iter().flat_map(|finished| self.spans(finished)).collect();
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
            if self.last_warning.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
                tracing::warn!(url = self.url, %error, lost, "trace export failed");
                self.last_warning = Some(Instant::now());
            }
        }
    }

    fn spans(&self, finished: &FinishedTrace) -> Vec<Value> {
        let FinishedTrace { id, open, ended } = finished;
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
        let CommitTimes { begun, ended: written } = open.commit;
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

/// The id of the root span.
const ROOT: u64 = 1;

/// An attempt, built from a message's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AttemptSpan {
    peer: PeerId,
    number: u16,
    begun: Timestamp,
    over: Timestamp,
    code: Option<u32>,
    good: bool,
}

/// The attempts of a message, each up to the step that ended it.
fn attempts(steps: &[Step], end: Timestamp) -> Vec<AttemptSpan> {
    let mut found: Vec<AttemptSpan> = Vec::new();
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
                found.push(AttemptSpan { peer, number, begun, over: end, code: None, good: true });
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
    // OTLP's JSON encodes 64-bit integers as strings.
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
    fn attempts_end_with_their_response_or_with_the_message() {
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

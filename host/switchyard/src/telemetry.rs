//! OpenTelemetry traces of a sample of messages (OTLP over HTTP, JSON).
//!
//! Each traced message is one trace: a span from acceptance to final state, with child spans for the commit that made
//! it durable, for each plugin call on its behalf, and for each attempt. When the final state is durable, the spans are
//! built from the message's steps and from the calls that the plugin host reported. Calls of lookups and resolvers have
//! no span, because they are about a number that many messages may share. Without `[telemetry]`, there is no overhead.
//! If the collector is slow or down, traces are lost, never messages. Spans contain no numbers or texts.

use arc_swap::ArcSwap;
use configuration::Keys;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use hooks::{CallObserver, PluginCall};
use model::{
    Batch, Directory, FinalRecord, FinalState, MessageId, MessageKind, PeerId, PluginVersion, Step, StepKind,
    Timestamp,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// The settings of `[telemetry]`.
#[derive(Debug, Clone, PartialEq, Eq, Keys)]
pub(crate) struct TelemetrySettings {
    /// The OTLP/HTTP endpoint of the collector, for example `http://127.0.0.1:4318`.
    #[key(example = "http://127.0.0.1:4318", check = endpoint)]
    pub(crate) otlp: String,
    /// One of this many messages is traced.
    #[key(name = "one-in", range = 1..=1_000_000_000, default = 100)]
    pub(crate) sample_interval: u64,
}

fn endpoint(url: &str) -> Result<(), String> {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or_default();
    if !url.is_empty() && (host.is_empty() || host.contains(char::is_whitespace)) {
        return Err("must be the address of a collector, such as \"http://127.0.0.1:4318\"".to_owned());
    }
    Ok(())
}

/// Maximum number of traced messages that have not finished; further messages are not traced.
const MAX_OPEN: usize = 100_000;
/// Maximum number of traces queued for the exporter; further ones are lost.
const MAX_QUEUED: usize = 4_096;
/// Maximum number of plugin calls whose message is not committed yet; further calls are not traced.
const MAX_CALLS: usize = 65_536;
/// Maximum number of plugin calls in a trace: a message may be retried for days.
const MAX_CALLS_OF_MESSAGE: usize = 200;
/// Maximum time that a plugin call waits for its message.
const CALL_LIFETIME: Duration = Duration::from_secs(60);
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
    calls: Vec<PluginCall>,
}

/// A plugin call whose message may not be accepted yet.
#[derive(Debug)]
struct UnassignedCall {
    message: Arc<OnceLock<MessageId>>,
    call: PluginCall,
    since: Instant,
}

/// Sends plugin calls to [`Telemetry`].
#[derive(Debug)]
struct CallSender {
    sample_interval: u64,
    calls: Sender<UnassignedCall>,
}

impl CallObserver for CallSender {
    fn observe(&self, message: Arc<OnceLock<MessageId>>, call: PluginCall) {
        if message.get().is_none_or(|id| is_traced(*id, self.sample_interval)) {
            // If the channel is full, the call is missing in its trace.
            let _ = self.calls.try_send(UnassignedCall { message, call, since: Instant::now() });
        }
    }
}

/// Whether a message is in the sample of one in `sample_interval`.
fn is_traced(id: MessageId, sample_interval: u64) -> bool {
    id.0.is_multiple_of(sample_interval)
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
    sample_interval: u64,
    open: Mutex<HashMap<MessageId, OpenTrace>>,
    call_sender: Arc<CallSender>,
    calls: Receiver<UnassignedCall>,
    /// Calls whose message was not committed when they were received.
    unassigned: Mutex<Vec<UnassignedCall>>,
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
        let sample_interval = settings.sample_interval.max(1);
        let (call_sender, calls) = bounded(MAX_CALLS);
        Ok(Self {
            sample_interval,
            open: Mutex::default(),
            call_sender: Arc::new(CallSender { sample_interval, calls: call_sender }),
            calls,
            unassigned: Mutex::default(),
            finished,
            lost,
        })
    }

    /// The observer of the plugin host's calls.
    pub(crate) fn call_observer(&self) -> Arc<dyn CallObserver> {
        self.call_sender.clone()
    }

    /// Observes a durable batch.
    pub(crate) fn observe(&self, batch: &Batch, commit: CommitTimes) {
        let is_traced = |id: MessageId| is_traced(id, self.sample_interval);
        let calls = self.received_calls();
        if calls.is_empty()
            && !batch.accepted.iter().any(|message| is_traced(message.id))
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
                let calls = Vec::new();
                open.insert(message.id, OpenTrace { accepted_at, origin, by, commit, calls });
            }
        }
        self.assign_calls(calls, &mut open);
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

    /// All calls that do not belong to a trace yet.
    fn received_calls(&self) -> Vec<UnassignedCall> {
        let mut calls = std::mem::take(&mut *self.unassigned.lock());
        calls.extend(self.calls.try_iter().take(MAX_CALLS.saturating_sub(calls.len())));
        calls
    }

    /// Adds calls to the traces of their messages. Calls of messages that may still be committed are kept.
    fn assign_calls(&self, calls: Vec<UnassignedCall>, open: &mut HashMap<MessageId, OpenTrace>) {
        let mut unassigned = self.unassigned.lock();
        for one in calls {
            let id = one.message.get().copied();
            if let Some(trace) = id.and_then(|id| open.get_mut(&id)) {
                if trace.calls.len() < MAX_CALLS_OF_MESSAGE {
                    trace.calls.push(one.call);
                }
                continue;
            }
            let may_follow = match id {
                // The engine has accepted the message; its batch will be committed soon.
                Some(id) => is_traced(id, self.sample_interval),
                // If nobody else can set the id, the message was refused or dropped.
                None => Arc::strong_count(&one.message) > 1,
            };
            if may_follow && one.since.elapsed() < CALL_LIFETIME {
                unassigned.push(one);
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
        let span = |number: u64, name: &str, begun: u64, over: u64, attributes: Vec<Value>, good: bool| {
            let mut span = json!({
                "traceId": trace,
                "spanId": format!("{number:016x}"),
                "name": name,
                "kind": if number == ROOT { 5 } else { 1 },
                // OTLP's JSON encodes 64-bit integers as strings.
                "startTimeUnixNano": begun.to_string(),
                "endTimeUnixNano": over.max(begun).to_string(),
                "attributes": attributes,
                "status": if good { json!({}) } else { json!({ "code": 2 }) },
            });
            if number != ROOT {
                span["parentSpanId"] = json!(format!("{ROOT:016x}"));
            }
            span
        };
        let CommitTimes { begun, ended: written } = open.commit;
        // Screens and routers are called before the message is accepted.
        let first_call = open.calls.iter().map(|call| unix_nanos(call.begun)).min();
        let start = first_call.unwrap_or(u64::MAX).min(nanos(open.accepted_at));
        let mut spans = vec![
            span(ROOT, "message", start, nanos(ended.at), attributes, good),
            span(ROOT + 1, "commit", nanos(begun), nanos(written), Vec::new(), true),
        ];
        for call in &open.calls {
            let mut attributes = vec![
                text("switchyard.hook", call.hook.name()),
                text("switchyard.plugin", &call.by.plugin),
                text("switchyard.plugin.version", &call.by.version),
            ];
            attributes.extend(call.fault.map(|fault| text("switchyard.fault", fault.name())));
            let begun = unix_nanos(call.begun);
            let over = begun.saturating_add(u64::try_from(call.took.as_nanos()).unwrap_or(u64::MAX));
            let id = ROOT + 2 + u64::try_from(spans.len()).unwrap_or(0);
            spans.push(span(id, "plugin call", begun, over, attributes, call.fault.is_none()));
        }
        for attempt in attempts(&ended.steps, ended.at) {
            let mut attributes = vec![
                text("switchyard.peer", &names.name(attempt.peer)),
                number("switchyard.attempt", attempt.number.into()),
            ];
            attributes.extend(attempt.code.map(|code| number("switchyard.code", code.into())));
            let id = ROOT + 2 + u64::try_from(spans.len()).unwrap_or(0);
            let (begun, over) = (nanos(attempt.begun), nanos(attempt.over));
            spans.push(span(id, "attempt", begun, over, attributes, attempt.good));
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

/// Nanoseconds since the Unix epoch.
fn nanos(at: Timestamp) -> u64 {
    at.0.saturating_mul(1_000_000)
}

/// Nanoseconds since the Unix epoch; 0 before it.
fn unix_nanos(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
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

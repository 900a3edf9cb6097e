//! Test messages and connection tests of peers.

use crate::core_handle::{self, CoreHandle};
use crate::drain::Drain;
use crate::problems::shutting_down_problem;
use crate::routing::ApplianceRouting;
use admin::{Problem, ProblemKind, Testing, unknown_account};
use api::{FieldProblem, PeerTestView};
use engine::{EngineAnswer, Event};
use futures_util::future::BoxFuture;
use links::Links;
use model::{
    Address, Message, PluginVersion, Refusal, RejectReason, RoutingDecision, Text, Timestamp, Verdict,
};
use parking_lot::Mutex;
use ports::Routing as _;
use ports::text::{self, TextCoding};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of segments of a test message.
const MAX_SEGMENTS: usize = 10;

/// Peers with a test in progress.
type PeerTests = Mutex<HashSet<String>>;

/// Test messages, and connection tests of peers.
pub(crate) struct TestingService {
    core: CoreHandle,
    links: Arc<Links>,
    networks: Vec<Arc<gsm::GsmNetwork>>,
    routing: Arc<ApplianceRouting>,
    drain: Arc<Drain>,
    peer_tests: PeerTests,
}

impl TestingService {
    pub(crate) fn new(
        core: CoreHandle,
        links: Arc<Links>,
        networks: Vec<Arc<gsm::GsmNetwork>>,
        routing: Arc<ApplianceRouting>,
        drain: Arc<Drain>,
    ) -> Self {
        Self { core, links, networks, routing, drain, peer_tests: PeerTests::default() }
    }
}

/// Marks a peer as being tested; dropping it ends the test.
struct PeerTestGuard<'a> {
    peer_tests: &'a PeerTests,
    name: String,
}

impl<'a> PeerTestGuard<'a> {
    fn begin(peer_tests: &'a PeerTests, name: &str) -> Option<Self> {
        peer_tests.lock().insert(name.to_owned()).then(|| Self { peer_tests, name: name.to_owned() })
    }
}

impl Drop for PeerTestGuard<'_> {
    fn drop(&mut self) {
        self.peer_tests.lock().remove(&self.name);
    }
}

fn field_problem(pointer: &str, what: impl Into<String>) -> Problem {
    let what = what.into();
    let mut problem =
        Problem::new(ProblemKind::Unprocessable, format!("{}: {what}", pointer.trim_start_matches('/')));
    problem.problems.push(FieldProblem { pointer: pointer.to_owned(), what, allowed: None });
    problem
}

/// Parses a source address.
fn parse_sender(from: &str) -> Result<Address, Problem> {
    let digits = from.strip_prefix('+').unwrap_or(from);
    if !digits.is_empty() && digits.len() <= 20 && digits.bytes().all(|c| c.is_ascii_digit()) {
        return Ok(Address::new(u8::from(from.starts_with('+')), 1, digits.as_bytes()));
    }
    if !from.is_empty() && from.len() <= 11 && from.bytes().all(|c| c.is_ascii_graphic() || c == b' ') {
        return Ok(Address::new(5, 0, from.as_bytes()));
    }
    Err(field_problem("/from", "must have at most 20 digits, or at most 11 ASCII characters"))
}

fn parse_destination(to: &str) -> Result<Address, Problem> {
    let digits = to.strip_prefix('+').unwrap_or(to);
    if !(3..=20).contains(&digits.len()) || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return Err(field_problem("/to", "must have 3 to 20 digits, optionally with a leading +"));
    }
    Ok(Address::new(u8::from(to.starts_with('+')), 1, digits.as_bytes()))
}

fn encode_text(text: &str) -> Result<Text, Problem> {
    if text.is_empty() {
        return Err(field_problem("/text", "is empty"));
    }
    let (octets, data_coding) =
        text::encode(text, TextCoding::Auto).map_err(|reason| field_problem("/text", reason))?;
    let segments = text::segment_count(&octets, data_coding, false);
    if segments > MAX_SEGMENTS {
        return Err(field_problem(
            "/text",
            format!("would need {segments} segments; at most {MAX_SEGMENTS} are allowed"),
        ));
    }
    Ok(Text { payload: octets.len() > 140, octets, data_coding, udhi: false })
}

/// The text of a hypothetical message, in the coding that a test message would have, of any length.
pub(crate) fn encode_hypothetical(text: &str) -> Text {
    let (octets, data_coding) = text::encode(text, TextCoding::Auto)
        .unwrap_or_else(|_| (bytes::Bytes::copy_from_slice(text.as_bytes()), 0));
    Text { payload: octets.len() > 140, octets, data_coding, udhi: false }
}

impl Testing for TestingService {
    fn send_test(&self, asked: api::TestMessageRequest, by: Arc<str>) -> Result<String, Problem> {
        let account =
            self.links.account_options(&asked.account).ok_or_else(|| unknown_account(&asked.account))?;
        let source = match (asked.from.as_deref(), &account.source.default) {
            (Some(from), _) if !from.is_empty() => parse_sender(from)?,
            (_, Some(default)) => default.clone(),
            (_, None) => {
                return Err(field_problem("/from", "is missing, and the account has no default source"));
            }
        };
        if !account.source.allows(&source.value) {
            return Err(field_problem("/from", "is not a source that this account may use"));
        }
        // Without a DLR: the account's own software did not send the message and does not expect one.
        let mut message = Message::new(
            account.peer,
            source,
            parse_destination(&asked.to)?,
            encode_text(&asked.text)?,
            Timestamp::now() + account.validity,
            RoutingDecision::new(
                Verdict::Reject(RejectReason::NoRoute),
                Arc::new(PluginVersion { plugin: String::new(), version: String::new() }),
            ),
        );
        self.routing.route(&mut message);
        let message = Box::new(message);
        let answer = core_handle::request(&self.core, &self.links.registry(), |reply| Event::Accept {
            message,
            reply,
        });
        match answer {
            Some(EngineAnswer::Accepted(id)) => {
                tracing::info!(%by, id = id.0, account = asked.account, "test message accepted");
                Ok(id.to_string())
            }
            Some(EngineAnswer::Refused(
                refusal @ (Refusal::QueueFull | Refusal::Throttled | Refusal::QuotaExceeded),
            )) => {
                let why =
                    if self.drain.by().is_some() { "the appliance is draining" } else { "try again later" };
                Err(Problem::new(ProblemKind::Conflict, format!("refused: {refusal}; {why}")))
            }
            Some(EngineAnswer::Refused(Refusal::ShuttingDown)) | None => Err(shutting_down_problem()),
            Some(EngineAnswer::Refused(refusal)) => Err(Problem::new(
                ProblemKind::Unprocessable,
                format!("refused: {refusal}; POST /v1/explain explains its routing"),
            )),
            Some(_) => Err(Problem::new(ProblemKind::Internal, "unexpected answer of the engine")),
        }
    }

    fn test_peer(&self, name: String, by: Arc<str>) -> BoxFuture<'_, Result<PeerTestView, Problem>> {
        Box::pin(async move {
            let Some(_guard) = PeerTestGuard::begin(&self.peer_tests, &name) else {
                return Err(Problem::new(
                    ProblemKind::Conflict,
                    format!("a test of {name:?} is already running"),
                ));
            };
            let Some(steps) = self.links.probe(&name).await else {
                let is_network = self.networks.iter().any(|network| network.state().name == name);
                let what = if is_network {
                    format!(
                        "{name:?} is a core network, which cannot be tested; GET /v1/gsm shows its connections"
                    )
                } else {
                    format!("{name:?} is not a peer or gateway")
                };
                return Err(Problem::new(ProblemKind::NotFound, what));
            };
            let ok = steps.iter().all(|step| step.ok);
            tracing::info!(%by, peer = name, ok, "peer tested");
            if ok {
                self.links.dial_now(&name);
            }
            Ok(PeerTestView { ok, steps })
        })
    }

    fn dial_peer(&self, name: &str, by: &str) -> Result<(), Problem> {
        if !self.links.dial_now(name) {
            let what = format!("{name:?} is not a peer or gateway that the appliance connects to");
            return Err(Problem::new(ProblemKind::NotFound, what));
        }
        tracing::info!(by, peer = name, "peer dialled by admin");
        Ok(())
    }
}

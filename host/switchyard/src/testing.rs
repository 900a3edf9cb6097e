//! Trying things out: test messages, and peers that are dialled once more than usual.

use crate::appliance::{Switchyard, gone};
use crate::core_loop::{self, wall};
use admin::{Kind, Misplaced, PeerTest, Problem, TestMessage, TestStep, Testing};
use doors::Routing as _;
use doors::text::{self, Coding};
use engine::{Answer, Event};
use futures_util::future::BoxFuture;
use model::{
    Address, DecidedBy, Message, MessageId, Priority, ReceiptRequest, Refusal, RejectReason, Routed, Text,
    Timestamp, Verdict,
};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// Short messages that a test message may need.
const PARTS: usize = 10;

/// Peers that are being tried.
pub(crate) type Trials = Mutex<HashSet<String>>;

/// Takes a name off the list of those that are being tried, however the trial ends.
struct Trial<'a> {
    trials: &'a Trials,
    name: String,
}

impl<'a> Trial<'a> {
    fn begin(trials: &'a Trials, name: &str) -> Option<Self> {
        trials.lock().insert(name.to_owned()).then(|| Self { trials, name: name.to_owned() })
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        self.trials.lock().remove(&self.name);
    }
}

fn wrong(pointer: &str, what: impl Into<String>) -> Problem {
    let what = what.into();
    let mut problem = Problem::new(Kind::Refused, format!("{}: {what}", pointer.trim_start_matches('/')));
    problem.problems.push(Misplaced { pointer: pointer.to_owned(), what, allowed: None });
    problem
}

/// A sender as a person writes it.
fn sender(from: &str) -> Result<Address, Problem> {
    let digits = from.strip_prefix('+').unwrap_or(from);
    if !digits.is_empty() && digits.len() <= 20 && digits.bytes().all(|c| c.is_ascii_digit()) {
        return Ok(Address::new(u8::from(from.starts_with('+')), 1, digits.as_bytes()));
    }
    if !from.is_empty() && from.len() <= 11 && from.bytes().all(|c| c.is_ascii_graphic() || c == b' ') {
        return Ok(Address::new(5, 0, from.as_bytes()));
    }
    Err(wrong("/from", "must be at most 20 digits, or at most 11 ASCII characters"))
}

fn addressee(to: &str) -> Result<Address, Problem> {
    let digits = to.strip_prefix('+').unwrap_or(to);
    if !(3..=20).contains(&digits.len()) || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return Err(wrong("/to", "must be 3 to 20 digits, with or without + in front"));
    }
    Ok(Address::new(u8::from(to.starts_with('+')), 1, digits.as_bytes()))
}

fn words(text: &str) -> Result<Text, Problem> {
    if text.is_empty() {
        return Err(wrong("/text", "is empty"));
    }
    let (octets, data_coding) = text::encode(text, Coding::Auto).map_err(|reason| wrong("/text", reason))?;
    let parts = text::parts(&octets, data_coding, false);
    if parts > PARTS {
        return Err(wrong("/text", format!("would need {parts} short messages; at most {PARTS} are taken")));
    }
    Ok(Text { payload: octets.len() > 140, octets, data_coding, udhi: false })
}

impl Testing for Switchyard {
    fn send_test(&self, asked: TestMessage, by: Arc<str>) -> Result<String, Problem> {
        let account = self.links.account_options(&asked.account).ok_or_else(|| {
            Problem::new(
                Kind::NotFound,
                format!("{:?} is no account; the configuration has them all", asked.account),
            )
        })?;
        let source = match (asked.from.as_deref(), &account.source.default) {
            (Some(from), _) if !from.is_empty() => sender(from)?,
            (_, Some(default)) => default.clone(),
            (_, None) => return Err(wrong("/from", "is missing, and the account has no default")),
        };
        if !account.source.allows(&source.value) {
            return Err(wrong("/from", "is not a sender that this account may use"));
        }
        let mut message = Message {
            id: MessageId::default(),
            kind: model::Kind::Text,
            origin: account.peer,
            source,
            destination: addressee(&asked.to)?,
            service_type: bytes::Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            // The account's program has not sent it, and would not know what to make of a receipt.
            receipts: ReceiptRequest::NONE,
            replace_if_present: false,
            submission: None,
            text: words(&asked.text)?,
            tlvs: bytes::Bytes::new(),
            accepted_at: Timestamp::default(),
            scheduled: None,
            expires_at: wall() + account.validity,
            routed: Routed {
                verdict: Verdict::Reject(RejectReason::NoRoute),
                by: Arc::new(DecidedBy { plugin: String::new(), version: String::new() }),
                note: None,
                sender: None,
                quote: None,
                seen: None,
                faulted: None,
            },
        };
        message.routed = self.routing.route(&message);
        let message = Box::new(message);
        let answer = core_loop::ask(&self.core, &self.links.hub(), |reply| Event::Accept { message, reply });
        match answer {
            Some(Answer::Accepted(id)) => {
                tracing::info!(%by, id = id.0, account = asked.account, "test message accepted");
                Ok(id.to_string())
            }
            Some(Answer::Refused(refusal @ (Refusal::QueueFull | Refusal::Throttled))) => {
                let why =
                    if self.draining.lock().is_some() { "the appliance drains" } else { "try again later" };
                Err(Problem::new(Kind::Conflict, format!("refused: {refusal}; {why}")))
            }
            Some(Answer::Refused(Refusal::ShuttingDown)) | None => Err(gone()),
            Some(Answer::Refused(refusal)) => Err(Problem::new(
                Kind::Refused,
                format!("refused: {refusal}; POST /v1/explain shows each step of its routing"),
            )),
            Some(_) => Err(Problem::new(Kind::Internal, "the engine gave another answer than it should")),
        }
    }

    fn test_peer(&self, name: String, by: Arc<str>) -> BoxFuture<'_, Result<PeerTest, Problem>> {
        Box::pin(async move {
            let Some(_trial) = Trial::begin(&self.trials, &name) else {
                return Err(Problem::new(Kind::Conflict, format!("{name:?} is being tried already")));
            };
            let Some(steps) = self.links.probe(&name).await else {
                let is_network = self.networks.iter().any(|network| network.state().name == name);
                let what = if is_network {
                    format!(
                        "{name:?} is a core network, which is not dialled by tests; GET /v1/gsm shows its connections"
                    )
                } else {
                    format!("{name:?} is no peer and no gateway; the configuration has them all")
                };
                return Err(Problem::new(Kind::NotFound, what));
            };
            let ok = steps.iter().all(|step| step.ok);
            tracing::info!(%by, peer = name, ok, "peer tried");
            if ok {
                self.links.dial_now(&name);
            }
            let steps = steps.into_iter().map(|step| TestStep {
                what: step.what,
                ok: step.ok,
                ms: u64::try_from(step.took.as_millis()).unwrap_or(u64::MAX),
                detail: step.detail,
            });
            Ok(PeerTest { ok, steps: steps.collect() })
        })
    }

    fn dial_peer(&self, name: &str, by: &str) -> Result<(), Problem> {
        if !self.links.dial_now(name) {
            let what =
                format!("{name:?} is no peer and no gateway that is dialled; the configuration has them all");
            return Err(Problem::new(Kind::NotFound, what));
        }
        tracing::info!(by, peer = name, "peer dialled at once");
        Ok(())
    }
}

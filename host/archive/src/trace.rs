//! The column `trace`: how a message was submitted and routed, and its steps, as JSON.
//!
//! ```json
//! {"submission":{"expires_at":1700172800000,"receipts":3},
//!  "route":{"legs":[{"peer":"upstream"}]},
//!  "price":{"amount":35000,"account":"acme","state":"captured","plugin":"prepaid","version":"0123456789ab"},
//!  "steps":[{"at":1700000000000,"step":"accepted"},
//!           {"at":1700000000004,"step":"submitted","peer":"upstream","attempt":1},
//!           {"at":1700000000031,"step":"responded","id":"4f02"}]}
//! ```
//!
//! Fields with their default value are omitted. Times are milliseconds since the Unix epoch.

mod decode;

pub use decode::{DecodedTrace, TracePrice, decode_trace};

use crate::PeerDirectory;
use crate::archived_message::PriceState;
use crate::text_escape::escape;
use model::{
    Address, FinalRecord, Hook, Message, PeerId, Quote, SenderFallback, SenderRequest, Step, StepKind,
    Timestamp, Verdict,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
struct Trace {
    submission: Submission,
    route: Route,
    /// The pool sender that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sender: Option<Sender>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<ArchivedPrice>,
    steps: Vec<TimedStep>,
}

#[derive(Serialize, Deserialize)]
struct Submission {
    /// The id of the submission if it had several destinations, in decimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    service_type: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    protocol_id: u8,
    #[serde(default, skip_serializing_if = "is_zero")]
    esm_class: u8,
    /// Bits: 1 on success, 2 on failure, 4 intermediate.
    #[serde(default, skip_serializing_if = "is_zero")]
    receipts: u8,
    #[serde(default, skip_serializing_if = "is_false")]
    payload: bool,
    /// Hexadecimal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tlvs: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheduled: Option<Timestamp>,
    expires_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Route {
    Legs(Vec<Leg>),
    Held(Timestamp),
    Rejected(model::RejectReason),
}

#[derive(Serialize, Deserialize)]
struct Sender {
    pool: String,
    otherwise: SenderFallback,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    holder: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    user: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    reason: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_ms: Option<u64>,
    /// The address shown to the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Leg {
    peer: Arc<str>,
    #[serde(default, skip_serializing_if = "is_zero")]
    rank: u8,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    weight: u16,
    #[serde(default, skip_serializing_if = "is_zero_32")]
    cost: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    longest_wait_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Type of number and numbering plan of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_type: Option<(u8, u8)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    /// Type of number and numbering plan of the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination_type: Option<(u8, u8)>,
    #[serde(default, skip_serializing_if = "is_false")]
    resolve: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    imsi: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ArchivedPrice {
    /// Millionths of the operator's currency.
    amount: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<Arc<str>>,
    state: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "is_false")]
    keep_on_failure: bool,
    plugin: String,
    version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<Box<str>>,
}

#[derive(Serialize, Deserialize)]
struct TimedStep {
    at: Timestamp,
    #[serde(flatten)]
    kind: TraceStep,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
enum TraceStep {
    Accepted,
    Submitted {
        peer: Arc<str>,
        attempt: u16,
    },
    Responded {
        id: String,
    },
    Refused {
        code: u32,
    },
    NotSent,
    Unanswered,
    Deferred {
        until: Timestamp,
    },
    NextLeg {
        peer: Arc<str>,
    },
    SentAgain,
    Asked,
    Reported {
        state: u8,
        error: u16,
    },
    Replaced,
    Held {
        until: Timestamp,
    },
    Rerouted {
        peer: Arc<str>,
    },
    Recovered,
    Decided {
        hook: Hook,
        plugin: String,
        version: String,
        #[serde(default)]
        note: Option<Box<str>>,
    },
    Resolving,
    Resolved {
        peer: Arc<str>,
        cached: bool,
    },
    UnknownSubscriber {
        cached: bool,
    },
    AskedAnew {
        imsi: String,
    },
    OthersFirst {
        until: Timestamp,
    },
    AwaitingAlert {
        until: Timestamp,
    },
    SenderTaken {
        pool: String,
        number: String,
    },
    NoSender {
        pool: String,
    },
    Charged {
        amount: u64,
    },
    Refunded {
        amount: u64,
    },
    ByHand {
        deed: Cow<'static, str>,
        by: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        order: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<Arc<str>>,
    },
    /// A step of a newer version.
    #[serde(other)]
    Unknown,
}

fn one() -> u16 {
    1
}

// The signatures are required by serde.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u8) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero_32(value: &u32) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(value: &u16) -> bool {
    *value <= 1
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Encodes the trace of a message.
pub(crate) fn encode(message: &Message, ended: &FinalRecord, directory: &dyn PeerDirectory) -> String {
    let name = |id: PeerId| directory.name(id);
    let trace = Trace {
        submission: submission(message),
        route: route(&message.routed.verdict, &name),
        sender: message.routed.sender.as_deref().map(sender),
        price: message.routed.quote.as_deref().map(|quote| price(quote, ended)),
        steps: ended.steps.iter().map(|step| timed_step(step, &name)).collect(),
    };
    // Strings and numbers only: serialization cannot fail.
    serde_json::to_string(&trace).unwrap_or_default()
}

fn submission(message: &Message) -> Submission {
    let mut tlvs = String::with_capacity(message.tlvs.len() * 2);
    for octet in &message.tlvs {
        let _ = write!(tlvs, "{octet:02x}");
    }
    Submission {
        id: message.submission.map(|id| id.to_string()),
        service_type: escape(&message.service_type),
        protocol_id: message.protocol_id,
        esm_class: message.esm_class,
        receipts: message.dlr_request.bits(),
        payload: message.text.payload,
        tlvs,
        scheduled: message.scheduled,
        expires_at: message.expires_at,
    }
}

fn route(verdict: &Verdict, name: &dyn Fn(PeerId) -> Arc<str>) -> Route {
    let address = |address: &Option<Address>| address.as_ref().map(|address| escape(&address.value));
    match verdict {
        Verdict::Forward(legs) => Route::Legs(
            legs.iter()
                .map(|leg| Leg {
                    peer: name(leg.peer),
                    rank: leg.rank,
                    weight: leg.weight,
                    cost: leg.cost,
                    longest_wait_ms: leg
                        .longest_wait
                        .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
                    source: address(&leg.source),
                    source_type: leg.source.as_ref().map(|source| (source.ton, source.npi)),
                    destination: address(&leg.destination),
                    destination_type: leg.destination.as_ref().map(|address| (address.ton, address.npi)),
                    resolve: leg.resolve,
                    imsi: leg.imsi.as_ref().map(|imsi| escape(&imsi.0)),
                })
                .collect(),
        ),
        Verdict::Hold(until) => Route::Held(*until),
        Verdict::Reject(reason) => Route::Rejected(*reason),
    }
}

fn sender(wish: &SenderRequest) -> Sender {
    Sender {
        pool: wish.pool.to_string(),
        otherwise: wish.otherwise,
        holder: wish.holder.clone(),
        user: wish.user.clone(),
        reason: wish.reason.clone(),
        lease_ms: wish.lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)),
        given: wish.leased.as_ref().map(|address| escape(&address.value)),
    }
}

fn price(quote: &Quote, ended: &FinalRecord) -> ArchivedPrice {
    let charge = quote.charge.as_ref();
    ArchivedPrice {
        amount: charge.map_or(0, |charge| charge.amount),
        account: charge.map(|charge| charge.account.clone()),
        state: PriceState::of(quote, ended).name().into(),
        keep_on_failure: charge.is_some_and(|charge| charge.keep_on_failure),
        plugin: quote.by.plugin.clone(),
        version: quote.by.version.clone(),
        note: quote.note.clone(),
    }
}

fn timed_step(step: &Step, name: &dyn Fn(PeerId) -> Arc<str>) -> TimedStep {
    let kind = match &step.kind {
        StepKind::Accepted => TraceStep::Accepted,
        StepKind::Submitted { peer, attempt } => {
            TraceStep::Submitted { peer: name(*peer), attempt: *attempt }
        }
        StepKind::Responded { id } => TraceStep::Responded { id: escape(&id.0) },
        StepKind::Refused { code } => TraceStep::Refused { code: *code },
        StepKind::NotSent => TraceStep::NotSent,
        StepKind::Unanswered => TraceStep::Unanswered,
        StepKind::Deferred { until } => TraceStep::Deferred { until: *until },
        StepKind::NextLeg { peer } => TraceStep::NextLeg { peer: name(*peer) },
        StepKind::SentAgain => TraceStep::SentAgain,
        StepKind::StatusQueried => TraceStep::Asked,
        StepKind::DlrReceived { state, error } => TraceStep::Reported { state: *state, error: *error },
        StepKind::Replaced => TraceStep::Replaced,
        StepKind::Held { until } => TraceStep::Held { until: *until },
        StepKind::Rerouted { peer } => TraceStep::Rerouted { peer: name(*peer) },
        StepKind::Recovered => TraceStep::Recovered,
        StepKind::Decided { hook, by, note } => TraceStep::Decided {
            hook: *hook,
            plugin: by.plugin.clone(),
            version: by.version.clone(),
            note: note.clone(),
        },
        StepKind::Resolving => TraceStep::Resolving,
        StepKind::Resolved { peer, cached } => TraceStep::Resolved { peer: name(*peer), cached: *cached },
        StepKind::UnknownSubscriber { cached } => TraceStep::UnknownSubscriber { cached: *cached },
        StepKind::SubscriberRequeried { imsi } => TraceStep::AskedAnew { imsi: escape(&imsi.0) },
        StepKind::MovedBehindOthers { until } => TraceStep::OthersFirst { until: *until },
        StepKind::AwaitingAlert { until } => TraceStep::AwaitingAlert { until: *until },
        StepKind::SenderLeased { pool, number } => {
            TraceStep::SenderTaken { pool: pool.to_string(), number: number.to_string() }
        }
        StepKind::SenderUnavailable { pool } => TraceStep::NoSender { pool: pool.to_string() },
        StepKind::Charged { amount } => TraceStep::Charged { amount: *amount },
        StepKind::Refunded { amount } => TraceStep::Refunded { amount: *amount },
        StepKind::AdminAction { action, by, queue_action, peer } => TraceStep::ByHand {
            deed: action.name().into(),
            by: by.clone(),
            order: queue_action.map(|action| action.0),
            peer: peer.map(name),
        },
    };
    TimedStep { at: step.at, kind }
}

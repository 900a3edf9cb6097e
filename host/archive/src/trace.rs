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
//! What has its ordinary value is left out. Times are milliseconds since the Unix epoch.

mod decoded;

pub use decoded::{DecodedTrace, TracedPrice, decode_trace};

use crate::Parties;
use crate::archived::PriceState;
use crate::storable::storable;
use model::{
    Address, Final, Hook, Message, NoSender, PeerId, Quote, SenderWish, Step, StepKind, Timestamp, Verdict,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
struct Trace {
    submission: Submission,
    route: Route,
    /// The number of a pool that it was to have for its sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sender: Option<Sender>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    steps: Vec<Stamped>,
}

#[derive(Serialize, Deserialize)]
struct Submission {
    /// The id that stands for all its destinations, as decimal digits; left out where there was one destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    service_type: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    protocol_id: u8,
    #[serde(default, skip_serializing_if = "is_zero")]
    esm_class: u8,
    /// Bits: 1 on success, 2 on failure, 4 on the way.
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
    otherwise: NoSender,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    holder: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    user: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    reason: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_ms: Option<u64>,
    /// As it was shown.
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
    /// The same of the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination_type: Option<(u8, u8)>,
    #[serde(default, skip_serializing_if = "is_false")]
    resolve: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    imsi: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Price {
    /// Millionths of the house's currency.
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
struct Stamped {
    at: Timestamp,
    #[serde(flatten)]
    what: What,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
enum What {
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
    /// Of a newer version.
    #[serde(other)]
    Unknown,
}

fn one() -> u16 {
    1
}

// The signatures are serde's.
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

/// The trace of one message.
pub(crate) fn encode(message: &Message, ended: &Final, parties: &dyn Parties) -> String {
    let name = |id: PeerId| parties.name(id);
    let trace = Trace {
        submission: submission(message),
        route: route(&message.routed.verdict, &name),
        sender: message.routed.sender.as_deref().map(sender),
        price: message.routed.quote.as_deref().map(|quote| price(quote, ended)),
        steps: ended.steps.iter().map(|step| stamped(step, &name)).collect(),
    };
    // Strings and numbers only: nothing in it can fail to become JSON.
    serde_json::to_string(&trace).unwrap_or_default()
}

fn submission(message: &Message) -> Submission {
    let mut tlvs = String::with_capacity(message.tlvs.len() * 2);
    for octet in &message.tlvs {
        let _ = write!(tlvs, "{octet:02x}");
    }
    Submission {
        id: message.submission.map(|id| id.to_string()),
        service_type: storable(&message.service_type),
        protocol_id: message.protocol_id,
        esm_class: message.esm_class,
        receipts: message.receipts.bits(),
        payload: message.text.payload,
        tlvs,
        scheduled: message.scheduled,
        expires_at: message.expires_at,
    }
}

fn route(verdict: &Verdict, name: &dyn Fn(PeerId) -> Arc<str>) -> Route {
    let address = |address: &Option<Address>| address.as_ref().map(|address| storable(&address.value));
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
                    imsi: leg.imsi.as_ref().map(|imsi| storable(&imsi.0)),
                })
                .collect(),
        ),
        Verdict::Hold(until) => Route::Held(*until),
        Verdict::Reject(reason) => Route::Rejected(*reason),
    }
}

fn sender(wish: &SenderWish) -> Sender {
    Sender {
        pool: wish.pool.to_string(),
        otherwise: wish.otherwise,
        holder: wish.holder.clone(),
        user: wish.user.clone(),
        reason: wish.reason.clone(),
        lease_ms: wish.lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)),
        given: wish.given.as_ref().map(|address| storable(&address.value)),
    }
}

fn price(quote: &Quote, ended: &Final) -> Price {
    let charge = quote.charge.as_ref();
    Price {
        amount: charge.map_or(0, |charge| charge.amount),
        account: charge.map(|charge| charge.account.clone()),
        state: PriceState::of(quote, ended).name().into(),
        keep_on_failure: charge.is_some_and(|charge| charge.keep_on_failure),
        plugin: quote.by.plugin.clone(),
        version: quote.by.version.clone(),
        note: quote.note.clone(),
    }
}

fn stamped(step: &Step, name: &dyn Fn(PeerId) -> Arc<str>) -> Stamped {
    let what = match &step.kind {
        StepKind::Accepted => What::Accepted,
        StepKind::Submitted { peer, attempt } => What::Submitted { peer: name(*peer), attempt: *attempt },
        StepKind::Responded { id } => What::Responded { id: storable(&id.0) },
        StepKind::Refused { code } => What::Refused { code: *code },
        StepKind::NotSent => What::NotSent,
        StepKind::Unanswered => What::Unanswered,
        StepKind::Deferred { until } => What::Deferred { until: *until },
        StepKind::NextLeg { peer } => What::NextLeg { peer: name(*peer) },
        StepKind::SentAgain => What::SentAgain,
        StepKind::Asked => What::Asked,
        StepKind::Reported { state, error } => What::Reported { state: *state, error: *error },
        StepKind::Replaced => What::Replaced,
        StepKind::Held { until } => What::Held { until: *until },
        StepKind::Rerouted { peer } => What::Rerouted { peer: name(*peer) },
        StepKind::Recovered => What::Recovered,
        StepKind::Decided { hook, by, note } => What::Decided {
            hook: *hook,
            plugin: by.plugin.clone(),
            version: by.version.clone(),
            note: note.clone(),
        },
        StepKind::Resolving => What::Resolving,
        StepKind::Resolved { peer, cached } => What::Resolved { peer: name(*peer), cached: *cached },
        StepKind::UnknownSubscriber { cached } => What::UnknownSubscriber { cached: *cached },
        StepKind::AskedAnew { imsi } => What::AskedAnew { imsi: storable(&imsi.0) },
        StepKind::OthersFirst { until } => What::OthersFirst { until: *until },
        StepKind::AwaitingAlert { until } => What::AwaitingAlert { until: *until },
        StepKind::SenderTaken { pool, number } => {
            What::SenderTaken { pool: pool.to_string(), number: number.to_string() }
        }
        StepKind::NoSender { pool } => What::NoSender { pool: pool.to_string() },
        StepKind::Charged { amount } => What::Charged { amount: *amount },
        StepKind::Refunded { amount } => What::Refunded { amount: *amount },
        StepKind::ByHand { deed, by, order, peer } => What::ByHand {
            deed: deed.name().into(),
            by: by.clone(),
            order: order.map(|order| order.0),
            peer: peer.map(name),
        },
    };
    Stamped { at: step.at, what }
}

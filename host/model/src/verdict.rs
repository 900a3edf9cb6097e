use crate::trace_form::{self, DestinationForm, SourceForm};
use crate::{
    Address, DlrState, Imsi, Lookup, MessageChanges, MessageId, PeerId, PluginVersion, Quote, Screening,
    SenderRequest, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The reason why a routing decision rejects a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum RejectReason {
    /// No route to this destination (SMPP 0x0B).
    NoRoute = 1,
    /// The destination is not a valid number (SMPP 0x0B).
    InvalidDestination = 2,
    /// This sender may not be used (SMPP 0x0A).
    InvalidSource = 3,
    /// Against the operator's rules: spam, fraud, not allowed (SMPP 0x45).
    Prohibited = 4,
    /// The account may not use this service (SMPP 0x45).
    NotAuthorised = 5,
    /// Not now; the submitter may try again (SMPP 0x58).
    TryLater = 6,
    /// The routing plugin failed, and its binding rejects on faults (SMPP 0x08).
    Fault = 7,
    /// The addressee opted out of this sender (SMPP 0x45).
    OptedOut = 8,
    /// The account cannot pay, or the biller refuses (SMPP 0x45).
    NoCredit = 9,
    /// The price is above the highest that the account, or a tenant above it, may be charged (SMPP 0x45).
    PriceTooHigh = 10,
}

impl RejectReason {
    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        [
            Self::NoRoute,
            Self::InvalidDestination,
            Self::InvalidSource,
            Self::Prohibited,
            Self::NotAuthorised,
            Self::TryLater,
            Self::Fault,
            Self::OptedOut,
            Self::NoCredit,
            Self::PriceTooHigh,
        ]
        .into_iter()
        .find(|reason| *reason as u8 == octet)
    }

    /// The name used in JSON, metrics and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoRoute => "no-route",
            Self::InvalidDestination => "invalid-destination",
            Self::InvalidSource => "invalid-source",
            Self::Prohibited => "prohibited",
            Self::NotAuthorised => "not-authorised",
            Self::TryLater => "try-later",
            Self::Fault => "fault",
            Self::OptedOut => "opted-out",
            Self::NoCredit => "no-credit",
            Self::PriceTooHigh => "price-too-high",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoute => "no route",
            Self::InvalidDestination => "invalid destination",
            Self::InvalidSource => "invalid source",
            Self::Prohibited => "prohibited",
            Self::NotAuthorised => "not authorised",
            Self::TryLater => "try later",
            Self::Fault => "routing fault",
            Self::OptedOut => "the addressee opted out of this sender",
            Self::NoCredit => "no credit",
            Self::PriceTooHigh => "the price is above the highest that is allowed (max-price)",
        })
    }
}

/// One leg of a route: a peer and how to reach the destination over it.
///
/// `P` names the peer: its id while the message is live, its name in the archive. The archive's traces have the same JSON
/// form; fields with their default value are omitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Leg<P = PeerId> {
    /// The peer.
    pub peer: P,
    /// Lower ranks are tried first.
    #[serde(default, skip_serializing_if = "trace_form::is_default")]
    pub rank: u8,
    /// Share among legs of the same rank; 0 counts as 1.
    #[serde(default = "trace_form::one", skip_serializing_if = "trace_form::is_at_most_one")]
    pub weight: u16,
    /// The cost of this leg, in millionths of the plugin's currency; for the trace and for billing.
    #[serde(default, skip_serializing_if = "trace_form::is_default")]
    pub cost: u32,
    /// The longest time that the message waits for this leg before the next one is tried; `None`: until its validity ends.
    #[serde(
        rename = "longest_wait_ms",
        default,
        skip_serializing_if = "Option::is_none",
        with = "trace_form::milliseconds"
    )]
    pub longest_wait: Option<Duration>,
    /// The source on this leg, instead of the submitter's.
    #[serde(flatten, with = "SourceForm")]
    pub source: Option<Address>,
    /// The destination on this leg, instead of the submitter's.
    #[serde(flatten, with = "DestinationForm")]
    pub destination: Option<Address>,
    /// The leg requires the subscriber behind the destination to be resolved.
    #[serde(default, skip_serializing_if = "trace_form::is_default")]
    pub resolve: bool,
    /// The subscriber, once resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imsi: Option<Imsi>,
}

impl<P> Leg<P> {
    /// A plain leg to `peer`: rank 0, weight 1, no rewrite.
    #[must_use]
    pub fn to(peer: P) -> Self {
        Self {
            peer,
            rank: 0,
            weight: 1,
            cost: 0,
            longest_wait: None,
            source: None,
            destination: None,
            resolve: false,
            imsi: None,
        }
    }

    /// The leg with another reference to its peer.
    #[must_use]
    pub fn with_peer<Q>(&self, peer: Q) -> Leg<Q> {
        Leg {
            peer,
            rank: self.rank,
            weight: self.weight,
            cost: self.cost,
            longest_wait: self.longest_wait,
            source: self.source.clone(),
            destination: self.destination.clone(),
            resolve: self.resolve,
            imsi: self.imsi.clone(),
        }
    }
}

/// The verdict of a routing decision.
///
/// The archive's traces have the same JSON form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Verdict<P = PeerId> {
    /// Send it on one of these legs, in order.
    #[serde(rename = "legs")]
    Forward(Vec<Leg<P>>),
    /// Hold it, and route it again at the given time.
    #[serde(rename = "held")]
    Hold(Timestamp),
    /// Refuse it.
    #[serde(rename = "rejected")]
    Reject(RejectReason),
    /// Accept it, and keep it until an admin releases or purges it, or its validity ends.
    #[serde(rename = "quarantined")]
    Quarantine,
    /// Accept it, look up its number, and route it then.
    #[serde(rename = "awaiting_lookup")]
    AwaitLookup,
    /// Accept it, and do not deliver it. The submitter's DLR has this state.
    #[serde(rename = "dropped")]
    Drop(DroppedAs),
}

/// The state in the DLR of a dropped message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum DroppedAs {
    /// Delivered.
    Delivered = 1,
    /// Undeliverable.
    Undeliverable = 2,
    /// Rejected.
    Rejected = 3,
}

impl DroppedAs {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Delivered, Self::Undeliverable, Self::Rejected];

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|shown| *shown as u8 == octet)
    }

    /// The name used in JSON and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Undeliverable => "undeliverable",
            Self::Rejected => "rejected",
        }
    }

    /// The state in the DLR.
    #[must_use]
    pub fn dlr_state(self) -> DlrState {
        match self {
            Self::Delivered => DlrState::Delivered,
            Self::Undeliverable => DlrState::Undeliverable,
            Self::Rejected => DlrState::Rejected,
        }
    }
}

impl<P> Verdict<P> {
    /// The verdict with other references to its peers.
    #[must_use]
    pub fn map_peers<Q>(&self, mut to: impl FnMut(&P) -> Q) -> Verdict<Q> {
        match self {
            Self::Forward(legs) => {
                Verdict::Forward(legs.iter().map(|leg| leg.with_peer(to(&leg.peer))).collect())
            }
            Self::Hold(until) => Verdict::Hold(*until),
            Self::Reject(reason) => Verdict::Reject(*reason),
            Self::Quarantine => Verdict::Quarantine,
            Self::AwaitLookup => Verdict::AwaitLookup,
            Self::Drop(shown) => Verdict::Drop(*shown),
        }
    }

    /// The leg at an index; `None` if the message is not forwarded.
    #[must_use]
    pub fn leg(&self, index: u8) -> Option<&Leg<P>> {
        match self {
            Self::Forward(legs) => legs.get(usize::from(index)),
            Self::Hold(_) | Self::Reject(_) | Self::Quarantine | Self::AwaitLookup | Self::Drop(_) => None,
        }
    }

    /// Whether the message is for one of the operator's own subscribers: the resolver determines its peer.
    #[must_use]
    pub fn is_home(&self) -> bool {
        matches!(self, Self::Forward(legs) if !legs.is_empty() && legs.iter().all(|leg| leg.resolve))
    }
}

/// A routing decision: the verdict and its origin, for the trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutingDecision {
    /// The verdict.
    pub verdict: Verdict,
    /// The plugin version that decided; shared by its messages.
    pub by: Arc<PluginVersion>,
    /// The plugin's note, or the fault that `on-fault` handled.
    pub note: Option<Box<str>>,
    /// The request for a pool number as the sender, if the plugin makes one.
    pub sender: Option<Box<SenderRequest>>,
    /// The changes of the plugins, with a forward verdict.
    pub changes: Option<Box<MessageChanges>>,
    /// The decision of the screens, if any is bound. It stays the same when the message is routed again.
    pub screening: Option<Box<Screening>>,
    /// The result of the number lookup, if a lookup was called. It stays the same when the message is routed again.
    pub lookup: Option<Arc<Lookup>>,
    /// The price, if a biller is bound.
    pub quote: Option<Box<Quote>>,
    /// The host calls of the router and their results, encoded by `hooks`; `None` if there were none that could
    /// differ next time. A replay uses them.
    pub host_calls: Option<Box<[u8]>>,
    /// Receives the message's id, for the example of a plugin's fault and the trace of its calls. Not stored.
    pub fault_message_id: Option<Arc<OnceLock<MessageId>>>,
}

impl RoutingDecision {
    /// A verdict without note, sender request, changes, screening, lookup, price and host calls.
    #[must_use]
    pub fn new(verdict: Verdict, by: Arc<PluginVersion>) -> Self {
        Self {
            verdict,
            by,
            note: None,
            sender: None,
            changes: None,
            screening: None,
            lookup: None,
            quote: None,
            host_calls: None,
            fault_message_id: None,
        }
    }

    /// Adds a note.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<Box<str>>) -> Self {
        self.note = Some(note.into());
        self
    }
}

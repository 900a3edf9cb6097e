use crate::{Address, Imsi, MessageId, PeerId, Quote, SenderWish, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Why a message was refused by a routing decision.
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
    /// Against the rules of the house: spam, fraud, not allowed (SMPP 0x45).
    Prohibited = 4,
    /// The account may not use this service (SMPP 0x45).
    NotAuthorised = 5,
    /// Not now; the submitter may try again (SMPP 0x58).
    TryLater = 6,
    /// The routing plugin failed and its binding says reject (SMPP 0x08).
    Fault = 7,
    /// The addressee has told this sender to stop (SMPP 0x45).
    OptedOut = 8,
    /// The account cannot pay for it, or the biller refuses it (SMPP 0x45).
    NoCredit = 9,
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
        ]
        .into_iter()
        .find(|reason| *reason as u8 == octet)
    }

    /// The word by which programs know it.
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
            Self::OptedOut => "the addressee has told this sender to stop",
            Self::NoCredit => "no credit",
        })
    }
}

/// One way to the destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leg {
    /// The peer to hand the message to.
    pub peer: PeerId,
    /// Lower ranks are tried first.
    pub rank: u8,
    /// Share among legs of the same rank; 0 counts as 1.
    pub weight: u16,
    /// What this leg costs, in millionths of the plugin's currency; for the trace and for billing.
    pub cost: u32,
    /// How long the message may wait for this leg before the next is tried; `None`: as long as it is valid.
    pub longest_wait: Option<Duration>,
    /// The source to show on this leg instead of the submitter's.
    pub source: Option<Address>,
    /// The destination to use on this leg instead of the submitter's.
    pub destination: Option<Address>,
    /// The subscriber behind the destination must be known before the message may take this leg.
    pub resolve: bool,
    /// The subscriber, once known.
    pub imsi: Option<Imsi>,
}

impl Leg {
    /// A plain leg to `peer`: rank 0, weight 1, no rewrite.
    #[must_use]
    pub fn to(peer: PeerId) -> Self {
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
}

/// What is to become of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Hand it to one of these legs, in order.
    Forward(Vec<Leg>),
    /// Keep it, and ask again at the given time.
    Hold(Timestamp),
    /// Refuse it.
    Reject(RejectReason),
}

/// A question that plugins answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Hook {
    /// Where does a message go?
    Router = 1,
    /// Who stands behind a number?
    Resolver = 2,
    /// What follows a failed attempt?
    DeliveryPolicy = 3,
    /// What does a message cost?
    Biller = 4,
}

impl Hook {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Router, Self::Resolver, Self::DeliveryPolicy, Self::Biller];

    /// The word used in paths, metrics and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::Resolver => "resolver",
            Self::DeliveryPolicy => "delivery-policy",
            Self::Biller => "biller",
        }
    }

    /// The hook of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.name() == name)
    }

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| *hook as u8 == octet)
    }
}

/// Who decided: plugin name and version (the first twelve hex digits of the component's SHA-256).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct DecidedBy {
    /// The plugin's name, as bound.
    pub plugin: String,
    /// Its version.
    pub version: String,
}

/// A verdict and what the trace must keep of how it came about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Routed {
    /// The verdict.
    pub verdict: Verdict,
    /// The plugin version that decided; shared by all messages it decided.
    pub by: Arc<DecidedBy>,
    /// The plugin's note ("why here"), or the fault that `on-fault` answered.
    pub note: Option<Box<str>>,
    /// The number that it is to have for its sender, where the plugin asks for one.
    pub sender: Option<Box<SenderWish>>,
    /// What it is to cost, where a biller is bound.
    pub quote: Option<Box<Quote>>,
    /// What the host answered while the router decided, as `hooks` writes it down; `None` when the router asked nothing
    /// that could be answered otherwise another time. With it a replay sees what the decision saw.
    pub seen: Option<Box<[u8]>>,
    /// Where the message's id is to be put once it has one: a plugin failed at it, and who looks into that wants to find it.
    /// Not kept with the message.
    pub faulted: Option<Arc<OnceLock<MessageId>>>,
}

impl Routed {
    /// A verdict without note, wish for a sender, price or anything seen.
    #[must_use]
    pub fn new(verdict: Verdict, by: Arc<DecidedBy>) -> Self {
        Self { verdict, by, note: None, sender: None, quote: None, seen: None, faulted: None }
    }

    /// The same with a note.
    #[must_use]
    pub fn because(mut self, note: impl Into<Box<str>>) -> Self {
        self.note = Some(note.into());
        self
    }
}

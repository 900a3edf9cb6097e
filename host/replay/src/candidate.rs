use archive::ArchivedMessage;
use model::{Address, RejectReason, SenderRequest, Timestamp};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// A candidate decision maker: a plugin, a chain of plugins, or a built-in rule.
pub trait Candidate: Send + Sync + 'static {
    /// Decides a message as the candidate would have. Called from many threads, once for each message, in any order. A
    /// panic counts as the fault `panic`.
    fn decide(&self, message: &ArchivedMessage) -> CandidateDecision;
}

/// A candidate's decision for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateDecision {
    /// Its verdict.
    pub verdict: CandidateVerdict,
    /// The requested sender of the message.
    pub sender: Option<Box<SenderRequest>>,
    /// Its note, shown in examples.
    pub note: Option<Box<str>>,
    /// The reason why the verdict may differ from what the candidate would have decided at the time: a host call that
    /// was not recorded. `None`: the decision is exact. Messages are counted by reason, so use few different ones,
    /// without names or numbers of the message.
    pub inexact_because: Option<Cow<'static, str>>,
    /// Its price; `None` without a biller, or if the verdict needs no price.
    pub price: Option<CandidatePrice>,
}

impl CandidateDecision {
    /// An exact verdict without sender request, note and price.
    #[must_use]
    pub fn new(verdict: CandidateVerdict) -> Self {
        Self { verdict, sender: None, note: None, inexact_because: None, price: None }
    }

    /// Whether the decision would certainly have been the same at the time.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.inexact_because.is_none()
    }
}

/// A candidate's verdict.
#[derive(Debug, Clone, PartialEq)]
pub enum CandidateVerdict {
    /// Forward to one of these legs. Their order here is irrelevant; their ranks count.
    Forward(SmallVec<[CandidateLeg; 1]>),
    /// Deliver to one of our own subscribers.
    Home,
    /// Ask again at this time.
    Hold(Timestamp),
    /// Refuse.
    Reject(RejectReason),
    /// The candidate does not decide.
    Pass,
    /// The candidate failed, with this kind of fault.
    Fault(Cow<'static, str>),
}

/// A leg to the destination.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateLeg {
    /// The peer's name.
    pub peer: Arc<str>,
    /// Lower ranks are tried first. Only their order is compared.
    pub rank: u8,
    /// Share among legs of the same rank; 0 counts as 1. Only proportions are compared.
    pub weight: u16,
    /// The source address to present.
    pub source: Option<Address>,
    /// The destination address to use.
    pub destination: Option<Address>,
}

impl CandidateLeg {
    /// A plain leg: rank 0, weight 1, no rewrite.
    #[must_use]
    pub fn to(peer: impl Into<Arc<str>>) -> Self {
        Self { peer: peer.into(), rank: 0, weight: 1, source: None, destination: None }
    }
}

/// A candidate's price. Amounts are in millionths of the appliance's currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidatePrice {
    /// Free of charge.
    Free,
    /// A charge to a ledger account.
    Charge {
        /// The account.
        account: Arc<str>,
        /// The amount.
        amount: u64,
    },
    /// The biller refuses the message.
    Refuse,
}

use api::RequestDifference;
use archive::ArchivedMessage;
use model::{MessageChanges, SenderRequest, Verdict};
use std::borrow::Cow;
use std::sync::Arc;

/// A candidate decision maker: a plugin, a chain of plugins, or a built-in rule.
pub trait Candidate: Send + Sync + 'static {
    /// Decides about a message as the candidate would have done. Called from many threads, once for each message, in
    /// any order. A panic counts as the fault `panic`.
    fn decide(&self, message: &ArchivedMessage) -> CandidateDecision;

    /// Repeats the recorded calls of a message; empty if there are none. `None`: this candidate decides about messages,
    /// with [`Candidate::decide`].
    fn repeat_calls(&self, _message: &ArchivedMessage) -> Option<Vec<RepeatedCall>> {
        None
    }

    /// Copies the archived decision that the candidate's is compared to into the fields for routers, if it is not the
    /// routers' decision.
    fn select_decision(&self, _message: &mut ArchivedMessage) {}
}

/// A candidate's decision for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateDecision {
    /// Its verdict.
    pub verdict: CandidateVerdict,
    /// The requested sender of the message.
    pub sender: Option<Box<SenderRequest>>,
    /// Changes of the message.
    pub changes: Option<Box<MessageChanges>>,
    /// Its note, shown in examples.
    pub note: Option<Box<str>>,
    /// The reason why the verdict may differ from the candidate's verdict at the time of the message: a host call that
    /// was not recorded. `None`: the verdict is exact. Messages are counted by reason, so use few different ones,
    /// without names or numbers of the message.
    pub inexact_because: Option<Cow<'static, str>>,
    /// Its price; `None` without a biller, or if the verdict needs no price.
    pub price: Option<CandidatePrice>,
}

impl CandidateDecision {
    /// An exact verdict without sender request, changes, note and price.
    #[must_use]
    pub fn new(verdict: CandidateVerdict) -> Self {
        Self { verdict, sender: None, changes: None, note: None, inexact_because: None, price: None }
    }
}

/// A recorded call, and the same call of the candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatedCall {
    /// The recorded result, without names or numbers of the message: equal differences are one group.
    pub recorded: String,
    /// The candidate's result, or the kind of its fault.
    pub candidate: Result<String, Cow<'static, str>>,
    /// The candidate's note.
    pub note: Option<Box<str>>,
    /// As in [`CandidateDecision`].
    pub inexact_because: Option<Cow<'static, str>>,
    /// Differences of the request to a peer.
    pub request: Vec<RequestDifference>,
}

impl RepeatedCall {
    /// The calls of a message about which the candidate panicked.
    pub(crate) fn panicked() -> Self {
        Self {
            recorded: "recorded calls".to_owned(),
            candidate: Err(Cow::Borrowed("panic")),
            note: None,
            inexact_because: None,
            request: Vec::new(),
        }
    }
}

/// A candidate's verdict.
#[derive(Debug, Clone, PartialEq)]
pub enum CandidateVerdict {
    /// The candidate's verdict. The order of legs is irrelevant; of ranks, only the order counts; of weights, only the
    /// proportion.
    Decided(Verdict<Arc<str>>),
    /// The candidate does not decide.
    Pass,
    /// The candidate failed, with this kind of fault.
    Fault(Cow<'static, str>),
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

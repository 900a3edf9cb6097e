use archive::ArchivedMessage;
use model::{Address, RejectReason, SenderWish, Timestamp};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// Whoever would decide instead: a plugin, a chain of them, a rule of the house.
pub trait Candidate: Send + Sync + 'static {
    /// What it would have said of this message. Called from many threads at once, for each message once, in no particular
    /// order. A panic counts as the fault `panic`.
    fn judge(&self, message: &ArchivedMessage) -> Judged;
}

/// What a candidate says of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Its verdict.
    pub verdict: Judgement,
    /// The number of a pool that it wants for the message's sender.
    pub sender: Option<Box<SenderWish>>,
    /// Its note; shown in examples.
    pub note: Option<Box<str>>,
    /// Why the verdict may be another than it would have been then: something was asked that was not recorded. `None`: it
    /// is exact. There should be few different reasons, with no names or numbers of the message in them: messages are
    /// counted by them.
    pub inexact_because: Option<Cow<'static, str>>,
    /// Its price; `None` where it has no biller, or the verdict needs no price.
    pub price: Option<PriceVerdict>,
}

impl Judged {
    /// An exact verdict without wish for a sender, note and price.
    #[must_use]
    pub fn new(verdict: Judgement) -> Self {
        Self { verdict, sender: None, note: None, inexact_because: None, price: None }
    }

    /// Whether it would certainly have been the same then.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.inexact_because.is_none()
    }
}

/// A candidate's verdict.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// Hand it to one of these, in any order; their ranks count.
    Forward(SmallVec<[JudgedLeg; 1]>),
    /// It is for a subscriber of ours.
    Home,
    /// Ask again at this time.
    Hold(Timestamp),
    /// Refuse it.
    Reject(RejectReason),
    /// It does not decide.
    Pass,
    /// It failed: the kind of fault, in a word.
    Fault(Cow<'static, str>),
}

/// One way to the destination.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedLeg {
    /// The peer's name.
    pub peer: Arc<str>,
    /// Lower ranks are tried first. Only their order is compared.
    pub rank: u8,
    /// Share among legs of the same rank; 0 counts as 1. Only shares are compared.
    pub weight: u16,
    /// The source to be shown.
    pub source: Option<Address>,
    /// The destination to be used.
    pub destination: Option<Address>,
}

impl JudgedLeg {
    /// A plain leg: rank 0, weight 1, no rewrite.
    #[must_use]
    pub fn to(peer: impl Into<Arc<str>>) -> Self {
        Self { peer: peer.into(), rank: 0, weight: 1, source: None, destination: None }
    }
}

/// A candidate's price. Amounts are millionths of the house's currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PriceVerdict {
    /// Nothing.
    Free,
    /// So much, of this ledger account.
    Charge {
        /// The account.
        account: Arc<str>,
        /// How much.
        amount: u64,
    },
    /// The biller refuses the message.
    Refuse,
}

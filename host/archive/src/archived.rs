//! Finished messages as a replay needs them.

use bytes::Bytes;
use model::{
    Address, DecidedBy, Final, MessageId, Quote, ReceiptRequest, RejectReason, SenderWish, StepKind,
    Timestamp,
};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// A finished message: the question that its router was asked, and what was decided.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedMessage {
    /// Its id.
    pub id: MessageId,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When the verdict was made, as far as it is known: at its acceptance, or when it was last routed again.
    pub decided_at: Timestamp,
    /// The account or peer that it came from.
    pub origin: Arc<str>,
    /// Who sent it, as the submitter wrote it.
    pub source: Address,
    /// Who was to get it, as the submitter wrote it.
    pub destination: Address,
    /// SMPP service_type; mostly empty.
    pub service_type: SmallVec<[u8; 8]>,
    /// Data coding scheme.
    pub data_coding: u8,
    /// Urgency, 0 to 3.
    pub priority: u8,
    /// Octets of its text, a user data header included.
    pub length: u32,
    /// Whether the text begins with a user data header.
    pub udhi: bool,
    /// Receipts wanted.
    pub receipts: ReceiptRequest,
    /// Its text, where [`crate::ReplayRange::body`] asked for it.
    pub body: Option<Bytes>,
    /// What was decided.
    pub verdict: ArchivedVerdict,
    /// The number of a pool that it was to have for its sender, without the number that it got.
    pub sender: Option<Box<SenderWish>>,
    /// What it was to cost, and what became of that; `None` where no biller was asked.
    pub price: Option<Box<Price>>,
    /// What the host answered while the router decided, as `hooks` wrote it down; `None` where the router asked nothing
    /// that could be answered otherwise another time.
    pub seen: Option<Bytes>,
    /// Whether a router was asked at all: not for receipts of the house's own.
    pub routed: bool,
    /// What is not known of it, so that its replay cannot be exact.
    pub lacking: Option<Lacking>,
}

/// Why a message is not known well enough for an exact replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lacking {
    /// It was archived by a version that kept neither host answers nor prices, and of addresses that were rewritten only
    /// the value.
    Older,
}

impl Lacking {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Older => "archived by a version that kept no host answers",
        }
    }
}

/// What was decided about a message.
#[derive(Debug, Clone, PartialEq)]
pub enum ArchivedVerdict {
    /// It was to go to one of these. By rank; within a rank as the lots fell.
    Forward(SmallVec<[ArchivedLeg; 1]>),
    /// It was to be held until then (and ended before).
    Hold(Timestamp),
    /// It was refused when it was routed again. What is refused at once is never archived.
    Reject(RejectReason),
}

/// One way that a message could have gone.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedLeg {
    /// The peer's name; of a leg with `resolve`, the peer that serves the subscriber, once known.
    pub peer: Arc<str>,
    /// Lower ranks were to be tried first.
    pub rank: u8,
    /// Share among legs of the same rank; 0 counts as 1.
    pub weight: u16,
    /// Cost in millionths.
    pub cost: u32,
    /// How long the message was to wait for it at most.
    pub longest_wait: Option<Duration>,
    /// The source to be shown.
    pub source: Option<Address>,
    /// The destination to be used.
    pub destination: Option<Address>,
    /// The subscriber behind the number had to be found first.
    pub resolve: bool,
}

/// What a message was to cost. Amounts are millionths of the house's currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// The ledger account; `None`: it was free.
    pub account: Option<Arc<str>>,
    /// How much.
    pub amount: u64,
    /// It was to be paid though the message failed.
    pub keep_on_failure: bool,
    /// What became of it.
    pub state: PriceState,
    /// Who priced it.
    pub by: Arc<DecidedBy>,
}

/// What became of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PriceState {
    /// There was nothing to pay.
    Free = 0,
    /// Paid.
    Captured = 1,
    /// Given back.
    Refunded = 2,
    /// The trace says neither.
    Open = 3,
}

impl PriceState {
    const ALL: [Self; 4] = [Self::Free, Self::Captured, Self::Refunded, Self::Open];

    /// The word in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Captured => "captured",
            Self::Refunded => "refunded",
            Self::Open => "open",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    pub(crate) fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == octet)
    }

    /// By the trace of a message that has ended.
    pub(crate) fn of(quote: &Quote, ended: &Final) -> Self {
        if quote.charge.is_none() {
            return Self::Free;
        }
        let settled = ended.steps.iter().rev().find_map(|step| match step.kind {
            StepKind::Charged { .. } => Some(Self::Captured),
            StepKind::Refunded { .. } => Some(Self::Refunded),
            _ => None,
        });
        settled.unwrap_or(Self::Open)
    }
}

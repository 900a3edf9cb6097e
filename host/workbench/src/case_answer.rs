//! Answers of plugins in cases.

use crate::case_details::CaseChanges;
use crate::case_front_end::{CaseReading, CaseResponse};
use crate::case_lookup::CaseLookup;
use crate::case_peer::{CaseCalled, CaseOutcome};
use crate::case_receipt::CaseReceiptStep;
use crate::plugin_host::{CaseAddress, CaseSubscriber};
use serde::{Deserialize, Serialize};

/// A plugin's answer. A missing note is `None`.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseAnswer {
    /// It accepted the policy document.
    Configured,
    /// It refused the policy document, with this reason.
    Refused(String),
    /// A screen's decision.
    Screened {
        /// The verdict.
        verdict: CaseScreenVerdict,
        /// The new text of the message.
        text: Option<String>,
        /// The changes.
        changes: CaseChanges,
        /// The reason.
        note: Option<String>,
    },
    /// A router's decision.
    Verdict {
        /// The verdict.
        verdict: CaseVerdict,
        /// The requested sender of the message.
        sender: Option<CaseSender>,
        /// The changes.
        changes: CaseChanges,
        /// The reason.
        note: Option<String>,
    },
    /// A lookup's answer.
    LookedUp {
        /// The answer.
        answer: CaseLookup,
        /// The reason.
        note: Option<String>,
    },
    /// A resolver's answer.
    Resolved {
        /// The answer.
        answer: CaseResolution,
        /// The reason.
        note: Option<String>,
    },
    /// A delivery policy's decision.
    Next {
        /// The next step.
        step: CaseStep,
        /// Advice about the peer.
        advice: Option<CaseAdvice>,
        /// The reason.
        note: Option<String>,
    },
    /// A receipt policy's decision.
    Receipt {
        /// The step.
        step: CaseReceiptStep,
        /// Time without a final DLR after which the policy is called again, in milliseconds.
        wait: Option<u64>,
        /// The reason.
        note: Option<String>,
    },
    /// A biller's price.
    Price {
        /// The price.
        price: CasePrice,
        /// The reason.
        note: Option<String>,
    },
    /// A biller accepted the settlements.
    Settled,
    /// A biller failed to process the settlements, with this reason. The host reports them again.
    Unsettled(String),
    /// The outcome of a submit attempt.
    Submitted {
        /// The outcome.
        outcome: CaseOutcome,
        /// The reason.
        note: Option<String>,
    },
    /// The answer to a callback.
    Called {
        /// The answer.
        called: CaseCalled,
        /// The note for the log.
        note: Option<String>,
    },
    /// The result of reading a request.
    Read(CaseReading),
    /// The response of a front end.
    Replied(CaseResponse),
    /// The call trapped, exceeded its deadline or memory, or returned an invalid answer.
    Fault(String),
}

/// A screen's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseScreenVerdict {
    /// It may pass.
    Pass,
    /// Refuse, for this reason.
    Reject(String),
    /// Keep it in quarantine.
    Quarantine,
    /// Accept it, and do not deliver it; the state in its DLR.
    Drop(String),
}

/// A router's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseVerdict {
    /// The next router decides.
    Pass,
    /// Forward to one of these legs.
    Forward(Vec<CaseLeg>),
    /// Deliver to one of the operator's own subscribers.
    Home,
    /// Hold it, and route it again at this time, in milliseconds since the Unix epoch.
    Hold(#[serde(deserialize_with = "crate::cases::parse_timestamp")] u64),
    /// Refuse, for this reason.
    Reject(String),
}

/// A sender request: a number from a pool as the sender of a message. The pool's name alone, or with details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SenderEntry", rename_all = "kebab-case")]
pub struct CaseSender {
    /// The pool.
    pub pool: String,
    /// The fallback if no number is available: `reject`, `keep-sender` or `hold`.
    #[serde(skip_serializing_if = "is_default")]
    pub otherwise: CaseSenderFallback,
    /// The user for a sticky pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The holder of the number; `None`: the message's origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The duration of the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
}

/// The fallback for a message without a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseSenderFallback {
    /// Refuse it.
    #[default]
    Reject,
    /// Send it with its original sender.
    KeepSender,
    /// Hold it until a number is available.
    Hold,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a sender: the name of a pool, or an object with pool")]
enum SenderEntry {
    Pool(String),
    Whole(SenderTable),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SenderTable {
    pool: String,
    #[serde(default)]
    otherwise: CaseSenderFallback,
    user: Option<String>,
    holder: Option<String>,
    reason: Option<String>,
    lease_ms: Option<u64>,
}

impl From<String> for CaseSender {
    fn from(pool: String) -> Self {
        Self {
            pool,
            otherwise: CaseSenderFallback::Reject,
            user: None,
            holder: None,
            reason: None,
            lease_ms: None,
        }
    }
}

impl From<SenderEntry> for CaseSender {
    fn from(written: SenderEntry) -> Self {
        match written {
            SenderEntry::Pool(pool) => pool.into(),
            SenderEntry::Whole(whole) => {
                let SenderTable { pool, otherwise, user, holder, reason, lease_ms } = whole;
                Self { pool, otherwise, user, holder, reason, lease_ms }
            }
        }
    }
}

/// A leg to the destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "LegEntry", rename_all = "kebab-case")]
pub struct CaseLeg {
    /// The peer.
    pub peer: String,
    /// Lower ranks first.
    #[serde(skip_serializing_if = "is_default")]
    pub rank: u8,
    /// Share within the rank.
    #[serde(skip_serializing_if = "is_one")]
    pub weight: u16,
    /// In millionths.
    #[serde(skip_serializing_if = "is_default")]
    pub cost: u32,
    /// Maximum time that the message may wait for this leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_wait_ms: Option<u64>,
    /// The source address to present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<CaseAddress>,
    /// The destination address to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<CaseAddress>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_one(value: &u16) -> bool {
    *value == 1
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a leg: the name of a peer, or an object with peer")]
enum LegEntry {
    Peer(String),
    Whole(LegTable),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LegTable {
    peer: String,
    #[serde(default)]
    rank: u8,
    #[serde(default = "weight")]
    weight: u16,
    #[serde(default)]
    cost: u32,
    longest_wait_ms: Option<u64>,
    source: Option<CaseAddress>,
    destination: Option<CaseAddress>,
}

fn weight() -> u16 {
    1
}

impl From<LegEntry> for CaseLeg {
    fn from(written: LegEntry) -> Self {
        match written {
            LegEntry::Peer(peer) => Self {
                peer,
                rank: 0,
                weight: 1,
                cost: 0,
                longest_wait_ms: None,
                source: None,
                destination: None,
            },
            LegEntry::Whole(whole) => Self {
                peer: whole.peer,
                rank: whole.rank,
                weight: whole.weight,
                cost: whole.cost,
                longest_wait_ms: whole.longest_wait_ms,
                source: whole.source,
                destination: whole.destination,
            },
        }
    }
}

/// A resolver's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseResolution {
    /// The subscriber.
    Found(CaseSubscriber),
    /// There is no subscriber; optionally valid for this time.
    Unknown(Option<u64>),
    /// Ask again, optionally after this time.
    TryLater(Option<u64>),
}

/// The step after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseStep {
    /// Retry this leg after this time.
    RetryAfter(u64),
    /// Try the next leg.
    NextLeg,
    /// Wait for an alert about the subscriber, for this time at most.
    AwaitAlert(u64),
    /// Give up.
    Fail,
}

/// Advice about the peer after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CaseAdvice {
    /// Send nothing to the peer for this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_ms: Option<u64>,
    /// Maximum number of messages per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Maximum number of unanswered messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
}

/// A biller's price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CasePrice {
    /// Free of charge.
    Free,
    /// A charge.
    Charge(CaseCharge),
    /// The message is refused.
    Refuse,
}

/// A charge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseCharge {
    /// The ledger account.
    pub account: String,
    /// In millionths.
    pub amount: u64,
    /// Charge even if the delivery fails.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep_on_failure: bool,
    /// Whether the biller wants the settlement to be reported.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settle: bool,
}

//! The interface of a plugin host for cases: setup, questions and answers in plain types.
//!
//! Names follow `wit/`, so that a case reads like the contract. Times are in milliseconds.

use crate::case_details::{CaseChanges, CaseTlvs};
use crate::case_front_end::{CaseReading, CaseReply, CaseRequest, CaseResponse};
pub use crate::case_lookup::{CaseDnsFailure, CaseDnsName, CaseKnownNumber, CaseLookup, CaseNaptr};
use crate::case_peer::{CaseCallback, CaseCalled, CaseOutcome, CaseSubmission};
use crate::case_receipt::{CaseAcceptedSubmission, CaseEvent, CaseReceiptStep};
pub use crate::case_text::CaseText;
use capabilities::{CounterGrant, DnsGrant, QualityGrant, TableKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of the component in the local host.
pub(crate) const PLUGIN: &str = "plugin";

/// Runs a plugin.
pub trait PluginHost {
    /// Starts a fresh instance with the given setup, asks the questions in order, and returns the last answer.
    ///
    /// # Errors
    /// The host failed. A fault of the plugin is a [`CaseAnswer::Fault`].
    fn ask(&self, setup: &CaseSetup, questions: &[CaseQuestion]) -> Result<CaseAnswer, String>;
}

/// The host's state for a case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CaseSetup {
    /// The policy document.
    pub policy: String,
    /// The time, in milliseconds since the Unix epoch.
    pub now: u64,
    /// The grants of the binding.
    pub grants: CaseGrants,
    /// Maximum memory of an instance, in octets; default: that of a binding.
    pub memory: Option<usize>,
    /// Deadline of a call, in milliseconds; default: that of a binding.
    pub deadline_ms: Option<u64>,
    /// The appliance's tables, by name.
    pub tables: BTreeMap<String, CaseTable>,
    /// The peers of the configuration. A verdict cannot name others.
    pub peers: BTreeMap<String, CasePeerState>,
    /// The number pools.
    pub pools: BTreeMap<String, CasePoolState>,
    /// What was observed of peers before `now`.
    pub quality: Vec<CaseFigures>,
    /// Initial counts at `now`.
    pub counters: Vec<CounterPreset>,
    /// Initial values of the plugin's store.
    pub kv: BTreeMap<String, String>,
    /// Responses of other systems.
    pub http: Vec<HttpExchange>,
    /// The names of the domain name system. Others do not exist.
    pub dns: Vec<CaseDnsName>,
    /// The secrets of every peer.
    pub secrets: BTreeMap<String, String>,
    /// The home location register, by number.
    pub hlr: BTreeMap<String, CaseSubscriber>,
}

/// The grants of the binding, named as in the API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CaseGrants {
    /// URL prefixes that it may call over HTTP.
    pub http: Vec<String>,
    /// Octets that it may store.
    pub kv: u64,
    /// Appliance tables that it may open.
    pub tables: Vec<String>,
    /// Whether it may query the home location register.
    pub hlr: bool,
    /// What it may ask the domain name system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<DnsGrant>,
    /// Whether it gets random numbers, if it is built with `wasi = true`.
    pub random: bool,
    /// Its durable counters.
    pub counters: Vec<CounterGrant>,
    /// What it may see of peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<QualityGrant>,
}

/// A table of the appliance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseTable {
    /// How the table is searched.
    pub kind: TableKind,
    /// The rows.
    pub rows: BTreeMap<String, String>,
}

/// The state of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CasePeerState {
    /// Links that accept messages.
    #[serde(default = "one")]
    pub links: u32,
    /// Messages in the peer's queue.
    #[serde(default)]
    pub queued: u64,
}

fn one() -> u32 {
    1
}

/// The state of a number pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CasePoolState {
    /// Numbers that can be assigned.
    pub ready: u64,
    /// Numbers that are assigned.
    pub busy: u64,
    /// Numbers that cannot be used at present, including assigned ones.
    pub down: u64,
    /// All numbers.
    pub total: u64,
}

/// What was observed of a peer in one scope: the whole peer unless there are digits or an attribute. The window is that of the
/// binding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseFigures {
    /// The peer.
    pub peer: String,
    /// The leading digits of the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<String>,
    /// The name and the value of an attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<(String, String)>,
    /// Accepted attempts.
    #[serde(default)]
    pub accepted: u16,
    /// Refused attempts.
    #[serde(default)]
    pub refused: CaseRefusals,
    /// Unanswered attempts.
    #[serde(default)]
    pub unanswered: u16,
    /// Messages with a DLR that reports delivery.
    #[serde(default)]
    pub delivered: u16,
    /// Messages with a DLR that reports anything else.
    #[serde(default)]
    pub failed: u16,
    /// Conversions.
    #[serde(default)]
    pub conversions: u16,
    /// The time to each DLR.
    #[serde(default)]
    pub dlr_ms: u64,
}

/// Refused attempts by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CaseRefusals {
    /// Temporary errors.
    pub temporary: u16,
    /// Permanent errors.
    pub permanent: u16,
    /// The subscriber is absent.
    pub absent: u16,
    /// The handset's memory is full.
    pub memory_full: u16,
    /// Throttled.
    pub throttled: u16,
}

/// The initial count of a counter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CounterPreset {
    /// The counter.
    pub name: String,
    /// Its key.
    pub key: String,
    /// The count.
    pub amount: u32,
    /// The window.
    pub window_ms: u64,
}

/// A request and the response of another system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HttpExchange {
    /// The method.
    #[serde(default = "get")]
    pub method: String,
    /// The full URL.
    pub url: String,
    /// Headers that the request has, among others.
    #[serde(default)]
    pub request_headers: BTreeMap<String, String>,
    /// The body of the request; default: any.
    pub request_body: Option<String>,
    /// The status of the response.
    #[serde(default = "okay")]
    pub status: u16,
    /// The headers of the response.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body of the response.
    #[serde(default)]
    pub body: String,
    /// The reason for a missing response.
    pub failure: Option<HttpFailure>,
}

fn get() -> String {
    "GET".to_owned()
}

fn okay() -> u16 {
    200
}

/// The reason for a missing response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpFailure {
    /// The response did not arrive in time.
    TimedOut,
    /// The response exceeds the limit of the binding.
    TooLarge,
    /// The connection broke: the request may have arrived.
    Unreachable,
    /// There was no connection: the request was not sent.
    NotConnected,
}

/// A subscriber.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseSubscriber {
    /// The IMSI.
    pub imsi: String,
    /// The peer that serves the subscriber.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<String>,
    /// Validity of the answer; only in a resolver's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_ms: Option<u64>,
}

/// A question to a plugin.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseQuestion {
    /// Configure the plugin with the policy document. Every other question implies this.
    Configure,
    /// Screen a message.
    Screen(CaseMessage),
    /// Route a message.
    Route(CaseMessage),
    /// Look a number up.
    LookUp(CaseAddress),
    /// Resolve a number.
    Resolve(String),
    /// The step after a failed attempt.
    Next(CaseMessage, CaseAttempt),
    /// What follows from a DLR, or from its absence.
    Receipt(CaseMessage, CaseAcceptedSubmission, CaseEvent),
    /// The price of a message.
    Price(CaseMessage, Option<CaseFirstLeg>),
    /// Report settlements.
    Settle(Vec<CaseSettlement>),
    /// Submit a message to a peer.
    Submit(CaseSubmission),
    /// Read a request of a peer.
    Callback(CaseCallback),
    /// Read a request.
    Read(CaseRequest),
    /// Write the response to a request.
    Reply(CaseReply),
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseMessage {
    /// The account or peer that it came from.
    #[serde(default = "origin")]
    pub origin: String,
    /// The sender: text, or a table with TON and NPI.
    #[serde(default)]
    pub source: CaseAddress,
    /// The recipient.
    pub destination: CaseAddress,
    /// SMPP service_type.
    pub service_type: Option<String>,
    /// SMPP data_coding.
    #[serde(default)]
    pub data_coding: u8,
    /// 0 (bulk) to 3 (very urgent).
    #[serde(default)]
    pub priority: u8,
    /// The text: in UTF-8, or a table with the octets in hexadecimal.
    #[serde(default)]
    pub text: CaseText,
    /// Whether the submitter requests a DLR.
    #[serde(default)]
    pub wants_receipt: bool,
    /// SMPP esm_class, without the UDH indicator and the mode.
    #[serde(default)]
    pub esm_class: u8,
    /// SMPP protocol_id.
    #[serde(default)]
    pub protocol_id: u8,
    /// Its TLVs.
    #[serde(default)]
    pub tlvs: CaseTlvs,
    /// Its attributes: of the account, or set by earlier plugins.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

fn origin() -> String {
    "shop".to_owned()
}

/// An address: its value alone, or with TON and NPI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "AddressEntry")]
pub struct CaseAddress {
    /// Type of number.
    pub ton: u8,
    /// Numbering plan.
    pub npi: u8,
    /// Digits, or the alphanumeric sender.
    pub value: String,
}

impl Default for CaseAddress {
    fn default() -> Self {
        AddressEntry::Value(String::new()).into()
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an address: a text, or an object of ton, npi and value")]
enum AddressEntry {
    Value(String),
    Whole { ton: u8, npi: u8, value: String },
}

impl From<AddressEntry> for CaseAddress {
    fn from(written: AddressEntry) -> Self {
        match written {
            AddressEntry::Whole { ton, npi, value } => Self { ton, npi, value },
            AddressEntry::Value(value) => value.into(),
        }
    }
}

impl From<String> for CaseAddress {
    fn from(value: String) -> Self {
        // As in SMPP: digits are an international E.164 number, anything else is alphanumeric.
        let number = value.bytes().all(|octet| octet.is_ascii_digit() || octet == b'+');
        let (ton, npi) = if number { (1, 1) } else { (5, 0) };
        Self { ton, npi, value }
    }
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseAttempt {
    /// Number of attempts so far, including this one.
    #[serde(default = "first")]
    pub number: u16,
    /// The leg's index.
    #[serde(default)]
    pub leg: u8,
    /// Number of legs.
    #[serde(default = "single")]
    pub legs: u8,
    /// The peer of the attempt.
    pub peer: String,
    /// The error class.
    pub class: CaseErrorClass,
    /// The protocol's error code.
    #[serde(default)]
    pub code: u32,
    /// Time since the message was accepted.
    #[serde(default)]
    pub age_ms: u64,
    /// Remaining validity.
    #[serde(default = "day")]
    pub left_ms: u64,
}

fn first() -> u16 {
    1
}

fn single() -> u8 {
    1
}

fn day() -> u64 {
    86_400_000
}

/// The error class of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseErrorClass {
    /// A later attempt may succeed.
    Temporary,
    /// This leg will not succeed.
    Permanent,
    /// The subscriber is not reachable now.
    Absent,
    /// The handset's memory is full.
    MemoryFull,
    /// The peer throttles.
    Throttled,
}

/// The first leg to be tried.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFirstLeg {
    /// The peer.
    pub peer: String,
    /// Its cost, in millionths.
    #[serde(default)]
    pub cost: u32,
}

/// The settlement of a charge.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseSettlement {
    /// Increases from one settlement to the next.
    pub serial: u64,
    /// The message's id.
    pub message: u64,
    /// The ledger account.
    pub account: String,
    /// In millionths.
    pub amount: u64,
    /// Captured; otherwise released.
    pub captured: bool,
    /// Milliseconds since the Unix epoch.
    pub at: u64,
}

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
        /// The text that takes the place of the message's.
        text: Option<String>,
        /// What it changes.
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
        /// What it changes.
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
        /// After this time without a final DLR it is asked again, in milliseconds.
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
    /// What a front end reads in a request.
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
    /// Accept it and deliver it to nobody; what its submitter is told.
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
    /// Deliver to one of our own subscribers.
    Home,
    /// Ask again at this time, in milliseconds since the Unix epoch.
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
    /// There is none; optionally valid for this time.
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

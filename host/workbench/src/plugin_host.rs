//! The interface of a plugin host for cases: setup, questions and answers in plain types.
//!
//! Names follow `wit/`, so that a case reads like the contract. Times are in milliseconds.

pub use crate::case_answer::{
    CaseAdvice, CaseAnswer, CaseCharge, CaseLeg, CasePrice, CaseResolution, CaseScreenVerdict, CaseSender,
    CaseSenderFallback, CaseStep, CaseVerdict,
};
use crate::case_details::CaseTlvs;
use crate::case_front_end::{CaseReply, CaseRequest};
pub use crate::case_lookup::{CaseDnsFailure, CaseDnsName, CaseKnownNumber, CaseLookup, CaseNaptr};
use crate::case_peer::{CaseCallback, CaseSubmission};
use crate::case_receipt::{CaseAcceptedSubmission, CaseEvent};
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
    /// Maximum memory of an instance, in octets; default: the default of a binding.
    pub memory: Option<usize>,
    /// Deadline of a call, in milliseconds; default: the default of a binding.
    pub deadline_ms: Option<u64>,
    /// The appliance's tables, by name.
    pub tables: BTreeMap<String, CaseTable>,
    /// The peers of the configuration. A verdict cannot name others.
    pub peers: BTreeMap<String, CasePeerState>,
    /// The number pools.
    pub pools: BTreeMap<String, CasePoolState>,
    /// Observations of peers before `now`.
    pub quality: Vec<CaseFigures>,
    /// Initial counts at `now`.
    pub counters: Vec<CounterPreset>,
    /// Initial values of the plugin's store.
    pub kv: BTreeMap<String, String>,
    /// Responses of other systems.
    pub http: Vec<HttpExchange>,
    /// The names of the domain name system. Other names do not exist.
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
    /// The DNS queries that it may send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<DnsGrant>,
    /// Whether it gets random numbers, if it is built with `wasi = true`.
    pub random: bool,
    /// Its durable counters.
    pub counters: Vec<CounterGrant>,
    /// The observations of peers that it may see.
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

/// Observations of a peer in one scope: the whole peer, unless there are digits or an attribute. The binding sets the
/// window.
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
    /// Messages with a DLR that reports another final state.
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
    /// Headers that the request must have; others are allowed.
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
    /// The connection was lost: the request may have arrived.
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
    /// Look up a number.
    LookUp(CaseAddress),
    /// Resolve a number.
    Resolve(String),
    /// The step after a failed attempt.
    Next(CaseMessage, CaseAttempt),
    /// The step after a DLR, or after its absence.
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
    /// The account or peer that submitted it.
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

//! A plugin on the bench: what it is given, what it is asked, what it answers, in plain words.
//!
//! The words are those of `wit/`, so that a case reads like the contract. Times are milliseconds.

use capabilities::CounterGrant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Runs a plugin.
pub trait Bench {
    /// Brings up a fresh instance with what is given, asks one question after the other, and tells the last answer.
    ///
    /// # Errors
    /// When the host cannot do it. What the plugin does wrong is an [`Answer::Fault`].
    fn ask(&self, given: &Given, questions: &[Question]) -> Result<Answer, String>;
}

/// What the host holds for the plugin.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Given {
    /// The policy document.
    pub policy: String,
    /// The time, in milliseconds since the Unix epoch.
    pub now: u64,
    /// What the binding grants.
    pub grants: Grants,
    /// Octets of memory that an instance may have; nothing: what a binding has that does not say.
    pub memory: Option<usize>,
    /// Milliseconds that a call may run; nothing: what a binding has that does not say.
    pub deadline_ms: Option<u64>,
    /// The appliance's tables, by name.
    pub tables: BTreeMap<String, Table>,
    /// The peers of the configuration. No others can be named in a verdict.
    pub peers: BTreeMap<String, PeerState>,
    /// The number pools.
    pub pools: BTreeMap<String, PoolState>,
    /// What was counted at `now` already.
    pub counters: Vec<Counted>,
    /// What is in the plugin's store.
    pub kv: BTreeMap<String, String>,
    /// What other systems answer.
    pub http: Vec<Exchange>,
    /// The home location register, by number.
    pub hlr: BTreeMap<String, Subscriber>,
}

/// What the binding grants, in the words of the API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Grants {
    /// Places that it may ask over HTTP.
    pub http: Vec<String>,
    /// Octets that it may keep.
    pub kv: u64,
    /// Tables of the appliance's that it may open.
    pub tables: Vec<String>,
    /// It may ask the home location register.
    pub hlr: bool,
    /// It may draw random numbers, where it is built with `wasi = true`.
    pub random: bool,
    /// Its durable counters.
    pub counters: Vec<CounterGrant>,
}

/// A table of the appliance's.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Table {
    /// How it is looked at.
    pub kind: TableKind,
    /// Its rows.
    pub rows: BTreeMap<String, String>,
}

/// How a table is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// By the whole key.
    Exact,
    /// By the longest beginning.
    Prefix,
}

/// What the host knows of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PeerState {
    /// Links that take messages.
    #[serde(default = "one")]
    pub links: u32,
    /// Messages waiting for it.
    #[serde(default)]
    pub queued: u64,
}

fn one() -> u32 {
    1
}

/// What the host knows of a number pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PoolState {
    /// Numbers that are to be had.
    pub ready: u64,
    /// Numbers that somebody has.
    pub busy: u64,
    /// Numbers that cannot be used now, busy ones among them.
    pub down: u64,
    /// All numbers.
    pub total: u64,
}

/// Something counted before the first question.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Counted {
    /// The counter.
    pub name: String,
    /// Its key.
    pub key: String,
    /// How much.
    pub amount: u32,
    /// The window.
    pub window_ms: u64,
}

/// A request that another system answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Exchange {
    /// Its method.
    #[serde(default = "get")]
    pub method: String,
    /// Its URL, whole.
    pub url: String,
    /// The answer's status.
    #[serde(default = "okay")]
    pub status: u16,
    /// The answer's headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The answer's body.
    #[serde(default)]
    pub body: String,
    /// There is no answer.
    pub failure: Option<HttpFailure>,
}

fn get() -> String {
    "GET".to_owned()
}

fn okay() -> u16 {
    200
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpFailure {
    /// None in time.
    TimedOut,
    /// Larger than the binding allows.
    TooLarge,
    /// No connection, or it broke.
    Unreachable,
}

/// A subscriber.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Subscriber {
    /// Who it is.
    pub imsi: String,
    /// The peer that serves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<String>,
    /// How long the answer holds; a resolver's answer only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_ms: Option<u64>,
}

/// What a plugin is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// Does it take the policy document? Every other question implies that it does.
    Configure,
    /// Where does this message go?
    Route(Message),
    /// Who stands behind this number?
    Resolve(String),
    /// What follows this failed attempt?
    Next(Message, Attempt),
    /// What does this message cost?
    Price(Message, Option<FirstLeg>),
    /// It is told how charges ended.
    Settle(Vec<Settlement>),
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Message {
    /// Account or peer that it came from.
    #[serde(default = "origin")]
    pub origin: String,
    /// Who sent it: text, or a table with TON and NPI.
    #[serde(default)]
    pub source: Address,
    /// Who is to get it.
    pub destination: Address,
    /// SMPP service_type.
    pub service_type: Option<String>,
    /// Data coding scheme.
    #[serde(default)]
    pub data_coding: u8,
    /// 0 (bulk) to 3 (very urgent).
    #[serde(default)]
    pub priority: u8,
    /// The text, as octets of its data coding; what stands here is written as UTF-8.
    #[serde(default)]
    pub text: String,
    /// Whether the submitter wants a receipt.
    #[serde(default)]
    pub wants_receipt: bool,
}

fn origin() -> String {
    "shop".to_owned()
}

/// An address: its value alone, or with TON and NPI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenAddress")]
pub struct Address {
    /// Type of number.
    pub ton: u8,
    /// Numbering plan.
    pub npi: u8,
    /// Digits, or the alphanumeric sender.
    pub value: String,
}

impl Default for Address {
    fn default() -> Self {
        WrittenAddress::Value(String::new()).into()
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an address: a text, or an object of ton, npi and value")]
enum WrittenAddress {
    Value(String),
    Whole { ton: u8, npi: u8, value: String },
}

impl From<WrittenAddress> for Address {
    fn from(written: WrittenAddress) -> Self {
        match written {
            WrittenAddress::Whole { ton, npi, value } => Self { ton, npi, value },
            WrittenAddress::Value(value) => {
                // As SMPP has it: digits are an international number of E.164, everything else a name.
                let number = value.bytes().all(|octet| octet.is_ascii_digit() || octet == b'+');
                let (ton, npi) = if number { (1, 1) } else { (5, 0) };
                Self { ton, npi, value }
            }
        }
    }
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Attempt {
    /// Attempts so far, this one included.
    #[serde(default = "first")]
    pub number: u16,
    /// The leg's index.
    #[serde(default)]
    pub leg: u8,
    /// How many legs there are.
    #[serde(default = "single")]
    pub legs: u8,
    /// The peer that was tried.
    pub peer: String,
    /// What kind of failure.
    pub class: ErrorClass,
    /// The protocol's own code.
    #[serde(default)]
    pub code: u32,
    /// How long ago the message was accepted.
    #[serde(default)]
    pub age_ms: u64,
    /// How long it is still valid.
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

/// What kind of failure an attempt met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// May work later.
    Temporary,
    /// Will not work on this leg.
    Permanent,
    /// Not reachable now.
    Absent,
    /// The handset's memory is full.
    MemoryFull,
    /// Too fast.
    Throttled,
}

/// The leg that is to be tried first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstLeg {
    /// The peer.
    pub peer: String,
    /// Its cost, in millionths.
    #[serde(default)]
    pub cost: u32,
}

/// How a charge ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    /// Grows from one to the next.
    pub serial: u64,
    /// The message's id.
    pub message: u64,
    /// The ledger account.
    pub account: String,
    /// In millionths.
    pub amount: u64,
    /// Paid; otherwise given back.
    pub captured: bool,
    /// Milliseconds since the Unix epoch.
    pub at: u64,
}

/// What a plugin answers. A note that is not there is `None`.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It took the policy document.
    Configured,
    /// It refused the policy document, with these words.
    Refused(String),
    /// A router's decision.
    Verdict {
        /// The verdict.
        verdict: Verdict,
        /// The number that it wants for the message's sender.
        sender: Option<Sender>,
        /// Why.
        note: Option<String>,
    },
    /// A resolver's answer.
    Resolved {
        /// The answer.
        answer: Resolution,
        /// Why.
        note: Option<String>,
    },
    /// A delivery policy's decision.
    Next {
        /// What follows.
        step: Step,
        /// What it means for the peer.
        advice: Option<Advice>,
        /// Why.
        note: Option<String>,
    },
    /// A biller's price.
    Price {
        /// The price.
        price: Price,
        /// Why.
        note: Option<String>,
    },
    /// A biller took what it was told.
    Settled,
    /// A biller wants to be told again, with these words.
    Unsettled(String),
    /// It trapped, ran too long, took too much, or answered what makes no sense.
    Fault(String),
}

/// A router's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The next router decides.
    Pass,
    /// To one of these.
    Forward(Vec<Leg>),
    /// To a subscriber of ours.
    Home,
    /// Ask again at this time, in milliseconds since the Unix epoch.
    Hold(#[serde(deserialize_with = "crate::cases::moment")] u64),
    /// Refused, for this reason.
    Reject(String),
}

/// A number of a pool, wanted for the sender of a message: the pool's name alone, or with more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenSender", rename_all = "kebab-case")]
pub struct Sender {
    /// The pool.
    pub pool: String,
    /// What is to become of the message without one: `reject`, `keep-sender` or `hold`.
    #[serde(skip_serializing_if = "is_default")]
    pub otherwise: WithoutNumber,
    /// The user that a sticky pool looks at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Who holds it; nothing: the message's origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// What for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// After this long it is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
}

/// What is to become of a message without a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutNumber {
    /// It is refused.
    #[default]
    Reject,
    /// It goes out as it came.
    KeepSender,
    /// It waits for one.
    Hold,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a sender: the name of a pool, or an object with pool")]
enum WrittenSender {
    Pool(String),
    Whole(WholeSender),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct WholeSender {
    pool: String,
    #[serde(default)]
    otherwise: WithoutNumber,
    user: Option<String>,
    holder: Option<String>,
    reason: Option<String>,
    lease_ms: Option<u64>,
}

impl From<String> for Sender {
    fn from(pool: String) -> Self {
        Self {
            pool,
            otherwise: WithoutNumber::Reject,
            user: None,
            holder: None,
            reason: None,
            lease_ms: None,
        }
    }
}

impl From<WrittenSender> for Sender {
    fn from(written: WrittenSender) -> Self {
        match written {
            WrittenSender::Pool(pool) => pool.into(),
            WrittenSender::Whole(whole) => {
                let WholeSender { pool, otherwise, user, holder, reason, lease_ms } = whole;
                Self { pool, otherwise, user, holder, reason, lease_ms }
            }
        }
    }
}

/// One way to the destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenLeg", rename_all = "kebab-case")]
pub struct Leg {
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
    /// How long it may wait for this leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_wait_ms: Option<u64>,
    /// The source to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Address>,
    /// The destination to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<Address>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_one(value: &u16) -> bool {
    *value == 1
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a leg: the name of a peer, or an object with peer")]
enum WrittenLeg {
    Peer(String),
    Whole(WholeLeg),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct WholeLeg {
    peer: String,
    #[serde(default)]
    rank: u8,
    #[serde(default = "weight")]
    weight: u16,
    #[serde(default)]
    cost: u32,
    longest_wait_ms: Option<u64>,
    source: Option<Address>,
    destination: Option<Address>,
}

fn weight() -> u16 {
    1
}

impl From<WrittenLeg> for Leg {
    fn from(written: WrittenLeg) -> Self {
        match written {
            WrittenLeg::Peer(peer) => Self {
                peer,
                rank: 0,
                weight: 1,
                cost: 0,
                longest_wait_ms: None,
                source: None,
                destination: None,
            },
            WrittenLeg::Whole(whole) => Self {
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
pub enum Resolution {
    /// It is this subscriber.
    Found(Subscriber),
    /// There is none; for so long, where it says so.
    Unknown(Option<u64>),
    /// Ask again, after so long, where it says so.
    TryLater(Option<u64>),
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Try this leg again after so long.
    RetryAfter(u64),
    /// Try the next leg.
    NextLeg,
    /// Wait for the subscriber, at most so long.
    AwaitAlert(u64),
    /// Give up.
    Fail,
}

/// What a failure says of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Advice {
    /// How long it is to be sent nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_ms: Option<u64>,
    /// Messages a second at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Unanswered messages at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
}

/// A biller's price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Price {
    /// Nothing.
    Free,
    /// This.
    Charge(Charge),
    /// The message is refused.
    Refuse,
}

/// What is to be charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Charge {
    /// The ledger account.
    pub account: String,
    /// In millionths.
    pub amount: u64,
    /// It is paid though the message fails.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep_on_failure: bool,
    /// The biller wants to be told of the end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settle: bool,
}

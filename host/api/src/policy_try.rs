//! Tests of a policy document with messages, before it goes live.

use crate::bindings::ActivationRequest;
use crate::hooks::UnknownReference;
use crate::name_schemas::HookSchema;
use crate::replays::PluginVersionName;
use crate::trace::{ExplainRequest, PriceView};
use model::Hook;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /v1/hooks/{hook}/try`: an [`ActivationRequest`] with the messages to try it with. One of `messages`, `last` and `message` is
/// needed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyTryRequest {
    /// Hypothetical messages. An empty list checks the document alone, of any hook.
    #[schema(nullable = false, max_items = 100)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<ExplainRequest>>,
    /// This number of newest messages of the archive.
    #[schema(nullable = false, minimum = 1, maximum = 100)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// The archived message with this id.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The plugins and their policy documents.
    #[serde(flatten)]
    #[schema(inline)]
    pub activation: ActivationRequest,
}

/// The decisions of the tried chain and of the live one.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = PolicyTry)]
pub struct PolicyTryView {
    /// The hook.
    #[schema(value_type = HookSchema, inline)]
    pub hook: Hook,
    /// The tried plugins.
    pub plugins: Vec<PluginVersionName>,
    /// The live plugins.
    pub live: Vec<PluginVersionName>,
    /// Names in the tried policies that do not exist in the appliance.
    pub unknown: Vec<UnknownReference>,
    /// The messages, in the order of the request, or oldest first.
    pub messages: Vec<TriedMessageView>,
    /// Number of messages with different decisions.
    pub different: u64,
    /// Whether all messages were tried; false if the time limit was reached.
    pub complete: bool,
}

/// A message as a case for the plugin's author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MessageCase {
    /// The id of an archived message; null for a hypothetical one.
    #[schema(required)]
    pub id: Option<String>,
    /// The plugin that decided.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// A `[[case]]` to append to `cases.toml`: the message with unmasked numbers and its text, the policy document, the time, the host's answers,
    /// and the decision as the expected answer.
    pub case: String,
    /// The reason why the decision may differ from the original one: data that was not recorded. Null if it is exact.
    #[schema(required)]
    pub inexact: Option<String>,
}

/// A message with both decisions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = TriedMessage)]
pub struct TriedMessageView {
    /// The id of an archived message; null for a hypothetical one.
    #[schema(required)]
    pub id: Option<String>,
    /// The account or peer that submitted it.
    pub origin: String,
    /// The sender; masked if it is an archived message and the caller may not read texts.
    pub source: String,
    /// The recipient, masked likewise.
    pub destination: String,
    /// The decision of the tried chain.
    pub tried: TriedDecisionView,
    /// The decision of the live chain, with the same answers of the host.
    pub live: TriedDecisionView,
    /// Whether the decisions differ, in the legs, their costs, the sender, the changes of the message or the price.
    pub different: bool,
    /// The reason why the decisions may differ from the original ones: data that was not recorded. Null if they are exact.
    #[schema(required)]
    pub inexact: Option<String>,
}

/// A decision, with the host calls and the CPU time that it needed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = TriedDecision)]
pub struct TriedDecisionView {
    /// The plugin that decided or failed, or the built-in rule.
    #[schema(required)]
    pub by: Option<String>,
    /// The decision, as in the trace of a message.
    pub decision: String,
    /// The reason that the plugin gave.
    #[schema(required)]
    pub note: Option<String>,
    /// The legs, in the order of the plugin.
    pub legs: Vec<TriedLegView>,
    /// The price; null if there is no biller, or nothing to price.
    #[schema(required)]
    pub price: Option<PriceView>,
    /// The fault of the plugin's call, if it failed.
    #[schema(required)]
    pub fault: Option<String>,
    /// The answers of the host to the router's calls, without those about the message itself.
    pub host_calls: Vec<TriedHostCallView>,
    /// The CPU time of the calls of the hook that is tried, in nanoseconds.
    pub cpu_ns: u64,
}

/// A leg.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = TriedLeg)]
pub struct TriedLegView {
    /// The peer.
    pub peer: String,
    /// Lower ranks are tried first.
    pub rank: u8,
    /// Share within the rank.
    pub weight: u16,
    /// Cost of the message on this leg, in millionths.
    pub cost: u32,
}

/// An answer of the host.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = TriedHostCall)]
pub struct TriedHostCallView {
    /// `peer`, `pool`, `counter`, `table` or `attribute`.
    pub call: String,
    /// The name, for example of the peer.
    pub name: String,
    /// The key in a table or of a counter. Null if there is none, or the caller may not read the numbers of archived messages.
    #[schema(required)]
    pub key: Option<String>,
    /// The answer, for people.
    pub answer: String,
}

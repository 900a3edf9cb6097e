use super::{LookupResultView, MessageStateView, UncertainRemedy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A step of a trace.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Step)]
pub struct StepView {
    /// Time of the step, milliseconds since the epoch.
    pub at: u64,
    /// The event.
    pub what: String,
}

/// `GET /v1/messages/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Trace)]
pub struct TraceView {
    /// The message id. The submitter knows the message by this id, or by `submission` if set.
    pub id: String,
    /// The id of the whole submission, if it has several destinations (SMPP submit_multi); null otherwise.
    #[schema(required)]
    pub submission: Option<String>,
    /// The current state (`queued`, `submitted`, `deferred` and so on) or the final state.
    #[schema(inline)]
    pub state: MessageStateView,
    /// Whether the message is finished.
    pub finished: bool,
    /// The account or peer that submitted the message.
    pub origin: String,
    /// The sender, masked unless the caller may read message texts.
    pub source: String,
    /// The recipient, masked likewise.
    pub destination: String,
    /// Time of acceptance, milliseconds since the epoch.
    pub accepted_at: u64,
    /// End of the validity period, milliseconds since the epoch.
    pub expires_at: u64,
    /// The decision of the screens; null if there is none.
    #[schema(required)]
    #[serde(default)]
    pub screening: Option<ScreeningView>,
    /// The result of the number lookup; null if no lookup was called, or its answer is awaited.
    #[schema(required)]
    #[serde(default)]
    pub lookup: Option<LookupView>,
    /// The routing decision.
    pub routing: RoutingView,
    /// The price; null if no biller was called.
    #[schema(required)]
    pub price: Option<PriceView>,
    /// The reason why the message waits, and the time until which it waits; null once it is finished.
    #[schema(required)]
    pub waiting_for: Option<String>,
    /// All steps, oldest first.
    pub steps: Vec<StepView>,
    /// The submit attempts, oldest first. Of a trace with very many steps, some may be missing.
    #[serde(default)]
    #[schema(required)]
    pub attempts: Vec<AttemptView>,
    /// The number of segments that the text has on the air, at least 1.
    #[serde(default = "one")]
    #[schema(required, minimum = 1)]
    pub segments: u16,
    /// The peer's message ids of the segments.
    pub peer_ids: Vec<String>,
    /// Length of the text, in octets; 0 once its content was erased.
    pub length: usize,
    /// The text, if it was requested.
    #[schema(required)]
    pub body: Option<String>,
    /// Time at which the content was erased, milliseconds since the epoch; null if it was not erased.
    #[schema(required)]
    #[serde(default)]
    pub content_erased_at: Option<u64>,
}

fn one() -> u16 {
    1
}

/// A submit attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Attempt)]
pub struct AttemptView {
    /// The number of the attempt, from 1.
    pub number: u16,
    /// The peer.
    pub peer: String,
    /// Time of the submission, milliseconds since the epoch.
    pub submitted_at: u64,
    /// Time of the outcome, milliseconds since the epoch; null while it is awaited.
    #[schema(required)]
    pub ended_at: Option<u64>,
    /// The outcome; null while it is awaited.
    #[schema(required, inline)]
    pub outcome: Option<AttemptOutcome>,
    /// Details of the outcome: the peer's id of the message or of its first segment, or the error.
    #[schema(required)]
    pub detail: Option<String>,
    /// Time of the last DLR, milliseconds since the epoch.
    #[schema(required)]
    pub dlr_at: Option<u64>,
    /// The last DLR.
    #[schema(required)]
    pub dlr: Option<String>,
}

/// The outcome of a submit attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptOutcome {
    /// The peer accepted the message.
    Accepted,
    /// The peer refused it.
    Refused,
    /// The peer did not answer.
    Unanswered,
    /// The message was not sent.
    NotSent,
}

impl AttemptOutcome {
    /// The name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
            Self::NotSent => "not-sent",
        }
    }
}

/// The decision of the screens about a message.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Screening)]
pub struct ScreeningView {
    /// The plugin that decided.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// The plugin's note.
    #[schema(required)]
    pub note: Option<String>,
    /// The changes of the screens to the message, without values.
    #[schema(required)]
    pub changes: Option<String>,
    /// Whether a screen replaced the text.
    pub text_replaced: bool,
    /// The text as submitted, if a screen replaced it and the text was requested.
    #[schema(required)]
    pub submitted_body: Option<String>,
}

/// The result of the lookup of a message's number.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Lookup)]
pub struct LookupView {
    /// The plugin that answered or failed.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// The plugin's note, or the reason of the failure.
    #[schema(required)]
    pub note: Option<String>,
    /// The outcome of the lookup.
    #[schema(inline)]
    pub result: LookupResultView,
    /// The attributes of the number, in their order.
    pub attributes: BTreeMap<String, String>,
    /// Whether the answer came from the cache; otherwise from the plugin.
    pub cached: bool,
}

/// A routing decision.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Routing)]
pub struct RoutingView {
    /// The plugin that routed the message.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// The plugin's note.
    #[schema(required)]
    pub note: Option<String>,
    /// The verdict, with legs in the order of attempts.
    pub verdict: String,
    /// Index of the current leg.
    #[schema(required)]
    pub leg: Option<usize>,
}

/// The price of a message. The steps show whether it was captured or released.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Price)]
pub struct PriceView {
    /// The plugin that set the price.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// The plugin's note.
    #[schema(required)]
    pub note: Option<String>,
    /// The ledger account that pays; null if the message is free.
    #[schema(required)]
    pub account: Option<String>,
    /// Millionths of the operator's currency.
    pub amount: u64,
}

/// How to settle an uncertain message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleMessageRequest {
    /// How to settle it.
    pub remedy: UncertainRemedy,
}

/// `POST /v1/explain`: a hypothetical message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// The account or peer that would submit it.
    pub origin: String,
    /// The sender.
    #[serde(default)]
    pub source: String,
    /// The recipient.
    pub destination: String,
    /// The text.
    #[serde(default)]
    pub text: String,
}

/// The answer to [`ExplainRequest`].
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationView {
    /// The steps of the decision, in order.
    pub steps: Vec<String>,
    /// The answer that the submitter would get.
    pub answer: String,
}

//! Cases of peers: submit attempts and callbacks.

use crate::plugin_host::CaseMessage;
use hooks::{CallbackAnswer, CallbackRequest, Submitted};
use model::{DlrState, ErrorClass, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A submit attempt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseSubmission {
    /// The message.
    pub message: CaseMessage,
    /// The peer.
    #[serde(default = "peer")]
    pub peer: String,
    /// The number of the attempt.
    #[serde(default = "first")]
    pub number: u16,
    /// Whether the appliance waits for receipts.
    #[serde(default)]
    pub wants_receipts: bool,
}

fn peer() -> String {
    "upstream".to_owned()
}

fn first() -> u16 {
    1
}

/// A request of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseCallback {
    /// The peer.
    #[serde(default = "peer")]
    pub peer: String,
    /// The method.
    #[serde(default = "post")]
    pub method: String,
    /// The rest of the path after `/v1/peers/NAME/callback`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The query, without the question mark.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Names in lower case, and values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
}

fn post() -> String {
    "POST".to_owned()
}

/// The outcome of a submit attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseOutcome {
    /// The peer has accepted the message with this id; empty: it gives no id.
    Accepted(String),
    /// The peer has refused it.
    Refused(CaseRefusal),
    /// The peer may or may not have it.
    Unsure,
}

/// A refusal of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseRefusal {
    /// Its class, as in the contract.
    pub class: String,
    /// The peer's code.
    #[serde(default)]
    pub code: u32,
    /// The time for which nothing is submitted to the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// The answer to a callback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseCalled {
    /// The status of the response.
    #[serde(default = "okay")]
    pub status: u16,
    /// The headers of the response.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body of the response.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The receipts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<CaseReceipt>,
    /// The messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<CaseIncoming>,
}

fn okay() -> u16 {
    200
}

/// A receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseReceipt {
    /// The peer's id of the message.
    pub id: String,
    /// The subscriber's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<String>,
    /// The sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The state.
    pub state: DlrState,
    /// The peer's error code.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error: u16,
    /// The time at which the state was reached, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// A message of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseIncoming {
    /// The sender.
    pub source: String,
    /// The recipient.
    pub destination: String,
    /// The text.
    pub text: String,
}

impl CaseOutcome {
    pub(crate) fn of(submitted: &Submitted) -> Self {
        match &submitted.outcome {
            Outcome::Accepted { ids } => {
                let id = ids.first().map(|id| String::from_utf8_lossy(&id.0).into_owned());
                Self::Accepted(id.unwrap_or_default())
            }
            Outcome::Refused { class, code, .. } => {
                let pause = submitted.pause;
                let retry_after_ms = pause.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
                Self::Refused(CaseRefusal {
                    class: class_name(*class).to_owned(),
                    code: *code,
                    retry_after_ms,
                })
            }
            // A chain of one plugin serves every peer of a case, so each message is sent.
            Outcome::NotSent | Outcome::Unanswered { .. } => Self::Unsure,
        }
    }
}

fn class_name(class: ErrorClass) -> &'static str {
    match class {
        // No plugin returns the second.
        ErrorClass::Temporary | ErrorClass::ThisMessage => "temporary",
        ErrorClass::Permanent => "permanent",
        ErrorClass::Throttled => "throttled",
        ErrorClass::QueueFull => "queue-full",
        ErrorClass::Absent => "absent",
        ErrorClass::MemoryFull => "memory-full",
        ErrorClass::UnknownSubscriber | ErrorClass::NumberMoved => "unknown-subscriber",
    }
}

impl CaseCallback {
    pub(crate) fn request(&self) -> CallbackRequest {
        CallbackRequest {
            peer: self.peer.as_str().into(),
            method: self.method.clone(),
            path: format!("/v1/peers/{}/callback{}", self.peer, self.path),
            query: self.query.clone(),
            headers: self.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            body: self.body.clone().into_bytes(),
        }
    }

    pub(crate) fn of(request: &CallbackRequest) -> Self {
        let path = request.path.split_once("/callback").map_or("", |(_, rest)| rest);
        Self {
            peer: request.peer.to_string(),
            method: request.method.clone(),
            path: path.to_owned(),
            query: request.query.clone(),
            headers: request.headers.iter().cloned().collect(),
            body: String::from_utf8_lossy(&request.body).into_owned(),
        }
    }
}

impl CaseCalled {
    pub(crate) fn of(answer: CallbackAnswer) -> Self {
        let receipts = answer.receipts.into_iter().map(|receipt| CaseReceipt {
            id: String::from_utf8_lossy(&receipt.id.0).into_owned(),
            subscriber: receipt.subscriber,
            sender: receipt.sender,
            state: receipt.state,
            error: receipt.error,
            at: receipt.at.map(|at| at.0),
        });
        let messages = answer.messages.into_iter().map(|message| CaseIncoming {
            source: message.source,
            destination: message.destination,
            text: message.text,
        });
        Self {
            status: answer.response.status,
            headers: answer.response.headers.into_iter().collect(),
            body: String::from_utf8_lossy(&answer.response.body).into_owned(),
            receipts: receipts.collect(),
            messages: messages.collect(),
        }
    }
}

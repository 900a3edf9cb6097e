//! The requests to front ends and their results, in host types.

use crate::worlds::PluginResponse;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request to a front end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontEndRequest {
    /// The plugin that serves the path.
    pub plugin: Arc<str>,
    /// GET or POST.
    pub method: String,
    /// The path as sent.
    pub path: String,
    /// The query as sent, without the question mark.
    pub query: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A message for one number, with the texts of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FrontEndSubmission {
    /// The sender; `None`: the account's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The number.
    pub destination: String,
    /// The text; either this or `octets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Octets in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub octets: Option<String>,
    /// The coding, by its name in the business API; `None`: automatic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coding: Option<String>,
    /// A user data header in hexadecimal, with its length octet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data_header: Option<String>,
    /// 0 to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_class: Option<u8>,
    /// 0 to 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// In seconds; `None`: the account's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validity: Option<u64>,
    /// The delivery time, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<u64>,
    /// The wanted DLRs, by their name in the business API; `None`: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts: Option<String>,
    /// The customer's reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// TLVs: by tag in four hexadecimal digits, values in hexadecimal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tlvs: BTreeMap<String, String>,
    /// A request for each DLR; `None`: the DLRs go to the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dlr_push: Option<FrontEndDlrPush>,
}

/// A request for each DLR of a message: the template of the contract. Messages of business systems are stored with the JSON
/// of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FrontEndDlrPush {
    /// The URL, with names of values in braces.
    pub url: String,
    /// A form, with names of values in braces, which is sent by POST; `None`: GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The word of each state by its name in the contract. DLRs of other states are not pushed.
    #[serde(default)]
    pub words: BTreeMap<String, String>,
    /// The body of a response that acknowledges the DLR; `None`: any body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledgement: Option<String>,
    /// The signature of the request; `None`: it is not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<FrontEndDlrSignature>,
}

/// The signature of a request for a DLR, made with the secret of the account's push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrontEndDlrSignature {
    /// `X-Twilio-Signature`.
    Twilio,
}

/// The submissions of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct FrontEndSubmit {
    /// The account's name.
    pub account: String,
    /// The password in the request.
    pub password: String,
    /// The messages, at least one.
    pub submissions: Vec<FrontEndSubmission>,
    /// The idempotency key.
    pub idempotency_key: Option<String>,
}

impl std::fmt::Debug for FrontEndSubmit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrontEndSubmit")
            .field("account", &self.account)
            .field("submissions", &self.submissions)
            .finish_non_exhaustive()
    }
}

/// The result of reading a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontEndReading {
    /// Messages.
    Submit(FrontEndSubmit),
    /// The request is answered without a submission.
    Respond(PluginResponse),
}

/// The reason of a refusal, in the terms of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalReason {
    /// Unknown account, wrong password, or a network that the account does not allow.
    Unauthenticated,
    /// A field is not valid.
    Invalid,
    /// No route.
    NoRoute,
    /// The number is not valid.
    InvalidDestination,
    /// The sender may not be used.
    InvalidSource,
    /// Against the operator's rules.
    Prohibited,
    /// The account may not do this.
    NotAuthorised,
    /// The account cannot pay.
    NoCredit,
    /// The account exceeds its rate limit.
    Throttled,
    /// A queue is full, or the appliance is stopping.
    Unavailable,
    /// The idempotency key was used for another submission.
    KeyReused,
    /// An internal error.
    Internal,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FrontEndRefusal {
    /// The reason.
    pub reason: RefusalReason,
    /// For people.
    #[serde(default)]
    pub detail: String,
    /// The field that is not valid, by its name in the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// The result of one submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrontEndResult {
    /// The message is on disk.
    Accepted {
        /// Its id.
        id: String,
        /// Short messages that the text makes.
        segments: u16,
    },
    /// It is refused.
    Refused(FrontEndRefusal),
}

/// The outcome of the submissions of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrontEndOutcome {
    /// One result per submission.
    Results(Vec<FrontEndResult>),
    /// No submission is accepted.
    Refused(FrontEndRefusal),
}

//! Cases of front ends: requests, outcomes and responses.

use crate::case_text::CaseText;
use crate::plugin_host::PLUGIN;
use hooks::{
    FrontEndOutcome, FrontEndReading, FrontEndRequest, FrontEndSubmission, FrontEndSubmit, PluginResponse,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request to a front end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseRequest {
    /// The method.
    #[serde(default = "get")]
    pub method: String,
    /// The path.
    #[serde(default = "root")]
    pub path: String,
    /// The query, without the question mark.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Names in lower case, and values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body: text, or a table with the octets in hexadecimal.
    #[serde(default, skip_serializing_if = "CaseBody::is_empty")]
    pub body: CaseBody,
}

fn get() -> String {
    "GET".to_owned()
}

fn root() -> String {
    "/".to_owned()
}

/// The octets of a body.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "CaseText", into = "BodyEntry")]
pub struct CaseBody(pub Vec<u8>);

impl CaseBody {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<CaseText> for CaseBody {
    fn from(text: CaseText) -> Self {
        Self(text.octets)
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum BodyEntry {
    Utf8(String),
    Octets { hex: String },
}

impl From<CaseBody> for BodyEntry {
    fn from(body: CaseBody) -> Self {
        String::from_utf8(body.0)
            .map_or_else(|error| Self::Octets { hex: model::hex(error.as_bytes()) }, Self::Utf8)
    }
}

impl CaseRequest {
    pub(crate) fn request(&self) -> FrontEndRequest {
        FrontEndRequest {
            plugin: PLUGIN.into(),
            method: self.method.clone(),
            path: self.path.clone(),
            query: self.query.clone(),
            headers: self.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            body: self.body.0.clone(),
        }
    }

    pub(crate) fn of(request: &FrontEndRequest) -> Self {
        Self {
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            headers: request.headers.iter().cloned().collect(),
            body: CaseBody(request.body.clone()),
        }
    }
}

/// A request, and the outcome of its submissions: the question for the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseReply {
    /// The request.
    pub request: CaseRequest,
    /// The outcome.
    pub outcome: FrontEndOutcome,
}

/// A response of a front end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseResponse {
    /// The status.
    pub status: u16,
    /// Names in lower case, and values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default, skip_serializing_if = "CaseBody::is_empty")]
    pub body: CaseBody,
}

impl From<PluginResponse> for CaseResponse {
    fn from(response: PluginResponse) -> Self {
        let headers = response.headers.into_iter();
        Self {
            status: response.status,
            headers: headers.map(|(name, value)| (name.to_lowercase(), value)).collect(),
            body: CaseBody(response.body),
        }
    }
}

/// The result of reading a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseReading {
    /// Messages.
    Submit(CaseSubmit),
    /// A response.
    Respond(CaseResponse),
}

/// The submissions of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseSubmit {
    /// The account.
    pub account: String,
    /// Its password.
    pub password: String,
    /// The idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The messages.
    pub messages: Vec<FrontEndSubmission>,
}

impl From<FrontEndReading> for CaseReading {
    fn from(reading: FrontEndReading) -> Self {
        match reading {
            FrontEndReading::Respond(response) => Self::Respond(response.into()),
            FrontEndReading::Submit(FrontEndSubmit { account, password, submissions, idempotency_key }) => {
                Self::Submit(CaseSubmit { account, password, idempotency_key, messages: submissions })
            }
        }
    }
}

//! The front-end hook: translates the requests of another product's HTTP API into submissions, and their results into responses.

use super::{World, canary_bucket};
use crate::bindings::guest::exports::switchyard::hooks::translation as wit;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::generation::{Generation, Instance};
use crate::guest_function::{Exports, GuestFunction, Signature};
use crate::host_calls::InstanceState;
use api::Binding;
use model::{Directory, Hook, MessageId, PluginVersion};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of submissions of a request.
const MAX_SUBMISSIONS: usize = 1_000;
/// Maximum number of headers of a response.
const MAX_HEADERS: usize = 50;

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

/// A response of a front end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontEndResponse {
    /// The HTTP status, 200 to 599.
    pub status: u16,
    /// Names and values; they may be no valid HTTP.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A message for one number, in the words of a request.
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
    /// Seconds; `None`: the account's.
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
}

/// What a request submits.
#[derive(Clone, PartialEq, Eq)]
pub struct FrontEndSubmit {
    /// The account's name.
    pub account: String,
    /// Its password, as the request has it.
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

/// What a front end reads in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontEndReading {
    /// Messages.
    Submit(FrontEndSubmit),
    /// The request is answered without a submission.
    Respond(FrontEndResponse),
}

/// Why something is refused, in the terms of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalReason {
    /// Unknown account, wrong password, or a network that may not be used.
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
    /// The account is over its rate.
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
    /// Why.
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
    /// Nothing is accepted.
    Refused(FrontEndRefusal),
}

/// A request that a front end has read. The same version writes its response.
pub struct FrontEndCall(pub(crate) Arc<Generation<FrontEnd>>);

impl FrontEndCall {
    /// The version that read the request.
    #[must_use]
    pub fn by(&self) -> &PluginVersion {
        &self.0.by
    }
}

pub(crate) struct FrontEnd;

#[derive(Clone, Copy)]
pub(crate) enum FrontEndQuestion<'a> {
    Read(&'a FrontEndRequest),
    Reply(&'a FrontEndRequest, &'a FrontEndOutcome),
}

impl<'a> FrontEndQuestion<'a> {
    fn request(self) -> &'a FrontEndRequest {
        match self {
            Self::Read(request) | Self::Reply(request, _) => request,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum FrontEndAnswer {
    Read(Box<FrontEndReading>),
    Replied(FrontEndResponse),
}

pub(crate) struct Read;

impl Signature for Read {
    const NAME: &'static str = "read";
    type Arguments<'a> = (wit::Request<'a>,);
    type Answer = wit::Reading;
}

pub(crate) struct Reply;

impl Signature for Reply {
    const NAME: &'static str = "reply";
    type Arguments<'a> = (wit::Request<'a>, wit::Outcome<'a>);
    type Answer = wit::Response;
}

/// The functions of an instance.
pub(crate) struct FrontEndGuest {
    read: GuestFunction<Read>,
    reply: GuestFunction<Reply>,
}

impl World for FrontEnd {
    const HOOK: Hook = Hook::FrontEnd;
    const INTERFACE: &'static str = "translation";
    const BY_PLUGIN: bool = true;
    type Guest = FrontEndGuest;
    type Question<'a> = FrontEndQuestion<'a>;
    type Owned = (FrontEndRequest, Option<FrontEndOutcome>);
    type Answer = FrontEndAnswer;

    fn guest(exports: &mut Exports<'_>) -> wasmtime::Result<Self::Guest> {
        Ok(FrontEndGuest { read: GuestFunction::find(exports)?, reply: GuestFunction::find(exports)? })
    }

    /// An empty request, which no path of an API has.
    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()> {
        let request = wit::Request { method: "GET", path: "/", query: "", headers: &[], body: &[] };
        instance.guest.read.call(&mut instance.store, (request,)).map(drop)
    }

    fn serves(binding: &Binding, question: FrontEndQuestion<'_>) -> bool {
        *binding.plugin == *question.request().plugin
    }

    fn prepare(_: &mut InstanceState, _: FrontEndQuestion<'_>, _: Option<&FrontEndAnswer>) {}

    fn ask(
        _: &Generation<Self>,
        Instance { store, guest }: &mut Instance<Self>,
        question: FrontEndQuestion<'_>,
    ) -> wasmtime::Result<Result<FrontEndAnswer, Fault>> {
        let FrontEndRequest { method, path, query, headers, body, .. } = question.request();
        let headers: Vec<wit::HeaderParam<'_>> =
            headers.iter().map(|(name, value)| wit::HeaderParam { name, value }).collect();
        let request = wit::Request { method, path, query, headers: &headers, body };
        match question {
            FrontEndQuestion::Read(_) => {
                let reading = decode_reading(guest.read.call(store, (request,))?);
                Ok(reading.map(|reading| FrontEndAnswer::Read(Box::new(reading))))
            }
            FrontEndQuestion::Reply(_, outcome) => {
                let results;
                let outcome = match outcome {
                    FrontEndOutcome::Refused(refused) => wit::Outcome::Refused(refusal(refused)),
                    FrontEndOutcome::Results(all) => {
                        results = all.iter().map(result).collect::<Vec<_>>();
                        wit::Outcome::Results(&results)
                    }
                };
                let response = decode_response(guest.reply.call(store, (request, outcome))?);
                Ok(response.map(FrontEndAnswer::Replied))
            }
        }
    }

    fn own_question(question: FrontEndQuestion<'_>) -> Self::Owned {
        match question {
            FrontEndQuestion::Read(request) => (request.clone(), None),
            FrontEndQuestion::Reply(request, outcome) => (request.clone(), Some(outcome.clone())),
        }
    }

    fn borrow_question((request, outcome): &Self::Owned) -> FrontEndQuestion<'_> {
        match outcome {
            None => FrontEndQuestion::Read(request),
            Some(outcome) => FrontEndQuestion::Reply(request, outcome),
        }
    }

    /// By all that the request has: the host does not know where its number is.
    fn canary_bucket(question: FrontEndQuestion<'_>) -> u16 {
        let request = question.request();
        canary_bucket(&[request.path.as_bytes(), request.query.as_bytes(), &request.body].concat())
    }

    fn decides(_: &FrontEndAnswer) -> bool {
        true
    }

    fn is_same_answer(one: &FrontEndAnswer, other: &FrontEndAnswer) -> bool {
        match (one, other) {
            (FrontEndAnswer::Read(one), FrontEndAnswer::Read(other)) => one == other,
            (FrontEndAnswer::Replied(one), FrontEndAnswer::Replied(other)) => one == other,
            _ => false,
        }
    }

    /// Without passwords, numbers and texts.
    fn describe_answer(answer: &FrontEndAnswer, _: &Directory) -> String {
        match answer {
            FrontEndAnswer::Read(reading) => match &**reading {
                FrontEndReading::Submit(submit) => format!("submit {}", submit.submissions.len()),
                FrontEndReading::Respond(response) => describe_response(response),
            },
            FrontEndAnswer::Replied(response) => describe_response(response),
        }
    }

    fn message_id(_: FrontEndQuestion<'_>) -> Option<MessageId> {
        None
    }

    fn failed_question(question: FrontEndQuestion<'_>) -> FailedQuestion {
        let FrontEndRequest { plugin, method, path, .. } = question.request().clone();
        FailedQuestion::Read(Box::new(FrontEndRequest { plugin, method, path, ..Default::default() }))
    }

    fn describe_question(question: FrontEndQuestion<'_>, _: &Directory) -> String {
        let FrontEndRequest { method, path, .. } = question.request();
        let (what, path) = match question {
            FrontEndQuestion::Read(_) => ("", path),
            FrontEndQuestion::Reply(..) => ("reply to ", path),
        };
        let path: String = path.chars().take(100).collect();
        format!("{what}{method} {path}")
    }
}

fn describe_response(response: &FrontEndResponse) -> String {
    format!("respond with status {}, {} octets", response.status, response.body.len())
}

fn refusal(refusal: &FrontEndRefusal) -> wit::Refusal<'_> {
    let reason = match refusal.reason {
        RefusalReason::Unauthenticated => wit::RefusalReason::Unauthenticated,
        RefusalReason::Invalid => wit::RefusalReason::Invalid,
        RefusalReason::NoRoute => wit::RefusalReason::NoRoute,
        RefusalReason::InvalidDestination => wit::RefusalReason::InvalidDestination,
        RefusalReason::InvalidSource => wit::RefusalReason::InvalidSource,
        RefusalReason::Prohibited => wit::RefusalReason::Prohibited,
        RefusalReason::NotAuthorised => wit::RefusalReason::NotAuthorised,
        RefusalReason::NoCredit => wit::RefusalReason::NoCredit,
        RefusalReason::Throttled => wit::RefusalReason::Throttled,
        RefusalReason::Unavailable => wit::RefusalReason::Unavailable,
        RefusalReason::KeyReused => wit::RefusalReason::KeyReused,
        RefusalReason::Internal => wit::RefusalReason::Internal,
    };
    wit::Refusal { reason, detail: &refusal.detail, field: refusal.field.as_deref() }
}

fn result(result: &FrontEndResult) -> wit::SubmissionResult<'_> {
    match result {
        FrontEndResult::Accepted { id, segments } => {
            wit::SubmissionResult::Accepted(wit::Accepted { id, segments: *segments })
        }
        FrontEndResult::Refused(refused) => wit::SubmissionResult::Refused(refusal(refused)),
    }
}

fn decode_reading(reading: wit::Reading) -> Result<FrontEndReading, Fault> {
    let submit = match reading {
        wit::Reading::Respond(response) => return decode_response(response).map(FrontEndReading::Respond),
        wit::Reading::Submit(submit) => submit,
    };
    let count = submit.submissions.len();
    if count == 0 || count > MAX_SUBMISSIONS {
        return Err(Fault::verdict(format!("{count} submissions: a request has 1 to {MAX_SUBMISSIONS}")));
    }
    Ok(FrontEndReading::Submit(FrontEndSubmit {
        account: submit.credentials.account,
        password: submit.credentials.password,
        submissions: submit.submissions.into_iter().map(decode_submission).collect(),
        idempotency_key: submit.idempotency_key,
    }))
}

fn decode_submission(submission: wit::Submission) -> FrontEndSubmission {
    let (text, octets) = match submission.content {
        wit::Content::Text(text) => (Some(text), None),
        wit::Content::Octets(octets) => (None, Some(model::hex(&octets))),
    };
    let coding = match submission.coding {
        wit::Coding::Automatic => None,
        wit::Coding::Ascii => Some("ascii"),
        wit::Coding::Gsm => Some("gsm"),
        wit::Coding::Ucs2 => Some("ucs2"),
        wit::Coding::Gbk => Some("gbk"),
        wit::Coding::Binary => Some("binary"),
    };
    let receipts = match submission.receipts {
        wit::WantedReceipts::None => None,
        wit::WantedReceipts::Final => Some("final"),
        wit::WantedReceipts::Failure => Some("failure"),
        wit::WantedReceipts::All => Some("all"),
    };
    FrontEndSubmission {
        source: submission.source,
        destination: submission.destination,
        text,
        octets,
        coding: coding.map(str::to_owned),
        user_data_header: submission.user_data_header.map(|header| model::hex(&header)),
        message_class: submission.message_class,
        priority: submission.priority,
        validity: submission.validity,
        schedule: submission.schedule,
        receipts: receipts.map(str::to_owned),
        reference: submission.reference,
        tlvs: submission
            .tlvs
            .into_iter()
            .map(|tlv| (format!("{:04x}", tlv.tag), model::hex(&tlv.value)))
            .collect(),
    }
}

fn decode_response(response: wit::Response) -> Result<FrontEndResponse, Fault> {
    let wit::Response { status, headers, body } = response;
    if !(200..600).contains(&status) {
        return Err(Fault::verdict(format!("the response has status {status}: it is 200 to 599")));
    }
    if headers.len() > MAX_HEADERS {
        let count = headers.len();
        return Err(Fault::verdict(format!("the response has {count} headers: at most {MAX_HEADERS}")));
    }
    let headers = headers.into_iter().map(|header| (header.name, header.value)).collect();
    Ok(FrontEndResponse { status, headers, body })
}

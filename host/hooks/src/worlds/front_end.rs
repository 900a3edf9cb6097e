//! The front-end hook: translates the requests of another product's HTTP API into submissions, and their results into responses.

use super::http_messages::{PluginResponse, decode_response, header_params};
use super::{World, canary_bucket};
use crate::bindings::guest::exports::switchyard::hooks::translation as wit;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::front_end_calls::{
    FrontEndDlrPush, FrontEndDlrSignature, FrontEndOutcome, FrontEndReading, FrontEndRefusal,
    FrontEndRequest, FrontEndResult, FrontEndSubmission, FrontEndSubmit, RefusalReason,
};
use crate::generation::{Generation, Instance};
use crate::guest_function::{Exports, GuestFunction, Signature};
use crate::host_calls::InstanceState;
use api::Binding;
use model::{Directory, Hook, MessageId, PluginVersion};
use std::sync::Arc;

/// Maximum number of submissions of a request.
const MAX_SUBMISSIONS: usize = 1_000;

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
    Replied(PluginResponse),
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
        let headers = header_params(headers);
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

    fn to_owned_question(question: FrontEndQuestion<'_>) -> Self::Owned {
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

    /// Computed from the whole request: the host cannot find the destination in it.
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

fn describe_response(response: &PluginResponse) -> String {
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
        dlr_push: submission.dlr_push.map(decode_dlr_push),
    }
}

fn decode_dlr_push(push: wit::DlrPush) -> FrontEndDlrPush {
    let words = [
        ("enroute", push.words.enroute),
        ("delivered", push.words.delivered),
        ("expired", push.words.expired),
        ("deleted", push.words.deleted),
        ("undeliverable", push.words.undeliverable),
        ("accepted", push.words.accepted),
        ("unknown", push.words.unknown),
        ("rejected", push.words.rejected),
    ];
    FrontEndDlrPush {
        url: push.url,
        body: push.body,
        words: words.into_iter().filter_map(|(state, word)| Some((state.to_owned(), word?))).collect(),
        acknowledgement: push.acknowledgement,
        signature: push.signature.map(|wit::DlrSignature::Twilio| FrontEndDlrSignature::Twilio),
    }
}

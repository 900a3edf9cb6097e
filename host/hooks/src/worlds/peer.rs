//! The peer hook: submits messages to a peer with a protocol of its own, and reads the peer's callbacks.

use super::http_messages::{decode_response, header_params};
use super::{MessageTexts, World, accepted_id, address, canary_bucket, masked_route, message_record};
use crate::bindings::guest::exports::switchyard::hooks::peering as wit;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::generation::{Generation, Instance};
use crate::guest_function::{Exports, GuestFunction, Signature};
use crate::host_calls::InstanceState;
use crate::peer_calls::{
    CallbackAnswer, CallbackRequest, IncomingMessage, PeerReceipt, PeerSubmission, Submitted,
};
use crate::text_limits::truncate_note;
use api::Binding;
use model::{
    Directory, DlrState, ErrorClass, Hook, MessageId, Outcome, PeerMessageId, RemoteAttempt, Timestamp,
};
use std::time::Duration;

/// Maximum length of a peer's message id, in octets.
const MAX_ID: usize = 255;
/// Maximum number of receipts and of messages in one callback.
const MAX_RECEIPTS: usize = 1_000;
const MAX_MESSAGES: usize = 100;
/// The longest time for which a refusal can pause a peer.
const MAX_PAUSE: Duration = Duration::from_secs(3_600);

pub(crate) struct Peer;

#[derive(Clone, Copy)]
pub(crate) enum PeerQuestion<'a> {
    Submit(&'a PeerSubmission),
    Callback(&'a CallbackRequest),
}

pub(crate) enum OwnedPeerQuestion {
    Submit(PeerSubmission),
    Callback(CallbackRequest),
}

#[derive(Debug, Clone)]
pub(crate) enum PeerAnswer {
    Submitted(Submitted),
    Called(Box<CallbackAnswer>),
}

pub(crate) struct Submit;

impl Signature for Submit {
    const NAME: &'static str = "submit";
    type Arguments<'a> = (wit::Message<'a>, wit::Attempt<'a>);
    type Answer = wit::Submitted;
}

pub(crate) struct Callback;

impl Signature for Callback {
    const NAME: &'static str = "callback";
    type Arguments<'a> = (&'a str, wit::Request<'a>);
    type Answer = wit::Called;
}

/// The functions of an instance.
pub(crate) struct PeerGuest {
    submit: GuestFunction<Submit>,
    callback: GuestFunction<Callback>,
}

impl PeerQuestion<'_> {
    fn peer(&self) -> &str {
        match self {
            Self::Submit(submission) => &submission.peer,
            Self::Callback(request) => &request.peer,
        }
    }
}

impl World for Peer {
    const HOOK: Hook = Hook::Peer;
    const INTERFACE: &'static str = "peering";
    const HAS_SHADOW: bool = false;
    type Guest = PeerGuest;
    type Question<'a> = PeerQuestion<'a>;
    type Owned = OwnedPeerQuestion;
    type Answer = PeerAnswer;

    fn guest(exports: &mut Exports<'_>) -> wasmtime::Result<Self::Guest> {
        Ok(PeerGuest { submit: GuestFunction::find(exports)?, callback: GuestFunction::find(exports)? })
    }

    /// No self-check: a question would reach the peer.
    fn check(_: &mut Instance<Self>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn serves(binding: &Binding, question: PeerQuestion<'_>) -> bool {
        binding.peers.iter().any(|peer| peer == question.peer())
    }

    /// The live chain does not repeat a submission that a canary may have sent.
    fn may_repeat_question(fault: &Fault) -> bool {
        !fault.sent_request
    }

    fn prepare(state: &mut InstanceState, question: PeerQuestion<'_>, _: Option<&PeerAnswer>) {
        if let PeerQuestion::Submit(submission) = question {
            let message = &submission.message;
            state.set_message(message, message.routed.changes.as_deref());
        }
        state.peer = Some(question.peer().into());
        state.may_fetch = true;
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        question: PeerQuestion<'_>,
    ) -> wasmtime::Result<Result<PeerAnswer, Fault>> {
        match question {
            PeerQuestion::Submit(submission) => submit(generation, instance, submission),
            PeerQuestion::Callback(request) => {
                let headers = header_params(&request.headers);
                let question = wit::Request {
                    method: &request.method,
                    path: &request.path,
                    query: &request.query,
                    headers: &headers,
                    body: &request.body,
                };
                let called = instance.guest.callback.call(&mut instance.store, (&*request.peer, question))?;
                Ok(decode_called(called).map(|answer| PeerAnswer::Called(Box::new(answer))))
            }
        }
    }

    fn to_owned_question(question: PeerQuestion<'_>) -> OwnedPeerQuestion {
        match question {
            PeerQuestion::Submit(submission) => OwnedPeerQuestion::Submit(submission.clone()),
            PeerQuestion::Callback(request) => OwnedPeerQuestion::Callback(request.clone()),
        }
    }

    fn borrow_question(owned: &OwnedPeerQuestion) -> PeerQuestion<'_> {
        match owned {
            OwnedPeerQuestion::Submit(submission) => PeerQuestion::Submit(submission),
            OwnedPeerQuestion::Callback(request) => PeerQuestion::Callback(request),
        }
    }

    /// Callbacks have no destination: the live chain reads them, regardless of the canary's share.
    fn canary_bucket(question: PeerQuestion<'_>) -> u16 {
        match question {
            PeerQuestion::Submit(submission) => canary_bucket(&submission.message.destination.value),
            PeerQuestion::Callback(_) => u16::MAX,
        }
    }

    fn decides(_: &PeerAnswer) -> bool {
        true
    }

    fn is_same_answer(one: &PeerAnswer, other: &PeerAnswer) -> bool {
        match (one, other) {
            (PeerAnswer::Submitted(one), PeerAnswer::Submitted(other)) => one.outcome == other.outcome,
            (PeerAnswer::Called(one), PeerAnswer::Called(other)) => {
                one.receipts == other.receipts && one.messages == other.messages
            }
            _ => false,
        }
    }

    fn describe_answer(answer: &PeerAnswer, _: &Directory) -> String {
        match answer {
            PeerAnswer::Submitted(submitted) => match &submitted.outcome {
                Outcome::Accepted { .. } => "accepted".to_owned(),
                Outcome::Refused { class, code, .. } => format!("refused ({class:?}, code {code})"),
                Outcome::NotSent => "not sent".to_owned(),
                Outcome::Unanswered { .. } => "unsure".to_owned(),
            },
            PeerAnswer::Called(answer) => {
                format!("{} receipts, {} messages", answer.receipts.len(), answer.messages.len())
            }
        }
    }

    fn message_id(question: PeerQuestion<'_>) -> Option<MessageId> {
        match question {
            PeerQuestion::Submit(submission) => accepted_id(&submission.message),
            PeerQuestion::Callback(_) => None,
        }
    }

    /// The headers of a callback are left out: they may contain secrets.
    fn failed_question(question: PeerQuestion<'_>) -> FailedQuestion {
        match question {
            PeerQuestion::Submit(submission) => FailedQuestion::Submit(Box::new(submission.clone())),
            PeerQuestion::Callback(request) => {
                FailedQuestion::Callback(Box::new(CallbackRequest { headers: Vec::new(), ..request.clone() }))
            }
        }
    }

    fn describe_question(question: PeerQuestion<'_>, directory: &Directory) -> String {
        match question {
            PeerQuestion::Submit(submission) => {
                format!("{}: {}", submission.peer, masked_route(&submission.message, directory))
            }
            PeerQuestion::Callback(request) => format!("{}: callback, {}", request.peer, request.method),
        }
    }
}

fn submit(
    generation: &Generation<Peer>,
    instance: &mut Instance<Peer>,
    submission: &PeerSubmission,
) -> wasmtime::Result<Result<PeerAnswer, Fault>> {
    let message = &*submission.message;
    let directory = generation.environment.directory.load();
    let texts = MessageTexts::of(message, &directory);
    let (source, destination) = message.addresses_on(submission.leg);
    let (source_text, destination_text) = (source.text(), destination.text());
    let mut record = message_record(message, &texts);
    record.source = address(source, &source_text);
    record.destination = address(destination, &destination_text);
    let id = message.id.to_string();
    let key = format!("{id}-{}", submission.ticket.attempt);
    // Another partition has tried the message before.
    let number =
        RemoteAttempt::read(&message.protocol_fields).map_or(submission.ticket.attempt, |one| one.attempt);
    let attempt = wit::Attempt {
        peer: &submission.peer,
        id: &id,
        key: &key,
        number,
        wants_receipts: submission.want_dlr,
    };
    let submitted = instance.guest.submit.call(&mut instance.store, (record, attempt))?;
    let unanswered = instance.store.data().has_unanswered_request;
    Ok(decode_submitted(submitted, unanswered).map(PeerAnswer::Submitted))
}

/// `unanswered`: an HTTP request of the call got no response, so that a refusal is uncertain.
fn decode_submitted(submitted: wit::Submitted, unanswered: bool) -> Result<Submitted, Fault> {
    let mut pause = None;
    let outcome = match submitted.outcome {
        wit::Outcome::Accepted(id) => {
            let id = id.unwrap_or_default();
            if id.len() > MAX_ID {
                let length = id.len();
                return Err(Fault::verdict(format!("an id of {length} octets: it has at most {MAX_ID}")));
            }
            Outcome::Accepted { ids: vec![PeerMessageId::new(id.as_bytes())] }
        }
        wit::Outcome::Refused(_) if unanswered => uncertain_outcome(),
        wit::Outcome::Refused(refusal) => {
            let class = match refusal.class {
                wit::RefusalClass::Temporary => ErrorClass::Temporary,
                wit::RefusalClass::Permanent => ErrorClass::Permanent,
                wit::RefusalClass::Throttled => ErrorClass::Throttled,
                wit::RefusalClass::QueueFull => ErrorClass::QueueFull,
                wit::RefusalClass::Absent => ErrorClass::Absent,
                wit::RefusalClass::MemoryFull => ErrorClass::MemoryFull,
                wit::RefusalClass::UnknownSubscriber => ErrorClass::UnknownSubscriber,
            };
            if matches!(class, ErrorClass::Throttled | ErrorClass::QueueFull) {
                pause = refusal.retry_after.map(|after| Duration::from_millis(after).min(MAX_PAUSE));
            }
            Outcome::Refused { class, code: refusal.code, taken: Vec::new() }
        }
        wit::Outcome::Unsure => uncertain_outcome(),
    };
    Ok(Submitted { outcome, pause, note: truncate_note(submitted.note) })
}

pub(crate) fn uncertain_outcome() -> Outcome {
    Outcome::Unanswered { taken: Vec::new(), known: Vec::new() }
}

fn decode_called(called: wit::Called) -> Result<CallbackAnswer, Fault> {
    let response = decode_response(called.response)?;
    let (receipts, messages) = (called.receipts.len(), called.messages.len());
    if receipts > MAX_RECEIPTS || messages > MAX_MESSAGES {
        return Err(Fault::verdict(format!(
            "{receipts} receipts and {messages} messages: a callback has at most {MAX_RECEIPTS} and {MAX_MESSAGES}"
        )));
    }
    let receipts = called.receipts.into_iter().map(|receipt| {
        if receipt.id.is_empty() || receipt.id.len() > MAX_ID {
            let length = receipt.id.len();
            return Err(Fault::verdict(format!(
                "a receipt with an id of {length} octets: it has 1 to {MAX_ID}"
            )));
        }
        Ok(PeerReceipt {
            id: PeerMessageId::new(receipt.id.as_bytes()),
            subscriber: receipt.subscriber,
            sender: receipt.sender,
            state: dlr_state(receipt.state),
            error: receipt.error,
            at: receipt.at.map(Timestamp),
        })
    });
    let messages = called.messages.into_iter().map(|message| IncomingMessage {
        source: message.source,
        destination: message.destination,
        text: message.text,
    });
    Ok(CallbackAnswer {
        response,
        receipts: receipts.collect::<Result<_, _>>()?,
        messages: messages.collect(),
        note: truncate_note(called.note),
    })
}

fn dlr_state(state: wit::ReceiptState) -> DlrState {
    match state {
        wit::ReceiptState::Enroute => DlrState::Enroute,
        wit::ReceiptState::Delivered => DlrState::Delivered,
        wit::ReceiptState::Expired => DlrState::Expired,
        wit::ReceiptState::Deleted => DlrState::Deleted,
        wit::ReceiptState::Undeliverable => DlrState::Undeliverable,
        wit::ReceiptState::Accepted => DlrState::Accepted,
        wit::ReceiptState::Unknown => DlrState::Unknown,
        wit::ReceiptState::Rejected => DlrState::Rejected,
    }
}

//! The receipt hook: the step after a DLR, or after its absence.

use super::{
    MessageTexts, PROBE_DESTINATION, World, accepted_id, canary_bucket, clamped_duration, masked_route,
    message_record, probe,
};
use crate::bindings::guest::exports::switchyard::hooks::receipts as wit;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::generation::{Generation, Instance};
use crate::guest_function::{Exports, GuestFunction, Signature};
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::text_limits::truncate_note;
use model::{
    AcceptedSubmission, Directory, DlrState, Hook, Message, MessageId, ReceiptDecision, ReceiptEvent,
    ReceiptVerdict,
};
use std::time::Duration;

pub(crate) struct Receipt;

/// A question to a receipt policy.
#[derive(Clone, Copy)]
pub(crate) struct ReceiptQuestion<'a> {
    pub(crate) message: &'a Message,
    pub(crate) submission: AcceptedSubmission,
    pub(crate) event: ReceiptEvent,
}

pub(crate) struct Decide;

impl Signature for Decide {
    const NAME: &'static str = "decide";
    type Arguments<'a> = (wit::Message<'a>, wit::Submission<'a>, wit::Event);
    type Answer = wit::Decision;
}

impl World for Receipt {
    const HOOK: Hook = Hook::Receipt;
    const INTERFACE: &'static str = "receipts";
    const PASSING_IS_AN_ANSWER: bool = true;
    type Guest = GuestFunction<Decide>;
    type Question<'a> = ReceiptQuestion<'a>;
    type Owned = (Message, AcceptedSubmission, ReceiptEvent);
    type Answer = ReceiptDecision;

    fn guest(exports: &mut Exports<'_>) -> wasmtime::Result<Self::Guest> {
        GuestFunction::find(exports)
    }

    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()> {
        instance.store.data_mut().destination = Digits::of(PROBE_DESTINATION.as_bytes());
        let submission = wit::Submission {
            attempts: 1,
            leg: 0,
            legs: 1,
            peer: "self-check",
            age: 1_000,
            left: 86_400_000,
        };
        let dlr = wit::Dlr {
            final_: true,
            state: wit::DlrState::Delivered,
            error: 0,
            network_error: None,
            latency: 5_000,
        };
        let question = (probe(), submission, wit::Event::Dlr(dlr));
        instance.guest.call(&mut instance.store, question).map(drop)
    }

    fn prepare(state: &mut InstanceState, question: ReceiptQuestion<'_>, _: Option<&ReceiptDecision>) {
        state.set_message(question.message, question.message.routed.changes.as_deref());
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        ReceiptQuestion { message, submission, event }: ReceiptQuestion<'_>,
    ) -> wasmtime::Result<Result<ReceiptDecision, Fault>> {
        let directory = generation.environment.directory.load();
        let texts = MessageTexts::of(message, &directory);
        let peer = directory.name(submission.peer);
        let submission = wit::Submission {
            attempts: submission.attempts,
            leg: submission.leg.0,
            legs: submission.leg.1,
            peer: &peer,
            age: milliseconds(submission.age),
            left: milliseconds(submission.left),
        };
        let event = match event {
            ReceiptEvent::Accepted => wit::Event::Accepted,
            ReceiptEvent::Timeout => wit::Event::Timeout,
            ReceiptEvent::Dlr(dlr) => wit::Event::Dlr(wit::Dlr {
                final_: dlr.is_final,
                state: guest_state(dlr.state),
                error: dlr.error,
                network_error: dlr
                    .network_error
                    .map(|[one, two, three]| u32::from_be_bytes([0, one, two, three])),
                latency: milliseconds(dlr.latency),
            }),
        };
        let question = (message_record(message, &texts), submission, event);
        let decision = instance.guest.call(&mut instance.store, question)?;
        Ok(Ok(decode_answer(generation, decision)))
    }

    fn to_owned_question(question: ReceiptQuestion<'_>) -> Self::Owned {
        (question.message.clone(), question.submission, question.event)
    }

    fn borrow_question((message, submission, event): &Self::Owned) -> ReceiptQuestion<'_> {
        ReceiptQuestion { message, submission: *submission, event: *event }
    }

    fn canary_bucket(question: ReceiptQuestion<'_>) -> u16 {
        canary_bucket(&question.message.destination.value)
    }

    fn decides(decision: &ReceiptDecision) -> bool {
        decision.verdict != ReceiptVerdict::Accept
    }

    fn after(earlier: Option<ReceiptDecision>, mut answer: ReceiptDecision) -> ReceiptDecision {
        let Some(earlier) = earlier else { return answer };
        // The first wait counts.
        if answer.verdict == ReceiptVerdict::Accept && earlier.wait.is_some() {
            answer.by = earlier.by;
        }
        answer.wait = earlier.wait.or(answer.wait);
        answer.note = answer.note.or(earlier.note);
        answer
    }

    fn is_same_answer(one: &ReceiptDecision, other: &ReceiptDecision) -> bool {
        one.verdict == other.verdict && one.wait == other.wait
    }

    fn describe_answer(decision: &ReceiptDecision, _: &Directory) -> String {
        decision.to_string()
    }

    fn message_id(question: ReceiptQuestion<'_>) -> Option<MessageId> {
        accepted_id(question.message)
    }

    fn failed_question(question: ReceiptQuestion<'_>) -> FailedQuestion {
        FailedQuestion::Receipt(Box::new(Self::to_owned_question(question)))
    }

    fn describe_question(
        ReceiptQuestion { message, submission, event }: ReceiptQuestion<'_>,
        directory: &Directory,
    ) -> String {
        let route = masked_route(message, directory);
        let peer = directory.name(submission.peer);
        match event {
            ReceiptEvent::Accepted => format!("{route}, accepted by {peer}"),
            ReceiptEvent::Timeout => format!("{route}, no DLR from {peer}"),
            ReceiptEvent::Dlr(dlr) => {
                format!("{route}, DLR from {peer}: {}, error {}", dlr.state.name(), dlr.error)
            }
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn guest_state(state: DlrState) -> wit::DlrState {
    match state {
        DlrState::Scheduled => wit::DlrState::Scheduled,
        DlrState::Enroute => wit::DlrState::Enroute,
        DlrState::Delivered => wit::DlrState::Delivered,
        DlrState::Expired => wit::DlrState::Expired,
        DlrState::Deleted => wit::DlrState::Deleted,
        DlrState::Undeliverable => wit::DlrState::Undeliverable,
        DlrState::Accepted => wit::DlrState::Accepted,
        DlrState::Unknown => wit::DlrState::Unknown,
        DlrState::Rejected => wit::DlrState::Rejected,
        DlrState::Skipped => wit::DlrState::Skipped,
    }
}

fn host_state(state: wit::DlrState) -> DlrState {
    match state {
        wit::DlrState::Scheduled => DlrState::Scheduled,
        wit::DlrState::Enroute => DlrState::Enroute,
        wit::DlrState::Delivered => DlrState::Delivered,
        wit::DlrState::Expired => DlrState::Expired,
        wit::DlrState::Deleted => DlrState::Deleted,
        wit::DlrState::Undeliverable => DlrState::Undeliverable,
        wit::DlrState::Accepted => DlrState::Accepted,
        wit::DlrState::Unknown => DlrState::Unknown,
        wit::DlrState::Rejected => DlrState::Rejected,
        wit::DlrState::Skipped => DlrState::Skipped,
    }
}

fn decode_answer(generation: &Generation<Receipt>, decision: wit::Decision) -> ReceiptDecision {
    let verdict = match decision.step {
        wit::Step::Accept => ReceiptVerdict::Accept,
        wit::Step::NextLeg => ReceiptVerdict::NextLeg,
        wit::Step::Suspect => ReceiptVerdict::Suspect,
        wit::Step::Remap(wit::Remapped { state, error }) => {
            ReceiptVerdict::Remap { state: host_state(state), error }
        }
    };
    ReceiptDecision {
        verdict,
        wait: decision.wait.map(clamped_duration),
        by: generation.by.clone(),
        note: truncate_note(decision.note),
    }
}

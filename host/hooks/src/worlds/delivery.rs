//! The delivery policy hook: the step after a failed attempt.

use super::{
    MessageTexts, PROBE_DESTINATION, World, accepted_id, canary_bucket, clamped_duration, masked_route,
    message_record, probe,
};
use crate::bindings::guest::exports::switchyard::hooks::delivery as wit;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::generation::{Generation, Instance};
use crate::guest_function::{Exports, GuestFunction, Signature};
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::text_limits::truncate_note;
use model::{
    Attempt, DeliveryDecision, Directory, ErrorClass, Hook, Message, MessageId, NextStep, PeerAdvice,
};
use std::time::Duration;

pub(crate) struct DeliveryPolicy;

pub(crate) struct Next;

impl Signature for Next {
    const NAME: &'static str = "next";
    type Arguments<'a> = (wit::Message<'a>, wit::Attempt<'a>);
    type Answer = wit::NextStep;
}

impl World for DeliveryPolicy {
    const HOOK: Hook = Hook::DeliveryPolicy;
    const INTERFACE: &'static str = "delivery";
    type Guest = GuestFunction<Next>;
    type Question<'a> = (&'a Message, &'a Attempt);
    type Owned = (Message, Attempt);
    type Answer = DeliveryDecision;

    fn guest(exports: &mut Exports<'_>) -> wasmtime::Result<Self::Guest> {
        GuestFunction::find(exports)
    }

    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()> {
        instance.store.data_mut().destination = Digits::of(PROBE_DESTINATION.as_bytes());
        let attempt = wit::Attempt {
            number: 1,
            leg: 0,
            legs: 1,
            peer: "self-check",
            class: wit::ErrorClass::Temporary,
            code: 8,
            age: 1_000,
            left: 86_400_000,
        };
        instance.guest.call(&mut instance.store, (probe(), attempt)).map(drop)
    }

    fn prepare(state: &mut InstanceState, (message, _): (&Message, &Attempt), _: Option<&DeliveryDecision>) {
        state.set_message(message, message.routed.changes.as_deref());
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        (message, attempt): (&Message, &Attempt),
    ) -> wasmtime::Result<Result<DeliveryDecision, Fault>> {
        let directory = generation.environment.directory.load();
        let texts = MessageTexts::of(message, &directory);
        let peer = directory.name(attempt.peer);
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let attempt = wit::Attempt {
            number: attempt.number,
            leg: attempt.leg.0,
            legs: attempt.leg.1,
            peer: &peer,
            class: match attempt.class {
                ErrorClass::Temporary | ErrorClass::ThisMessage => wit::ErrorClass::Temporary,
                ErrorClass::Permanent | ErrorClass::UnknownSubscriber | ErrorClass::NumberMoved => {
                    wit::ErrorClass::Permanent
                }
                ErrorClass::Absent => wit::ErrorClass::Absent,
                ErrorClass::MemoryFull => wit::ErrorClass::MemoryFull,
                ErrorClass::Throttled | ErrorClass::QueueFull => wit::ErrorClass::Throttled,
            },
            code: attempt.code,
            age: milliseconds(attempt.age),
            left: milliseconds(attempt.left),
        };
        let question = message_record(message, &texts);
        let next = instance.guest.call(&mut instance.store, (question, attempt))?;
        Ok(decode_answer(generation, next))
    }

    fn to_owned_question((message, attempt): (&Message, &Attempt)) -> Self::Owned {
        (message.clone(), attempt.clone())
    }

    fn borrow_question((message, attempt): &Self::Owned) -> (&Message, &Attempt) {
        (message, attempt)
    }

    fn canary_bucket((message, _): Self::Question<'_>) -> u16 {
        canary_bucket(&message.destination.value)
    }

    fn decides(_: &DeliveryDecision) -> bool {
        true
    }

    fn is_same_answer(one: &DeliveryDecision, other: &DeliveryDecision) -> bool {
        one.step == other.step && one.advice == other.advice
    }

    fn describe_answer(next: &DeliveryDecision, _: &Directory) -> String {
        let advised = if next.advice == PeerAdvice::default() { "" } else { ", with advice" };
        match next.step {
            NextStep::RetryAfter(wait) => format!("retry after {} s{advised}", wait.as_secs_f32()),
            NextStep::NextLeg => format!("next leg{advised}"),
            NextStep::AwaitAlert(wait) => format!("await alert, {} s at most{advised}", wait.as_secs()),
            NextStep::Fail => format!("fail{advised}"),
        }
    }

    fn message_id((message, _): (&Message, &Attempt)) -> Option<MessageId> {
        accepted_id(message)
    }

    fn failed_question((message, attempt): (&Message, &Attempt)) -> FailedQuestion {
        FailedQuestion::Next(Box::new((message.clone(), attempt.clone())))
    }

    fn describe_question((message, attempt): (&Message, &Attempt), directory: &Directory) -> String {
        format!("{}, attempt {}, {:?}", masked_route(message, directory), attempt.number, attempt.class)
    }
}

fn decode_answer(
    generation: &Generation<DeliveryPolicy>,
    next: wit::NextStep,
) -> Result<DeliveryDecision, Fault> {
    let step = match next.step {
        wit::Step::RetryAfter(wait) => NextStep::RetryAfter(clamped_duration(wait)),
        wit::Step::NextLeg => NextStep::NextLeg,
        wit::Step::AwaitAlert(wait) => NextStep::AwaitAlert(clamped_duration(wait)),
        wit::Step::Fail => NextStep::Fail,
    };
    let advice = match next.advice {
        None => PeerAdvice::default(),
        Some(advice) => {
            if let Some(rate) = advice.rate
                && !(rate.is_finite() && rate > 0.0)
            {
                return Err(Fault::verdict(format!("a rate of {rate} messages a second")));
            }
            if advice.window == Some(0) {
                return Err(Fault::verdict("a window of 0: at least 1, or a pause".to_owned()));
            }
            PeerAdvice { pause: advice.pause.map(clamped_duration), rate: advice.rate, window: advice.window }
        }
    };
    Ok(DeliveryDecision { step, advice, by: generation.by.clone(), note: truncate_note(next.note) })
}

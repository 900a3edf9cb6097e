//! The delivery policy hook: the step after a failed attempt.

use super::{
    MessageTexts, World, accepted_id, canary_bucket, clamped_duration, masked_route, message_param, probe,
};
use crate::bindings::delivery as current;
use crate::bindings::delivery::exports::switchyard::hooks::delivery as wit;
use crate::contract::WitVersion;
use crate::fault::Fault;
use crate::generation::{Generation, Instance};
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::runtime::Runtime;
use crate::text_limits::truncate_note;
use model::{
    Attempt, DeliveryDecision, Directory, ErrorClass, Hook, Message, MessageId, NextStep, PeerAdvice,
};
use std::time::Duration;
use wasmtime::Store;
use wasmtime::component::Component;

pub(crate) struct DeliveryPolicy;

impl World for DeliveryPolicy {
    const HOOK: Hook = Hook::DeliveryPolicy;
    type Pre = current::DeliveryPolicyPre<InstanceState>;
    type Guest = current::DeliveryPolicy;
    type Question<'a> = (&'a Message, &'a Attempt);
    type Owned = (Message, Attempt);
    type Answer = DeliveryDecision;

    fn pre(runtime: &Runtime, component: &Component, version: WitVersion) -> wasmtime::Result<Self::Pre> {
        current::DeliveryPolicyPre::new(runtime.link(Hook::DeliveryPolicy, version, component)?)
    }

    fn instantiate(pre: &Self::Pre, store: &mut Store<InstanceState>) -> wasmtime::Result<Self::Guest> {
        pre.instantiate(store)
    }

    fn configure(
        guest: &Self::Guest,
        store: &mut Store<InstanceState>,
        document: &str,
    ) -> wasmtime::Result<Result<(), String>> {
        guest.switchyard_hooks_delivery().call_configure(store, document)
    }

    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()> {
        let Instance { store, guest } = instance;
        store.data_mut().destination = Digits::of(b"1000000000");
        let probe = probe!(wit, current::switchyard::hooks::types::Address);
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
        guest.switchyard_hooks_delivery().call_next(store, probe, attempt).map(drop)
    }

    fn prepare(state: &mut InstanceState, (message, _): (&Message, &Attempt)) {
        state.destination = Digits::of_address(&message.destination.value);
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        (message, attempt): (&Message, &Attempt),
    ) -> wasmtime::Result<Result<DeliveryDecision, Fault>> {
        let directory = generation.environment.directory.load();
        let texts = MessageTexts::of(message, &directory);
        let question = message_param!(wit, current::switchyard::hooks::types::Address, message, &texts);
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
        let Instance { store, guest } = instance;
        let next = guest.switchyard_hooks_delivery().call_next(store, question, attempt)?;
        Ok(decode_answer(generation, next))
    }

    fn own_question((message, attempt): (&Message, &Attempt)) -> Self::Owned {
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

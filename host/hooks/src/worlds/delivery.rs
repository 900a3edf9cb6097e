//! What follows a failed attempt?

use super::{Texts, World, id, lot, masked, message_param, probe, time};
use crate::bindings::delivery as current;
use crate::bindings::delivery::exports::switchyard::hooks::delivery as wit;
use crate::capabilities::State;
use crate::capabilities::tables::Digits;
use crate::fault::Fault;
use crate::generation::{Generation, Instance, note};
use crate::runtime::Runtime;
use crate::world::Wit;
use model::{Attempt, Directory, ErrorClass, Hook, Message, MessageId, Next, NextStep, PeerAdvice};
use std::time::Duration;
use wasmtime::Store;
use wasmtime::component::Component;

pub(crate) struct DeliveryPolicy;

impl World for DeliveryPolicy {
    const HOOK: Hook = Hook::DeliveryPolicy;
    type Pre = current::DeliveryPolicyPre<State>;
    type Guest = current::DeliveryPolicy;
    type Question<'a> = (&'a Message, &'a Attempt);
    type Owned = (Message, Attempt);
    type Answer = Next;

    fn pre(runtime: &Runtime, component: &Component, version: Wit) -> wasmtime::Result<Self::Pre> {
        current::DeliveryPolicyPre::new(runtime.link(Hook::DeliveryPolicy, version, component)?)
    }

    fn instantiate(pre: &Self::Pre, store: &mut Store<State>) -> wasmtime::Result<Self::Guest> {
        pre.instantiate(store)
    }

    fn configure(
        guest: &Self::Guest,
        store: &mut Store<State>,
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

    fn prepare(state: &mut State, (message, _): (&Message, &Attempt)) {
        state.destination = Digits::of_address(&message.destination.value);
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        (message, attempt): (&Message, &Attempt),
    ) -> wasmtime::Result<Result<Next, Fault>> {
        let directory = generation.around.directory.load();
        let texts = Texts::of(message, &directory);
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
        Ok(read(generation, next))
    }

    fn own((message, attempt): (&Message, &Attempt)) -> Self::Owned {
        (message.clone(), attempt.clone())
    }

    fn lend((message, attempt): &Self::Owned) -> (&Message, &Attempt) {
        (message, attempt)
    }

    fn lot((message, _): Self::Question<'_>) -> u16 {
        lot(&message.destination.value)
    }

    fn decides(_: &Next) -> bool {
        true
    }

    fn same(one: &Next, other: &Next) -> bool {
        one.step == other.step && one.advice == other.advice
    }

    fn words(next: &Next, _: &Directory) -> String {
        let advised = if next.advice == PeerAdvice::default() { "" } else { ", with advice" };
        match next.step {
            NextStep::RetryAfter(wait) => format!("retry after {} s{advised}", wait.as_secs_f32()),
            NextStep::NextLeg => format!("next leg{advised}"),
            NextStep::AwaitAlert(wait) => format!("await alert, {} s at most{advised}", wait.as_secs()),
            NextStep::Fail => format!("fail{advised}"),
        }
    }

    fn message((message, _): (&Message, &Attempt)) -> Option<MessageId> {
        id(message)
    }

    fn sample((message, attempt): (&Message, &Attempt), directory: &Directory) -> String {
        format!("{}, attempt {}, {:?}", masked(message, directory), attempt.number, attempt.class)
    }
}

fn read(generation: &Generation<DeliveryPolicy>, next: wit::NextStep) -> Result<Next, Fault> {
    let step = match next.step {
        wit::Step::RetryAfter(wait) => NextStep::RetryAfter(time(wait)),
        wit::Step::NextLeg => NextStep::NextLeg,
        wit::Step::AwaitAlert(wait) => NextStep::AwaitAlert(time(wait)),
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
            PeerAdvice { pause: advice.pause.map(time), rate: advice.rate, window: advice.window }
        }
    };
    Ok(Next { step, advice, by: generation.by.clone(), note: note(next.note) })
}

//! The biller hook: the price of a message.

use super::{MessageTexts, World, accepted_id, canary_bucket, masked_route, message_param, probe};
use crate::bindings::biller as current;
use crate::bindings::biller::exports::switchyard::hooks::billing as wit;
use crate::contract::WitVersion;
use crate::fault::Fault;
use crate::generation::{Generation, Instance};
use crate::host_call_log::HostCallLog;
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::runtime::Runtime;
use crate::text_limits::{MAX_REASON_OCTETS, truncate, truncate_note};
use model::{Charge, Directory, Hook, Leg, Message, MessageId, Quote, Settlement, Timestamp};
use wasmtime::Store;
use wasmtime::component::Component;

pub(crate) struct Biller;

/// A price; `Err` is a refusal.
#[derive(Clone)]
pub(crate) struct PriceAnswer {
    pub(crate) quote: Result<Quote, Option<Box<str>>>,
}

impl World for Biller {
    const HOOK: Hook = Hook::Biller;
    type Pre = current::BillerPre<InstanceState>;
    type Guest = current::Biller;
    type Question<'a> = (&'a Message, Option<&'a Leg>);
    type Owned = (Message, Option<Leg>);
    type Answer = PriceAnswer;

    fn pre(runtime: &Runtime, component: &Component, version: WitVersion) -> wasmtime::Result<Self::Pre> {
        current::BillerPre::new(runtime.link(Hook::Biller, version, component)?)
    }

    fn instantiate(pre: &Self::Pre, store: &mut Store<InstanceState>) -> wasmtime::Result<Self::Guest> {
        pre.instantiate(store)
    }

    fn configure(
        guest: &Self::Guest,
        store: &mut Store<InstanceState>,
        document: &str,
    ) -> wasmtime::Result<Result<(), String>> {
        guest.switchyard_hooks_billing().call_configure(store, document)
    }

    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()> {
        let Instance { store, guest } = instance;
        store.data_mut().destination = Digits::of(b"1000000000");
        store.data_mut().may_fetch = false;
        let probe = probe!(wit, current::switchyard::hooks::types::Address);
        guest.switchyard_hooks_billing().call_price(store, probe, None).map(drop)
    }

    fn prepare(state: &mut InstanceState, (message, _): Self::Question<'_>) {
        state.destination = Digits::of_address(&message.destination.value);
        state.may_fetch = false;
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        (message, leg): Self::Question<'_>,
    ) -> wasmtime::Result<Result<PriceAnswer, Fault>> {
        let directory = generation.environment.directory.load();
        let texts = MessageTexts::of(message, &directory);
        let question = message_param!(wit, current::switchyard::hooks::types::Address, message, &texts);
        let peer = leg.map(|leg| (directory.name(leg.peer), leg.cost));
        let leg = peer.as_ref().map(|(peer, cost)| wit::FirstLeg { peer, cost: *cost });
        let Instance { store, guest } = instance;
        let quote = guest.switchyard_hooks_billing().call_price(store, question, leg)?;
        Ok(decode_answer(generation, quote))
    }

    fn own_question((message, leg): Self::Question<'_>) -> Self::Owned {
        (message.clone(), leg.cloned())
    }

    fn borrow_question((message, leg): &Self::Owned) -> Self::Question<'_> {
        (message, leg.as_ref())
    }

    fn canary_bucket((message, _): Self::Question<'_>) -> u16 {
        canary_bucket(&message.destination.value)
    }

    fn decides(_: &PriceAnswer) -> bool {
        true
    }

    fn is_same_answer(one: &PriceAnswer, other: &PriceAnswer) -> bool {
        match (&one.quote, &other.quote) {
            (Ok(one), Ok(other)) => one.charge == other.charge,
            (one, other) => one.is_err() && other.is_err(),
        }
    }

    fn describe_answer(price: &PriceAnswer, _: &Directory) -> String {
        match &price.quote {
            Err(_) => "refuse".to_owned(),
            Ok(Quote { charge: None, .. }) => "free".to_owned(),
            Ok(Quote { charge: Some(charge), .. }) => format!("{} from {}", charge.amount, charge.account),
        }
    }

    fn message_id((message, _): Self::Question<'_>) -> Option<MessageId> {
        accepted_id(message)
    }

    fn describe_question((message, _): Self::Question<'_>, directory: &Directory) -> String {
        masked_route(message, directory)
    }
}

impl Generation<Biller> {
    /// Reports settlements to the plugin. The inner error is the plugin's own; the caller reports them again later.
    pub(crate) fn settle(
        &self,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Result<(), String>, Fault> {
        let result: Vec<wit::Settlement<'_>> = settlements
            .iter()
            .map(|one| wit::Settlement {
                serial: one.serial,
                message: one.message.0,
                account: &one.account,
                amount: one.amount,
                captured: one.captured,
                at: one.at.0,
            })
            .collect();
        let result = self.call(now, &mut HostCallLog::Off, |instance| {
            instance.store.data_mut().may_fetch = true;
            let Instance { store, guest } = instance;
            guest.switchyard_hooks_billing().call_settle(store, &result).map(Ok)
        })?;
        Ok(result.map_err(|why| truncate(why, MAX_REASON_OCTETS)))
    }
}

fn decode_answer(generation: &Generation<Biller>, quote: wit::Quote) -> Result<PriceAnswer, Fault> {
    let note = truncate_note(quote.note);
    let charge = match quote.price {
        wit::Fee::Refuse => return Ok(PriceAnswer { quote: Err(note) }),
        wit::Fee::Free => None,
        wit::Fee::Charge(charge) => {
            if charge.account.is_empty() || charge.account.len() > 64 {
                let length = charge.account.len();
                return Err(Fault::verdict(format!("an account's name of {length} octets: it has 1 to 64")));
            }
            if charge.amount > Charge::MAX {
                return Err(Fault::verdict(format!("a price of {}: at most {}", charge.amount, Charge::MAX)));
            }
            Some(Charge {
                account: charge.account.into(),
                amount: charge.amount,
                keep_on_failure: charge.keep_on_failure,
                settle: charge.settle,
            })
        }
    };
    Ok(PriceAnswer { quote: Ok(Quote { charge, by: generation.by.clone(), note }) })
}

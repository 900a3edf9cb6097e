//! What does a message cost?

use super::{Texts, World, id, lot, masked, message_param, probe};
use crate::bindings::biller as current;
use crate::bindings::biller::exports::switchyard::hooks::billing as wit;
use crate::capabilities::State;
use crate::capabilities::tables::Digits;
use crate::fault::Fault;
use crate::generation::{Generation, Instance, REFUSAL, note, short};
use crate::runtime::Runtime;
use crate::seen::Seen;
use crate::world::Wit;
use model::{Charge, Directory, Hook, Leg, Message, MessageId, Quote, Settlement, Timestamp};
use wasmtime::Store;
use wasmtime::component::Component;

pub(crate) struct Biller;

/// A price; `Err` is a refusal.
#[derive(Clone)]
pub(crate) struct Price {
    pub(crate) quote: Result<Quote, Option<Box<str>>>,
}

impl World for Biller {
    const HOOK: Hook = Hook::Biller;
    type Pre = current::BillerPre<State>;
    type Guest = current::Biller;
    type Question<'a> = (&'a Message, Option<&'a Leg>);
    type Owned = (Message, Option<Leg>);
    type Answer = Price;

    fn pre(runtime: &Runtime, component: &Component, version: Wit) -> wasmtime::Result<Self::Pre> {
        current::BillerPre::new(runtime.link(Hook::Biller, version, component)?)
    }

    fn instantiate(pre: &Self::Pre, store: &mut Store<State>) -> wasmtime::Result<Self::Guest> {
        pre.instantiate(store)
    }

    fn configure(
        guest: &Self::Guest,
        store: &mut Store<State>,
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

    fn prepare(state: &mut State, (message, _): Self::Question<'_>) {
        state.destination = Digits::of_address(&message.destination.value);
        state.may_fetch = false;
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        (message, leg): Self::Question<'_>,
    ) -> wasmtime::Result<Result<Price, Fault>> {
        let directory = generation.around.directory.load();
        let texts = Texts::of(message, &directory);
        let question = message_param!(wit, current::switchyard::hooks::types::Address, message, &texts);
        let peer = leg.map(|leg| (directory.name(leg.peer), leg.cost));
        let leg = peer.as_ref().map(|(peer, cost)| wit::FirstLeg { peer, cost: *cost });
        let Instance { store, guest } = instance;
        let quote = guest.switchyard_hooks_billing().call_price(store, question, leg)?;
        Ok(read(generation, quote))
    }

    fn own((message, leg): Self::Question<'_>) -> Self::Owned {
        (message.clone(), leg.cloned())
    }

    fn lend((message, leg): &Self::Owned) -> Self::Question<'_> {
        (message, leg.as_ref())
    }

    fn lot((message, _): Self::Question<'_>) -> u16 {
        lot(&message.destination.value)
    }

    fn decides(_: &Price) -> bool {
        true
    }

    fn same(one: &Price, other: &Price) -> bool {
        match (&one.quote, &other.quote) {
            (Ok(one), Ok(other)) => one.charge == other.charge,
            (one, other) => one.is_err() && other.is_err(),
        }
    }

    fn words(price: &Price, _: &Directory) -> String {
        match &price.quote {
            Err(_) => "refuse".to_owned(),
            Ok(Quote { charge: None, .. }) => "free".to_owned(),
            Ok(Quote { charge: Some(charge), .. }) => format!("{} from {}", charge.amount, charge.account),
        }
    }

    fn message((message, _): Self::Question<'_>) -> Option<MessageId> {
        id(message)
    }

    fn sample((message, _): Self::Question<'_>, directory: &Directory) -> String {
        masked(message, directory)
    }
}

impl Generation<Biller> {
    /// Tells the plugin how charges ended. The inner error is its own: it is told again later.
    pub(crate) fn settle(
        &self,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<Result<(), String>, Fault> {
        let told: Vec<wit::Settlement<'_>> = settlements
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
        let told = self.call(now, &mut Seen::Off, |instance| {
            instance.store.data_mut().may_fetch = true;
            let Instance { store, guest } = instance;
            guest.switchyard_hooks_billing().call_settle(store, &told).map(Ok)
        })?;
        Ok(told.map_err(|why| short(why, REFUSAL)))
    }
}

fn read(generation: &Generation<Biller>, quote: wit::Quote) -> Result<Price, Fault> {
    let note = note(quote.note);
    let charge = match quote.price {
        wit::Fee::Refuse => return Ok(Price { quote: Err(note) }),
        wit::Fee::Free => None,
        wit::Fee::Charge(charge) => {
            if charge.account.is_empty() || charge.account.len() > 64 {
                let length = charge.account.len();
                return Err(Fault::verdict(format!("an account's name of {length} octets: 1 to 64 fit")));
            }
            if charge.amount > Charge::MOST {
                return Err(Fault::verdict(format!(
                    "a price of {}: at most {}",
                    charge.amount,
                    Charge::MOST
                )));
            }
            Some(Charge {
                account: charge.account.into(),
                amount: charge.amount,
                keep_on_failure: charge.keep_on_failure,
                settle: charge.settle,
            })
        }
    };
    Ok(Price { quote: Ok(Quote { charge, by: generation.by.clone(), note }) })
}

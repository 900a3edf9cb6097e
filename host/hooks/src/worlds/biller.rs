//! The biller hook: the price of a message.

use super::message_batch::MessageBatch;
use super::{
    MessageTexts, PROBE_DESTINATION, World, accepted_id, canary_bucket, masked_route, message_record, probe,
};
use crate::bindings::guest::exports::switchyard::hooks::{batch_billing, billing as wit};
use crate::bindings::guest::switchyard::hooks::types;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::generation::{Generation, Instance};
use crate::guest_function::{Exports, GuestFunction, Procedure, Signature};
use crate::host_call_log::HostCallLog;
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::text_limits::{MAX_REASON_OCTETS, truncate, truncate_note};
use model::{Charge, Directory, Hook, Leg, Message, MessageChanges, MessageId, Quote, Settlement, Timestamp};

pub(crate) struct Biller;

pub(crate) struct Price;

impl Signature for Price {
    const NAME: &'static str = "price";
    type Arguments<'a> = (wit::Message<'a>, Option<wit::FirstLeg<'a>>);
    type Answer = wit::Quote;
}

pub(crate) struct Settle;

impl Signature for Settle {
    const NAME: &'static str = "settle";
    type Arguments<'a> = (&'a [wit::Settlement<'a>],);
    type Answer = Result<(), String>;
}

pub(crate) struct Load;

impl Procedure for Load {
    const NAME: &'static str = "load";
    type Arguments<'a> = (types::MessageBatch<'a>, &'a [Option<batch_billing::BatchLeg>]);
}

pub(crate) struct PriceLoaded;

impl Signature for PriceLoaded {
    const NAME: &'static str = "price-loaded";
    type Arguments<'a> = (u32,);
    type Answer = wit::Quote;
}

/// `batch-billing`.
pub(crate) struct BatchBilling {
    load: GuestFunction<Load>,
    price_loaded: GuestFunction<PriceLoaded>,
}

impl BatchBilling {
    fn find(exports: &mut Exports<'_>) -> wasmtime::Result<Option<Self>> {
        let Some(mut exports) = exports.optional("batch-billing") else { return Ok(None) };
        let load = GuestFunction::find_procedure(&mut exports)?;
        Ok(Some(Self { load, price_loaded: GuestFunction::find(&mut exports)? }))
    }
}

/// The functions of a biller.
pub(crate) struct BillerGuest {
    price: GuestFunction<Price>,
    settle: GuestFunction<Settle>,
    batch: Option<BatchBilling>,
}

/// A message to price.
#[derive(Clone, Copy)]
pub(crate) struct PriceQuestion<'a> {
    pub(crate) message: &'a Message,
    /// The leg that is tried first, if it is known.
    pub(crate) leg: Option<&'a Leg>,
    /// The changes of the router that has just decided; `None` if the message has them already.
    pub(crate) changes: Option<&'a MessageChanges>,
}

/// A price; `Err` is a refusal.
#[derive(Clone)]
pub(crate) struct PriceAnswer {
    pub(crate) quote: Result<Quote, Option<Box<str>>>,
}

impl World for Biller {
    const HOOK: Hook = Hook::Biller;
    const INTERFACE: &'static str = "billing";
    type Guest = BillerGuest;
    type Question<'a> = PriceQuestion<'a>;
    type Owned = (Message, Option<Leg>, Option<MessageChanges>);
    type Answer = PriceAnswer;

    fn guest(exports: &mut Exports<'_>) -> wasmtime::Result<Self::Guest> {
        let (price, settle) = (GuestFunction::find(exports)?, GuestFunction::find(exports)?);
        Ok(BillerGuest { price, settle, batch: BatchBilling::find(exports)? })
    }

    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()> {
        let Instance { store, guest, .. } = instance;
        store.data_mut().destination = Digits::of(PROBE_DESTINATION.as_bytes());
        store.data_mut().may_fetch = false;
        guest.price.call(store, (probe(), None)).map(drop)
    }

    fn prepare(state: &mut InstanceState, question: PriceQuestion<'_>, _: Option<&PriceAnswer>) {
        let PriceQuestion { message, changes, .. } = question;
        state.set_message(message, changes.or(message.routed.changes.as_deref()));
        state.may_fetch = false;
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        PriceQuestion { message, leg, .. }: PriceQuestion<'_>,
    ) -> wasmtime::Result<Result<PriceAnswer, Fault>> {
        let directory = generation.environment.directory.load();
        let texts = MessageTexts::of(message, &directory);
        let question = message_record(message, &texts);
        let peer = leg.map(|leg| (directory.name(leg.peer), leg.cost));
        let leg = peer.as_ref().map(|(peer, cost)| wit::FirstLeg { peer, cost: *cost });
        let quote = instance.guest.price.call(&mut instance.store, (question, leg))?;
        Ok(decode_answer(generation, quote))
    }

    fn accepts_batches(guest: &BillerGuest) -> bool {
        guest.batch.is_some()
    }

    fn load(
        generation: &Generation<Self>,
        Instance { store, guest }: &mut Instance<Self>,
        questions: &[(PriceQuestion<'_>, Option<&PriceAnswer>)],
    ) -> wasmtime::Result<()> {
        let Some(billing) = &guest.batch else { return Ok(()) };
        let directory = generation.environment.directory.load();
        let mut batch = MessageBatch::with_capacity(questions.len());
        let legs: Vec<_> = questions
            .iter()
            .map(|(PriceQuestion { message, leg, .. }, _)| {
                batch.push(message, &message.text, &directory);
                leg.map(|leg| batch_billing::BatchLeg {
                    peer: batch.push_text(&directory.name(leg.peer)),
                    cost: leg.cost,
                })
            })
            .collect();
        billing.load.run(store, (batch.argument(), &legs))
    }

    fn ask_loaded(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        index: u32,
        question: PriceQuestion<'_>,
    ) -> wasmtime::Result<Result<PriceAnswer, Fault>> {
        let Instance { store, guest } = &mut *instance;
        let Some(billing) = &guest.batch else { return Self::ask(generation, instance, question) };
        Ok(decode_answer(generation, billing.price_loaded.call(store, (index,))?))
    }

    fn to_owned_question(PriceQuestion { message, leg, changes }: PriceQuestion<'_>) -> Self::Owned {
        (message.clone(), leg.cloned(), changes.cloned())
    }

    fn borrow_question((message, leg, changes): &Self::Owned) -> PriceQuestion<'_> {
        PriceQuestion { message, leg: leg.as_ref(), changes: changes.as_ref() }
    }

    fn canary_bucket(question: PriceQuestion<'_>) -> u16 {
        canary_bucket(&question.message.destination.value)
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

    fn message_id(question: PriceQuestion<'_>) -> Option<MessageId> {
        accepted_id(question.message)
    }

    fn failed_question(PriceQuestion { message, leg, changes }: PriceQuestion<'_>) -> FailedQuestion {
        let mut message = message.clone();
        if let Some(changes) = changes {
            message.routed.changes = Some(Box::new(changes.clone()));
        }
        FailedQuestion::Price(Box::new((message, leg.cloned())))
    }

    fn describe_question(question: PriceQuestion<'_>, directory: &Directory) -> String {
        masked_route(question.message, directory)
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
            instance.guest.settle.call(&mut instance.store, (&result,)).map(Ok)
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
                tenants: Vec::new(),
            })
        }
    };
    Ok(PriceAnswer { quote: Ok(Quote { charge, by: generation.by.clone(), note }) })
}

//! The router hook: the next step of a message.

mod previous;

use super::changes::{convert_changes, reject_reason};
use super::message_batch::MessageBatch;
use super::{
    MessageTexts, PROBE_DESTINATION, World, accepted_id, canary_bucket, masked_route, message_record, probe,
};
use crate::bindings::guest::exports::switchyard::hooks::routing as wit;
use crate::bindings::guest::switchyard::hooks::types::{self, AddressResult};
use crate::contract::WitVersion;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::generation::{Generation, Instance};
use crate::guest_function::{Exports, GuestFunction, Procedure, Signature};
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::tenant_bindings::TENANT_ATTRIBUTE_PREFIX;
use crate::text_limits::truncate_note;
use model::{
    Address, Directory, Hook, Leg, Message, MessageChanges, MessageId, PeerId, SenderRequest, Timestamp,
    Verdict,
};
use std::time::Duration;

pub(crate) struct Router;

/// The last millisecond of the year 9999. A later hold time cannot be shown as a date.
const MAX_HOLD_TIME: Timestamp = Timestamp(253_402_300_799_999);

/// A router's decision, in host types.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The verdict; `None`: pass.
    pub verdict: Option<Verdict>,
    /// The requested sender of the message; with a forward verdict only.
    pub sender: Option<Box<SenderRequest>>,
    /// The changes to the message, if any; they count only with a forward verdict.
    pub changes: Option<Box<MessageChanges>>,
    /// The reason.
    pub note: Option<Box<str>>,
}

impl Decision {
    /// If the request names no holder of the number, the message's origin is the holder.
    fn with_sender(
        mut self,
        sender: Option<Box<SenderRequest>>,
        message: &Message,
        directory: &Directory,
    ) -> Self {
        if matches!(self.verdict, Some(Verdict::Forward(_))) {
            self.sender = sender.map(|mut request| {
                if request.holder.is_empty() {
                    request.holder = (*directory.name(message.origin)).into();
                }
                request
            });
        }
        self
    }
}

pub(crate) struct Route;

impl Signature for Route {
    const NAME: &'static str = "route";
    type Arguments<'a> = (wit::Message<'a>,);
    type Answer = wit::Decision;
}

pub(crate) struct Load;

impl Procedure for Load {
    const NAME: &'static str = "load";
    type Arguments<'a> = (types::MessageBatch<'a>,);
}

pub(crate) struct RouteLoaded;

impl Signature for RouteLoaded {
    const NAME: &'static str = "route-loaded";
    type Arguments<'a> = (u32,);
    type Answer = wit::Decision;
}

/// `batch-routing`.
pub(crate) struct BatchRouting {
    load: GuestFunction<Load>,
    route_loaded: GuestFunction<RouteLoaded>,
}

impl BatchRouting {
    fn find(exports: &mut Exports<'_>) -> wasmtime::Result<Option<Self>> {
        let Some(mut exports) = exports.optional("batch-routing") else { return Ok(None) };
        let load = GuestFunction::find_procedure(&mut exports)?;
        Ok(Some(Self { load, route_loaded: GuestFunction::find(&mut exports)? }))
    }
}

/// `route` in each contract version, and `batch-routing` if the plugin has it.
pub(crate) enum RouterGuest {
    V0_3(GuestFunction<Route>, Option<BatchRouting>),
    V0_2(GuestFunction<previous::RouteV0_2>),
    V0_1(GuestFunction<previous::RouteV0_1>),
}

impl RouterGuest {
    fn call(
        &self,
        store: &mut wasmtime::Store<InstanceState>,
        message: wit::Message<'_>,
    ) -> wasmtime::Result<wit::Decision> {
        match self {
            Self::V0_3(route, _) => route.call(store, (message,)),
            Self::V0_2(route) => route.call(store, (message,)).map(Into::into),
            Self::V0_1(route) => route.call(store, (message.into(),)).map(Into::into),
        }
    }

    fn batch(&self) -> Option<&BatchRouting> {
        match self {
            Self::V0_3(_, batch) => batch.as_ref(),
            Self::V0_2(_) | Self::V0_1(_) => None,
        }
    }
}

/// The answer of an instance, with the requests that it made for the message through imports.
fn finish_answer(
    generation: &Generation<Router>,
    directory: &Directory,
    (message, state): (&Message, &mut InstanceState),
    decision: wit::Decision,
) -> Result<Decision, Fault> {
    let sender = state.sender.take();
    Ok(decode_answer(generation, directory, decision)?.with_sender(sender, message, directory))
}

impl World for Router {
    const HOOK: Hook = Hook::Router;
    const INTERFACE: &'static str = "routing";
    const HAS_TENANTS: bool = true;
    type Guest = RouterGuest;
    type Question<'a> = &'a Message;
    type Owned = Message;
    type Answer = Decision;

    fn guest(exports: &mut Exports<'_>) -> wasmtime::Result<RouterGuest> {
        Ok(match exports.version {
            WitVersion::V0_3 => {
                let route = GuestFunction::find(exports)?;
                RouterGuest::V0_3(route, BatchRouting::find(exports)?)
            }
            WitVersion::V0_2 => RouterGuest::V0_2(GuestFunction::find(exports)?),
            WitVersion::V0_1 => RouterGuest::V0_1(GuestFunction::find(exports)?),
        })
    }

    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()> {
        instance.store.data_mut().destination = Digits::of(PROBE_DESTINATION.as_bytes());
        instance.guest.call(&mut instance.store, probe()).map(drop)
    }

    fn prepare(state: &mut InstanceState, message: &Message, earlier: Option<&Decision>) {
        state.set_message(message, earlier.and_then(|earlier| earlier.changes.as_deref()));
        state.sender = None;
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        message: &Message,
    ) -> wasmtime::Result<Result<Decision, Fault>> {
        let directory = generation.environment.directory.load();
        let texts = MessageTexts::of(message, &directory);
        let decision = instance.guest.call(&mut instance.store, message_record(message, &texts))?;
        Ok(finish_answer(generation, &directory, (message, instance.store.data_mut()), decision))
    }

    fn accepts_batches(guest: &RouterGuest) -> bool {
        guest.batch().is_some()
    }

    fn load(
        generation: &Generation<Self>,
        Instance { store, guest }: &mut Instance<Self>,
        messages: &[(&Message, Option<&Decision>)],
    ) -> wasmtime::Result<()> {
        let Some(routing) = guest.batch() else { return Ok(()) };
        let directory = generation.environment.directory.load();
        let mut batch = MessageBatch::with_capacity(messages.len());
        messages.iter().for_each(|(message, _)| batch.push(message, &message.text, &directory));
        routing.load.run(store, (batch.argument(),))
    }

    fn ask_loaded(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        index: u32,
        message: &Message,
    ) -> wasmtime::Result<Result<Decision, Fault>> {
        let Instance { store, guest } = &mut *instance;
        let Some(routing) = guest.batch() else { return Self::ask(generation, instance, message) };
        let decision = routing.route_loaded.call(store, (index,))?;
        let directory = generation.environment.directory.load();
        Ok(finish_answer(generation, &directory, (message, store.data_mut()), decision))
    }

    fn to_owned_question(message: &Message) -> Message {
        message.clone()
    }

    fn borrow_question(message: &Message) -> &Message {
        message
    }

    fn account(message: &Message) -> Option<PeerId> {
        Some(message.origin)
    }

    fn canary_bucket(message: &Message) -> u16 {
        canary_bucket(&message.destination.value)
    }

    fn decides(decision: &Decision) -> bool {
        decision.verdict.is_some()
    }

    fn after(earlier: Option<Decision>, mut answer: Decision) -> Decision {
        if let Some(mut changes) = earlier.and_then(|earlier| earlier.changes) {
            if let Some(own) = answer.changes.take() {
                changes.extend(*own);
            }
            answer.changes = Some(changes);
        }
        answer
    }

    fn is_same_answer(one: &Decision, other: &Decision) -> bool {
        one.verdict == other.verdict && one.sender == other.sender && one.changes == other.changes
    }

    fn describe_answer(decision: &Decision, directory: &Directory) -> String {
        let Some(verdict) = &decision.verdict else { return "pass".to_owned() };
        let mut words = match verdict {
            Verdict::Forward(legs) if legs.iter().all(|leg| leg.resolve) => "home".to_owned(),
            Verdict::Forward(legs) => {
                let legs: Vec<String> = legs.iter().map(|leg| describe_leg(leg, directory)).collect();
                format!("forward {}", legs.join(", "))
            }
            Verdict::Hold(_) => "hold".to_owned(),
            Verdict::Reject(reason) => format!("reject {reason}"),
            // No router returns these.
            Verdict::Quarantine | Verdict::AwaitLookup | Verdict::Drop(_) => {
                verdict.map_peers(|peer| directory.name(*peer)).to_string()
            }
        };
        if let Some(request) = &decision.sender {
            words.push_str(&format!(", sender of {} else {}", request.pool, request.otherwise.name()));
        }
        if let Some(changes) = &decision.changes {
            words.push_str(&format!(", {changes}"));
        }
        words
    }

    fn message_id(message: &Message) -> Option<MessageId> {
        accepted_id(message)
    }

    fn failed_question(message: &Message) -> FailedQuestion {
        FailedQuestion::Route(Box::new(message.clone()))
    }

    fn describe_question(message: &Message, directory: &Directory) -> String {
        masked_route(message, directory)
    }
}

fn describe_leg(leg: &Leg, directory: &Directory) -> String {
    let mut words = directory.name(leg.peer).to_string();
    if leg.rank > 0 {
        words.push_str(&format!(" (rank {})", leg.rank));
    }
    if leg.source.is_some() || leg.destination.is_some() {
        words.push_str(" rewritten");
    }
    words
}

fn decode_answer(
    generation: &Generation<Router>,
    directory: &Directory,
    decision: wit::Decision,
) -> Result<Decision, Fault> {
    check_tenant_limits(generation, directory, &decision)?;
    let verdict = match decision.verdict {
        wit::Verdict::Pass => None,
        wit::Verdict::Forward(legs) => Some(Verdict::Forward(convert_legs(legs, directory)?)),
        wit::Verdict::Home => {
            let home = generation.environment.home.ok_or_else(|| {
                Fault::verdict("home, but the configuration names no peer for it ([home] peer)".to_owned())
            })?;
            Some(Verdict::Forward(vec![Leg { resolve: true, ..Leg::to(home) }]))
        }
        wit::Verdict::Hold(until) => Some(Verdict::Hold(Timestamp(until).min(MAX_HOLD_TIME))),
        wit::Verdict::Reject(reason) => Some(Verdict::Reject(reject_reason(reason))),
    };
    let changes = convert_changes(decision.changes, directory)?;
    Ok(Decision { verdict, sender: None, changes, note: truncate_note(decision.note) })
}

/// Refuses decisions that a tenant's router must not make: peers outside its binding, attributes without the tenant prefix,
/// and pace limits of the appliance.
fn check_tenant_limits(
    generation: &Generation<Router>,
    directory: &Directory,
    decision: &wit::Decision,
) -> Result<(), Fault> {
    let Some(tenant) = &generation.binding.tenant else { return Ok(()) };
    let shown = |name: &str| name.chars().take(64).collect::<String>();
    let check_peer = |peer: &str| match generation.binding.peers.iter().any(|allowed| allowed == peer) {
        true => Ok(()),
        false => Err(Fault::verdict(format!(
            "forwarded to peer {:?}, which is not among the `peers` of its binding for tenant {tenant}",
            shown(peer)
        ))),
    };
    match &decision.verdict {
        wit::Verdict::Forward(legs) => legs.iter().try_for_each(|leg| check_peer(&leg.peer))?,
        wit::Verdict::Home => {
            generation.environment.home.map_or(Ok(()), |home| check_peer(&directory.name(home)))?;
        }
        wit::Verdict::Pass | wit::Verdict::Hold(_) | wit::Verdict::Reject(_) => {}
    }
    for change in &decision.changes {
        match change {
            types::Change::SetTlv(_) | types::Change::RemoveTlv(_) => {}
            types::Change::SetAttribute(attribute) => {
                if !attribute.name.starts_with(TENANT_ATTRIBUTE_PREFIX) {
                    return Err(Fault::verdict(format!(
                        "attribute {:?} set: those that a tenant's router sets begin with {TENANT_ATTRIBUTE_PREFIX:?}",
                        shown(&attribute.name)
                    )));
                }
            }
            types::Change::UsePaceBucket(_) | types::Change::UseSendWindow(_) => {
                let what = "a pace bucket or send window: a tenant's router may use neither";
                return Err(Fault::verdict(what.to_owned()));
            }
        }
    }
    Ok(())
}

fn convert_address(address: &AddressResult) -> Result<Address, Fault> {
    if address.value.len() > 20 || address.value.contains('\0') {
        let length = address.value.len();
        return Err(Fault::verdict(format!(
            "an address of {length} octets, or with a NUL; the maximum is 20"
        )));
    }
    Ok(Address::new(address.ton, address.npi, address.value.as_bytes()))
}

fn convert_legs(legs: Vec<wit::Leg>, directory: &Directory) -> Result<Vec<Leg>, Fault> {
    if legs.is_empty() || legs.len() > 255 {
        return Err(Fault::verdict(format!("forwarded to {} legs; 1 to 255 are valid", legs.len())));
    }
    // Exactly this capacity: the message keeps the list until its end, and there may be millions of messages.
    let mut converted = Vec::with_capacity(legs.len());
    for leg in legs {
        let peer = directory.id(&leg.peer).ok_or_else(|| {
            let name: String = leg.peer.chars().take(64).collect();
            Fault::verdict(format!("forwarded to peer {name:?}, which is not in the configuration"))
        })?;
        converted.push(Leg {
            rank: leg.rank,
            weight: leg.weight,
            cost: leg.cost,
            longest_wait: leg.longest_wait.map(Duration::from_millis),
            source: leg.source.as_ref().map(convert_address).transpose()?,
            destination: leg.destination.as_ref().map(convert_address).transpose()?,
            ..Leg::to(peer)
        });
    }
    Ok(converted)
}

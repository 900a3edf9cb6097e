//! The router hook: the next step of a message.

use super::{MessageTexts, World, accepted_id, canary_bucket, masked_route, message_param, probe};
use crate::bindings::previous;
use crate::bindings::router as current;
use crate::bindings::router::exports::switchyard::hooks::routing as wit;
use crate::bindings::router::switchyard::hooks::types::AddressResult;
use crate::contract::WitVersion;
use crate::fault::Fault;
use crate::generation::{Generation, Instance};
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::runtime::Runtime;
use crate::text_limits::truncate_note;
use model::{
    Address, Directory, Hook, Leg, Message, MessageId, RejectReason, SenderRequest, Timestamp, Verdict,
};
use std::time::Duration;
use wasmtime::Store;
use wasmtime::component::Component;

pub(crate) struct Router;

/// The last millisecond of the year 9999. A later hold time has no date that can be shown.
const MAX_HOLD_TIME: Timestamp = Timestamp(253_402_300_799_999);

/// A router's decision, in host types.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The verdict; `None`: pass.
    pub verdict: Option<Verdict>,
    /// The requested sender of the message; with a forward verdict only.
    pub sender: Option<Box<SenderRequest>>,
    /// The reason.
    pub note: Option<Box<str>>,
}

impl Decision {
    /// If the request names no holder of the number, the message's origin is the holder.
    fn with_sender(mut self, sender: Option<Box<SenderRequest>>, origin: &str) -> Self {
        if matches!(self.verdict, Some(Verdict::Forward(_))) {
            self.sender = sender.map(|mut request| {
                if request.holder.is_empty() {
                    request.holder = origin.into();
                }
                request
            });
        }
        self
    }
}

pub(crate) enum Pre {
    Current(current::RouterPre<InstanceState>),
    Previous(previous::RouterPre<InstanceState>),
}

pub(crate) enum Guest {
    Current(current::Router),
    Previous(previous::Router),
}

impl World for Router {
    const HOOK: Hook = Hook::Router;
    type Pre = Pre;
    type Guest = Guest;
    type Question<'a> = &'a Message;
    type Owned = Message;
    type Answer = Decision;

    fn pre(runtime: &Runtime, component: &Component, version: WitVersion) -> wasmtime::Result<Pre> {
        let pre = runtime.link(Hook::Router, version, component)?;
        Ok(match version {
            WitVersion::V0_2 => Pre::Current(current::RouterPre::new(pre)?),
            WitVersion::V0_1 => Pre::Previous(previous::RouterPre::new(pre)?),
        })
    }

    fn instantiate(pre: &Pre, store: &mut Store<InstanceState>) -> wasmtime::Result<Guest> {
        Ok(match pre {
            Pre::Current(pre) => Guest::Current(pre.instantiate(store)?),
            Pre::Previous(pre) => Guest::Previous(pre.instantiate(store)?),
        })
    }

    fn configure(
        guest: &Guest,
        store: &mut Store<InstanceState>,
        document: &str,
    ) -> wasmtime::Result<Result<(), String>> {
        match guest {
            Guest::Current(guest) => guest.switchyard_hooks_routing().call_configure(store, document),
            Guest::Previous(guest) => guest.switchyard_hooks_routing().call_configure(store, document),
        }
    }

    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()> {
        let Instance { store, guest } = instance;
        store.data_mut().destination = Digits::of(b"1000000000");
        match guest {
            Guest::Current(guest) => {
                let probe = probe!(wit, current::switchyard::hooks::types::AddressParam);
                guest.switchyard_hooks_routing().call_route(store, probe).map(drop)
            }
            Guest::Previous(guest) => {
                let probe = contract_v0_1::probe();
                guest.switchyard_hooks_routing().call_route(store, probe).map(drop)
            }
        }
    }

    fn prepare(state: &mut InstanceState, message: &Message) {
        state.destination = Digits::of_address(&message.destination.value);
        state.body = message.text.octets.clone();
        state.sender = None;
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        message: &Message,
    ) -> wasmtime::Result<Result<Decision, Fault>> {
        let directory = generation.environment.directory.load();
        let texts = MessageTexts::of(message, &directory);
        let Instance { store, guest } = instance;
        let decision = match guest {
            Guest::Current(guest) => {
                let question =
                    message_param!(wit, current::switchyard::hooks::types::AddressParam, message, &texts);
                guest.switchyard_hooks_routing().call_route(store, question)?
            }
            Guest::Previous(guest) => {
                let question = contract_v0_1::question(message, &texts);
                contract_v0_1::decision(guest.switchyard_hooks_routing().call_route(store, question)?)
            }
        };
        let sender = instance.store.data_mut().sender.take();
        Ok(decode_answer(generation, &directory, decision)
            .map(|decision| decision.with_sender(sender, &texts.origin)))
    }

    fn own_question(message: &Message) -> Message {
        message.clone()
    }

    fn borrow_question(message: &Message) -> &Message {
        message
    }

    fn canary_bucket(message: &Message) -> u16 {
        canary_bucket(&message.destination.value)
    }

    fn decides(decision: &Decision) -> bool {
        decision.verdict.is_some()
    }

    fn is_same_answer(one: &Decision, other: &Decision) -> bool {
        one.verdict == other.verdict && one.sender == other.sender
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
        };
        if let Some(request) = &decision.sender {
            words.push_str(&format!(", sender of {} else {}", request.pool, request.otherwise.name()));
        }
        words
    }

    fn message_id(message: &Message) -> Option<MessageId> {
        accepted_id(message)
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
        wit::Verdict::Reject(reason) => Some(Verdict::Reject(match reason {
            wit::RejectReason::NoRoute => RejectReason::NoRoute,
            wit::RejectReason::InvalidDestination => RejectReason::InvalidDestination,
            wit::RejectReason::InvalidSource => RejectReason::InvalidSource,
            wit::RejectReason::Prohibited => RejectReason::Prohibited,
            wit::RejectReason::NotAuthorised => RejectReason::NotAuthorised,
            wit::RejectReason::TryLater => RejectReason::TryLater,
        })),
    };
    Ok(Decision { verdict, sender: None, note: truncate_note(decision.note) })
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
    legs.into_iter()
        .map(|leg| {
            let peer = directory.id(&leg.peer).ok_or_else(|| {
                let name: String = leg.peer.chars().take(64).collect();
                Fault::verdict(format!("forwarded to peer {name:?}, which is not in the configuration"))
            })?;
            Ok(Leg {
                rank: leg.rank,
                weight: leg.weight,
                cost: leg.cost,
                longest_wait: leg.longest_wait.map(Duration::from_millis),
                source: leg.source.as_ref().map(convert_address).transpose()?,
                destination: leg.destination.as_ref().map(convert_address).transpose()?,
                ..Leg::to(peer)
            })
        })
        .collect()
}

/// Converts between the previous contract version and the current one.
mod contract_v0_1 {
    use super::{AddressResult, Message, MessageTexts, wit};
    use crate::bindings::previous::exports::switchyard::hooks::routing as old;
    use crate::bindings::previous::switchyard::hooks::types as old_types;
    use model::Address;

    pub(super) fn probe() -> old::Message<'static> {
        old::Message {
            origin: "self-check",
            source: old_types::AddressParam { ton: 1, npi: 1, value: "10000" },
            destination: old_types::AddressParam { ton: 1, npi: 1, value: "1000000000" },
            service_type: None,
            data_coding: 0,
            priority: 0,
            length: 0,
            udhi: false,
            wants_receipt: false,
        }
    }

    pub(super) fn question<'a>(message: &Message, texts: &'a MessageTexts<'_>) -> old::Message<'a> {
        let address =
            |address: &Address, value| old_types::AddressParam { ton: address.ton, npi: address.npi, value };
        old::Message {
            origin: &texts.origin,
            source: address(&message.source, &texts.source),
            destination: address(&message.destination, &texts.destination),
            service_type: (!texts.service_type.is_empty()).then_some(&*texts.service_type),
            data_coding: message.text.data_coding,
            priority: message.priority.level(),
            length: u32::try_from(message.text.octets.len()).unwrap_or(u32::MAX),
            udhi: message.text.udhi,
            wants_receipt: message.dlr_request.any(),
        }
    }

    pub(super) fn decision(decision: old::Decision) -> wit::Decision {
        let verdict = match decision.verdict {
            old_types::Verdict::Pass => wit::Verdict::Pass,
            old_types::Verdict::Forward(legs) => wit::Verdict::Forward(legs.into_iter().map(leg).collect()),
            old_types::Verdict::Hold(until) => wit::Verdict::Hold(until),
            old_types::Verdict::Reject(reason) => wit::Verdict::Reject(match reason {
                old_types::RejectReason::NoRoute => wit::RejectReason::NoRoute,
                old_types::RejectReason::InvalidDestination => wit::RejectReason::InvalidDestination,
                old_types::RejectReason::InvalidSource => wit::RejectReason::InvalidSource,
                old_types::RejectReason::Prohibited => wit::RejectReason::Prohibited,
                old_types::RejectReason::NotAuthorised => wit::RejectReason::NotAuthorised,
                old_types::RejectReason::TryLater => wit::RejectReason::TryLater,
            }),
        };
        wit::Decision { verdict, note: decision.note }
    }

    fn leg(leg: old_types::Leg) -> wit::Leg {
        let address = |address: old_types::AddressResult| AddressResult {
            ton: address.ton,
            npi: address.npi,
            value: address.value,
        };
        wit::Leg {
            peer: leg.peer,
            rank: leg.rank,
            weight: leg.weight,
            cost: leg.cost,
            longest_wait: leg.longest_wait,
            source: leg.source.map(address),
            destination: leg.destination.map(address),
        }
    }
}

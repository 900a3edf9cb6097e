//! The resolver hook: the subscriber of a number.

use super::{World, canary_bucket, clamped_duration};
use crate::bindings::resolver as current;
use crate::bindings::resolver::exports::switchyard::hooks::resolution as wit;
use crate::contract::WitVersion;
use crate::fault::Fault;
use crate::generation::{Generation, Instance};
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::runtime::Runtime;
use crate::text_limits::truncate_note;
use model::{Address, AddressBytes, Directory, Hook, Imsi, MessageId, Resolution, Subscriber};
use wasmtime::Store;
use wasmtime::component::Component;

pub(crate) struct Resolver;

impl World for Resolver {
    const HOOK: Hook = Hook::Resolver;
    type Pre = current::ResolverPre<InstanceState>;
    type Guest = current::Resolver;
    type Question<'a> = &'a str;
    type Owned = String;
    type Answer = Resolution;

    fn pre(runtime: &Runtime, component: &Component, version: WitVersion) -> wasmtime::Result<Self::Pre> {
        current::ResolverPre::new(runtime.link(Hook::Resolver, version, component)?)
    }

    fn instantiate(pre: &Self::Pre, store: &mut Store<InstanceState>) -> wasmtime::Result<Self::Guest> {
        pre.instantiate(store)
    }

    fn configure(
        guest: &Self::Guest,
        store: &mut Store<InstanceState>,
        document: &str,
    ) -> wasmtime::Result<Result<(), String>> {
        guest.switchyard_hooks_resolution().call_configure(store, document)
    }

    /// No self-check: a question may query other systems.
    fn check(_: &mut Instance<Self>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn prepare(state: &mut InstanceState, msisdn: &str) {
        state.destination = Digits::of(msisdn.as_bytes());
        state.may_fetch = true;
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        msisdn: &str,
    ) -> wasmtime::Result<Result<Resolution, Fault>> {
        let Instance { store, guest } = instance;
        let resolved = guest.switchyard_hooks_resolution().call_resolve(store, msisdn)?;
        Ok(decode_answer(generation, resolved))
    }

    fn own_question(msisdn: &str) -> String {
        msisdn.to_owned()
    }

    fn borrow_question(msisdn: &String) -> &str {
        msisdn
    }

    fn canary_bucket(msisdn: &str) -> u16 {
        canary_bucket(msisdn.as_bytes())
    }

    fn decides(_: &Resolution) -> bool {
        true
    }

    fn is_same_answer(one: &Resolution, other: &Resolution) -> bool {
        one.subscriber == other.subscriber
    }

    fn describe_answer(resolution: &Resolution, directory: &Directory) -> String {
        match &resolution.subscriber {
            Subscriber::Found { peer, .. } => match peer {
                Some(peer) => format!("found at {}", directory.name(*peer)),
                None => "found".to_owned(),
            },
            Subscriber::Unknown { .. } => "unknown".to_owned(),
            Subscriber::TryLater { .. } => "try later".to_owned(),
        }
    }

    fn message_id(_: &str) -> Option<MessageId> {
        None
    }

    fn describe_question(msisdn: &str, _: &Directory) -> String {
        Address::international(msisdn).masked()
    }
}

fn decode_answer(generation: &Generation<Resolver>, resolved: wit::Resolved) -> Result<Resolution, Fault> {
    let subscriber = match resolved.answer {
        wit::Answer::Found(found) => {
            let imsi = found.imsi.as_bytes();
            if !(6..=15).contains(&imsi.len()) || !imsi.iter().all(u8::is_ascii_digit) {
                let length = imsi.len();
                return Err(Fault::verdict(format!("an IMSI of {length} octets: it has 6 to 15 digits")));
            }
            let peer = match &found.serving {
                None => None,
                Some(name) => Some(generation.environment.directory.load().id(name).ok_or_else(|| {
                    let name: String = name.chars().take(64).collect();
                    Fault::verdict(format!("served by peer {name:?}, which is not in the configuration"))
                })?),
            };
            Subscriber::Found {
                imsi: Imsi(AddressBytes::from_slice(imsi)),
                peer,
                valid: found.valid.map(clamped_duration),
            }
        }
        wit::Answer::Unknown(valid) => Subscriber::Unknown { valid: valid.map(clamped_duration) },
        wit::Answer::TryLater(after) => Subscriber::TryLater { after: after.map(clamped_duration) },
    };
    Ok(Resolution { subscriber, by: generation.by.clone(), note: truncate_note(resolved.note) })
}

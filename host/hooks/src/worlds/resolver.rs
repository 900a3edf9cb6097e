//! Who stands behind a number?

use super::{World, lot, time};
use crate::bindings::resolver as current;
use crate::bindings::resolver::exports::switchyard::hooks::resolution as wit;
use crate::capabilities::State;
use crate::capabilities::tables::Digits;
use crate::fault::Fault;
use crate::generation::{Generation, Instance, note};
use crate::runtime::Runtime;
use crate::world::Wit;
use model::{Address, AddressBytes, Directory, Hook, Imsi, MessageId, Resolution, Subscriber};
use wasmtime::Store;
use wasmtime::component::Component;

pub(crate) struct Resolver;

impl World for Resolver {
    const HOOK: Hook = Hook::Resolver;
    type Pre = current::ResolverPre<State>;
    type Guest = current::Resolver;
    type Question<'a> = &'a str;
    type Owned = String;
    type Answer = Resolution;

    fn pre(runtime: &Runtime, component: &Component, version: Wit) -> wasmtime::Result<Self::Pre> {
        current::ResolverPre::new(runtime.link(Hook::Resolver, version, component)?)
    }

    fn instantiate(pre: &Self::Pre, store: &mut Store<State>) -> wasmtime::Result<Self::Guest> {
        pre.instantiate(store)
    }

    fn configure(
        guest: &Self::Guest,
        store: &mut Store<State>,
        document: &str,
    ) -> wasmtime::Result<Result<(), String>> {
        guest.switchyard_hooks_resolution().call_configure(store, document)
    }

    /// Nothing is asked: a question may go out to other systems.
    fn check(_: &mut Instance<Self>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn prepare(state: &mut State, msisdn: &str) {
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
        Ok(read(generation, resolved))
    }

    fn own(msisdn: &str) -> String {
        msisdn.to_owned()
    }

    fn lend(msisdn: &String) -> &str {
        msisdn
    }

    fn lot(msisdn: &str) -> u16 {
        lot(msisdn.as_bytes())
    }

    fn decides(_: &Resolution) -> bool {
        true
    }

    fn same(one: &Resolution, other: &Resolution) -> bool {
        one.subscriber == other.subscriber
    }

    fn words(resolution: &Resolution, directory: &Directory) -> String {
        match &resolution.subscriber {
            Subscriber::Found { peer, .. } => match peer {
                Some(peer) => format!("found at {}", directory.name(*peer)),
                None => "found".to_owned(),
            },
            Subscriber::Unknown { .. } => "unknown".to_owned(),
            Subscriber::TryLater { .. } => "try later".to_owned(),
        }
    }

    fn message(_: &str) -> Option<MessageId> {
        None
    }

    fn sample(msisdn: &str, _: &Directory) -> String {
        Address::international(msisdn).masked()
    }
}

fn read(generation: &Generation<Resolver>, resolved: wit::Resolved) -> Result<Resolution, Fault> {
    let subscriber = match resolved.answer {
        wit::Answer::Found(found) => {
            let imsi = found.imsi.as_bytes();
            if !(6..=15).contains(&imsi.len()) || !imsi.iter().all(u8::is_ascii_digit) {
                let length = imsi.len();
                return Err(Fault::verdict(format!("an IMSI of {length} octets: it has 6 to 15 digits")));
            }
            let peer = match &found.serving {
                None => None,
                Some(name) => Some(generation.around.directory.load().id(name).ok_or_else(|| {
                    let name: String = name.chars().take(64).collect();
                    Fault::verdict(format!("served by peer {name:?}, which is not in the configuration"))
                })?),
            };
            Subscriber::Found {
                imsi: Imsi(AddressBytes::from_slice(imsi)),
                peer,
                valid: found.valid.map(time),
            }
        }
        wit::Answer::Unknown(valid) => Subscriber::Unknown { valid: valid.map(time) },
        wit::Answer::TryLater(after) => Subscriber::TryLater { after: after.map(time) },
    };
    Ok(Resolution { subscriber, by: generation.by.clone(), note: note(resolved.note) })
}

//! The resolver hook: the subscriber of a number.

use super::{World, canary_bucket, clamped_duration};
use crate::bindings::guest::exports::switchyard::hooks::resolution as wit;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::generation::{Generation, Instance};
use crate::guest_function::{Exports, GuestFunction, Signature};
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::text_limits::truncate_note;
use model::{Address, AddressBytes, Directory, Hook, Imsi, MessageId, Resolution, Subscriber};

pub(crate) struct Resolver;

pub(crate) struct Resolve;

impl Signature for Resolve {
    const NAME: &'static str = "resolve";
    type Arguments<'a> = (&'a str,);
    type Answer = wit::Resolved;
}

impl World for Resolver {
    const HOOK: Hook = Hook::Resolver;
    const INTERFACE: &'static str = "resolution";
    type Guest = GuestFunction<Resolve>;
    type Question<'a> = &'a str;
    type Owned = String;
    type Answer = Resolution;

    fn guest(exports: &mut Exports<'_>) -> wasmtime::Result<Self::Guest> {
        GuestFunction::find(exports)
    }

    /// No self-check: a question may query other systems.
    fn check(_: &mut Instance<Self>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn prepare(state: &mut InstanceState, msisdn: &str, _: Option<&Resolution>) {
        state.destination = Digits::of(msisdn.as_bytes());
        state.may_fetch = true;
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        msisdn: &str,
    ) -> wasmtime::Result<Result<Resolution, Fault>> {
        let resolved = instance.guest.call(&mut instance.store, (msisdn,))?;
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

    fn failed_question(msisdn: &str) -> FailedQuestion {
        FailedQuestion::Resolve(msisdn.to_owned())
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

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
use model::{Address, AddressBytes, Directory, Hook, Imsi, MessageId, PluginVersion, Resolution, Subscriber};
use std::sync::Arc;

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
        let directory = generation.environment.directory.load();
        Ok(decode_answer(&directory, &generation.by, resolved))
    }

    fn to_owned_question(msisdn: &str) -> String {
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

/// Translates the plugin's answer. A serving peer that is not in the configuration is bad data, not a fault of the plugin: a
/// rollback would not help. The number is resolved again later, and the note names the peer.
fn decode_answer(
    directory: &Directory,
    by: &Arc<PluginVersion>,
    resolved: wit::Resolved,
) -> Result<Resolution, Fault> {
    let mut note = resolved.note;
    let subscriber = match resolved.answer {
        wit::Answer::Found(found) => {
            let imsi = found.imsi.as_bytes();
            if !(6..=15).contains(&imsi.len()) || !imsi.iter().all(u8::is_ascii_digit) {
                let length = imsi.len();
                return Err(Fault::verdict(format!("an IMSI of {length} octets: it has 6 to 15 digits")));
            }
            let peer = found.serving.as_deref().map(|name| directory.id(name).ok_or(name)).transpose();
            match peer {
                Ok(peer) => Subscriber::Found {
                    imsi: Imsi(AddressBytes::from_slice(imsi)),
                    peer,
                    valid: found.valid.map(clamped_duration),
                },
                Err(name) => {
                    note = Some(unknown_peer_note(name, note.as_deref()));
                    Subscriber::TryLater { after: None }
                }
            }
        }
        wit::Answer::Unknown(valid) => Subscriber::Unknown { valid: valid.map(clamped_duration) },
        wit::Answer::TryLater(after) => Subscriber::TryLater { after: after.map(clamped_duration) },
    };
    Ok(Resolution { subscriber, by: by.clone(), note: truncate_note(note) })
}

/// The note of an answer with a serving peer that is not in the configuration; `note` is the plugin's own.
fn unknown_peer_note(name: &str, note: Option<&str>) -> String {
    let name: String = name.chars().take(64).collect();
    let mut text = format!("served by peer {name:?}, which is not in the configuration");
    if let Some(note) = note {
        text.push_str("; ");
        text.push_str(note);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(serving: Option<&str>, imsi: &str, note: Option<&str>) -> Result<Resolution, Fault> {
        let mut directory = Directory::new();
        directory.intern("north").unwrap();
        let by = Arc::new(PluginVersion { plugin: "r".to_owned(), version: "0".repeat(12) });
        let found =
            wit::Subscriber { imsi: imsi.to_owned(), serving: serving.map(str::to_owned), valid: Some(5) };
        let answer = wit::Answer::Found(found);
        decode_answer(&directory, &by, wit::Resolved { answer, note: note.map(str::to_owned) })
    }

    #[test]
    fn a_serving_peer_of_the_configuration_is_found() {
        let resolution = decode(Some("north"), "001010000000001", Some("in table hlr")).unwrap();
        assert!(matches!(resolution.subscriber, Subscriber::Found { peer: Some(_), .. }), "{resolution:?}");
        assert_eq!(resolution.note.as_deref(), Some("in table hlr"));
    }

    #[test]
    fn a_number_with_an_unknown_serving_peer_is_resolved_later() {
        let resolution = decode(Some("nowhere"), "001010000000001", Some("in table hlr")).unwrap();
        assert_eq!(resolution.subscriber, Subscriber::TryLater { after: None });
        let note = "served by peer \"nowhere\", which is not in the configuration; in table hlr";
        assert_eq!(resolution.note.as_deref(), Some(note));
        // A long name leaves room for the explanation.
        let resolution = decode(Some(&"x".repeat(1_000)), "001010000000001", None).unwrap();
        let note = resolution.note.unwrap();
        assert!(note.ends_with("which is not in the configuration"), "{note}");
    }

    #[test]
    fn a_wrong_imsi_is_a_fault() {
        let fault = decode(Some("nowhere"), "12345", None).unwrap_err();
        assert_eq!(fault.what, "an IMSI of 5 octets: it has 6 to 15 digits");
    }
}

//! The hooks, and the calls of each into a guest.

mod biller;
mod changes;
mod delivery;
mod front_end;
mod http_messages;
mod lookup;
mod message_batch;
mod pace;
mod peer;
mod receipt;
mod resolver;
mod router;
mod screen;

pub(crate) use biller::{Biller, PriceQuestion};
pub(crate) use delivery::DeliveryPolicy;
pub use front_end::FrontEndCall;
pub(crate) use front_end::{FrontEnd, FrontEndAnswer, FrontEndQuestion};
pub use http_messages::PluginResponse;
pub(crate) use lookup::Lookup;
pub use lookup::NumberAnswer;
pub(crate) use peer::{Peer, PeerAnswer, PeerQuestion, uncertain_outcome};
pub(crate) use receipt::{Receipt, ReceiptQuestion};
pub(crate) use resolver::Resolver;
pub use router::Decision;
pub(crate) use router::Router;
pub(crate) use screen::Screen;
pub use screen::ScreenDecision;

use crate::bindings::guest::switchyard::hooks::types as wit;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::generation::{Generation, Instance};
use crate::guest_function::Exports;
use crate::host_calls::InstanceState;
use api::Binding;
use model::{Address, Directory, Hook, Message, MessageId, PeerId};
use std::borrow::Cow;
use std::time::Duration;

/// One hook's side of the contract in `wit/`.
pub(crate) trait World: Sized + Send + Sync + 'static {
    const HOOK: Hook;
    /// The interface that its components export.
    const INTERFACE: &'static str;
    /// Whether a chain that passes a question has answered it, so that its changes are compared.
    const PASSING_IS_AN_ANSWER: bool = false;
    /// Whether a candidate can be in shadow. Not if a question has effects that the host cannot withhold.
    const HAS_SHADOW: bool = true;
    /// Whether a binding may serve one tenant: [`World::account`] returns the account of a question's message.
    const HAS_TENANTS: bool = false;
    /// Whether a question names its plugin, so that a chain has each plugin once.
    const BY_PLUGIN: bool = false;
    /// The functions of an instance, except `configure`.
    type Guest: Send;
    /// The question to the guest.
    type Question<'a>: Copy;
    /// The owned form of the question, to ask it later on another thread.
    type Owned: Send + 'static;
    /// The guest's answer, in host types.
    type Answer: Clone + Send + 'static;

    /// Finds the functions of an instance.
    fn guest(exports: &mut Exports<'_>) -> wasmtime::Result<Self::Guest>;
    /// Asks a question that any plugin can answer (self-check).
    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()>;
    /// Whether this binding gets the question; a chain skips other bindings.
    fn serves(binding: &Binding, question: Self::Question<'_>) -> bool {
        let _ = (binding, question);
        true
    }
    /// The account whose message the question is about, if bindings of this hook may serve a tenant.
    fn account(question: Self::Question<'_>) -> Option<PeerId> {
        let _ = question;
        None
    }
    /// Whether the live chain may get the question after this fault of a canary.
    fn may_repeat_question(fault: &Fault) -> bool {
        let _ = fault;
        true
    }
    /// Sets the state that host calls refer to during the question. `earlier`: the answer of the previous plugins of the
    /// chain, which did not decide.
    fn prepare(state: &mut InstanceState, question: Self::Question<'_>, earlier: Option<&Self::Answer>);
    /// Asks the question. The outer error is a trap, the inner one an invalid answer.
    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        question: Self::Question<'_>,
    ) -> wasmtime::Result<Result<Self::Answer, Fault>>;
    /// Whether the guest takes batches.
    fn accepts_batches(guest: &Self::Guest) -> bool {
        let _ = guest;
        false
    }
    /// Loads the questions of later [`World::ask_loaded`] calls into the guest, each with the answer of the previous plugins
    /// of the chain, which did not decide. Only for guests that take batches.
    fn load(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        questions: &[(Self::Question<'_>, Option<&Self::Answer>)],
    ) -> wasmtime::Result<()> {
        let _ = (generation, instance, questions);
        Ok(())
    }
    /// [`World::ask`] for the loaded question at this index.
    fn ask_loaded(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        index: u32,
        question: Self::Question<'_>,
    ) -> wasmtime::Result<Result<Self::Answer, Fault>> {
        let _ = index;
        Self::ask(generation, instance, question)
    }
    fn to_owned_question(question: Self::Question<'_>) -> Self::Owned;
    fn borrow_question(owned: &Self::Owned) -> Self::Question<'_>;
    /// The canary bucket of the question: [`canary_bucket`] of its number, below 10,000.
    fn canary_bucket(question: Self::Question<'_>) -> u16;
    /// Whether the answer ends the chain.
    fn decides(answer: &Self::Answer) -> bool;
    /// The combined answer of a chain: `earlier` is the answer of the previous plugins, which did not decide.
    fn after(earlier: Option<Self::Answer>, answer: Self::Answer) -> Self::Answer {
        let _ = earlier;
        answer
    }
    /// Whether two answers are equivalent; notes do not count.
    fn is_same_answer(one: &Self::Answer, other: &Self::Answer) -> bool;
    /// Describes an answer, for comparisons.
    fn describe_answer(answer: &Self::Answer, directory: &Directory) -> String;
    /// The id of the message that the question is about, if it has one already.
    fn message_id(question: Self::Question<'_>) -> Option<MessageId>;
    /// The question of a call that failed.
    fn failed_question(question: Self::Question<'_>) -> FailedQuestion;
    /// Describes a question with masked numbers, for samples of differences and faults.
    fn describe_question(question: Self::Question<'_>, directory: &Directory) -> String;
}

/// The longest delay or hold time.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(366 * 86_400);

/// Clamps a duration from a guest.
pub(crate) fn clamped_duration(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds).min(MAX_DURATION)
}

/// The texts of a message, as plugins receive them.
pub(crate) struct MessageTexts<'a> {
    pub(crate) origin: std::sync::Arc<str>,
    pub(crate) source: Cow<'a, str>,
    pub(crate) destination: Cow<'a, str>,
    pub(crate) service_type: Cow<'a, str>,
}

impl<'a> MessageTexts<'a> {
    pub(crate) fn of(message: &'a Message, directory: &Directory) -> Self {
        Self {
            origin: directory.name(message.origin),
            source: message.source.text(),
            destination: message.destination.text(),
            service_type: String::from_utf8_lossy(&message.service_type),
        }
    }
}

fn address<'a>(address: &Address, value: &'a str) -> wit::AddressParam<'a> {
    wit::AddressParam { ton: address.ton, npi: address.npi, value }
}

/// A message, as plugins receive it.
pub(crate) fn message_record<'a>(message: &Message, texts: &'a MessageTexts<'_>) -> wit::Message<'a> {
    wit::Message {
        origin: &texts.origin,
        source: address(&message.source, &texts.source),
        destination: address(&message.destination, &texts.destination),
        service_type: (!texts.service_type.is_empty()).then_some(&*texts.service_type),
        data_coding: message.text.data_coding,
        priority: message.priority.level(),
        length: u32::try_from(message.text.octets.len()).unwrap_or(u32::MAX),
        parts: message.text.segment_count(),
        udhi: message.text.udhi,
        wants_receipt: message.dlr_request.any(),
    }
}

/// The destination of [`probe`].
pub(crate) const PROBE_DESTINATION: &str = "1000000000";

/// A message for the self-check, which any plugin can answer.
pub(crate) fn probe() -> wit::Message<'static> {
    let number = |value| wit::AddressParam { ton: 1, npi: 1, value };
    wit::Message {
        origin: "self-check",
        source: number("10000"),
        destination: number(PROBE_DESTINATION),
        service_type: None,
        data_coding: 0,
        priority: 0,
        length: 0,
        parts: 1,
        udhi: false,
        wants_receipt: false,
    }
}

/// The id of a message; it has none before it is accepted.
pub(crate) fn accepted_id(message: &Message) -> Option<MessageId> {
    (message.id != MessageId::default()).then_some(message.id)
}

/// Source and destination, masked as in the log.
pub(crate) fn masked_route(message: &Message, directory: &Directory) -> String {
    let hide = Address::masked;
    format!("{}: {} to {}", directory.name(message.origin), hide(&message.source), hide(&message.destination))
}

/// A number from 0 to 9,999 that is the same for the same destination on every machine and in every version: FNV-1a
/// with the finalizer of MurmurHash3, because numbers differ mostly in their last digits.
pub(crate) fn canary_bucket(key: &[u8]) -> u16 {
    let key = key.strip_prefix(b"+").unwrap_or(key);
    let mut hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3)
    });
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    ((hash ^ hash >> 33) % 10_000) as u16
}

#[cfg(test)]
mod tests {
    use super::canary_bucket;

    #[test]
    fn canary_buckets_of_consecutive_numbers_are_uniform() {
        for share in [100_u16, 1_000, 5_000] {
            let chosen = (0..100_000_u64)
                .filter(|number| canary_bucket(format!("86139{number:08}").as_bytes()) < share)
                .count() as f64
                / 1_000.0;
            let wanted = f64::from(share) / 100.0;
            assert!((chosen - wanted).abs() < 0.5, "{chosen} percent instead of {wanted}");
        }
        assert_eq!(canary_bucket(b"+8613900000000"), canary_bucket(b"8613900000000"));
    }
}

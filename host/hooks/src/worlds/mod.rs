//! The four questions, and how each is put to a guest.

mod biller;
mod delivery;
mod resolver;
mod router;

pub(crate) use biller::Biller;
pub(crate) use delivery::DeliveryPolicy;
pub(crate) use resolver::Resolver;
pub use router::Decision;
pub(crate) use router::Router;

use crate::capabilities::State;
use crate::fault::Fault;
use crate::generation::{Generation, Instance};
use crate::runtime::Runtime;
use crate::world::Wit;
use model::{Address, Directory, Hook, Message, MessageId};
use std::borrow::Cow;
use std::time::Duration;
use wasmtime::Store;
use wasmtime::component::Component;

/// One hook's side of the contract in `wit/`.
pub(crate) trait World: Sized + Send + Sync + 'static {
    const HOOK: Hook;
    /// A component of this world, linked.
    type Pre: Send + Sync;
    /// An instance of it.
    type Guest: Send;
    /// What it is asked.
    type Question<'a>: Copy;
    /// The same, to be kept: for who asks later, on another thread.
    type Owned: Send + 'static;
    /// What it answers, in the host's words.
    type Answer: Clone + Send + 'static;

    fn pre(runtime: &Runtime, component: &Component, wit: Wit) -> wasmtime::Result<Self::Pre>;
    fn instantiate(pre: &Self::Pre, store: &mut Store<State>) -> wasmtime::Result<Self::Guest>;
    fn configure(
        guest: &Self::Guest,
        store: &mut Store<State>,
        document: &str,
    ) -> wasmtime::Result<Result<(), String>>;
    /// Asks something that no plugin has a reason to choke on.
    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()>;
    /// Sets what host calls during the question refer to.
    fn prepare(state: &mut State, question: Self::Question<'_>);
    /// Asks. The outer error is a trap, the inner an answer that makes no sense.
    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        question: Self::Question<'_>,
    ) -> wasmtime::Result<Result<Self::Answer, Fault>>;
    fn own(question: Self::Question<'_>) -> Self::Owned;
    fn lend(owned: &Self::Owned) -> Self::Question<'_>;
    /// Which of ten thousand shares of the traffic it belongs to: [`lot`] of its number.
    fn lot(question: Self::Question<'_>) -> u16;
    /// Whether the answer ends the chain.
    fn decides(answer: &Self::Answer) -> bool;
    /// Whether two answers mean the same; notes do not count.
    fn same(one: &Self::Answer, other: &Self::Answer) -> bool;
    /// An answer in words, for people who compare.
    fn words(answer: &Self::Answer, directory: &Directory) -> String;
    /// The message that it is about, where it has an id already.
    fn message(question: Self::Question<'_>) -> Option<MessageId>;
    /// A question in words that give nothing away: for samples of what differed, and of faults.
    fn sample(question: Self::Question<'_>, directory: &Directory) -> String;
}

/// The longest that anything is put off, or holds.
pub(crate) const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// A time that a guest names.
pub(crate) fn time(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds).min(LONGEST)
}

/// Texts of a message, in the form in which plugins are given them.
pub(crate) struct Texts<'a> {
    pub(crate) origin: std::sync::Arc<str>,
    pub(crate) source: Cow<'a, str>,
    pub(crate) destination: Cow<'a, str>,
    pub(crate) service_type: Cow<'a, str>,
}

impl<'a> Texts<'a> {
    pub(crate) fn of(message: &'a Message, directory: &Directory) -> Self {
        Self {
            origin: directory.name(message.origin),
            source: message.source.text(),
            destination: message.destination.text(),
            service_type: String::from_utf8_lossy(&message.service_type),
        }
    }
}

/// The record that WIT's `message` became in the module of one world.
macro_rules! message_param {
    ($wit:path, $address:path, $message:expr, $texts:expr) => {{
        use $address as WitAddress;
        use $wit as wit;
        let (message, texts): (&model::Message, &crate::worlds::Texts<'_>) = ($message, $texts);
        let address =
            |address: &model::Address, value| WitAddress { ton: address.ton, npi: address.npi, value };
        wit::Message {
            origin: &texts.origin,
            source: address(&message.source, &texts.source),
            destination: address(&message.destination, &texts.destination),
            service_type: (!texts.service_type.is_empty()).then_some(&*texts.service_type),
            data_coding: message.text.data_coding,
            priority: message.priority.level(),
            length: u32::try_from(message.text.octets.len()).unwrap_or(u32::MAX),
            parts: message.text.parts(),
            udhi: message.text.udhi,
            wants_receipt: message.receipts.any(),
        }
    }};
}
pub(crate) use message_param;

/// A message for self-checks.
macro_rules! probe {
    ($wit:path, $address:path) => {{
        use $address as WitAddress;
        use $wit as wit;
        wit::Message {
            origin: "self-check",
            source: WitAddress { ton: 1, npi: 1, value: "10000" },
            destination: WitAddress { ton: 1, npi: 1, value: "1000000000" },
            service_type: None,
            data_coding: 0,
            priority: 0,
            length: 0,
            parts: 1,
            udhi: false,
            wants_receipt: false,
        }
    }};
}
pub(crate) use probe;

/// The id of a message; it has none before it is accepted.
pub(crate) fn id(message: &Message) -> Option<MessageId> {
    (message.id != MessageId::default()).then_some(message.id)
}

/// Source and destination, hidden as far as the log hides them.
pub(crate) fn masked(message: &Message, directory: &Directory) -> String {
    let hide = Address::masked;
    format!("{}: {} to {}", directory.name(message.origin), hide(&message.source), hide(&message.destination))
}

/// A number of 0 to 9,999 that is the same for the same destination, on every machine and in every version: FNV-1a, mixed
/// as MurmurHash3 ends, since the last digits of numbers are what tells them apart.
pub(crate) fn lot(key: &[u8]) -> u16 {
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
    use super::lot;

    #[test]
    fn a_share_of_numbers_in_a_row_is_that_share() {
        for share in [100_u16, 1_000, 5_000] {
            let chosen = (0..100_000_u64)
                .filter(|number| lot(format!("86139{number:08}").as_bytes()) < share)
                .count() as f64
                / 1_000.0;
            let wanted = f64::from(share) / 100.0;
            assert!((chosen - wanted).abs() < 0.5, "{chosen} percent instead of {wanted}");
        }
        assert_eq!(lot(b"+8613900000000"), lot(b"8613900000000"));
    }
}

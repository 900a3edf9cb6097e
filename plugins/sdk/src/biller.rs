//! Billers: plugins that set the price of a message.

use crate::Message;
use crate::bindings::biller::exports::switchyard::hooks::{batch_billing, billing};
use crate::loaded::LoadedMessages;

#[doc(hidden)]
pub use batch_billing::{BatchLeg, Guest as BatchGuest};
#[doc(hidden)]
pub use billing::Guest;
pub use billing::{Charge, Fee, FirstLeg, Quote, Settlement};

/// A biller. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables), [`kv`](crate::kv) and,
/// in `settle`, [`http`](crate::http).
pub trait Biller: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    fn configure(document: &str) -> Result<Self, String>;

    /// The price of a message. Called while the submitter waits. `leg` is `None` for a message that is held, or must be
    /// resolved first.
    fn price(&self, message: &Message, leg: Option<&FirstLeg>) -> Quote;

    /// Receives the results of charges that requested it, in batches, each result at least once.
    ///
    /// # Errors
    /// The reason why they could not be processed. The host repeats the batch later.
    fn settle(&self, settlements: &[Settlement]) -> Result<(), String> {
        let _ = settlements;
        Ok(())
    }
}

/// The message is free of charge.
#[must_use]
pub fn free() -> Quote {
    Quote { price: Fee::Free, note: None }
}

/// Charges a ledger account, in millionths of the operator's currency, for all segments together. The charge is released if
/// the message fails.
#[must_use]
pub fn charge(account: impl Into<String>, amount: u64) -> Quote {
    let charge = Charge { account: account.into(), amount, keep_on_failure: false, settle: false };
    Quote { price: Fee::Charge(charge), note: None }
}

/// Refuses the message.
#[must_use]
pub fn refuse() -> Quote {
    Quote { price: Fee::Refuse, note: None }
}

impl Quote {
    /// The same price, but a charge is also captured if the message fails or expires after at least one submit attempt.
    #[must_use]
    pub fn kept_on_failure(mut self) -> Self {
        if let Fee::Charge(charge) = &mut self.price {
            charge.keep_on_failure = true;
        }
        self
    }

    /// The same price; `settle` is called at the end of the charge.
    #[must_use]
    pub fn settled(mut self) -> Self {
        if let Fee::Charge(charge) = &mut self.price {
            charge.settle = true;
        }
        self
    }

    /// The same price, with a note for the trace.
    #[must_use]
    pub fn because(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// The messages that the host has loaded, with the leg of each that is tried first.
#[doc(hidden)]
#[derive(Default)]
pub struct LoadedPriceQuestions {
    messages: LoadedMessages,
    legs: Vec<Option<BatchLeg>>,
    leg: Option<FirstLeg>,
}

impl LoadedPriceQuestions {
    /// Stores a batch, in place of the previous one.
    pub fn load(&mut self, batch: crate::MessageBatch, legs: Vec<Option<BatchLeg>>) {
        self.messages.load(batch);
        self.legs = legs;
    }

    /// The message at this index, and its leg.
    pub fn message(&mut self, index: u32) -> (&Message, Option<&FirstLeg>) {
        let Self { messages, legs, leg } = self;
        let (message, texts) = messages.message(index);
        match &legs[index as usize] {
            Some(first) => {
                let filled = leg.get_or_insert_with(|| FirstLeg { peer: String::new(), cost: 0 });
                filled.peer.clear();
                filled.peer.push_str(&texts[..first.peer as usize]);
                filled.cost = first.cost;
                (message, Some(filled))
            }
            None => (message, None),
        }
    }
}

/// Exports a type as the plugin's biller.
#[macro_export]
macro_rules! export_biller {
    ($biller:ty) => {
        const _: () = {
            $crate::__configured_guest!($biller, Biller, BillerGuest, |cell| {
                fn price(message: $crate::Message, leg: Option<$crate::FirstLeg>) -> $crate::Quote {
                    PLUGIN.with(|cell| $crate::Biller::price(cell.get(), &message, leg.as_ref()))
                }
                fn settle(settlements: Vec<$crate::Settlement>) -> Result<(), String> {
                    PLUGIN.with(|cell| $crate::Biller::settle(cell.get(), &settlements))
                }
            });
            impl $crate::BatchBillerGuest for Exported {
                fn load(batch: $crate::MessageBatch, legs: Vec<Option<$crate::BatchLeg>>) {
                    LOADED.with_borrow_mut(|loaded| loaded.load(batch, legs));
                }
                fn price_loaded(index: u32) -> $crate::Quote {
                    LOADED.with_borrow_mut(|loaded| {
                        let (message, leg) = loaded.message(index);
                        PLUGIN.with(|cell| $crate::Biller::price(cell.get(), message, leg))
                    })
                }
            }
            std::thread_local! {
                static LOADED: std::cell::RefCell<$crate::LoadedPriceQuestions> = std::cell::RefCell::default();
            }
            $crate::bindings::biller::export_biller_component!(Exported with_types_in $crate::bindings::biller);
        };
    };
}

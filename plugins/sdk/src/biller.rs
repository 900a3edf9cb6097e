//! Plugins that decide what a message costs.

use crate::Message;
use crate::bindings::biller::exports::switchyard::hooks::billing;

#[doc(hidden)]
pub use billing::Guest;
pub use billing::{Charge, Fee, FirstLeg, Quote, Settlement};

/// A biller. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables), [`kv`](crate::kv) and,
/// in `settle`, [`http`](crate::http).
pub trait Biller: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// What is wrong with it, where, and what would be right.
    fn configure(document: &str) -> Result<Self, String>;

    /// What a message is to cost. Asked while its submitter waits. Nothing is known of a leg for a message that is to be
    /// held or resolved first.
    fn price(&self, message: &Message, leg: Option<&FirstLeg>) -> Quote;

    /// Told how those charges ended that asked for it, in batches, each at least once.
    ///
    /// # Errors
    /// Why they could not be taken; they are told again later.
    fn settle(&self, settlements: &[Settlement]) -> Result<(), String> {
        let _ = settlements;
        Ok(())
    }
}

/// The message costs nothing.
#[must_use]
pub fn free() -> Quote {
    Quote { price: Fee::Free, note: None }
}

/// Charge this ledger account so many millionths of the house's currency, for all parts together; given back when the
/// message fails.
#[must_use]
pub fn charge(account: impl Into<String>, amount: u64) -> Quote {
    let charge = Charge { account: account.into(), amount, keep_on_failure: false, settle: false };
    Quote { price: Fee::Charge(charge), note: None }
}

/// Refuse the message.
#[must_use]
pub fn refuse() -> Quote {
    Quote { price: Fee::Refuse, note: None }
}

impl Quote {
    /// The same price; a charge is paid though the message fails, once it was handed over.
    #[must_use]
    pub fn kept_on_failure(mut self) -> Self {
        if let Fee::Charge(charge) = &mut self.price {
            charge.keep_on_failure = true;
        }
        self
    }

    /// The same price; `settle` wants to be told of a charge's end.
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

/// Makes a type the plugin's biller.
#[macro_export]
macro_rules! export_biller {
    ($biller:ty) => {
        const _: () = {
            $crate::__kept!($biller, Biller, BillerGuest, |kept| {
                fn price(message: $crate::Message, leg: Option<$crate::FirstLeg>) -> $crate::Quote {
                    PLUGIN.with(|kept| $crate::Biller::price(kept.get(), &message, leg.as_ref()))
                }
                fn settle(settlements: Vec<$crate::Settlement>) -> Result<(), String> {
                    PLUGIN.with(|kept| $crate::Biller::settle(kept.get(), &settlements))
                }
            });
            $crate::bindings::biller::export_biller_component!(Exported with_types_in $crate::bindings::biller);
        };
    };
}

//! Lookups: plugins that find facts about a number.
//!
//! ```ignore
//! use switchyard_sdk::lookup::{LookedUp, Number, found, unknown};
//! use switchyard_sdk::{Lookup, tables};
//! use std::time::Duration;
//!
//! struct Networks(u32);
//!
//! impl Lookup for Networks {
//!     fn configure(document: &str) -> Result<Self, String> {
//!         tables::open(document.trim()).map(Self)
//!     }
//!     fn look_up(&self, number: &Number) -> LookedUp {
//!         let hour = Duration::from_secs(3_600);
//!         match tables::get(self.0, &number.digits) {
//!             Some(mnc) => found(hour).with("mnc", &mnc),
//!             None => unknown(hour).because("not in the table"),
//!         }
//!     }
//! }
//!
//! switchyard_sdk::export_lookup!(Networks);
//! ```

use crate::Attribute;
use crate::bindings::lookup::exports::switchyard::hooks::number_lookup;
use std::time::Duration;

#[doc(hidden)]
pub use number_lookup::Guest;
pub use number_lookup::{Answer, Known, LookedUp, Number};

/// A lookup. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables),
/// [`counters`](crate::counters), [`kv`](crate::kv), [`http`](crate::http), [`dns`](crate::dns) and [`hlr`](crate::hlr).
pub trait Lookup: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    fn configure(document: &str) -> Result<Self, String>;

    /// Looks up a number. May block.
    fn look_up(&self, number: &Number) -> LookedUp;
}

/// The number is known, for this time; [`LookedUp::with`] adds its attributes.
#[must_use]
pub fn found(lifetime: Duration) -> LookedUp {
    let known = Known { attributes: Vec::new(), lifetime: crate::milliseconds(lifetime) };
    LookedUp { answer: Answer::Found(known), note: None }
}

/// The number is not known; valid for this time. The next lookup of the chain is called.
#[must_use]
pub fn unknown(lifetime: Duration) -> LookedUp {
    LookedUp { answer: Answer::Unknown(crate::milliseconds(lifetime)), note: None }
}

/// The lookup fails for now. The host calls it again soon while messages wait.
#[must_use]
pub fn try_later() -> LookedUp {
    LookedUp { answer: Answer::TryLater, note: None }
}

impl LookedUp {
    /// The same answer; a known number has this attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Answer::Found(known) = &mut self.answer {
            known.attributes.push(Attribute { name: name.to_owned(), value: value.to_owned() });
        }
        self
    }

    /// The same answer, with a note for the traces.
    #[must_use]
    pub fn because(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// Exports a type as the plugin's lookup.
#[macro_export]
macro_rules! export_lookup {
    ($lookup:ty) => {
        const _: () = {
            $crate::__configured_guest!($lookup, Lookup, LookupGuest, |cell| {
                fn look_up(number: $crate::lookup::Number) -> $crate::lookup::LookedUp {
                    PLUGIN.with(|cell| $crate::Lookup::look_up(cell.get(), &number))
                }
            });
            $crate::bindings::lookup::export_lookup_component!(Exported with_types_in $crate::bindings::lookup);
        };
    };
}

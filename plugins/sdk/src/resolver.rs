//! Resolvers: plugins that find the subscriber of a number.

use crate::bindings::resolver::exports::switchyard::hooks::resolution;
use std::time::Duration;

#[doc(hidden)]
pub use resolution::Guest;
pub use resolution::{Answer, Resolved, Subscriber};

/// A resolver. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables),
/// [`counters`](crate::counters), [`kv`](crate::kv), [`http`](crate::http) and [`hlr`](crate::hlr).
pub trait Resolver: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    fn configure(document: &str) -> Result<Self, String>;

    /// Finds the subscriber of a number: digits, in the message's form, without a plus sign. May block.
    fn resolve(&self, msisdn: &str) -> Resolved;
}

/// The subscriber has this IMSI (6 to 15 decimal digits), with the configured serving peer and validity.
#[must_use]
pub fn found(imsi: impl Into<String>) -> Resolved {
    let subscriber = Subscriber { imsi: imsi.into(), serving: None, valid: None };
    Resolved { answer: Answer::Found(subscriber), note: None }
}

/// There is no such subscriber. Valid for this time, or the configured time.
#[must_use]
pub fn unknown(valid: Option<Duration>) -> Resolved {
    Resolved { answer: Answer::Unknown(valid.map(crate::milliseconds)), note: None }
}

/// The number cannot be resolved now; ask again after this time or the configured time.
#[must_use]
pub fn try_later(after: Option<Duration>) -> Resolved {
    Resolved { answer: Answer::TryLater(after.map(crate::milliseconds)), note: None }
}

impl Resolved {
    /// The same answer; this peer serves the found subscriber.
    #[must_use]
    pub fn served_by(mut self, peer: impl Into<String>) -> Self {
        if let Answer::Found(subscriber) = &mut self.answer {
            subscriber.serving = Some(peer.into());
        }
        self
    }

    /// The same answer; a found subscriber is valid for this time.
    #[must_use]
    pub fn valid_for(mut self, time: Duration) -> Self {
        if let Answer::Found(subscriber) = &mut self.answer {
            subscriber.valid = Some(crate::milliseconds(time));
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

/// Exports a type as the plugin's resolver.
#[macro_export]
macro_rules! export_resolver {
    ($resolver:ty) => {
        const _: () = {
            $crate::__configured_guest!($resolver, Resolver, ResolverGuest, |cell| {
                fn resolve(msisdn: String) -> $crate::Resolved {
                    PLUGIN.with(|cell| $crate::Resolver::resolve(cell.get(), &msisdn))
                }
            });
            $crate::bindings::resolver::export_resolver_component!(
                Exported with_types_in $crate::bindings::resolver
            );
        };
    };
}

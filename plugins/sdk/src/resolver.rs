//! Plugins that find the subscriber behind a number.

use crate::bindings::resolver::exports::switchyard::hooks::resolution;
use std::time::Duration;

#[doc(hidden)]
pub use resolution::Guest;
pub use resolution::{Answer, Resolved, Subscriber};

/// A resolving plugin. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables),
/// [`counters`](crate::counters), [`kv`](crate::kv), [`http`](crate::http) and [`hlr`](crate::hlr).
pub trait Resolver: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// What is wrong with it, where, and what would be right.
    fn configure(document: &str) -> Result<Self, String>;

    /// Finds the subscriber behind a number: digits, in the form in which the message has it, a plus sign left out. May
    /// take its time.
    fn resolve(&self, msisdn: &str) -> Resolved;
}

/// It is the subscriber with this IMSI (6 to 15 decimal digits), served by the peer and for the time of the
/// configuration.
#[must_use]
pub fn found(imsi: impl Into<String>) -> Resolved {
    let subscriber = Subscriber { imsi: imsi.into(), serving: None, valid: None };
    Resolved { answer: Answer::Found(subscriber), note: None }
}

/// There is no such subscriber, for so long or for the configuration's time.
#[must_use]
pub fn unknown(valid: Option<Duration>) -> Resolved {
    Resolved { answer: Answer::Unknown(valid.map(crate::milliseconds)), note: None }
}

/// It cannot be found out now; ask again after so long, or after the configuration's time.
#[must_use]
pub fn try_later(after: Option<Duration>) -> Resolved {
    Resolved { answer: Answer::TryLater(after.map(crate::milliseconds)), note: None }
}

impl Resolved {
    /// The same answer; the subscriber, if there is one, is served by this peer.
    #[must_use]
    pub fn served_by(mut self, peer: impl Into<String>) -> Self {
        if let Answer::Found(subscriber) = &mut self.answer {
            subscriber.serving = Some(peer.into());
        }
        self
    }

    /// The same answer; a found subscriber holds for so long.
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

/// Makes a type the plugin's resolver.
#[macro_export]
macro_rules! export_resolver {
    ($resolver:ty) => {
        const _: () = {
            $crate::__kept!($resolver, Resolver, ResolverGuest, |kept| {
                fn resolve(msisdn: String) -> $crate::Resolved {
                    PLUGIN.with(|kept| $crate::Resolver::resolve(kept.get(), &msisdn))
                }
            });
            $crate::bindings::resolver::export_resolver_component!(
                Exported with_types_in $crate::bindings::resolver
            );
        };
    };
}

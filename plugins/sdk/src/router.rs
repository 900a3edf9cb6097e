//! Plugins that decide where a message goes.

use crate::Message;
use crate::bindings::router::exports::switchyard::hooks::routing;
use crate::numbers::{SenderRequest, WithoutNumber};
use std::time::Duration;

#[doc(hidden)]
pub use routing::Guest;
pub use routing::{Decision, Leg, RejectReason, Verdict};

/// A routing plugin. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables),
/// [`counters`](crate::counters), [`peers`](crate::peers), [`numbers`](crate::numbers) and [`body`](crate::body).
pub trait Router: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// What is wrong with it, where, and what would be right.
    fn configure(document: &str) -> Result<Self, String>;

    /// Decides about one message. Must depend on nothing but the document, the message and the answers of the host.
    fn route(&self, message: &Message) -> Decision;
}

/// A plain leg: rank 0, weight 1, no cost, no rewrite.
#[must_use]
pub fn leg(peer: &str) -> Leg {
    Leg {
        peer: peer.to_owned(),
        rank: 0,
        weight: 1,
        cost: 0,
        longest_wait: None,
        source: None,
        destination: None,
    }
}

impl Leg {
    /// The same leg in another rank; lower ranks are tried first.
    #[must_use]
    pub fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }

    /// The same leg, for which a message waits at most so long before the next is tried.
    #[must_use]
    pub fn waits(mut self, longest: Duration) -> Self {
        self.longest_wait = Some(crate::milliseconds(longest));
        self
    }

    /// The same leg with its cost, in millionths of the house's currency.
    #[must_use]
    pub fn costs(mut self, millionths: u32) -> Self {
        self.cost = millionths;
        self
    }
}

/// Asks that the message gets a number of this pool for its sender, which is given back when the message ends; counts with
/// [`forward`] and [`home`] only. [`numbers::take_sender`](crate::numbers::take_sender) has more to choose from.
///
/// # Errors
/// What is wrong with the pool's name.
pub fn take_sender(pool: &str, otherwise: WithoutNumber) -> Result<(), String> {
    crate::numbers::take_sender(&SenderRequest {
        pool: pool.to_owned(),
        user: None,
        holder: None,
        reason: None,
        lease: None,
        otherwise,
    })
}

/// Tells the host which peers the document names, while it is read: the appliance refuses to activate a plugin whose policy
/// names peers that it does not have.
pub fn names_peers<'a>(peers: impl IntoIterator<Item = &'a str>) {
    for peer in peers {
        // The question is what counts.
        let _ = crate::peers::state(peer);
    }
}

/// The same for number pools.
pub fn names_pools<'a>(pools: impl IntoIterator<Item = &'a str>) {
    for pool in pools {
        let _ = crate::numbers::state(pool);
    }
}

/// Hand the message to one of these.
#[must_use]
pub fn forward(legs: Vec<Leg>) -> Decision {
    Decision { verdict: Verdict::Forward(legs), note: None }
}

/// The message is for a subscriber of ours: the resolver finds who stands behind the number.
#[must_use]
pub fn home() -> Decision {
    Decision { verdict: Verdict::Home, note: None }
}

/// Ask again at this time, in milliseconds since the Unix epoch.
#[must_use]
pub fn hold(until: u64) -> Decision {
    Decision { verdict: Verdict::Hold(until), note: None }
}

/// Refuse the message.
#[must_use]
pub fn reject(reason: RejectReason) -> Decision {
    Decision { verdict: Verdict::Reject(reason), note: None }
}

/// Let the next router decide.
#[must_use]
pub fn pass() -> Decision {
    Decision { verdict: Verdict::Pass, note: None }
}

impl Decision {
    /// The same decision, with a note for the trace.
    #[must_use]
    pub fn because(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// Makes a type the plugin's router.
#[macro_export]
macro_rules! export_router {
    ($router:ty) => {
        const _: () = {
            $crate::__kept!($router, Router, RouterGuest, |kept| {
                fn route(message: $crate::Message) -> $crate::Decision {
                    PLUGIN.with(|kept| $crate::Router::route(kept.get(), &message))
                }
            });
            $crate::bindings::router::export_router_component!(Exported with_types_in $crate::bindings::router);
        };
    };
}

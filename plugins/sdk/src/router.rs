//! Routers: plugins that decide where a message goes.

use crate::bindings::router::exports::switchyard::hooks::{batch_routing, routing};
use crate::decision_changes::changes_of_decisions;
use crate::numbers::{SenderRequest, WithoutNumber};
use crate::{Attribute, Change, Message, RejectReason};
use std::time::Duration;

#[doc(hidden)]
pub use batch_routing::Guest as BatchGuest;
#[doc(hidden)]
pub use routing::Guest;
pub use routing::{Decision, Leg, Verdict};

/// A router. It may use [`log`](crate::log), [`clock`](crate::clock), [`tables`](crate::tables),
/// [`counters`](crate::counters), [`peers`](crate::peers), [`quality`](crate::quality), [`numbers`](crate::numbers), [`body`](crate::body) and
/// [`details`](crate::details).
pub trait Router: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    fn configure(document: &str) -> Result<Self, String>;

    /// Decides about one message. The decision must depend only on the document, the message and the host's answers.
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

    /// The same leg with a maximum wait, after which the next leg is tried.
    #[must_use]
    pub fn waits(mut self, longest: Duration) -> Self {
        self.longest_wait = Some(crate::milliseconds(longest));
        self
    }

    /// The same leg with its cost, in millionths of the operator's currency.
    #[must_use]
    pub fn costs(mut self, millionths: u32) -> Self {
        self.cost = millionths;
        self
    }
}

/// Requests a number of this pool as the sender of the message. The number is released when the message ends. Applies
/// with [`forward`] and [`home`] only. [`numbers::take_sender`](crate::numbers::take_sender) has more options.
///
/// # Errors
/// The pool's name is invalid.
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

/// Reports the peers that the document names, in `configure`: the appliance refuses to activate a plugin whose policy
/// names unknown peers.
pub fn names_peers<'a>(peers: impl IntoIterator<Item = &'a str>) {
    for peer in peers {
        // The look-up itself is the report.
        let _ = crate::peers::state(peer);
    }
}

/// Reports the number pools that the document names, in `configure`.
pub fn names_pools<'a>(pools: impl IntoIterator<Item = &'a str>) {
    for pool in pools {
        let _ = crate::numbers::state(pool);
    }
}

fn decision(verdict: Verdict) -> Decision {
    Decision { verdict, note: None, changes: Vec::new() }
}

/// Forward the message to one of these legs.
#[must_use]
pub fn forward(legs: Vec<Leg>) -> Decision {
    decision(Verdict::Forward(legs))
}

/// Deliver the message to one of the operator's own subscribers: the resolver finds the subscriber of the number.
#[must_use]
pub fn home() -> Decision {
    decision(Verdict::Home)
}

/// Hold the message, and route it again at this time, in milliseconds since the Unix epoch.
#[must_use]
pub fn hold(until: u64) -> Decision {
    decision(Verdict::Hold(until))
}

/// Refuse the message.
#[must_use]
pub fn reject(reason: RejectReason) -> Decision {
    decision(Verdict::Reject(reason))
}

/// Let the next router decide.
#[must_use]
pub fn pass() -> Decision {
    decision(Verdict::Pass)
}

changes_of_decisions!(Decision);

impl Decision {
    /// The same decision, and later plugins see this attribute of the message.
    #[must_use]
    pub fn set_attribute(mut self, name: &str, value: &str) -> Self {
        self.changes.push(Change::SetAttribute(Attribute { name: name.to_owned(), value: value.to_owned() }));
        self
    }
}

/// Exports a type as the plugin's router.
#[macro_export]
macro_rules! export_router {
    ($router:ty) => {
        const _: () = {
            $crate::__configured_guest!($router, Router, RouterGuest, |cell| {
                fn route(message: $crate::Message) -> $crate::Decision {
                    PLUGIN.with(|cell| $crate::Router::route(cell.get(), &message))
                }
            });
            impl $crate::BatchRouterGuest for Exported {
                fn load(batch: $crate::MessageBatch) {
                    LOADED.with_borrow_mut(|loaded| loaded.load(batch));
                }
                fn route_loaded(index: u32) -> $crate::Decision {
                    LOADED.with_borrow_mut(|loaded| {
                        PLUGIN.with(|cell| $crate::Router::route(cell.get(), loaded.message(index).0))
                    })
                }
            }
            std::thread_local! {
                static LOADED: std::cell::RefCell<$crate::loaded::LoadedMessages> = std::cell::RefCell::default();
            }
            $crate::bindings::router::export_router_component!(Exported with_types_in $crate::bindings::router);
        };
    };
}

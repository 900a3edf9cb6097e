//! Write Switchyard plugins in Rust.
//!
//! A plugin serves one hook. It is a type that implements one of four traits and is named in the macro that goes with it:
//!
//! | hook | trait | macro |
//! |---|---|---|
//! | where does a message go? | [`Router`] | [`export_router!`] |
//! | who stands behind a number? | [`Resolver`] | [`export_resolver!`] |
//! | what follows a failed attempt? | [`DeliveryPolicy`] | [`export_delivery_policy!`] |
//! | what does a message cost? | [`Biller`] | [`export_biller!`] |
//!
//! ```ignore
//! use switchyard_sdk::{Decision, Message, Router, forward, leg};
//!
//! struct Everywhere { peer: String }
//!
//! impl Router for Everywhere {
//!     fn configure(document: &str) -> Result<Self, String> {
//!         Ok(Self { peer: document.trim().to_owned() })
//!     }
//!     fn route(&self, _message: &Message) -> Decision {
//!         forward(vec![leg(&self.peer)]).because("everything goes there")
//!     }
//! }
//!
//! switchyard_sdk::export_router!(Everywhere);
//! ```
//!
//! What the host offers is in one module per capability: [`log`], [`clock`], [`tables`], [`counters`], [`peers`],
//! [`numbers`], [`body`], [`kv`], [`http`], [`hlr`]. A component imports only what it calls; a call that its world does not have (a
//! router that calls [`http`]) makes a component that the host refuses.
//!
//! An instance is never called by two threads at once and never re-entered, but there are several instances: what one
//! keeps in memory the others do not see. Counts belong into [`counters`], durable things into [`kv`].
//!
//! Build for `wasm32-unknown-unknown` with `wasm-component-ld` as linker, or let `cargo xtask plugins` do so.

mod biller;
#[doc(hidden)]
pub mod bindings;
mod delivery_policy;
#[doc(hidden)]
pub mod once;
mod resolver;
mod router;

pub use biller::{Biller, Charge, Fee, FirstLeg, Quote, Settlement, charge, free, refuse};
pub use bindings::resolver::switchyard::hooks::{hlr, http, kv};
pub use bindings::router::switchyard::hooks::types::{Address, Message};
pub use bindings::router::switchyard::hooks::{body, clock, counters, log, numbers, peers, tables};
pub use delivery_policy::{
    Advice, Attempt, DeliveryPolicy, ErrorClass, NextStep, Step, await_alert, fail, next_leg, retry_after,
};
pub use resolver::{Answer, Resolved, Resolver, Subscriber, found, try_later, unknown};
pub use router::{
    Decision, Leg, RejectReason, Router, Verdict, forward, hold, home, leg, names_peers, names_pools, pass,
    reject, take_sender,
};

#[doc(hidden)]
pub use biller::Guest as BillerGuest;
#[doc(hidden)]
pub use delivery_policy::Guest as DeliveryPolicyGuest;
#[doc(hidden)]
pub use resolver::Guest as ResolverGuest;
#[doc(hidden)]
pub use router::Guest as RouterGuest;

/// A span of time as the contract has it: whole milliseconds.
fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

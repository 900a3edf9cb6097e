//! The SDK for Switchyard plugins in Rust.
//!
//! A plugin serves one hook. It is a type that implements one of nine traits and is exported by the trait's macro:
//!
//! | hook | trait | macro |
//! |---|---|---|
//! | the check of a message before routing | [`Screen`] | [`export_screen!`] |
//! | the facts about a number | [`Lookup`] | [`export_lookup!`] |
//! | the next step of a message | [`Router`] | [`export_router!`] |
//! | the subscriber of a number | [`Resolver`] | [`export_resolver!`] |
//! | the step after a failed attempt | [`DeliveryPolicy`] | [`export_delivery_policy!`] |
//! | the step after a DLR | [`Receipt`] | [`export_receipt!`] |
//! | the price of a message | [`Biller`] | [`export_biller!`] |
//! | submission to a peer | [`Peer`] | [`export_peer!`] |
//! | the HTTP API of another product | [`FrontEnd`] | [`export_front_end!`] |
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
//! Each capability of the host has a module: [`log`], [`clock`], [`tables`], [`counters`], [`peers`], [`quality`], [`numbers`],
//! [`body`], [`details`], [`kv`], [`http`], [`dns`], [`hlr`], [`secrets`], [`fault`]. A component imports only the functions that it calls. If it calls one that its
//! world does not have (such as [`http`] in a router), the host refuses the component. [`form`] decodes queries and forms.
//!
//! A screen or router may limit the rate and the hours of sending: see [`pace`].
//!
//! If many messages wait, the host calls screens, routers and billers with batches of messages. The macros implement the
//! batch functions with the trait's function for one message.
//!
//! An instance is never called by two threads at once and never re-entered. There are several instances, which do not
//! share memory: use [`counters`] for counts and [`kv`] for durable data.
//!
//! Build for `wasm32-unknown-unknown` with `wasm-component-ld` as linker, or let `cargo xtask plugins` do so.

mod biller;
#[doc(hidden)]
pub mod bindings;
#[doc(hidden)]
pub mod configured;
mod decision_changes;
mod delivery_policy;
pub mod form;
pub mod front_end;
#[doc(hidden)]
pub mod loaded;
pub mod lookup;
pub mod pace;
pub mod peer;
pub mod receipt;
mod resolver;
mod router;
pub mod screen;

pub use biller::{Biller, Charge, Fee, FirstLeg, Quote, Settlement, charge, free, refuse};
pub use bindings::lookup::switchyard::hooks::dns;
pub use bindings::peer::switchyard::hooks::secrets;
pub use bindings::resolver::switchyard::hooks::{hlr, http, kv};
pub use bindings::router::switchyard::hooks::types::{
    Address, Attribute, Change, Message, RejectReason, Tlv,
};
pub use bindings::router::switchyard::hooks::{
    body, clock, counters, details, fault, log, numbers, peers, quality, tables,
};
pub use delivery_policy::{
    Advice, Attempt, DeliveryPolicy, ErrorClass, NextStep, Step, await_alert, fail, next_leg, retry_after,
};
pub use front_end::FrontEnd;
pub use lookup::Lookup;
pub use peer::Peer;
pub use receipt::Receipt;
pub use resolver::{Answer, Resolved, Resolver, Subscriber, found, try_later, unknown};
pub use router::{
    Decision, Leg, Router, Verdict, forward, hold, home, leg, names_peers, names_pools, pass, reject,
    take_sender,
};
pub use screen::{DroppedAs, Screen};

#[doc(hidden)]
pub use biller::{BatchGuest as BatchBillerGuest, BatchLeg, Guest as BillerGuest, LoadedPriceQuestions};
#[doc(hidden)]
pub use bindings::router::switchyard::hooks::types::MessageBatch;
#[doc(hidden)]
pub use delivery_policy::Guest as DeliveryPolicyGuest;
#[doc(hidden)]
pub use front_end::Guest as FrontEndGuest;
#[doc(hidden)]
pub use lookup::Guest as LookupGuest;
#[doc(hidden)]
pub use peer::Guest as PeerGuest;
#[doc(hidden)]
pub use receipt::Guest as ReceiptGuest;
#[doc(hidden)]
pub use resolver::Guest as ResolverGuest;
#[doc(hidden)]
pub use router::{BatchGuest as BatchRouterGuest, Guest as RouterGuest};
#[doc(hidden)]
pub use screen::Guest as ScreenGuest;

/// A duration in whole milliseconds, as in the contract.
fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

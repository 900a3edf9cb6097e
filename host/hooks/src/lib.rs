//! Plugins: WebAssembly components that decide what differs from carrier to carrier.
//!
//! [`Hooks`] keeps plugin versions, brings bindings to life and puts the four questions (where does a message go, who stands
//! behind a number, what follows a failed attempt, what does it cost) to them, on the caller's thread. A plugin that traps,
//! loops for ever or takes all memory costs one call and one instance; what becomes of the message is said by its binding's
//! `on-fault`. A candidate can be tried beside what is live, in shadow or as a canary, and what fails too often is taken
//! back by itself.

mod artefact;
mod binding;
mod bindings;
mod capabilities;
mod chain;
mod compile;
mod counts;
mod error;
mod examples;
mod fault;
mod generation;
mod hooks;
mod library;
mod patience;
mod reference;
mod runtime;
mod seen;
mod shadow;
mod signature;
mod slot;
mod steward;
mod trial;
mod wasi;
mod world;
mod worlds;

pub use crate::capabilities::Powers;
pub use crate::capabilities::numbers::{PoolBoard, PoolState};
pub use crate::capabilities::peers::{Board, PeerState};
pub use crate::capabilities::tables::PrefixTable;
pub use crate::reference::{Conditions, Reference, ReferenceKind, UnknownReference};
pub use binding::{
    Binding, BindingRecord, CandidateRecord, Grants, HookEvent, How, InstanceUse, OnFault, Trying,
};
pub use counts::Counts;
pub use error::HookError;
pub use examples::{FaultExample, FaultyVersion};
pub use fault::{Fault, FaultKind, Tolerance};
pub use hooks::{Considered, Hooks, HooksOptions};
pub use library::VersionInfo;
pub use shadow::{Comparison, Difference};
pub use signature::{Trust, TrustedKey};
pub use slot::{CandidateState, HookState, PluginCounts};
pub use trial::{Trial, Tried};
pub use world::Wit;
pub use worlds::Decision;

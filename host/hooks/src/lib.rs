//! Plugins: WebAssembly components that decide what differs from carrier to carrier.
//!
//! [`Hooks`] keeps plugin versions, brings bindings to life and answers routing questions on the caller's thread. A
//! plugin that traps, loops for ever or takes all memory costs one call and one instance; what becomes of the message is
//! said by its binding's `on-fault`.

mod artefact;
mod bindings;
mod capabilities;
mod compile;
mod error;
mod generation;
mod hooks;
mod library;
mod patience;
mod runtime;

pub use capabilities::peers::{Board, PeerState};
pub use capabilities::tables::PrefixTable;
pub use error::HookError;
pub use generation::{Counts, Fault, FaultKind};
pub use hooks::{Binding, BindingRecord, Considered, Hooks, HooksOptions, InstanceUse, OnFault};
pub use library::VersionInfo;

//! What plugins are given by the host, one module a capability, each with its limits.
//!
//! Nothing here knows of WebAssembly: the hooks put these behind the interfaces of `wit/capabilities.wit`, and the author's
//! test harness puts other things there. A plugin is known by its name; who may use what is said by its binding, and comes
//! in as an argument.
#![forbid(unsafe_code)]

mod calendar;
mod counters;
mod durable;
mod error;
mod fetch;
mod hlr;
mod log_budget;
mod shelf;
mod values;

pub use calendar::{CounterGrant, CounterWindow};
pub use counters::{CounterMetrics, CounterOptions, Counters, Space};
pub use durable::{CounterWriter, DurableCounter, DurableCounters, DurableMetrics, DurableOptions};
pub use error::Error;
pub use fetch::{
    Fetch, FetchFailure, FetchLimits, FetchMetrics, Fetcher, FetcherOptions, Grant, Grants, Request, Response,
};
pub use hlr::{ChainHlr, Hlr, HlrFailure, HlrSubscriber, TableHlr};
pub use log_budget::{LogBudget, LogBudgets};
pub use shelf::{Shelf, ShelfOptions, Slot, Table, TableInfo, TableKind};
pub use values::{KeyValues, MemoryValues, Usage, Values, ValuesMetrics};

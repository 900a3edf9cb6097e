//! The admin's door: an HTTP API on loopback, and metrics.
//!
//! Everything behind it is an [`Appliance`]; this crate knows HTTP, tokens, errors and documents, and nothing of queues.
#![forbid(unsafe_code)]

mod api;
mod ledger;
pub mod metrics;
mod openapi;
mod plugins;
mod pools;
mod problem;
mod token;
pub mod view;

pub use api::{Appliance, Export, router};
pub use ledger::Ledger;
pub use openapi::document;
pub use plugins::Plugins;
pub use pools::{Filled, History, Pools};
pub use problem::{Kind, Problem, Reason};
pub use token::{Token, TokenError};

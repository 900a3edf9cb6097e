//! The admin's door: an HTTP API, with or without TLS, who may come in there, and metrics.
//!
//! Everything behind it is an [`Appliance`]; this crate knows HTTP, tokens, errors and documents, and nothing of queues.
#![forbid(unsafe_code)]

mod api;
mod attention;
mod backup;
mod configuration;
mod guard;
mod health;
mod known;
mod ledger;
mod machine;
mod messages;
pub mod metrics;
mod openapi;
mod operation;
mod orders;
mod overview;
mod people;
mod plugins;
mod pools;
mod porter;
mod problem;
mod pulse;
mod ready;
mod records;
mod request;
mod rights;
mod subscribers;
mod tables;
mod testing;
mod token;
mod trace;
pub mod view;

pub use api::{Appliance, Export, router};
pub use attention::{AttentionLimits, ConfigurationWaits};
pub use backup::Backup;
pub use configuration::{
    Applied, ChangedHow, Changing, Checked, Configuration, Current, Difference, ManagedBy, OneVersion, Order,
    Unconfirmed, VersionSummary, Wanted,
};
pub use ledger::Ledger;
pub use machine::{Machine, MachineState, Operated, Operator, Slot};
pub use messages::{Hand, Messages};
pub use openapi::document;
pub use operation::{DrainOrder, DrainState, Left, LogLevel, Operation};
pub use orders::Orders;
pub use plugins::Plugins;
pub use pools::{Filled, History, Pools};
pub use porter::Porter;
pub use problem::{Kind, Misplaced, Problem, Reason};
pub use ready::{NotReady, Readiness};
pub use subscribers::{SubscriberName, Subscribers};
pub use testing::{PeerTest, TestMessage, TestStep, Testing};
pub use token::{Token, TokenError};

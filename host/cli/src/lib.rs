//! The admin's commands: clients of the HTTP API.
#![forbid(unsafe_code)]

mod account;
mod appliance;
mod attention;
mod audit;
mod backup;
mod cluster;
mod cluster_setup;
mod command;
mod completions;
mod config;
mod context;
mod contexts;
mod doctor;
mod drain;
mod erase;
mod explain;
#[cfg(test)]
mod fake_api;
pub mod format;
mod global_args;
mod help_groups;
mod history;
mod ledger;
mod log_level;
mod login;
mod message;
mod opt_out;
mod output;
mod paged_list;
mod password;
mod peer;
mod peer_or_account;
mod pool;
mod quarantine;
mod queue;
mod refusals;
mod role_args;
mod snapshot;
mod status;
mod subscriber;
mod table;
mod table_output;
mod tail;
mod tenant;
mod token;
mod top;
mod user;
mod watch;
mod yaml;

pub use command::CliCommand;
pub use context::{CliContext, ConfigFacts};
pub use help_groups::with_help_groups;

#[cfg(test)]
use testkit::fake_api::fixtures;

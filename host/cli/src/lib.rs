//! The admin's commands. They are clients of the HTTP API and can do nothing that it cannot.
#![forbid(unsafe_code)]

mod account;
mod appliance;
mod attention;
mod audit;
mod backup;
mod command;
mod config;
mod doctor;
mod drain;
mod explain;
mod history;
mod leave;
mod ledger;
mod log_level;
mod login;
mod message;
mod opt_out;
mod output;
mod pages;
mod papers;
mod party;
mod peer;
mod picture;
mod pool;
mod queue;
mod refusals;
mod secret;
mod status;
#[cfg(test)]
mod stub;
mod subscriber;
pub mod table;
mod tables;
mod token;
mod top;
mod user;
mod way;

pub use command::{Command, House};
pub use doctor::Facts;

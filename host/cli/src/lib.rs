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
mod leave;
mod login;
mod message;
mod output;
mod pages;
mod papers;
mod party;
mod peer;
mod picture;
mod pool;
mod queue;
mod secret;
mod status;
#[cfg(test)]
mod stub;
mod table;
mod token;
mod top;
mod user;
mod way;

pub use command::{Command, House};
pub use doctor::Facts;

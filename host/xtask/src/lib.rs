//! What the house's tools and its behaviour tests share: the load generator, and the running of a real appliance.
#![allow(clippy::print_stdout, reason = "command line tools speak on standard output")]

pub mod appliance;
pub mod database;
pub mod guest;
pub mod house;
pub mod load;
pub mod osmocom;
pub mod page;
pub mod program;
pub mod random;
pub mod redis;
pub mod sample;

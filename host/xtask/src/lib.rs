//! Shared by the development tools and the behaviour tests: the load generator, test daemons, and private peers and databases.
#![allow(clippy::print_stdout, reason = "command line tools speak on standard output")]

pub mod database;
pub mod guest;
pub mod load;
pub mod manual_page;
pub mod osmocom;
pub mod program;
pub mod random;
pub mod redis;
pub mod sample;
pub mod test_daemon;
pub mod workspace;

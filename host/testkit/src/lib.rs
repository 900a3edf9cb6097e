//! For behaviour tests and workloads: daemons under test, load generators, and private peers and databases.
#![allow(clippy::print_stdout, reason = "command line tools speak on standard output")]

pub mod api_document;
pub mod api_reference;
pub mod built;
pub mod database;
pub mod docker_registry;
pub mod etcd;
pub mod fake_api;
pub mod guest;
pub mod kafka;
pub mod load;
pub mod manual_page;
pub mod namespace;
pub mod nats;
pub mod osmocom;
pub mod program;
pub mod rabbitmq;
pub mod redis;
pub mod reference_page;
pub mod sample;
pub mod sample_sp;
mod shared_artefacts;
pub mod test_daemon;

//! The door of number pools for Redis clients: whatever speaks the Redis protocol asks the pools here, the older system's
//! clients and `redis-cli` among them.
//!
//! [`Door`] listens; a task a connection (`connection.rs`) moves octets between the socket and a [`resp::Session`]; a
//! dialogue (`dialogue.rs`), which knows no socket, turns requests into the engine's events and its answers into replies.
//! What one read of the socket brings becomes one hand-over to the core, and operations on one pool that follow each other
//! become one event; what one commit answers becomes one write. So a client that sends requests in heaps pays little for
//! each.
//!
//! An answer is sent when what it tells is on disk. What was asked is done also when whoever asked has gone.
#![forbid(unsafe_code)]

mod accounts;
mod connection;
mod counts;
mod dialogue;
mod door;
mod options;
mod show;

pub use counts::DoorState;
pub use door::{Door, ListenError, OpenError};
pub use options::{AccountOptions, DoorOptions, Rights};

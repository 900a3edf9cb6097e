//! What waits: for a plugin's word (subscribers to be found, failed attempts to be decided), for a subscriber's turn, for a
//! subscriber to be heard of.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that fails is to stop here")]

mod deciding;
mod groups;
mod house;
mod orders;
mod pace;
#[path = "../support/pool_disk.rs"]
mod pool_disk;
mod reach;
mod replacing;
mod resolving;
mod restarts;
mod senders;
mod serial;
mod strangers;
mod submissions;
mod subscriber;

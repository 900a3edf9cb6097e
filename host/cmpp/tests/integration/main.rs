//! Integration tests of the CMPP codec and of the session that it shares with SMGP.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod codec;
mod properties;
mod session;
mod vectors;

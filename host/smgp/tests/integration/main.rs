//! Integration tests of the SMGP codec; the session's are those of `cmpp`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod codec;
mod properties;
mod vectors;

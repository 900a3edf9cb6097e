//! Integration tests of the SMGP codec. The session is tested in `cmpp`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod codec;
mod properties;
mod vectors;

//! The conformance checklist, as far as codec and session decide it; each test has the number of its check.
//!
//! Checks that need an account, a queue, a clock or a socket are tested in the crates that have them.

mod bind;
mod deliver;
mod framing;
mod harness;
mod link;
mod submit;
mod vectors;
mod wire;

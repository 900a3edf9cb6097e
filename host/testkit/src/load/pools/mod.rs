//! Clients of number pools that use the Redis protocol: [`RedisClient`] sends one request at a time; [`Callers`] lease and release
//! numbers as fast as they can, over many connections, and check whether a number is ever leased twice at a time.
//!
//! Like the load generator's ESME, they share no code with the appliance and cost little: requests are encoded before
//! the measurement begins, and replies are parsed in place.

mod caller;
mod callers;
mod client;
mod holders;
#[cfg(test)]
mod tests;
mod wire;

pub use callers::{CallerOptions, CallerReport, Callers};
pub use client::RedisClient;
pub use holders::Holders;
pub use wire::{RedisReply, encode_request};

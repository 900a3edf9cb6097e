//! Users of number pools who come by the Redis protocol: [`Client`] asks one thing after the other, [`Callers`] take numbers
//! and give them back as fast as they can, over many connections, and look from outside whether a number is ever given to two.
//!
//! Like the ESME beside it, they share no code with the appliance, and are lean: requests are ready before the measurement
//! begins, and answers are looked at where they lie.

mod caller;
mod callers;
mod client;
mod holders;
#[cfg(test)]
mod tests;
mod wire;

pub use callers::{CallerOptions, CallerReport, Callers};
pub use client::Client;
pub use holders::Holders;
pub use wire::{Answer, request};

//! An ESME and an SMSC for measuring: [`Source`] submits, [`Sink`] takes, [`Tally`] keeps the books of both.
//!
//! They share no code with the appliance: what they read and write of SMPP is written here a second time, so that they
//! check it. And they are lean, so that a measurement shows the appliance and not its measuring tools: run against each
//! other they exchange several hundred thousand messages a second (`cargo xtask load`).
//!
//! Every message carries a number of its own in its text; the [`Tally`] knows of each number whether it was sent, how it
//! was answered, when, and how often it arrived.

pub mod gsm;
mod histogram;
pub mod pools;
mod probe;
mod processor;
mod sink;
mod source;
mod stop;
mod tally;
mod wire;

pub use histogram::Histogram;
pub use probe::Probe;
pub use processor::{process_time, resident, this_thread, thread_times};
pub use sink::{Sink, SinkOptions, SinkReport, SinkSecond};
pub use source::{Aside, Source, SourceOptions, SourceReport};
pub use stop::Stop;
pub use tally::{Accounts, Tally};

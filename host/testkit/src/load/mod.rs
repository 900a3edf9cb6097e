//! An ESME and an SMSC for load tests: [`Source`] submits, [`Sink`] receives, [`Tally`] records every message.
//!
//! They share no code with the appliance: their SMPP codec is an independent one, so that it checks the appliance's. They
//! are also fast enough not to be the bottleneck: connected to each other, they exchange several hundred thousand messages per
//! second (`cargo xtask load`).
//!
//! The text of every message contains a unique number; the [`Tally`] records for each number whether and when it was sent, how it
//! was answered and how often it arrived.

mod gateway_sink;
pub mod gsm;
mod histogram;
pub mod pools;
mod probe;
mod process_usage;
mod sink;
mod source;
mod stop_flag;
mod tally;
mod wire;

pub use gateway_sink::{GatewayProtocol, GatewaySink};
pub use histogram::Histogram;
pub use probe::Probe;
pub use process_usage::{cpu_time_by_thread, process_cpu_time, resident_memory, thread_cpu_time};
pub use sink::{Sink, SinkOptions, SinkReport, SinkSecond};
pub use source::{SideTraffic, Source, SourceOptions, SourceReport};
pub use stop_flag::StopFlag;
pub use tally::{Tally, TallySummary};

//! Simulated nodes of a GSM core network, for load tests and behaviour tests: [`SimulatedMsc`], [`SimulatedHlr`], and [`PlainMsc`],
//! which only measures request latency.
//!
//! Like the rest of the load generator, they share no code with the appliance: their IPA, GSUP, CTRL and TPDU codecs are
//! independent ones, so that they check the appliance's.

mod control;
mod hlr;
mod hlr_link;
mod msc;
mod msc_link;
mod msc_report;
mod plain_msc;
mod subscribers;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod wire;

pub use control::ControlReport;
pub use hlr::{HlrOptions, SimulatedHlr};
pub use msc::{MoAnswer, MoSender, MscOptions, MtBehaviour, RefusalCause, SimulatedMsc};
pub use msc_report::{Arrival, MscReport};
pub use plain_msc::PlainMsc;
pub use subscribers::Subscribers;

//! The far ends of a GSM core network, for measuring and for tests: [`StandInMsc`], [`StandInHlr`], and [`PlainMsc`], which
//! only asks and waits.
//!
//! Like the rest of the load generator they share no code with the appliance: what they read and write of IPA, GSUP, CTRL
//! and of TPDUs is written here a second time, so that they check it.

mod control;
mod hlr;
mod hlr_link;
mod msc;
mod msc_link;
mod plain;
mod record;
mod subscribers;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod wire;

pub use control::ControlReport;
pub use hlr::{HlrOptions, StandInHlr};
pub use msc::{Answers, Cause, MoAnswer, MscOptions, Phone, StandInMsc};
pub use plain::PlainMsc;
pub use record::{Arrival, MscReport};
pub use subscribers::Subscribers;

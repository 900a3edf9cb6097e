//! The life of a message: queues, timers, windows, retries, receipts. Pure: no I/O, no clock, no randomness of its own.
//!
//! The owner feeds [`Event`]s and the time into [`Engine::apply`], calls [`Engine::settle`] once per run of events,
//! and finds in [`Output`] a [`Batch`] of writes and the [`Command`]s that may leave **only after that batch is
//! durable**. That order is the promise of the whole appliance: nobody is told anything that a power cut could undo.
#![forbid(unsafe_code)]

mod batch;
mod command;
mod event;
mod settings;

pub use batch::{Batch, Handed, Part, Progress, Recovered, Waiting};
pub use command::{Answer, Command, Observation, Output, QueriedState};
pub use event::{Event, ReplyTo};
pub use settings::{PeerSettings, Settings, Uncertainty};

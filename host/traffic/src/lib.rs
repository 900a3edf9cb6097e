//! Sample SMPP traffic for trying out an appliance: `switchyard sink` is an SMSC that takes messages and sends delivery
//! receipts, `switchyard send` an ESME that submits messages at a rate. Both speak through the protocol crate `smpp` and
//! know nothing of the appliance.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool speaks on its standard streams"
)]

mod connection;
mod error;
mod send;
mod sink;

pub use error::TrafficError;
pub use send::SendCommand;
pub use sink::SinkCommand;

use std::process::ExitCode;

/// Runs a command to its end; an error is one line on standard error and exit status 1.
fn finish(outcome: Result<ExitCode, TrafficError>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("switchyard: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The runtime of a command: one thread is enough for sample traffic.
fn runtime() -> Result<tokio::runtime::Runtime, TrafficError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(TrafficError::Runtime)
}

//! Sample SMPP traffic for trying out an appliance: `switchyard sink` is an SMSC that takes messages and sends
//! delivery receipts, `switchyard send` an ESME that submits messages at a rate. Both use the protocol crate `smpp`
//! and know nothing of the appliance.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool speaks on its standard streams"
)]

mod connection;
mod send_command;
mod sink_command;
mod traffic_error;

pub use send_command::SendCommand;
pub use sink_command::SinkCommand;
pub use traffic_error::TrafficError;

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

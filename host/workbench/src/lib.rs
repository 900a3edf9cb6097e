//! The plugin tools: `switchyard plugin new`, `build`, `test`, `inspect`, `sign`, and the commands that deploy a plugin
//! to a running appliance. `docs/plugin-author` is the manual for plugin authors.

mod bill_file;
mod build;
mod case_answer;
mod case_check;
mod case_conversion;
mod case_details;
mod case_front_end;
mod case_lookup;
mod case_peer;
mod case_quality;
mod case_receipt;
mod case_text;
mod case_writer;
mod cases;
mod component;
mod contract;
mod dev;
mod distribution;
mod error;
mod fault_case;
mod format;
mod fuzz;
mod hooks_api;
mod inspect;
mod language;
mod local_host;
mod log_follow;
mod manifest;
mod message_case;
mod plugin_command;
pub mod plugin_host;
mod plugin_sources;
mod policy_command;
mod profile;
mod signing;
mod template;
mod tools;

pub use build::{BuildOutput, build};
pub use error::WorkbenchError;
pub use fault_case::fault_case;
pub use language::PluginLanguage;
pub use message_case::DecidedMessage;
pub use plugin_command::PluginCommand;
pub use policy_command::PolicyCommand;

/// Prints a status line to standard error; results go to standard output.
#[allow(clippy::print_stderr, reason = "a command line tool uses the standard streams")]
fn print_status(line: &str) {
    eprintln!("{line}");
}

/// Prints a result to standard output while the command runs.
#[allow(clippy::print_stdout, reason = "a command line tool uses the standard streams")]
fn print_result(text: &str) {
    println!("{}", text.trim_end());
}

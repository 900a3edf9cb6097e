//! The workbench of a plugin's author: `switchyard plugin new`, `build`, `test`, `inspect`, `sign`, and what brings a plugin
//! into a running appliance. `plugins/README.md` is the guide that uses all of it.

mod appliance;
pub mod bench;
mod build;
mod cases;
mod command;
mod component;
mod contract;
mod error;
mod harness;
mod inspect;
mod judge;
mod language;
mod manifest;
mod shown;
mod signing;
mod template;
mod tools;
mod words;

pub use build::{Built, build};
pub use command::Command;
pub use error::WorkbenchError;
pub use language::Language;

/// Says something about what is going on; results go to standard output.
#[allow(clippy::print_stderr, reason = "a command line tool speaks on its standard streams")]
fn say(line: &str) {
    eprintln!("{line}");
}

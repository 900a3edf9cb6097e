//! The context of commands: functions and data of the daemon's program.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Functions and data of the daemon's program that the commands need.
#[derive(Debug, Clone, Copy)]
pub struct CliContext {
    /// The whole command line as a clap command, for completions and man pages.
    pub command: fn() -> clap::Command,
    /// The version of the program.
    pub version: &'static str,
    /// Reads a configuration file; the error has one line for each problem.
    pub read: fn(&Path) -> Result<ConfigFacts, String>,
}

/// The parts of a configuration file that the doctor checks.
#[derive(Debug, Clone)]
pub struct ConfigFacts {
    /// A short summary of the configuration.
    pub summary: String,
    /// The data directory.
    pub data: PathBuf,
    /// The file with the root token of the API.
    pub token_file: PathBuf,
    /// The free octets on the disk below which submissions are refused.
    pub free_space_watermark: u64,
    /// All listen addresses, each with the name of its listener.
    pub listens: Vec<(String, SocketAddr)>,
    /// The maximum number of connections, incoming and outgoing.
    pub connections: u64,
    /// The URL of the API.
    pub url: String,
    /// Host and port of the archive's database, if it is reached over the network.
    pub archive: Option<String>,
    /// A short description of the journal in the data directory, or the error if it cannot be read; `None` before the first
    /// start.
    pub journal: Option<Result<String, String>>,
    /// A short description of the tables in the data directory, or their damage; `None` before the first start.
    pub tables: Option<Result<String, String>>,
    /// A short description of the text keys, or the error if they cannot be used; `None` if texts are not encrypted.
    pub text_keys: Option<Result<String, String>>,
}

//! What the commands need of the daemon's program.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Functions and data of the daemon's program that the commands need.
#[derive(Debug, Clone, Copy)]
pub struct CliContext {
    /// The whole command line, as clap has it: for completions and man pages.
    pub command: fn() -> clap::Command,
    /// The version of the program.
    pub version: &'static str,
    /// Reads a configuration file; the error has one line for each problem.
    pub read: fn(&Path) -> Result<ConfigFacts, String>,
}

/// The parts of a configuration file that the doctor checks.
#[derive(Debug, Clone)]
pub struct ConfigFacts {
    /// A summary of the configuration, in a few words.
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
    /// The journal of the data directory in a few words, or why it cannot be read; `None` before the first start.
    pub journal: Option<Result<String, String>>,
    /// The tables of the data directory in a few words, or their damage; `None` before the first start.
    pub tables: Option<Result<String, String>>,
    /// The keys of texts in a few words, or why they cannot be used; `None` if texts are not encrypted.
    pub text_keys: Option<Result<String, String>>,
}

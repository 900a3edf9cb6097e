//! The starts of the daemon, one JSON document per line. The file is rewritten at each start.

use api::{HistoryEventKind, HistoryEventView};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Maximum number of starts that are kept.
const MAX_STARTS: usize = 200;

/// A start.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Start {
    /// Milliseconds since the epoch.
    at: u64,
    /// The term, if the node became the leader of a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    term: Option<u64>,
}

/// The starts, oldest first.
#[derive(Debug, Default)]
pub(super) struct Starts {
    starts: Vec<Start>,
    /// The file; `None` if the starts are in memory only.
    path: Option<PathBuf>,
}

impl Starts {
    /// Reads the file. Malformed lines are ignored.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let starts = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self { starts, path: Some(path.to_owned()) })
    }

    /// Adds a start.
    pub(super) fn add(&mut self, at: u64, term: Option<u64>) -> io::Result<()> {
        self.starts.push(Start { at, term });
        let excess = self.starts.len().saturating_sub(MAX_STARTS);
        self.starts.drain(..excess);
        let Some(path) = &self.path else { return Ok(()) };
        let lines: Result<Vec<String>, _> = self.starts.iter().map(serde_json::to_string).collect();
        atomic_file::replace_file(path, (lines?.join("\n") + "\n").as_bytes(), atomic_file::PUBLIC)
    }

    /// The starts in a period.
    pub(super) fn between(&self, from: u64, until: u64) -> Vec<HistoryEventView> {
        let within = self.starts.iter().filter(|start| start.at >= from && start.at < until);
        let event = |start: &Start| HistoryEventView {
            at: start.at,
            kind: if start.term.is_some() { HistoryEventKind::TakeOver } else { HistoryEventKind::Start },
            subject: start.term.map_or_else(String::new, |term| term.to_string()),
            text: String::new(),
        };
        within.map(event).collect()
    }
}

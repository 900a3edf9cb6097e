//! The durable position of CDR files.

use crate::EventsError;
use crate::cursor::write_whole;
use journal::Seq;
use model::Timestamp;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The sums of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct FileTotals {
    pub(crate) opened_at: Timestamp,
    pub(crate) records: u64,
    pub(crate) segments: u64,
    /// Millionths of the currency unit.
    pub(crate) captured: u64,
    /// Millionths of the currency unit.
    pub(crate) refunded: u64,
    /// Records of the journal that were gone before they were read.
    pub(crate) lost_records: u64,
}

/// How far the files go.
///
/// On disk, `events/NAME.cdr` in the data directory: one line of JSON with these fields, replaced as a whole after the octets are
/// synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct CdrState {
    /// Which journal it is: [`journal::JournalReader::created`].
    pub(crate) journal: u64,
    /// The ends in all records up to this one are in the files.
    pub(crate) seq: u64,
    /// The number of the open file, or of the next one.
    pub(crate) file: u64,
    /// The length of the open file up to that record; 0: it is not begun.
    pub(crate) octets: u64,
    pub(crate) totals: FileTotals,
    /// The file before is complete, and may not have its final name yet.
    pub(crate) renaming: bool,
}

impl CdrState {
    pub(crate) const fn seq(&self) -> Seq {
        Seq(self.seq)
    }
}

/// The file with the state.
#[derive(Debug, Clone)]
pub(crate) struct CdrStateFile {
    path: PathBuf,
}

impl CdrStateFile {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        Self { path: folder.join(format!("{name}.cdr")) }
    }

    /// The state; `None` if there is none yet.
    pub(crate) fn load(&self) -> Result<Option<CdrState>, EventsError> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(EventsError::CursorFile { path: self.path.clone(), source }),
        };
        let damaged = |error: serde_json::Error| EventsError::CursorDamaged {
            path: self.path.clone(),
            what: error.to_string(),
        };
        serde_json::from_str(&text).map(Some).map_err(damaged)
    }

    /// Stores the state, durable on return.
    pub(crate) fn save(&self, state: &CdrState) -> Result<(), EventsError> {
        let text = serde_json::to_vec(state).unwrap_or_default();
        let failed = |source| EventsError::CursorFile { path: self.path.clone(), source };
        write_whole(&self.path, &text).map_err(failed)
    }
}

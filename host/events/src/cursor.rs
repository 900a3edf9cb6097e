//! Durable positions in the journal.

use crate::EventsError;
use journal::Seq;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// A position in a journal.
///
/// On disk, `events/NAME.cursor` in the data directory: one line of JSON with these fields, replaced as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Cursor {
    /// Which journal it is: [`journal::JournalReader::created`].
    pub(crate) journal: u64,
    /// Everything up to this record was sent.
    pub(crate) seq: u64,
}

impl Cursor {
    pub(crate) const fn seq(self) -> Seq {
        Seq(self.seq)
    }
}

/// The file of a position.
#[derive(Debug, Clone)]
pub(crate) struct CursorFile {
    path: PathBuf,
}

impl CursorFile {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        Self { path: folder.join(format!("{name}.cursor")) }
    }

    /// The position; `None` if there is none yet.
    pub(crate) fn load(&self) -> Result<Option<Cursor>, EventsError> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        let damaged = |error: serde_json::Error| EventsError::CursorDamaged {
            path: self.path.clone(),
            what: error.to_string(),
        };
        serde_json::from_str(&text).map(Some).map_err(damaged)
    }

    /// Stores the position, durable on return.
    pub(crate) fn save(&self, cursor: Cursor) -> Result<(), EventsError> {
        let text = serde_json::to_vec(&cursor).unwrap_or_default();
        write_whole(&self.path, &text).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: std::io::Error) -> EventsError {
        EventsError::CursorFile { path: self.path.clone(), source }
    }
}

/// Replaces a file as a whole: after a crash it has the old or the new octets.
pub(crate) fn write_whole(path: &Path, octets: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    file.write_all(octets)?;
    file.sync_all()?;
    drop(file);
    std::fs::rename(&temporary, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_what_was_stored_last() {
        let folder = tempfile::tempdir().unwrap();
        let file = CursorFile::new(&folder.path().join("events"), "crm");
        assert_eq!(file.load().unwrap(), None);
        for seq in [1, 7] {
            file.save(Cursor { journal: 5, seq }).unwrap();
            assert_eq!(file.load().unwrap(), Some(Cursor { journal: 5, seq }));
        }
        std::fs::write(folder.path().join("events/crm.cursor"), "{").unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(error.contains("crm.cursor") && error.contains("Remove the file"), "{error}");
    }
}

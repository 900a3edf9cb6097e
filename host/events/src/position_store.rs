//! Stores for the positions of the readers of the journal.

use crate::EventsError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

/// A durable store of octets by name. In a cluster, the daemon implements it over etcd.
pub trait PositionStore: Send + Sync {
    /// The stored octets; `None` if there are none.
    ///
    /// # Errors
    /// The store cannot be read. The caller tries again.
    fn load(&self, name: &str) -> Result<Option<Vec<u8>>, EventsError>;

    /// Replaces `previous` by `octets`; durable on return.
    ///
    /// # Errors
    /// It is unknown whether the octets are stored. In a cluster also: something else was stored in the meantime, or
    /// this node does not lead any more.
    fn save(&self, name: &str, previous: Option<&[u8]>, octets: &[u8]) -> Result<(), EventsError>;

    /// Path or file of a name, for error messages.
    fn location(&self, name: &str) -> String;
}

/// Position files in one folder. This process is their only writer.
#[derive(Debug)]
pub(crate) struct PositionFiles {
    folder: PathBuf,
}

impl PositionFiles {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn failed(&self, name: &str) -> impl FnOnce(std::io::Error) -> EventsError + use<> {
        let path = self.folder.join(name);
        move |source| EventsError::PositionFile { path, source }
    }
}

impl PositionStore for PositionFiles {
    fn load(&self, name: &str) -> Result<Option<Vec<u8>>, EventsError> {
        match std::fs::read(self.folder.join(name)) {
            Ok(octets) => Ok(Some(octets)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(name)(error)),
        }
    }

    fn save(&self, name: &str, _previous: Option<&[u8]>, octets: &[u8]) -> Result<(), EventsError> {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&self.folder)).map_err(self.failed(name))?;
        atomic_file::replace_file(&path, octets, atomic_file::PUBLIC).map_err(self.failed(name))
    }

    fn location(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

/// The position of one reader, stored as one line of JSON.
pub(crate) struct StoredPosition<T> {
    store: Arc<dyn PositionStore>,
    name: String,
    /// The stored octets; `None` if they are unknown.
    stored: Option<Option<Vec<u8>>>,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Serialize> StoredPosition<T> {
    pub(crate) fn new(store: Arc<dyn PositionStore>, name: String) -> Self {
        Self { store, name, stored: None, value: PhantomData }
    }

    /// The position; `None` if there is none yet.
    pub(crate) fn load(&mut self) -> Result<Option<T>, EventsError> {
        let octets = self.store.load(&self.name)?;
        self.stored = Some(octets.clone());
        let damaged = |error: serde_json::Error| EventsError::PositionDamaged {
            location: self.store.location(&self.name),
            what: error.to_string(),
        };
        octets.as_deref().map(serde_json::from_slice).transpose().map_err(damaged)
    }

    /// Stores the position; durable on return. After an error, it is unknown whether it is stored.
    pub(crate) fn save(&mut self, value: &T) -> Result<(), EventsError> {
        let octets = serde_json::to_vec(value).unwrap_or_default();
        let stored = match self.stored.take() {
            Some(stored) => stored,
            None => self.store.load(&self.name)?,
        };
        self.store.save(&self.name, stored.as_deref(), &octets)?;
        self.stored = Some(Some(octets));
        Ok(())
    }
}

impl<T> std::fmt::Debug for StoredPosition<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredPosition").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Cursor;

    #[test]
    fn the_last_stored_position_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let events = folder.path().join("events");
        let store: Arc<dyn PositionStore> = Arc::new(PositionFiles::new(events.clone()));
        let stored = || StoredPosition::<Cursor>::new(store.clone(), "crm.cursor".to_owned());
        let mut file = stored();
        assert_eq!(file.load().unwrap(), None);
        for seq in [1, 7] {
            file.save(&Cursor { journal: 5, seq }).unwrap();
            assert_eq!(stored().load().unwrap(), Some(Cursor { journal: 5, seq }));
        }
        std::fs::write(events.join("crm.cursor"), "{").unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(error.contains("crm.cursor") && error.contains("Remove it"), "{error}");
    }
}

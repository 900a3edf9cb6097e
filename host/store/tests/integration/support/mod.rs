//! Random records and the expected content, for all tests of the store.

#[path = "../../../../codec/tests/integration/generators.rs"]
#[allow(dead_code, reason = "shared with the tests of the codec")]
mod generators;
mod ledger;
pub(crate) mod reference;

pub(crate) use generators::*;

use journal::simulation::SimulatedDisk;
use journal::{Journal, LocalJournal, Preparation};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreError, StoreOptions};
use text_keys::{RootKey, TextKeys};

/// Options of a small store.
pub(crate) fn options() -> StoreOptions {
    let journal = journal::JournalOptions { segment_octets: 1 << 20, ..journal::JournalOptions::default() };
    StoreOptions { cache: 1 << 20, journal, cipher: None }
}

/// Keys that encrypt the contents of all messages.
pub(crate) fn text_keys(folder: &Path) -> Arc<TextKeys> {
    let root = folder.join("root.key");
    RootKey::create(&root).unwrap();
    let period = Duration::from_secs(86_400);
    let keys = TextKeys::open(&folder.join("text.keys"), RootKey::read(&root).unwrap(), period).unwrap();
    keys.set_accounts([], true);
    Arc::new(keys)
}

/// Opens the store on two disks: one for the tables, one for the journal.
pub(crate) fn open_on(
    tables: impl redb::StorageBackend,
    journal: &Arc<SimulatedDisk>,
) -> Result<Store, StoreError> {
    let options = journal::JournalOptions {
        segment_octets: 1 << 16,
        preparation: Preparation::Inline,
        ..journal::JournalOptions::default()
    };
    let directory = journal.directory();
    let open_journal = |applied| {
        let journal = LocalJournal::open_on(directory, options, applied)?;
        Ok(Box::new(journal) as Box<dyn Journal>)
    };
    Store::open_on(tables, open_journal, 1 << 20)
}

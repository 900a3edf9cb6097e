//! The version store: every configuration that was active, and the version that is waiting to be confirmed.

use crate::Key;
use crate::key_upgrade::upgrade_keys;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use snapshot::{Snapshot, SnapshotError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// On disk, table `summaries`: version number → JSON of [`ConfigVersionSummary`].
const SUMMARIES: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("summaries");
/// On disk, table `documents`: version number → document as JSON, including secrets.
const DOCUMENTS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("documents");
/// On disk, table `state`: `pending` → JSON of [`PendingVersion`], present while a version waits to be confirmed;
/// `seed` → the document returned by [`VersionStore::seed`].
const STATE: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("state");

/// The tables that the nodes of a cluster share.
const ROW_KINDS: [(&str, TableDefinition<'static, u64, &[u8]>); 2] =
    [("summaries", SUMMARIES), ("documents", DOCUMENTS)];
/// The number of versions that the nodes of a cluster share.
const SHARED_VERSIONS: usize = 100;
/// The maximum number of versions kept.
const MAX_VERSIONS: usize = 1_000;
/// The maximum size of all documents kept, in octets. The newest two versions are always kept.
const MAX_DOCUMENT_OCTETS: u64 = 512 << 20;

/// The version store cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum VersionStoreError {
    /// The file cannot be opened, read or written.
    #[error("{path}: {source}")]
    Store {
        /// The path of the file.
        path: PathBuf,
        /// The error of redb.
        source: Box<redb::Error>,
    },
    /// A record of the file is malformed.
    #[error("{path}: version {version} cannot be read: {source}")]
    Record {
        /// The path of the file.
        path: PathBuf,
        /// The version number.
        version: u64,
        /// The JSON error.
        source: serde_json::Error,
    },
}

/// A version without its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigVersionSummary {
    /// The version number, counted from 1.
    pub version: u64,
    /// The time at which the version became active, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The author.
    pub by: String,
    /// The author's reason; may be empty.
    pub why: String,
    /// The number of differences from the previous version.
    pub changes: usize,
    /// The size of the document, in octets.
    octets: u64,
}

/// A version.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigVersion {
    /// The metadata.
    pub summary: ConfigVersionSummary,
    /// The document, including secrets.
    pub document: Value,
}

/// A version to append.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionDraft {
    /// The time, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The author.
    pub by: String,
    /// The author's reason.
    pub why: String,
    /// The document.
    pub document: Value,
    /// The deadline for the confirmation, in milliseconds since the Unix epoch.
    pub confirm_until: Option<u64>,
}

/// A version that is reverted unless it is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PendingVersion {
    /// The version.
    pub version: u64,
    /// The version to revert to.
    pub back_to: u64,
    /// The deadline, in milliseconds since the Unix epoch. A restart reverts at once.
    pub reverts_at: u64,
}

/// The version store, in its own redb file. A version is never rewritten; the oldest are deleted beyond 1000 versions.
#[derive(Debug)]
pub struct VersionStore {
    path: PathBuf,
    database: Database,
    keys: &'static [Key],
    max_versions: usize,
    /// Counts the changes since the file was opened.
    changes: AtomicU64,
}

impl VersionStore {
    /// Takes a snapshot of the file for a backup. Writes can continue meanwhile.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        Snapshot::take(&self.path, &self.database, |copier| {
            copier.table(SUMMARIES)?;
            copier.table(DOCUMENTS)?;
            copier.table(STATE)
        })
    }

    /// Opens the file, creating it if necessary. `keys` are the keys of the documents.
    ///
    /// # Errors
    /// Fails if the file cannot be opened.
    pub fn open(path: &Path, keys: &'static [Key]) -> Result<Self, VersionStoreError> {
        let failed =
            |source: redb::Error| VersionStoreError::Store { path: path.to_owned(), source: source.into() };
        let database =
            Database::builder().set_cache_size(4 << 20).create(path).map_err(|error| failed(error.into()))?;
        let make = || -> Result<(), redb::Error> {
            let transaction = database.begin_write()?;
            transaction.open_table(SUMMARIES)?;
            transaction.open_table(DOCUMENTS)?;
            transaction.open_table(STATE)?;
            transaction.commit()?;
            Ok(())
        };
        make().map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            database,
            keys,
            max_versions: MAX_VERSIONS,
            changes: AtomicU64::new(0),
        })
    }

    fn failed(&self, source: redb::Error) -> VersionStoreError {
        VersionStoreError::Store { path: self.path.clone(), source: source.into() }
    }

    fn read<T: for<'de> Deserialize<'de>>(
        &self,
        version: u64,
        octets: &[u8],
    ) -> Result<T, VersionStoreError> {
        serde_json::from_slice(octets).map_err(|source| VersionStoreError::Record {
            path: self.path.clone(),
            version,
            source,
        })
    }

    /// The newest version; `None` if there is none.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn newest(&self) -> Result<Option<ConfigVersion>, VersionStoreError> {
        let number = || -> Result<Option<u64>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let newest = transaction.open_table(SUMMARIES)?.last()?.map(|(number, _)| number.value());
            Ok(newest)
        };
        match number().map_err(|error| self.failed(error))? {
            Some(number) => self.get(number),
            None => Ok(None),
        }
    }

    /// One version; `None` if it does not exist or was deleted.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn get(&self, version: u64) -> Result<Option<ConfigVersion>, VersionStoreError> {
        type Octets = (Vec<u8>, Vec<u8>);
        let get = || -> Result<Option<Octets>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let summary =
                transaction.open_table(SUMMARIES)?.get(version)?.map(|octets| octets.value().to_vec());
            let document =
                transaction.open_table(DOCUMENTS)?.get(version)?.map(|octets| octets.value().to_vec());
            Ok(summary.zip(document))
        };
        let Some((summary, document)) = get().map_err(|error| self.failed(error))? else { return Ok(None) };
        let summary = self.read(version, &summary)?;
        let mut document = self.read(version, &document)?;
        upgrade_keys(self.keys, &mut document);
        Ok(Some(ConfigVersion { summary, document }))
    }

    /// At most `limit` versions older than `before`, newest first.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn list(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<ConfigVersionSummary>, VersionStoreError> {
        let list = || -> Result<Vec<(u64, Vec<u8>)>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let table = transaction.open_table(SUMMARIES)?;
            let range = table.range(..before.unwrap_or(u64::MAX))?.rev().take(limit);
            range
                .map(|row| {
                    row.map(|(number, octets)| (number.value(), octets.value().to_vec())).map_err(Into::into)
                })
                .collect()
        };
        let rows = list().map_err(|error| self.failed(error))?;
        rows.iter().map(|(number, octets)| self.read(*number, octets)).collect()
    }

    /// Appends a version, together with its confirmation deadline if it has one. The version is durable when this
    /// returns. A version that was waiting to be confirmed no longer waits.
    ///
    /// # Errors
    /// Fails if the file cannot be written; in this case nothing changes.
    pub fn append(&self, draft: &VersionDraft) -> Result<ConfigVersionSummary, VersionStoreError> {
        let before = self.newest()?;
        let (summary, document) = summarize(self.keys, before.as_ref(), draft);
        let (number, confirm_until) = (summary.version, draft.confirm_until);
        let pending = confirm_until.zip(before).map(|(reverts_at, before)| PendingVersion {
            version: number,
            back_to: before.summary.version,
            reverts_at,
        });
        let encode = |value: Result<Vec<u8>, serde_json::Error>| {
            value.map_err(|source| VersionStoreError::Record {
                path: self.path.clone(),
                version: number,
                source,
            })
        };
        let row = encode(serde_json::to_vec(&summary))?;
        let pending = pending.map(|pending| encode(serde_json::to_vec(&pending))).transpose()?;
        let mut left = MAX_DOCUMENT_OCTETS.saturating_sub(summary.octets);
        let mut old = Vec::new();
        for (index, kept) in self.list(None, self.max_versions * 2)?.iter().enumerate() {
            left = left.saturating_sub(kept.octets);
            if index + 1 >= self.max_versions || (left == 0 && index > 0) {
                old.push(kept.version);
            }
        }
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            {
                let mut summaries = transaction.open_table(SUMMARIES)?;
                let mut documents = transaction.open_table(DOCUMENTS)?;
                let mut state = transaction.open_table(STATE)?;
                summaries.insert(number, row.as_slice())?;
                documents.insert(number, document.as_slice())?;
                for version in &old {
                    summaries.remove(version)?;
                    documents.remove(version)?;
                }
                match &pending {
                    Some(pending) => drop(state.insert("pending", pending.as_slice())?),
                    None => drop(state.remove("pending")?),
                }
            }
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| self.failed(error))?;
        self.changes.fetch_add(1, Relaxed);
        Ok(summary)
    }

    /// Changes since the file was opened.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// The newest versions and the pending confirmation, in their stored form, for another node of a cluster:
    /// `summaries/NUMBER`, `documents/NUMBER` and `pending`.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn rows(&self) -> Result<BTreeMap<String, Vec<u8>>, VersionStoreError> {
        let read = || -> Result<BTreeMap<String, Vec<u8>>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let mut all = BTreeMap::new();
            for (kind, table) in ROW_KINDS {
                let table = transaction.open_table(table)?;
                for row in table.iter()?.rev().take(SHARED_VERSIONS) {
                    let (number, octets) = row?;
                    all.insert(format!("{kind}/{}", number.value()), octets.value().to_vec());
                }
            }
            let pending = transaction.open_table(STATE)?.get("pending")?;
            if let Some(pending) = pending {
                all.insert("pending".to_owned(), pending.value().to_vec());
            }
            Ok(all)
        };
        read().map_err(|error| self.failed(error))
    }

    /// Sets rows of another node of the cluster; `None` removes a row. All changes are applied, or none.
    ///
    /// # Errors
    /// Fails if a value is not JSON, a name is unknown, or the file cannot be written.
    pub fn set_rows(&self, changes: &[(String, Option<Vec<u8>>)]) -> Result<(), VersionStoreError> {
        for octets in changes.iter().filter_map(|(_, octets)| octets.as_ref()) {
            self.read::<serde::de::IgnoredAny>(0, octets)?;
        }
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            for (name, octets) in changes {
                if name == "pending" {
                    let mut state = transaction.open_table(STATE)?;
                    match octets {
                        Some(octets) => drop(state.insert("pending", octets.as_slice())?),
                        None => drop(state.remove("pending")?),
                    }
                    continue;
                }
                let parts = name.split_once('/').and_then(|(kind, number)| {
                    let (_, table) = ROW_KINDS.into_iter().find(|(known, _)| *known == kind)?;
                    Some((table, number.parse::<u64>().ok()?))
                });
                let Some((table, number)) = parts else {
                    return Err(std::io::Error::other(format!("{name:?} is not a row of this file")).into());
                };
                let mut table = transaction.open_table(table)?;
                match octets {
                    Some(octets) => drop(table.insert(number, octets.as_slice())?),
                    None => drop(table.remove(number)?),
                }
            }
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| self.failed(error))?;
        self.changes.fetch_add(1, Relaxed);
        Ok(())
    }

    /// The summary that a draft would get if it were [appended](Self::append) next. Nothing is written.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn preview(&self, draft: &VersionDraft) -> Result<ConfigVersionSummary, VersionStoreError> {
        Ok(summarize(self.keys, self.newest()?.as_ref(), draft).0)
    }

    /// The version that is waiting to be confirmed.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn pending(&self) -> Result<Option<PendingVersion>, VersionStoreError> {
        match self.state("pending")? {
            Some(octets) => self.read(0, &octets).map(Some),
            None => Ok(None),
        }
    }

    /// Clears the pending confirmation.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn confirm(&self) -> Result<(), VersionStoreError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            transaction.open_table(STATE)?.remove("pending")?;
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| self.failed(error))?;
        self.changes.fetch_add(1, Relaxed);
        Ok(())
    }

    fn state(&self, key: &str) -> Result<Option<Vec<u8>>, VersionStoreError> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let transaction = self.database.begin_read()?;
            Ok(transaction.open_table(STATE)?.get(key)?.map(|octets| octets.value().to_vec()))
        };
        read().map_err(|error| self.failed(error))
    }

    /// The file's document at the first start, or the last document that was reported to the admin.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn seed(&self) -> Result<Option<Value>, VersionStoreError> {
        match self.state("seed")? {
            Some(octets) => {
                let mut document = self.read(0, &octets)?;
                upgrade_keys(self.keys, &mut document);
                Ok(Some(document))
            }
            None => Ok(None),
        }
    }

    /// Stores the file's document.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    pub fn set_seed(&self, document: &Value) -> Result<(), VersionStoreError> {
        let octets = document.to_string().into_bytes();
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            transaction.open_table(STATE)?.insert("seed", octets.as_slice())?;
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| self.failed(error))
    }
}

/// The summary and the encoded document of the version that follows `before`.
fn summarize(
    keys: &[Key],
    before: Option<&ConfigVersion>,
    draft: &VersionDraft,
) -> (ConfigVersionSummary, Vec<u8>) {
    let version = before.map_or(1, |before| before.summary.version + 1);
    let changes = before.map_or(0, |before| crate::diff(keys, &before.document, &draft.document).len());
    let document = draft.document.to_string().into_bytes();
    let (at, by, why) = (draft.at, draft.by.clone(), draft.why.clone());
    (ConfigVersionSummary { version, at, by, why, changes, octets: document.len() as u64 }, document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn draft(document: Value, confirm_until: Option<u64>) -> VersionDraft {
        VersionDraft { at: 1, by: "me".into(), why: "because".into(), document, confirm_until }
    }

    #[test]
    fn versions_survive_a_reopen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("configuration.redb");
        let versions = VersionStore::open(&path, &[]).unwrap();
        assert_eq!(versions.newest().unwrap(), None);
        versions.append(&draft(json!({"a": 1}), None)).unwrap();
        let second = versions.append(&draft(json!({"a": 2, "b": 1}), Some(77))).unwrap();
        assert_eq!((second.version, second.changes), (2, 2));
        drop(versions);
        let versions = VersionStore::open(&path, &[]).unwrap();
        let pending = PendingVersion { version: 2, back_to: 1, reverts_at: 77 };
        assert_eq!(versions.pending().unwrap(), Some(pending));
        assert_eq!(versions.newest().unwrap().unwrap().summary, second);
        assert_eq!(versions.get(1).unwrap().unwrap().document, json!({"a": 1}));
        assert_eq!(versions.get(3).unwrap(), None);
        versions.confirm().unwrap();
        assert_eq!(versions.pending().unwrap(), None);
    }

    #[test]
    fn the_first_version_needs_no_confirmation() {
        let folder = tempfile::tempdir().unwrap();
        let versions = VersionStore::open(&folder.path().join("v"), &[]).unwrap();
        versions.append(&draft(json!({}), Some(7))).unwrap();
        assert_eq!(versions.pending().unwrap(), None);
    }

    #[test]
    fn only_the_newest_versions_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut versions = VersionStore::open(&folder.path().join("v"), &[]).unwrap();
        assert_eq!(versions.max_versions, 1_000);
        versions.max_versions = 10;
        for n in 0..13 {
            versions.append(&draft(json!({ "n": n }), None)).unwrap();
        }
        let all = versions.list(None, 5_000).unwrap();
        assert_eq!((all.len(), all[0].version, all[9].version), (10, 13, 4));
        let page: Vec<_> = versions.list(Some(10), 2).unwrap().iter().map(|one| one.version).collect();
        assert_eq!(page, [9, 8]);
    }
}

//! Every configuration that was ever in force, and the one that waits to be confirmed.

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use snapshot::{Snapshot, SnapshotError};
use std::path::{Path, PathBuf};

/// On disk, table `summaries`: number of the version → JSON of [`Summary`].
const SUMMARIES: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("summaries");
/// On disk, table `documents`: number of the version → the document as JSON, secrets and all.
const DOCUMENTS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("documents");
/// On disk, table `state`: `pending` → JSON of [`Pending`], as long as a version waits to be confirmed; `seed` → what
/// [`Versions::seed`] gives.
const STATE: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("state");

/// Versions that are kept.
const KEPT: usize = 1_000;
/// Octets of documents that are kept; the newest two are kept whatever they take.
const KEPT_OCTETS: u64 = 512 << 20;

/// The versions cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    /// The file.
    #[error("{path}: {source}")]
    Store {
        /// The file.
        path: PathBuf,
        /// What redb says.
        source: Box<redb::Error>,
    },
    /// A record in it.
    #[error("{path}: version {version} cannot be read: {source}")]
    Record {
        /// The file.
        path: PathBuf,
        /// The version.
        version: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// A version without its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Its number; the first is 1.
    pub version: u64,
    /// When it came into force, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Who brought it.
    pub by: String,
    /// Why, in that one's words; may be empty.
    pub why: String,
    /// In how many places it differs from the version before.
    pub changes: usize,
    /// Octets of its document.
    octets: u64,
}

/// A version.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// All but the document.
    pub summary: Summary,
    /// The document, with its secrets.
    pub document: Value,
}

/// A version that is to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Who brings it.
    pub by: String,
    /// Why.
    pub why: String,
    /// The document.
    pub document: Value,
    /// Until when it must be confirmed, in milliseconds since the Unix epoch.
    pub confirm_until: Option<u64>,
}

/// A version that reverts unless somebody confirms it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Pending {
    /// The version.
    pub version: u64,
    /// The version that is in force again if nobody does.
    pub back_to: u64,
    /// When that is, in milliseconds since the Unix epoch. A restart does not wait for it.
    pub reverts_at: u64,
}

/// The versions, in a file of their own. None is ever rewritten; the oldest go when there are a thousand.
#[derive(Debug)]
pub struct Versions {
    path: PathBuf,
    database: Database,
    kept: usize,
}

impl Versions {
    /// The file as it stands now, for a backup. Writing goes on beside it.
    ///
    /// # Errors
    /// When the file fails.
    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        Snapshot::take(&self.path, &self.database, |copier| {
            copier.table(SUMMARIES)?;
            copier.table(DOCUMENTS)?;
            copier.table(STATE)
        })
    }

    /// Opens the file, and makes it if it is not there.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, VersionsError> {
        let failed =
            |source: redb::Error| VersionsError::Store { path: path.to_owned(), source: source.into() };
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
        Ok(Self { path: path.to_owned(), database, kept: KEPT })
    }

    fn failed(&self, source: redb::Error) -> VersionsError {
        VersionsError::Store { path: self.path.clone(), source: source.into() }
    }

    fn read<T: for<'de> Deserialize<'de>>(&self, version: u64, octets: &[u8]) -> Result<T, VersionsError> {
        serde_json::from_slice(octets).map_err(|source| VersionsError::Record {
            path: self.path.clone(),
            version,
            source,
        })
    }

    /// The newest version; none before the first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn newest(&self) -> Result<Option<Version>, VersionsError> {
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

    /// One version; none if there is none of that number, or no longer.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn get(&self, version: u64) -> Result<Option<Version>, VersionsError> {
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
        let (summary, document) = (self.read(version, &summary)?, self.read(version, &document)?);
        Ok(Some(Version { summary, document }))
    }

    /// Versions, newest first: at most `most` of them, older than `before`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&self, before: Option<u64>, most: usize) -> Result<Vec<Summary>, VersionsError> {
        let list = || -> Result<Vec<(u64, Vec<u8>)>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let table = transaction.open_table(SUMMARIES)?;
            let range = table.range(..before.unwrap_or(u64::MAX))?.rev().take(most);
            range
                .map(|row| {
                    row.map(|(number, octets)| (number.value(), octets.value().to_vec())).map_err(Into::into)
                })
                .collect()
        };
        let rows = list().map_err(|error| self.failed(error))?;
        rows.iter().map(|(number, octets)| self.read(*number, octets)).collect()
    }

    /// Writes a new version, and that it waits to be confirmed if it does. It is on disk when this returns. A version that
    /// waited before waits no longer.
    ///
    /// # Errors
    /// When the file cannot be written; nothing has changed then.
    pub fn append(&self, draft: &Draft) -> Result<Summary, VersionsError> {
        let before = self.newest()?;
        let (summary, document) = summarize(before.as_ref(), draft);
        let (number, confirm_until) = (summary.version, draft.confirm_until);
        let pending = confirm_until.zip(before).map(|(reverts_at, before)| Pending {
            version: number,
            back_to: before.summary.version,
            reverts_at,
        });
        let encode = |value: Result<Vec<u8>, serde_json::Error>| {
            value.map_err(|source| VersionsError::Record { path: self.path.clone(), version: number, source })
        };
        let row = encode(serde_json::to_vec(&summary))?;
        let pending = pending.map(|pending| encode(serde_json::to_vec(&pending))).transpose()?;
        let mut left = KEPT_OCTETS.saturating_sub(summary.octets);
        let mut old = Vec::new();
        for (place, kept) in self.list(None, self.kept * 2)?.iter().enumerate() {
            left = left.saturating_sub(kept.octets);
            if place + 1 >= self.kept || (left == 0 && place > 0) {
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
        Ok(summary)
    }

    /// The summary that a draft gets when it is the next to be [appended](Self::append). Nothing is written.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn preview(&self, draft: &Draft) -> Result<Summary, VersionsError> {
        Ok(summarize(self.newest()?.as_ref(), draft).0)
    }

    /// The version that waits to be confirmed.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn pending(&self) -> Result<Option<Pending>, VersionsError> {
        match self.state("pending")? {
            Some(octets) => self.read(0, &octets).map(Some),
            None => Ok(None),
        }
    }

    /// Nothing waits to be confirmed any more.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn confirm(&self) -> Result<(), VersionsError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            transaction.open_table(STATE)?.remove("pending")?;
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| self.failed(error))
    }

    fn state(&self, key: &str) -> Result<Option<Vec<u8>>, VersionsError> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let transaction = self.database.begin_read()?;
            Ok(transaction.open_table(STATE)?.get(key)?.map(|octets| octets.value().to_vec()))
        };
        read().map_err(|error| self.failed(error))
    }

    /// What the file was like that the first version came from, or the last one that its admin has seen.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn seed(&self) -> Result<Option<Value>, VersionsError> {
        match self.state("seed")? {
            Some(octets) => self.read(0, &octets).map(Some),
            None => Ok(None),
        }
    }

    /// Remembers what the file is like.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_seed(&self, document: &Value) -> Result<(), VersionsError> {
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

/// The summary and the octets of the version that follows `before`.
fn summarize(before: Option<&Version>, draft: &Draft) -> (Summary, Vec<u8>) {
    let version = before.map_or(1, |before| before.summary.version + 1);
    let changes = before.map_or(0, |before| crate::diff(&before.document, &draft.document).len());
    let document = draft.document.to_string().into_bytes();
    let (at, by, why) = (draft.at, draft.by.clone(), draft.why.clone());
    (Summary { version, at, by, why, changes, octets: document.len() as u64 }, document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn draft(document: Value, confirm_until: Option<u64>) -> Draft {
        Draft { at: 1, by: "me".into(), why: "because".into(), document, confirm_until }
    }

    #[test]
    fn versions_are_kept_and_survive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("configuration.redb");
        let versions = Versions::open(&path).unwrap();
        assert_eq!(versions.newest().unwrap(), None);
        versions.append(&draft(json!({"a": 1}), None)).unwrap();
        let second = versions.append(&draft(json!({"a": 2, "b": 1}), Some(77))).unwrap();
        assert_eq!((second.version, second.changes), (2, 2));
        drop(versions);
        let versions = Versions::open(&path).unwrap();
        let pending = Pending { version: 2, back_to: 1, reverts_at: 77 };
        assert_eq!(versions.pending().unwrap(), Some(pending));
        assert_eq!(versions.newest().unwrap().unwrap().summary, second);
        assert_eq!(versions.get(1).unwrap().unwrap().document, json!({"a": 1}));
        assert_eq!(versions.get(3).unwrap(), None);
        versions.confirm().unwrap();
        assert_eq!(versions.pending().unwrap(), None);
    }

    #[test]
    fn the_first_version_waits_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let versions = Versions::open(&folder.path().join("v")).unwrap();
        versions.append(&draft(json!({}), Some(7))).unwrap();
        assert_eq!(versions.pending().unwrap(), None);
    }

    #[test]
    fn the_newest_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut versions = Versions::open(&folder.path().join("v")).unwrap();
        assert_eq!(versions.kept, 1_000);
        versions.kept = 10;
        for n in 0..13 {
            versions.append(&draft(json!({ "n": n }), None)).unwrap();
        }
        let all = versions.list(None, 5_000).unwrap();
        assert_eq!((all.len(), all[0].version, all[9].version), (10, 13, 4));
        let page: Vec<_> = versions.list(Some(10), 2).unwrap().iter().map(|one| one.version).collect();
        assert_eq!(page, [9, 8]);
    }
}

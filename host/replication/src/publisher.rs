use crate::replica::COMPLETE_MARK;
use crate::{LocalContent, ReplicationError, SharedState};
use cluster::{Cluster, ReplicationState, SharedContent, SharedFile};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout until another node has fetched a file. Tables may have gigabytes.
const FETCH_TIMEOUT: Duration = Duration::from_secs(300);
const FETCH_CHECK: Duration = Duration::from_millis(50);
/// Interval at which old removal marks are deleted.
const FORGET_INTERVAL: Duration = Duration::from_secs(60);

/// Writes to etcd what has changed in the shared state of the leader.
///
/// A store of the leader changes first, and the caller is told when etcd has it: what nobody was told of may be lost with
/// the leader, and comes back to what it was on a leader that was fenced.
pub struct Publisher {
    cluster: Arc<Cluster>,
    parts: Vec<Arc<dyn SharedState>>,
    published: Mutex<Published>,
}

struct Published {
    /// Digests by name.
    known: BTreeMap<String, String>,
    /// The version of each part that is published.
    versions: Vec<Option<u64>>,
    next_forgetting: Instant,
    /// The offers of former leaders were withdrawn.
    former_offers_ended: bool,
}

/// Changes of the shared state that are not written yet.
#[derive(Default)]
struct Changes {
    /// Names, their new contents, and the digests of the contents.
    entries: Vec<(String, SharedContent, Option<String>)>,
    files: BTreeSet<SharedFile>,
}

impl Publisher {
    /// `known` is what the cluster has, by [`Replica::known`](crate::Replica::known).
    #[must_use]
    pub fn new(
        cluster: Arc<Cluster>,
        parts: Vec<Arc<dyn SharedState>>,
        known: BTreeMap<String, String>,
    ) -> Self {
        let published = Published {
            known,
            versions: vec![None; parts.len()],
            next_forgetting: Instant::now() + FORGET_INTERVAL,
            former_offers_ended: false,
        };
        Self { cluster, parts, published: Mutex::new(published) }
    }

    /// Writes the whole state of this node for a cluster that has none yet. No other node waits for files then: those that
    /// come fetch them.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub fn found(&self) -> Result<(), ReplicationError> {
        let mut published = self.published.lock();
        let mut changes = Changes::default();
        for part in &self.parts {
            collect(&**part, &BTreeMap::new(), &mut changes)?;
        }
        self.write(&mut published, changes)?;
        self.cluster.write_shared(&[(COMPLETE_MARK.to_owned(), SharedContent::Value(b"1".to_vec()))])?;
        tracing::info!(names = published.known.len(), "shared state of the cluster written");
        Ok(())
    }

    /// Writes what has changed since the last time. When it returns, a majority of etcd has it, and another node that lives
    /// has the files.
    ///
    /// # Errors
    /// If a store fails, etcd does not answer for some seconds, or this node does not lead any more. It may be tried again.
    pub fn publish(&self) -> Result<(), ReplicationError> {
        let mut published = self.published.lock();
        if !published.former_offers_ended {
            self.cluster.end_former_offers()?;
            published.former_offers_ended = true;
        }
        let mut changes = Changes::default();
        let mut versions = published.versions.clone();
        for (part, version) in self.parts.iter().zip(&mut versions) {
            let now = (!part.writes_through()).then(|| part.version()).transpose()?;
            if now != *version {
                collect(&**part, &published.known, &mut changes)?;
                *version = now;
            }
        }
        self.write(&mut published, changes)?;
        published.versions = versions;
        if published.next_forgetting <= Instant::now() {
            published.next_forgetting = Instant::now() + FORGET_INTERVAL;
            self.cluster.forget_removed()?;
        }
        Ok(())
    }

    fn write(&self, published: &mut Published, mut changes: Changes) -> Result<(), ReplicationError> {
        if changes.entries.is_empty() {
            return Ok(());
        }
        // They may take several transactions: what is deeper first, such as components before the bindings that name them.
        changes.entries.sort_by_key(|(name, ..)| std::cmp::Reverse(name.matches('/').count()));
        let files: Vec<_> = changes.files.into_iter().collect();
        if !files.is_empty() {
            let revision = self.cluster.offer_files(&files)?;
            self.wait_for_another_node(revision, &files);
        }
        let entries: Vec<_> =
            changes.entries.iter().map(|(name, content, _)| (name.clone(), content.clone())).collect();
        self.cluster.write_shared(&entries)?;
        self.cluster.end_offers(&files)?;
        for (name, _, sha256) in changes.entries {
            match sha256 {
                Some(sha256) => drop(published.known.insert(name, sha256)),
                None => drop(published.known.remove(&name)),
            }
        }
        Ok(())
    }

    fn wait_for_another_node(&self, revision: i64, files: &[SharedFile]) {
        let begun = Instant::now();
        loop {
            match self.cluster.replication_state(revision) {
                ReplicationState::Replicated => return,
                ReplicationState::NoOtherNode => {
                    tracing::warn!(files = files.len(), "no other node is alive to fetch the shared files");
                    return;
                }
                ReplicationState::Pending if begun.elapsed() >= FETCH_TIMEOUT => {
                    tracing::warn!(
                        files = files.len(),
                        "no other node has fetched the shared files, continuing"
                    );
                    return;
                }
                ReplicationState::Pending => {
                    self.cluster.wait(FETCH_CHECK);
                }
            }
        }
    }
}

/// Adds what of a part differs from what is known.
fn collect(
    part: &dyn SharedState,
    known: &BTreeMap<String, String>,
    changes: &mut Changes,
) -> Result<(), ReplicationError> {
    let prefix = format!("{}/", part.part());
    let own = part.read()?;
    for (name, content) in &own {
        let full_name = format!("{prefix}{name}");
        let sha256 = content.sha256();
        if known.get(&full_name) == Some(&sha256) {
            continue;
        }
        if let LocalContent::File(file, _) = content {
            changes.files.insert(file.clone());
        }
        changes.entries.push((full_name, content.shared(), Some(sha256)));
    }
    for full_name in known.keys() {
        if full_name.strip_prefix(&prefix).is_some_and(|name| !own.contains_key(name)) {
            changes.entries.push((full_name.clone(), SharedContent::Removed, None));
        }
    }
    Ok(())
}

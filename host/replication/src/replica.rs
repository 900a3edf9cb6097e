use crate::{LocalContent, NodeClient, ReplicationError, SharedFiles, SharedState};
use cluster::{Cluster, SharedContent, SharedScope};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The name in etcd that says that the shared state is complete: until it is there, the first leader is writing it.
pub(crate) const COMPLETE_MARK: &str = "founded";

/// Makes the shared state of this node that of the cluster.
pub struct Replica {
    cluster: Arc<Cluster>,
    scope: SharedScope,
    parts: Vec<Arc<dyn SharedState>>,
    files: Arc<SharedFiles>,
    client: Arc<NodeClient>,
    /// From which revision of etcd on changes are read; 0 until the shared state was taken over as a whole.
    revision: i64,
    /// Up to which revision this node has everything, also what is only offered.
    seen: i64,
    /// The reason why an offered file was not fetched.
    unfetched: Option<String>,
    is_founded: bool,
    /// The shared state that this node has: digests by name.
    known: BTreeMap<String, String>,
    lacks: Option<String>,
    /// The reason why this node cannot use the shared state.
    unusable: Option<String>,
}

impl Replica {
    /// The parts that this node shares with the others of its partition, or with all.
    #[must_use]
    pub const fn new(
        cluster: Arc<Cluster>,
        scope: SharedScope,
        parts: Vec<Arc<dyn SharedState>>,
        files: Arc<SharedFiles>,
        client: Arc<NodeClient>,
    ) -> Self {
        Self {
            cluster,
            scope,
            parts,
            files,
            client,
            revision: 0,
            seen: 0,
            unfetched: None,
            is_founded: false,
            known: BTreeMap::new(),
            lacks: None,
            unusable: None,
        }
    }

    /// Takes over what has changed in etcd since the last time. Returns the parts that changed on this node. What cannot be
    /// taken over, such as a file that no node gives at the moment, is tried again the next time; see [`lacks`](Self::lacks).
    ///
    /// # Errors
    /// If etcd does not answer for some seconds, or a newer version wrote a value.
    pub fn poll(&mut self) -> Result<BTreeSet<&'static str>, ReplicationError> {
        let changes = self.cluster.shared_since(self.scope, self.revision)?;
        let mut lacks = None;
        let mut changed = BTreeSet::new();
        // No change was confirmed that needs an offered file. So this node may lead without it: the leader that has offered it may
        // have died, and then no node gives it.
        let fetched = changes.offers.iter().map(|offer| self.client.fetch(offer, &self.files));
        let failed: Vec<_> = fetched.filter_map(Result::err).collect();
        let unfetched = failed.first().map(ToString::to_string);
        if let Some(reason) = unfetched.as_ref().filter(|reason| self.unfetched.as_ref() != Some(reason)) {
            tracing::warn!(reason, "a file that the leader offers was not fetched");
        }
        self.unfetched = unfetched;
        self.is_founded |= changes.entries.iter().any(|(name, _)| name == COMPLETE_MARK);
        if self.is_founded {
            let parts = self.parts.clone();
            for part in &parts {
                match self.take_over(&**part, &changes.entries) {
                    Ok(false) => {}
                    Ok(true) => drop(changed.insert(part.part())),
                    Err(error) => drop(lacks.get_or_insert_with(|| error.to_string())),
                }
            }
        }
        if let Some(reason) = lacks.as_ref().filter(|lacks| self.lacks.as_ref() != Some(lacks)) {
            tracing::warn!(reason, "the shared state of the cluster is not complete here");
        }
        if lacks.is_none() && self.unfetched.is_none() {
            self.seen = changes.revision;
            // Before that, the entries come again.
            if self.is_founded {
                self.revision = changes.revision;
            }
        }
        self.lacks = lacks;
        self.cluster.set_shared(self.scope, self.seen, self.lacks().map(str::to_owned));
        Ok(changed)
    }

    /// The reason why this node must not lead; `None` if it may lead.
    #[must_use]
    pub fn lacks(&self) -> Option<&str> {
        self.lacks.as_deref().or(self.unusable.as_deref())
    }

    /// Whether the shared state of the cluster is in etcd.
    #[must_use]
    pub const fn is_founded(&self) -> bool {
        self.is_founded
    }

    /// The shared state that this node has: digests by name, with the part as prefix.
    #[must_use]
    pub const fn known(&self) -> &BTreeMap<String, String> {
        &self.known
    }

    /// Says why this node cannot use the shared state that it has, or that it can.
    pub fn set_unusable(&mut self, reason: Option<String>) {
        if let Some(reason) = &reason {
            tracing::warn!(reason, "this node cannot use the shared state of the cluster");
        }
        self.unusable = reason;
        self.cluster.set_shared(self.scope, self.seen, self.lacks().map(str::to_owned));
    }

    fn take_over(
        &mut self,
        part: &dyn SharedState,
        entries: &[(String, SharedContent)],
    ) -> Result<bool, ReplicationError> {
        let prefix = format!("{}/", part.part());
        // What this node has before it has read anything of the cluster.
        let mut own = BTreeMap::new();
        if self.revision == 0 {
            own = part.read()?.into_iter().map(|(name, content)| (name, content.sha256())).collect();
        }
        let mut changes = Vec::new();
        let mut known = Vec::new();
        for (full_name, content) in entries {
            let Some(name) = full_name.strip_prefix(&prefix) else { continue };
            let before = own.remove(name).or_else(|| self.known.get(full_name).cloned());
            let content = match content {
                SharedContent::Removed => None,
                SharedContent::Value(value) => Some(LocalContent::Value(value.clone())),
                // What it has already is not fetched.
                SharedContent::File(file) if before.as_ref() == Some(&file.sha256) => {
                    known.push((full_name, before));
                    continue;
                }
                SharedContent::File(file) => {
                    let path = self.client.fetch(file, &self.files)?;
                    Some(LocalContent::File(file.clone(), path))
                }
            };
            let after = content.as_ref().map(LocalContent::sha256);
            if after != before {
                changes.push((name.to_owned(), content));
            }
            known.push((full_name, after));
        }
        // The rest is not of the cluster.
        changes.extend(own.into_keys().map(|name| (name, None)));
        let has_changed = !changes.is_empty();
        if has_changed {
            tracing::info!(part = part.part(), names = changes.len(), "shared state of the cluster applied");
            part.apply(changes)?;
        }
        for (name, sha256) in known {
            match sha256 {
                Some(sha256) => drop(self.known.insert(name.clone(), sha256)),
                None => drop(self.known.remove(name)),
            }
        }
        Ok(has_changed)
    }
}

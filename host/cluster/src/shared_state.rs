//! State that the nodes share in addition to the log: configuration, users, plugins, tables, values of plugins; by name, in
//! etcd.
//!
//! | key | value |
//! |---|---|
//! | `PREFIX/shared/name/NAME` | see `shared_content` |
//! | `PREFIX/shared/offer/SHA256` | length of a file that the other nodes should fetch, in decimal |
//! | `PREFIX/changed` | empty; written with each change, so that a reader detects changes without reading all names |
//!
//! Only the leader writes: each transaction compares `PREFIX/leader`, so a node that has lost the log has no effect.
//! etcd has only the digests of files; the nodes fetch the files from each other. The leader first offers a file; a
//! name refers to it only when another node has it. A removed name stays as a mark until all nodes have seen the
//! removal.

use crate::client::{ANSWER_TIMEOUT, RANGE, TXN};
use crate::cluster::Cluster;
use crate::nodes::NodeTable;
use crate::proto::{
    COMPARE_CREATE, COMPARE_MOD, COMPARE_VALUE, Compare, DeleteRangeRequest, KeyValue, PutRequest,
    RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse, compare,
};
use crate::shared_content::{MAX_VALUE, REMOVED, SharedContent, SharedFile, decode, encode};
use crate::{ClusterError, Exchange, SharedScope};
use prost::Message;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Maximum number of changes in one transaction: etcd accepts 128 operations.
const MAX_CHANGES_PER_TRANSACTION: usize = 100;
/// Number of keys per answer.
const KEYS_PER_READ: i64 = 200;

/// Changes of the shared state since a revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedChanges {
    /// The revision of etcd up to which the changes are complete.
    pub revision: i64,
    /// Files to fetch that no name refers to yet.
    pub offers: Vec<SharedFile>,
    /// Changed names with their contents.
    pub entries: Vec<(String, SharedContent)>,
}

/// Whether another node has the state that the leader has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicationState {
    /// A live node has it.
    Replicated,
    /// No live node has it yet.
    Pending,
    /// There is no other live node.
    NoOtherNode,
}

fn encoded(name: &str, content: &SharedContent) -> Result<Vec<u8>, ClusterError> {
    encode(content).map_err(|octets| ClusterError::TooLarge {
        name: name.to_owned(),
        octets,
        limit: MAX_VALUE,
    })
}

impl Cluster {
    /// The changes after `revision`; with 0, the whole state. Waits for etcd, as all methods for the shared state do:
    /// they must not be called on a thread of the runtime.
    ///
    /// # Errors
    /// etcd does not answer for some seconds, or a newer version wrote a value.
    pub fn shared_since(&self, scope: SharedScope, revision: i64) -> Result<SharedChanges, ClusterError> {
        if revision > 0 && self.last_change(scope)? <= revision {
            return Ok(SharedChanges { revision, ..SharedChanges::default() });
        }
        let prefix = self.keys.shared(scope);
        let after = if revision == 0 { 0 } else { revision + 1 };
        let (revision, found) = self.read_below(&prefix, after)?;
        let mut changes = SharedChanges { revision, ..SharedChanges::default() };
        for found in &found {
            let key = String::from_utf8_lossy(&found.key);
            let foreign = || ClusterError::Foreign { key: key.clone().into_owned() };
            let name = key.strip_prefix(&prefix).ok_or_else(foreign)?;
            if let Some(name) = name.strip_prefix("name/") {
                changes.entries.push((name.to_owned(), decode(&found.value).ok_or_else(foreign)?));
            } else if let Some(sha256) = name.strip_prefix("offer/") {
                let octets = std::str::from_utf8(&found.value).ok().and_then(|text| text.parse().ok());
                let file = SharedFile { sha256: sha256.to_owned(), octets: octets.ok_or_else(foreign)? };
                changes.offers.extend(Some(file).filter(SharedFile::is_valid));
            }
        }
        Ok(changes)
    }

    /// The keys with this prefix that were written at revision `since` or later, and the revision of etcd at the first
    /// read. Keys that are written during the later reads have newer revisions.
    fn read_below(&self, prefix: &str, since: i64) -> Result<(i64, Vec<KeyValue>), ClusterError> {
        let (mut revision, mut all) = (0, Vec::new());
        let mut request =
            RangeRequest { limit: KEYS_PER_READ, min_mod_revision: since, ..RangeRequest::below(prefix) };
        loop {
            let answer: RangeResponse = self.ask(RANGE, &request)?;
            if revision == 0 {
                revision = answer.header.as_ref().map_or(0, |header| header.revision);
            }
            let is_full = answer.kvs.len() >= usize::try_from(KEYS_PER_READ).unwrap_or(1);
            all.extend(answer.kvs);
            match all.last() {
                Some(last) if is_full => request.key = [&last.key[..], &[0]].concat(),
                _ => return Ok((revision, all)),
            }
        }
    }

    /// Repeats a request for some seconds, until a member answers. Only for requests that may be repeated.
    fn ask<Q, A>(&self, path: &'static str, request: &Q) -> Result<A, ClusterError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let answer = self.runtime.block_on(self.client.call_any(path, request, ANSWER_TIMEOUT * 10));
        answer.map_err(|status| self.client.failed(&status))
    }

    /// Revision of the last change.
    fn last_change(&self, scope: SharedScope) -> Result<i64, ClusterError> {
        let answer: RangeResponse = self.ask(RANGE, &RangeRequest::of(self.keys.changed(scope)))?;
        Ok(answer.kvs.first().map_or(0, |found| found.mod_revision))
    }

    /// Writes these names, if this node still leads. Many changes take several transactions, in this order. Returns the
    /// revision of etcd after the last one.
    ///
    /// # Errors
    /// The node does not lead any more; a value is too long, and nothing is written; or etcd does not answer for some
    /// seconds: then it is unknown which names are written, and the call may be repeated.
    pub fn write_shared(&self, changes: &[(String, SharedContent)]) -> Result<i64, ClusterError> {
        let mut puts = Vec::new();
        for (name, content) in changes {
            let key = format!("{}name/{name}", self.keys.shared(SharedScope::Partition)).into_bytes();
            puts.push(PutRequest { key, value: encoded(name, content)? });
        }
        let mut revision = 0;
        let mut rest = puts.as_slice();
        while !rest.is_empty() {
            let mut octets = 0;
            let fits = rest.iter().take(MAX_CHANGES_PER_TRANSACTION).take_while(|put| {
                octets += put.key.len() + put.value.len();
                octets <= MAX_VALUE
            });
            let (now, later) = rest.split_at(fits.count().max(1));
            revision = self.change_as_leader(now.iter().cloned().map(Into::into).collect(), Vec::new())?;
            rest = later;
        }
        Ok(revision)
    }

    /// Asks the other nodes to fetch these files. Returns the revision of etcd after that.
    ///
    /// # Errors
    /// As [`write_shared`](Self::write_shared).
    pub fn offer_files(&self, files: &[SharedFile]) -> Result<i64, ClusterError> {
        let (prefix, mut revision) = (self.offers(), 0);
        for some in files.chunks(MAX_CHANGES_PER_TRANSACTION) {
            let puts = some.iter().map(|file| {
                let key = format!("{prefix}{}", file.sha256).into_bytes();
                PutRequest { key, value: file.octets.to_string().into_bytes() }.into()
            });
            revision = self.change_as_leader(puts.collect(), Vec::new())?;
        }
        Ok(revision)
    }

    /// Withdraws the offers of these files.
    ///
    /// # Errors
    /// As [`write_shared`](Self::write_shared).
    pub fn end_offers(&self, files: &[SharedFile]) -> Result<(), ClusterError> {
        let prefix = self.offers();
        self.remove_as_leader(files.iter().map(|file| format!("{prefix}{}", file.sha256).into_bytes()))
    }

    /// Withdraws the offers of former leaders, which may never have finished.
    ///
    /// # Errors
    /// As [`write_shared`](Self::write_shared).
    pub fn end_former_offers(&self) -> Result<(), ClusterError> {
        let (_, offers) = self.read_below(&self.offers(), 0)?;
        self.remove_as_leader(offers.into_iter().map(|offer| offer.key))
    }

    /// Prefix of the offers.
    fn offers(&self) -> String {
        format!("{}offer/", self.keys.shared(SharedScope::Partition))
    }

    fn remove_as_leader(&self, keys: impl Iterator<Item = Vec<u8>>) -> Result<(), ClusterError> {
        let removals: Vec<_> = keys.map(|key| DeleteRangeRequest { key }).collect();
        for some in removals.chunks(MAX_CHANGES_PER_TRANSACTION) {
            self.change_as_leader(some.iter().cloned().map(Into::into).collect(), Vec::new())?;
        }
        Ok(())
    }

    /// Removes the marks of removed names that all known nodes have seen.
    ///
    /// # Errors
    /// As [`write_shared`](Self::write_shared).
    pub fn forget_removed(&self) -> Result<(), ClusterError> {
        let mut seen = self.nodes.lock().shared_everywhere(&self.options.node);
        if self.options.partition == 0 {
            let others = self.neighbours.lock().values().filter_map(NodeTable::base_everywhere).min();
            seen = [seen, others].into_iter().flatten().min();
        }
        let (_, names) = self.read_below(&format!("{}name/", self.keys.shared(SharedScope::Partition)), 0)?;
        for found in names.iter().filter(|found| found.value == [REMOVED]) {
            if seen.is_some_and(|seen| seen < found.mod_revision) {
                continue;
            }
            // Unless the name was written again in the meantime.
            let unchanged = Compare {
                result: 0,
                target: COMPARE_MOD,
                key: found.key.clone(),
                target_union: Some(compare::TargetUnion::ModRevision(found.mod_revision)),
            };
            let removal = DeleteRangeRequest { key: found.key.clone() };
            match self.change_as_leader(vec![removal.into()], vec![unchanged]) {
                Ok(_) | Err(ClusterError::NotLeader) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The stored position of a reader of the journal; `None` if there is none.
    ///
    /// # Errors
    /// etcd does not answer for some seconds.
    pub fn position(&self, reader: &str) -> Result<Option<Vec<u8>>, ClusterError> {
        let key = format!("{}{reader}", self.keys.positions());
        let answer: RangeResponse = self.ask(RANGE, &RangeRequest::of(key))?;
        Ok(answer.kvs.into_iter().next().map(|found| found.value))
    }

    /// Replaces the stored position `previous` of a reader of the journal, if this node still leads. It is not part of
    /// the shared state, so the other nodes are not notified: a new leader reads it.
    ///
    /// # Errors
    /// As [`write_shared`](Self::write_shared). Also if `previous` is not the stored position, because an earlier
    /// request whose answer was lost took effect late.
    pub fn write_position(
        &self,
        reader: &str,
        previous: Option<&[u8]>,
        position: &[u8],
    ) -> Result<(), ClusterError> {
        let key = format!("{}{reader}", self.keys.positions()).into_bytes();
        let (target, condition) = match previous {
            Some(previous) => (COMPARE_VALUE, compare::TargetUnion::Value(previous.to_vec())),
            None => (COMPARE_CREATE, compare::TargetUnion::CreateRevision(0)),
        };
        let unchanged = Compare { result: 0, target, key: key.clone(), target_union: Some(condition) };
        let put = PutRequest { key, value: position.to_vec() };
        match self.write_as_leader(vec![put.into()], vec![unchanged]) {
            // A repetition: the first request has taken effect.
            Err(ClusterError::NotLeader) if self.position(reader)?.as_deref() == Some(position) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Runs one transaction if this node still holds the latest claim, and notifies the other nodes of a change. Its
    /// operations may be repeated.
    fn change_as_leader(
        &self,
        mut operations: Vec<RequestOp>,
        conditions: Vec<Compare>,
    ) -> Result<i64, ClusterError> {
        operations.push(
            PutRequest { key: self.keys.changed(SharedScope::Partition).into_bytes(), value: Vec::new() }
                .into(),
        );
        self.write_as_leader(operations, conditions)
    }

    /// Runs one transaction if this node still holds the latest claim. Its operations may be repeated.
    fn write_as_leader(
        &self,
        operations: Vec<RequestOp>,
        mut conditions: Vec<Compare>,
    ) -> Result<i64, ClusterError> {
        let claimed = self.claimed.lock().clone().ok_or(ClusterError::NotLeader)?;
        conditions.push(Compare {
            result: 0,
            target: COMPARE_VALUE,
            key: self.keys.leader().into_bytes(),
            target_union: Some(compare::TargetUnion::Value(claimed)),
        });
        let request = TxnRequest { compare: conditions, success: operations, failure: Vec::new() };
        let answer: TxnResponse = self.ask(TXN, &request)?;
        let revision = answer.header.map_or(0, |header| header.revision);
        self.revision.fetch_max(revision, Relaxed);
        if answer.succeeded { Ok(revision) } else { Err(ClusterError::NotLeader) }
    }

    /// Publishes the revision up to which this node has the shared state, and the missing part.
    pub fn set_shared(&self, scope: SharedScope, revision: i64, lacks: Option<String>) {
        let mut known = self.lacks.lock();
        let mut own = self.own.lock();
        match scope {
            SharedScope::Partition => (own.shared, known[0]) = (revision, lacks),
            SharedScope::Cluster => (own.base, known[1]) = (revision, lacks),
        }
        own.lacks = known.iter().flatten().next().cloned();
    }

    /// The reason why this node cannot lead; `None` if it can. It lacks messages or shared state, or cannot read some records.
    #[must_use]
    pub fn lacks(&self) -> Option<String> {
        self.own.lock().lacks()
    }

    /// Publishes the address at which other nodes fetch files from this node.
    pub fn set_exchange(&self, exchange: Exchange) {
        self.own.lock().exchange = Some(exchange);
    }

    /// Addresses from which the files of all partitions can be fetched: the other live nodes, first those of this
    /// partition.
    #[must_use]
    pub fn file_exchanges(&self) -> Vec<Exchange> {
        let now = Instant::now();
        let mut all = self.exchanges();
        for nodes in self.neighbours.lock().values() {
            let live = nodes.iter().filter(|(_, known)| known.is_live(now));
            all.extend(live.filter_map(|(_, known)| known.record.exchange.clone()));
        }
        all
    }

    /// Addresses from which snapshots can be fetched: the other live nodes of this partition, the leader first.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        let leader = self.leader().map(|leader| leader.node);
        let now = Instant::now();
        let nodes = self.nodes.lock();
        let mut others: Vec<_> =
            nodes.iter().filter(|(name, known)| **name != self.options.node && known.is_live(now)).collect();
        others.sort_by_key(|(name, _)| Some(*name) != leader.as_ref());
        others.into_iter().filter_map(|(_, known)| known.record.exchange.clone()).collect()
    }

    /// Whether a node of any partition has published a certificate with this SHA-256 digest.
    #[must_use]
    pub fn is_node_certificate(&self, sha256: &str) -> bool {
        self.nodes.lock().has_certificate(sha256)
            || self.neighbours.lock().values().any(|nodes| nodes.has_certificate(sha256))
    }

    /// Sleeps, for callers that poll. Must not be called on a thread of the runtime.
    pub fn wait(&self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }

    /// Whether another node has the shared state up to this revision.
    #[must_use]
    pub fn replication_state(&self, revision: i64) -> ReplicationState {
        let now = Instant::now();
        let nodes = self.nodes.lock();
        let mut others =
            nodes.iter().filter(|(name, known)| **name != self.options.node && known.is_live(now)).peekable();
        if others.peek().is_none() {
            return ReplicationState::NoOtherNode;
        }
        if others.any(|(_, known)| known.record.shared >= revision) {
            ReplicationState::Replicated
        } else {
            ReplicationState::Pending
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlong_content_is_refused_with_its_name() {
        // Incompressible octets.
        let mut state = 1_u32;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        let value = SharedContent::Value(noise.take(MAX_VALUE + 1).collect());
        let error = encoded("users/ann", &value).unwrap_err();
        assert!(error.to_string().contains("users/ann"), "{error}");
    }
}

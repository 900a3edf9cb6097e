//! Records that the nodes publish about themselves in etcd.

use api::{ClusterRole, RecordFormats};
use journal::Seq;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Interval at which a node renews its record.
pub(crate) const RENEWAL: Duration = Duration::from_millis(500);
/// Time without a renewal after which a node counts as dead.
const SILENCE: Duration = Duration::from_secs(3);

/// Address at which other nodes fetch files and snapshots from a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Host and port.
    pub address: String,
    /// The SHA-256 digest of its certificate (DER), in hexadecimal.
    pub certificate: String,
}

/// The formats of a node whose record does not name them: its version is older.
const fn first_format() -> RecordFormats {
    RecordFormats { oldest: 1, newest: 1 }
}

/// The record that a node publishes about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeRecord {
    pub(crate) role: ClusterRole,
    /// URL of its admin API.
    pub(crate) address: String,
    pub(crate) version: String,
    /// Payload formats that it reads.
    #[serde(default = "first_format")]
    pub(crate) formats: RecordFormats,
    /// The last record that is durable in its tables.
    pub(crate) applied: u64,
    /// Address at which other nodes fetch files and snapshots from it.
    #[serde(default)]
    pub(crate) exchange: Option<Exchange>,
    /// The term of its claim, while it leads.
    #[serde(default)]
    pub(crate) term: u64,
    /// The revision up to which it has its partition's shared state.
    #[serde(default)]
    pub(crate) shared: i64,
    /// The revision up to which it has the state that all partitions share; only for other partitions than 0.
    #[serde(default)]
    pub(crate) base: i64,
    /// Missing parts of the shared state; the node does not lead without them.
    #[serde(default)]
    pub(crate) lacks: Option<String>,
    /// Whether its free disk space is below the watermark: as leader it would refuse submissions.
    #[serde(default)]
    pub(crate) disk_low: bool,
    /// Whether it has yet to read the log, or to fetch a snapshot: the leader does not wait for it meanwhile.
    #[serde(default)]
    pub(crate) is_joining: bool,
    /// The records that it cannot read, so that it does not follow: the leader does not wait for it.
    #[serde(default)]
    pub(crate) unreadable: Option<String>,
    /// Counter of renewals.
    pub(crate) renewal: u64,
}

impl NodeRecord {
    /// The reason why it cannot lead; `None` if it can.
    pub(crate) fn lacks(&self) -> Option<String> {
        let unread = || "the messages: it has not read the log yet, or is fetching a snapshot".to_owned();
        let joining = || self.is_joining.then(unread);
        self.unreadable.clone().or_else(joining).or_else(|| self.lacks.clone())
    }
}

/// A node in the view of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownNode {
    pub(crate) record: NodeRecord,
    /// Time of the last change that this node has seen.
    pub(crate) changed: Instant,
}

/// All nodes of a partition.
#[derive(Debug, Default)]
pub(crate) struct NodeTable {
    nodes: BTreeMap<String, KnownNode>,
}

impl NodeTable {
    /// Replaces the view by the records in etcd.
    pub(crate) fn observe(&mut self, now: Instant, found: impl IntoIterator<Item = (String, NodeRecord)>) {
        let mut nodes = BTreeMap::new();
        for (name, record) in found {
            let known = self.nodes.remove(&name).filter(|known| known.record == record);
            nodes.insert(name, known.unwrap_or(KnownNode { record, changed: now }));
        }
        self.nodes = nodes;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &KnownNode)> {
        self.nodes.iter()
    }

    /// The last record that is durable on any other node; dead nodes count, since their disks have it.
    pub(crate) fn durable_on_other_nodes(&self, own: &str) -> Seq {
        let others = self.nodes.iter().filter(|(name, _)| *name != own);
        Seq(others.map(|(_, known)| known.record.applied).max().unwrap_or_default())
    }

    /// The revision up to which all other nodes have the partition's shared state; `None` if there are no other nodes.
    pub(crate) fn shared_everywhere(&self, own: &str) -> Option<i64> {
        let others = self.nodes.iter().filter(|(name, _)| *name != own);
        others.map(|(_, known)| known.record.shared).min()
    }

    /// The revision up to which all these nodes, of other partitions than 0, have the state that all partitions share.
    pub(crate) fn base_everywhere(&self) -> Option<i64> {
        self.nodes.values().map(|known| known.record.base).min()
    }

    /// The leading node: if several claim to lead, the one with the highest term.
    pub(crate) fn leader(&self, now: Instant) -> Option<(&String, &NodeRecord)> {
        let leads = |known: &KnownNode| known.is_live(now) && known.record.role == ClusterRole::Leader;
        let leaders = self.nodes.iter().filter(|(_, known)| leads(known));
        leaders.max_by_key(|(_, known)| known.record.term).map(|(name, known)| (name, &known.record))
    }

    /// Whether a node has published a certificate with this digest.
    pub(crate) fn has_certificate(&self, sha256: &str) -> bool {
        self.nodes.values().any(|known| {
            known.record.exchange.as_ref().is_some_and(|exchange| exchange.certificate == sha256)
        })
    }

    /// Whether another node could lead and has enough disk space.
    pub(crate) fn has_other_with_disk_space(&self, now: Instant, own: &str) -> bool {
        self.nodes.iter().any(|(name, known)| {
            let record = &known.record;
            name != own && known.is_live(now) && record.lacks().is_none() && !record.disk_low
        })
    }

    /// The newest payload format that all other nodes read, within the range that this node writes. Dead nodes count,
    /// since they may return.
    pub(crate) fn common_format(&self, own: &str, formats: RecordFormats) -> u8 {
        let others = self.nodes.iter().filter(|(name, _)| *name != own);
        let newest = others.map(|(_, known)| known.record.formats.newest).min();
        newest.map_or(formats.newest, |newest| newest.min(formats.newest).max(formats.oldest))
    }

    /// Whether another live node follows the log.
    pub(crate) fn has_live_other(&self, now: Instant, own: &str) -> bool {
        self.nodes.iter().any(|(name, known)| {
            let record = &known.record;
            name != own && known.is_live(now) && !record.is_joining && record.unreadable.is_none()
        })
    }
}

impl KnownNode {
    pub(crate) fn is_live(&self, now: Instant) -> bool {
        now.duration_since(self.changed) < SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(applied: u64, renewal: u64) -> NodeRecord {
        NodeRecord {
            role: ClusterRole::Follower,
            address: String::new(),
            version: String::new(),
            formats: first_format(),
            applied,
            exchange: None,
            term: 0,
            shared: 0,
            base: 0,
            lacks: None,
            disk_low: false,
            is_joining: false,
            unreadable: None,
            renewal,
        }
    }

    #[test]
    fn a_node_lives_as_long_as_its_record_changes() {
        let begun = Instant::now();
        let mut table = NodeTable::default();
        let both = |renewal| [("a".to_owned(), record(9, 1)), ("b".to_owned(), record(5, renewal))];
        table.observe(begun, both(1));
        assert_eq!(table.durable_on_other_nodes("a"), Seq(5));
        assert_eq!(table.durable_on_other_nodes("b"), Seq(9));
        let later = begun + Duration::from_secs(2);
        table.observe(later, both(2));
        assert!(table.has_live_other(later + Duration::from_secs(2), "a"));
        assert!(!table.has_live_other(later + Duration::from_secs(2), "b"), "a has renewed nothing");
        assert!(!table.has_live_other(later + Duration::from_secs(3), "a"));
        assert_eq!(table.durable_on_other_nodes("a"), Seq(5), "it is on its disk");
        table.observe(later, []);
        assert_eq!(table.durable_on_other_nodes("a"), Seq(0));
    }

    #[test]
    fn the_newest_claim_names_the_leader() {
        let now = Instant::now();
        let leader = |term| NodeRecord { role: ClusterRole::Leader, term, ..record(9, 1) };
        let mut table = NodeTable::default();
        table.observe(now, [("a".to_owned(), leader(3)), ("b".to_owned(), leader(2))]);
        assert_eq!(table.leader(now).map(|(name, _)| name.as_str()), Some("a"), "b does not know yet");
        table.observe(now, [("a".to_owned(), leader(3)), ("b".to_owned(), record(9, 1))]);
        assert_eq!(table.leader(now + SILENCE), None, "a is silent");
    }

    #[test]
    fn the_lead_is_handed_only_to_a_node_that_has_all_and_space() {
        let now = Instant::now();
        let has_other = |other: NodeRecord| {
            let mut table = NodeTable::default();
            table.observe(now, [("a".to_owned(), record(9, 1)), ("b".to_owned(), other)]);
            table.has_other_with_disk_space(now, "a")
        };
        assert!(has_other(record(9, 1)));
        assert!(!has_other(NodeRecord { disk_low: true, ..record(9, 1) }));
        assert!(!has_other(NodeRecord { lacks: Some("a table".to_owned()), ..record(9, 1) }));
        assert!(!has_other(NodeRecord { is_joining: true, ..record(9, 1) }));
        assert!(!has_other(NodeRecord { unreadable: Some("record 10".to_owned()), ..record(9, 1) }));
        assert!(!NodeTable::default().has_other_with_disk_space(now, "a"));
    }
    #[test]
    fn nobody_waits_for_a_node_that_cannot_read_the_log() {
        let now = Instant::now();
        let mut table = NodeTable::default();
        table.observe(now, [("b".to_owned(), record(9, 1))]);
        assert!(table.has_live_other(now, "a"));
        let stopped = NodeRecord { unreadable: Some("record 10".to_owned()), ..record(9, 2) };
        table.observe(now, [("b".to_owned(), stopped)]);
        assert!(!table.has_live_other(now, "a"));
    }

    #[test]
    fn the_leader_writes_the_newest_format_that_all_known_nodes_read() {
        let formats = |oldest, newest| RecordFormats { oldest, newest };
        let common = |own: RecordFormats, others: &[RecordFormats]| {
            let mut table = NodeTable::default();
            // Dead for a long time; they may return.
            let nodes = others
                .iter()
                .zip('b'..)
                .map(|(formats, name)| (name.to_string(), NodeRecord { formats: *formats, ..record(9, 1) }));
            table.observe(Instant::now(), nodes.chain([("a".to_owned(), record(9, 1))]));
            table.common_format("a", own)
        };
        assert_eq!(common(formats(1, 3), &[]), 3);
        assert_eq!(common(formats(1, 3), &[formats(1, 2), formats(1, 4)]), 2);
        assert_eq!(common(formats(1, 2), &[formats(1, 4)]), 2, "it writes no format that it does not know");
        assert_eq!(common(formats(2, 3), &[formats(1, 1), formats(1, 3)]), 2, "the other one stops");
        assert_eq!(common(formats(1, 2), &[formats(3, 4)]), 2, "the other one stops");
    }

    #[test]
    fn a_node_of_the_version_before_reads_the_first_format() {
        let mut said = serde_json::to_value(record(9, 1)).unwrap();
        said.as_object_mut().unwrap().retain(|key, _| key != "formats" && key != "unreadable");
        assert_eq!(serde_json::from_value::<NodeRecord>(said).unwrap(), record(9, 1));
    }
}

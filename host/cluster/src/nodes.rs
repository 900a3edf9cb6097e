//! What the nodes say of themselves in etcd.

use api::{ClusterRole, RecordFormats};
use journal::Seq;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often a node renews what it says of itself.
pub(crate) const RENEWAL: Duration = Duration::from_millis(500);
/// A node that has renewed nothing for so long is not counted on.
const SILENCE: Duration = Duration::from_secs(3);

/// Where other nodes get files and snapshots from a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Host and port.
    pub address: String,
    /// The SHA-256 digest of its certificate (DER), in hexadecimal.
    pub certificate: String,
}

/// What a node reads whose record does not say it: the version before did not.
const fn first_format() -> RecordFormats {
    RecordFormats { oldest: 1, newest: 1 }
}

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeRecord {
    pub(crate) role: ClusterRole,
    /// The URL of its admin API.
    pub(crate) address: String,
    pub(crate) version: String,
    /// The formats of payloads that it reads.
    #[serde(default = "first_format")]
    pub(crate) formats: RecordFormats,
    /// The last record that is durable in its tables.
    pub(crate) applied: u64,
    /// Where other nodes get files and snapshots from it.
    #[serde(default)]
    pub(crate) exchange: Option<Exchange>,
    /// The term of its claim, while it leads.
    #[serde(default)]
    pub(crate) term: u64,
    /// The revision of its partition's shared state that it has.
    #[serde(default)]
    pub(crate) shared: i64,
    /// The revision of what all partitions share that it has, if it is of another partition than 0.
    #[serde(default)]
    pub(crate) base: i64,
    /// What it lacks: it does not lead without.
    #[serde(default)]
    pub(crate) lacks: Option<String>,
    /// Whether its disk is below the watermark: it would refuse submissions.
    #[serde(default)]
    pub(crate) disk_low: bool,
    /// Whether it is fetching a snapshot: nobody waits for it meanwhile.
    #[serde(default)]
    pub(crate) is_joining: bool,
    /// Which records it cannot read, so that it follows no more: nobody waits for it.
    #[serde(default)]
    pub(crate) unreadable: Option<String>,
    /// Counts the renewals.
    pub(crate) renewal: u64,
}

impl NodeRecord {
    /// What it lacks to lead.
    pub(crate) fn lacks(&self) -> Option<&String> {
        self.unreadable.as_ref().or(self.lacks.as_ref())
    }
}

/// A node, as another one sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownNode {
    pub(crate) record: NodeRecord,
    /// When it last changed here.
    pub(crate) changed: Instant,
}

/// All nodes.
#[derive(Debug, Default)]
pub(crate) struct NodeTable {
    nodes: BTreeMap<String, KnownNode>,
}

impl NodeTable {
    /// Takes what etcd has now.
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

    /// The last record that is durable on a node other than this one; dead ones have it on their disks.
    pub(crate) fn durable_elsewhere(&self, own: &str) -> Seq {
        let others = self.nodes.iter().filter(|(name, _)| *name != own);
        Seq(others.map(|(_, known)| known.record.applied).max().unwrap_or_default())
    }

    /// The revision of the shared state that all nodes other than this one have; `None` if there is none.
    pub(crate) fn shared_everywhere(&self, own: &str) -> Option<i64> {
        let others = self.nodes.iter().filter(|(name, _)| *name != own);
        others.map(|(_, known)| known.record.shared).min()
    }

    /// The revision of what all partitions share that all these nodes have, which are of another partition than 0.
    pub(crate) fn base_everywhere(&self) -> Option<i64> {
        self.nodes.values().map(|known| known.record.base).min()
    }

    /// The node that leads: the one of the newest claim, if several say that they do.
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

    /// Whether a node other than this one could lead, and has space on its disk.
    pub(crate) fn has_other_with_space(&self, now: Instant, own: &str) -> bool {
        self.nodes.iter().any(|(name, known)| {
            let record = &known.record;
            name != own
                && known.is_live(now)
                && record.lacks().is_none()
                && !record.disk_low
                && !record.is_joining
        })
    }

    /// The newest format that all nodes other than this one read; at least the oldest and at most the newest one that this node
    /// writes. Dead nodes count: they may come back.
    pub(crate) fn common_format(&self, own: &str, formats: RecordFormats) -> u8 {
        let others = self.nodes.iter().filter(|(name, _)| *name != own);
        let newest = others.map(|(_, known)| known.record.formats.newest).min();
        newest.map_or(formats.newest, |newest| newest.min(formats.newest).max(formats.oldest))
    }

    /// Whether a node other than this one follows the log.
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
        assert_eq!(table.durable_elsewhere("a"), Seq(5));
        assert_eq!(table.durable_elsewhere("b"), Seq(9));
        let later = begun + Duration::from_secs(2);
        table.observe(later, both(2));
        assert!(table.has_live_other(later + Duration::from_secs(2), "a"));
        assert!(!table.has_live_other(later + Duration::from_secs(2), "b"), "a has renewed nothing");
        assert!(!table.has_live_other(later + Duration::from_secs(3), "a"));
        assert_eq!(table.durable_elsewhere("a"), Seq(5), "it is on its disk");
        table.observe(later, []);
        assert_eq!(table.durable_elsewhere("a"), Seq(0));
    }

    #[test]
    fn the_newest_claim_tells_who_leads() {
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
            table.has_other_with_space(now, "a")
        };
        assert!(has_other(record(9, 1)));
        assert!(!has_other(NodeRecord { disk_low: true, ..record(9, 1) }));
        assert!(!has_other(NodeRecord { lacks: Some("a table".to_owned()), ..record(9, 1) }));
        assert!(!has_other(NodeRecord { is_joining: true, ..record(9, 1) }));
        assert!(!has_other(NodeRecord { unreadable: Some("record 10".to_owned()), ..record(9, 1) }));
        assert!(!NodeTable::default().has_other_with_space(now, "a"));
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
            // Long dead: they may come back.
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

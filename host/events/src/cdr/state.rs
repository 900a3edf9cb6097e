//! The durable position of CDR files.

use journal::Seq;
use model::Timestamp;
use serde::{Deserialize, Serialize};

/// The sums of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct FileTotals {
    pub(crate) opened_at: Timestamp,
    pub(crate) records: u64,
    pub(crate) segments: u64,
    /// Millionths of the currency unit.
    pub(crate) captured: u64,
    /// Millionths of the currency unit.
    pub(crate) refunded: u64,
    /// Records of the journal that were gone before they were read.
    pub(crate) lost_records: u64,
}

/// How far the files go.
///
/// On disk, `events/NAME.cdr` in the data directory: one line of JSON with these fields, replaced as a whole after the octets are
/// synced. In a cluster it is in etcd.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct CdrState {
    /// Which journal it is: [`journal::JournalReader::created`], or the number of the cluster.
    pub(crate) journal: u64,
    /// The ends in all records up to this one are in the files.
    pub(crate) seq: u64,
    /// The number of the open file, or of the next one.
    pub(crate) file: u64,
    /// The length of the open file up to that record; 0: it is not begun.
    pub(crate) octets: u64,
    pub(crate) totals: FileTotals,
    /// The file before is complete, and may not have its final name yet.
    pub(crate) renaming: bool,
    /// In a cluster, the node that writes the files into its folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) node: String,
    /// In a cluster, files of leaders that were replaced. Each node has two at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<AbandonedFile>,
}

/// A file in the folder of a node that was replaced before the file had its final name. The node completes it when it is back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct AbandonedFile {
    pub(crate) node: String,
    /// Its number.
    pub(crate) file: u64,
    /// What is behind this length is in files of other nodes; 0, and not closed: so is its number.
    pub(crate) octets: u64,
    pub(crate) totals: FileTotals,
    /// It has its trailer, and lacks its name.
    pub(crate) is_closed: bool,
}

impl CdrState {
    pub(crate) const fn seq(&self) -> Seq {
        Seq(self.seq)
    }

    /// The state from which this node continues. A file that another node has begun stays on that node's disk and ends with
    /// its last stored record; this node writes the file with the next number into its own folder.
    pub(crate) fn continued_by(mut self, node: &str) -> Self {
        if self.node == node {
            return self;
        }
        let (none, node_before) = (FileTotals::default(), self.node.clone());
        let left = |file, octets, totals, is_closed| AbandonedFile {
            node: node_before.clone(),
            file,
            octets,
            totals,
            is_closed,
        };
        // A leader that is killed between writing and storing leaves a file of which nothing is stored.
        let open = left(self.file, self.octets, self.totals, false);
        let closed = self.renaming.then(|| left(self.file.saturating_sub(1), 0, none, true));
        for file in closed.into_iter().chain([open]) {
            if !self.left.contains(&file) {
                self.left.push(file);
            }
        }
        if self.octets > 0 {
            (self.file, self.octets, self.totals) = (self.file + 1, 0, none);
        }
        node.clone_into(&mut self.node);
        self.renaming = false;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_node_goes_on_with_the_next_number() {
        let totals = FileTotals { records: 3, ..FileTotals::default() };
        let first = CdrState {
            journal: 1,
            seq: 70,
            file: 5,
            octets: 90,
            totals,
            renaming: true,
            node: "a".to_owned(),
            left: Vec::new(),
        };
        assert_eq!(first.clone().continued_by("a"), first);
        let second = first.continued_by("b");
        assert_eq!((second.seq, second.file, second.octets, second.renaming), (70, 6, 0, false));
        assert_eq!(second.totals, FileTotals::default());
        let left: Vec<_> = second.left.iter().map(|left| (&*left.node, left.file, left.is_closed)).collect();
        assert_eq!(left, [("a", 4, true), ("a", 5, false)]);
        // Nothing is begun, so the number is not used up.
        let third = second.continued_by("c");
        assert_eq!((&*third.node, third.file, third.left.len()), ("c", 6, 3));
        let left = third.left.last().unwrap();
        assert_eq!((&*left.node, left.file, left.octets, left.is_closed), ("b", 6, 0, false));
        let fourth = third.continued_by("b").continued_by("c").continued_by("b");
        assert_eq!((fourth.file, fourth.left.len()), (6, 4));
        // A file of the state before has no node.
        let text = r#"{"journal":1,"seq":2,"file":3,"octets":0,"totals":{"opened_at":0,"records":0,"segments":0,"captured":0,"refunded":0,"lost_records":0},"renaming":false}"#;
        let alone: CdrState = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&alone).unwrap(), text);
    }
}

use journal::Seq;
use serde::{Deserialize, Serialize};

/// A position in a journal.
///
/// On disk, `events/NAME.cursor` in the data directory: one line of JSON with these fields, replaced as a whole. In a
/// cluster, it is stored in etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Cursor {
    /// Identity of the journal: [`journal::JournalReader::created`], or the number of the cluster.
    pub(crate) journal: u64,
    /// The last record whose events were all sent.
    pub(crate) seq: u64,
}

impl Cursor {
    pub(crate) const fn seq(self) -> Seq {
        Seq(self.seq)
    }
}

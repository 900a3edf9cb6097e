use crate::Seq;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Keeps the records of a journal that readers have not read yet, up to a size limit.
///
/// The writer consults it before it reuses a segment. It exists before the journal is opened, so that the records which
/// the readers of the previous process had not read are kept from the beginning.
#[derive(Debug)]
pub struct JournalHold {
    from: AtomicU64,
    most_octets: u64,
}

impl JournalHold {
    /// Keeps the records from `from` on, as long as all full segments together have at most `most_octets`.
    #[must_use]
    pub const fn new(from: Seq, most_octets: u64) -> Self {
        Self { from: AtomicU64::new(from.0), most_octets }
    }

    /// Changes the oldest record to keep. Earlier ones are removed at the next checkpoint of the tables.
    pub fn set(&self, from: Seq) {
        self.from.store(from.0, Relaxed);
    }

    /// The oldest record that is kept.
    pub(crate) fn from(&self) -> Seq {
        Seq(self.from.load(Relaxed))
    }

    /// Maximum number of full segments that are kept.
    pub(crate) fn most_segments(&self, segment_octets: u64) -> usize {
        usize::try_from(self.most_octets / segment_octets.max(1)).unwrap_or(usize::MAX)
    }
}

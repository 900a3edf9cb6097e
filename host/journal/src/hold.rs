use crate::Seq;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Keeps the records of a journal that readers have not read yet, up to a bound.
///
/// The writer asks it when it could use a segment again. So it exists before the journal is opened, and says then what
/// the readers of the last process had not read.
#[derive(Debug)]
pub struct JournalHold {
    from: AtomicU64,
    most_octets: u64,
}

impl JournalHold {
    /// Keeps records from `from` on, as long as all full segments together have at most `most_octets`.
    #[must_use]
    pub const fn new(from: Seq, most_octets: u64) -> Self {
        Self { from: AtomicU64::new(from.0), most_octets }
    }

    /// Keeps records from `from` on from now on. Earlier ones are given up at the next checkpoint of the tables.
    pub fn set(&self, from: Seq) {
        self.from.store(from.0, Relaxed);
    }

    /// The oldest record that is kept.
    pub(crate) fn from(&self) -> Seq {
        Seq(self.from.load(Relaxed))
    }

    /// So many full segments are kept at most.
    pub(crate) fn most_segments(&self, segment_octets: u64) -> usize {
        usize::try_from(self.most_octets / segment_octets.max(1)).unwrap_or(usize::MAX)
    }
}

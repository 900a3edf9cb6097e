use journal::{JournalHold, Seq};
use parking_lot::Mutex;
use std::sync::Arc;

/// For each reader, the position from which it needs the journal.
#[derive(Debug)]
pub(crate) struct HeldPositions {
    hold: Arc<JournalHold>,
    positions: Mutex<Vec<Seq>>,
}

impl HeldPositions {
    pub(crate) fn new(hold: Arc<JournalHold>) -> Self {
        Self { hold, positions: Mutex::default() }
    }

    /// Adds a reader; returns its index. The journal keeps the same records as before until [`apply`](Self::apply).
    pub(crate) fn add(&self, position: Seq) -> usize {
        let mut positions = self.positions.lock();
        positions.push(position);
        positions.len() - 1
    }

    /// Lets the journal remove the records that no reader needs.
    pub(crate) fn apply(&self) {
        self.hold.set(first_needed(&self.positions.lock()));
    }

    /// A reader has stored its position.
    pub(crate) fn set(&self, index: usize, position: Seq) {
        if let Some(held) = self.positions.lock().get_mut(index) {
            *held = position;
        }
        self.apply();
    }
}

/// The first record that a reader with one of these positions still needs.
pub(crate) fn first_needed(positions: &[Seq]) -> Seq {
    positions.iter().min().map_or(Seq(u64::MAX), |position| position.next())
}

use model::{PoolBatch, PoolId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::watch;

/// An update for a watcher of a number pool. It carries no content, only the fact that the journal has more entries.
/// So a slow watcher misses nothing, costs no memory, and gets no entry twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolFeedUpdate {
    /// All entries before this entry number are in the journal.
    Written(u64),
    /// The pool was removed. A new pool of the same name has another journal.
    Gone,
}

/// Wakes the watchers of number pools. The commit thread passes it every batch, right after the commit.
#[derive(Debug, Default)]
pub struct PoolFeed {
    watched: Mutex<FeedState>,
}

#[derive(Debug, Default)]
struct FeedState {
    pools: FxHashMap<PoolId, watch::Sender<PoolFeedUpdate>>,
    closed: bool,
}

impl PoolFeed {
    /// Creates a feed without watchers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches one pool from now on. The watch ends when the feed is closed.
    #[must_use]
    pub fn follow(&self, pool: PoolId) -> watch::Receiver<PoolFeedUpdate> {
        let mut watched = self.watched.lock();
        watched.pools.retain(|_, sender| sender.receiver_count() > 0);
        if watched.closed {
            return watch::channel(PoolFeedUpdate::Written(0)).1;
        }
        let sender =
            watched.pools.entry(pool).or_insert_with(|| watch::channel(PoolFeedUpdate::Written(0)).0);
        sender.subscribe()
    }

    /// Publishes a durable batch. Costs next to nothing without watchers.
    pub fn observe(&self, batch: &PoolBatch) {
        if batch.journal.is_empty() && batch.records.is_empty() {
            return;
        }
        let mut watched = self.watched.lock();
        if watched.pools.is_empty() {
            return;
        }
        for part in &batch.journal {
            if let Some(sender) = watched.pools.get(&part.pool) {
                sender.send_replace(PoolFeedUpdate::Written(part.first + part.entries.len() as u64));
            }
        }
        for record in batch.records.iter().filter(|record| record.removed) {
            if let Some(sender) = watched.pools.remove(&record.id) {
                sender.send_replace(PoolFeedUpdate::Gone);
            }
        }
    }

    /// Ends all watches, present and future, because the appliance is stopping.
    pub fn close(&self) {
        let mut watched = self.watched.lock();
        watched.closed = true;
        watched.pools.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{JournalEntry, JournalPart, PoolChange, PoolRecord, PoolSettings, Timestamp};

    fn part(pool: u32, first: u64) -> JournalPart {
        let entry = JournalEntry {
            at: Timestamp(0),
            number: "1".parse().unwrap(),
            change: PoolChange::Del,
            row: None,
            by: None,
        };
        JournalPart { pool: PoolId(pool), first, serial: 0, entries: vec![entry.clone(), entry] }
    }

    #[test]
    fn a_watcher_gets_updates_of_its_pool_until_it_is_removed() {
        let feed = PoolFeed::new();
        feed.observe(&PoolBatch { journal: vec![part(1, 0)], ..PoolBatch::default() });
        let mut watch = feed.follow(PoolId(1));
        assert!(!watch.has_changed().unwrap(), "what was before is in the journal");
        feed.observe(&PoolBatch { journal: vec![part(2, 0)], ..PoolBatch::default() });
        assert!(!watch.has_changed().unwrap());
        feed.observe(&PoolBatch { journal: vec![part(1, 2), part(1, 4)], ..PoolBatch::default() });
        assert_eq!(*watch.borrow_and_update(), PoolFeedUpdate::Written(6));
        let gone = PoolRecord {
            id: PoolId(1),
            name: "pool".parse().unwrap(),
            settings: PoolSettings::default(),
            serial: 0,
            entries: 6,
            folded: 0,
            removed: true,
        };
        feed.observe(&PoolBatch { records: vec![gone], ..PoolBatch::default() });
        assert_eq!(*watch.borrow(), PoolFeedUpdate::Gone);
    }

    #[test]
    fn a_closed_feed_ends_all_watches() {
        let feed = PoolFeed::new();
        let watch = feed.follow(PoolId(1));
        feed.close();
        assert!(watch.has_changed().is_err());
        assert!(feed.follow(PoolId(1)).has_changed().is_err());
    }
}

use engine::PoolBatch;
use model::PoolId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::watch;

/// What those who watch a number pool are told: not what has happened, but that the journal tells of it. So whoever is slow
/// misses nothing and costs no memory, and nobody hears of anything twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolNews {
    /// All entries before the one of this number are in the journal.
    Written(u64),
    /// The pool was taken away; another one of its name would have another journal.
    Gone,
}

/// Wakes those who watch number pools. The committer tells it of every batch, right after the commit.
#[derive(Debug, Default)]
pub struct PoolFeed {
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    pools: FxHashMap<PoolId, watch::Sender<PoolNews>>,
    closed: bool,
}

impl PoolFeed {
    /// A feed that nobody watches.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows one pool from now on. Ends when the feed is closed.
    #[must_use]
    pub fn follow(&self, pool: PoolId) -> watch::Receiver<PoolNews> {
        let mut watched = self.watched.lock();
        watched.pools.retain(|_, sender| sender.receiver_count() > 0);
        if watched.closed {
            return watch::channel(PoolNews::Written(0)).1;
        }
        let sender = watched.pools.entry(pool).or_insert_with(|| watch::channel(PoolNews::Written(0)).0);
        sender.subscribe()
    }

    /// Tells of what is durable now. Costs next to nothing where nobody watches.
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
                sender.send_replace(PoolNews::Written(part.first + part.entries.len() as u64));
            }
        }
        for record in batch.records.iter().filter(|record| record.gone) {
            if let Some(sender) = watched.pools.remove(&record.id) {
                sender.send_replace(PoolNews::Gone);
            }
        }
    }

    /// Ends the watches of all, and of all who come later: the appliance is stopping.
    pub fn close(&self) {
        let mut watched = self.watched.lock();
        watched.closed = true;
        watched.pools.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{JournalPart, PoolRecord};
    use model::{PoolChange, PoolEntry, PoolSettings, Timestamp};

    fn part(pool: u32, first: u64) -> JournalPart {
        let entry = PoolEntry {
            at: Timestamp(0),
            number: "1".parse().unwrap(),
            change: PoolChange::Del,
            row: None,
            by: None,
        };
        JournalPart { pool: PoolId(pool), first, serial: 0, entries: vec![entry.clone(), entry] }
    }

    #[test]
    fn whoever_watches_is_told_of_the_own_pool_until_it_is_gone() {
        let feed = PoolFeed::new();
        feed.observe(&PoolBatch { journal: vec![part(1, 0)], ..PoolBatch::default() });
        let mut watch = feed.follow(PoolId(1));
        assert!(!watch.has_changed().unwrap(), "what was before is in the journal");
        feed.observe(&PoolBatch { journal: vec![part(2, 0)], ..PoolBatch::default() });
        assert!(!watch.has_changed().unwrap());
        feed.observe(&PoolBatch { journal: vec![part(1, 2), part(1, 4)], ..PoolBatch::default() });
        assert_eq!(*watch.borrow_and_update(), PoolNews::Written(6));
        let gone = PoolRecord {
            id: PoolId(1),
            name: "pool".parse().unwrap(),
            settings: PoolSettings::default(),
            serial: 0,
            entries: 6,
            folded: 0,
            gone: true,
        };
        feed.observe(&PoolBatch { records: vec![gone], ..PoolBatch::default() });
        assert_eq!(*watch.borrow(), PoolNews::Gone);
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

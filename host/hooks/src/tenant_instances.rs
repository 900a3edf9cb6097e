//! A common limit on the idle instances of all tenants' bindings, since there may be more bindings than instances.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// The idle instances of one generation.
pub(crate) trait IdleInstances: Send + Sync {
    /// Removes an instance, which the caller drops. `None`: there is none, or the instances were used since the last call.
    fn evict(&self) -> Option<Box<dyn Send>>;
}

/// Limits the idle instances of all tenants' bindings. Beyond the limit, an instance of a binding that was not used recently
/// is dropped; the binding gets a new instance with its next call.
pub(crate) struct TenantInstances {
    limit: usize,
    idle: AtomicUsize,
    /// Visited in turn. The lock is taken only beyond the limit, and for a new generation.
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    pools: Vec<Weak<dyn IdleInstances>>,
    hand: usize,
}

impl Ring {
    /// An instance of the next binding that was not used since the last visit.
    fn evict(&mut self) -> Option<Box<dyn Send>> {
        // A second round finds instances that were used before the first round.
        for _ in 0..self.pools.len() * 2 {
            if self.hand >= self.pools.len() {
                self.hand = 0;
            }
            match self.pools.get(self.hand)?.upgrade() {
                None => drop(self.pools.swap_remove(self.hand)),
                Some(pool) => {
                    self.hand += 1;
                    if let Some(evicted) = pool.evict() {
                        return Some(evicted);
                    }
                }
            }
        }
        None
    }
}

impl TenantInstances {
    /// `limit`: maximum number of idle instances.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, idle: AtomicUsize::new(0), ring: Mutex::default() }
    }

    /// Adds the instances of a generation.
    pub(crate) fn join(&self, pool: Weak<dyn IdleInstances>) {
        let mut ring = self.ring.lock();
        // Entries of ended generations are removed from time to time.
        if ring.pools.len() == ring.pools.capacity() {
            ring.pools.retain(|pool| pool.strong_count() > 0);
        }
        ring.pools.push(pool);
    }

    /// Counts an instance that becomes idle, before another call can take it.
    pub(crate) fn add(&self) {
        self.idle.fetch_add(1, Relaxed);
    }

    /// Drops idle instances beyond the limit.
    pub(crate) fn make_room(&self) {
        while self.idle.load(Relaxed) > self.limit {
            // Dropped without the lock.
            let Some(evicted) = self.ring.lock().evict() else { return };
            self.removed(1);
            drop(evicted);
        }
    }

    /// Subtracts instances that are no longer idle.
    pub(crate) fn removed(&self, count: usize) {
        self.idle.fetch_sub(count, Relaxed);
    }

    /// Number of idle instances.
    #[cfg(test)]
    fn idle(&self) -> usize {
        self.idle.load(Relaxed)
    }
}

/// A share in [`TenantInstances`]; `None`: the binding has no tenant.
pub(crate) type TenantShare = Option<Arc<TenantInstances>>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[derive(Default)]
    struct Pool {
        idle: AtomicUsize,
        used: AtomicBool,
    }

    impl IdleInstances for Pool {
        fn evict(&self) -> Option<Box<dyn Send>> {
            if self.used.swap(false, Relaxed) || self.idle.load(Relaxed) == 0 {
                return None;
            }
            self.idle.fetch_sub(1, Relaxed);
            Some(Box::new(()))
        }
    }

    fn put(instances: &TenantInstances, pool: &Pool) {
        instances.add();
        pool.idle.fetch_add(1, Relaxed);
        pool.used.store(true, Relaxed);
        instances.make_room();
    }

    #[test]
    fn the_least_recently_used_binding_loses_its_instance() {
        let instances = TenantInstances::new(2);
        let pools: [Arc<Pool>; 3] = std::array::from_fn(|_| Arc::new(Pool::default()));
        for pool in &pools {
            let pool: Arc<dyn IdleInstances> = pool.clone();
            instances.join(Arc::downgrade(&pool));
        }
        let idle = || [0, 1, 2].map(|n: usize| pools[n].idle.load(Relaxed));
        pools.iter().take(2).for_each(|pool| put(&instances, pool));
        assert_eq!(idle(), [1, 1, 0]);
        pools[0].used.store(false, Relaxed);
        put(&instances, &pools[2]);
        assert_eq!((idle(), instances.idle()), ([0, 1, 1], 2));
        // All were used: the first in the ring is evicted.
        pools.iter().for_each(|pool| pool.used.store(true, Relaxed));
        put(&instances, &pools[0]);
        assert_eq!((idle().iter().sum::<usize>(), instances.idle()), (2, 2));
    }

    #[test]
    fn ended_generations_leave_the_ring() {
        let instances = TenantInstances::new(0);
        let kept = Arc::new(Pool::default());
        for _ in 0..100 {
            let ended: Arc<dyn IdleInstances> = Arc::new(Pool::default());
            instances.join(Arc::downgrade(&ended));
        }
        assert!(instances.ring.lock().pools.len() < 100, "without a visit");
        let pool: Arc<dyn IdleInstances> = kept.clone();
        instances.join(Arc::downgrade(&pool));
        put(&instances, &kept);
        assert_eq!((kept.idle.load(Relaxed), instances.idle()), (0, 0));
        assert!(instances.ring.lock().pools.len() <= 1);
    }
}

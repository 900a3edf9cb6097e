//! The idle instances of a generation, ready for calls.

use crate::generation::Instance;
use crate::tenant_instances::{IdleInstances, TenantShare};
use crate::worlds::World;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The idle instances of a generation. Instances of a tenant's binding count towards the tenants' common limit, and may be
/// dropped at any time.
pub(crate) struct WarmInstances<W: World> {
    idle: Mutex<IdlePool<W>>,
    /// Used since the last visit of [`TenantShare`].
    used: AtomicBool,
    share: TenantShare,
    /// Replaced, and kept for a quick rollback: one instance is enough.
    retired: AtomicBool,
}

struct IdlePool<W: World> {
    waiting: Vec<Instance<W>>,
    /// Maximum number of idle instances so far, which is the peak number of concurrent calls.
    peak: usize,
}

impl<W: World> WarmInstances<W> {
    pub(crate) fn new(share: TenantShare) -> Arc<Self> {
        let idle = Mutex::new(IdlePool { waiting: Vec::new(), peak: 0 });
        let new =
            Arc::new(Self { idle, used: AtomicBool::new(false), share, retired: AtomicBool::new(false) });
        if let Some(share) = &new.share {
            let pool: Arc<dyn IdleInstances> = new.clone();
            share.join(Arc::downgrade(&pool));
        }
        new
    }

    pub(crate) fn take(&self) -> Option<Instance<W>> {
        let instance = self.idle.lock().waiting.pop();
        if let (Some(share), Some(_)) = (&self.share, &instance) {
            share.removed(1);
        }
        instance
    }

    /// Keeps an instance after a call, unless the generation is retired and has one.
    pub(crate) fn put_back(&self, instance: Instance<W>) {
        self.used.store(true, Relaxed);
        let idle = self.idle.lock();
        let is_kept = if self.share.is_some() {
            !self.retired.load(Relaxed)
        } else {
            idle.waiting.is_empty() || !self.retired.load(Relaxed)
        };
        if is_kept {
            self.push(idle, instance);
        }
    }

    /// Adds a new instance.
    pub(crate) fn add(&self, instance: Instance<W>) {
        self.push(self.idle.lock(), instance);
    }

    fn push(&self, mut idle: MutexGuard<'_, IdlePool<W>>, instance: Instance<W>) {
        if let Some(share) = &self.share {
            share.add();
        }
        idle.waiting.push(instance);
        idle.peak = idle.peak.max(idle.waiting.len());
        drop(idle);
        if let Some(share) = &self.share {
            share.make_room();
        }
    }

    /// Number of idle instances.
    pub(crate) fn len(&self) -> usize {
        self.idle.lock().waiting.len()
    }

    /// Peak number of concurrent calls.
    pub(crate) fn peak(&self) -> usize {
        self.idle.lock().peak
    }

    /// Whether the instances belong to a tenant's binding, and so are made on demand.
    pub(crate) fn are_on_demand(&self) -> bool {
        self.share.is_some()
    }

    /// Keeps one instance for a rollback, or none of a tenant's binding, and drops the others.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Relaxed);
        let kept = usize::from(self.share.is_none());
        let dropped = {
            let mut idle = self.idle.lock();
            let kept = kept.min(idle.waiting.len());
            idle.waiting.split_off(kept)
        };
        if let Some(share) = &self.share {
            share.removed(dropped.len());
        }
    }

    /// Puts the generation back into service.
    pub(crate) fn reactivate(&self) {
        self.retired.store(false, Relaxed);
    }
}

impl<W: World> IdleInstances for WarmInstances<W> {
    fn evict(&self) -> Option<Box<dyn Send>> {
        if self.used.swap(false, Relaxed) {
            return None;
        }
        let mut idle = self.idle.lock();
        // The last one is used first, so the first has waited longest.
        if idle.waiting.is_empty() { None } else { Some(Box::new(idle.waiting.remove(0))) }
    }
}

impl<W: World> Drop for WarmInstances<W> {
    fn drop(&mut self) {
        if let Some(share) = &self.share {
            share.removed(self.idle.get_mut().waiting.len());
        }
    }
}

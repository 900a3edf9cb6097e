//! The costs of each tenant's plugins: calls, faults and time.

use crate::fault::Fault;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Calls of the plugins of a tenant, over all of its bindings that serve or served traffic. They begin at 0 with its first binding,
/// and again after it had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TenantCalls {
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that failed.
    pub faults: u64,
    /// Total time, in nanoseconds.
    pub nanoseconds: u64,
}

/// The costs of one tenant.
#[derive(Debug, Default)]
pub(crate) struct TenantCost {
    calls: AtomicU64,
    faults: AtomicU64,
    nanoseconds: AtomicU64,
}

impl TenantCost {
    pub(crate) fn call(&self, taken: Duration, fault: Option<&Fault>) {
        self.calls.fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        if fault.is_some() {
            self.faults.fetch_add(1, Relaxed);
        }
    }

    fn read(&self) -> TenantCalls {
        TenantCalls {
            calls: self.calls.load(Relaxed),
            faults: self.faults.load(Relaxed),
            nanoseconds: self.nanoseconds.load(Relaxed),
        }
    }
}

/// The costs of all tenants with bindings. The generations of a tenant own its costs, so that only tenants with plugins have
/// an entry.
#[derive(Debug, Default)]
pub(crate) struct TenantCosts(Mutex<BTreeMap<Arc<str>, Weak<TenantCost>>>);

impl TenantCosts {
    /// The costs of a tenant, for one of its generations.
    pub(crate) fn of(&self, tenant: &str) -> Arc<TenantCost> {
        let mut costs = self.0.lock();
        if let Some(known) = costs.get(tenant).and_then(Weak::upgrade) {
            return known;
        }
        let new = Arc::new(TenantCost::default());
        costs.insert(tenant.into(), Arc::downgrade(&new));
        new
    }

    /// The calls of each tenant with bindings.
    pub(crate) fn read(&self) -> BTreeMap<Arc<str>, TenantCalls> {
        let mut costs = self.0.lock();
        costs.retain(|_, cost| cost.strong_count() > 0);
        let each =
            |(tenant, cost): (&Arc<str>, &Weak<TenantCost>)| Some((tenant.clone(), cost.upgrade()?.read()));
        costs.iter().filter_map(each).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_last_as_long_as_the_bindings_of_the_tenant() {
        let costs = TenantCosts::default();
        let (first, second) = (costs.of("north"), costs.of("north"));
        first.call(Duration::from_nanos(5), None);
        second.call(Duration::from_nanos(7), Some(&Fault::verdict("no".to_owned())));
        drop(first);
        let expected = TenantCalls { calls: 2, faults: 1, nanoseconds: 12 };
        assert_eq!(costs.read(), BTreeMap::from([("north".into(), expected)]));
        drop(second);
        assert!(costs.read().is_empty());
    }
}

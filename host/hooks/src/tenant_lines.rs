//! The tenants of accounts, for bindings that serve a tenant.

use arc_swap::ArcSwap;
use model::{PeerId, TenantTree};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The tenants of each account: its own tenant and the tenants above it. The daemon publishes them with each configuration;
/// a chain reads them for each message, so that a change of the tree needs no change of the chain.
#[derive(Debug, Default)]
pub struct TenantLines(ArcSwap<PublishedLines>);

#[derive(Debug, Default)]
struct PublishedLines {
    tenants: FxHashSet<Arc<str>>,
    accounts: FxHashMap<PeerId, Arc<[Arc<str>]>>,
}

impl TenantLines {
    /// Replaces the tree. `id`: the ids of accounts by their names; an account without one is left out.
    pub fn publish(&self, tree: &TenantTree, id: impl Fn(&str) -> Option<PeerId>) {
        let mut lines: FxHashMap<&str, Arc<[Arc<str>]>> = FxHashMap::default();
        let mut accounts = FxHashMap::default();
        for (account, tenant) in tree.accounts() {
            let (Some(tenant), Some(id)) = (tenant, id(account)) else { continue };
            let line = lines.entry(tenant).or_insert_with(|| tree.line(tenant).into());
            accounts.insert(id, line.clone());
        }
        let tenants = tree.tenants().map(|(name, _)| name.clone()).collect();
        self.0.store(Arc::new(PublishedLines { tenants, accounts }));
    }

    /// Whether there is a tenant of this name.
    pub(crate) fn has(&self, tenant: &str) -> bool {
        self.0.load().tenants.contains(tenant)
    }

    /// The tenants of an account, its own first, then upwards; `None` if it has none.
    pub(crate) fn of(&self, account: PeerId) -> Option<Arc<[Arc<str>]>> {
        self.0.load().accounts.get(&account).cloned()
    }
}

//! The tenants of the configuration, for the admin API.

use arc_swap::ArcSwap;
use model::TenantTree;
use std::sync::Arc;

/// The tenants of the configuration.
pub(crate) struct TenantService {
    pub(crate) tree: Arc<ArcSwap<TenantTree>>,
}

impl admin::Tenants for TenantService {
    fn tree(&self) -> Arc<TenantTree> {
        self.tree.load_full()
    }
}

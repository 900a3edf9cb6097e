//! Tenants and accounts in the admin API.

use admin::Problem;
use api::{AccountInfo, TenantView};
use arc_swap::ArcSwap;
use model::{AccountScope, TenantTree};
use std::sync::Arc;

/// The tenants of the configuration.
pub(crate) struct TenantService {
    pub(crate) tree: Arc<ArcSwap<TenantTree>>,
}

impl admin::Tenants for TenantService {
    fn tree(&self) -> Arc<TenantTree> {
        self.tree.load_full()
    }

    fn tenants(&self, scope: &AccountScope) -> Result<Vec<TenantView>, Problem> {
        let tree = self.tree.load();
        let shown = tree.tenants().filter(|(name, _)| scope.has_tenant(Some(name)));
        let view = |(name, parent): (&Arc<str>, Option<&Arc<str>>)| TenantView {
            name: name.to_string(),
            parent: parent.filter(|parent| scope.has_tenant(Some(parent))).map(ToString::to_string),
            accounts: tree.branch(name).accounts.iter().map(ToString::to_string).collect(),
        };
        Ok(shown.map(view).collect())
    }

    fn accounts(&self, scope: &AccountScope) -> Result<Vec<AccountInfo>, Problem> {
        let tree = self.tree.load();
        let shown = tree.accounts().filter(|(name, _)| scope.has_account(name));
        let info = |(name, tenant): (&Arc<str>, Option<&Arc<str>>)| AccountInfo {
            name: name.to_string(),
            tenant: tenant.map(ToString::to_string),
        };
        Ok(shown.map(info).collect())
    }
}

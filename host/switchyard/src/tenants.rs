//! The tenants of the configuration, for the admin API.

use crate::core_handle::CoreHandle;
use crate::problems::shutting_down_problem;
use admin::Problem;
use api::DayQuotaView;
use arc_swap::ArcSwap;
use hooks::Hooks;
use model::TenantTree;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The tenants of the configuration.
pub(crate) struct TenantService {
    pub(crate) tree: Arc<ArcSwap<TenantTree>>,
    pub(crate) core: CoreHandle,
    pub(crate) hooks: Arc<Hooks>,
}

impl admin::Tenants for TenantService {
    fn tree(&self) -> Arc<TenantTree> {
        self.tree.load_full()
    }

    fn day_quotas(&self) -> Result<HashMap<Arc<str>, DayQuotaView>, Problem> {
        let quotas = self.core.query(engine::Engine::day_quotas).ok_or_else(shutting_down_problem)?;
        let view = |quota: &engine::DayQuotaStatus| DayQuotaView {
            limit: quota.limit,
            accepted: quota.accepted,
            day_ends: quota.day_ends.0,
        };
        Ok(quotas.iter().map(|quota| (quota.owner.clone(), view(quota))).collect())
    }

    fn plugin_calls(&self) -> BTreeMap<Arc<str>, api::CallSumView> {
        let view = |(tenant, calls): (Arc<str>, hooks::TenantCalls)| {
            let hooks::TenantCalls { calls, faults, nanoseconds } = calls;
            (tenant, api::CallSumView { calls, faults, nanoseconds })
        };
        self.hooks.tenant_calls().into_iter().map(view).collect()
    }
}

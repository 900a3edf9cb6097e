//! The API of tenants and of accounts.

use crate::authz::Scope;
use crate::problem::Problem;
use crate::service::{Provides, Service, call};
use api::{AccountInfo, CallSumView, DayQuotaView, TenantView};
use axum::Json;
use model::TenantTree;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The tenants and accounts of the configuration.
pub trait Tenants: Send + Sync + 'static {
    /// The tree of tenants, with the accounts of each. Does not block.
    fn tree(&self) -> Arc<TenantTree>;

    /// The day quotas of accounts and tenants, by name. Blocks until the engine answers.
    ///
    /// # Errors
    /// The appliance is shutting down.
    fn day_quotas(&self) -> Result<HashMap<Arc<str>, DayQuotaView>, Problem>;

    /// Calls of each tenant's plugins since the tenant's first binding on this node. Does not block.
    fn plugin_calls(&self) -> BTreeMap<Arc<str>, CallSumView>;
}

/// A node without tenants: callers who belong to a tenant see nothing.
pub(crate) struct NoTenants;

impl Tenants for NoTenants {
    fn tree(&self) -> Arc<TenantTree> {
        Arc::default()
    }

    fn day_quotas(&self) -> Result<HashMap<Arc<str>, DayQuotaView>, Problem> {
        Ok(HashMap::new())
    }

    fn plugin_calls(&self) -> BTreeMap<Arc<str>, CallSumView> {
        BTreeMap::new()
    }
}

pub(crate) fn routes<S: Provides<dyn Tenants>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(list_tenants)).routes(routes!(list_accounts))
}

/// Lists the tenants of the caller's branch; for callers without a tenant, all tenants.
#[utoipa::path(
    get,
    path = "/v1/tenants",
    responses((status = 200, description = "The tenants, by name.", body = Vec<TenantView>)),
)]
async fn list_tenants(
    backend: Service<dyn Tenants>,
    Scope(scope): Scope,
) -> Result<Json<Vec<TenantView>>, Problem> {
    let (tree, calls) = (backend.tree(), backend.plugin_calls());
    let quotas = call(backend, Tenants::day_quotas).await?;
    let shown = tree.tenants().filter(|(name, _)| scope.has_tenant(Some(name)));
    let view = |(name, parent): (&Arc<str>, Option<&Arc<str>>)| TenantView {
        name: name.to_string(),
        parent: parent.filter(|parent| scope.has_tenant(Some(parent))).map(ToString::to_string),
        rate: tree.limits(name).rate,
        max_price: tree.limits(name).max_price,
        charged: tree.limits(name).is_charged,
        messages_per_day: quotas.get(name).copied(),
        plugins: calls.get(name).copied(),
        accounts: tree.branch(name).accounts.iter().map(ToString::to_string).collect(),
    };
    Ok(Json(shown.map(view).collect()))
}

/// Lists the accounts of the caller's branch; for callers without a tenant, all accounts.
#[utoipa::path(
    get,
    path = "/v1/accounts",
    responses((status = 200, description = "The accounts, by name.", body = Vec<AccountInfo>)),
)]
async fn list_accounts(
    backend: Service<dyn Tenants>,
    Scope(scope): Scope,
) -> Result<Json<Vec<AccountInfo>>, Problem> {
    let (tree, quotas) = (backend.tree(), call(backend, Tenants::day_quotas).await?);
    let shown = tree.accounts().filter(|(name, _)| scope.has_account(name));
    let info = |(name, tenant): (&Arc<str>, Option<&Arc<str>>)| AccountInfo {
        name: name.to_string(),
        tenant: tenant.map(ToString::to_string),
        messages_per_day: quotas.get(name).copied(),
    };
    Ok(Json(shown.map(info).collect()))
}

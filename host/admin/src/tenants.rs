//! The API of tenants and of accounts.

use crate::authz::Scope;
use crate::problem::Problem;
use crate::service::{Provides, Service, call_json};
use api::{AccountInfo, TenantView};
use axum::Json;
use model::{AccountScope, TenantTree};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The tenants of the configuration, and the accounts.
pub trait Tenants: Send + Sync + 'static {
    /// The tree of tenants. Does not block.
    fn tree(&self) -> Arc<TenantTree>;
    /// The tenants of the scope, by name.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn tenants(&self, scope: &AccountScope) -> Result<Vec<TenantView>, Problem>;
    /// The accounts of the scope, by name.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn accounts(&self, scope: &AccountScope) -> Result<Vec<AccountInfo>, Problem>;
}

/// A node without a configuration of tenants: callers who belong to one see nothing.
pub(crate) struct NoTenants;

impl Tenants for NoTenants {
    fn tree(&self) -> Arc<TenantTree> {
        Arc::default()
    }

    fn tenants(&self, _: &AccountScope) -> Result<Vec<TenantView>, Problem> {
        Ok(Vec::new())
    }

    fn accounts(&self, _: &AccountScope) -> Result<Vec<AccountInfo>, Problem> {
        Ok(Vec::new())
    }
}

pub(crate) fn routes<S: Provides<dyn Tenants>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(list_tenants)).routes(routes!(list_accounts))
}

/// Lists the tenants: those of the caller's branch, or all.
#[utoipa::path(
    get,
    path = "/v1/tenants",
    responses((status = 200, description = "The tenants, by name.", body = Vec<TenantView>)),
)]
async fn list_tenants(
    backend: Service<dyn Tenants>,
    Scope(scope): Scope,
) -> Result<Json<Vec<TenantView>>, Problem> {
    call_json(backend, move |backend| backend.tenants(&scope)).await
}

/// Lists the accounts: those of the caller's branch, or all.
#[utoipa::path(
    get,
    path = "/v1/accounts",
    responses((status = 200, description = "The accounts, by name.", body = Vec<AccountInfo>)),
)]
async fn list_accounts(
    backend: Service<dyn Tenants>,
    Scope(scope): Scope,
) -> Result<Json<Vec<AccountInfo>>, Problem> {
    call_json(backend, move |backend| backend.accounts(&scope)).await
}

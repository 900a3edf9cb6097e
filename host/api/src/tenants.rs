//! Views of tenants and accounts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A tenant in `GET /v1/tenants`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Tenant)]
pub struct TenantView {
    /// Its name.
    pub name: String,
    /// The tenant above it; null if there is none, or the caller may not see it.
    #[schema(required)]
    pub parent: Option<String>,
    /// The accounts of its branch: its own, and those of all tenants below it.
    pub accounts: Vec<String>,
}

/// An account in `GET /v1/accounts`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Account)]
pub struct AccountInfo {
    /// Its name.
    pub name: String,
    /// Its tenant; null if it is the carrier's own.
    #[schema(required)]
    pub tenant: Option<String>,
}

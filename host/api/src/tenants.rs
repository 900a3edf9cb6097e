//! Views of tenants and accounts.

use crate::CallSumView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A limit of messages on a calendar day, with the count of today.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DayQuota)]
pub struct DayQuotaView {
    /// Messages a day.
    pub limit: u64,
    /// Messages accepted today; more than the limit if it was lowered since.
    pub accepted: u64,
    /// Start of the next day, milliseconds since the epoch.
    pub day_ends: u64,
}

/// A tenant in `GET /v1/tenants`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Tenant)]
pub struct TenantView {
    /// Its name.
    pub name: String,
    /// The tenant above it; null if there is none, or the caller may not see it.
    #[schema(required)]
    pub parent: Option<String>,
    /// Messages per second of its branch; null: no limit of its own.
    #[schema(required)]
    pub rate: Option<f64>,
    /// Messages a day of its branch; null: no limit of its own.
    #[schema(required)]
    pub messages_per_day: Option<DayQuotaView>,
    /// The highest price of a message of its branch, in millionths of the currency unit; null: no limit of its own.
    #[schema(required)]
    pub max_price: Option<u64>,
    /// Whether the ledger account with its name is charged for the messages of its branch.
    pub charged: bool,
    /// The accounts of its branch: of the tenant, and of all tenants below it.
    pub accounts: Vec<String>,
    /// Calls of the plugins that are bound for the tenant, on this node since its first binding; omitted if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub plugins: Option<CallSumView>,
}

/// An account in `GET /v1/accounts`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Account)]
pub struct AccountInfo {
    /// Its name.
    pub name: String,
    /// Its tenant; null if it is the operator's own account.
    #[schema(required)]
    pub tenant: Option<String>,
    /// Messages a day of the account; null: no limit of its own.
    #[schema(required)]
    pub messages_per_day: Option<DayQuotaView>,
}

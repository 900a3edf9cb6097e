//! Business systems.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A business system in `GET /v1/business`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(as = Business)]
pub struct BusinessView {
    /// Its account.
    pub account: String,
    /// Its calls, by method and result.
    pub requests: Vec<BusinessRequestsView>,
    /// Messages accepted from it.
    pub accepted: u64,
    /// Messages and DLRs that it has fetched.
    pub fetched: u64,
    /// Messages and DLRs that it has fetched and not yet acknowledged.
    pub leased: u64,
    /// Pushes to it; null if there are none.
    #[schema(required)]
    pub push: Option<BusinessPushView>,
}

/// Calls of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(as = BusinessRequests)]
pub struct BusinessRequestsView {
    /// The method.
    pub method: String,
    /// The result.
    pub result: String,
    /// Number of calls.
    pub count: u64,
}

/// Pushes to a business system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(as = BusinessPush)]
pub struct BusinessPushView {
    /// The URL.
    pub url: String,
    /// Messages and DLRs pushed.
    pub pushed: u64,
    /// Failed attempts.
    pub failures: u64,
    /// Pushes in flight.
    pub in_flight: u64,
    /// Time of the last success, milliseconds since the epoch.
    #[schema(required)]
    pub last_success: Option<u64>,
    /// The last error.
    #[schema(required)]
    pub last_error: Option<String>,
}

//! Views of the ledger. All amounts are millionths of the operator's currency.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/ledger`.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Balances)]
pub struct BalancesView {
    /// All accounts, sorted by name.
    pub accounts: Vec<BalanceView>,
    /// Messages with a reservation that is neither captured nor released; null for users of tenants.
    #[schema(required)]
    pub unsettled: Option<u64>,
}

/// A ledger account.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Balance)]
pub struct BalanceView {
    /// Its name.
    pub account: String,
    /// The balance without reserved amounts.
    pub balance: i64,
    /// Reserved for unfinished messages.
    pub reserved: u64,
    /// Captured so far.
    pub captured: u64,
    /// Funded so far.
    pub funded: i64,
    /// Credit limit: how far below zero the balance may go.
    pub credit: u64,
}

/// A ledger account after a change.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = BalanceChange)]
pub struct BalanceChangeView {
    /// The account.
    #[serde(flatten)]
    pub account: BalanceView,
    /// Whether a request with the same idempotency key was applied before; this one then changed nothing.
    pub repeated: bool,
}

/// An operation on a balance.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = LedgerOperation)]
pub struct LedgerOperationView {
    /// The operation's serial.
    pub serial: u64,
    /// The `Idempotency-Key` of the request.
    pub idempotency_key: String,
    /// Time of the operation, milliseconds since the epoch.
    pub at: u64,
    /// The author of the change.
    pub actor: String,
    /// Reason for the change.
    pub reason: String,
    /// The amount added.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fund: Option<i64>,
    /// The credit limit set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub credit: Option<u64>,
    /// The account after the operation.
    pub after: BalanceView,
}

/// A change of a balance: either `fund` or `credit`, with a reason.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerChangeRequest {
    /// Millionths to add; negative to remove.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fund: Option<i64>,
    /// How far below zero the balance may go, in millionths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<u64>,
    /// The author of the change, for the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Reason for the change, for the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

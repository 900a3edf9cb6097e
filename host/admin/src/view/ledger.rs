//! The ledger. All amounts are millionths of the house's currency.

use serde::Deserialize;
use utoipa::ToSchema;

/// `GET /v1/ledger`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Balances {
    /// All accounts, by name.
    pub accounts: Vec<Balance>,
    /// Messages whose price is reserved, and neither paid nor given back.
    pub unsettled: u64,
}

/// A ledger account.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct Balance {
    /// Its name.
    pub account: String,
    /// What is left, what is reserved taken off.
    pub balance: i64,
    /// Reserved for messages on their way.
    pub reserved: u64,
    /// Paid so far.
    pub captured: u64,
    /// Put in so far.
    pub funded: i64,
    /// How far below zero the balance may go.
    pub credit: u64,
}

/// A ledger account after a change.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct ChangedBalance {
    /// Its name.
    pub account: String,
    /// What is left, what is reserved taken off.
    pub balance: i64,
    /// Reserved for messages on their way.
    pub reserved: u64,
    /// Paid so far.
    pub captured: u64,
    /// Put in so far.
    pub funded: i64,
    /// How far below zero the balance may go.
    pub credit: u64,
    /// Whether it was done before, under the same key: nothing was done now.
    pub repeated: bool,
}

/// Something that was done to a balance.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub struct LedgerOperation {
    /// Counts them.
    pub serial: u64,
    /// Its `Idempotency-Key`.
    pub key: String,
    /// When, milliseconds since the epoch.
    pub at: u64,
    /// Who did it.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// What was put in.
    #[schema(nullable = false)]
    pub fund: Option<i64>,
    /// The limit that was set.
    #[schema(nullable = false)]
    pub credit: Option<u64>,
    /// The account after that.
    pub after: Balance,
}

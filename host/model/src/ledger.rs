use crate::{MessageId, PluginVersion, Timestamp};
use std::sync::Arc;

/// The price of a message, as the biller quoted it before acceptance. Amounts are millionths of the currency unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quote {
    /// The charge to reserve at acceptance; `None`: free.
    pub charge: Option<Charge>,
    /// The plugin version that priced it.
    pub by: Arc<PluginVersion>,
    /// Its note, for the trace.
    pub note: Option<Box<str>>,
}

/// An amount that is reserved at acceptance, and captured or released when the message ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Charge {
    /// The ledger account, 1 to 64 octets.
    pub account: Arc<str>,
    /// The amount; at most [`Charge::MAX`].
    pub amount: u64,
    /// Capture it even if the message fails, once it was submitted. Otherwise a failed message is free.
    pub keep_on_failure: bool,
    /// Notify the biller of the settlement.
    pub settle: bool,
    /// Ledger accounts of tenants above the submitter, which are charged the same amount: fixed when it is reserved. None of
    /// them is `account`.
    pub tenants: Vec<Arc<str>>,
}

impl Charge {
    /// The greatest amount for one message: far above any price, and far below an overflow of sums.
    pub const MAX: u64 = 1_000_000_000_000;

    /// All ledger accounts that are charged the amount, each once.
    pub fn accounts(&self) -> impl Iterator<Item = &Arc<str>> {
        std::iter::once(&self.account).chain(&self.tenants)
    }
}

/// Parses an amount that is not negative, such as `250` or `0.0125`, with at most six decimals; the result is in millionths.
#[must_use]
pub fn parse_millionths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_numeric = |text: &str| !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    if !is_numeric(whole) || !is_numeric(part) || part.len() > 6 {
        return None;
    }
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part)
}

/// The result of a charge, for the biller's `settle`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settlement {
    /// Ascending serial number; a repeated notification keeps it.
    pub serial: u64,
    /// The message.
    pub message: MessageId,
    /// The ledger account.
    pub account: Arc<str>,
    /// The amount.
    pub amount: u64,
    /// Captured; otherwise released.
    pub captured: bool,
    /// The time of the end.
    pub at: Timestamp,
}

/// A change of a ledger account by an admin or a billing system. Amounts are millionths of the currency unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LedgerChange {
    /// Opens the account, or changes its credit limit.
    Limit {
        /// The credit limit; 0 for a prepaid account.
        credit: u64,
    },
    /// Adds an amount, or removes some (negative); never below the credit limit.
    Fund {
        /// The amount.
        amount: i64,
    },
}

/// A balance operation. The same key with the same content is applied once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LedgerOperation {
    /// The caller's idempotency key, 1 to 64 octets.
    pub key: Box<str>,
    /// The ledger account, 1 to 64 octets.
    pub account: Arc<str>,
    /// The change.
    pub change: LedgerChange,
    /// The user, for the audit.
    pub actor: Box<str>,
    /// The reason, for the audit.
    pub reason: Box<str>,
}

/// The balance of a ledger account. Always `balance + reserved + captured = funded`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balance {
    /// The amount available; negative while credit is in use.
    pub balance: i64,
    /// Reserved for live messages.
    pub reserved: u64,
    /// Captured for finished messages.
    pub captured: u64,
    /// Funded, minus withdrawals.
    pub funded: i64,
    /// The credit limit: how far below zero the balance may go.
    pub credit: u64,
}

use crate::{FinalRecord, MessageId, PluginVersion, StepKind, Timestamp};
use serde::{Deserialize, Serialize};
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
}

impl Charge {
    /// The greatest amount for one message: far above any price, and far below an overflow of sums.
    pub const MAX: u64 = 1_000_000_000_000;
}

/// The settlement of a finished message's price.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum PriceState {
    /// The message is free.
    Free = 0,
    /// Captured.
    Captured = 1,
    /// Refunded.
    Refunded = 2,
    /// The trace contains no settlement.
    Open = 3,
}

impl PriceState {
    /// All states, in the order of their octets.
    pub const ALL: [Self; 4] = [Self::Free, Self::Captured, Self::Refunded, Self::Open];

    /// The name in the archive and the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Captured => "captured",
            Self::Refunded => "refunded",
            Self::Open => "open",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == octet)
    }

    /// Reads the settlement from the trace of a finished message.
    #[must_use]
    pub fn of(quote: &Quote, ended: &FinalRecord) -> Self {
        if quote.charge.is_none() {
            return Self::Free;
        }
        let settled = ended.steps.iter().rev().find_map(|step| match step.kind {
            StepKind::Charged { .. } => Some(Self::Captured),
            StepKind::Refunded { .. } => Some(Self::Refunded),
            _ => None,
        });
        settled.unwrap_or(Self::Open)
    }
}

/// A settlement: how a charge ended. The biller's `settle` gets it.
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

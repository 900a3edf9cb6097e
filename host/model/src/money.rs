use crate::{DecidedBy, MessageId, Timestamp};
use std::sync::Arc;

/// What a message is to cost, as a biller said before it was accepted. Amounts are millionths of the house's currency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quote {
    /// What is reserved at acceptance; `None`: it is free.
    pub charge: Option<Charge>,
    /// The plugin version that priced it.
    pub by: Arc<DecidedBy>,
    /// Its note, for the trace.
    pub note: Option<Box<str>>,
}

/// An amount that is reserved at acceptance, and captured or given back when the message ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Charge {
    /// The ledger account, 1 to 64 octets.
    pub account: Arc<str>,
    /// How much; at most [`Charge::MOST`].
    pub amount: u64,
    /// It is captured though the message fails, once it was handed over. Otherwise a failed message is not paid for.
    pub keep_on_failure: bool,
    /// The biller wants to be told of the end.
    pub settle: bool,
}

impl Charge {
    /// The most that one message can cost: far above any price, and far below where sums overflow.
    pub const MOST: u64 = 1_000_000_000_000;
}

/// How a charge ended; what a biller's `settle` is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settlement {
    /// Grows from one to the next; the same when it is told again.
    pub serial: u64,
    /// The message.
    pub message: MessageId,
    /// The ledger account.
    pub account: Arc<str>,
    /// How much.
    pub amount: u64,
    /// Captured; otherwise given back.
    pub captured: bool,
    /// When.
    pub at: Timestamp,
}

/// What an admin, or a billing system, does to a ledger account. Amounts are millionths of the house's currency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LedgerChange {
    /// Opens the account, or changes how far below zero it may go.
    Limit {
        /// The most that may be owed; 0 for a prepaid account.
        credit: u64,
    },
    /// Adds money, or takes some back (negative); never takes the account below its limit.
    Fund {
        /// How much.
        amount: i64,
    },
}

/// A balance operation. The same key with the same content is done once, however often it is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LedgerOperation {
    /// The caller's name for the operation, 1 to 64 octets.
    pub key: Box<str>,
    /// The ledger account, 1 to 64 octets.
    pub account: Arc<str>,
    /// What is to be done.
    pub change: LedgerChange,
    /// Who does it, for the audit.
    pub actor: Box<str>,
    /// Why, for the audit.
    pub reason: Box<str>,
}

/// A ledger account. `balance + reserved + captured = funded`, always.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balance {
    /// What can be spent: negative where credit is in use.
    pub balance: i64,
    /// Set aside for accepted messages that have not ended.
    pub reserved: u64,
    /// Paid for messages that ended.
    pub captured: u64,
    /// Put in, less what was taken back.
    pub funded: i64,
    /// How far below zero the balance may go.
    pub credit: u64,
}

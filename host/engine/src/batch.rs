use crate::PoolBatch;
use model::{
    AddressBytes, Balance, Final, LedgerOperation, Message, MessageId, NumberRow, Order, OrderId, PeerId,
    PeerMessageId, PoolEntry, PoolId, PoolName, PoolNumber, PoolSettings, Receipt, ReceiptState, Refusal,
    Settlement, Step, SubmissionKey, Timestamp,
};
use std::sync::Arc;

/// The writes of a run of events: one transaction, all or nothing.
#[derive(Debug, Default)]
pub struct Batch {
    /// New messages (and new receipts of ours), by growing id: table `messages`.
    pub accepted: Vec<Arc<Message>>,
    /// Messages whose content was replaced: table `messages`.
    pub replaced: Vec<Arc<Message>>,
    /// Messages given to links in this run; one row of table `handed`, under `handed_seq`.
    pub handed: Vec<Handed>,
    /// The number of this run's `handed` row; grows.
    pub handed_seq: u64,
    /// `handed` rows of which every message has moved on.
    pub handed_done: Vec<u64>,
    /// States of messages that wait for something: table `progress`. Where a message has several, the last one counts;
    /// a message that also stands in `finished` or `dropped` has ended.
    pub progress: Vec<(MessageId, Progress)>,
    /// Messages that ended: moved from `messages` and `progress` to `finished`.
    pub finished: Vec<(MessageId, Final)>,
    /// Receipts of ours that are done with: removed from `messages` and `progress` without a final record.
    pub dropped: Vec<MessageId>,
    /// Submission keys with their answers: table `keys`, by serial number.
    pub keys: Vec<KeyRecord>,
    /// All keys with smaller serial numbers are forgotten.
    pub keys_done: Option<u64>,
    /// Receipts that match nothing yet: table `parked`, by number.
    pub parked: Vec<ParkedRecord>,
    /// Parked receipts that have found their message, or were given up.
    pub unparked: Vec<u64>,
    /// Who told whom to stop (true) or to go on (false), in order: table `optouts`.
    pub consents: Vec<(Consent, bool)>,
    /// Ledger accounts that were touched, each once and as it stands when the batch is closed: table `ledger`.
    pub balances: Vec<(Arc<str>, Balance)>,
    /// What was done to ledger accounts by hand: table `ledger_operations`, by serial number.
    pub operations: Vec<OperationRecord>,
    /// Ends of charges that a biller is to be told of: table `settlements`, by serial number.
    pub settlements: Vec<Settlement>,
    /// The biller has been told of all settlements up to this serial number: removed from `settlements`.
    pub settled: Option<u64>,
    /// Admins' orders that are new or have changed: table `orders`, each once.
    pub orders: Vec<Order>,
    /// Orders that are forgotten.
    pub orders_done: Vec<OrderId>,
    /// Finished messages that the archive has: removed from `finished`.
    pub archived: Vec<MessageId>,
    /// What number pools want written: tables `pools`, `numbers` and `pool_journal`.
    pub pools: PoolBatch,
    /// The next id to be given out after this run; persisted so that no id is ever used twice.
    pub next_id: MessageId,
}

impl Batch {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.accepted.is_empty()
            && self.replaced.is_empty()
            && self.handed.is_empty()
            && self.handed_done.is_empty()
            && self.progress.is_empty()
            && self.finished.is_empty()
            && self.dropped.is_empty()
            && self.keys.is_empty()
            && self.keys_done.is_none()
            && self.parked.is_empty()
            && self.unparked.is_empty()
            && self.consents.is_empty()
            && self.balances.is_empty()
            && self.operations.is_empty()
            && self.settlements.is_empty()
            && self.settled.is_none()
            && self.orders.is_empty()
            && self.orders_done.is_empty()
            && self.archived.is_empty()
            && self.pools.is_empty()
    }
}

/// A pool: one row of table `pools`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolRecord {
    /// The row.
    pub id: PoolId,
    /// The pool's name.
    pub name: PoolName,
    /// How it behaves.
    pub settings: PoolSettings,
    /// The last stamp given when this was written; later ones stand in the journal.
    pub serial: u64,
    /// The number of the journal's next entry when this was written.
    pub entries: u64,
    /// All entries of the journal before this one are in the table of numbers.
    pub folded: u64,
    /// The pool is gone, and what is left of it is being removed.
    pub gone: bool,
}

/// A part of a pool's journal: one row of table `pool_journal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPart {
    /// Whose.
    pub pool: PoolId,
    /// The number of its first entry.
    pub first: u64,
    /// The last stamp given when the part was written.
    pub serial: u64,
    /// What has happened. At most [`JournalPart::LONGEST`] and what one request adds to it.
    pub entries: Vec<PoolEntry>,
}

impl JournalPart {
    /// A part of so many entries is not continued.
    pub const LONGEST: usize = 1024;
}

/// A submission key and what was answered under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Grows from record to record.
    pub serial: u64,
    /// Whose key it is.
    pub origin: PeerId,
    /// The key.
    pub key: SubmissionKey,
    /// When it was used.
    pub at: Timestamp,
    /// The answer: one result a message.
    pub results: Vec<Result<MessageId, Refusal>>,
}

/// What was done to a ledger account, as it is kept for the audit and to recognise its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRecord {
    /// Grows from record to record, from 1.
    pub serial: u64,
    /// What was done, by whom and why.
    pub operation: LedgerOperation,
    /// When.
    pub at: Timestamp,
    /// The account afterwards.
    pub balance: Balance,
}

/// A receipt that matches nothing yet, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedRecord {
    /// Its number; grows.
    pub number: u64,
    /// The peer that sent it.
    pub peer: PeerId,
    /// When it came.
    pub at: Timestamp,
    /// The receipt.
    pub receipt: Receipt,
}

/// A subscriber's word to a sender, numbers in the form in which they are compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Consent {
    /// The sender.
    pub sender: AddressBytes,
    /// The subscriber.
    pub subscriber: AddressBytes,
}

/// A message was given to a link: from here until its outcome is recorded, a crash leaves it uncertain.
///
/// One row of table `handed` holds all of a run's, so that a hand-over costs a few octets and not a row of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handed {
    /// The message.
    pub id: MessageId,
    /// Which attempt, from 1. A row counts only while the message's recorded attempts are fewer.
    pub attempt: u16,
    /// The leg that was tried.
    pub leg: u8,
    /// When.
    pub at: Timestamp,
}

/// What a message waits for; the part of its state that must survive a restart and is not in the message itself.
///
/// A message without a progress record is queued for its first leg (or held, if its verdict says so) with no attempt
/// made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What it waits for.
    pub waiting: Waiting,
    /// Attempts made so far, over all legs.
    pub attempts: u16,
    /// The leg in use: index into the forward verdict.
    pub leg: u8,
    /// Parts that the peer has taken, where the message was sent in parts or waits for a receipt.
    pub parts: Vec<Part>,
    /// Its steps so far, the acceptance left out.
    pub steps: Vec<Step>,
}

/// What a message waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Its turn in its peer's queue.
    Queued,
    /// The next attempt.
    Deferred {
        /// When.
        until: Timestamp,
    },
    /// To be routed (again).
    Held {
        /// When.
        until: Timestamp,
    },
    /// Somebody to settle the doubt whether the peer has it.
    Uncertain {
        /// Since when.
        since: Timestamp,
    },
    /// A receipt from this peer.
    Receipt {
        /// The peer that took the message.
        peer: PeerId,
        /// When it took it.
        since: Timestamp,
    },
}

/// One part of a message, as the peer took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The peer's id; may be empty.
    pub id: PeerMessageId,
    /// The last receipt for it, if one came.
    pub state: Option<ReceiptState>,
}

/// A message as it is found on disk at start.
#[derive(Debug)]
pub struct Recovered {
    /// The message.
    pub message: Message,
    /// Its progress record, if there is one.
    pub progress: Option<Progress>,
    /// The newest hand-over on record, if there is one; the engine compares its attempt with the progress.
    pub handed: Option<Handed>,
    /// The `handed` row that the hand-over is in.
    pub handed_seq: u64,
}

/// Something that is remembered beside messages, as it is found on disk at start.
#[derive(Debug)]
pub enum Remembered {
    /// The group in which a peer was last configured, of a peer that is in a named group. All come before parked receipts.
    Group(PeerId, u32),
    /// A submission key.
    Key(KeyRecord),
    /// A receipt that matches nothing yet.
    Parked(ParkedRecord),
    /// A subscriber who has told a sender to stop.
    Stopped(Consent),
    /// An admin's order about waiting messages.
    Order(Order),
    /// A ledger account.
    Balance(Arc<str>, Balance),
    /// What was done to a ledger account.
    Operation(OperationRecord),
    /// The biller has been told of all settlements up to this serial number.
    Settled(u64),
    /// The end of a charge that the biller has not been told of.
    Settlement(Settlement),
    /// A pool. All pools come before their numbers, and these before their journals.
    Pool(PoolRecord),
    /// A pool that is gone, and how many rows are left of it.
    PoolGone(PoolId, usize),
    /// A number as the table has it.
    Number(PoolId, PoolNumber, NumberRow),
    /// A part of a pool's journal that holds an entry which is not in the table; by growing number.
    Journal(JournalPart),
}

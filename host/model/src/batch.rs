use crate::{
    AddressBytes, Balance, ContentErasure, Dlr, DlrState, FinalRecord, IdempotencyKey, JournalEntry,
    LedgerOperation, Message, MessageId, Notice, NumberRow, PaceBucketDefinition, PeerId, PeerMessageId,
    PoolId, PoolName, PoolNumber, PoolSettings, QueueAction, QueueActionId, Refusal, Settlement, Step,
    Timestamp,
};
use std::sync::Arc;

/// The writes of a run of events: one transaction, all or nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// New peers and accounts: table `names`.
    pub names: Vec<(PeerId, Arc<str>)>,
    /// New names of peer groups: table `groups`.
    pub group_names: Vec<(Arc<str>, u32)>,
    /// Peers whose group changed; `None`: the peer is in no group. Table `group_of`.
    pub groups: Vec<(PeerId, Option<u32>)>,
    /// New messages and new DLRs for submitters, by ascending id: table `messages`.
    pub accepted: Vec<Arc<Message>>,
    /// Messages whose content changed: table `messages`.
    pub replaced: Vec<Arc<Message>>,
    /// Submit attempts of this run: one row of table `handed`, under `submit_row`.
    pub submit_attempts: Vec<SubmitAttempt>,
    /// The number of this run's row of table `handed`; ascending.
    pub submit_row: u64,
    /// Rows of table `handed` in which every attempt has an outcome.
    pub submit_rows_done: Vec<u64>,
    /// Wait states of messages: table `progress`. Of several states of one message the last one counts. A message
    /// that is also in `finished` or `dropped` has ended.
    pub progress: Vec<(MessageId, MessageProgress)>,
    /// Finished messages: moved from `messages` and `progress` to `finished`.
    pub finished: Vec<(MessageId, FinalRecord)>,
    /// Taken or expired DLRs for submitters: removed from `messages` and `progress` without a final record.
    pub dropped: Vec<MessageId>,
    /// Idempotency keys with their answers: table `keys`, by serial number.
    pub idempotency_keys: Vec<IdempotencyKeyRecord>,
    /// All keys with smaller serial numbers are removed.
    pub idempotency_keys_done: Option<u64>,
    /// Orphan DLRs: table `parked`, by number.
    pub orphan_dlrs: Vec<OrphanDlrRecord>,
    /// Orphan DLRs that matched a message or expired.
    pub orphan_dlrs_done: Vec<u64>,
    /// Opt-outs (true) and opt-ins (false), in order: table `optouts`.
    pub opt_outs: Vec<(OptOut, bool)>,
    /// Changed ledger accounts, each once, as of the end of the batch: table `ledger`.
    pub balances: Vec<(Arc<str>, Balance)>,
    /// Balance operations: table `ledger_operations`, by serial number.
    pub operations: Vec<OperationRecord>,
    /// Settlements that the biller must be notified of: table `settlements`, by serial number.
    pub settlements: Vec<Settlement>,
    /// The biller was notified of all settlements up to this serial number: removed from `settlements`.
    pub settled: Option<u64>,
    /// Counts of pace buckets and day quotas that have changed: table `pace_days`. Of several counts of one bucket the last one counts.
    pub pace_days: Vec<PaceDay>,
    /// Notices for other systems; in no table.
    pub notices: Vec<Notice>,
    /// New or changed queue actions: table `orders`, each once.
    pub queue_actions: Vec<QueueAction>,
    /// Queue actions that are removed.
    pub queue_actions_done: Vec<QueueActionId>,
    /// Finished messages whose content is erased: table `finished`. Others are not changed.
    pub erased: Vec<ContentErasure>,
    /// Archived messages: removed from `finished`.
    pub archived: Vec<MessageId>,
    /// Changes of number pools: tables `pools`, `numbers` and `pool_journal`.
    pub pools: PoolBatch,
    /// The next message id after this run; stored so that no id is ever used twice.
    pub next_id: MessageId,
}

impl Batch {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
            && self.group_names.is_empty()
            && self.groups.is_empty()
            && self.accepted.is_empty()
            && self.replaced.is_empty()
            && self.submit_attempts.is_empty()
            && self.submit_rows_done.is_empty()
            && self.progress.is_empty()
            && self.finished.is_empty()
            && self.dropped.is_empty()
            && self.idempotency_keys.is_empty()
            && self.idempotency_keys_done.is_none()
            && self.orphan_dlrs.is_empty()
            && self.orphan_dlrs_done.is_empty()
            && self.opt_outs.is_empty()
            && self.balances.is_empty()
            && self.operations.is_empty()
            && self.settlements.is_empty()
            && self.settled.is_none()
            && self.pace_days.is_empty()
            && self.notices.is_empty()
            && self.queue_actions.is_empty()
            && self.queue_actions_done.is_empty()
            && self.erased.is_empty()
            && self.archived.is_empty()
            && self.pools.is_empty()
    }

    /// The number of changes, each of one row or a few.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.names.len()
            + self.group_names.len()
            + self.groups.len()
            + self.accepted.len()
            + self.replaced.len()
            + usize::from(!self.submit_attempts.is_empty())
            + self.submit_rows_done.len()
            + self.progress.len()
            + self.finished.len()
            + self.dropped.len()
            + self.idempotency_keys.len()
            + self.orphan_dlrs.len()
            + self.orphan_dlrs_done.len()
            + self.opt_outs.len()
            + self.balances.len()
            + self.operations.len()
            + self.settlements.len()
            + self.pace_days.len()
            + self.notices.len()
            + self.queue_actions.len()
            + self.queue_actions_done.len()
            + self.erased.len()
            + self.archived.len()
            + self.pools.rows()
    }
}

/// The writes of pools; see [`crate::Batch`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolBatch {
    /// Pools that are new, changed, or have an up-to-date table again.
    pub records: Vec<PoolRecord>,
    /// Journal parts; each continues its pool's journal.
    pub journal: Vec<JournalPart>,
    /// Current states of numbers, for table `numbers`; `None`: the number is removed.
    pub numbers: Vec<(PoolId, PoolNumber, Option<NumberRow>)>,
    /// Journal entries before these may be removed.
    pub trimmed: Vec<(PoolId, u64)>,
    /// A removed pool whose rows are deleted in rounds.
    pub purged: Option<(PoolId, PoolPurge)>,
}

/// One round of the deletion of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolPurge {
    /// At most this many rows.
    Some(usize),
    /// All remaining rows, and the pool's record.
    Rest,
}

impl PoolBatch {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.journal.is_empty()
            && self.numbers.is_empty()
            && self.trimmed.is_empty()
            && self.purged.is_none()
    }

    fn rows(&self) -> usize {
        let entries: usize = self.journal.iter().map(|part| part.entries.len()).sum();
        self.records.len()
            + entries
            + self.numbers.len()
            + self.trimmed.len()
            + usize::from(self.purged.is_some())
    }
}

/// A number pool: one row of table `pools`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolRecord {
    /// The key of the row.
    pub id: PoolId,
    /// The pool's name.
    pub name: PoolName,
    /// The pool's settings.
    pub settings: PoolSettings,
    /// The last stamp assigned when the row was written; later ones are in the journal.
    pub serial: u64,
    /// The number of the journal's next entry when the row was written.
    pub entries: u64,
    /// All journal entries before this one are in table `numbers`.
    pub folded: u64,
    /// The pool was removed; its remaining rows are being deleted.
    pub removed: bool,
}

/// A part of a pool's journal: one row of table `pool_journal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPart {
    /// The pool.
    pub pool: PoolId,
    /// The number of its first entry.
    pub first: u64,
    /// The last stamp assigned when the part was written.
    pub serial: u64,
    /// The entries: at most [`JournalPart::MAX_ENTRIES`], plus the entries of the request that was added last.
    pub entries: Vec<JournalEntry>,
}

impl JournalPart {
    /// A part with this many entries is not extended.
    pub const MAX_ENTRIES: usize = 1024;
}

/// An idempotency key and the answer given under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKeyRecord {
    /// Ascending serial number.
    pub serial: u64,
    /// The submitter.
    pub origin: PeerId,
    /// The key.
    pub key: IdempotencyKey,
    /// The time of the submission.
    pub at: Timestamp,
    /// The answer: one result per message.
    pub results: Vec<Result<MessageId, Refusal>>,
}

/// A balance operation, kept for the audit and to recognise its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRecord {
    /// Ascending serial number, from 1.
    pub serial: u64,
    /// The operation, with its user and reason.
    pub operation: LedgerOperation,
    /// The time of the operation.
    pub at: Timestamp,
    /// The account afterwards.
    pub balance: Balance,
}

/// An orphan DLR (a DLR without a matching message), as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanDlrRecord {
    /// Its ascending number.
    pub number: u64,
    /// The peer that sent it.
    pub peer: PeerId,
    /// The time of receipt.
    pub at: Timestamp,
    /// The DLR.
    pub dlr: Dlr,
}

/// An opt-out: sender and subscriber, as normalised numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OptOut {
    /// The sender.
    pub sender: AddressBytes,
    /// The subscriber.
    pub subscriber: AddressBytes,
}

/// The count of a day: of a pace bucket that counts by days, or of a day quota. A submit attempt, or an accepted message, is
/// written together with the count that includes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaceDay {
    /// The bucket's name; of a quota: [`PaceDay::QUOTA`] and the name of the account or tenant.
    pub bucket: Arc<str>,
    /// The beginning of the day, in the bucket's time zone.
    pub start: Timestamp,
    /// The beginning of the next day.
    pub end: Timestamp,
    /// The tokens used on the day; 0: the count is no longer needed, and its row is removed.
    pub used: u64,
    /// The definition, if it is a bucket of a plugin.
    pub defined: Option<PaceBucketDefinition>,
}

impl PaceDay {
    /// Prefix of the names of quotas. Names of buckets have no colon.
    pub const QUOTA: &str = "quota:";

    /// The count of a day quota. `day`: the beginnings of the day and of the next day.
    #[must_use]
    pub fn for_quota(owner: &str, day: (Timestamp, Timestamp), accepted: u64) -> Self {
        let bucket = format!("{}{owner}", Self::QUOTA).into();
        Self { bucket, start: day.0, end: day.1, used: accepted, defined: None }
    }

    /// The account or tenant, if it is the count of a day quota.
    #[must_use]
    pub fn quota_owner(&self) -> Option<&str> {
        self.bucket.strip_prefix(Self::QUOTA)
    }
}

/// A submit attempt. From here until its outcome is recorded, a crash leaves the message uncertain.
///
/// One row of table `handed` holds all attempts of a run, so an attempt costs a few octets instead of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmitAttempt {
    /// The message.
    pub id: MessageId,
    /// The number of the attempt, from 1. It counts only while the message's recorded attempts are fewer.
    pub attempt: u16,
    /// The leg.
    pub leg: u8,
    /// The time of the attempt.
    pub at: Timestamp,
}

/// A message's wait state: the part of its state that must survive a restart and is not in the message itself.
///
/// A message without a progress record is queued for its first leg (or held, if its verdict says so), without any
/// attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageProgress {
    /// The wait state.
    pub waiting: WaitState,
    /// Attempts so far, over all legs.
    pub attempts: u16,
    /// The current leg: index into the forward verdict.
    pub leg: u8,
    /// Segments that the peer has accepted, if the message was sent in segments or waits for a DLR.
    pub segments: Vec<SubmittedSegment>,
    /// Submissions of earlier legs that the receipt hook has given up; their DLRs may still come.
    pub earlier: Vec<EarlierLeg>,
    /// Steps so far, without the acceptance.
    pub steps: Vec<Step>,
}

/// The segments of a message that a peer accepted before the message moved to another leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierLeg {
    /// The peer.
    pub peer: PeerId,
    /// The segments that it has accepted.
    pub segments: Vec<SubmittedSegment>,
}

/// The cause of a message's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitState {
    /// In its peer's queue.
    Queued,
    /// Deferred until the next attempt.
    Deferred {
        /// The time of the next attempt.
        until: Timestamp,
    },
    /// Held until it is routed (again).
    Held {
        /// The time of the next routing.
        until: Timestamp,
    },
    /// In quarantine until an admin decides.
    Quarantined,
    /// Uncertain: sent, and never answered.
    Uncertain {
        /// The time of the attempt.
        since: Timestamp,
    },
    /// Awaiting a DLR.
    Dlr {
        /// The peer that accepted the message.
        peer: PeerId,
        /// The time of the acceptance by the peer.
        since: Timestamp,
    },
}

/// A segment of a message that the peer accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedSegment {
    /// The peer's id; may be empty.
    pub id: PeerMessageId,
    /// The state of the last DLR for it, if any.
    pub state: Option<DlrState>,
}

/// A message read from disk at start.
#[derive(Debug)]
pub struct RecoveredMessage {
    /// The message.
    pub message: Message,
    /// Its progress record, if any.
    pub progress: Option<MessageProgress>,
    /// The newest recorded submit attempt, if any. The engine compares its number with the progress record.
    pub attempt: Option<SubmitAttempt>,
    /// The row of table `handed` with that attempt.
    pub submit_row: u64,
}

/// A record other than a message, read from disk at start.
#[derive(Debug)]
pub enum RecoveredRecord {
    /// The last configured group of a peer in a named group. These come before orphan DLRs.
    Group(PeerId, u32),
    /// An idempotency key.
    IdempotencyKey(IdempotencyKeyRecord),
    /// An orphan DLR.
    OrphanDlr(OrphanDlrRecord),
    /// An opt-out.
    OptOut(OptOut),
    /// A queue action.
    QueueAction(QueueAction),
    /// The count of a pace bucket or of a day quota.
    PaceDay(PaceDay),
    /// A ledger account.
    Balance(Arc<str>, Balance),
    /// A balance operation.
    Operation(OperationRecord),
    /// The biller was notified of all settlements up to this serial number.
    BillerNotified(u64),
    /// A settlement that the biller was not notified of.
    Settlement(Settlement),
    /// A pool. Pools come before their numbers, and numbers before journals.
    Pool(PoolRecord),
    /// A removed pool and the number of its remaining rows.
    PoolRemoved(PoolId, usize),
    /// A number as table `numbers` has it.
    Number(PoolId, PoolNumber, NumberRow),
    /// A part of a pool's journal with entries that are not in table `numbers`; ascending.
    Journal(JournalPart),
}

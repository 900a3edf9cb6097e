//! Preparation of a store that was restored from a backup.

use crate::tables::{META, META_NEXT_ID, META_NEXT_SUBMIT_ROW, PROGRESS};
use crate::{Store, StoreError, checked};
use model::{
    Message, MessageId, MessageKind, MessageProgress, RecoveredMessage, Step, StepKind, Timestamp, Verdict,
    WaitState,
};
use redb::ReadableTable as _;
use std::time::Duration;

/// Ids that are skipped per second between a backup and its restore: more than an appliance accepts at its highest rate
/// (`cargo xtask bench`).
const IDS_PER_SECOND: u64 = 200_000;
/// Minimum number of skipped ids.
const IDS: u64 = 1_000_000;

/// Counts of the messages in a restored store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestoredCounts {
    /// Live messages.
    pub waiting: u64,
    /// Live messages that may have been sent since the backup: they are uncertain now, and wait for an admin.
    pub uncertain: u64,
    /// DLRs for accounts: they are sent, perhaps for the second time.
    pub dlrs: u64,
}

impl Store {
    /// Prepares a store that was backed up at `at` and is restored at `now`, in one transaction.
    ///
    /// * Ids assigned since the backup are not assigned again: the next id is beyond all of them.
    /// * Messages that may have been sent since the backup become uncertain, unless `send_again` is set: they are
    ///   neither sent again nor failed until an admin decides. Excluded are messages that cannot have been sent:
    ///   unattempted messages that are scheduled for later, held messages, messages that are uncertain already, and
    ///   messages that wait for a DLR. DLRs are always sent, because an account recognises duplicates.
    ///
    /// # Errors
    /// The disk fails or a record is damaged; nothing has changed then.
    pub fn prepare_restored(
        &self,
        at: Timestamp,
        now: Timestamp,
        send_again: bool,
    ) -> Result<RestoredCounts, StoreError> {
        let mut found = RestoredCounts::default();
        // The reads below must find nothing to apply, since there can be only one write transaction.
        self.apply()?;
        let transaction = self.begin_durable()?;
        {
            let mut rows = transaction.open_table(PROGRESS)?;
            let mut buffer = Vec::with_capacity(512);
            let mut failed = None;
            self.recover(|recovered| {
                found.waiting += 1;
                let id = recovered.message.id;
                if matches!(recovered.message.kind, MessageKind::Dlr(_)) {
                    found.dlrs += 1;
                    return;
                }
                if send_again || failed.is_some() || !may_have_been_sent(&recovered, now) {
                    return;
                }
                found.uncertain += 1;
                let progress = as_uncertain(recovered, now);
                let encode = |out: &mut Vec<u8>| codec::encode_progress(out, &progress);
                failed = checked::insert(&mut rows, &id.0, &mut buffer, encode).err();
            })?;
            if let Some(error) = failed {
                return Err(error.into());
            }
            let mut meta = transaction.open_table(META)?;
            let since = Duration::from_millis(now.0.saturating_sub(at.0)).as_secs();
            let gap = IDS.saturating_add(since.saturating_mul(IDS_PER_SECOND));
            for (key, least) in [(META_NEXT_ID, MessageId::FIRST.0), (META_NEXT_SUBMIT_ROW, 1)] {
                let next = meta.get(key)?.map_or(least, |next| next.value()).max(least);
                meta.insert(key, next.saturating_add(gap))?;
            }
            checked::seal_meta(&mut meta)?;
        }
        transaction.commit()?;
        Ok(found)
    }
}

/// Whether a message can have been sent since the backup.
fn may_have_been_sent(recovered: &RecoveredMessage, now: Timestamp) -> bool {
    if recovered.attempt.is_some_and(|attempt| {
        recovered.progress.as_ref().is_none_or(|progress| attempt.attempt > progress.attempts)
    }) {
        return true;
    }
    let Message { routed, scheduled, .. } = &recovered.message;
    let untried = recovered.progress.as_ref().is_none_or(|progress| progress.attempts == 0);
    if untried && scheduled.is_some_and(|scheduled| scheduled > now) {
        return false;
    }
    match recovered.progress.as_ref().map(|progress| progress.waiting) {
        None => matches!(routed.verdict, Verdict::Forward(_)),
        Some(WaitState::Queued | WaitState::Deferred { .. }) => true,
        Some(
            WaitState::Held { .. }
            | WaitState::Quarantined
            | WaitState::Uncertain { .. }
            | WaitState::Dlr { .. },
        ) => false,
    }
}

/// The progress of a message that may have been sent since the backup.
fn as_uncertain(recovered: RecoveredMessage, now: Timestamp) -> MessageProgress {
    let RecoveredMessage { message, progress, attempt, .. } = recovered;
    let mut progress = progress.unwrap_or_else(|| MessageProgress {
        waiting: WaitState::Queued,
        attempts: 0,
        leg: 0,
        segments: Vec::new(),
        earlier: Vec::new(),
        steps: Vec::new(),
    });
    if let Some(attempt) = attempt.filter(|attempt| attempt.attempt > progress.attempts) {
        (progress.attempts, progress.leg) = (attempt.attempt, attempt.leg);
        if let Some(leg) = message.routed.verdict.leg(attempt.leg) {
            let kind = StepKind::Submitted { peer: leg.peer, attempt: attempt.attempt };
            progress.steps.push(Step { at: attempt.at, kind });
        }
    }
    progress.steps.push(Step { at: now, kind: StepKind::Recovered });
    // The limit counts from the end of the message's validity, since the admin may decide late.
    progress.waiting = WaitState::Uncertain { since: message.expires_at.max(now) };
    progress
}

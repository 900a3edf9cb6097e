//! What a store that comes out of a backup must be told before it is used: time has gone on without it.

use crate::record;
use crate::store::{META, META_NEXT_HANDED, META_NEXT_ID, PROGRESS};
use crate::{Store, StoreError};
use engine::{Progress, Recovered, Waiting};
use model::{Kind, Message, MessageId, Step, StepKind, Timestamp, Verdict};
use redb::ReadableTable as _;
use std::time::Duration;

/// Ids that are left out for every second between a backup and its restoration: more than an appliance accepts in its best
/// seconds (`cargo xtask bench`).
const IDS_A_SECOND: u64 = 200_000;
/// Ids that are left out in any case.
const IDS: u64 = 1_000_000;

/// What was found in a restored store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restored {
    /// Messages that have not ended.
    pub waiting: u64,
    /// Of these, those that may have been sent since the backup: they are uncertain now, and wait for an admin.
    pub uncertain: u64,
    /// Receipts of ours for accounts: they go out, perhaps for the second time.
    pub receipts: u64,
}

impl Store {
    /// Prepares a store that was backed up at `at` and is restored at `now`, in one transaction.
    ///
    /// * The ids that the appliance has given out since the backup are not given out again: the next one is beyond all
    ///   that it can have got to.
    /// * What may have been sent since is uncertain (unless `send_again`): it is neither sent once more nor given up until
    ///   somebody says so. That is every message but those that cannot have left: scheduled for a time that is yet to come
    ///   and never tried, held by their routing, in doubt already, or taken by their peer and waiting for a receipt.
    ///   Receipts of ours go out in any case, since an account can tell one that it has.
    ///
    /// # Errors
    /// When the disk fails or a record is damaged; nothing is changed then.
    pub fn prepare_restored(
        &self,
        at: Timestamp,
        now: Timestamp,
        send_again: bool,
    ) -> Result<Restored, StoreError> {
        let mut found = Restored::default();
        let transaction = self.begin()?;
        {
            let mut rows = transaction.open_table(PROGRESS)?;
            let mut buffer = Vec::with_capacity(512);
            let mut failed = None;
            self.recover(|recovered| {
                found.waiting += 1;
                let id = recovered.message.id;
                if matches!(recovered.message.kind, Kind::Receipt(_)) {
                    found.receipts += 1;
                    return;
                }
                if send_again || failed.is_some() || !may_have_left(&recovered, now) {
                    return;
                }
                found.uncertain += 1;
                buffer.clear();
                record::encode_progress(&mut buffer, &in_doubt(recovered, now));
                failed = rows.insert(id.0, buffer.as_slice()).err();
            })?;
            if let Some(error) = failed {
                return Err(error.into());
            }
            let mut meta = transaction.open_table(META)?;
            let since = Duration::from_millis(now.0.saturating_sub(at.0)).as_secs();
            let gap = IDS.saturating_add(since.saturating_mul(IDS_A_SECOND));
            for (key, least) in [(META_NEXT_ID, MessageId::FIRST.0), (META_NEXT_HANDED, 1)] {
                let next = meta.get(key)?.map_or(least, |next| next.value()).max(least);
                meta.insert(key, next.saturating_add(gap))?;
            }
        }
        transaction.commit()?;
        Ok(found)
    }
}

/// Whether the appliance can have handed a message over since the backup.
fn may_have_left(recovered: &Recovered, now: Timestamp) -> bool {
    if recovered.handed.is_some_and(|handed| {
        recovered.progress.as_ref().is_none_or(|progress| handed.attempt > progress.attempts)
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
        Some(Waiting::Queued | Waiting::Deferred { .. }) => true,
        Some(Waiting::Held { .. } | Waiting::Uncertain { .. } | Waiting::Receipt { .. }) => false,
    }
}

/// The progress of a message of which nobody knows what became of it since the backup.
fn in_doubt(recovered: Recovered, now: Timestamp) -> Progress {
    let Recovered { message, progress, handed, .. } = recovered;
    let mut progress = progress.unwrap_or_else(|| Progress {
        waiting: Waiting::Queued,
        attempts: 0,
        leg: 0,
        parts: Vec::new(),
        steps: Vec::new(),
    });
    if let Some(handed) = handed.filter(|handed| handed.attempt > progress.attempts) {
        (progress.attempts, progress.leg) = (handed.attempt, handed.leg);
        if let Verdict::Forward(legs) = &message.routed.verdict
            && let Some(leg) = legs.get(usize::from(handed.leg))
        {
            let kind = StepKind::Submitted { peer: leg.peer, attempt: handed.attempt };
            progress.steps.push(Step { at: handed.at, kind });
        }
    }
    progress.steps.push(Step { at: now, kind: StepKind::Recovered });
    // What limits a doubt is counted from the end of its validity: nobody knows when the admin comes to it.
    progress.waiting = Waiting::Uncertain { since: message.expires_at.max(now) };
    progress
}

//! Lookups of messages that are not in memory: first in the store, then in the archive.
//!
//! They run on their own thread and tasks, so traffic never waits for a database. Their number per account and their
//! duration are limited.

use crate::archiving::{ArchiveReader, dlr_state_of};
use crate::critical_thread;
use crossbeam_channel::{Receiver, Sender, unbounded};
use engine::{EngineAnswer, EngineCommand, QueriedState, ReplyTo};
use model::{Address, DlrState, Message, MessageId, PeerId, Refusal};
use parking_lot::Mutex;
use ports::LinkRegistry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use store::Store;
use tokio::sync::Semaphore;

/// Maximum number of pending archive lookups per account; more are throttled.
const MAX_PENDING_PER_ACCOUNT: usize = 100;

/// Maximum number of concurrent archive lookups, in total and per account.
const MAX_CONCURRENT: usize = 8;
/// See [`MAX_CONCURRENT`].
const MAX_CONCURRENT_PER_ACCOUNT: usize = 2;

/// Maximum duration of an archive lookup, including its wait for a permit.
const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A lookup of a message.
pub(crate) struct MessageLookup {
    pub(crate) origin: PeerId,
    pub(crate) id: MessageId,
    /// The source address that must match; `None`: any.
    pub(crate) source: Option<Address>,
    /// The refusal to return if the message is found; `None`: return its state.
    pub(crate) too_late: Option<Refusal>,
    pub(crate) to: ReplyTo,
}

impl MessageLookup {
    /// The answer, from the states of all messages found, by ascending id.
    fn answer(&self, states: impl Iterator<Item = QueriedState>) -> EngineAnswer {
        match (combined_state(self.id, states), self.too_late) {
            (None, _) => EngineAnswer::Refused(Refusal::UnknownMessage),
            (Some(_), Some(refusal)) => EngineAnswer::Refused(refusal),
            (Some(state), None) => EngineAnswer::State(state),
        }
    }
}

/// The combined state of finished messages that share an id: delivered if all were delivered; otherwise the state of
/// the first failed one; otherwise that of the first one without a confirmation. The final time is that of the last
/// one. `None` without messages.
fn combined_state(id: MessageId, states: impl Iterator<Item = QueriedState>) -> Option<QueriedState> {
    let severity = |state: DlrState| match state {
        DlrState::Delivered => 0,
        DlrState::Accepted => 1,
        _ => 2,
    };
    states
        .reduce(|worst, state| {
            let final_at = worst.final_at.max(state.final_at);
            let worse = severity(state.state) > severity(worst.state);
            QueriedState { final_at, ..if worse { state } else { worst } }
        })
        .map(|state| QueriedState { id, ..state })
}

/// A finished message in the store.
struct StoredState {
    state: QueriedState,
    /// Whether the requested id is the id of a submission to several destinations that includes this message.
    is_submission_id: bool,
}

/// The pending archive lookups of an account.
struct AccountLookups {
    count: usize,
    permits: Arc<Semaphore>,
}

/// The channel to the worker.
pub(crate) struct MessageLookups(Sender<MessageLookup>);

/// The state of the worker.
struct LookupWorker {
    store: Arc<Store>,
    registry: Arc<LinkRegistry>,
    archive_reader: Option<ArchiveReader>,
    permits: Semaphore,
    pending: Mutex<HashMap<PeerId, AccountLookups>>,
}

impl MessageLookups {
    /// Starts the worker; it ends when the last [`MessageLookups`] is dropped.
    ///
    /// # Errors
    /// Fails if the system cannot start a thread.
    pub(crate) fn start(
        store: Arc<Store>,
        registry: Arc<LinkRegistry>,
        archive_reader: Option<ArchiveReader>,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (lookups, receiver) = unbounded();
        let permits = Semaphore::new(MAX_CONCURRENT);
        let worker =
            Arc::new(LookupWorker { store, registry, archive_reader, permits, pending: Mutex::default() });
        let thread = critical_thread::spawn("lookup", move || worker.run(&receiver))?;
        Ok((Self(lookups), thread))
    }

    /// Queues a lookup.
    pub(crate) fn submit(&self, lookup: MessageLookup) {
        // The worker outlives all senders.
        let _ = self.0.send(lookup);
    }
}

impl LookupWorker {
    fn run(self: Arc<Self>, lookups: &Receiver<MessageLookup>) {
        for lookup in lookups {
            // The store first: a message that leaves the store in the meantime is in the archive already.
            let stored = match self.find_in_store(&lookup) {
                Ok(states) => states,
                Err(refusal) => {
                    self.reply(lookup.to, EngineAnswer::Refused(refusal));
                    continue;
                }
            };
            let complete =
                stored.get(&lookup.id).filter(|state| !state.is_submission_id || lookup.too_late.is_some());
            let archive_reader = self.archive_reader.as_ref().filter(|_| complete.is_none());
            let Some(archive_reader) = archive_reader else {
                self.reply(lookup.to, lookup.answer(stored.into_values().map(|found| found.state)));
                continue;
            };
            let Some(permits) = self.acquire(lookup.origin) else {
                self.reply(lookup.to, EngineAnswer::Refused(Refusal::Throttled));
                continue;
            };
            let (worker, archive_reader) = (self.clone(), archive_reader.clone());
            let runtime = archive_reader.runtime.clone();
            runtime.spawn(async move {
                let answer = worker.find_in_archive(&archive_reader, &permits, &lookup, stored).await;
                worker.release(lookup.origin);
                worker.reply(lookup.to, answer);
            });
        }
    }

    /// The matching finished messages in the store, by id.
    fn find_in_store(&self, lookup: &MessageLookup) -> Result<BTreeMap<MessageId, StoredState>, Refusal> {
        let found = self.store.finished_of(lookup.id).map_err(|error| {
            tracing::error!(%error, "reading finished messages failed");
            Refusal::Internal
        })?;
        let matches_lookup = |message: &Message| {
            let same_source =
                lookup.source.as_ref().is_none_or(|source| source.value == message.source.value);
            message.origin == lookup.origin && same_source
        };
        if found.iter().any(|(message, _)| !matches_lookup(message)) {
            return Err(Refusal::UnknownMessage);
        }
        let states = found.into_iter().map(|(message, ended)| {
            let state = QueriedState {
                id: message.id,
                state: dlr_state_of(ended.state),
                final_at: Some(ended.at),
                error: u8::try_from(ended.error).unwrap_or(u8::MAX),
            };
            (message.id, StoredState { state, is_submission_id: message.submission == Some(lookup.id) })
        });
        Ok(states.collect())
    }

    async fn find_in_archive(
        &self,
        archive_reader: &ArchiveReader,
        permits: &Semaphore,
        lookup: &MessageLookup,
        stored: BTreeMap<MessageId, StoredState>,
    ) -> EngineAnswer {
        let is_submission_id = stored.values().any(|found| found.is_submission_id);
        let query = async {
            let _of_account = permits.acquire().await.ok();
            let _of_all = self.permits.acquire().await.ok();
            archive_reader.states(lookup.origin, (lookup.id, is_submission_id), lookup.source.as_ref()).await
        };
        match tokio::time::timeout(ARCHIVE_TIMEOUT, query).await {
            Ok(Ok(mut states)) => {
                states.extend(stored.into_iter().map(|(id, found)| (id, found.state)));
                lookup.answer(states.into_values())
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "archive query failed");
                EngineAnswer::Refused(Refusal::Internal)
            }
            Err(_) => {
                tracing::warn!(seconds = ARCHIVE_TIMEOUT.as_secs(), "archive query timed out");
                EngineAnswer::Refused(Refusal::Internal)
            }
        }
    }

    /// Registers a lookup and returns the account's permits; `None` if it has too many pending lookups.
    fn acquire(&self, account: PeerId) -> Option<Arc<Semaphore>> {
        let mut pending = self.pending.lock();
        let account = pending.entry(account).or_insert_with(|| AccountLookups {
            count: 0,
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT_PER_ACCOUNT)),
        });
        let has_room = account.count < MAX_PENDING_PER_ACCOUNT;
        account.count += usize::from(has_room);
        has_room.then(|| account.permits.clone())
    }

    fn release(&self, account: PeerId) {
        let mut pending = self.pending.lock();
        if let Some(known) = pending.get_mut(&account) {
            known.count -= 1;
            if known.count == 0 {
                pending.remove(&account);
            }
        }
    }

    fn reply(&self, to: ReplyTo, answer: EngineAnswer) {
        self.registry.dispatch(vec![EngineCommand::Answer { to, answer }]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;

    fn state(id: u64, state: DlrState, at: u64, error: u8) -> QueriedState {
        QueriedState { id: MessageId(id), state, final_at: Some(Timestamp(at)), error }
    }

    #[test]
    fn a_submission_is_delivered_when_every_destination_is() {
        use DlrState::{Accepted, Delivered, Expired, Undeliverable};
        let of = |states: &[QueriedState]| combined_state(MessageId(10), states.iter().cloned());
        assert_eq!(of(&[]), None);
        let all = [state(10, Delivered, 5, 0), state(11, Delivered, 9, 0), state(12, Delivered, 7, 0)];
        assert_eq!(of(&all), Some(state(10, Delivered, 9, 0)));
        let failed = [
            state(10, Delivered, 9, 0),
            state(11, Accepted, 5, 0),
            state(12, Undeliverable, 6, 3),
            state(13, Expired, 7, 4),
        ];
        assert_eq!(of(&failed), Some(state(10, Undeliverable, 9, 3)));
        assert_eq!(of(&failed[..2]), Some(state(10, Accepted, 9, 0)));
    }
}

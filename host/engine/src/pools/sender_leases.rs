//! Leases of messages, and messages that wait for a number.

use super::Pools;
use super::pool::Actor;
use super::registry::ManagedPool;
use crate::opt_out::spellings;
use model::{
    AcquireRequest, AddressBytes, LeaseTicket, MessageId, Now, PoolBatch, PoolCounts, PoolId, PoolName,
    PoolNumber, PoolOperation, PoolOutcome, PoolRefusal, SenderRequest, Strategy,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The leases and the waiting messages.
#[derive(Debug)]
pub(super) struct SenderLeases {
    held: FxHashMap<MessageId, (PoolId, PoolNumber, LeaseTicket)>,
    /// Messages that wait for a number of a pool, oldest first. A message that is being routed again keeps its place.
    lines: FxHashMap<PoolId, BTreeSet<MessageId>>,
    waits: FxHashMap<MessageId, PoolId>,
    /// Pools with waiting messages and ready numbers.
    callable: Vec<PoolId>,
    /// Leases on disk of missing messages.
    orphans: Vec<MessageId>,
    by: Arc<str>,
}

impl Default for SenderLeases {
    fn default() -> Self {
        Self {
            held: FxHashMap::default(),
            lines: FxHashMap::default(),
            waits: FxHashMap::default(),
            callable: Vec::new(),
            orphans: Vec::new(),
            by: "message".into(),
        }
    }
}

impl Pools {
    /// Leases a number to a message. Ready numbers go to waiting messages before it first.
    pub(crate) fn lease_sender(
        &mut self,
        now: Now,
        message: MessageId,
        request: &SenderRequest,
        callee: &[u8],
        batch: &mut PoolBatch,
    ) -> Result<PoolNumber, PoolRefusal> {
        let id = *self.names.get(&request.pool).ok_or(PoolRefusal::Empty)?;
        let managed = self.by_id.get_mut(&id).ok_or(PoolRefusal::Empty)?;
        managed.pool.advance(now);
        let ready = managed.pool.ready();
        let line = self.senders.lines.get(&id).filter(|line| line.len() >= ready);
        let before = line.map_or(0, |line| line.range(..message).take(ready).count());
        let taken = if before > 0 && before == ready {
            Err(managed.pool.refusal_when_none_free(now.mono))
        } else {
            let callee = callee_of(callee, managed.pool.settings.strategy, || managed.pool.idle(0, 1));
            let call = AcquireRequest {
                number: None,
                holder: request.holder.clone(),
                reason: request.reason.clone(),
                user: request.user.clone(),
                callee,
                lease: request.lease,
            };
            managed.pool.call(Actor { now, by: Some(&self.senders.by) }, call, Some(message))
        };
        let leased = match taken {
            Ok(PoolOutcome::Acquired { number, ticket }) => {
                managed.acquired += 1;
                self.senders.held.insert(message, (id, number, ticket));
                Ok(number)
            }
            Ok(PoolOutcome::Refused(refusal)) | Err(refusal) => {
                managed.none += 1;
                Err(refusal)
            }
            Ok(PoolOutcome::Done(_)) => Err(PoolRefusal::Empty),
        };
        self.flush(id, batch);
        leased
    }

    /// Releases the number of a finished message, if it still has one.
    pub(crate) fn release(&mut self, now: Now, message: MessageId, batch: &mut PoolBatch) {
        let Some((id, number, ticket)) = self.senders.held.remove(&message) else { return };
        if let Some(managed) = self.by_id.get_mut(&id) {
            // Refused if the lease has expired or the number was removed.
            let hangup = PoolOperation::Hangup { number, ticket: Some(ticket) };
            managed.pool.apply(now, hangup, &self.senders.by);
            self.flush(id, batch);
        }
    }

    /// Lets a held message wait for a number. Returns false if the pool does not exist.
    pub(crate) fn wait_for_number(&mut self, message: MessageId, pool: &PoolName) -> bool {
        let Some(id) = self.names.get(pool).copied() else { return false };
        self.senders.lines.entry(id).or_default().insert(message);
        self.senders.waits.insert(message, id);
        self.offer_to_waiters(id);
        true
    }

    /// Ends the wait of a message for a number.
    pub(crate) fn stop_waiting_for_number(&mut self, message: MessageId) {
        let Some(id) = self.senders.waits.remove(&message) else { return };
        if let Some(line) = self.senders.lines.get_mut(&id) {
            line.remove(&message);
            if line.is_empty() {
                self.senders.lines.remove(&id);
            }
        }
        // The number goes to the next message.
        self.offer_to_waiters(id);
    }

    /// A waiting message can be routed again now.
    pub(crate) fn requeue_waiter(&mut self, message: MessageId) {
        if let Some(id) = self.senders.waits.get(&message) {
            self.offer_to_waiters(*id);
        }
    }

    /// After a change of a pool: offers its ready numbers to waiting messages.
    pub(super) fn offer_to_waiters(&mut self, id: PoolId) {
        if !self.senders.lines.is_empty()
            && self.senders.lines.contains_key(&id)
            && self.by_id.get(&id).is_some_and(|managed| managed.pool.ready() > 0)
        {
            self.senders.callable.push(id);
        }
    }

    /// Removes the waiting messages of a removed pool; they are routed again when their hold ends.
    pub(super) fn drop_waiters(&mut self, id: PoolId) {
        for message in self.senders.lines.remove(&id).unwrap_or_default() {
            self.senders.waits.remove(&message);
        }
    }

    /// The waiting messages that get a number: as many as numbers are ready, including messages that are being routed.
    pub(crate) fn take_callable(&mut self) -> Vec<MessageId> {
        let mut called = Vec::new();
        let mut callable = std::mem::take(&mut self.senders.callable);
        callable.sort_unstable();
        callable.dedup();
        for id in callable {
            if let (Some(line), Some(managed)) = (self.senders.lines.get(&id), self.by_id.get(&id)) {
                called.extend(line.iter().take(managed.pool.ready()));
            }
        }
        called
    }

    /// Finds leases of missing messages; they are released with the next batch.
    pub(crate) fn find_orphans(&mut self, is_there: impl Fn(MessageId) -> bool) {
        let held = self.senders.held.keys().copied();
        self.senders.orphans = held.filter(|message| !is_there(*message)).collect();
        self.senders.orphans.sort_unstable();
    }

    pub(crate) fn release_orphans(&mut self, now: Now, batch: &mut PoolBatch) {
        for message in std::mem::take(&mut self.senders.orphans) {
            self.release(now, message, batch);
        }
    }

    pub(super) fn recover_holdings(&mut self) {
        for (id, managed) in &self.by_id {
            for (message, number, ticket) in managed.pool.held_by_messages() {
                self.senders.held.insert(message, (*id, number, ticket));
            }
        }
    }

    /// The number leased by a message.
    pub(crate) fn leased_number(&self, message: MessageId) -> Option<PoolNumber> {
        self.senders.held.get(&message).map(|(_, number, _)| *number)
    }

    /// Whether one of these senders, in normalised form, is a number of the pool.
    pub(crate) fn contains_any(&self, pool: &PoolName, senders: &[AddressBytes], country: &str) -> bool {
        let Some(managed) = self.find(pool) else { return false };
        senders.iter().any(|sender| {
            spellings(sender, country)
                .filter_map(|text| text.parse::<PoolNumber>().ok())
                .any(|number| managed.pool.find(number).is_some())
        })
    }

    pub(crate) fn counts(&self) -> Vec<(PoolName, usize, PoolCounts)> {
        let counts =
            |managed: &ManagedPool| (managed.name.clone(), managed.pool.ready(), managed.pool.counts());
        self.by_id.values().map(counts).collect()
    }

    /// The number of messages with a lease, and the number of messages that wait for one.
    pub(crate) fn sender_counts(&self) -> (usize, usize) {
        (self.senders.held.len(), self.senders.waits.len())
    }
}

/// The callee, in the form that the strategy compares: digits, with a plus sign if the pool's numbers have one.
fn callee_of(destination: &[u8], strategy: Strategy, ready: impl Fn() -> Vec<PoolNumber>) -> Box<str> {
    let destination = String::from_utf8_lossy(destination);
    let digits = destination.strip_prefix('+').unwrap_or(&destination);
    let international = strategy == Strategy::Nearest
        && ready().first().is_some_and(|number| number.to_string().starts_with('+'));
    if international { format!("+{digits}").into() } else { digits.into() }
}

//! Numbers that messages have for their senders, and messages that wait for one.

use super::Pools;
use super::all::{Kept, PoolBatch};
use super::pool::Doing;
use crate::consent::spellings;
use model::{
    AddressBytes, MessageId, Now, PoolCall, PoolCounts, PoolId, PoolName, PoolNumber, PoolOperation,
    PoolOutcome, PoolRefusal, PoolTicket, SenderWish, Strategy,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who has which number, and who stands in line for one.
#[derive(Debug)]
pub(super) struct Senders {
    held: FxHashMap<MessageId, (PoolId, PoolNumber, PoolTicket)>,
    /// Messages that wait for a number of a pool, oldest first. One that is being routed again keeps its place.
    lines: FxHashMap<PoolId, BTreeSet<MessageId>>,
    waits: FxHashMap<MessageId, PoolId>,
    /// Pools with a line and numbers that are to be had.
    stirred: Vec<PoolId>,
    /// Numbers on disk of messages that are not there.
    orphans: Vec<MessageId>,
    by: Arc<str>,
}

impl Default for Senders {
    fn default() -> Self {
        Self {
            held: FxHashMap::default(),
            lines: FxHashMap::default(),
            waits: FxHashMap::default(),
            stirred: Vec::new(),
            orphans: Vec::new(),
            by: "message".into(),
        }
    }
}

impl Pools {
    /// Takes a number for a message. What is ready goes first to those that stand in line before it.
    pub(crate) fn take_sender(
        &mut self,
        now: Now,
        message: MessageId,
        wish: &SenderWish,
        callee: &[u8],
        batch: &mut PoolBatch,
    ) -> Result<PoolNumber, PoolRefusal> {
        let id = *self.names.get(&wish.pool).ok_or(PoolRefusal::Empty)?;
        let kept = self.kept.get_mut(&id).ok_or(PoolRefusal::Empty)?;
        kept.pool.advance(now);
        let ready = kept.pool.ready();
        let line = self.senders.lines.get(&id).filter(|line| line.len() >= ready);
        let before = line.map_or(0, |line| line.range(..message).take(ready).count());
        let taken = if before > 0 && before == ready {
            Err(kept.pool.why_none(now.mono))
        } else {
            let callee = callee_of(callee, kept.pool.settings.strategy, || kept.pool.idle(0, 1));
            let call = PoolCall {
                number: None,
                holder: wish.holder.clone(),
                reason: wish.reason.clone(),
                user: wish.user.clone(),
                callee,
                lease: wish.lease,
            };
            kept.pool.call(Doing { now, by: Some(&self.senders.by) }, call, Some(message))
        };
        let given = match taken {
            Ok(PoolOutcome::Given { number, ticket }) => {
                kept.given += 1;
                self.senders.held.insert(message, (id, number, ticket));
                Ok(number)
            }
            Ok(PoolOutcome::Refused(refusal)) | Err(refusal) => {
                kept.none += 1;
                Err(refusal)
            }
            Ok(PoolOutcome::Done(_)) => Err(PoolRefusal::Empty),
        };
        self.tidy(id, batch);
        given
    }

    /// Gives back the number of a message that has ended, if it has one still.
    pub(crate) fn give_back(&mut self, now: Now, message: MessageId, batch: &mut PoolBatch) {
        let Some((id, number, ticket)) = self.senders.held.remove(&message) else { return };
        if let Some(kept) = self.kept.get_mut(&id) {
            // Refused where its lease has ended, or where the number was taken away from it: then it is another's.
            let hangup = PoolOperation::Hangup { number, ticket: Some(ticket) };
            kept.pool.apply(now, hangup, &self.senders.by);
            self.tidy(id, batch);
        }
    }

    /// Puts a message that is held into the line for a number. False where there is no such pool.
    pub(crate) fn stand_in_line(&mut self, message: MessageId, pool: &PoolName) -> bool {
        let Some(id) = self.names.get(pool).copied() else { return false };
        self.senders.lines.entry(id).or_default().insert(message);
        self.senders.waits.insert(message, id);
        self.stir(id);
        true
    }

    /// A message waits no longer.
    pub(crate) fn leave_line(&mut self, message: MessageId) {
        let Some(id) = self.senders.waits.remove(&message) else { return };
        if let Some(line) = self.senders.lines.get_mut(&id) {
            line.remove(&message);
            if line.is_empty() {
                self.senders.lines.remove(&id);
            }
        }
        // Its turn is the next one's.
        self.stir(id);
    }

    /// A message that stands in line can be asked about now.
    pub(crate) fn remind(&mut self, message: MessageId) {
        if let Some(id) = self.senders.waits.get(&message) {
            self.stir(*id);
        }
    }

    /// Something has happened to a pool: if there are numbers to be had, whoever stands in line is to be told.
    pub(super) fn stir(&mut self, id: PoolId) {
        if !self.senders.lines.is_empty()
            && self.senders.lines.contains_key(&id)
            && self.kept.get(&id).is_some_and(|kept| kept.pool.ready() > 0)
        {
            self.senders.stirred.push(id);
        }
    }

    /// A pool is gone, and the line for its numbers with it: whoever stood there asks again in his own time.
    pub(super) fn end_line(&mut self, id: PoolId) {
        for message in self.senders.lines.remove(&id).unwrap_or_default() {
            self.senders.waits.remove(&message);
        }
    }

    /// Messages whose turn it is to have a number, as many as there are numbers; those that are asking among them.
    pub(crate) fn called_up(&mut self) -> Vec<MessageId> {
        let mut called = Vec::new();
        let mut stirred = std::mem::take(&mut self.senders.stirred);
        stirred.sort_unstable();
        stirred.dedup();
        for id in stirred {
            if let (Some(line), Some(kept)) = (self.senders.lines.get(&id), self.kept.get(&id)) {
                called.extend(line.iter().take(kept.pool.ready()));
            }
        }
        called
    }

    /// Numbers of messages that are not there are given back with the next batch.
    pub(crate) fn find_orphans(&mut self, is_there: impl Fn(MessageId) -> bool) {
        let held = self.senders.held.keys().copied();
        self.senders.orphans = held.filter(|message| !is_there(*message)).collect();
        self.senders.orphans.sort_unstable();
    }

    pub(crate) fn give_back_orphans(&mut self, now: Now, batch: &mut PoolBatch) {
        for message in std::mem::take(&mut self.senders.orphans) {
            self.give_back(now, message, batch);
        }
    }

    pub(super) fn recover_holdings(&mut self) {
        for (id, kept) in &self.kept {
            for (message, number, ticket) in kept.pool.held_by_messages() {
                self.senders.held.insert(message, (*id, number, ticket));
            }
        }
    }

    /// The number that a message has.
    pub(crate) fn sender_of(&self, message: MessageId) -> Option<PoolNumber> {
        self.senders.held.get(&message).map(|(_, number, _)| *number)
    }

    /// Whether one of these senders, in the form in which they are compared, is a number of the pool.
    pub(crate) fn has_any(&self, pool: &PoolName, senders: &[AddressBytes], country: &str) -> bool {
        let Some(kept) = self.find(pool) else { return false };
        senders.iter().any(|sender| {
            spellings(sender, country)
                .filter_map(|text| text.parse::<PoolNumber>().ok())
                .any(|number| kept.pool.find(number).is_some())
        })
    }

    pub(crate) fn counts(&self) -> Vec<(PoolName, usize, PoolCounts)> {
        let counts = |kept: &Kept| (kept.name.clone(), kept.pool.ready(), kept.pool.counts());
        self.kept.values().map(counts).collect()
    }

    /// Messages that have a number, and messages that stand in line for one.
    pub(crate) fn sender_counts(&self) -> (usize, usize) {
        (self.senders.held.len(), self.senders.waits.len())
    }
}

/// Whom a number is for, as the pool's strategy compares it: digits alone, and with a plus sign if that is how the numbers
/// are written that it is to be near.
fn callee_of(destination: &[u8], strategy: Strategy, ready: impl Fn() -> Vec<PoolNumber>) -> Box<str> {
    let destination = String::from_utf8_lossy(destination);
    let digits = destination.strip_prefix('+').unwrap_or(&destination);
    let international = strategy == Strategy::Nearest
        && ready().first().is_some_and(|number| number.to_string().starts_with('+'));
    if international { format!("+{digits}").into() } else { digits.into() }
}

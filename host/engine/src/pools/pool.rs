use super::idle_list::{IdleList, MAX_WEIGHT};
use super::{Entry, Holder, NEVER, StepReply, step};
use hashbrown::HashTable;
use model::{
    AcquireRequest, JournalEntry, LeaseTicket, MessageId, Moment, Now, NumberEvent, NumberRow, NumberState,
    NumberStatus, PoolChange, PoolCounts, PoolNumber, PoolOperation, PoolOutcome, PoolRefusal, PoolRequest,
    PoolSettings, Random,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// One number pool.
///
/// A lease lasts from a call until it is released, expires, or its number is removed. Later requests with its ticket
/// are refused: with [`PoolRefusal::WrongState`] if the number is not leased, [`PoolRefusal::OtherTicket`] if it is
/// leased again, [`PoolRefusal::NotInPool`] if it was removed. Without a ticket, as in the older system, a late
/// hangup releases the current lease.
#[derive(Debug)]
pub struct Pool {
    pub(super) settings: PoolSettings,
    pub(super) entries: Vec<Entry>,
    free: Vec<u32>,
    index: HashTable<u32>,
    pub(super) idle: IdleList,
    /// Ends of leases and quarantines; equal times are ordered by number, which a restart does not change.
    ends: BTreeSet<(Moment, PoolNumber)>,
    /// The times at which a number becomes ready.
    ready_times: BTreeSet<(Moment, PoolNumber)>,
    pub(super) serial: u64,
    counts: PoolCounts,
    /// Entries since the last [`Pool::take_entries`], in order.
    pub(super) entries_made: Vec<JournalEntry>,
    /// Numbers that table `numbers` does not have in their current state.
    pub(super) unwritten: Vec<PoolNumber>,
    /// Entries since table `numbers` was last brought up to date.
    pub(super) unfolded: u64,
    pub(super) lapsed: u64,
    random: Random,
}

fn count_of(counts: &mut PoolCounts, state: NumberState) -> &mut usize {
    match state {
        NumberState::IdleUp => &mut counts.idle_up,
        NumberState::IdleDown => &mut counts.idle_down,
        NumberState::BusyUp => &mut counts.busy_up,
        NumberState::BusyDown => &mut counts.busy_down,
    }
}

/// The author and the time of a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Actor<'a> {
    pub(super) now: Now,
    /// `None`: a timer.
    pub(super) by: Option<&'a Arc<str>>,
}

fn hash(number: PoolNumber) -> u64 {
    Random::new(u64::from_be_bytes(number.octets())).next()
}

fn remaining_time(until: Moment, now: Moment) -> Duration {
    until - now
}

impl Pool {
    /// An empty pool.
    #[must_use]
    pub fn new(settings: PoolSettings, seed: u64) -> Self {
        Self {
            settings,
            entries: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            idle: IdleList::new(settings.strategy),
            ends: BTreeSet::new(),
            ready_times: BTreeSet::new(),
            serial: 0,
            counts: PoolCounts::default(),
            entries_made: Vec::new(),
            unwritten: Vec::new(),
            unfolded: 0,
            lapsed: 0,
            random: Random::new(seed),
        }
    }

    /// The numbers by state.
    #[must_use]
    pub fn counts(&self) -> PoolCounts {
        self.counts
    }

    /// Entries since the last call, in order. The caller writes them together with [`Pool::serial`].
    pub fn take_entries(&mut self) -> Vec<JournalEntry> {
        std::mem::take(&mut self.entries_made)
    }

    /// A number's state for table `numbers`; marks it as written.
    pub(super) fn written(&mut self, number: PoolNumber, now: Now) -> Option<NumberRow> {
        let slot = self.find(number)?;
        self.entries[slot as usize].unwritten = false;
        self.row_of(slot, now)
    }

    /// A part of the numbers, by slot; see [`model::PoolRequest::Numbers`].
    pub(super) fn numbers(
        &self,
        now: Now,
        (from, most): (u32, u32),
        state: Option<NumberState>,
        prefix: Option<PoolNumber>,
    ) -> (Vec<NumberStatus>, Option<u32>) {
        let mut found = Vec::new();
        let last = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let until = last.min(from.saturating_add(PoolRequest::SCAN_LIMIT));
        for slot in from..until {
            if found.len() >= most.max(1) as usize {
                return (found, Some(slot));
            }
            let entry = &self.entries[slot as usize];
            let fits = entry.state.is_some()
                && state.is_none_or(|state| entry.state == Some(state))
                && prefix.is_none_or(|prefix| entry.number.begins_with(prefix));
            if fits && let Some(row) = self.row_of(slot, now) {
                found.push(NumberStatus { number: entry.number, row });
            }
        }
        (found, (until < last).then_some(until))
    }

    /// A part of the ready numbers.
    pub(super) fn idle(&self, skip: usize, most: usize) -> Vec<PoolNumber> {
        let number = |slot: u32| self.entries[slot as usize].number;
        self.idle.slots(&self.entries, skip, most).into_iter().map(number).collect()
    }

    /// The number of ready numbers.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.idle.len()
    }

    /// The last stamp assigned. It must be written with the rows, so that no ticket is assigned twice.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// The latest time of the next [`Pool::advance`].
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// The number of numbers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether it has no numbers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Ends the leases and quarantines that are due.
    pub fn advance(&mut self, now: Now) {
        while let Some((at, number)) = self.ends.first().copied()
            && at <= now.mono
            && let Some(slot) = self.find(number)
        {
            let actor = Actor { now: Now { wall: now.wall_of(at), mono: at }, by: None };
            match self.entries[slot as usize].state {
                Some(NumberState::BusyUp | NumberState::BusyDown) => {
                    self.lapsed += 1;
                    let entry = &mut self.entries[slot as usize];
                    entry.lapsed = entry.lapsed.saturating_add(1);
                    self.release(slot, actor, PoolChange::Lapse);
                }
                _ => {
                    self.change(slot, |entry| entry.ends = NEVER);
                    self.wait_from_now(slot);
                    self.note(slot, actor, PoolChange::Rested);
                }
            }
        }
    }

    /// Applies one operation, after all due leases and quarantines have ended. `by` is its author.
    pub fn apply(&mut self, now: Now, operation: PoolOperation, by: &Arc<str>) -> PoolOutcome {
        self.advance(now);
        let actor = Actor { now, by: Some(by) };
        let done = match operation {
            PoolOperation::Add { number, weight } => Ok(self.add(actor, number, weight)),
            PoolOperation::Del { number } => Ok(self.del(actor, number)),
            PoolOperation::Reg { number } => self.set_up(actor, number, NumberEvent::Reg),
            PoolOperation::Unreg { number } => self.set_up(actor, number, NumberEvent::Unreg),
            PoolOperation::Call(call) => self.call(actor, call, None),
            PoolOperation::Hangup { number, ticket } => self.hangup(actor, number, ticket),
            PoolOperation::Renew { number, ticket, lease } => self.renew(actor, number, ticket, lease),
        };
        done.unwrap_or_else(PoolOutcome::Refused)
    }

    fn add(&mut self, actor: Actor<'_>, number: PoolNumber, weight: Option<u8>) -> PoolOutcome {
        let weight = weight.map(|weight| weight.clamp(1, MAX_WEIGHT));
        if let Some(slot) = self.find(number) {
            let entry = &self.entries[slot as usize];
            let (state, listed, old) = (entry.state, entry.listed, entry.weight);
            if let Some(weight) = weight
                && entry.weight != weight
            {
                self.change(slot, |entry| entry.weight = weight);
                if listed {
                    self.idle.reweigh(&mut self.entries, slot, old);
                }
                self.note(slot, actor, PoolChange::Weigh);
            }
            return PoolOutcome::Done(state);
        }
        let (state, _) = step(None, NumberEvent::Add);
        self.serial += 1;
        let slot = self.insert(Entry {
            number,
            stamp: self.serial,
            since: actor.now.wall,
            ends: NEVER,
            holder: None,
            calls: 0,
            held: 0,
            lapsed: 0,
            before: 0,
            after: 0,
            weight: weight.unwrap_or(1),
            listed: false,
            unwritten: false,
            state,
        });
        self.note(slot, actor, PoolChange::Add);
        PoolOutcome::Done(state)
    }

    fn del(&mut self, actor: Actor<'_>, number: PoolNumber) -> PoolOutcome {
        if let Some(slot) = self.find(number) {
            self.remove_entry(slot);
            self.unwritten.push(number);
            self.enter(actor, number, PoolChange::Del, None);
        }
        PoolOutcome::Done(None)
    }

    /// Removes an entry from all lists.
    pub(super) fn remove_entry(&mut self, slot: u32) {
        let number = self.entries[slot as usize].number;
        self.idle.leave(&mut self.entries, slot);
        self.change(slot, |entry| {
            entry.state = None;
            entry.ends = NEVER;
            entry.holder = None;
        });
        let entries = &self.entries;
        if let Ok(found) = self.index.find_entry(hash(number), |at| entries[*at as usize].number == number) {
            found.remove();
        }
        self.free.push(slot);
    }

    fn set_up(
        &mut self,
        actor: Actor<'_>,
        number: PoolNumber,
        event: NumberEvent,
    ) -> Result<PoolOutcome, PoolRefusal> {
        let slot = self.find(number).ok_or(PoolRefusal::NotInPool)?;
        let before = self.entries[slot as usize].state;
        let (state, _) = step(before, event);
        if state != before {
            self.idle.leave(&mut self.entries, slot);
            self.change(slot, |entry| {
                entry.state = state;
                entry.since = actor.now.wall;
            });
            self.wait_from_now(slot);
            let change = if event == NumberEvent::Reg { PoolChange::Reg } else { PoolChange::Unreg };
            self.note(slot, actor, change);
        }
        Ok(PoolOutcome::Done(state))
    }

    /// Leases a number to a caller, or to a message as its sender.
    pub(super) fn call(
        &mut self,
        actor: Actor<'_>,
        call: AcquireRequest,
        message: Option<MessageId>,
    ) -> Result<PoolOutcome, PoolRefusal> {
        let now = actor.now.mono;
        if call.holder.len().max(call.reason.len()) > AcquireRequest::MAX_TEXT {
            return Err(PoolRefusal::TooLong);
        }
        let slot = match call.number {
            Some(number) => self.find(number).ok_or(PoolRefusal::NotInPool)?,
            None => {
                let user = if call.user.is_empty() { &call.holder } else { &call.user };
                match self.idle.pick(&mut self.random, user, &call.callee) {
                    Some(slot) => slot,
                    None => return Err(self.refusal_when_none_free(now)),
                }
            }
        };
        let entry = &self.entries[slot as usize];
        let before = entry.state.ok_or(PoolRefusal::NotInPool)?;
        let (state, reply) = step(Some(before), NumberEvent::Call);
        if reply != StepReply::Ok {
            return Err(PoolRefusal::WrongState(before));
        }
        if entry.ends != NEVER {
            return Err(PoolRefusal::InQuarantine { remaining: remaining_time(entry.ends, now) });
        }
        self.idle.leave(&mut self.entries, slot);
        self.serial += 1;
        let serial = self.serial;
        let named = !call.holder.is_empty() || !call.reason.is_empty() || message.is_some();
        let holder = named.then(|| Box::new(Holder { name: call.holder, reason: call.reason, message }));
        self.change(slot, |entry| {
            entry.state = state;
            entry.stamp = serial;
            entry.since = actor.now.wall;
            entry.ends = call.lease.map_or(NEVER, |lease| now + lease);
            entry.holder = holder;
            entry.calls = entry.calls.saturating_add(1);
        });
        self.note(slot, actor, PoolChange::Call);
        let number = self.entries[slot as usize].number;
        Ok(PoolOutcome::Acquired { number, ticket: LeaseTicket(serial) })
    }

    pub(super) fn refusal_when_none_free(&self, now: Moment) -> PoolRefusal {
        let next = self.ready_times.first().map(|(at, _)| remaining_time(*at, now));
        if self.index.is_empty() {
            PoolRefusal::Empty
        } else if self.counts.idle_up > 0 {
            PoolRefusal::AllInQuarantine { remaining: next }
        } else if self.counts.busy_up > 0 {
            PoolRefusal::AllBusy { remaining: next }
        } else {
            PoolRefusal::AllDown
        }
    }

    fn hangup(
        &mut self,
        actor: Actor<'_>,
        number: PoolNumber,
        ticket: Option<LeaseTicket>,
    ) -> Result<PoolOutcome, PoolRefusal> {
        let slot = self.held(number, ticket)?;
        self.release(slot, actor, PoolChange::Hangup);
        Ok(PoolOutcome::Done(self.entries[slot as usize].state))
    }

    fn renew(
        &mut self,
        actor: Actor<'_>,
        number: PoolNumber,
        ticket: Option<LeaseTicket>,
        lease: Option<Duration>,
    ) -> Result<PoolOutcome, PoolRefusal> {
        let slot = self.held(number, ticket)?;
        self.change(slot, |entry| entry.ends = lease.map_or(NEVER, |lease| actor.now.mono + lease));
        self.note(slot, actor, PoolChange::Renew);
        Ok(PoolOutcome::Done(self.entries[slot as usize].state))
    }

    /// The slot of a leased number, under this ticket if one is given.
    fn held(&self, number: PoolNumber, ticket: Option<LeaseTicket>) -> Result<u32, PoolRefusal> {
        let slot = self.find(number).ok_or(PoolRefusal::NotInPool)?;
        let entry = &self.entries[slot as usize];
        match entry.state {
            None => Err(PoolRefusal::NotInPool),
            Some(state @ (NumberState::IdleUp | NumberState::IdleDown)) => {
                Err(PoolRefusal::WrongState(state))
            }
            Some(_) if ticket.is_some_and(|ticket| ticket.0 != entry.stamp) => Err(PoolRefusal::OtherTicket),
            Some(_) => Ok(slot),
        }
    }

    fn release(&mut self, slot: u32, actor: Actor<'_>, change: PoolChange) {
        let rest = self.settings.quarantine;
        self.change(slot, |entry| {
            let held = actor.now.wall.0.saturating_sub(entry.since.0) / 1000;
            entry.held = entry.held.saturating_add(u32::try_from(held).unwrap_or(u32::MAX));
            entry.state = step(entry.state, NumberEvent::Hangup).0;
            entry.since = actor.now.wall;
            entry.ends = if rest.is_zero() { NEVER } else { actor.now.mono + rest };
            entry.holder = None;
        });
        self.wait_from_now(slot);
        self.note(slot, actor, change);
    }

    /// Appends a ready number to the list, with the shortest idle time.
    fn wait_from_now(&mut self, slot: u32) {
        let entry = &self.entries[slot as usize];
        if entry.state == Some(NumberState::IdleUp) && entry.ends == NEVER && !entry.listed {
            self.serial += 1;
            self.entries[slot as usize].stamp = self.serial;
            self.idle.join(&mut self.entries, slot);
        }
    }

    pub(super) fn find(&self, number: PoolNumber) -> Option<u32> {
        self.index.find(hash(number), |slot| self.entries[*slot as usize].number == number).copied()
    }

    pub(super) fn insert(&mut self, entry: Entry) -> u32 {
        let number = entry.number;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                // A pool of more numbers would not fit into any memory.
                u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
            }
        };
        let entries = &self.entries;
        self.index.insert_unique(hash(number), slot, |slot| hash(entries[*slot as usize].number));
        self.account(slot, true);
        slot
    }

    /// Changes an entry and its indexes, except the list of ready numbers.
    fn change(&mut self, slot: u32, change: impl FnOnce(&mut Entry)) {
        self.account(slot, false);
        change(&mut self.entries[slot as usize]);
        self.account(slot, true);
    }

    /// Appends a change of a number to the journal.
    fn note(&mut self, slot: u32, actor: Actor<'_>, change: PoolChange) {
        let number = self.entries[slot as usize].number;
        if !std::mem::replace(&mut self.entries[slot as usize].unwritten, true) {
            self.unwritten.push(number);
        }
        let row = self.row_of(slot, actor.now);
        self.enter(actor, number, change, row);
    }

    fn enter(&mut self, actor: Actor<'_>, number: PoolNumber, change: PoolChange, row: Option<NumberRow>) {
        self.unfolded += 1;
        self.entries_made.push(JournalEntry {
            at: actor.now.wall,
            number,
            change,
            row,
            by: actor.by.cloned(),
        });
    }

    /// Adds an entry to the counts, or removes it.
    fn account(&mut self, slot: u32, there: bool) {
        let entry = &self.entries[slot as usize];
        let Some(state) = entry.state else { return };
        let count = count_of(&mut self.counts, state);
        *count = if there { *count + 1 } else { count.saturating_sub(1) };
        if entry.ends == NEVER {
            return;
        }
        let end = (entry.ends, entry.number);
        let up = matches!(state, NumberState::IdleUp | NumberState::BusyUp);
        if there {
            self.ends.insert(end);
            if up {
                self.ready_times.insert(end);
            }
        } else {
            self.ends.remove(&end);
            self.ready_times.remove(&end);
        }
    }
}

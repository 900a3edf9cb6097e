use super::lists::{HEAVIEST, IdleList};
use super::{Entry, Holder, NEVER, Reply, step};
use crate::random::Random;
use hashbrown::HashTable;
use model::{
    MessageId, Moment, Now, NumberEvent, NumberRow, NumberStanding, NumberState, PoolCall, PoolChange,
    PoolCounts, PoolEntry, PoolNumber, PoolOperation, PoolOutcome, PoolRefusal, PoolRequest, PoolSettings,
    PoolTicket,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// One pool.
///
/// A number is held from a call until it is given back, its lease ends or it is taken out of the pool. What comes later
/// from its former holder is refused, as far as it names its ticket: by [`PoolRefusal::WrongState`] where nobody has the
/// number, [`PoolRefusal::OtherTicket`] where another has, [`PoolRefusal::NotInPool`] where it is gone. Without a ticket,
/// as the older system worked, a late hangup gives back the number of whoever has it.
#[derive(Debug)]
pub struct Pool {
    pub(super) settings: PoolSettings,
    pub(super) entries: Vec<Entry>,
    free: Vec<u32>,
    index: HashTable<u32>,
    pub(super) idle: IdleList,
    /// Ends of leases and rests. Those of one moment come in the order of numbers, which a restart does not change.
    ends: BTreeSet<(Moment, PoolNumber)>,
    /// Those of them after which a number is to be had: of numbers that are up.
    hopes: BTreeSet<(Moment, PoolNumber)>,
    pub(super) serial: u64,
    counts: PoolCounts,
    /// What has happened since the last [`Pool::take_entries`], in order.
    pub(super) entries_made: Vec<PoolEntry>,
    /// Numbers that the table does not have as they are.
    pub(super) unwritten: Vec<PoolNumber>,
    /// Entries made since the table was last brought up to date.
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

/// Who has done something, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doing<'a> {
    pub(super) now: Now,
    /// `None`: time.
    pub(super) by: Option<&'a Arc<str>>,
}

fn hash(number: PoolNumber) -> u64 {
    Random::new(u64::from_be_bytes(number.octets())).next()
}

fn left(until: Moment, now: Moment) -> Duration {
    until - now
}

impl Pool {
    /// A pool without numbers.
    #[must_use]
    pub fn new(settings: PoolSettings, seed: u64) -> Self {
        Self {
            settings,
            entries: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            idle: IdleList::new(settings.strategy),
            ends: BTreeSet::new(),
            hopes: BTreeSet::new(),
            serial: 0,
            counts: PoolCounts::default(),
            entries_made: Vec::new(),
            unwritten: Vec::new(),
            unfolded: 0,
            lapsed: 0,
            random: Random::new(seed),
        }
    }

    /// How many numbers are in which state.
    #[must_use]
    pub fn counts(&self) -> PoolCounts {
        self.counts
    }

    /// What has happened since the last call, in order. It is to be written, [`Pool::serial`] with it.
    pub fn take_entries(&mut self) -> Vec<PoolEntry> {
        std::mem::take(&mut self.entries_made)
    }

    /// A number as it is to stand in the table from now on.
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
    ) -> (Vec<NumberStanding>, Option<u32>) {
        let mut found = Vec::new();
        let last = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let until = last.min(from.saturating_add(PoolRequest::MOST_LOOKED_AT));
        for slot in from..until {
            if found.len() >= most.max(1) as usize {
                return (found, Some(slot));
            }
            let entry = &self.entries[slot as usize];
            let fits = entry.state.is_some()
                && state.is_none_or(|state| entry.state == Some(state))
                && prefix.is_none_or(|prefix| entry.number.begins_with(prefix));
            if fits && let Some(row) = self.row_of(slot, now) {
                found.push(NumberStanding { number: entry.number, row });
            }
        }
        (found, (until < last).then_some(until))
    }

    /// A part of the numbers that are to be had.
    pub(super) fn idle(&self, skip: usize, most: usize) -> Vec<PoolNumber> {
        let number = |slot: u32| self.entries[slot as usize].number;
        self.idle.slots(&self.entries, skip, most).into_iter().map(number).collect()
    }

    /// How many numbers are to be had now.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.idle.len()
    }

    /// The last stamp given. It is to be written with the rows, so that no ticket is given twice.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// When [`Pool::advance`] wants to be called, at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// Numbers that are in the pool.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether it has no numbers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Ends the leases and rests whose time has come.
    pub fn advance(&mut self, now: Now) {
        while let Some((at, number)) = self.ends.first().copied()
            && at <= now.mono
            && let Some(slot) = self.find(number)
        {
            let doing = Doing { now: Now { wall: now.wall_of(at), mono: at }, by: None };
            match self.entries[slot as usize].state {
                Some(NumberState::BusyUp | NumberState::BusyDown) => {
                    self.lapsed += 1;
                    let entry = &mut self.entries[slot as usize];
                    entry.lapsed = entry.lapsed.saturating_add(1);
                    self.give_back(slot, doing, PoolChange::Lapse);
                }
                _ => {
                    self.change(slot, |entry| entry.ends = NEVER);
                    self.wait_from_now(slot);
                    self.note(slot, doing, PoolChange::Rested);
                }
            }
        }
    }

    /// Does one operation, after what is due by then. `by` is whose doing it is.
    pub fn apply(&mut self, now: Now, operation: PoolOperation, by: &Arc<str>) -> PoolOutcome {
        self.advance(now);
        let doing = Doing { now, by: Some(by) };
        let done = match operation {
            PoolOperation::Add { number, weight } => Ok(self.add(doing, number, weight)),
            PoolOperation::Del { number } => Ok(self.del(doing, number)),
            PoolOperation::Reg { number } => self.set_up(doing, number, NumberEvent::Reg),
            PoolOperation::Unreg { number } => self.set_up(doing, number, NumberEvent::Unreg),
            PoolOperation::Call(call) => self.call(doing, call, None),
            PoolOperation::Hangup { number, ticket } => self.hangup(doing, number, ticket),
            PoolOperation::Renew { number, ticket, lease } => self.renew(doing, number, ticket, lease),
        };
        done.unwrap_or_else(PoolOutcome::Refused)
    }

    fn add(&mut self, doing: Doing<'_>, number: PoolNumber, weight: Option<u8>) -> PoolOutcome {
        let weight = weight.map(|weight| weight.clamp(1, HEAVIEST));
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
                self.note(slot, doing, PoolChange::Weigh);
            }
            return PoolOutcome::Done(state);
        }
        let (state, _) = step(None, NumberEvent::Add);
        self.serial += 1;
        let slot = self.insert(Entry {
            number,
            stamp: self.serial,
            since: doing.now.wall,
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
        self.note(slot, doing, PoolChange::Add);
        PoolOutcome::Done(state)
    }

    fn del(&mut self, doing: Doing<'_>, number: PoolNumber) -> PoolOutcome {
        if let Some(slot) = self.find(number) {
            self.take_out(slot);
            self.unwritten.push(number);
            self.enter(doing, number, PoolChange::Del, None);
        }
        PoolOutcome::Done(None)
    }

    /// Removes an entry and all that is kept beside it.
    pub(super) fn take_out(&mut self, slot: u32) {
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
        doing: Doing<'_>,
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
                entry.since = doing.now.wall;
            });
            self.wait_from_now(slot);
            let change = if event == NumberEvent::Reg { PoolChange::Reg } else { PoolChange::Unreg };
            self.note(slot, doing, change);
        }
        Ok(PoolOutcome::Done(state))
    }

    /// Gives a number to a caller, or to a message that it is to be the sender of.
    pub(super) fn call(
        &mut self,
        doing: Doing<'_>,
        call: PoolCall,
        message: Option<MessageId>,
    ) -> Result<PoolOutcome, PoolRefusal> {
        let now = doing.now.mono;
        if call.holder.len().max(call.reason.len()) > PoolCall::LONGEST_TEXT {
            return Err(PoolRefusal::TooLong);
        }
        let slot = match call.number {
            Some(number) => self.find(number).ok_or(PoolRefusal::NotInPool)?,
            None => {
                let user = if call.user.is_empty() { &call.holder } else { &call.user };
                match self.idle.pick(&mut self.random, user, &call.callee) {
                    Some(slot) => slot,
                    None => return Err(self.why_none(now)),
                }
            }
        };
        let entry = &self.entries[slot as usize];
        let before = entry.state.ok_or(PoolRefusal::NotInPool)?;
        let (state, reply) = step(Some(before), NumberEvent::Call);
        if reply != Reply::Ok {
            return Err(PoolRefusal::WrongState(before));
        }
        if entry.ends != NEVER {
            return Err(PoolRefusal::Resting { left: left(entry.ends, now) });
        }
        self.idle.leave(&mut self.entries, slot);
        self.serial += 1;
        let serial = self.serial;
        let named = !call.holder.is_empty() || !call.reason.is_empty() || message.is_some();
        let holder = named.then(|| Box::new(Holder { name: call.holder, reason: call.reason, message }));
        self.change(slot, |entry| {
            entry.state = state;
            entry.stamp = serial;
            entry.since = doing.now.wall;
            entry.ends = call.lease.map_or(NEVER, |lease| now + lease);
            entry.holder = holder;
            entry.calls = entry.calls.saturating_add(1);
        });
        self.note(slot, doing, PoolChange::Call);
        let number = self.entries[slot as usize].number;
        Ok(PoolOutcome::Given { number, ticket: PoolTicket(serial) })
    }

    pub(super) fn why_none(&self, now: Moment) -> PoolRefusal {
        let next = self.hopes.first().map(|(at, _)| left(*at, now));
        if self.index.is_empty() {
            PoolRefusal::Empty
        } else if self.counts.idle_up > 0 {
            PoolRefusal::AllResting { left: next }
        } else if self.counts.busy_up > 0 {
            PoolRefusal::AllBusy { left: next }
        } else {
            PoolRefusal::AllDown
        }
    }

    fn hangup(
        &mut self,
        doing: Doing<'_>,
        number: PoolNumber,
        ticket: Option<PoolTicket>,
    ) -> Result<PoolOutcome, PoolRefusal> {
        let slot = self.held(number, ticket)?;
        self.give_back(slot, doing, PoolChange::Hangup);
        Ok(PoolOutcome::Done(self.entries[slot as usize].state))
    }

    fn renew(
        &mut self,
        doing: Doing<'_>,
        number: PoolNumber,
        ticket: Option<PoolTicket>,
        lease: Option<Duration>,
    ) -> Result<PoolOutcome, PoolRefusal> {
        let slot = self.held(number, ticket)?;
        self.change(slot, |entry| entry.ends = lease.map_or(NEVER, |lease| doing.now.mono + lease));
        self.note(slot, doing, PoolChange::Renew);
        Ok(PoolOutcome::Done(self.entries[slot as usize].state))
    }

    /// The slot of a number that is held, under this ticket if one is named.
    fn held(&self, number: PoolNumber, ticket: Option<PoolTicket>) -> Result<u32, PoolRefusal> {
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

    fn give_back(&mut self, slot: u32, doing: Doing<'_>, change: PoolChange) {
        let rest = self.settings.quarantine;
        self.change(slot, |entry| {
            let held = doing.now.wall.0.saturating_sub(entry.since.0) / 1000;
            entry.held = entry.held.saturating_add(u32::try_from(held).unwrap_or(u32::MAX));
            entry.state = step(entry.state, NumberEvent::Hangup).0;
            entry.since = doing.now.wall;
            entry.ends = if rest.is_zero() { NEVER } else { doing.now.mono + rest };
            entry.holder = None;
        });
        self.wait_from_now(slot);
        self.note(slot, doing, change);
    }

    /// If the number is to be had, it joins the list, as the one that has been idle for the shortest time.
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
                // A pool of more numbers than slots can be named would not fit into any memory.
                u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
            }
        };
        let entries = &self.entries;
        self.index.insert_unique(hash(number), slot, |slot| hash(entries[*slot as usize].number));
        self.account(slot, true);
        slot
    }

    /// Changes an entry, and with it all that is kept beside it but the list of those that are to be had.
    fn change(&mut self, slot: u32, change: impl FnOnce(&mut Entry)) {
        self.account(slot, false);
        change(&mut self.entries[slot as usize]);
        self.account(slot, true);
    }

    /// Enters into the journal what has happened to a number that is in the pool.
    fn note(&mut self, slot: u32, doing: Doing<'_>, change: PoolChange) {
        let number = self.entries[slot as usize].number;
        if !std::mem::replace(&mut self.entries[slot as usize].unwritten, true) {
            self.unwritten.push(number);
        }
        let row = self.row_of(slot, doing.now);
        self.enter(doing, number, change, row);
    }

    fn enter(&mut self, doing: Doing<'_>, number: PoolNumber, change: PoolChange, row: Option<NumberRow>) {
        self.unfolded += 1;
        self.entries_made.push(PoolEntry { at: doing.now.wall, number, change, row, by: doing.by.cloned() });
    }

    /// Counts an entry as it is, or takes it out of the counts.
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
                self.hopes.insert(end);
            }
        } else {
            self.ends.remove(&end);
            self.hopes.remove(&end);
        }
    }
}

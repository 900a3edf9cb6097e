use super::lists::{HEAVIEST, IdleList};
use super::{Entry, Holder, NEVER, Reply, step};
use crate::random::Random;
use hashbrown::HashTable;
use model::{
    Moment, NumberEvent, NumberState, PoolCall, PoolNumber, PoolOperation, PoolOutcome, PoolRefusal,
    PoolSettings, PoolTicket,
};
use std::collections::BTreeSet;
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
    pub(super) changed: Vec<PoolNumber>,
    random: Random,
}

/// How many numbers of a pool are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Idle and up, those that rest among them.
    pub idle_up: usize,
    /// Idle and down.
    pub idle_down: usize,
    /// Busy and up.
    pub busy_up: usize,
    /// Busy and down.
    pub busy_down: usize,
}

impl PoolCounts {
    fn of(&mut self, state: NumberState) -> &mut usize {
        match state {
            NumberState::IdleUp => &mut self.idle_up,
            NumberState::IdleDown => &mut self.idle_down,
            NumberState::BusyUp => &mut self.busy_up,
            NumberState::BusyDown => &mut self.busy_down,
        }
    }
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
            changed: Vec::new(),
            random: Random::new(seed),
        }
    }

    /// How many numbers are in which state.
    #[must_use]
    pub fn counts(&self) -> PoolCounts {
        self.counts
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

    /// Ends the leases and rests whose time has come.
    pub fn advance(&mut self, now: Moment) {
        while let Some((at, number)) = self.ends.first().copied()
            && at <= now
            && let Some(slot) = self.find(number)
        {
            match self.entries[slot as usize].state {
                Some(NumberState::BusyUp | NumberState::BusyDown) => self.give_back(slot, at),
                _ => {
                    self.change(slot, |entry| entry.ends = NEVER);
                    self.wait_from_now(slot);
                }
            }
        }
    }

    /// Does one operation, after what is due by then.
    pub fn apply(&mut self, now: Moment, operation: PoolOperation) -> PoolOutcome {
        self.advance(now);
        let done = match operation {
            PoolOperation::Add { number, weight } => self.add(number, weight),
            PoolOperation::Del { number } => Ok(self.del(number)),
            PoolOperation::Reg { number } => self.set_up(number, NumberEvent::Reg),
            PoolOperation::Unreg { number } => self.set_up(number, NumberEvent::Unreg),
            PoolOperation::Call(call) => self.call(now, call),
            PoolOperation::Hangup { number, ticket } => self.hangup(now, number, ticket),
            PoolOperation::Renew { number, ticket, lease } => self.renew(now, number, ticket, lease),
        };
        done.unwrap_or_else(PoolOutcome::Refused)
    }

    fn add(&mut self, number: PoolNumber, weight: u8) -> Result<PoolOutcome, PoolRefusal> {
        let weight = weight.clamp(1, HEAVIEST);
        if let Some(slot) = self.find(number) {
            let entry = &self.entries[slot as usize];
            let (state, listed, old) = (entry.state, entry.listed, entry.weight);
            if entry.weight != weight {
                self.change(slot, |entry| entry.weight = weight);
                if listed {
                    self.idle.reweigh(&mut self.entries, slot, old);
                }
            }
            return Ok(PoolOutcome::Done(state));
        }
        let (state, _) = step(None, NumberEvent::Add);
        self.serial += 1;
        self.insert(Entry {
            number,
            stamp: self.serial,
            ends: NEVER,
            holder: None,
            calls: 0,
            before: 0,
            after: 0,
            weight,
            listed: false,
            state,
        });
        self.changed.push(number);
        Ok(PoolOutcome::Done(state))
    }

    fn del(&mut self, number: PoolNumber) -> PoolOutcome {
        if let Some(slot) = self.find(number) {
            self.idle.leave(&mut self.entries, slot);
            self.change(slot, |entry| {
                entry.state = None;
                entry.ends = NEVER;
                entry.holder = None;
            });
            let entries = &self.entries;
            if let Ok(found) =
                self.index.find_entry(hash(number), |at| entries[*at as usize].number == number)
            {
                found.remove();
            }
            self.free.push(slot);
        }
        PoolOutcome::Done(None)
    }

    fn set_up(&mut self, number: PoolNumber, event: NumberEvent) -> Result<PoolOutcome, PoolRefusal> {
        let slot = self.find(number).ok_or(PoolRefusal::NotInPool)?;
        let before = self.entries[slot as usize].state;
        let (state, _) = step(before, event);
        if state != before {
            self.idle.leave(&mut self.entries, slot);
            self.change(slot, |entry| entry.state = state);
            self.wait_from_now(slot);
        }
        Ok(PoolOutcome::Done(state))
    }

    fn call(&mut self, now: Moment, call: PoolCall) -> Result<PoolOutcome, PoolRefusal> {
        if call.holder.len().max(call.reason.len()) > PoolCall::LONGEST_TEXT {
            return Err(PoolRefusal::TooLong);
        }
        let slot = match call.number {
            Some(number) => self.find(number).ok_or(PoolRefusal::NotInPool)?,
            None => match self.idle.pick(&mut self.random, &call.holder, &call.callee) {
                Some(slot) => slot,
                None => return Err(self.why_none(now)),
            },
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
        let named = !call.holder.is_empty() || !call.reason.is_empty();
        let holder = named.then(|| Box::new(Holder { name: call.holder, reason: call.reason }));
        self.change(slot, |entry| {
            entry.state = state;
            entry.stamp = serial;
            entry.ends = call.lease.map_or(NEVER, |lease| now + lease);
            entry.holder = holder;
            entry.calls = entry.calls.saturating_add(1);
        });
        let number = self.entries[slot as usize].number;
        Ok(PoolOutcome::Given { number, ticket: PoolTicket(serial) })
    }

    fn why_none(&self, now: Moment) -> PoolRefusal {
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
        now: Moment,
        number: PoolNumber,
        ticket: Option<PoolTicket>,
    ) -> Result<PoolOutcome, PoolRefusal> {
        let slot = self.held(number, ticket)?;
        self.give_back(slot, now);
        Ok(PoolOutcome::Done(self.entries[slot as usize].state))
    }

    fn renew(
        &mut self,
        now: Moment,
        number: PoolNumber,
        ticket: Option<PoolTicket>,
        lease: Option<Duration>,
    ) -> Result<PoolOutcome, PoolRefusal> {
        let slot = self.held(number, ticket)?;
        self.change(slot, |entry| entry.ends = lease.map_or(NEVER, |lease| now + lease));
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

    fn give_back(&mut self, slot: u32, at: Moment) {
        let rest = self.settings.quarantine;
        self.change(slot, |entry| {
            entry.state = step(entry.state, NumberEvent::Hangup).0;
            entry.ends = if rest.is_zero() { NEVER } else { at + rest };
            entry.holder = None;
        });
        self.wait_from_now(slot);
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

    pub(super) fn insert(&mut self, entry: Entry) {
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
    }

    /// Changes an entry, and with it all that is kept beside it but the list of those that are to be had.
    fn change(&mut self, slot: u32, change: impl FnOnce(&mut Entry)) {
        self.account(slot, false);
        change(&mut self.entries[slot as usize]);
        self.account(slot, true);
        self.changed.push(self.entries[slot as usize].number);
    }

    /// Counts an entry as it is, or takes it out of the counts.
    fn account(&mut self, slot: u32, there: bool) {
        let entry = &self.entries[slot as usize];
        let Some(state) = entry.state else { return };
        let count = self.counts.of(state);
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

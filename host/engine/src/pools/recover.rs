//! A pool's numbers as they lie on disk, and back.

use super::lists::{HEAVIEST, IdleList};
use super::pool::Pool;
use super::{Entry, Holder, NEVER};
use model::{MessageId, Now, NumberRow, NumberState, PoolNumber, PoolSettings, PoolTicket};

impl Pool {
    /// Takes a number as it was found in the tables, or, where the journal says that it has left, `None`. What comes later
    /// counts. `journal`: it comes from the journal, and the table has it otherwise. [`Pool::recovered`] must follow.
    pub fn recover(&mut self, number: PoolNumber, row: Option<NumberRow>, journal: bool, now: Now) {
        let known = self.find(number);
        let waits = known.is_some_and(|slot| self.entries[slot as usize].unwritten);
        if journal {
            self.unfolded += 1;
            if !waits {
                self.unwritten.push(number);
            }
        }
        if let Some(slot) = known {
            self.take_out(slot);
        }
        let Some(row) = row else { return };
        self.serial = self.serial.max(row.stamp);
        let held = !row.holder.is_empty() || !row.reason.is_empty() || row.message.is_some();
        let holder = Holder { name: row.holder, reason: row.reason, message: row.message };
        self.insert(Entry {
            number,
            stamp: row.stamp,
            since: row.since,
            ends: row.ends.map_or(NEVER, |at| now.moment_of(at)),
            holder: held.then(|| Box::new(holder)),
            calls: row.calls,
            held: row.held,
            lapsed: row.lapsed,
            before: 0,
            after: 0,
            weight: row.weight.clamp(1, HEAVIEST),
            listed: false,
            unwritten: journal || waits,
            state: Some(row.state),
        });
    }

    /// Ends recovery. Leases and rests that have ended meanwhile end in the next [`Pool::advance`].
    pub fn recovered(&mut self) {
        self.list_all();
    }

    /// Numbers that messages have for their senders.
    pub(super) fn held_by_messages(&self) -> impl Iterator<Item = (MessageId, PoolNumber, PoolTicket)> {
        self.entries.iter().filter_map(|entry| {
            let message = entry.holder.as_ref()?.message?;
            let held = matches!(entry.state, Some(NumberState::BusyUp | NumberState::BusyDown));
            held.then_some((message, entry.number, PoolTicket(entry.stamp)))
        })
    }

    /// Changes the settings; the idle order is kept. Rests that have begun last as long as they were to.
    pub fn configure(&mut self, settings: PoolSettings) {
        let anew = settings.strategy != self.settings.strategy;
        self.settings = settings;
        if anew {
            self.list_all();
        }
    }

    /// Makes the list of those that are to be had anew, in the order in which they became idle.
    fn list_all(&mut self) {
        self.idle = IdleList::new(self.settings.strategy);
        let mut ready: Vec<(u64, u32)> = Vec::new();
        for (slot, entry) in (0..).zip(&mut self.entries) {
            entry.listed = false;
            if entry.state == Some(NumberState::IdleUp) && entry.ends == NEVER {
                ready.push((entry.stamp, slot));
            }
        }
        ready.sort_unstable();
        for (_, slot) in ready {
            self.idle.join(&mut self.entries, slot);
        }
    }

    /// A number as it is now; `None`: it is not in the pool.
    #[must_use]
    pub fn row(&self, number: PoolNumber, now: Now) -> Option<NumberRow> {
        self.row_of(self.find(number)?, now)
    }

    pub(super) fn row_of(&self, slot: u32, now: Now) -> Option<NumberRow> {
        let entry = self.entries.get(slot as usize)?;
        let (holder, reason, message) = match &entry.holder {
            Some(holder) => (holder.name.clone(), holder.reason.clone(), holder.message),
            None => Default::default(),
        };
        Some(NumberRow {
            state: entry.state?,
            stamp: entry.stamp,
            since: entry.since,
            ends: (entry.ends != NEVER).then(|| now.wall_of(entry.ends)),
            weight: entry.weight,
            calls: entry.calls,
            held: entry.held,
            lapsed: entry.lapsed,
            holder,
            reason,
            message,
        })
    }
}

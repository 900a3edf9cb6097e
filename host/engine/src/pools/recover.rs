//! A pool's numbers as they lie on disk, and back.

use super::lists::{HEAVIEST, IdleList};
use super::pool::Pool;
use super::{Entry, Holder, NEVER};
use model::{Now, NumberState, PoolNumber, PoolSettings, Timestamp};

/// What must survive a restart of one number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRow {
    /// Its state.
    pub state: NumberState,
    /// Grows within the pool: the ticket of whoever has it, or its place in the order of idling.
    pub stamp: u64,
    /// When its lease or its rest ends, by the wall clock.
    pub ends: Option<Timestamp>,
    /// 1 to 16.
    pub weight: u8,
    /// Calls since it came into the pool.
    pub calls: u32,
    /// Who has it; empty where nobody does.
    pub holder: Box<str>,
    /// What for.
    pub reason: Box<str>,
}

impl Pool {
    /// The pool as it was when `rows` were written; `serial` is [`Pool::serial`] of that time. Leases and rests that have
    /// ended meanwhile end in the next [`Pool::advance`].
    #[must_use]
    pub fn recover(
        settings: PoolSettings,
        seed: u64,
        serial: u64,
        rows: impl IntoIterator<Item = (PoolNumber, NumberRow)>,
        now: Now,
    ) -> Self {
        let mut pool = Self::new(settings, seed);
        pool.serial = serial;
        for (number, row) in rows {
            if pool.find(number).is_some() {
                continue;
            }
            pool.serial = pool.serial.max(row.stamp);
            let held = !row.holder.is_empty() || !row.reason.is_empty();
            pool.insert(Entry {
                number,
                stamp: row.stamp,
                ends: row.ends.map_or(NEVER, |at| now.moment_of(at)),
                holder: held.then(|| Box::new(Holder { name: row.holder, reason: row.reason })),
                calls: row.calls,
                before: 0,
                after: 0,
                weight: row.weight.clamp(1, HEAVIEST),
                listed: false,
                state: Some(row.state),
            });
        }
        pool.list_all();
        pool
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

    /// The numbers that have changed since the last call, each once, as they are now; `None`: it has left the pool.
    /// [`Pool::serial`] is to be written with them.
    pub fn take_changes(&mut self, now: Now) -> Vec<(PoolNumber, Option<NumberRow>)> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().map(|number| (number, self.row(number, now))).collect()
    }

    /// A number as it is now; `None`: it is not in the pool.
    #[must_use]
    pub fn row(&self, number: PoolNumber, now: Now) -> Option<NumberRow> {
        let entry = &self.entries[self.find(number)? as usize];
        let (holder, reason) = match &entry.holder {
            Some(holder) => (holder.name.clone(), holder.reason.clone()),
            None => Default::default(),
        };
        Some(NumberRow {
            state: entry.state?,
            stamp: entry.stamp,
            ends: (entry.ends != NEVER).then(|| now.wall_of(entry.ends)),
            weight: entry.weight,
            calls: entry.calls,
            holder,
            reason,
        })
    }
}

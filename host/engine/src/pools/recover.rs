//! Recovery of a pool's numbers from disk.

use super::idle_list::{IdleList, MAX_WEIGHT};
use super::pool::Pool;
use super::{Entry, Holder, NEVER};
use model::{
    LeaseTicket, MessageId, Moment, Now, NumberRow, NumberState, PoolNumber, PoolSettings, Timestamp,
};

/// The moment of an end, which may have passed: leases that ended while the daemon was down end in their order.
fn end_of(now: Now, at: Timestamp) -> Moment {
    let passed = now.wall.0.saturating_sub(at.0);
    if passed == 0 { now.moment_of(at) } else { Moment(now.mono.0.saturating_sub(passed)) }
}

impl Pool {
    /// Recovers a number from the tables; `None` if the journal says that it was removed. Later calls override
    /// earlier ones. `journal`: the record is from the journal and differs from table `numbers`. [`Pool::recovered`]
    /// must follow.
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
            self.remove_entry(slot);
        }
        let Some(row) = row else { return };
        self.serial = self.serial.max(row.stamp);
        let held = !row.holder.is_empty() || !row.reason.is_empty() || row.message.is_some();
        let holder = Holder { name: row.holder, reason: row.reason, message: row.message };
        self.insert(Entry {
            number,
            stamp: row.stamp,
            since: row.since,
            ends: row.ends.map_or(NEVER, |at| end_of(now, at)),
            holder: held.then(|| Box::new(holder)),
            calls: row.calls,
            held: row.held,
            lapsed: row.lapsed,
            before: 0,
            after: 0,
            weight: row.weight.clamp(1, MAX_WEIGHT),
            listed: false,
            unwritten: journal || waits,
            state: Some(row.state),
        });
    }

    /// Ends recovery. Leases and quarantines that expired meanwhile end in the next [`Pool::advance`].
    pub fn recovered(&mut self) {
        self.list_all();
    }

    /// The numbers leased by messages.
    pub(super) fn held_by_messages(&self) -> impl Iterator<Item = (MessageId, PoolNumber, LeaseTicket)> {
        self.entries.iter().filter_map(|entry| {
            let message = entry.holder.as_ref()?.message?;
            let held = matches!(entry.state, Some(NumberState::BusyUp | NumberState::BusyDown));
            held.then_some((message, entry.number, LeaseTicket(entry.stamp)))
        })
    }

    /// Changes the settings; the idle order is kept. Running quarantines keep their length.
    pub fn configure(&mut self, settings: PoolSettings) {
        let anew = settings.strategy != self.settings.strategy;
        self.settings = settings;
        if anew {
            self.list_all();
        }
    }

    /// Rebuilds the list of ready numbers, in the order in which they became idle.
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

    /// A number in its current state; `None` if it is not in the pool.
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

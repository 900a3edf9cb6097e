//! Orders about many messages are carried out in steps: so much in a batch that no commit takes long, and so many looks in
//! a run of events that nobody waits for long.

use crate::Output;
use crate::engine::Engine;
use crate::obeying::Rebound;
use crate::orders::{Work, fits_entry};
use crate::slab::{Slot, State, flag};
use crate::timer::Timer;
use model::{Deed, FinalState, MessageId, Moment, Now, Order, OrderId, OrderKind, OrderState, StepKind};
use std::time::Duration;

/// How many messages orders end, move or let go in one batch.
const IN_A_BATCH: usize = 1024;
/// How many entries are looked at in one run of events.
const LOOKS: usize = 65_536;
/// How many contents are being read at a time.
const READS: usize = 1024;
/// When a peer is asked again whether it has room.
pub(crate) const ROOM_AGAIN: Duration = Duration::from_secs(1);
/// When a batch is full, or contents are being read: by then there may be another.
pub(crate) const SOON: Duration = Duration::from_millis(1);

/// How one message fared.
enum Step {
    /// It is none of the order's, or was dealt with.
    Past,
    /// Its content must be read first.
    Read,
    /// No more now.
    Stop(Duration),
}

impl Engine {
    /// Sends those another way that have come into queues since the last run.
    pub(crate) fn rebind_arrived(&mut self, now: Now, out: &mut Output) {
        for id in std::mem::take(&mut self.orders.arrived) {
            let Some(slot) = self.ids.get(&self.slab, id) else { continue };
            if !matches!(self.slab[slot].state, State::Queued | State::Aside) {
                continue;
            }
            if self.slab[slot].message.is_none() {
                self.read_for_order(slot, out);
            } else if self.rebind(now, slot, out) == Rebound::Full {
                self.look_again(now, slot);
            }
        }
    }

    /// Where messages are to go was full: they are looked for again.
    fn look_again(&mut self, now: Now, slot: Slot) {
        let Some(id) = self.orders.rebinder(&self.slab[slot], now).map(|order| order.id) else { return };
        let after = now.mono + ROOM_AGAIN;
        self.orders.works.entry(id).or_insert(Work::Again { after });
        // A look that is under way may have been here.
        self.orders.moved.push(self.slab[slot].id);
        self.wake_work(after);
    }

    pub(crate) fn wake_work(&mut self, at: Moment) {
        if self.orders.wake.is_none_or(|earlier| earlier > at) {
            self.orders.wake = Some(at);
            self.timers.set(at, Timer::Orders);
        }
    }

    fn read_for_order(&mut self, slot: Slot, out: &mut Output) {
        let id = self.slab[slot].id;
        if self.orders.loading.insert(id) {
            self.load_if_missing(slot, out);
        }
    }

    /// A content was read back, of whatever message: whoever wanted it for an order looks at it now.
    pub(crate) fn loaded_for_order(&mut self, now: Now, id: MessageId, out: &mut Output) {
        if !self.orders.loading.remove(&id) {
            return;
        }
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        if self.orders.rebinds_from(self.slab[slot].peer) {
            self.orders.arrived.push(id);
        }
        let looking: Vec<OrderId> = self.orders.works.keys().copied().collect();
        for order in looking {
            if let Some(order) = self.orders.get(order).cloned()
                && order.state == OrderState::UnderWay
                && let Some(slot) = self.ids.get(&self.slab, id)
            {
                self.end_by_order(now, slot, &order, out);
            }
        }
        if let Some(slot) = self.ids.get(&self.slab, id) {
            self.fresh.push(slot);
        }
    }

    /// Some of what orders want done.
    pub(crate) fn work_on_orders(&mut self, now: Now, out: &mut Output) {
        if self.orders.works.is_empty() || self.recovering {
            return;
        }
        if self.orders.wake.is_some_and(|at| at > now.mono) {
            return;
        }
        self.orders.wake = None;
        let moved = std::mem::take(&mut self.orders.moved);
        let works: Vec<(OrderId, Work)> = self.orders.works.iter().map(|(id, work)| (*id, *work)).collect();
        for (id, work) in works {
            let Some(order) = self.orders.get(id).cloned() else {
                self.orders.works.remove(&id);
                continue;
            };
            match work {
                Work::Release => self.release_some(now, &order, out),
                Work::Again { after } if after > now.mono => self.wake_work(after),
                Work::Again { .. } => self.look_at_some(now, &order, 0, &moved, out),
                Work::Look { at } => self.look_at_some(now, &order, at, &moved, out),
            }
        }
    }

    fn release_some(&mut self, now: Now, order: &Order, out: &mut Output) {
        let by = self.orders.withdrawn.get(&order.id).cloned().unwrap_or_else(|| order.by.clone());
        for _ in 0..IN_A_BATCH {
            let Some(slot) = self.orders.first_held(order.id) else {
                self.orders.works.remove(&order.id);
                self.orders.withdrawn.remove(&order.id);
                return;
            };
            let kind =
                StepKind::ByHand { deed: Deed::Resumed, by: by.clone(), order: Some(order.id), peer: None };
            self.let_go(now, slot, Some(kind), out);
        }
        self.wake_work(now.mono);
    }

    fn look_at_some(&mut self, now: Now, order: &Order, at: Slot, moved: &[MessageId], out: &mut Output) {
        // Those that have moved may have passed by unseen.
        for id in moved {
            let Some(slot) = self.ids.get(&self.slab, *id) else { continue };
            match self.look_at(now, slot, order, out) {
                Step::Past => {}
                Step::Read => self.read_for_order(slot, out),
                Step::Stop(_) => self.orders.moved.push(*id),
            }
        }
        let capacity = Slot::try_from(self.slab.capacity()).unwrap_or(Slot::MAX);
        let mut slot = at;
        for _ in 0..LOOKS {
            if slot >= capacity {
                if self.orders.loading.is_empty() && self.ending.is_empty() {
                    self.looked_through(order, out);
                } else {
                    self.go_on(order.id, slot, now.mono + SOON);
                }
                return;
            }
            match self.look_at(now, slot, order, out) {
                Step::Past => slot += 1,
                Step::Read if self.orders.loading.len() < READS => {
                    self.read_for_order(slot, out);
                    slot += 1;
                }
                Step::Read => return self.go_on(order.id, slot, now.mono + SOON),
                Step::Stop(after) => return self.go_on(order.id, slot, now.mono + after),
            }
        }
        self.go_on(order.id, slot, now.mono);
    }

    fn go_on(&mut self, id: OrderId, at: Slot, when: Moment) {
        self.orders.works.insert(id, Work::Look { at });
        self.wake_work(when);
    }

    /// An order has seen all messages.
    fn looked_through(&mut self, order: &Order, out: &mut Output) {
        self.orders.works.remove(&order.id);
        if let Some(mut order) = self.orders.get(order.id).cloned()
            && order.state == OrderState::UnderWay
        {
            order.state = OrderState::Done;
            self.set_order(order, out);
        }
    }

    fn look_at(&mut self, now: Now, slot: Slot, order: &Order, out: &mut Output) -> Step {
        let entry = &self.slab[slot];
        let concerned = match order.kind {
            OrderKind::Rebind => matches!(entry.state, State::Queued | State::Aside),
            _ => entry.state.waits(),
        };
        if !concerned || !fits_entry(order, entry, now.wall) {
            return Step::Past;
        }
        let changed = out.batch.finished.len() + out.batch.dropped.len() + out.batch.replaced.len();
        if changed >= IN_A_BATCH || self.ending.len() >= READS {
            return Step::Stop(SOON);
        }
        let missing = entry.message.is_none();
        match order.kind {
            OrderKind::Rebind if missing => return Step::Read,
            OrderKind::Rebind => {
                if self.rebind(now, slot, out) == Rebound::Full {
                    return Step::Stop(ROOM_AGAIN);
                }
            }
            _ if missing && order.scope.prefix.is_some() => return Step::Read,
            _ => self.end_by_order(now, slot, order, out),
        }
        Step::Past
    }

    /// Ends a message as cancelled, if it is one of the order's and still waits.
    fn end_by_order(&mut self, now: Now, slot: Slot, order: &Order, out: &mut Output) {
        let entry = &self.slab[slot];
        let theirs = entry.state.waits() && fits_entry(order, entry, now.wall);
        let content = entry.message.as_ref();
        let theirs = theirs && content.is_none_or(|message| order.scope.fits_destination(message));
        if !theirs || content.is_none() && order.scope.prefix.is_some() {
            return;
        }
        if entry.has(flag::OWN_RECEIPT) {
            self.count_touched(order.id, out);
        } else {
            let kind = StepKind::ByHand {
                deed: Deed::Cancelled,
                by: order.by.clone(),
                order: Some(order.id),
                peer: None,
            };
            self.step(now, slot, kind);
        }
        self.end(now, slot, FinalState::Cancelled, None, out);
    }
}

use crate::slab::Slot;
use model::{MessageId, Moment, OrderId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a timer is for. Timers are never taken back: one whose reason is gone is ignored when it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A deferred or held message is due, or has waited long enough for its leg.
    Message(Slot, MessageId),
    /// A peer may send again: a token is there, a pause is over.
    Peer(u32),
    /// The biller is told again of ends that it has refused.
    Settle,
    /// A resolver that wanted time is asked again.
    Resolve,
    /// The time to undo an order is over.
    Order(OrderId),
    /// Orders about many messages go on.
    Orders,
    /// Parked receipts are looked through.
    Parking,
    /// The next part of the slab is swept for ended validities and limits.
    Sweep,
}

/// All timers, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Moment, Timer)>>,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Moment, timer: Timer) {
        self.heap.push(Reverse((at, timer)));
    }

    pub(crate) fn next(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Moment) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, timer))| timer)
    }
}

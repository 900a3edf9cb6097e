use crate::slab::Slot;
use model::{MessageId, Moment, QueueActionId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The purpose of a timer. Timers are never cancelled: a stale one is ignored when it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A deferred or held message is due, or its leg's longest wait has ended.
    Message(Slot, MessageId),
    /// A peer may send again: a token is available, or a pause has ended.
    Peer(u32),
    /// A failed notification of the biller is repeated.
    NotifyBiller,
    /// A deferred query is repeated.
    Resolve,
    /// A failed lookup is repeated.
    Lookup,
    /// The undo window of a queue action ends.
    UndoWindow(QueueActionId),
    /// Queue actions with many messages continue.
    QueueActions,
    /// Orphan DLRs are checked.
    OrphanDlrs,
    /// A pace bucket has a token, or a send window opens.
    PaceLimit(u32),
    /// The next part of the slab is checked for expired validities and limits.
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

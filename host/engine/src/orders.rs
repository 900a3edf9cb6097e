//! Admins' orders about waiting messages, as such: which there are, whom they concern, and what of them is still to be done.
//! What follows for messages is in [`crate::obeying`] and [`crate::order_work`].
//!
//! An order is looked at when a message comes to its turn, so that it holds for whatever waits, in whatever state, and for
//! what comes later. A message that is held back is set down with its order and costs no further look.

use crate::slab::{Entry, NONE, Slab, Slot, flag};
use model::{Message, MessageId, Moment, Now, Order, OrderId, OrderKind, OrderState, PeerId, Timestamp};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// How many orders may have a say at a time: each costs a look at every message that is handed over.
pub(crate) const MOST_ACTIVE: usize = 64;
/// How many that are done with are remembered.
const KEPT: usize = 1000;

/// All orders.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    all: BTreeMap<OrderId, Order>,
    /// Those that may hold a message back when its turn comes, by number.
    holding: Vec<Order>,
    /// Those that send messages another way.
    rebinding: Vec<Order>,
    /// Peers that stand still as a whole, and by which order.
    suspended: FxHashMap<PeerId, OrderId>,
    /// Peers that take nothing new.
    drained: FxHashMap<PeerId, OrderId>,
    /// The messages that are held back.
    held: FxHashMap<OrderId, List>,
    /// What is still to be done, some of it in each batch.
    pub(crate) works: BTreeMap<OrderId, Work>,
    /// Who has withdrawn the orders that are being let go of.
    pub(crate) withdrawn: BTreeMap<OrderId, Arc<str>>,
    /// Messages that have come into the queue of a peer from which messages are sent another way.
    pub(crate) arrived: Vec<MessageId>,
    /// Messages whose places in memory have changed while somebody looks through all of them.
    pub(crate) moved: Vec<MessageId>,
    /// Messages whose content is being read for an order.
    pub(crate) loading: HashSet<MessageId>,
    /// Work is to go on at this moment.
    pub(crate) wake: Option<Moment>,
    last: u32,
}

/// Work in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Looking through all messages for those of the order, from this slot on.
    Look { at: Slot },
    /// Letting go of what was held back.
    Release,
    /// Looking through all messages once more, at this moment at the earliest: where they are to go was full.
    Again { after: Moment },
}

/// Messages that an order holds back, in the order in which their turns came; linked through their entries, which are on no
/// link of a peer's: `link` is the successor, `position` the predecessor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    head: Slot,
    tail: Slot,
    pub(crate) count: u64,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, count: 0 }
    }
}

/// Whether an order holds a message back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    No,
    By(OrderId),
    /// That depends on its content, which is not in memory.
    Unknown,
}

impl Orders {
    pub(crate) fn get(&self, id: OrderId) -> Option<&Order> {
        self.all.get(&id)
    }

    /// All of them, by number.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Order> {
        self.all.values()
    }

    pub(crate) fn active(&self) -> usize {
        self.all.values().filter(|order| order.state.is_active()).count()
    }

    pub(crate) fn next_id(&mut self) -> OrderId {
        self.last += 1;
        OrderId(self.last)
    }

    /// An order is new, or has changed. Gives back those that are to be forgotten.
    pub(crate) fn put(&mut self, order: Order) -> Vec<OrderId> {
        self.last = self.last.max(order.id.0);
        self.all.insert(order.id, order);
        let mut forgotten = Vec::new();
        let ended = self.all.values().filter(|order| !order.state.is_active());
        let ended: Vec<OrderId> = ended.map(|order| order.id).collect();
        for id in ended.iter().take(ended.len().saturating_sub(KEPT)) {
            // Its number is never given out again: the newest stays.
            if self.all.last_key_value().is_some_and(|(last, _)| last != id) {
                self.all.remove(id);
                forgotten.push(*id);
            }
        }
        self.index();
        forgotten
    }

    fn index(&mut self) {
        let active = || self.all.values().filter(|order| order.state.is_active());
        let holds = |order: &&Order| {
            order.kind.ends() || order.kind == OrderKind::Suspend && !order.scope.is_whole_peer()
        };
        self.holding = active().filter(holds).cloned().collect();
        self.rebinding = active().filter(|order| order.kind == OrderKind::Rebind).cloned().collect();
        let of = |kind: OrderKind| {
            let whole = move |order: &&Order| order.kind == kind && order.scope.is_whole_peer();
            active().filter(whole).rev().filter_map(|order| Some((order.scope.peer?, order.id))).collect()
        };
        (self.suspended, self.drained) = (of(OrderKind::Suspend), of(OrderKind::Drain));
    }

    /// A message that an order has moved or ended counts.
    pub(crate) fn touched(&mut self, id: OrderId) -> Option<&Order> {
        let order = self.all.get_mut(&id)?;
        order.touched += 1;
        Some(order)
    }

    /// The order by which a peer stands still.
    pub(crate) fn suspends(&self, peer: PeerId) -> Option<OrderId> {
        if self.suspended.is_empty() { None } else { self.suspended.get(&peer).copied() }
    }

    /// The order by which a peer takes nothing new.
    pub(crate) fn drains(&self, peer: PeerId) -> Option<OrderId> {
        if self.drained.is_empty() { None } else { self.drained.get(&peer).copied() }
    }

    /// The order that holds a message back which has come to its turn.
    pub(crate) fn holder(&self, entry: &Entry, now: Now) -> Held {
        for order in &self.holding {
            if !fits_entry(order, entry, now.wall) {
                continue;
            }
            match &entry.message {
                Some(message) if !order.scope.fits_destination(message) => {}
                None if order.scope.prefix.is_some() => return Held::Unknown,
                _ => return Held::By(order.id),
            }
        }
        Held::No
    }

    /// The order that is about to end a message which waits, as far as can be told without its content.
    pub(crate) fn may_end(&self, entry: &Entry, now: Now) -> bool {
        let fits = |order: &Order| {
            let content = entry.message.as_ref();
            fits_entry(order, entry, now.wall)
                && content.is_none_or(|message| order.scope.fits_destination(message))
        };
        self.holding.iter().any(|order| order.kind.ends() && fits(order))
    }

    /// Whether any order sends messages another way.
    pub(crate) fn rebinds_any(&self) -> bool {
        !self.rebinding.is_empty()
    }

    /// Whether any order may hold back a message whose turn has come.
    pub(crate) fn holds_any(&self) -> bool {
        !self.holding.is_empty()
    }

    /// Whether any order sends messages of a peer another way.
    pub(crate) fn rebinds_from(&self, peer: PeerId) -> bool {
        !self.rebinding.is_empty() && self.rebinding.iter().any(|order| order.scope.peer == Some(peer))
    }

    /// The order that sends a message another way. Its content must be there.
    pub(crate) fn rebinder(&self, entry: &Entry, now: Now) -> Option<&Order> {
        let message = entry.message.as_ref()?;
        self.rebinding
            .iter()
            .find(|order| fits_entry(order, entry, now.wall) && order.scope.fits_destination(message))
    }

    /// The same for a message that is about to be accepted, or routed again, on a leg to `peer`.
    pub(crate) fn rebinder_of(&self, message: &Message, peer: PeerId, now: Now) -> Option<&Order> {
        self.rebinding.iter().find(|order| {
            let scope = &order.scope;
            let age = now.wall.0.saturating_sub(message.accepted_at.0);
            scope.peer == Some(peer)
                && scope.account.is_none_or(|account| account == message.origin)
                // Before its acceptance a message has no age.
                && scope.older_than.is_none_or(|least| {
                    message.id.0 != 0 && u128::from(age) >= least.as_millis()
                })
                && scope.fits_destination(message)
        })
    }

    /// Whether messages are sent from or to a peer another way.
    pub(crate) fn is_rebound(&self, peer: PeerId) -> bool {
        self.rebinding.iter().any(|order| order.scope.peer == Some(peer))
    }

    pub(crate) fn is_target(&self, peer: PeerId) -> bool {
        self.rebinding.iter().any(|order| order.to == Some(peer))
    }

    /// How many messages an order holds back.
    pub(crate) fn held(&self, id: OrderId) -> u64 {
        self.held.get(&id).map_or(0, |list| list.count)
    }

    /// Sets a message down with its order.
    pub(crate) fn set_down(&mut self, slab: &mut Slab, slot: Slot, id: OrderId) {
        let list = self.held.entry(id).or_default();
        let entry = &mut slab[slot];
        (entry.order, entry.link, entry.position) = (id.0, NONE, list.tail);
        if list.tail == NONE {
            list.head = slot;
        } else {
            slab[list.tail].link = slot;
        }
        list.tail = slot;
        list.count += 1;
    }

    /// Takes a message up again.
    pub(crate) fn take_up(&mut self, slab: &mut Slab, slot: Slot) {
        let entry = &mut slab[slot];
        let id = OrderId(std::mem::take(&mut entry.order));
        let (next, previous) = (entry.link, entry.position);
        (entry.link, entry.position) = (NONE, 0);
        let Some(list) = self.held.get_mut(&id) else { return };
        if next == NONE {
            list.tail = previous;
        } else {
            slab[next].position = previous;
        }
        if previous == NONE {
            list.head = next;
        } else {
            slab[previous].link = next;
        }
        list.count -= 1;
        if list.count == 0 {
            self.held.remove(&id);
        }
    }

    /// The first that an order holds back.
    pub(crate) fn first_held(&self, id: OrderId) -> Option<Slot> {
        self.held.get(&id).map(|list| list.head).filter(|head| *head != NONE)
    }

    /// Whether somebody looks through all messages.
    pub(crate) fn is_looking(&self) -> bool {
        !self.works.is_empty()
    }
}

/// Whether a message is one of an order's, as far as can be told without its content.
pub(crate) fn fits_entry(order: &Order, entry: &Entry, now: Timestamp) -> bool {
    let scope = &order.scope;
    let ours = entry.has(flag::OWN_RECEIPT);
    let meant = match order.kind {
        // A receipt of ours goes to whom it is for, and to nobody else. It is no submitter's message.
        OrderKind::Cancel | OrderKind::Rebind | OrderKind::Drain => !ours,
        OrderKind::Suspend => !ours || scope.peer.is_some(),
        OrderKind::Purge => true,
    };
    let from = if order.kind.ends() { order.at } else { now };
    let is_old = scope.older_than.is_none_or(|least| {
        let age = (from.0 / 1000).saturating_sub(u64::from(entry.accepted));
        age >= least.as_secs()
    });
    meant
        && is_old
        && (!order.kind.ends() || entry.id < order.upto)
        && scope.peer.is_none_or(|peer| peer == entry.peer)
        && scope.account.is_none_or(|account| account == entry.origin)
}

/// Where an order of this kind stands once it is given.
pub(crate) fn first_state(kind: OrderKind) -> OrderState {
    if kind.ends() { OrderState::UndoWindow } else { OrderState::Standing }
}

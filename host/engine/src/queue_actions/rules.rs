//! The registry of queue actions: definitions, scopes and pending work. Their effect on messages is in
//! [`crate::queue_actions::matching`] and [`crate::queue_actions::batch`].
//!
//! An action is matched when a message reaches the head of its queue, so it covers every state and later messages
//! too. A held message is stored with its action and costs no further matching.

use crate::slab::{Entry, NONE, Slab, Slot, flag};
use model::{
    Message, MessageId, Moment, Now, PeerId, QueueAction, QueueActionId, QueueActionKind, QueueActionState,
    Timestamp,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Maximum number of active actions: each costs a check per sent message.
pub(crate) const MAX_ACTIVE: usize = 64;
/// Maximum number of finished actions that are kept.
const MAX_FINISHED: usize = 1000;

/// All queue actions.
#[derive(Debug, Default)]
pub(crate) struct QueueActions {
    all: BTreeMap<QueueActionId, QueueAction>,
    /// Actions that may hold a message at the head of its queue, by id.
    holds: Vec<QueueAction>,
    /// Reroutes.
    rerouting: Vec<QueueAction>,
    /// Suspended peers and their actions.
    suspended: FxHashMap<PeerId, QueueActionId>,
    /// Drained peers and their actions.
    drained: FxHashMap<PeerId, QueueActionId>,
    /// Held messages.
    held: FxHashMap<QueueActionId, HeldMessages>,
    /// Pending work, done in parts.
    pub(crate) pending_work: BTreeMap<QueueActionId, PendingWork>,
    /// The admins who withdrew the actions that are being released.
    pub(crate) withdrawn_by: BTreeMap<QueueActionId, Arc<str>>,
    /// Messages that entered the queue of a peer with a reroute.
    pub(crate) arrived: Vec<MessageId>,
    /// Messages whose slots changed during a scan.
    pub(crate) moved: Vec<MessageId>,
    /// Messages whose content is loading for an action.
    pub(crate) loading: HashSet<MessageId>,
    /// The time at which the work continues.
    pub(crate) wake: Option<Moment>,
    last: u32,
}

/// A piece of pending work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingWork {
    /// Scans all messages, from this slot on.
    Scan { at: Slot },
    /// Releases held messages.
    Release,
    /// Scans all messages again, not before this time: the target was full.
    RescanAfter { after: Moment },
}

/// The messages held by an action, in order; linked through their entries, which are on no link: `link` is the
/// successor, `position` the predecessor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldMessages {
    head: Slot,
    tail: Slot,
    pub(crate) count: u64,
}

impl Default for HeldMessages {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, count: 0 }
    }
}

/// Whether an action holds a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldDecision {
    No,
    By(QueueActionId),
    /// Its content is needed and not cached.
    Unknown,
}

impl QueueActions {
    pub(crate) fn get(&self, id: QueueActionId) -> Option<&QueueAction> {
        self.all.get(&id)
    }

    /// All actions, by id.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &QueueAction> {
        self.all.values()
    }

    pub(crate) fn active(&self) -> usize {
        self.all.values().filter(|action| action.state.is_active()).count()
    }

    pub(crate) fn next_id(&mut self) -> QueueActionId {
        self.last += 1;
        QueueActionId(self.last)
    }

    /// Adds or changes an action. Returns the ids of removed actions.
    pub(crate) fn put(&mut self, action: QueueAction) -> Vec<QueueActionId> {
        self.last = self.last.max(action.id.0);
        self.all.insert(action.id, action);
        let mut forgotten = Vec::new();
        let ended = self.all.values().filter(|action| !action.state.is_active());
        let ended: Vec<QueueActionId> = ended.map(|action| action.id).collect();
        for id in ended.iter().take(ended.len().saturating_sub(MAX_FINISHED)) {
            // The newest action stays, so that ids are never reused.
            if self.all.last_key_value().is_some_and(|(last, _)| last != id) {
                self.all.remove(id);
                forgotten.push(*id);
            }
        }
        self.index();
        forgotten
    }

    fn index(&mut self) {
        let active = || self.all.values().filter(|action| action.state.is_active());
        let holds = |action: &&QueueAction| {
            action.kind.cancels() || action.kind == QueueActionKind::Suspend && !action.scope.is_whole_peer()
        };
        self.holds = active().filter(holds).cloned().collect();
        self.rerouting = active().filter(|action| action.kind == QueueActionKind::Reroute).cloned().collect();
        let of = |kind: QueueActionKind| {
            let whole = move |action: &&QueueAction| action.kind == kind && action.scope.is_whole_peer();
            active().filter(whole).rev().filter_map(|action| Some((action.scope.peer?, action.id))).collect()
        };
        (self.suspended, self.drained) = (of(QueueActionKind::Suspend), of(QueueActionKind::Drain));
    }

    /// Counts a message that an action moved or cancelled.
    pub(crate) fn count_affected(&mut self, id: QueueActionId) -> Option<&QueueAction> {
        let action = self.all.get_mut(&id)?;
        action.affected += 1;
        Some(action)
    }

    /// The action that suspends a peer.
    pub(crate) fn suspension_of(&self, peer: PeerId) -> Option<QueueActionId> {
        if self.suspended.is_empty() { None } else { self.suspended.get(&peer).copied() }
    }

    /// The action that drains a peer.
    pub(crate) fn drain_of(&self, peer: PeerId) -> Option<QueueActionId> {
        if self.drained.is_empty() { None } else { self.drained.get(&peer).copied() }
    }

    /// The action that holds a message at the head of its queue.
    pub(crate) fn holding_action(&self, entry: &Entry, now: Now) -> HoldDecision {
        for action in &self.holds {
            if !matches_entry(action, entry, now.wall) {
                continue;
            }
            match &entry.message {
                Some(message) if !action.scope.matches_destination(message) => {}
                None if action.scope.prefix.is_some() => return HoldDecision::Unknown,
                _ => return HoldDecision::By(action.id),
            }
        }
        HoldDecision::No
    }

    /// Whether an action may be about to cancel a waiting message, as far as its entry shows.
    pub(crate) fn may_be_cancelled(&self, entry: &Entry, now: Now) -> bool {
        let fits = |action: &QueueAction| {
            let content = entry.message.as_ref();
            matches_entry(action, entry, now.wall)
                && content.is_none_or(|message| action.scope.matches_destination(message))
        };
        self.holds.iter().any(|action| action.kind.cancels() && fits(action))
    }

    /// Whether any reroute is active.
    pub(crate) fn any_reroute(&self) -> bool {
        !self.rerouting.is_empty()
    }

    /// Whether any action may hold messages.
    pub(crate) fn any_hold(&self) -> bool {
        !self.holds.is_empty()
    }

    /// Whether any action reroutes messages of a peer.
    pub(crate) fn reroutes_from(&self, peer: PeerId) -> bool {
        !self.rerouting.is_empty() && self.rerouting.iter().any(|action| action.scope.peer == Some(peer))
    }

    /// The action that reroutes a message. Its content must be cached.
    pub(crate) fn rerouting_action(&self, entry: &Entry, now: Now) -> Option<&QueueAction> {
        let message = entry.message.as_ref()?;
        self.rerouting.iter().find(|action| {
            matches_entry(action, entry, now.wall) && action.scope.matches_destination(message)
        })
    }

    /// As [`QueueActions::rerouting_action`], for a message that is being accepted or routed again on a leg to
    /// `peer`.
    pub(crate) fn rerouting_action_for(
        &self,
        message: &Message,
        peer: PeerId,
        now: Now,
    ) -> Option<&QueueAction> {
        self.rerouting.iter().find(|action| {
            let scope = &action.scope;
            let age = now.wall.0.saturating_sub(message.accepted_at.0);
            scope.peer == Some(peer)
                && scope.account.is_none_or(|account| account == message.origin)
                // Before its acceptance a message has no age.
                && scope.older_than.is_none_or(|least| {
                    message.id.0 != 0 && u128::from(age) >= least.as_millis()
                })
                && scope.matches_destination(message)
        })
    }

    /// Whether messages of a peer are rerouted.
    pub(crate) fn is_reroute_source(&self, peer: PeerId) -> bool {
        self.rerouting.iter().any(|action| action.scope.peer == Some(peer))
    }

    pub(crate) fn is_reroute_target(&self, peer: PeerId) -> bool {
        self.rerouting.iter().any(|action| action.to == Some(peer))
    }

    /// Number of messages that an action holds.
    pub(crate) fn held(&self, id: QueueActionId) -> u64 {
        self.held.get(&id).map_or(0, |list| list.count)
    }

    /// Adds a message to the held messages of an action.
    pub(crate) fn hold(&mut self, slab: &mut Slab, slot: Slot, id: QueueActionId) {
        let list = self.held.entry(id).or_default();
        let entry = &mut slab[slot];
        (entry.held_by, entry.link, entry.position) = (id.0, NONE, list.tail);
        if list.tail == NONE {
            list.head = slot;
        } else {
            slab[list.tail].link = slot;
        }
        list.tail = slot;
        list.count += 1;
    }

    /// Removes a message from the held messages of its action.
    pub(crate) fn remove_held(&mut self, slab: &mut Slab, slot: Slot) {
        let entry = &mut slab[slot];
        let id = QueueActionId(std::mem::take(&mut entry.held_by));
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

    /// The first message that an action holds.
    pub(crate) fn first_held(&self, id: QueueActionId) -> Option<Slot> {
        self.held.get(&id).map(|list| list.head).filter(|head| *head != NONE)
    }

    /// Whether a scan is running.
    pub(crate) fn is_scanning(&self) -> bool {
        !self.pending_work.is_empty()
    }
}

/// Whether a message matches an action, as far as its entry shows.
pub(crate) fn matches_entry(action: &QueueAction, entry: &Entry, now: Timestamp) -> bool {
    let scope = &action.scope;
    let ours = entry.has(flag::OWN_DLR);
    let meant = match action.kind {
        // A DLR goes to its submitter only, and is not a submitter's message.
        QueueActionKind::Cancel | QueueActionKind::Reroute | QueueActionKind::Drain => !ours,
        QueueActionKind::Suspend => !ours || scope.peer.is_some(),
        QueueActionKind::Purge => true,
    };
    let from = if action.kind.cancels() { action.at } else { now };
    let is_old = scope.older_than.is_none_or(|least| {
        let age = (from.0 / 1000).saturating_sub(u64::from(entry.accepted));
        age >= least.as_secs()
    });
    meant
        && is_old
        && (!action.kind.cancels() || entry.id < action.before_id)
        && scope.peer.is_none_or(|peer| peer == entry.peer)
        && scope.account.is_none_or(|account| account == entry.origin)
}

/// The initial state of an action.
pub(crate) fn initial_state(kind: QueueActionKind) -> QueueActionState {
    if kind.cancels() { QueueActionState::UndoWindow } else { QueueActionState::Standing }
}

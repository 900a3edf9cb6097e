//! Messages that wait for a pace bucket or a send window: see [`crate::pace_limits`].

use crate::engine::Engine;
use crate::pace_limits::{Limit, LimitIndex, wait_key};
use crate::settings::PaceSettings;
use crate::slab::{Slot, State, flag};
use crate::timer::Timer;
use model::{Moment, Now, Timestamp};
use std::sync::Arc;

/// The pace bucket or the send windows that messages wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacedBy {
    /// The name; of several windows, all names.
    pub name: Arc<str>,
    /// Whether it is a send window, not a pace bucket.
    pub is_window: bool,
    /// When the next messages may go on. Others may be before a message.
    pub until: Option<Moment>,
}

/// A pace bucket of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaceBucketStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Messages in its period.
    pub amount: u64,
    /// The tokens that it has.
    pub tokens: u64,
    /// The end of its day, if it counts by days.
    pub day_ends: Option<Timestamp>,
    /// Messages that wait for it.
    pub waiting: u64,
    /// When it has the next token, if messages wait for it.
    pub next_token: Option<Timestamp>,
}

impl PacedBy {
    pub(crate) fn of(limit: &Limit) -> Self {
        Self { name: limit.name.clone(), is_window: limit.is_window(), until: limit.next_at() }
    }
}

impl Engine {
    /// Takes over the buckets and windows of the configuration.
    pub(crate) fn configure_pace(&mut self, now: Now, settings: &PaceSettings) {
        self.pace_limits.configure(now, settings);
    }

    /// The limits of a message: those of its peer, and those of the account that submitted it. DLRs for submitters have
    /// none.
    fn limits_of(&self, slot: Slot) -> Vec<LimitIndex> {
        let entry = &self.slab[slot];
        if entry.has(flag::OWN_DLR) {
            return Vec::new();
        }
        let of = |peer: model::PeerId| self.peers.get(peer.0 as usize);
        let sent = of(entry.peer).map_or(&[][..], |peer| &peer.send_limits);
        let submitted = of(entry.origin).map_or(&[][..], |peer| &peer.submit_limits);
        let more = submitted.iter().filter(|index| !sent.contains(index));
        sent.iter().chain(more).copied().collect()
    }

    /// Whether messages from this peer's queue may have limits.
    pub(crate) fn may_be_paced(&self, slot: Slot) -> bool {
        let entry = &self.slab[slot];
        let of = |peer: model::PeerId| self.peers.get(peer.0 as usize);
        of(entry.peer).is_some_and(|peer| !peer.send_limits.is_empty())
            || of(entry.origin).is_some_and(|peer| !peer.submit_limits.is_empty())
    }

    /// The limit that the head of a queue must wait for.
    pub(crate) fn exhausted_limit(&mut self, now: Now, slot: Slot) -> Option<LimitIndex> {
        let (priority, id) = (self.slab[slot].priority, self.slab[slot].id);
        let limits = self.limits_of(slot);
        self.pace_limits.blocking(now, limits.into_iter(), wait_key(priority, id))
    }

    /// Takes a token of each limit of a message that is sent.
    pub(crate) fn spend_limits(&mut self, slot: Slot) {
        if self.may_be_paced(slot) {
            let limits = self.limits_of(slot);
            self.pace_limits.spend(limits.into_iter());
        }
    }

    /// Lets a message that has left the head of its queue wait for a limit.
    pub(crate) fn wait_for_limit(&mut self, slot: Slot, limit: LimitIndex) {
        let entry = &mut self.slab[slot];
        entry.state = State::Paced;
        entry.link = limit;
        let (key, peer) = (wait_key(entry.priority, entry.id), entry.peer);
        self.peer_of(slot).paced += 1;
        self.pace_limits.wait(limit, key, slot, peer);
        self.release_subscriber_lock(slot);
        self.newly_cached.push(slot);
    }

    /// Ends the wait of a message; it is then in the state of one whose attempt has just ended.
    pub(crate) fn stop_pacing(&mut self, slot: Slot) {
        let entry = &mut self.slab[slot];
        entry.state = State::Submitted;
        let (limit, key, peer) = (entry.link, wait_key(entry.priority, entry.id), entry.peer);
        entry.link = crate::slab::NONE;
        self.peer_of(slot).paced -= 1;
        self.pace_limits.stop_waiting(limit, key, peer);
    }

    /// The timer of a limit fired: returns messages to their places in their queues.
    pub(crate) fn limit_due(&mut self, now: Now, limit: LimitIndex) {
        for slot in self.pace_limits.due(now, limit) {
            let longest_wait = self.slab[slot].due;
            self.stop_pacing(slot);
            self.requeue(slot);
            if longest_wait != Moment(u64::MAX) {
                // Its timer may have fired meanwhile.
                self.slab[slot].due = longest_wait;
                self.timers.set(longest_wait, Timer::Message(slot, self.slab[slot].id));
            }
            self.newly_cached.push(slot);
        }
    }

    /// The pace buckets of the configuration, by name.
    #[must_use]
    pub fn pace_buckets(&self, now: Now) -> Vec<PaceBucketStatus> {
        let limits = self.pace_limits.limits.iter();
        let mut buckets: Vec<PaceBucketStatus> = limits
            .filter_map(|limit| {
                let (amount, tokens, day_ends) = limit.fill(now)?;
                Some(PaceBucketStatus {
                    name: limit.name.clone(),
                    amount,
                    tokens,
                    day_ends,
                    waiting: limit.waiting.len() as u64,
                    next_token: limit.next_at().map(|at| now.wall_of(at)),
                })
            })
            .collect();
        buckets.sort_by(|one, other| one.name.cmp(&other.name));
        buckets
    }

    /// Sets the timers of limits whose lists have changed.
    pub(crate) fn schedule_limits(&mut self, now: Now) {
        for (at, limit) in self.pace_limits.take_checks(now) {
            self.timers.set(at, Timer::PaceLimit(limit));
        }
    }
}

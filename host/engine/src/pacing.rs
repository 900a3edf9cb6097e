//! Messages that wait for a pace bucket or a send window: see [`crate::pace_limits`].

use crate::engine::Engine;
use crate::pace_limit::{BucketFill, Limit, wait_key};
use crate::pace_limits::LimitIndex;
use crate::settings::PaceSettings;
use crate::slab::{Slot, State, flag};
use crate::timer::Timer;
use model::{Message, MessageId, Moment, Now, PaceUnit, Timestamp};
use std::sync::Arc;

/// The pace bucket or the send windows that messages wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacedBy {
    /// The name; of several windows, all names.
    pub name: Arc<str>,
    /// Whether it is a send window, not a pace bucket.
    pub is_window: bool,
    /// The time at which the next messages may go on. Other messages may come first.
    pub until: Option<Moment>,
}

/// Pace buckets of plugins that [`Engine::pace_buckets`] lists.
const MAX_LISTED: usize = 1000;

/// A pace bucket of the configuration or of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaceBucketStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Whether a plugin defines it, not the configuration.
    pub by_plugin: bool,
    /// Messages or segments in its period.
    pub amount: u64,
    /// Its unit.
    pub counts: PaceUnit,
    /// Its current tokens.
    pub tokens: u64,
    /// The end of its day, if it counts by days.
    pub day_ends: Option<Timestamp>,
    /// Messages that wait for it.
    pub waiting: u64,
    /// The time of its next token, if messages wait for it.
    pub next_token: Option<Timestamp>,
}

impl PacedBy {
    pub(crate) fn of(limit: &Limit) -> Self {
        Self { name: limit.name.clone(), is_window: limit.is_window(), until: limit.next_at() }
    }
}

impl Engine {
    /// Applies the buckets, windows and day quotas of the configuration.
    pub(crate) fn configure_pace(&mut self, now: Now, settings: &PaceSettings) {
        self.pace_limits.configure(now, settings);
        self.day_quotas.configure(&settings.day_quotas);
    }

    /// The limits of a message: of its peer, of the account that submitted it, and of its decision. DLRs for submitters have
    /// none.
    fn limits_of(&self, slot: Slot) -> Vec<LimitIndex> {
        let entry = &self.slab[slot];
        if entry.has(flag::OWN_DLR) {
            return Vec::new();
        }
        let of = |peer: model::PeerId| self.peers.get(peer.0 as usize);
        let sent = of(entry.peer).map_or(&[][..], |peer| &peer.send_limits);
        let submitted = of(entry.origin).map_or(&[][..], |peer| &peer.submit_limits);
        let named = self.decision_limits.get(entry.id);
        let mut limits: Vec<LimitIndex> = Vec::with_capacity(sent.len() + submitted.len() + named.len());
        for index in sent.iter().chain(submitted).chain(named) {
            if !limits.contains(index) {
                limits.push(*index);
            }
        }
        limits
    }

    /// Whether messages from this peer's queue may have limits.
    pub(crate) fn may_be_paced(&self, slot: Slot) -> bool {
        let entry = &self.slab[slot];
        let of = |peer: model::PeerId| self.peers.get(peer.0 as usize);
        of(entry.peer).is_some_and(|peer| !peer.send_limits.is_empty())
            || of(entry.origin).is_some_and(|peer| !peer.submit_limits.is_empty())
            || !self.decision_limits.get(entry.id).is_empty()
    }

    /// Applies the limits that a message's decision names; they replace the limits of an earlier decision.
    pub(crate) fn note_decision_limits(&mut self, now: Now, message: &Message) {
        let changes = message.routed.changes.as_deref();
        let named = changes.filter(|one| !one.pace_buckets.is_empty() || !one.send_windows.is_empty());
        // The new limits first, so that a limit in both sets is not removed.
        let limits = named.map(|changes| self.pace_limits.resolve_decision(now, changes));
        let former = self.decision_limits.remove(message.id);
        if let Some(limits) = limits
            && let Some(set) = self.decision_limits.set(message.id, limits)
        {
            self.pace_limits.count_set(&set, true);
        }
        if let Some(set) = former {
            self.pace_limits.count_set(&set, false);
        }
    }

    /// Removes the decision limits of a message that has left.
    pub(crate) fn forget_decision_limits(&mut self, id: MessageId) {
        if !self.decision_limits.is_empty()
            && let Some(set) = self.decision_limits.remove(id)
        {
            self.pace_limits.count_set(&set, false);
        }
    }

    /// The segments that the next attempt sends; 1 if the content is not cached.
    fn segments_to_send(&self, slot: Slot) -> u64 {
        let entry = &self.slab[slot];
        let all = entry.message.as_ref().map_or(1, |message| usize::from(message.text.segment_count()));
        let taken = entry.history.as_ref().map_or(0, |history| history.segments.len());
        all.saturating_sub(taken).max(1) as u64
    }

    /// The limit that the head of a queue must wait for. A limit that counts segments is checked only once the content is
    /// loaded.
    pub(crate) fn exhausted_limit(&mut self, now: Now, slot: Slot) -> Option<LimitIndex> {
        let (priority, id) = (self.slab[slot].priority, self.slab[slot].id);
        let limits = self.limits_of(slot);
        if self.slab[slot].message.is_none() && self.pace_limits.any_counts_segments(&limits) {
            return None;
        }
        let segments = self.segments_to_send(slot);
        self.pace_limits.blocking(now, &limits, wait_key(priority, id), segments)
    }

    /// Takes the tokens of each limit of a message that is sent.
    pub(crate) fn spend_limits(&mut self, slot: Slot) {
        if self.may_be_paced(slot) {
            let limits = self.limits_of(slot);
            let segments = self.segments_to_send(slot);
            self.pace_limits.spend(&limits, segments);
        }
    }

    /// Makes a message that has left the head of its queue wait for a limit.
    pub(crate) fn wait_for_limit(&mut self, slot: Slot, limit: LimitIndex) {
        let segments = self.segments_to_send(slot);
        let entry = &mut self.slab[slot];
        entry.state = State::Paced;
        entry.link = limit;
        let (key, peer) = (wait_key(entry.priority, entry.id), entry.peer);
        self.peer_of(slot).paced += 1;
        self.pace_limits.wait(limit, key, (slot, peer), segments);
        self.release_subscriber_lock(slot);
        self.newly_cached.push(slot);
    }

    /// Ends the wait of a message; it is then in the state after the end of an attempt.
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

    /// The pace buckets of the configuration and of plugins, by name. At most 1,000 buckets of plugins are listed: first
    /// those with most waiting messages, then those with the fewest tokens.
    #[must_use]
    pub fn pace_buckets(&self, now: Now) -> Vec<PaceBucketStatus> {
        let limits = self.pace_limits.limits.iter();
        let (mut buckets, mut made): (Vec<PaceBucketStatus>, Vec<PaceBucketStatus>) = limits
            .filter_map(|limit| {
                let BucketFill { amount, counts, tokens, day_ends } = limit.fill(now)?;
                Some(PaceBucketStatus {
                    name: limit.name.clone(),
                    by_plugin: !limit.is_configured,
                    amount,
                    counts,
                    tokens,
                    day_ends,
                    waiting: limit.waiting.len() as u64,
                    next_token: limit.next_at().map(|at| now.wall_of(at)),
                })
            })
            .partition(|bucket| !bucket.by_plugin);
        if made.len() > MAX_LISTED {
            made.sort_by_key(|bucket| (std::cmp::Reverse(bucket.waiting), bucket.tokens));
            made.truncate(MAX_LISTED);
        }
        buckets.append(&mut made);
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

//! Read-only views of the engine, for admins.

use crate::engine::Engine;
use crate::leg_subscriber::number_on_leg;
use crate::pacing::PacedBy;
pub use crate::peer::BlockedBy;
use crate::slab::State;
use model::{
    LinkId, MessageId, Moment, OptOut, OrphanDlrRecord, PeerId, PluginVersion, Priority, QueueActionId, Step,
    SubmittedSegment, Timestamp,
};
use std::sync::Arc;

/// The queue of one peer.
#[derive(Debug, Clone)]
pub struct PeerStatus {
    /// The peer.
    pub peer: PeerId,
    /// Whether it is in the configuration.
    pub configured: bool,
    /// Messages in its queue, including messages behind a subscriber lock.
    pub queued: u64,
    /// Of these, messages behind a subscriber lock.
    pub subscriber_locked: u64,
    /// Subscribers whose failed message is in back-off: nothing else is sent to them.
    pub blocked_subscribers: u64,
    /// Messages that wait for their next attempt or schedule.
    pub deferred: u64,
    /// Messages whose subscriber is being looked up; the result may move them to another peer.
    pub resolving: u64,
    /// Messages held by queue actions.
    pub suspended: u64,
    /// Messages that wait for a pace bucket or a send window.
    pub paced: u64,
    /// The limit for which most of them wait.
    pub paced_by: Option<PacedBy>,
    /// Uncertain messages.
    pub uncertain: u64,
    /// Messages that wait for a DLR.
    pub awaiting_dlr: u64,
    /// Unanswered messages on its links.
    pub in_flight: u64,
    /// Links that take messages: id, window and number of unanswered messages.
    pub links: Vec<(LinkId, u32, usize)>,
    /// The time of acceptance of the oldest queued message.
    pub oldest: Option<Timestamp>,
    /// The reason why the queue does not move.
    pub blocked_by: BlockedBy,
    /// The learnt rate limit in messages per second; `None` if the peer never throttled.
    pub learnt_rate: Option<f64>,
}

/// The state of a message in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MessageState {
    /// In its peer's queue.
    Queued,
    /// Behind another message to the same subscriber: see [`MessageStatus::lock_holder`].
    SubscriberLocked,
    /// Held by a queue action: see [`MessageStatus::held_by`].
    Suspended,
    /// Waits for a pace bucket or a send window: see [`MessageStatus::paced_by`].
    Paced,
    /// On a link, unanswered.
    Submitted,
    /// Waits for its next attempt or schedule.
    Deferred,
    /// Held, or being routed again.
    Held,
    /// In quarantine until an admin releases or purges it.
    Quarantined,
    /// Waits for the lookup of its number; at `until` it is routed without an answer.
    AwaitingLookup,
    /// Waits for the resolver; `until` is the time of the next query or of the next leg.
    Resolving,
    /// Refused; the delivery policy is deciding.
    Deciding,
    /// Sent and never answered.
    Uncertain,
    /// Waits for its DLR.
    AwaitingDlr,
    /// Finished; the record is being written.
    Ending,
}

/// The message that a message behind a subscriber lock waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockHolder {
    /// The message that goes first: the lock holder, or the message itself while its content is loading.
    pub id: MessageId,
    /// If the holder is in back-off: its next attempt, at the latest.
    pub retry_at: Option<Moment>,
}

/// One message in memory.
#[derive(Debug, Clone)]
pub struct MessageStatus {
    /// Its id.
    pub id: MessageId,
    /// The submitter.
    pub origin: PeerId,
    /// The peer of its queue, link or DLR.
    pub peer: PeerId,
    /// The current leg.
    pub leg: u8,
    /// Attempts so far.
    pub attempts: u16,
    /// Its state.
    pub state: MessageState,
    /// The end of that state, at the latest; `None` if only the validity limits it.
    pub until: Option<Moment>,
    /// If the resolver deferred the query: the plugin version and its note.
    pub resolver_deferral: Option<(Arc<PluginVersion>, Option<Box<str>>)>,
    /// The end of its validity.
    pub expires: Moment,
    /// Steps so far, without the acceptance. An unanswered first attempt is not included.
    pub steps: Vec<Step>,
    /// Segments that the peer has accepted.
    pub segments: Vec<SubmittedSegment>,
    /// The time of the attempt, if it is on a link.
    pub submitted_at: Option<Timestamp>,
    /// If it is behind a subscriber lock: the message that goes first.
    pub lock_holder: Option<LockHolder>,
    /// The queue action that holds it.
    pub held_by: Option<QueueActionId>,
    /// The pace bucket or the send window that it waits for.
    pub paced_by: Option<PacedBy>,
    /// The reason why its peer's queue does not move.
    pub blocked_by: BlockedBy,
    /// The length of the peer's whole queue.
    pub queue_length: u64,
}

impl Engine {
    /// All peers that are configured or have messages.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStatus> {
        self.peers
            .iter()
            .filter(|peer| {
                peer.configured || peer.waiting() + peer.uncertain + peer.awaiting + peer.in_flight > 0
            })
            .map(|peer| {
                let subscriber_locked =
                    peer.oldest_waiting.first().and_then(|(id, _)| self.ids.get(&self.slab, *id));
                let oldest = (0..Priority::LEVELS)
                    .filter_map(|level| peer.lanes[level].oldest(&self.slab))
                    .chain(subscriber_locked)
                    .map(|slot| u64::from(self.slab[slot].accepted) * 1000)
                    .min();
                let links = peer.links.iter().filter_map(|index| {
                    let link = self.links.get(*index as usize)?.as_ref()?;
                    Some((link.id, link.window, link.in_flight.len()))
                });
                PeerStatus {
                    peer: peer.settings.peer,
                    configured: peer.configured,
                    queued: peer.queued + peer.subscriber_locked,
                    subscriber_locked: peer.subscriber_locked,
                    blocked_subscribers: peer.blocked_subscribers,
                    deferred: peer.deferred,
                    resolving: peer.resolving,
                    suspended: peer.suspended,
                    paced: peer.paced,
                    paced_by: self.pace_limits.limit_with_most_waiting(peer.settings.peer).map(PacedBy::of),
                    uncertain: peer.uncertain,
                    awaiting_dlr: peer.awaiting,
                    in_flight: peer.in_flight,
                    links: links.collect(),
                    oldest: oldest.map(Timestamp),
                    blocked_by: peer.blocked_by,
                    learnt_rate: peer.pace.as_ref().map(crate::pace::Pace::rate),
                }
            })
            .collect()
    }

    /// One live message.
    #[must_use]
    pub fn message(&self, id: MessageId) -> Option<MessageStatus> {
        let slot = self.ids.get(&self.slab, id)?;
        let entry = &self.slab[slot];
        let state = match entry.state {
            State::Queued => MessageState::Queued,
            State::SubscriberLocked => MessageState::SubscriberLocked,
            State::Suspended => MessageState::Suspended,
            State::Paced => MessageState::Paced,
            State::Submitted => MessageState::Submitted,
            State::Deferred => MessageState::Deferred,
            State::Held | State::Routing => MessageState::Held,
            State::Quarantined => MessageState::Quarantined,
            State::AwaitingLookup => MessageState::AwaitingLookup,
            State::Resolving => MessageState::Resolving,
            State::Deciding => MessageState::Deciding,
            State::Uncertain => MessageState::Uncertain,
            State::AwaitingDlr => MessageState::AwaitingDlr,
            State::Ending | State::Free | State::Tombstone => MessageState::Ending,
        };
        let peer = self.peers.get(entry.peer.0 as usize)?;
        let (asked_again, deferral) = match &entry.message {
            Some(message) if entry.state == State::Resolving => {
                self.resolver_state.delay(&number_on_leg(message, entry.leg))
            }
            _ => (None, None),
        };
        // The time of the built-in schedule is not the end of this wait.
        let due = if entry.state == State::Deciding { Moment(u64::MAX) } else { entry.due };
        let until = asked_again.map_or(due, |again| again.min(due));
        let flight = self
            .links
            .get(entry.link as usize)
            .and_then(Option::as_ref)
            .and_then(|link| link.in_flight.get(entry.position as usize))
            .filter(|flight| flight.slot == slot && entry.state == State::Submitted);
        let holder = (entry.state == State::SubscriberLocked).then(|| self.lock_holder(slot)).flatten();
        Some(MessageStatus {
            id,
            origin: entry.origin,
            peer: entry.peer,
            leg: entry.leg,
            attempts: entry.attempts,
            state,
            until: (until != Moment(u64::MAX)).then_some(until),
            resolver_deferral: deferral.map(|answer| (answer.by.clone(), answer.note.clone())),
            expires: entry.expires,
            steps: entry.history.as_ref().map_or_else(Vec::new, |history| history.steps.clone()),
            segments: entry.history.as_ref().map_or_else(Vec::new, |history| history.segments.clone()),
            submitted_at: flight.map(|flight| flight.at),
            lock_holder: holder.map(|(id, retry_at)| LockHolder { id, retry_at }),
            held_by: (entry.held_by != 0).then_some(QueueActionId(entry.held_by)),
            paced_by: (entry.state == State::Paced)
                .then(|| self.pace_limits.get(entry.link).map(PacedBy::of))
                .flatten(),
            blocked_by: peer.blocked_by,
            queue_length: peer.queued + peer.subscriber_locked,
        })
    }

    /// Orphan DLRs, oldest first, at most `most`.
    #[must_use]
    pub fn orphan_dlrs(&self, most: usize) -> Vec<OrphanDlrRecord> {
        self.orphan_dlrs.iter().take(most).collect()
    }

    /// Opt-outs, in no order, at most `most`.
    #[must_use]
    pub fn opt_outs(&self, most: usize) -> Vec<OptOut> {
        self.opt_outs.iter().take(most).collect()
    }

    /// The number of stored idempotency keys.
    #[must_use]
    pub fn idempotency_key_count(&self) -> usize {
        self.idempotency_keys.len()
    }

    /// The number of orphan DLRs, and of peer ids that wait for a DLR.
    #[must_use]
    pub fn dlr_counts(&self) -> (usize, usize) {
        (self.orphan_dlrs.len(), self.dlr_index.len())
    }
}

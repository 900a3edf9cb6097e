//! What an admin may see of the engine. Reading changes nothing.

use crate::engine::Engine;
pub use crate::peer::Brake;
use crate::resolving::number_on_leg;
use crate::slab::State;
use crate::{Consent, ParkedRecord, Part};
use model::{DecidedBy, LinkId, MessageId, Moment, OrderId, PeerId, Priority, Step, Timestamp};
use std::sync::Arc;

/// One peer's queue.
#[derive(Debug, Clone)]
pub struct PeerStatus {
    /// The peer.
    pub peer: PeerId,
    /// Whether it is in the configuration.
    pub configured: bool,
    /// Messages in its queue, those behind others to the same subscriber among them.
    pub queued: u64,
    /// Of these, messages behind others to the same subscriber.
    pub aside: u64,
    /// Subscribers to whom nothing is sent until a message to them that has failed is tried again.
    pub parked: u64,
    /// Messages waiting for their next attempt or schedule.
    pub deferred: u64,
    /// Messages waiting for their subscriber to be found; where that is, decides whether they stay with this peer.
    pub resolving: u64,
    /// Messages whose turn came, and which orders hold back.
    pub suspended: u64,
    /// Messages in doubt.
    pub uncertain: u64,
    /// Messages waiting for a receipt.
    pub awaiting_receipt: u64,
    /// Messages on its links.
    pub in_flight: u64,
    /// Links that take messages, with their window and what is unanswered on them.
    pub links: Vec<(LinkId, u32, usize)>,
    /// When the oldest queued message was accepted.
    pub oldest: Option<Timestamp>,
    /// What stands between queue and links.
    pub brake: Brake,
    /// Messages a second that it allows, as learnt from what it has refused as too fast; `None` if it never has.
    pub learnt_rate: Option<f64>,
}

/// What a message in memory does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doing {
    /// Stands in its peer's queue.
    Queued,
    /// Waits behind another message to the same subscriber: see [`MessageStatus::before`].
    Aside,
    /// Its turn came, and an order holds it back: see [`MessageStatus::order`].
    Suspended,
    /// Is on a link, unanswered.
    Submitted,
    /// Waits for its next attempt or schedule.
    Deferred,
    /// Is held, or being routed again.
    Held,
    /// Waits for the subscriber behind its number; `until` is when the resolver is asked again, or when the next leg is
    /// tried.
    Resolving,
    /// Was refused; the delivery policy is asked what follows.
    Deciding,
    /// Was written and never answered.
    Uncertain,
    /// Waits for its receipt.
    AwaitingReceipt,
    /// Has ended; the record is being written.
    Ending,
}

/// What stands before a message that is aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    /// The message to the same subscriber that goes first; itself, while its content is read back for its turn.
    pub id: MessageId,
    /// Where that one has failed and waits: when it is tried again, at the latest.
    pub parked_until: Option<Moment>,
}

/// One message in memory.
#[derive(Debug, Clone)]
pub struct MessageStatus {
    /// Its id.
    pub id: MessageId,
    /// Who submitted it.
    pub origin: PeerId,
    /// Whose queue, link or receipt it waits for.
    pub peer: PeerId,
    /// The leg in use.
    pub leg: u8,
    /// Attempts so far.
    pub attempts: u16,
    /// What it does.
    pub doing: Doing,
    /// Until when, at most; `None` where there is no limit but its validity.
    pub until: Option<Moment>,
    /// Where it waits for a subscriber: the resolver that could not tell yet, and its note.
    pub said: Option<(Arc<DecidedBy>, Option<Box<str>>)>,
    /// End of validity.
    pub expires: Moment,
    /// Steps so far, the acceptance left out. A first attempt that is still unanswered is not among them.
    pub steps: Vec<Step>,
    /// Parts that a peer has.
    pub parts: Vec<Part>,
    /// When it was given to its link, if it is on one.
    pub submitted_at: Option<Timestamp>,
    /// Where it is aside: what goes first.
    pub before: Option<Before>,
    /// The order that holds it back.
    pub order: Option<OrderId>,
    /// What its peer's queue waits for.
    pub brake: Brake,
    /// Messages before it in its peer's queue are not counted; this is the whole queue.
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
                let aside = peer.oldest_aside.first().and_then(|(id, _)| self.ids.get(&self.slab, *id));
                let oldest = (0..Priority::LEVELS)
                    .filter_map(|level| peer.lanes[level].oldest(&self.slab))
                    .chain(aside)
                    .map(|slot| u64::from(self.slab[slot].accepted) * 1000)
                    .min();
                let links = peer.links.iter().filter_map(|index| {
                    let link = self.links.get(*index as usize)?.as_ref()?;
                    Some((link.id, link.window, link.in_flight.len()))
                });
                PeerStatus {
                    peer: peer.settings.peer,
                    configured: peer.configured,
                    queued: peer.queued + peer.aside,
                    aside: peer.aside,
                    parked: peer.parked,
                    deferred: peer.deferred,
                    resolving: peer.resolving,
                    suspended: peer.suspended,
                    uncertain: peer.uncertain,
                    awaiting_receipt: peer.awaiting,
                    in_flight: peer.in_flight,
                    links: links.collect(),
                    oldest: oldest.map(Timestamp),
                    brake: peer.brake,
                    learnt_rate: peer.pace.as_ref().map(crate::pace::Pace::rate),
                }
            })
            .collect()
    }

    /// One message that has not ended.
    #[must_use]
    pub fn message(&self, id: MessageId) -> Option<MessageStatus> {
        let slot = self.ids.get(&self.slab, id)?;
        let entry = &self.slab[slot];
        let doing = match entry.state {
            State::Queued => Doing::Queued,
            State::Aside => Doing::Aside,
            State::Suspended => Doing::Suspended,
            State::Submitted => Doing::Submitted,
            State::Deferred => Doing::Deferred,
            State::Held | State::Routing => Doing::Held,
            State::Resolving => Doing::Resolving,
            State::Deciding => Doing::Deciding,
            State::Uncertain => Doing::Uncertain,
            State::Receipt => Doing::AwaitingReceipt,
            State::Ending | State::Free | State::Ghost => Doing::Ending,
        };
        let peer = self.peers.get(entry.peer.0 as usize)?;
        let (asked_again, said) = match &entry.message {
            Some(message) if entry.state == State::Resolving => {
                self.resolving.delay(&number_on_leg(message, entry.leg))
            }
            _ => (None, None),
        };
        // What the built-in schedule would do is not what it waits for.
        let due = if entry.state == State::Deciding { Moment(u64::MAX) } else { entry.due };
        let until = asked_again.map_or(due, |again| again.min(due));
        let flight = self
            .links
            .get(entry.link as usize)
            .and_then(Option::as_ref)
            .and_then(|link| link.in_flight.get(entry.position as usize))
            .filter(|flight| flight.slot == slot && entry.state == State::Submitted);
        let before = (entry.state == State::Aside).then(|| self.before(slot)).flatten();
        Some(MessageStatus {
            id,
            origin: entry.origin,
            peer: entry.peer,
            leg: entry.leg,
            attempts: entry.attempts,
            doing,
            until: (until != Moment(u64::MAX)).then_some(until),
            said: said.map(|answer| (answer.by.clone(), answer.note.clone())),
            expires: entry.expires,
            steps: entry.side.as_ref().map_or_else(Vec::new, |side| side.steps.clone()),
            parts: entry.side.as_ref().map_or_else(Vec::new, |side| side.parts.clone()),
            submitted_at: flight.map(|flight| flight.at),
            before: before.map(|(id, parked_until)| Before { id, parked_until }),
            order: (entry.order != 0).then_some(OrderId(entry.order)),
            brake: peer.brake,
            queue_length: peer.queued + peer.aside,
        })
    }

    /// Receipts that match nothing yet, oldest first, at most `most`.
    #[must_use]
    pub fn parked(&self, most: usize) -> Vec<ParkedRecord> {
        self.parking.iter().take(most).collect()
    }

    /// Who has told whom to stop, in no order, at most `most`.
    #[must_use]
    pub fn stopped(&self, most: usize) -> Vec<Consent> {
        self.consents.iter().take(most).collect()
    }

    /// Submission keys that are remembered.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Receipts that are parked, and ids that wait for one.
    #[must_use]
    pub fn receipt_counts(&self) -> (usize, usize) {
        (self.parking.len(), self.receipts.len())
    }
}

use crate::{AccountRates, Core, Protocol, Refusals, Refused};
use engine::{Answer, Command, Event, RefusedSubmission, ReplyTo};
use model::{LinkId, Message, MessageId, Outcome, PeerMessageId, Ticket, Timestamp};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What the engine wants from one link: a [`Command`] without the link's name.
#[derive(Debug)]
pub enum Delivery {
    /// Hand this message to the peer.
    Send {
        /// The message.
        message: Arc<Message>,
        /// Index of the leg in its forward verdict.
        leg: u8,
        /// Parts that the peer already has.
        taken: u16,
        /// Whether to ask for a receipt.
        want_receipt: bool,
        /// Another message for the same subscriber is known to wait (serial peers only).
        more: bool,
        /// The hand-over's name.
        ticket: Ticket,
    },
    /// The answer to a request that the link passed on.
    Answer {
        /// The link's own mark.
        token: u64,
        /// The answer.
        answer: Answer,
    },
    /// Ask the peer what became of a message.
    Ask {
        /// Our id.
        id: MessageId,
        /// The peer's.
        peer_id: PeerMessageId,
        /// The message, for its source address.
        message: Arc<Message>,
        /// Its leg.
        leg: u8,
    },
}

/// Deliveries for one link, in the order of the engine's commands.
pub type Deliveries = UnboundedReceiver<Vec<Delivery>>;

/// A live link.
#[derive(Debug)]
struct Registered {
    deliveries: UnboundedSender<Vec<Delivery>>,
    protocol: Protocol,
}

/// Who is where: brings the engine's commands to the links, one batch a link.
///
/// The channels have no bound of their own; what is in them is bounded by the windows of the links.
#[derive(Debug, Default)]
pub struct Hub {
    next: AtomicU64,
    links: RwLock<FxHashMap<LinkId, Registered>>,
    rates: AccountRates,
    refusals: Refusals,
}

impl Hub {
    /// A hub without links.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a new door: its link id, unique for the life of the process, and where its deliveries arrive. Any door
    /// may do this, HTTP as well as SMPP; it must [`Hub::remove`] itself when it closes.
    #[must_use]
    pub fn add(&self) -> (LinkId, Deliveries) {
        self.add_for(Protocol::Internal)
    }

    /// The same for a link of this protocol, under which its refused submissions are counted.
    #[must_use]
    pub fn add_for(&self, protocol: Protocol) -> (LinkId, Deliveries) {
        let id = LinkId(self.next.fetch_add(1, Ordering::Relaxed) + 1);
        let (deliveries, receiver) = unbounded_channel();
        self.links.write().insert(id, Registered { deliveries, protocol });
        (id, receiver)
    }

    /// Refused submissions of all protocols.
    #[must_use]
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Counts a submission that the engine has refused.
    fn refused(&self, refused: RefusedSubmission) {
        let RefusedSubmission { link, origin, source, destination, refusal } = refused;
        // A link that has gone is taken for one of ours; its submitter hears of nothing any more.
        let protocol = self.links.read().get(&link).map(|link| link.protocol).unwrap_or_default();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        self.refusals.record(origin, Refused::by_rule(at, protocol, (source, destination), refusal), 1);
    }

    /// Forgets a link: nothing more is delivered to it.
    pub fn remove(&self, link: LinkId) {
        self.links.write().remove(&link);
    }

    /// The rates of accounts, which all protocols share.
    #[must_use]
    pub fn rates(&self) -> &AccountRates {
        &self.rates
    }

    /// How many links there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.links.read().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.read().is_empty()
    }

    /// Brings durable commands to their links. Called from the core's commit thread; does not block.
    ///
    /// What is for a link that is gone is dropped: an answer has nobody to go to, and links see to it that no message is
    /// on its way to them when they leave. Commands that are not for links (load, look up, reroute) are given back.
    pub fn dispatch(&self, commands: Vec<Command>) -> Vec<Command> {
        let mut others = Vec::new();
        let mut batches: FxHashMap<LinkId, Vec<Delivery>> = FxHashMap::default();
        for command in commands {
            let (link, delivery) = match command {
                Command::Send { link, message, leg, taken, want_receipt, more, ticket } => {
                    (link, Delivery::Send { message, leg, taken, want_receipt, more, ticket })
                }
                Command::Answer { to, answer } => (to.link, Delivery::Answer { token: to.token, answer }),
                Command::Refused(refused) => {
                    self.refused(*refused);
                    continue;
                }
                Command::Ask { link, id, peer_id, message, leg } => {
                    (link, Delivery::Ask { id, peer_id, message, leg })
                }
                other => {
                    others.push(other);
                    continue;
                }
            };
            batches.entry(link).or_default().push(delivery);
        }
        if !batches.is_empty() {
            let links = self.links.read();
            for (link, batch) in batches {
                if let Some(link) = links.get(&link) {
                    // A closed channel is a link that is just leaving: as if it were gone.
                    let _ = link.deliveries.send(batch);
                }
            }
        }
        others
    }
}

/// Takes a door's link down without losing what is still on its way to it. The engine learns that the link takes nothing
/// more; what it sent before it knew comes first, then its answer to a question that has no other purpose (`barrier` is
/// the door's mark for it); what comes in between has certainly not been sent. Only then is the link down. `events` are
/// its last. Says whether the engine answered within `patience`; the link is down in any case.
pub async fn take_leave(
    core: &dyn Core,
    hub: &Hub,
    link: LinkId,
    barrier: u64,
    mut deliveries: Deliveries,
    mut events: Vec<Event>,
    patience: Duration,
) -> bool {
    let reply = ReplyTo { link, token: barrier };
    events.push(Event::Settle { id: MessageId(0), again: false, reply });
    core.push(events);
    let mut events = Vec::new();
    let wait = async {
        while let Some(batch) = deliveries.recv().await {
            let mut through = false;
            for delivery in batch {
                match delivery {
                    Delivery::Send { message, .. } => {
                        events.push(Event::Outcome { link, id: message.id, outcome: Outcome::NotSent });
                    }
                    Delivery::Answer { token, .. } => through |= token == barrier,
                    Delivery::Ask { .. } => {}
                }
            }
            if through {
                break;
            }
        }
    };
    let answered = tokio::time::timeout(patience, wait).await.is_ok();
    hub.remove(link);
    events.push(Event::LinkDown { link });
    core.push(events);
    answered
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{PeerId, Refusal};

    #[test]
    fn a_batch_for_each_link_in_order_and_the_rest_given_back() {
        let hub = Hub::new();
        let (one, mut first) = hub.add();
        let (two, mut second) = hub.add();
        assert_ne!(one, two);
        let answer = |link, token| Command::Answer { to: ReplyTo { link, token }, answer: Answer::Done };
        let rest = hub.dispatch(vec![
            answer(one, 1),
            answer(two, 2),
            Command::LookUp {
                origin: PeerId(1),
                id: MessageId(1),
                source: None,
                too_late: Some(Refusal::WrongState),
                to: ReplyTo { link: one, token: 9 },
            },
            answer(one, 3),
            answer(LinkId(99), 4),
        ]);
        assert_eq!(rest.len(), 1);
        let tokens = |batch: Vec<Delivery>| -> Vec<u64> {
            batch
                .iter()
                .map(|delivery| if let Delivery::Answer { token, .. } = delivery { *token } else { 0 })
                .collect()
        };
        assert_eq!(tokens(first.try_recv().unwrap()), [1, 3]);
        assert_eq!(tokens(second.try_recv().unwrap()), [2]);
        hub.remove(one);
        hub.dispatch(vec![answer(one, 5)]);
        assert!(first.try_recv().is_err());
        assert_eq!(hub.len(), 1);
    }
}

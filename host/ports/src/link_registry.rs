use crate::{AccountRegistry, LoginLimiter, PassOn, Protocol, RefusalLog, RefusalRecord};
use engine::{EngineAnswer, EngineCommand, RefusedSubmission};
use journal::LeaderLease;
use model::{Imsi, LinkId, Message, MessageId, PeerMessageId, SubmitTicket, Timestamp};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A command of the engine for one link: an [`EngineCommand`](engine::EngineCommand) without the link's id.
#[derive(Debug)]
pub enum LinkCommand {
    /// Submit this message to the peer.
    Send {
        /// The message.
        message: Arc<Message>,
        /// Index of the leg in the message's forward verdict.
        leg: u8,
        /// Segments that the peer already has.
        taken: u16,
        /// Whether to request a DLR.
        want_dlr: bool,
        /// Whether another message for the same subscriber waits (serial peers only).
        more: bool,
        /// The ticket of the submit attempt.
        ticket: SubmitTicket,
    },
    /// The answer to a request that the link passed on.
    Answer {
        /// The link's token for the request.
        token: u64,
        /// The answer.
        answer: EngineAnswer,
    },
    /// Query the state of a message at the peer.
    QueryPeer {
        /// Our message id.
        id: MessageId,
        /// The peer's message id.
        peer_id: PeerMessageId,
        /// The message, for its source address.
        message: Arc<Message>,
        /// Index of the leg.
        leg: u8,
    },
    /// A subscriber is reachable again.
    SubscriberReachable {
        /// The subscriber.
        imsi: Imsi,
    },
    /// The answer to [`engine::Event::Flush`]: all commands that the engine has sent before have arrived.
    Flushed,
}

/// Commands for one link, in the order of the engine's commands.
pub(crate) type LinkCommands = UnboundedReceiver<Vec<LinkCommand>>;

/// A live link.
#[derive(Debug)]
struct Registered {
    commands: UnboundedSender<Vec<LinkCommand>>,
    protocol: Protocol,
}

/// The registry of live links: dispatches the engine's commands to them, in one batch per link.
///
/// The channels are unbounded; the windows of the links bound their content.
#[derive(Debug, Default)]
pub struct LinkRegistry {
    next: AtomicU64,
    links: RwLock<FxHashMap<LinkId, Registered>>,
    accounts: AccountRegistry,
    refusals: RefusalLog,
    lease: Arc<LeaderLease>,
    pass_on: OnceLock<Arc<dyn PassOn>>,
}

impl LinkRegistry {
    /// Creates a registry without links.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a registry without links. `limiter` limits the wrong passwords of all interfaces; links write messages only
    /// while `lease` holds.
    #[must_use]
    pub fn with_limiter(limiter: Arc<LoginLimiter>, lease: Arc<LeaderLease>) -> Self {
        Self { accounts: AccountRegistry::new(limiter), lease, ..Self::default() }
    }

    /// Passes from now on to other partitions what belongs to them. Can be called once.
    pub fn set_pass_on(&self, pass_on: Arc<dyn PassOn>) {
        let _ = self.pass_on.set(pass_on);
    }

    /// The way to the other partitions; `None` without a cluster.
    #[must_use]
    pub fn pass_on(&self) -> Option<&Arc<dyn PassOn>> {
        self.pass_on.get()
    }

    /// The partition of this process.
    #[must_use]
    pub fn partition(&self) -> u8 {
        self.pass_on().map_or(0, |pass_on| pass_on.partition())
    }

    /// Until when links may write messages.
    pub(crate) fn lease(&self) -> &LeaderLease {
        &self.lease
    }

    /// Registers a link; see [`LinkHandle`](crate::LinkHandle). Returns its id, which is unique for the life of the
    /// process, and its commands.
    pub(crate) fn add(&self, protocol: Protocol) -> (LinkId, LinkCommands) {
        let id = LinkId(self.next.fetch_add(1, Ordering::Relaxed) + 1);
        let (commands, receiver) = unbounded_channel();
        self.links.write().insert(id, Registered { commands, protocol });
        (id, receiver)
    }

    /// The refused submissions of all protocols.
    #[must_use]
    pub fn refusals(&self) -> &RefusalLog {
        &self.refusals
    }

    /// Counts a submission that the engine has refused.
    fn record_refusal(&self, refused: RefusedSubmission) {
        let RefusedSubmission { link, origin, source, destination, refusal } = refused;
        // The protocol of a link that is gone is unknown. Its submitter gets no answer any more.
        let protocol = self.links.read().get(&link).map(|link| link.protocol).unwrap_or_default();
        let at = Timestamp::now();
        self.refusals.record(origin, RefusalRecord::new(at, protocol, (source, destination), refusal), 1);
    }

    /// Removes a link: it gets no more commands.
    pub(crate) fn remove(&self, link: LinkId) {
        self.links.write().remove(&link);
    }

    /// The accounts, with the limits that all protocols share.
    #[must_use]
    pub fn accounts(&self) -> &AccountRegistry {
        &self.accounts
    }

    /// The number of links.
    #[must_use]
    pub fn len(&self) -> usize {
        self.links.read().len()
    }

    /// Whether there are no links.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.read().is_empty()
    }

    /// Dispatches durable commands to their links. Called from the commit thread; does not block.
    ///
    /// Commands for a link that is gone are dropped: nobody waits for the answers, and a link reports the outcome of
    /// its messages before it closes. Commands that are not for links (load, look up, reroute) are returned.
    pub fn dispatch(&self, commands: Vec<EngineCommand>) -> Vec<EngineCommand> {
        let mut others = Vec::new();
        let mut batches: FxHashMap<LinkId, Vec<LinkCommand>> = FxHashMap::default();
        for command in commands {
            let (link, command) = match command {
                EngineCommand::Send { link, message, leg, taken, want_dlr, more, ticket } => {
                    (link, LinkCommand::Send { message, leg, taken, want_dlr, more, ticket })
                }
                EngineCommand::Answer { to, answer } => {
                    (to.link, LinkCommand::Answer { token: to.token, answer })
                }
                EngineCommand::Flushed { link } => (link, LinkCommand::Flushed),
                EngineCommand::SubscriberReachable { link, imsi } => {
                    (link, LinkCommand::SubscriberReachable { imsi })
                }
                EngineCommand::Refused(refused) => {
                    self.record_refusal(*refused);
                    continue;
                }
                EngineCommand::QueryPeer { link, id, peer_id, message, leg } => {
                    (link, LinkCommand::QueryPeer { id, peer_id, message, leg })
                }
                other => {
                    others.push(other);
                    continue;
                }
            };
            batches.entry(link).or_default().push(command);
        }
        if !batches.is_empty() {
            let links = self.links.read();
            for (link, batch) in batches {
                if let Some(link) = links.get(&link) {
                    // A closed channel belongs to a link that is closing; the batch is dropped as for a link that is
                    // gone.
                    let _ = link.commands.send(batch);
                }
            }
        }
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::ReplyTo;
    use model::{PeerId, Refusal};

    #[test]
    fn commands_are_dispatched_in_order_and_the_rest_is_returned() {
        let registry = LinkRegistry::new();
        let (one, mut first) = registry.add(Protocol::Smpp);
        let (two, mut second) = registry.add(Protocol::Http);
        assert_ne!(one, two);
        let answer =
            |link, token| EngineCommand::Answer { to: ReplyTo { link, token }, answer: EngineAnswer::Done };
        let rest = registry.dispatch(vec![
            answer(one, 1),
            answer(two, 2),
            EngineCommand::LookUp {
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
        let tokens = |batch: Vec<LinkCommand>| -> Vec<u64> {
            batch
                .iter()
                .map(|command| if let LinkCommand::Answer { token, .. } = command { *token } else { 0 })
                .collect()
        };
        assert_eq!(tokens(first.try_recv().unwrap()), [1, 3]);
        assert_eq!(tokens(second.try_recv().unwrap()), [2]);
        registry.remove(one);
        registry.dispatch(vec![answer(one, 5)]);
        assert!(first.try_recv().is_err());
        assert_eq!(registry.len(), 1);
    }
}

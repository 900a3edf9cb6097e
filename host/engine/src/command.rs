use crate::{Batch, ReplyTo};
use model::{
    AddressBytes, Attempt, Balance, LinkId, Message, MessageId, Order, PeerMessageId, PoolAnswer,
    PoolSummary, ReceiptState, Refusal, Settlement, Ticket, Timestamp,
};
use std::sync::Arc;

/// What [`crate::Engine`] wants done, and when: the commands leave after the batch is durable, not before.
#[derive(Debug, Default)]
pub struct Output {
    /// What is to be written, as one transaction.
    pub batch: Batch,
    /// What may leave once it is.
    pub commands: Vec<Command>,
}

impl Output {
    /// Whether there is nothing to write and nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.commands.is_empty()
    }
}

/// A submission that the engine has refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSubmission {
    /// The link that submitted it.
    pub link: LinkId,
    /// The account, or the peer that it came from.
    pub origin: model::PeerId,
    /// The sender.
    pub source: model::Address,
    /// The addressee.
    pub destination: model::Address,
    /// Why.
    pub refusal: Refusal,
}

/// Something to be done in the world.
#[derive(Debug)]
pub enum Command {
    /// Hand a message to a link. Every one is answered by exactly one [`crate::Event::Outcome`], or by the
    /// [`crate::Event::LinkDown`] of its link.
    ///
    /// A link that has told of a late positive answer for the message, after [`model::Outcome::Unanswered`], does not send it
    /// any more: it tells of that answer once more. The two may have crossed.
    Send {
        /// The link.
        link: LinkId,
        /// The message.
        message: Arc<Message>,
        /// Which of its legs (index into the forward verdict); 0 for receipts.
        leg: u8,
        /// Parts that the peer already has: begin with the one after these.
        taken: u16,
        /// Whether the peer is to be asked for a receipt.
        want_receipt: bool,
        /// Another message for the same subscriber is known to wait (serial peers only): the way to the handset may stay
        /// open.
        more: bool,
        /// The hand-over's name.
        ticket: Ticket,
    },
    /// Answer a request.
    Answer {
        /// Whom.
        to: ReplyTo,
        /// What.
        answer: Answer,
    },
    /// A submission was refused. It comes before the answer, and is for whoever counts refusals.
    Refused(Box<RefusedSubmission>),
    /// Ask the peer what became of a message (query_sm). Answered by [`crate::Event::Told`].
    Ask {
        /// A link of the peer's.
        link: LinkId,
        /// Our id.
        id: MessageId,
        /// The peer's id.
        peer_id: PeerMessageId,
        /// The message, for the source address that a query must carry.
        message: Arc<Message>,
        /// Its leg.
        leg: u8,
    },
    /// Read messages that are no longer in memory; each is answered by [`crate::Event::Loaded`].
    Load {
        /// Which.
        ids: Vec<MessageId>,
    },
    /// Ask the routing chain again. Answered by [`crate::Event::Rerouted`].
    Reroute {
        /// The message.
        message: Arc<Message>,
    },
    /// Find the subscriber behind a number. Answered by [`crate::Event::Resolved`]; there is one question at a time for a
    /// number, however many messages wait.
    Resolve {
        /// The number as the messages have it, a leading plus sign left out.
        msisdn: AddressBytes,
    },
    /// Ask the delivery policy what follows a failed attempt. Answered by [`crate::Event::Decided`].
    Decide {
        /// The message.
        message: Arc<Message>,
        /// The attempt.
        attempt: Attempt,
    },
    /// Tell the biller how charges ended: at most 500 of them, by growing serial number, one batch at a time. Answered by
    /// [`crate::Event::Settled`].
    Settle {
        /// The ends.
        settlements: Vec<Settlement>,
    },
    /// Look for a message that is not in memory among the finished ones and answer the query from there.
    LookUp {
        /// Whose query it is; others' messages are unknown to it.
        origin: model::PeerId,
        /// Which message.
        id: MessageId,
        /// The source that must match, unless `None`.
        source: Option<model::Address>,
        /// What to answer if it is found: `None` for a query (answer its state), or a refusal for cancel and
        /// replace, which come too late.
        too_late: Option<Refusal>,
        /// Whom to answer.
        to: ReplyTo,
    },
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Accepted, and on disk.
    Accepted(MessageId),
    /// submit_multi: one result per message, in their order; accepted ones are on disk.
    AcceptedMany(Vec<Result<MessageId, Refusal>>),
    /// Not accepted, or not possible.
    Refused(Refusal),
    /// Cancelled or replaced, and on disk.
    Done,
    /// The state of a message.
    State(QueriedState),
    /// The receipt is recorded (or is parked, being unknown as yet).
    ReceiptTaken,
    /// What became of a balance operation.
    Ledger(LedgerAnswer),
    /// What became of a request to a number pool.
    Pool(PoolAnswer),
    /// All number pools, by name.
    Pools(Vec<PoolSummary>),
    /// An order as it stands now.
    Order(Box<Order>),
    /// There is no such order, or there cannot be.
    OrderRefused(OrderRefusal),
}

/// Why an order is not given, or not withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderRefusal {
    /// Nothing says which messages.
    #[error("it says nothing about which messages: name a peer, an account, a prefix or an age")]
    NoScope,
    /// Each order costs a look at every message.
    #[error("{most} orders have a say already: withdraw one first")]
    TooMany {
        /// How many there may be.
        most: usize,
    },
    /// Draining is for a peer as a whole.
    #[error("a peer is drained as a whole: name the peer and nothing else")]
    OnlyWholePeers,
    /// From where, or to where, is not said; or it is said where it means nothing.
    #[error(
        "where messages go is said by the peer that they wait for and by `to`, for rebind and for nothing else"
    )]
    NoWay,
    /// A peer is not there.
    #[error("the peer is not in the configuration")]
    UnknownPeer,
    /// Messages would be sent back, or on and on.
    #[error(
        "messages go from or to that peer by another order already, or would go in a circle: withdraw that order first"
    )]
    Circle,
    /// An account, an SMSC and a core network take different messages.
    #[error(
        "the two peers are of different kinds: an account, a gateway and a core network cannot stand in for each other"
    )]
    OtherKind,
    /// There is no such order.
    #[error("there is no such order")]
    Unknown,
    /// It is done, or its messages are being ended.
    #[error("it is too late: the order is done with, or its messages are being ended")]
    TooLate,
}

/// What became of a balance operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerAnswer {
    /// Done, and on disk.
    Done {
        /// The account afterwards.
        balance: Balance,
    },
    /// The same operation was done before under this key; nothing was done now.
    Repeated {
        /// The account as it is now.
        balance: Balance,
    },
    /// The key was used before, for another operation.
    KeyReused,
    /// It would take the account below its limit, or beyond what numbers can hold.
    WouldExceed {
        /// The account, unchanged.
        balance: Balance,
    },
    /// There is no such account: setting its limit opens it.
    UnknownAccount,
    /// The key or the account's name is empty or longer than 64 octets.
    BadName,
}

/// What query_sm is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueriedState {
    /// The message.
    pub id: MessageId,
    /// Its state.
    pub state: ReceiptState,
    /// When it ended, if it did.
    pub final_at: Option<Timestamp>,
    /// The network's error code, 0 where there is none.
    pub error: u8,
}

use crate::ReplyTo;
use model::{
    AcceptedSubmission, AddressBytes, Attempt, Balance, Batch, DlrState, Imsi, LinkId, LookupNumber, Message,
    MessageId, PeerMessageId, PeerObservation, PoolAnswer, PoolSummary, QueueAction, ReceiptEvent, Refusal,
    Settlement, SubmitTicket, Timestamp,
};
use std::sync::Arc;

/// The output of [`crate::Engine`]. The commands leave only after the batch is durable.
#[derive(Debug, Default)]
pub struct Output {
    /// The writes, as one transaction.
    pub batch: Batch,
    /// The commands; they leave after the batch.
    pub commands: Vec<EngineCommand>,
    /// Observations of peers, in order. They may be discarded.
    pub observations: Vec<PeerObservation>,
}

impl Output {
    /// Whether there is nothing to write and no command.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.commands.is_empty()
    }
}

/// A refused submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSubmission {
    /// The link that submitted it.
    pub link: LinkId,
    /// The account or the peer that submitted it.
    pub origin: model::PeerId,
    /// The source address.
    pub source: model::Address,
    /// The destination address.
    pub destination: model::Address,
    /// The reason.
    pub refusal: Refusal,
}

/// A command to the owner.
#[derive(Debug)]
pub enum EngineCommand {
    /// Send a message on a link. Each is answered by exactly one [`crate::Event::Outcome`], or by the
    /// [`crate::Event::LinkDown`] of its link.
    ///
    /// A link that reported a late positive answer for the message, after [`model::Outcome::Unanswered`], does not
    /// send it again but repeats that outcome: the two may have crossed.
    Send {
        /// The link.
        link: LinkId,
        /// The message.
        message: Arc<Message>,
        /// Index of the leg in the forward verdict; 0 for DLRs.
        leg: u8,
        /// Segments that the peer already has: sending starts with the next one.
        taken: u16,
        /// Request a DLR from the peer.
        want_dlr: bool,
        /// Another message to the same subscriber waits (serial peers only): the connection to the handset may stay
        /// open.
        more: bool,
        /// The ticket of the submit attempt.
        ticket: SubmitTicket,
    },
    /// Answer a request.
    Answer {
        /// The recipient of the answer.
        to: ReplyTo,
        /// The answer.
        answer: EngineAnswer,
    },
    /// The answer to [`crate::Event::Flush`]: all earlier commands for the link have left the engine.
    Flushed {
        /// The link.
        link: LinkId,
    },
    /// A subscriber of a core network is reachable again. For the account of a partition whose messages wait for this.
    SubscriberReachable {
        /// A link of the account.
        link: LinkId,
        /// The subscriber.
        imsi: Imsi,
    },
    /// A submission was refused. For counts; it precedes the answer.
    Refused(Box<RefusedSubmission>),
    /// Query a message's state at the peer (query_sm). Answered by [`crate::Event::QueryResult`].
    QueryPeer {
        /// A link of the peer.
        link: LinkId,
        /// The appliance's message id.
        id: MessageId,
        /// The peer's id.
        peer_id: PeerMessageId,
        /// The message; a query must carry its source address.
        message: Arc<Message>,
        /// Its leg.
        leg: u8,
    },
    /// Read messages that are no longer in memory. Each is answered by [`crate::Event::Loaded`].
    Load {
        /// The messages.
        ids: Vec<MessageId>,
    },
    /// Run the routing chain again. Answered by [`crate::Event::Rerouted`].
    Reroute {
        /// The message.
        message: Arc<Message>,
    },
    /// Look up a number. Answered by [`crate::Event::LookedUp`]. At most one lookup of a number is pending, however many
    /// messages wait.
    AskLookup {
        /// The number.
        number: LookupNumber,
    },
    /// Find the subscriber behind a number. Answered by [`crate::Event::Resolved`]. At most one query per number is
    /// pending, however many messages wait.
    Resolve {
        /// The number of the messages, without leading plus signs.
        msisdn: AddressBytes,
    },
    /// Ask the delivery policy for the step after a failed attempt. Answered by [`crate::Event::Decided`].
    Decide {
        /// The message.
        message: Arc<Message>,
        /// The attempt.
        attempt: Attempt,
    },
    /// Ask the receipt policy for the step after a DLR, or after its absence. Answered by [`crate::Event::ReceiptDecided`].
    AskReceipt {
        /// The message.
        message: Arc<Message>,
        /// The number of the question.
        question: u64,
        /// The submission.
        submission: AcceptedSubmission,
        /// The event.
        event: ReceiptEvent,
    },
    /// Notify the biller of settlements: at most 500, by ascending serial number, one notification at a time.
    /// Answered by [`crate::Event::BillerNotified`].
    NotifyBiller {
        /// The settlements.
        settlements: Vec<Settlement>,
    },
    /// Find a message that is not in memory among the finished messages, and answer the request from its record.
    LookUp {
        /// The submitter; other accounts' messages are unknown to it.
        origin: model::PeerId,
        /// The message.
        id: MessageId,
        /// The source that must match, unless `None`.
        source: Option<model::Address>,
        /// The answer if the message is found: `None` for a query (its state), a refusal for cancel and replace,
        /// which come too late.
        too_late: Option<Refusal>,
        /// The recipient of the answer.
        to: ReplyTo,
    },
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineAnswer {
    /// Accepted and durable.
    Accepted(MessageId),
    /// One result per message, in their order; accepted messages are durable.
    AcceptedMany(Vec<Result<MessageId, Refusal>>),
    /// Not accepted, or not possible.
    Refused(Refusal),
    /// Done and durable.
    Done,
    /// The state of a message.
    State(QueriedState),
    /// The DLR is recorded, perhaps as an orphan DLR.
    DlrRecorded,
    /// The result of a balance operation.
    Ledger(LedgerAnswer),
    /// The result of a request to a number pool.
    Pool(PoolAnswer),
    /// All number pools, by name.
    Pools(Vec<PoolSummary>),
    /// The queue action as it stands now.
    QueueAction(Box<QueueAction>),
    /// The queue action does not exist, or is not possible.
    QueueActionRefused(QueueActionRefusal),
}

/// The reason why a queue action cannot be created or withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueueActionRefusal {
    /// The scope is empty.
    #[error("the scope is empty: name a peer, an account, a prefix or an age")]
    NoScope,
    /// Too many actions are active: each costs a check per message.
    #[error("{most} queue actions are active already: withdraw one first")]
    TooMany {
        /// The limit.
        most: usize,
    },
    /// A drain applies to a whole peer.
    #[error("a drain applies to a whole peer: name the peer and nothing else")]
    NeedsWholePeer,
    /// A reroute lacks its source or its target, or another kind has a target.
    #[error("a reroute needs the peer in its scope and the target in `to`; other queue actions take no `to`")]
    BadTarget,
    /// The peer is not in the configuration.
    #[error("the peer is not in the configuration")]
    UnknownPeer,
    /// The reroute would send messages back, or in a circle.
    #[error(
        "another queue action reroutes messages from or to that peer, or messages would go in a circle: withdraw it first"
    )]
    Cycle,
    /// An account, an SMSC and a core network take different messages.
    #[error(
        "the two peers are of different kinds: an account, a gateway and a core network cannot replace each other"
    )]
    DifferentKinds,
    /// The queue action does not exist.
    #[error("there is no such queue action")]
    Unknown,
    /// The action is finished, or its messages are already ending.
    #[error("it is too late: the queue action is finished, or its messages are being cancelled")]
    TooLate,
}

/// The result of a balance operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerAnswer {
    /// Done and durable.
    Done {
        /// The account afterwards.
        balance: Balance,
    },
    /// The operation was done before under this key; nothing changed now.
    Repeated {
        /// The account as it is now.
        balance: Balance,
    },
    /// The key was used before, for another operation.
    KeyReused,
    /// The balance would fall below the credit limit, or overflow.
    WouldExceed {
        /// The account, unchanged.
        balance: Balance,
    },
    /// The account does not exist: setting its limit opens it.
    UnknownAccount,
    /// The key or the account name is empty or longer than 64 octets.
    BadName,
}

/// The answer to query_sm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueriedState {
    /// The message.
    pub id: MessageId,
    /// The state.
    pub state: DlrState,
    /// The time of its final state, if it has one.
    pub final_at: Option<Timestamp>,
    /// The network's error code; 0 if there is none.
    pub error: u8,
}

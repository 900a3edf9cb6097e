use crate::{Hand, OrderWish, PeerSettings};
use model::{
    Address, AddressBytes, Final, Imsi, LedgerOperation, LinkId, Message, MessageId, Next, OrderId, Outcome,
    PeerId, PoolName, PoolRequest, Receipt, ReceiptRequest, Resolution, Routed, SubmissionKey, Text,
    Timestamp,
};
use std::sync::Arc;

/// Where an answer goes: a link, and the link's own mark for the request (an SMPP sequence number, for instance).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReplyTo {
    /// The link that asked.
    pub link: LinkId,
    /// The link's mark for the request; the engine only hands it back.
    pub token: u64,
}

/// Something that happened. The only way to change the state of a message.
#[derive(Debug)]
pub enum Event {
    /// A peer was added to the configuration, or its settings changed.
    Peer(PeerSettings),
    /// A peer is not in the configuration any more. What waits for it stays, until the peer is back or an admin sees to it; its
    /// links go by themselves.
    PeerGone(PeerId),
    /// A link is bound and takes messages for `peer`: at most `window` unanswered at a time.
    LinkUp {
        /// The link.
        link: LinkId,
        /// Whose it is.
        peer: PeerId,
        /// How many messages may be unanswered on it; at least 1.
        window: u32,
    },
    /// A link is gone. What was sent on it and not reported back by an [`Event::Outcome`] becomes uncertain.
    LinkDown {
        /// The link.
        link: LinkId,
    },
    /// A link that lives takes nothing new (it is unbinding, or its window was closed by the peer).
    LinkPaused {
        /// The link.
        link: LinkId,
    },
    /// A submission, judged and routed; answered by [`crate::Answer::Accepted`] or a refusal once it is durable.
    Accept {
        /// The message; its id and time of acceptance are still to be set.
        message: Box<Message>,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// One submission to several destinations (submit_multi): accepted or refused one by one, answered once by
    /// [`crate::Answer::AcceptedMany`], ids counting up in the order of the messages.
    ///
    /// With `shared_id` the id of the first accepted message stands for all of them ([`Message::submission`]): in queries,
    /// cancellations and receipts. At most [`model::SUBMISSION_IDS`] messages can share an id; more keep ids of their own.
    ///
    /// With a key it may be repeated: as long as the key is remembered ([`crate::Settings::key_retention`]) the first
    /// answer is given again and nothing is accepted twice. A submission of which nothing was accepted is not remembered.
    AcceptMany {
        /// The messages, all of one origin.
        messages: Vec<Message>,
        /// One id stands for all.
        shared_id: bool,
        /// The submitter's own name for the submission.
        key: Option<SubmissionKey>,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// How the hand-over of a message on a link ended. May come after [`Outcome::Unanswered`] for the same message and
    /// link, when the answer was late; it then settles the doubt.
    Outcome {
        /// The link it was sent on.
        link: LinkId,
        /// The message.
        id: MessageId,
        /// How it ended.
        outcome: Outcome,
    },
    /// A peer sent a receipt. Answered by [`crate::Answer::ReceiptTaken`] once what follows from it is durable.
    Receipt {
        /// The peer that sent it.
        peer: PeerId,
        /// What it says.
        receipt: Receipt,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// The answer to [`crate::Command::Ask`]: the state that the peer told, `None` when it does not know the message.
    Told {
        /// The message.
        id: MessageId,
        /// The peer's word, in the shape of a receipt.
        receipt: Option<Receipt>,
    },
    /// The submitter asks for a message's state (query_sm). Answered by [`crate::Answer::State`] or a refusal. The id of a
    /// submission to several destinations asks for all of them together.
    Query {
        /// Who asks; others' messages are unknown to it.
        origin: PeerId,
        /// Which message.
        id: MessageId,
        /// The source that the submission carried; must match. `None` skips the check.
        source: Option<Address>,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// The submitter cancels one message (cancel_sm with an id). Answered by [`crate::Answer::Done`] or a refusal. The id of
    /// a submission to several destinations cancels every message of it that can still be cancelled; `Done` means that at
    /// least one was.
    Cancel {
        /// Who asks; others' messages are unknown to it.
        origin: PeerId,
        /// Which message.
        id: MessageId,
        /// The source that the submission carried; must match. `None` skips the check.
        source: Option<Address>,
        /// Of a submission to several destinations, only the messages to this one. Ignored for a message that was submitted
        /// alone.
        destination: Option<Address>,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// The submitter cancels all its waiting messages from a source to a destination (cancel_sm without an id).
    CancelMatching {
        /// Who asks.
        origin: PeerId,
        /// Source of the submissions.
        source: Address,
        /// Destination of the submissions.
        destination: Address,
        /// Only this service type; any when empty.
        service_type: bytes::Bytes,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// The submitter replaces the text of a waiting message (replace_sm). Answered by [`crate::Answer::Done`] or a refusal;
    /// the id of a submission to several destinations is refused with [`model::Refusal::WrongState`].
    Replace {
        /// Who asks; others' messages are unknown to it.
        origin: PeerId,
        /// Which message.
        id: MessageId,
        /// The source that the submission carried; must match.
        source: Address,
        /// The new octets; data coding and UDHI stay as they were.
        text: Text,
        /// A new schedule, where given.
        scheduled: Option<Timestamp>,
        /// A new end of validity, where given.
        expires_at: Option<Timestamp>,
        /// Receipts wanted from now on.
        receipts: ReceiptRequest,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// The answer to [`crate::Command::Load`]; `None` when the store has no such message.
    Loaded {
        /// The message asked for.
        id: MessageId,
        /// Its content.
        message: Option<Arc<Message>>,
    },
    /// The answer to [`crate::Command::Reroute`].
    Rerouted {
        /// The message.
        id: MessageId,
        /// The new verdict.
        routed: Routed,
    },
    /// The answer to [`crate::Command::Resolve`].
    Resolved {
        /// The number that was asked about.
        msisdn: AddressBytes,
        /// What the resolver knows.
        resolution: Resolution,
    },
    /// The answer to [`crate::Command::Decide`].
    Decided {
        /// The message.
        id: MessageId,
        /// The number of the attempt that was asked about; a later one is not decided by it.
        attempt: u16,
        /// What is to follow; `None`: the policy has failed or is not there any more, and the built-in schedule decides.
        next: Option<Next>,
    },
    /// A subscriber can be reached again: what waits for that is tried at once.
    Alert {
        /// The subscriber's number; a leading plus sign makes no difference.
        msisdn: AddressBytes,
    },
    /// As [`Event::Alert`], by IMSI. What is parked at serial peers is tried as well, whatever it waits for; an attempt
    /// that is under way is tried again at once if it fails.
    Reachable {
        /// The subscriber.
        imsi: Imsi,
    },
    /// A number was seen to be this subscriber's: other answers about it hold no longer, and what waits for its subscriber of
    /// before is tried at once.
    Numbered {
        /// The number; a leading plus sign makes no difference.
        msisdn: AddressBytes,
        /// Whose it is.
        imsi: Imsi,
        /// Whose it was, where that is known.
        before: Option<Imsi>,
    },
    /// Which plugins are bound from now on. Messages that wait for a resolver that is no longer there fail on that leg.
    Hooks {
        /// A resolver.
        resolver: bool,
        /// A delivery policy.
        delivery_policy: bool,
        /// A biller.
        biller: bool,
    },
    /// Another resolver has taken the place of the one before. What that one was asked it still answers; where it wanted
    /// time, the new one is asked at once.
    ResolverExchanged,
    /// A change of a ledger account by hand. Answered by [`crate::Answer::Ledger`] once it is durable.
    Ledger {
        /// What is to be done.
        operation: LedgerOperation,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// The answer to [`crate::Command::Settle`].
    Settled {
        /// The last serial number of the batch.
        upto: u64,
        /// The biller has taken it; otherwise it is told again later.
        ok: bool,
    },
    /// Free disk space went below (or came back above) the watermark: while low, submissions are refused and
    /// delivery goes on.
    Disk {
        /// Below the watermark.
        low: bool,
    },
    /// Whether submissions are taken at all: while not, they are refused as by a full queue, and delivery goes on.
    Admission {
        /// They are.
        open: bool,
    },
    /// An admin settles what is uncertain: send it again, or give it up.
    Settle {
        /// The message.
        id: MessageId,
        /// Send it again; otherwise it ends as unknown.
        again: bool,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// An admin wants something done with many messages. Answered by [`crate::Answer::Order`] once it is durable, or
    /// by [`crate::Answer::OrderRefused`].
    Order {
        /// What.
        wish: Box<OrderWish>,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// An admin withdraws an order. Answered as [`Event::Order`].
    UndoOrder {
        /// Which.
        id: OrderId,
        /// Who.
        by: Arc<str>,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// An admin does something with one message. Answered by [`crate::Answer::Done`] or a refusal.
    ByHand {
        /// Which.
        id: MessageId,
        /// What.
        hand: Hand,
        /// Who.
        by: Arc<str>,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// A subscriber tells a sender to stop, or to go on. Answered by [`crate::Answer::Done`] where anybody waits.
    Consent {
        /// The sender's number or name, as the subscriber addressed it.
        sender: AddressBytes,
        /// The subscriber's number.
        subscriber: AddressBytes,
        /// Stop; otherwise go on.
        stop: bool,
        /// Who is to be told.
        reply: Option<ReplyTo>,
    },
    /// Finished messages are safe in the archive and may leave the store. Answered by [`crate::Answer::Done`] once they
    /// have.
    Archived {
        /// Which.
        ids: Vec<MessageId>,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// The receipt of a finished message is to be made once more. Answered by [`crate::Answer::Done`], or refused where
    /// the origin takes no receipts or its queue is full.
    ReportAgain {
        /// The message.
        message: Box<Message>,
        /// How it ended.
        ended: Box<Final>,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// Something is wanted of a number pool. Answered by [`crate::Answer::Pool`]; reading too is answered only when what it
    /// tells is durable, and in its turn.
    Pool {
        /// Which pool.
        pool: PoolName,
        /// What is wanted.
        request: PoolRequest,
        /// Who wants it: stands in the pool's journal.
        by: Arc<str>,
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// All number pools, by name. Answered by [`crate::Answer::Pools`].
    Pools {
        /// Who is to be told.
        reply: ReplyTo,
    },
    /// Shutdown has begun: nothing new is accepted or dispatched; outcomes still count.
    Drain,
}

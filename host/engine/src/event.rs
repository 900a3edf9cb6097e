use crate::settings::{PaceSettings, PeerSettings};
use model::{
    Address, AddressBytes, CallRecord, ContentErasure, DeliveryDecision, Dlr, DlrRequest, FinalRecord, Hook,
    IdempotencyKey, Imsi, LedgerOperation, LinkId, Lookup, LookupNumber, Message, MessageId, Notice, Outcome,
    PeerId, PoolName, PoolRequest, QueueActionId, QueueActionKind, QueueActionScope, ReceiptDecision,
    Resolution, RoutingDecision, Text, Timestamp,
};
use std::sync::Arc;
use std::time::Duration;

/// The address of an answer: a link, and the link's own token for the request (an SMPP sequence number, for
/// instance).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReplyTo {
    /// The link that sent the request.
    pub link: LinkId,
    /// The link's token for the request; the engine returns it unchanged.
    pub token: u64,
}

/// An action on one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminAction {
    /// Sends an uncertain message again.
    SendAgain,
    /// Ends an uncertain message as unknown.
    GiveUp,
    /// Cancels a waiting message.
    Cancel,
    /// Retries a message that waits for its next attempt or routing.
    Retry,
    /// Releases a message from quarantine: it is routed, and not screened again.
    Release,
    /// Purges a message from quarantine: it ends as rejected.
    Purge,
}

/// A new queue action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewQueueAction {
    /// The kind of action.
    pub kind: QueueActionKind,
    /// The messages.
    pub scope: QueueActionScope,
    /// The target, for [`QueueActionKind::Reroute`].
    pub to: Option<PeerId>,
    /// The admin.
    pub by: Arc<str>,
    /// The reason; may be empty.
    pub reason: Arc<str>,
    /// The undo window, for kinds that cancel messages; at most a day.
    pub undo_within: Duration,
}

/// An event: the only way to change the state of a message.
#[derive(Debug)]
pub enum Event {
    /// A peer was added to the configuration, or its settings changed.
    Peer(PeerSettings),
    /// The pace buckets and send windows of the configuration; before the peers that name them.
    Pace(PaceSettings),
    /// A notice for event sinks: it is written to the journal, and changes no state.
    Notice(Notice),
    /// A peer was removed from the configuration. Its waiting messages stay until the peer returns or an admin acts;
    /// its links close separately.
    PeerRemoved(PeerId),
    /// A link is bound and takes messages for `peer`.
    LinkUp {
        /// The link.
        link: LinkId,
        /// Its peer.
        peer: PeerId,
        /// Maximum number of unanswered messages on the link; at least 1.
        window: u32,
    },
    /// A link is down. Messages sent on it without an [`Event::Outcome`] become uncertain.
    LinkDown {
        /// The link.
        link: LinkId,
    },
    /// A live link takes no new messages: it is unbinding, or the peer closed its window.
    LinkPaused {
        /// The link.
        link: LinkId,
    },
    /// A link waits for the commands that are on their way to it. Answered by [`crate::EngineCommand::Flushed`], after
    /// all commands that earlier events have caused.
    Flush {
        /// The link.
        link: LinkId,
    },
    /// A routed submission. Answered by [`crate::EngineAnswer::Accepted`] or a refusal once that is durable.
    Accept {
        /// The message; the engine sets its id and its time of acceptance.
        message: Box<Message>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// A submission of several messages, for instance submit_multi. The engine accepts or refuses each message and
    /// answers once, with [`crate::EngineAnswer::AcceptedMany`]. Ids ascend in the order of the messages.
    ///
    /// With `shared_id`, the id of the first accepted message refers to all accepted messages ([`Message::submission`]) in
    /// queries, cancellations and DLRs. At most [`model::SUBMISSION_IDS`] messages can share an id; in a larger submission
    /// each keeps its own.
    ///
    /// With a key, the submission may be repeated: within [`crate::Settings::idempotency_key_retention`] the engine
    /// repeats the first answer and accepts nothing twice. If no message was accepted, the key is not stored.
    AcceptMany {
        /// The messages, all of one origin.
        messages: Vec<Message>,
        /// One id refers to all messages.
        shared_id: bool,
        /// The submission's idempotency key.
        key: Option<IdempotencyKey>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// The outcome of a submit attempt. A late one may follow [`Outcome::Unanswered`] for the same message and link;
    /// the message is then no longer uncertain.
    Outcome {
        /// The link of the attempt.
        link: LinkId,
        /// The message.
        id: MessageId,
        /// The outcome.
        outcome: Outcome,
    },
    /// The outcome of a submit attempt at a remote peer ([`PeerSettings::remote`]). The home reports it until it is confirmed, so it
    /// can come more than once, and late; it changes nothing if the message has had another attempt or outcome since.
    AttemptOutcome {
        /// The message.
        id: MessageId,
        /// The attempt number of the ticket.
        attempt: u16,
        /// The outcome.
        outcome: Outcome,
    },
    /// A peer sent a DLR. Answered by [`crate::EngineAnswer::DlrRecorded`] once its consequences are durable.
    Dlr {
        /// The peer that sent it.
        peer: PeerId,
        /// The DLR.
        dlr: Dlr,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// The result of [`crate::EngineCommand::QueryPeer`].
    QueryResult {
        /// The message.
        id: MessageId,
        /// The state at the peer, as a DLR; `None` if the peer does not know the message.
        dlr: Option<Dlr>,
    },
    /// The submitter queries a message's state (query_sm). Answered by [`crate::EngineAnswer::State`] or a refusal.
    /// The id of a submission to several destinations queries all its messages together.
    Query {
        /// The submitter; other accounts' messages are unknown to it.
        origin: PeerId,
        /// The message.
        id: MessageId,
        /// The source of the submission; must match. `None` skips the check.
        source: Option<Address>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// The submitter cancels one message (cancel_sm with an id). Answered by [`crate::EngineAnswer::Done`] or a
    /// refusal. The id of a submission to several destinations cancels every message of it that can still be
    /// cancelled; `Done` means that at least one was.
    Cancel {
        /// The submitter; other accounts' messages are unknown to it.
        origin: PeerId,
        /// The message.
        id: MessageId,
        /// The source of the submission; must match. `None` skips the check.
        source: Option<Address>,
        /// For a submission to several destinations: cancels only the messages to this destination. Ignored for a message
        /// that was submitted alone.
        destination: Option<Address>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// The submitter cancels all its waiting messages from a source to a destination (cancel_sm without an id).
    CancelMatching {
        /// The submitter.
        origin: PeerId,
        /// The source of the submissions.
        source: Address,
        /// The destination of the submissions.
        destination: Address,
        /// Only this service type; any when empty.
        service_type: bytes::Bytes,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// The submitter replaces the text of a waiting message (replace_sm). Answered by [`crate::EngineAnswer::Done`]
    /// or a refusal; the id of a submission to several destinations is refused with [`model::Refusal::WrongState`].
    Replace {
        /// The submitter; other accounts' messages are unknown to it.
        origin: PeerId,
        /// The message.
        id: MessageId,
        /// The source of the submission; must match.
        source: Address,
        /// The new octets; data coding and UDHI do not change.
        text: Text,
        /// The new schedule, if any.
        scheduled: Option<Timestamp>,
        /// The new end of validity, if any.
        expires_at: Option<Timestamp>,
        /// The DLRs requested from now on.
        dlr_request: DlrRequest,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// The result of [`crate::EngineCommand::Load`].
    Loaded {
        /// The message.
        id: MessageId,
        /// The content; `None` if the store has no such message.
        message: Option<Arc<Message>>,
    },
    /// The result of [`crate::EngineCommand::Reroute`].
    Rerouted {
        /// The message.
        id: MessageId,
        /// The new routing decision.
        routed: RoutingDecision,
        /// The new text of the message, if a screen replaced it.
        text: Option<Text>,
    },
    /// The result of [`crate::EngineCommand::AskLookup`].
    LookedUp {
        /// The number that was looked up.
        number: LookupNumber,
        /// The answer. After a failure the number is looked up again while messages wait for it.
        lookup: Arc<Lookup>,
    },
    /// The result of [`crate::EngineCommand::Resolve`].
    Resolved {
        /// The number of the query.
        msisdn: AddressBytes,
        /// The resolver's answer.
        resolution: Resolution,
    },
    /// The result of [`crate::EngineCommand::Decide`].
    Decided {
        /// The message.
        id: MessageId,
        /// The attempt of the question; the decision does not apply to a later attempt.
        attempt: u16,
        /// The decision; `None` if the policy failed or is no longer bound: the built-in schedule then applies.
        next: Option<DeliveryDecision>,
    },
    /// The result of [`crate::EngineCommand::AskReceipt`].
    ReceiptDecided {
        /// The message.
        id: MessageId,
        /// The number of the question.
        question: u64,
        /// The decision; `None` if the plugin failed or is no longer bound, which counts as accept.
        decision: Option<ReceiptDecision>,
    },
    /// A plugin was called for a message, and the call is recorded for replays. It precedes the event that results from the
    /// call, and becomes durable with it.
    CallRecorded {
        /// The message.
        id: MessageId,
        /// The hook: receipt or peer.
        hook: Hook,
        /// The record, as stored in the trace.
        record: CallRecord,
    },
    /// An alert by MSISDN: the subscriber is reachable again. Messages that wait for it are retried at once.
    Alert {
        /// The subscriber's number; a leading plus sign makes no difference.
        msisdn: AddressBytes,
    },
    /// An alert by IMSI. It also retries messages in back-off at serial peers, and an attempt under way is retried at
    /// once if it fails. Partitions whose messages are for the core network receive it, too.
    SubscriberReachable {
        /// The core network.
        network: PeerId,
        /// The subscriber.
        imsi: Imsi,
    },
    /// The network assigned a number to this subscriber. Other cached answers about the number are dropped, and
    /// messages that wait for the previous subscriber are retried at once.
    SubscriberLearned {
        /// The number; a leading plus sign makes no difference.
        msisdn: AddressBytes,
        /// The subscriber.
        imsi: Imsi,
        /// The previous subscriber, if known.
        before: Option<Imsi>,
    },
    /// The set of bound plugins changed. Messages that wait for an unbound resolver fail on that leg.
    HooksChanged {
        /// A resolver is bound.
        resolver: bool,
        /// A delivery policy is bound.
        delivery_policy: bool,
        /// A receipt policy is bound.
        receipt: bool,
        /// A biller is bound.
        biller: bool,
    },
    /// Another resolver replaced the previous one. The previous one still answers its pending queries; queries that
    /// it deferred go to the new one at once.
    ResolverReplaced,
    /// A balance operation by an admin or a billing system. Answered by [`crate::EngineAnswer::Ledger`] once it is
    /// durable.
    Ledger {
        /// The operation.
        operation: LedgerOperation,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// The result of [`crate::EngineCommand::NotifyBiller`].
    BillerNotified {
        /// The last serial number of the notification.
        upto: u64,
        /// The biller accepted it; otherwise it is repeated later.
        ok: bool,
    },
    /// Free disk space fell below the watermark or rose above it. While it is low, submissions are refused and
    /// delivery continues.
    DiskSpace {
        /// Free space is below the watermark.
        low: bool,
    },
    /// Admission was opened or closed. While it is closed, submissions are refused as with a full queue, and delivery
    /// continues.
    Admission {
        /// Submissions are accepted.
        open: bool,
    },
    /// An admin settles an uncertain message.
    SettleUncertain {
        /// The message.
        id: MessageId,
        /// Send it again; otherwise it ends as unknown.
        again: bool,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// An admin creates a queue action. Answered by [`crate::EngineAnswer::QueueAction`] once it is durable, or by
    /// [`crate::EngineAnswer::QueueActionRefused`].
    QueueAction {
        /// The request.
        request: Box<NewQueueAction>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// An admin withdraws a queue action. Answered as [`Event::QueueAction`].
    UndoQueueAction {
        /// The queue action.
        id: QueueActionId,
        /// The admin.
        by: Arc<str>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// An admin acts on one message. Answered by [`crate::EngineAnswer::Done`] or a refusal.
    AdminAction {
        /// The message.
        id: MessageId,
        /// The action.
        action: AdminAction,
        /// The admin.
        by: Arc<str>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// A subscriber opts out of a sender, or in again. Answered by [`crate::EngineAnswer::Done`] if `reply` is set.
    OptOut {
        /// The sender's number or name, as the subscriber addressed it.
        sender: AddressBytes,
        /// The subscriber's number.
        subscriber: AddressBytes,
        /// Opts out; otherwise opts in again.
        stop: bool,
        /// The recipient of the answer.
        reply: Option<ReplyTo>,
    },
    /// Finished messages are archived and may leave the store. Answered by [`crate::EngineAnswer::Done`] once they
    /// have left it.
    Archived {
        /// The messages.
        ids: Vec<MessageId>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// The contents of finished messages that are not archived yet are erased. Messages that have not ended are not changed.
    /// Answered by [`crate::EngineAnswer::Done`] once the erasure is durable.
    EraseContent {
        /// The erasures.
        erasures: Vec<ContentErasure>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// The DLR of a finished message is sent again. Answered by [`crate::EngineAnswer::Done`], or refused if the
    /// origin takes no DLRs or its queue is full.
    ResendDlr {
        /// The message.
        message: Box<Message>,
        /// Its final record.
        ended: Box<FinalRecord>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// A request to a number pool. Answered by [`crate::EngineAnswer::Pool`]. Reading requests are also answered in
    /// order, and only with durable state.
    Pool {
        /// The pool.
        pool: PoolName,
        /// The request.
        request: PoolRequest,
        /// The user, for the pool's journal.
        by: Arc<str>,
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// Lists all number pools, by name. Answered by [`crate::EngineAnswer::Pools`].
    Pools {
        /// The recipient of the answer.
        reply: ReplyTo,
    },
    /// Shutdown has begun: the engine accepts and sends nothing new; outcomes still count.
    Drain,
}

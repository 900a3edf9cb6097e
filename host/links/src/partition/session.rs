//! The session of another partition, at the home of a peer.

use super::frame::{Frame, VERSION};
use super::{PartitionAccountOptions, PartitionSessions};
use crate::refusal_status::submit_status;
use bytes::BytesMut;
use codec::RecordDecoder;
use engine::{EngineAnswer, Event};
use model::{Dlr, ErrorClass, Message, MessageId, MessageKind, Outcome, Refusal, RemoteAttempt, Verdict};
use ports::link::{BoundLink, Link, LinkBlocker, LinkControl, LinkProtocol, LinkRecord, LinkRole, LinkStep};
use ports::{LinkCommand, Protocol};
use rustc_hash::FxHashMap;
use smpp::BindMode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

/// The time for the first frame, and the silence after which the connection is closed: the other partition sends pings.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
const DEAD_AFTER: Duration = Duration::from_secs(60);
/// The greatest number of unconfirmed outcomes and DLRs.
const WINDOW: usize = 2000;
/// Messages that are accepted together.
const BATCH: usize = 500;
/// The greatest number of messages that the engine has not answered; nothing is read until it has.
const UNACCEPTED: usize = 20_000;

/// The accepted first frame of a connection.
pub(crate) struct PartitionLogin {
    account: Arc<PartitionAccountOptions>,
    /// Dropped when the session takes nothing more; see [`PartitionSessions::open`].
    _open: watch::Sender<()>,
}

/// Id of a message in the other partition, and number of its attempt.
type AttemptNumber = (MessageId, u16);

/// One connection of another partition.
pub(crate) struct PartitionSession {
    sessions: Arc<PartitionSessions>,
    control: UnboundedSender<LinkControl>,
    input: BytesMut,
    output: BytesMut,
    decoder: RecordDecoder,
    login: Option<PartitionLogin>,
    /// The first frame was received.
    is_opened: bool,
    failed: Option<String>,
    /// Messages of this turn.
    batch: Vec<Message>,
    attempts: Vec<AttemptNumber>,
    /// Messages that the engine has not answered, by token.
    unaccepted: FxHashMap<u64, Vec<AttemptNumber>>,
    unaccepted_messages: usize,
    next_token: u64,
    /// Outcomes and DLRs on the connection, with the offsets of their frames in the stream.
    unrecorded: FxHashMap<MessageId, u64>,
    heard: Instant,
}

impl PartitionSession {
    /// A connection that another node has opened.
    pub(crate) fn new(
        now: Instant,
        sessions: Arc<PartitionSessions>,
        control: UnboundedSender<LinkControl>,
    ) -> Self {
        Self {
            sessions,
            control,
            input: BytesMut::new(),
            output: BytesMut::new(),
            decoder: RecordDecoder::new(),
            login: None,
            is_opened: false,
            failed: None,
            batch: Vec::new(),
            attempts: Vec::new(),
            unaccepted: FxHashMap::default(),
            unaccepted_messages: 0,
            next_token: 0,
            unrecorded: FxHashMap::default(),
            heard: now,
        }
    }

    fn refuse(&mut self, link: &mut Link, reason: String) {
        link.refuse(&reason);
        Frame::Refusal { reason: reason.clone() }.encode(&mut self.output);
        self.failed = Some(reason);
    }

    fn open(
        &mut self,
        link: &mut Link,
        (version, partition, peer): (u8, u8, &str),
    ) -> LinkStep<PartitionLogin> {
        if version != VERSION {
            self.refuse(link, format!("the home has version {VERSION} of the protocol, not {version}"));
            return LinkStep::Handled;
        }
        let Some(account) = self.sessions.account(partition, peer) else {
            let here = link.deps.registry.partition();
            let what = "is not the home of this peer, as far as its configuration says";
            self.refuse(link, format!("partition {here} {what}"));
            return LinkStep::Handled;
        };
        let (open_session, closed) = self.sessions.open(account.account, self.control.clone());
        LinkStep::Login(Box::pin(async move {
            closed.await;
            PartitionLogin { account, _open: open_session }
        }))
    }

    fn on_frame(&mut self, link: &mut Link, frame: Frame) -> LinkStep<PartitionLogin> {
        self.heard = link.now;
        match (frame, &self.login) {
            (Frame::Open { version, partition, peer }, None) if !self.is_opened => {
                self.is_opened = true;
                return self.open(link, (version, partition, &peer));
            }
            (Frame::Submit(mut message), Some(PartitionLogin { account, .. })) => {
                let Some(attempt) = RemoteAttempt::read(&message.protocol_fields) else {
                    self.failed =
                        Some("the other partition has sent a message without its attempt".to_owned());
                    return LinkStep::Handled;
                };
                message.origin = account.account;
                if let Verdict::Forward(legs) = &mut message.routed.verdict {
                    legs.iter_mut().for_each(|leg| leg.peer = account.peer);
                }
                self.batch.push(*message);
                self.attempts.push((attempt.id, attempt.attempt));
                if self.batch.len() >= BATCH {
                    self.accept_batch(link);
                }
            }
            (Frame::Recorded { number }, Some(_)) => {
                if self.unrecorded.remove(&number).is_some() {
                    let outcome = Outcome::Accepted { ids: Vec::new() };
                    link.events.push(Event::Outcome { link: link.id(), id: number, outcome });
                }
            }
            (Frame::Ping, Some(_)) => Frame::Pong.encode(&mut self.output),
            _ => self.failed = Some("the other partition has sent a frame out of order".to_owned()),
        }
        LinkStep::Handled
    }

    /// Passes the messages of this turn to the engine. They are routed already.
    fn accept_batch(&mut self, link: &mut Link) {
        if self.batch.is_empty() {
            return;
        }
        self.next_token += 1;
        self.unaccepted_messages += self.batch.len();
        self.unaccepted.insert(self.next_token, std::mem::take(&mut self.attempts));
        link.events.push(Event::AcceptMany {
            messages: std::mem::take(&mut self.batch),
            shared_id: false,
            key: None,
            reply: link.reply(self.next_token),
        });
    }

    fn answered(&mut self, token: u64, answer: EngineAnswer) {
        let Some(attempts) = self.unaccepted.remove(&token) else { return };
        self.unaccepted_messages -= attempts.len();
        let refusals = match answer {
            EngineAnswer::AcceptedMany(results) => results.into_iter().map(Result::err).collect(),
            EngineAnswer::Refused(refusal) => vec![Some(refusal); attempts.len()],
            _ => Vec::new(),
        };
        for ((id, attempt), refusal) in attempts.into_iter().zip(refusals) {
            if let Some(refusal) = refusal {
                let outcome = refused(refusal);
                Frame::NotAccepted { id, attempt, outcome }.encode(&mut self.output);
            }
        }
    }

    /// Sends an outcome or a DLR. Returns false if the message is neither.
    fn send(&mut self, link: &Link, message: &Message) -> bool {
        let MessageKind::Dlr(content) = &message.kind else { return false };
        let number = message.id;
        let outcome = Outcome::read(&message.protocol_fields);
        let frame = match outcome.zip(RemoteAttempt::read(&message.protocol_fields)) {
            Some((outcome, RemoteAttempt { id, attempt, .. })) => {
                Frame::Outcome { number, id, attempt, outcome }
            }
            None => Frame::Dlr {
                number,
                dlr: Dlr {
                    id: content.peer_id.clone(),
                    state: content.state,
                    intermediate: content.intermediate,
                    error: content.error,
                    network_error: content.network_error,
                    done_at: Some(content.done_at),
                    from: message.source.value.clone(),
                    to: message.destination.value.clone(),
                },
            },
        };
        self.unrecorded.insert(number, link.written + self.output.len() as u64);
        frame.encode(&mut self.output);
        true
    }
}

/// The outcome of a message that was not accepted. The other partition retries it.
fn refused(refusal: Refusal) -> Outcome {
    let class = match refusal {
        Refusal::QueueFull => ErrorClass::QueueFull,
        _ => ErrorClass::Temporary,
    };
    Outcome::Refused { class, code: submit_status(refusal).0, taken: Vec::new() }
}

impl LinkProtocol for PartitionSession {
    const PROTOCOL: Protocol = Protocol::Partition;
    type Login = PartitionLogin;

    fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    fn wants_input(&self) -> bool {
        self.unaccepted_messages < UNACCEPTED && (self.login.is_some() || !self.is_opened)
    }

    fn process(&mut self, _: Instant) {}

    fn deadline(&self) -> Option<Instant> {
        Some(self.heard + if self.login.is_some() { DEAD_AFTER } else { OPEN_TIMEOUT })
    }

    fn on_timeout(&mut self, now: Instant) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.failed = Some("the other partition does not answer".to_owned());
        }
    }

    fn is_bound(&self) -> bool {
        self.login.is_some()
    }

    fn in_flight(&self) -> usize {
        self.unrecorded.len()
    }

    fn unanswered_in(&self) -> usize {
        self.unaccepted_messages
    }

    fn next_event(&mut self, link: &mut Link) -> LinkStep<PartitionLogin> {
        // The rest of the input waits for the login.
        let waits = self.is_opened && self.login.is_none();
        if self.failed.is_none() && !waits {
            match Frame::decode(&mut self.input, &mut self.decoder) {
                Ok(None) => {
                    self.accept_batch(link);
                    return LinkStep::Idle;
                }
                Ok(Some(frame)) => return self.on_frame(link, frame),
                Err(error) => {
                    self.failed = Some(format!("the other partition has sent what cannot be read: {error}"));
                }
            }
        }
        if let Some(reason) = &self.failed {
            link.end(reason.clone(), true);
        }
        LinkStep::Idle
    }

    fn on_login(&mut self, link: &mut Link, login: PartitionLogin) {
        let account = login.account.clone();
        self.heard = link.now;
        self.login = Some(login);
        link.record = LinkRecord::new(LinkRole::Server, account.account, &account.name, 0, true);
        Frame::Opened.encode(&mut self.output);
        link.bind(BoundLink {
            peer: account.account,
            mode: BindMode::Transceiver,
            version: VERSION,
            window: WINDOW,
            takes_messages: true,
        });
    }

    fn on_command(&mut self, link: &mut Link, command: LinkCommand) {
        match command {
            LinkCommand::Send { message, .. } => {
                if !self.send(link, &message) {
                    // A route leads to the account, which takes no messages.
                    let (class, code) = (ErrorClass::Permanent, smpp::CommandStatus::RINVDSTADR.0);
                    let outcome = Outcome::Refused { class, code, taken: Vec::new() };
                    link.events.push(Event::Outcome { link: link.id(), id: message.id, outcome });
                }
            }
            LinkCommand::Answer { token, answer } => self.answered(token, answer),
            LinkCommand::SubscriberReachable { imsi } => {
                Frame::SubscriberReachable { imsi }.encode(&mut self.output);
            }
            LinkCommand::QueryPeer { .. } | LinkCommand::Flushed => {}
        }
    }

    fn fill_window(&mut self, _: &mut Link) -> bool {
        false
    }

    fn blocked_by(&self, _: Instant) -> LinkBlocker {
        if self.unrecorded.len() >= WINDOW { LinkBlocker::PeerWindow } else { LinkBlocker::None }
    }

    fn is_idle(&self) -> bool {
        true
    }

    fn unbind(&mut self, _: Instant) -> bool {
        false
    }

    fn close(self, link: &mut Link) {
        let link_id = link.id();
        let mut left: Vec<_> = self.unrecorded.into_iter().collect();
        left.sort_unstable();
        let outcomes = left.into_iter().map(|(id, offset)| {
            let outcome = match offset < link.written {
                true => Outcome::Unanswered { taken: Vec::new(), known: Vec::new() },
                false => Outcome::NotSent,
            };
            Event::Outcome { link: link_id, id, outcome }
        });
        link.events.extend(outcomes);
    }
}

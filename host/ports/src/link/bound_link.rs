use super::link_record::{LinkRecord, ListedRecord};
use super::{LinkDeps, LinkHandle, LinkRole};
use crate::{Protocol, SessionPermit};
use engine::{Event, ReplyTo};
use model::{IdempotencyKey, LinkId, Message, PeerId, Timestamp};
use smpp::BindMode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The peer's refusal of our login.
#[derive(Clone, Debug)]
pub struct LoginRefusal {
    /// The reason, as text.
    pub reason: String,
    /// The shortest wait before the next attempt: frequent ones would do harm.
    pub least_wait: Duration,
    /// If an admin has to correct the login: what to check.
    pub check: Option<&'static str>,
}

/// The result of a login, ours or the peer's.
#[derive(Clone, Copy, Debug)]
pub struct BoundLink {
    /// The account or peer.
    pub peer: PeerId,
    /// The directions of messages.
    pub mode: BindMode,
    /// The version of the protocol, as the API shows it.
    pub version: u8,
    /// Messages to the peer that may be unanswered.
    pub window: usize,
    /// Whether the link takes messages of the engine.
    pub takes_messages: bool,
}

/// The end of a session: the reason, and whether the rest of the output is still written.
pub(super) struct SessionEnd {
    pub(super) reason: String,
    pub(super) is_orderly: bool,
}

/// The part of a link that all protocols share, as the mapping of a protocol sees it.
pub struct Link {
    /// Dependencies that all links share.
    pub deps: Arc<LinkDeps>,
    /// The record for the API.
    pub record: Arc<LinkRecord>,
    /// Events for the engine, which leave once a turn. Nothing removes or reorders them before that.
    pub events: Vec<Event>,
    /// The places of events in `events` whose messages are not routed yet, in order.
    unrouted: Vec<usize>,
    /// The time of this turn.
    pub now: Instant,
    /// The wall clock of this turn.
    pub wall: Timestamp,
    /// Octets of the stream that are written.
    pub written: u64,
    pub(super) handle: Option<LinkHandle>,
    pub(super) permit: Option<SessionPermit>,
    pub(super) listed: Option<ListedRecord>,
    pub(super) end: Option<SessionEnd>,
    pub(super) refused: Option<LoginRefusal>,
    pub(super) bound_at: Option<Instant>,
    pub(super) protocol: Protocol,
}

impl Link {
    pub(super) fn new(deps: Arc<LinkDeps>, record: Arc<LinkRecord>, protocol: Protocol) -> Self {
        Self {
            deps,
            record,
            events: Vec::new(),
            unrouted: Vec::new(),
            now: crate::clock::now(),
            wall: Timestamp::now(),
            written: 0,
            handle: None,
            permit: None,
            listed: None,
            end: None,
            refused: None,
            bound_at: None,
            protocol,
        }
    }

    /// The link's id; 0, which no link has, before the login.
    #[must_use]
    pub fn id(&self) -> LinkId {
        self.handle.as_ref().map_or(LinkId(0), LinkHandle::link)
    }

    /// The address of the engine's answer to a request; `token` is the protocol's token for it.
    #[must_use]
    pub fn reply(&self, token: u64) -> ReplyTo {
        ReplyTo { link: self.id(), token }
    }

    /// Passes a message to the engine. It is routed at the end of the turn, with the others that arrived in it.
    pub fn accept(&mut self, message: Message, token: u64) {
        let (message, reply) = (Box::new(message), self.reply(token));
        self.accept_event(Event::Accept { message, reply });
    }

    /// Passes the messages of an [`Event::AcceptMany`] to the engine, like [`Link::accept`].
    pub fn accept_many(
        &mut self,
        messages: Vec<Message>,
        shared_id: bool,
        key: Option<IdempotencyKey>,
        token: u64,
    ) {
        let reply = self.reply(token);
        self.accept_event(Event::AcceptMany { messages, shared_id, key, reply });
    }

    fn accept_event(&mut self, event: Event) {
        self.unrouted.push(self.events.len());
        self.events.push(event);
    }

    /// Routes messages at once, for a link that keeps them.
    pub fn route(&self, messages: &mut [Message]) {
        self.deps.routing.route_many(&mut messages.iter_mut().collect::<Vec<_>>());
    }

    /// The events for the engine, with all messages routed.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        if !self.unrouted.is_empty() {
            let mut places = self.unrouted.drain(..).peekable();
            let unrouted = self.events.iter_mut().enumerate().filter(|(n, _)| places.next_if_eq(n).is_some());
            let mut messages: Vec<&mut Message> = unrouted
                .flat_map(|(_, event)| match event {
                    Event::Accept { message, .. } => std::slice::from_mut(&mut **message),
                    Event::AcceptMany { messages, .. } => messages,
                    _ => &mut [],
                })
                .collect();
            self.deps.routing.route_many(&mut messages);
        }
        std::mem::take(&mut self.events)
    }

    /// The peer has logged in: the link gets the record and the session permit of its account.
    pub fn identify(&mut self, record: Arc<LinkRecord>, permit: SessionPermit) {
        self.record = record;
        self.permit = Some(permit);
    }

    /// Registers the link after a login, and announces it to the engine if it takes messages.
    pub fn bind(&mut self, bound: BoundLink) {
        let (core, registry) = (self.deps.core.clone(), self.deps.registry.clone());
        let mut handle = LinkHandle::register(core, registry, self.protocol);
        if self.record.role == LinkRole::Server {
            self.listed = Some(self.deps.records.list(self.record.clone()));
        }
        self.record.set_bound(handle.link(), bound.mode, bound.version, bound.window);
        self.bound_at = Some(self.now);
        tracing::info!(
            link = handle.link().0,
            peer = %self.record.name,
            protocol = self.protocol.name(),
            role = ?self.record.role,
            bind = bound.mode.name(),
            version = format_args!("{:#04x}", bound.version),
            "bound"
        );
        if bound.takes_messages {
            handle.announce(bound.peer, bound.window, &mut self.events);
        }
        self.handle = Some(handle);
    }

    /// The peer has refused our login.
    pub fn refused(&mut self, refusal: LoginRefusal) {
        self.refused = Some(refusal);
    }

    /// We have refused the peer's login.
    pub fn refuse(&mut self, reason: &str) {
        self.record.set_error(reason);
        let (least_wait, check) = (Duration::ZERO, None);
        self.refused = Some(LoginRefusal { reason: reason.to_owned(), least_wait, check });
    }

    /// The session has ended. If the end is orderly, the rest of the output is written first.
    pub fn end(&mut self, reason: impl Into<String>, is_orderly: bool) {
        self.end = Some(SessionEnd { reason: reason.into(), is_orderly });
    }
}

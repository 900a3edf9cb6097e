//! The messages in progress on one connection: Submits to a gateway, Delivers to an SP.

use super::LinkedProtocol;
use super::mapping;
use super::options::SpGatewayOptions;
use super::state::SpLogin;
use crate::messages_in_flight::MessagesInFlight;
use engine::Event;
use model::{ErrorClass, LinkId, Message, MessageId, MessageKind, Outcome, PeerMessageId, SubmitTicket};
use ports::link::{Link, PduKind};
use sp_session::{Meaning, Session, SpRequestError};
use std::sync::Arc;

/// Maximum number of attempts after which a vendor-specific refusal of a gateway is final.
const VENDOR_ATTEMPTS: u16 = 3;

/// The peer of a connection.
#[derive(Clone, Debug)]
pub(super) enum LinkPeer {
    /// A gateway, which takes Submits.
    Gateway(Arc<SpGatewayOptions>),
    /// An SP, which takes Delivers.
    Sp(SpLogin),
}

/// All messages in progress on a connection.
#[derive(Debug)]
pub(super) struct Outgoing<P: LinkedProtocol> {
    messages: MessagesInFlight<P::Pdu>,
}

impl<P: LinkedProtocol> Default for Outgoing<P> {
    fn default() -> Self {
        Self { messages: MessagesInFlight::default() }
    }
}

impl<P: LinkedProtocol> Outgoing<P> {
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_idle()
    }

    /// Enqueues a message of the engine. A message that the protocol cannot express is refused at once.
    #[expect(clippy::too_many_arguments, reason = "the fields of the engine's command")]
    pub(super) fn enqueue(
        &mut self,
        link_peer: &LinkPeer,
        version: u8,
        message: Arc<Message>,
        leg: u8,
        taken: u16,
        want_dlr: bool,
        ticket: SubmitTicket,
        link: LinkId,
    ) -> Option<Event> {
        let refused = |code: u32| {
            let outcome = Outcome::Refused { class: ErrorClass::Permanent, code, taken: Vec::new() };
            Some(Event::Outcome { link, id: message.id, outcome })
        };
        let segments: Vec<P::Pdu> = match Self::requests(link_peer, version, &message, leg, want_dlr) {
            Ok(segments) => segments,
            Err(status) => return refused(status),
        };
        let next = usize::from(taken);
        if next >= segments.len() {
            return refused(P::STATUS.length);
        }
        self.messages.enqueue(message, ticket, segments, next);
        None
    }

    fn requests(
        link_peer: &LinkPeer,
        version: u8,
        message: &Message,
        leg: u8,
        want_dlr: bool,
    ) -> Result<Vec<P::Pdu>, u32> {
        match (link_peer, &message.kind) {
            (LinkPeer::Gateway(gateway), _) => {
                let submissions = mapping::submissions(message, leg, want_dlr, gateway, &P::STATUS)?;
                Ok(submissions.iter().map(P::submit).collect())
            }
            (LinkPeer::Sp(sp), MessageKind::Text) => {
                let options = &sp.options;
                let deliveries = mapping::deliveries::<P>(message, &options.node, options.gateway_code)?;
                Ok(deliveries.iter().map(P::deliver).collect())
            }
            (LinkPeer::Sp(sp), MessageKind::Dlr(dlr)) => {
                let options = &sp.options;
                let report = mapping::report_from_dlr::<P>(message, dlr, &options.node, options.gateway_code)
                    .ok_or(P::STATUS.command)?;
                Ok(vec![P::report(&report, version)])
            }
        }
    }

    /// Passes as many requests to the session as its window permits. Returns whether there were any.
    pub(super) fn fill_window(
        &mut self,
        session: &mut Session<P>,
        link_peer: &LinkPeer,
        link: &mut Link,
    ) -> bool {
        let mut any = false;
        let kind = match link_peer {
            LinkPeer::Gateway(_) => PduKind::Submit,
            LinkPeer::Sp(_) => PduKind::Deliver,
        };
        while session.window_free() > 0
            && let Some(token) = self.messages.pop_ready()
        {
            let Some(in_flight) = self.messages.get(token) else { continue };
            let Some(pdu) = in_flight.segments.get(in_flight.next) else { continue };
            let begins = link.written + session.output().len() as u64;
            match session.send(link.now, token, pdu) {
                Ok(()) => {
                    link.record.outbound.count(kind);
                    self.messages.sent(token, begins, link.now);
                    any = true;
                }
                Err(SpRequestError::Unencodable(error)) => {
                    if link.deps.log.take(link.now).is_some() {
                        tracing::warn!(peer = %link.record.name, %error, "message does not fit the protocol's fields");
                    }
                    let refused = self.messages.refused(token, ErrorClass::Permanent, P::STATUS.structure);
                    let id = link.id();
                    link.events.extend(refused.map(|outcome| event(id, outcome)));
                }
                Err(SpRequestError::NotLoggedIn | SpRequestError::WindowFull) => {
                    self.messages.put_back(token);
                    break;
                }
            }
        }
        any
    }

    /// Handles an answer: the next segment becomes ready, or the message has an outcome.
    pub(super) fn on_answer(&mut self, link_peer: &LinkPeer, link: &mut Link, token: u64, pdu: &P::Pdu) {
        if let Some(time) = self.messages.round_trip(token, link.now) {
            link.record.record_round_trip(time);
        }
        let (id, status) = match P::meaning(pdu) {
            Meaning::SubmitAnswer { id, status } => (id, status),
            Meaning::DeliverAnswer { status } => (None, status),
            // The answer belongs to another type of request.
            _ => (None, P::STATUS.structure),
        };
        link.record.inbound.count_answer(status);
        let outcome = if status == 0 {
            if id.is_none()
                && matches!(link_peer, LinkPeer::Gateway(_))
                && link.deps.log.take(link.now).is_some()
            {
                tracing::warn!(peer = %link.record.name, "the gateway returns no message id: its DLRs cannot be matched");
            }
            let id = id.map_or_else(PeerMessageId::default, |id| PeerMessageId::new(&id));
            self.messages.accepted(token, id)
        } else {
            let attempt = self.messages.get(token).map_or(0, |in_flight| in_flight.ticket.attempt);
            self.messages.refused(token, Self::class(link_peer, status, attempt), status)
        };
        let id = link.id();
        link.events.extend(outcome.map(|outcome| event(id, outcome)));
    }

    fn class(link_peer: &LinkPeer, status: u32, attempt: u16) -> ErrorClass {
        match link_peer {
            LinkPeer::Gateway(options) => {
                options.error_classes.get(&status).copied().unwrap_or_else(|| {
                    // It is unknown whether a vendor-specific status is temporary.
                    if P::VENDOR_STATUSES.contains(&status) && attempt >= VENDOR_ATTEMPTS {
                        ErrorClass::Permanent
                    } else {
                        P::class(status)
                    }
                })
            }
            // An SP with a faulty handler may answer with any status; only a PDU that it cannot read never succeeds.
            LinkPeer::Sp(_) if [P::STATUS.structure, P::STATUS.command].contains(&status) => {
                ErrorClass::Permanent
            }
            LinkPeer::Sp(_) if status == P::STATUS.throttled => ErrorClass::Throttled,
            LinkPeer::Sp(_) => ErrorClass::Temporary,
        }
    }

    /// Handles a request that the session has given up.
    pub(super) fn on_answer_timeout(&mut self, token: u64, link: LinkId) -> Option<Event> {
        self.messages.unanswered(token, None).map(|outcome| event(link, outcome))
    }

    /// Returns an outcome for each message that has none, after the connection has ended. `written` octets of the
    /// stream are written.
    pub(super) fn close(self, written: u64, link: LinkId, events: &mut Vec<Event>) {
        self.messages.close(written, |_| None, link, events);
    }
}

fn event(link: LinkId, (id, outcome): (MessageId, Outcome)) -> Event {
    Event::Outcome { link, id, outcome }
}

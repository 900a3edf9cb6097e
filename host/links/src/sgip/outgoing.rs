//! The messages in progress on one outgoing connection: Submits to a gateway, Delivers and Reports to an SP.

use super::mapping;
use super::options::{GatewayOptions, SgipNodeOptions, SpOptions};
use crate::messages_in_flight::{InFlightMessage, MessagesInFlight};
use engine::Event;
use model::{
    ErrorClass, LinkId, Message, MessageId, MessageKind, Outcome, PeerId, PeerMessageId, SubmitTicket,
};
use ports::link::{Link, LinkRecord};
use sgip::{Pdu, ResultCode, Sequence, Session, SgipRequestError};
use std::sync::Arc;
use std::time::Instant;

/// The receiver of the messages.
#[derive(Clone, Debug)]
pub(super) enum OutgoingTarget {
    /// A gateway, which takes Submits.
    Gateway(Arc<GatewayOptions>),
    /// An SP, which takes Delivers and Reports.
    Sp {
        /// The account's id.
        peer: PeerId,
        options: Arc<SpOptions>,
    },
}

impl OutgoingTarget {
    fn options(&self) -> &SgipNodeOptions {
        match self {
            Self::Gateway(options) => &options.node,
            Self::Sp { options, .. } => &options.node,
        }
    }
}

/// All messages in progress on an outgoing connection.
#[derive(Debug)]
pub(super) struct Outgoing {
    target: OutgoingTarget,
    messages: MessagesInFlight<Pdu>,
}

impl Outgoing {
    pub(super) fn new(target: OutgoingTarget) -> Self {
        Self { target, messages: MessagesInFlight::default() }
    }

    pub(super) fn peer(&self) -> PeerId {
        match &self.target {
            OutgoingTarget::Gateway(options) => options.peer,
            OutgoingTarget::Sp { peer, .. } => *peer,
        }
    }

    pub(super) fn window(&self) -> usize {
        self.target.options().window
    }

    /// The version in the API: 1.2 is 0x12.
    pub(super) fn version(&self) -> u8 {
        super::version(self.target.options().quirks.dialect)
    }

    fn node(&self) -> u32 {
        self.target.options().node
    }

    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_idle()
    }

    /// Enqueues a message of the engine. A message that SGIP cannot express is refused at once.
    pub(super) fn enqueue(
        &mut self,
        message: Arc<Message>,
        leg: u8,
        taken: u16,
        want_dlr: bool,
        ticket: SubmitTicket,
        link: LinkId,
    ) -> Option<Event> {
        let segments = match (&self.target, &message.kind) {
            (OutgoingTarget::Gateway(gateway), _) => mapping::submits(&message, leg, want_dlr, gateway)
                .map(|submits| submits.into_iter().map(Pdu::Submit).collect::<Vec<_>>()),
            (OutgoingTarget::Sp { options, .. }, MessageKind::Text) => {
                mapping::delivers(&message, &options.node.quirks)
                    .map(|delivers| delivers.into_iter().map(Pdu::Deliver).collect())
            }
            (OutgoingTarget::Sp { options, .. }, MessageKind::Dlr(text)) => {
                // A message that was not submitted by SGIP has no sequence that a Report could name.
                super::dlr::report_from_dlr(&message, text, &options.node.quirks)
                    .map(|report| vec![Pdu::Report(report)])
                    .ok_or(ResultCode::MESSAGE_ID)
            }
        };
        let refused = |code: ResultCode| {
            let outcome =
                Outcome::Refused { class: ErrorClass::Permanent, code: u32::from(code.0), taken: Vec::new() };
            Some(Event::Outcome { link, id: message.id, outcome })
        };
        let segments = match segments {
            Ok(segments) => segments,
            Err(code) => return refused(code),
        };
        let next = usize::from(taken);
        if next >= segments.len() {
            return refused(ResultCode::LENGTH);
        }
        self.messages.enqueue(message, ticket, segments, next);
        None
    }

    /// The sequence of the current segment, and the message id that its DLR will contain.
    fn identity(node: u32, in_flight: &InFlightMessage<Pdu>) -> (Sequence, PeerMessageId) {
        let sequence = mapping::sequence(node, in_flight.message.id, in_flight.ticket, in_flight.next);
        let id = match in_flight.segments.get(in_flight.next) {
            Some(Pdu::Submit(submit)) => {
                let user = submit.users.first().map_or(&[][..], |user| &user[..]);
                sgip::peer_message_id(sequence, user)
            }
            _ => PeerMessageId::new(&sequence.octets()),
        };
        (sequence, id)
    }

    /// The message id that the DLR of a Submit will contain; `None` for a Deliver or Report, and before the last segment.
    fn known_id(&self, in_flight: &InFlightMessage<Pdu>) -> Option<PeerMessageId> {
        let is_known = matches!(self.target, OutgoingTarget::Gateway(_)) && in_flight.is_last();
        is_known.then(|| Self::identity(self.node(), in_flight).1)
    }

    /// Sends as many segments as the session's window allows. Returns whether any was sent.
    pub(super) fn fill_window(&mut self, session: &mut Session, link: &mut Link) -> bool {
        let mut any = false;
        while session.window_free() > 0
            && let Some(token) = self.messages.pop_ready()
        {
            let Some(in_flight) = self.messages.get(token) else { continue };
            let (sequence, _) = Self::identity(self.node(), in_flight);
            let Some(pdu) = in_flight.segments.get(in_flight.next) else { continue };
            let begins = link.written + session.output().len() as u64;
            match session.send(link.now, token, sequence, pdu) {
                Ok(()) => {
                    link.record.outbound.count(super::kind(pdu));
                    self.messages.sent(token, begins, link.now);
                    any = true;
                }
                Err(SgipRequestError::SequenceInUse) => {
                    // An earlier submit attempt of the same message is unanswered on this connection. This attempt fails
                    // temporarily and is repeated later.
                    let code = u32::from(ResultCode::SEQUENCE.0);
                    let refused = self.messages.refused(token, ErrorClass::Temporary, code);
                    let link_id = link.id();
                    link.events.extend(refused.map(|outcome| event(link_id, outcome)));
                }
                Err(SgipRequestError::NotBound | SgipRequestError::WindowFull) => {
                    self.messages.put_back(token);
                    break;
                }
            }
        }
        any
    }

    /// Handles an answer: enqueues the next segment, or returns the outcome.
    pub(super) fn on_answer(
        &mut self,
        record: &LinkRecord,
        now: Instant,
        token: u64,
        result: ResultCode,
        link: LinkId,
    ) -> Option<Event> {
        if let Some(time) = self.messages.round_trip(token, now) {
            record.record_round_trip(time);
        }
        let (_, id) = Self::identity(self.node(), self.messages.get(token)?);
        let outcome = if result.is_ok() {
            self.messages.accepted(token, id)
        } else {
            let special = match &self.target {
                OutgoingTarget::Gateway(options) => options.error_classes.get(&result.0).copied(),
                OutgoingTarget::Sp { .. } => None,
            };
            let class = special.unwrap_or_else(|| {
                match (&self.target, result.class(self.target.options().quirks.dialect)) {
                    // Nobody but this SP can use the message, and the SP may accept it later: it is retried.
                    (OutgoingTarget::Sp { .. }, ErrorClass::Permanent) => ErrorClass::Temporary,
                    (_, class) => class,
                }
            });
            self.messages.refused(token, class, u32::from(result.0))
        };
        outcome.map(|outcome| event(link, outcome))
    }

    /// Handles a command that the session has given up.
    pub(super) fn on_answer_timeout(&mut self, token: u64, link: LinkId) -> Option<Event> {
        let known = self.known_id(self.messages.get(token)?);
        self.messages.unanswered(token, known).map(|outcome| event(link, outcome))
    }

    /// Returns an outcome for each message that has none, after the connection has ended. `written` octets of the
    /// stream are written.
    pub(super) fn close(mut self, written: u64, link: LinkId, events: &mut Vec<Event>) {
        let messages = std::mem::take(&mut self.messages);
        messages.close(written, |in_flight| self.known_id(in_flight), link, events);
    }
}

fn event(link: LinkId, (id, outcome): (MessageId, Outcome)) -> Event {
    Event::Outcome { link, id, outcome }
}

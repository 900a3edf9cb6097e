//! The messages in progress on one outgoing connection: Submits to a gateway, Delivers and Reports to an SP.

use super::mapping;
use super::options::{GatewayOptions, SgipNodeOptions, SpOptions};
use engine::Event;
use model::{ErrorClass, LinkId, Message, MessageKind, Outcome, PeerId, PeerMessageId, SubmitTicket};
use ports::link::{Link, LinkRecord};
use sgip::{Pdu, ResultCode, Sequence, Session, SgipRequestError};
use std::collections::{HashMap, VecDeque};
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

/// One message in progress. Its segments are sent one after the other, so that nothing is sent after a refused
/// segment.
#[derive(Debug)]
struct InFlightMessage {
    message: Arc<Message>,
    ticket: SubmitTicket,
    segments: Vec<Pdu>,
    /// The segment that is sent next or is unanswered.
    next: usize,
    /// The ids of the segments that were accepted on this connection.
    taken: Vec<PeerMessageId>,
    /// The offset of the unanswered segment in the stream, and the time when the session got it.
    sent: Option<(u64, Instant)>,
    /// The message was given up; only a late answer can come.
    given_up: bool,
}

/// All messages in progress on an outgoing connection.
#[derive(Debug)]
pub(super) struct Outgoing {
    target: OutgoingTarget,
    messages: HashMap<u64, InFlightMessage>,
    /// Messages with a segment to send, in the engine's order.
    ready: VecDeque<u64>,
    next: u64,
}

impl Outgoing {
    pub(super) fn new(target: OutgoingTarget) -> Self {
        Self { target, messages: HashMap::new(), ready: VecDeque::new(), next: 1 }
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
        self.messages.values().all(|in_flight| in_flight.given_up)
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
        let token = self.next;
        self.next += 1;
        let in_flight = InFlightMessage {
            message,
            ticket,
            segments,
            next,
            taken: Vec::new(),
            sent: None,
            given_up: false,
        };
        self.messages.insert(token, in_flight);
        self.ready.push_back(token);
        None
    }

    /// The sequence of the current segment, and the id that its DLR will name.
    fn identity(node: u32, in_flight: &InFlightMessage) -> (Sequence, PeerMessageId) {
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

    /// Gives the session as many segments as its window allows. Returns whether there were any.
    pub(super) fn fill_window(&mut self, session: &mut Session, link: &mut Link) -> bool {
        let mut any = false;
        while session.window_free() > 0
            && let Some(token) = self.ready.pop_front()
        {
            let node = self.node();
            let Some(in_flight) = self.messages.get_mut(&token) else { continue };
            let (sequence, _) = Self::identity(node, in_flight);
            let Some(pdu) = in_flight.segments.get(in_flight.next) else { continue };
            let begins = link.written + session.output().len() as u64;
            match session.send(link.now, token, sequence, pdu) {
                Ok(()) => {
                    link.record.outbound.count(super::kind(pdu));
                    in_flight.sent = Some((begins, link.now));
                    any = true;
                }
                Err(SgipRequestError::SequenceInUse) => {
                    // An earlier submit attempt of the same message is unanswered here; its answer settles both.
                    if let Some(in_flight) = self.messages.remove(&token) {
                        let outcome = Outcome::Refused {
                            class: ErrorClass::Temporary,
                            code: u32::from(ResultCode::SEQUENCE.0),
                            taken: in_flight.taken,
                        };
                        let (link_id, id) = (link.id(), in_flight.message.id);
                        link.events.push(Event::Outcome { link: link_id, id, outcome });
                    }
                }
                Err(SgipRequestError::NotBound | SgipRequestError::WindowFull) => {
                    self.ready.push_front(token);
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
        let node = self.node();
        let in_flight = self.messages.get_mut(&token)?;
        if let Some((_, at)) = in_flight.sent.take() {
            record.record_round_trip(now.saturating_duration_since(at));
        }
        let (_, id) = Self::identity(node, in_flight);
        let outcome = if result.is_ok() {
            in_flight.taken.push(id);
            in_flight.next += 1;
            if in_flight.next < in_flight.segments.len() && !in_flight.given_up {
                self.ready.push_back(token);
                return None;
            }
            Outcome::Accepted { ids: std::mem::take(&mut in_flight.taken) }
        } else {
            let special = match &self.target {
                OutgoingTarget::Gateway(options) => options.error_classes.get(&result.0).copied(),
                OutgoingTarget::Sp { .. } => None,
            };
            let class = special.unwrap_or_else(|| {
                match (&self.target, result.class(self.target.options().quirks.dialect)) {
                    // An SP that refuses a message today may take it tomorrow, and there is no other use for the message.
                    (OutgoingTarget::Sp { .. }, ErrorClass::Permanent) => ErrorClass::Temporary,
                    (_, class) => class,
                }
            });
            Outcome::Refused { class, code: u32::from(result.0), taken: std::mem::take(&mut in_flight.taken) }
        };
        let in_flight = self.messages.remove(&token)?;
        if in_flight.given_up
            && matches!(outcome, Outcome::Accepted { .. })
            && in_flight.next < in_flight.segments.len()
        {
            // A late answer to one segment of several does not change how the doubt was settled.
            return None;
        }
        Some(Event::Outcome { link, id: in_flight.message.id, outcome })
    }

    /// Handles a command that the session has given up.
    pub(super) fn on_answer_timeout(&mut self, token: u64, link: LinkId) -> Option<Event> {
        let node = self.node();
        let in_flight = self.messages.get_mut(&token)?;
        in_flight.given_up = true;
        let (_, id) = Self::identity(node, in_flight);
        let known = if matches!(self.target, OutgoingTarget::Gateway(_))
            && in_flight.next + 1 == in_flight.segments.len()
        {
            vec![id]
        } else {
            Vec::new()
        };
        let outcome = Outcome::Unanswered { taken: std::mem::take(&mut in_flight.taken), known };
        let id = in_flight.message.id;
        // A late answer is useful as long as the session remembers the command; the oldest messages are dropped.
        if self.messages.len() > 2048
            && let Some(oldest) = self
                .messages
                .iter()
                .filter(|(_, in_flight)| in_flight.given_up)
                .map(|(token, _)| *token)
                .min()
        {
            self.messages.remove(&oldest);
        }
        Some(Event::Outcome { link, id, outcome })
    }

    /// Returns an outcome for each message that has none, after the connection has ended. `written` octets of the
    /// stream are written.
    pub(super) fn close(self, written: u64, link: LinkId, events: &mut Vec<Event>) {
        let node = self.node();
        let to_gateway = matches!(self.target, OutgoingTarget::Gateway(_));
        let mut messages: Vec<_> =
            self.messages.into_iter().filter(|(_, in_flight)| !in_flight.given_up).collect();
        messages.sort_unstable_by_key(|(token, _)| *token);
        for (_, mut in_flight) in messages {
            let (_, id) = Self::identity(node, &in_flight);
            let taken = std::mem::take(&mut in_flight.taken);
            let left = in_flight.sent.is_some_and(|(begins, _)| begins < written);
            let outcome = match (left, taken.is_empty()) {
                (true, _) => {
                    let last = in_flight.next + 1 == in_flight.segments.len();
                    let known = if to_gateway && last { vec![id] } else { Vec::new() };
                    Outcome::Unanswered { taken, known }
                }
                (false, true) => Outcome::NotSent,
                // Some segments were accepted and the rest was not sent: no doubt, and no error of the peer.
                (false, false) => Outcome::Refused { class: ErrorClass::Temporary, code: 0, taken },
            };
            events.push(Event::Outcome { link, id: in_flight.message.id, outcome });
        }
    }
}

//! Messages on their way over one connection: Submits to a gateway, Delivers and Reports to an SP.

use super::mapping;
use super::options::{GatewayOptions, SpOptions};
use crate::state::LinkRecord;
use engine::Event;
use model::{ErrorClass, Kind, LinkId, Message, Outcome, PeerId, PeerMessageId, Ticket};
use sgip::{Pdu, RequestError, ResultCode, Sequence, Session};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Whom we send to.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// An operator's gateway takes Submits.
    Gateway(Arc<GatewayOptions>),
    /// An SP takes Delivers and Reports.
    Sp {
        /// The account's number.
        peer: PeerId,
        options: Arc<SpOptions>,
    },
}

/// One message on its way. Its parts go one after the other, so that what was refused is not followed by what makes no
/// sense without it.
#[derive(Debug)]
struct Flight {
    message: Arc<Message>,
    ticket: Ticket,
    parts: Vec<Pdu>,
    /// The part that goes next or is unanswered.
    next: usize,
    /// Ids of the parts that were answered well on this connection.
    taken: Vec<PeerMessageId>,
    /// Where in the stream the unanswered part begins, and when it was given to the session.
    sent: Option<(u64, Instant)>,
    /// It was given up; only a late answer can come.
    over: bool,
}

/// Everything under way on a connection that we made.
#[derive(Debug)]
pub(super) struct Outgoing {
    target: Target,
    flights: HashMap<u64, Flight>,
    /// Those with a part to send, in the order in which the engine gave them.
    ready: VecDeque<u64>,
    next: u64,
}

impl Outgoing {
    pub(super) fn new(target: Target) -> Self {
        Self { target, flights: HashMap::new(), ready: VecDeque::new(), next: 1 }
    }

    pub(super) fn peer(&self) -> PeerId {
        match &self.target {
            Target::Gateway(options) => options.peer,
            Target::Sp { peer, .. } => *peer,
        }
    }

    pub(super) fn window(&self) -> usize {
        match &self.target {
            Target::Gateway(options) => options.window,
            Target::Sp { options, .. } => options.window,
        }
    }

    /// As the admin sees it: 1.2 is 0x12.
    pub(super) fn version(&self) -> u8 {
        let dialect = match &self.target {
            Target::Gateway(options) => options.habits.dialect,
            Target::Sp { options, .. } => options.habits.dialect,
        };
        super::version(dialect)
    }

    fn node(&self) -> u32 {
        match &self.target {
            Target::Gateway(options) => options.node,
            Target::Sp { options, .. } => options.node,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.flights.values().all(|flight| flight.over)
    }

    /// Takes a message of the engine's. What cannot be said in SGIP is refused at once.
    pub(super) fn take(
        &mut self,
        message: Arc<Message>,
        leg: u8,
        taken: u16,
        want_receipt: bool,
        ticket: Ticket,
        link: LinkId,
    ) -> Option<Event> {
        let parts = match (&self.target, &message.kind) {
            (Target::Gateway(gateway), _) => mapping::submits(&message, leg, want_receipt, gateway)
                .map(|submits| submits.into_iter().map(Pdu::Submit).collect::<Vec<_>>()),
            (Target::Sp { options, .. }, Kind::Text) => mapping::delivers(&message, &options.habits)
                .map(|delivers| delivers.into_iter().map(Pdu::Deliver).collect()),
            (Target::Sp { options, .. }, Kind::Receipt(text)) => {
                // What was not submitted by SGIP has no sequence that a Report could name.
                mapping::report(&message, text, &options.habits)
                    .map(|report| vec![Pdu::Report(report)])
                    .ok_or(ResultCode::MESSAGE_ID)
            }
        };
        let refused = |code: ResultCode| {
            let outcome =
                Outcome::Refused { class: ErrorClass::Permanent, code: u32::from(code.0), taken: Vec::new() };
            Some(Event::Outcome { link, id: message.id, outcome })
        };
        let parts = match parts {
            Ok(parts) => parts,
            Err(code) => return refused(code),
        };
        let next = usize::from(taken);
        if next >= parts.len() {
            return refused(ResultCode::LENGTH);
        }
        let token = self.next;
        self.next += 1;
        let flight = Flight { message, ticket, parts, next, taken: Vec::new(), sent: None, over: false };
        self.flights.insert(token, flight);
        self.ready.push_back(token);
        None
    }

    /// The sequence of a flight's part, and the id under which a receipt would speak of it.
    fn identity(node: u32, flight: &Flight) -> (Sequence, PeerMessageId) {
        let sequence = mapping::sequence(node, flight.message.id, flight.ticket, flight.next);
        let id = match flight.parts.get(flight.next) {
            Some(Pdu::Submit(submit)) => {
                let user = submit.users.first().map_or(&[][..], |user| &user[..]);
                sgip::peer_message_id(sequence, user)
            }
            _ => PeerMessageId::new(&sequence.octets()),
        };
        (sequence, id)
    }

    /// Gives the session what its window allows. Says whether anything was given.
    pub(super) fn pump(
        &mut self,
        session: &mut Session,
        record: &LinkRecord,
        now: Instant,
        written: u64,
        events: &mut Vec<Event>,
        link: LinkId,
    ) -> bool {
        let mut any = false;
        while session.window_free() > 0
            && let Some(token) = self.ready.pop_front()
        {
            let node = self.node();
            let Some(flight) = self.flights.get_mut(&token) else { continue };
            let (sequence, _) = Self::identity(node, flight);
            let Some(pdu) = flight.parts.get(flight.next) else { continue };
            let begins = written + session.output().len() as u64;
            match session.send(now, token, sequence, pdu) {
                Ok(()) => {
                    record.outbound.named(super::kind(pdu));
                    flight.sent = Some((begins, now));
                    any = true;
                }
                Err(RequestError::SequenceInUse) => {
                    // The earlier hand-over of the same message is still unanswered here: its answer settles both.
                    if let Some(flight) = self.flights.remove(&token) {
                        let outcome = Outcome::Refused {
                            class: ErrorClass::Temporary,
                            code: u32::from(ResultCode::SEQUENCE.0),
                            taken: flight.taken,
                        };
                        events.push(Event::Outcome { link, id: flight.message.id, outcome });
                    }
                }
                Err(RequestError::NotBound | RequestError::WindowFull) => {
                    self.ready.push_front(token);
                    break;
                }
            }
        }
        any
    }

    /// An answer: the next part, or the outcome.
    pub(super) fn answered(
        &mut self,
        record: &LinkRecord,
        now: Instant,
        token: u64,
        result: ResultCode,
        link: LinkId,
    ) -> Option<Event> {
        let node = self.node();
        let flight = self.flights.get_mut(&token)?;
        if let Some((_, at)) = flight.sent.take() {
            record.round_trip(now.saturating_duration_since(at));
        }
        let (_, id) = Self::identity(node, flight);
        let outcome = if result.is_ok() {
            flight.taken.push(id);
            flight.next += 1;
            if flight.next < flight.parts.len() && !flight.over {
                self.ready.push_back(token);
                return None;
            }
            Outcome::Accepted { ids: std::mem::take(&mut flight.taken) }
        } else {
            let (dialect, special) = match &self.target {
                Target::Gateway(options) => {
                    (options.habits.dialect, options.error_classes.get(&result.0).copied())
                }
                Target::Sp { options, .. } => (options.habits.dialect, None),
            };
            let class = special.unwrap_or_else(|| match (&self.target, result.class(dialect)) {
                // An SP that has no use for a message today may have one tomorrow; nothing else can be done with it.
                (Target::Sp { .. }, ErrorClass::Permanent) => ErrorClass::Temporary,
                (_, class) => class,
            });
            Outcome::Refused { class, code: u32::from(result.0), taken: std::mem::take(&mut flight.taken) }
        };
        let flight = self.flights.remove(&token)?;
        if flight.over && matches!(outcome, Outcome::Accepted { .. }) && flight.next < flight.parts.len() {
            // A late answer to one part of several: the doubt about the whole stays as it was settled.
            return None;
        }
        Some(Event::Outcome { link, id: flight.message.id, outcome })
    }

    /// The session has given a command up.
    pub(super) fn unanswered(&mut self, token: u64, link: LinkId) -> Option<Event> {
        let node = self.node();
        let flight = self.flights.get_mut(&token)?;
        flight.over = true;
        let (_, id) = Self::identity(node, flight);
        let known = if matches!(self.target, Target::Gateway(_)) && flight.next + 1 == flight.parts.len() {
            vec![id]
        } else {
            Vec::new()
        };
        let outcome = Outcome::Unanswered { taken: std::mem::take(&mut flight.taken), known };
        let id = flight.message.id;
        // A late answer is of use for as long as the session remembers the command; the oldest are let go.
        if self.flights.len() > 2048
            && let Some(oldest) =
                self.flights.iter().filter(|(_, flight)| flight.over).map(|(token, _)| *token).min()
        {
            self.flights.remove(&oldest);
        }
        Some(Event::Outcome { link, id, outcome })
    }

    /// The connection is gone: an outcome for each message that has none. `written` octets of the stream have left.
    pub(super) fn close(self, written: u64, link: LinkId, events: &mut Vec<Event>) {
        let node = self.node();
        let to_gateway = matches!(self.target, Target::Gateway(_));
        let mut flights: Vec<_> = self.flights.into_iter().filter(|(_, flight)| !flight.over).collect();
        flights.sort_unstable_by_key(|(token, _)| *token);
        for (_, mut flight) in flights {
            let (_, id) = Self::identity(node, &flight);
            let taken = std::mem::take(&mut flight.taken);
            let left = flight.sent.is_some_and(|(begins, _)| begins < written);
            let outcome = match (left, taken.is_empty()) {
                (true, _) => {
                    let last = flight.next + 1 == flight.parts.len();
                    let known = if to_gateway && last { vec![id] } else { Vec::new() };
                    Outcome::Unanswered { taken, known }
                }
                (false, true) => Outcome::NotSent,
                // Some parts are there, and the rest has not been tried: that is no doubt, and no fault of anybody's.
                (false, false) => Outcome::Refused { class: ErrorClass::Temporary, code: 0, taken },
            };
            events.push(Event::Outcome { link, id: flight.message.id, outcome });
        }
    }
}

//! What the engine wants sent over one link, from command to outcome.

use crate::outgoing::{Composed, Style, Validities};
use crate::state::{LinkBrake, LinkRecord};
use engine::Event;
use model::{
    Address, ErrorClass, LinkId, Message, MessageId, Outcome, PeerMessageId, Receipt, ReceiptState, Timestamp,
};
use rustc_hash::FxHashMap;
use smpp::message_id::MessageIdForm;
use smpp::{QuerySm, Request, RequestError, Response, Session, Sm, Status, time};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Marks of requests. A message of one PDU, which is nearly every one, is marked by its own id and needs no table.
mod mark {
    pub(super) const KIND: u64 = 0xFF << 56;
    pub(super) const PART: u64 = 1 << 56;
    pub(super) const QUESTION: u64 = 2 << 56;
}

/// A message that goes in parts, one after the other: the next when the one before it is taken, so that it is always
/// known where to go on.
#[derive(Debug)]
struct Parted {
    id: MessageId,
    parts: VecDeque<Sm>,
    taken: Vec<PeerMessageId>,
    /// The engine was told "unanswered"; only a late answer is still of interest.
    given_up: bool,
}

#[derive(Debug)]
enum Job {
    Send { message: Arc<Message>, leg: u8, taken: u16, want_receipt: bool },
    Part(u64),
    Ask { id: MessageId, peer_id: PeerMessageId, source: Address },
}

/// Messages on their way over one link.
#[derive(Debug)]
pub(crate) struct Outbox {
    link: LinkId,
    style: Style,
    form: MessageIdForm,
    classes: HashMap<u32, ErrorClass>,
    jobs: VecDeque<Job>,
    parted: FxHashMap<u64, Parted>,
    questions: FxHashMap<u64, MessageId>,
    serial: u64,
    /// Requests in the session's output that no octet was written of: where each begins in the stream, and its mark.
    unwritten: VecDeque<(u64, u64)>,
    validities: Validities,
    sample: Option<(u64, Instant)>,
    throttled_at: Option<Instant>,
}

/// How long a "throttled" of the peer's counts as what brakes the link.
const THROTTLE_SHOWN: Duration = Duration::from_secs(1);
/// Messages in parts whose late answers are still awaited.
const GIVEN_UP_KEPT: usize = 1000;

impl Outbox {
    pub(crate) fn new(
        link: LinkId,
        style: Style,
        form: MessageIdForm,
        classes: HashMap<u32, ErrorClass>,
    ) -> Self {
        Self {
            link,
            style,
            form,
            classes,
            jobs: VecDeque::new(),
            parted: FxHashMap::default(),
            questions: FxHashMap::default(),
            serial: 0,
            unwritten: VecDeque::new(),
            validities: Validities::default(),
            sample: None,
            throttled_at: None,
        }
    }

    /// Takes a [`crate::Delivery::Send`].
    pub(crate) fn send(&mut self, message: Arc<Message>, leg: u8, taken: u16, want_receipt: bool) {
        self.jobs.push_back(Job::Send { message, leg, taken, want_receipt });
    }

    /// Takes a [`crate::Delivery::Ask`].
    pub(crate) fn ask(&mut self, id: MessageId, peer_id: PeerMessageId, message: &Message, leg: u8) {
        let source = message.addresses_on(leg).0.clone();
        self.jobs.push_back(Job::Ask { id, peer_id, source });
    }

    /// Whether nothing waits to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Gives the session as much as its window and `room` octets of output hold. `written` is how much of the stream
    /// has left so far. Says whether anything was sent.
    #[allow(clippy::too_many_arguments, reason = "all of it belongs to the link that calls this once a turn")]
    pub(crate) fn pump(
        &mut self,
        session: &mut Session,
        record: &LinkRecord,
        now: Instant,
        wall: Timestamp,
        written: u64,
        room: usize,
        events: &mut Vec<Event>,
    ) -> bool {
        let mut sent = false;
        while session.window_free() > 0
            && session.output().len() < room
            && let Some(job) = self.jobs.pop_front()
        {
            let (mark, request, id) = match job {
                Job::Send { message, leg, taken, want_receipt } => {
                    let id = message.id;
                    match self.style.compose(&message, leg, want_receipt, wall, &mut self.validities) {
                        Ok(Composed::One(sm)) => (id.0, self.request(sm), id),
                        Ok(Composed::Parts(parts)) => {
                            let parts: VecDeque<Sm> = parts.into_iter().skip(usize::from(taken)).collect();
                            self.serial += 1;
                            let parted = Parted { id, parts, taken: Vec::new(), given_up: false };
                            self.parted.insert(self.serial, parted);
                            self.jobs.push_front(Job::Part(self.serial));
                            continue;
                        }
                        Err(status) => {
                            // Our own word, not the peer's: there is no form in which it could take the message.
                            let outcome = Outcome::Refused {
                                class: ErrorClass::Permanent,
                                code: status.0,
                                taken: Vec::new(),
                            };
                            events.push(Event::Outcome { link: self.link, id, outcome });
                            continue;
                        }
                    }
                }
                Job::Part(serial) => {
                    let Some(parted) = self.parted.get_mut(&serial) else { continue };
                    let id = parted.id;
                    match parted.parts.pop_front() {
                        Some(sm) => (mark::PART | serial, self.request(sm), id),
                        None => {
                            self.parted.remove(&serial);
                            let outcome = Outcome::Accepted { ids: Vec::new() };
                            events.push(Event::Outcome { link: self.link, id, outcome });
                            continue;
                        }
                    }
                }
                Job::Ask { id, peer_id, source } => {
                    self.serial += 1;
                    self.questions.insert(self.serial, id);
                    let query = QuerySm { message_id: bytes::Bytes::copy_from_slice(&peer_id.0), source };
                    (mark::QUESTION | self.serial, Request::QuerySm(query), id)
                }
            };
            let start = written + session.output().len() as u64;
            match session.request(now, mark, &request) {
                Ok(_) => {
                    sent = true;
                    record.outbound.request(&request);
                    self.unwritten.push_back((start, mark));
                    if self.sample.is_none() {
                        self.sample = Some((mark, now));
                    }
                }
                Err(RequestError::WindowFull | RequestError::WrongState) => {
                    if let Some(outcome) = self.never_sent(mark) {
                        events.push(Event::Outcome { link: self.link, id, outcome });
                    }
                }
            }
        }
        sent
    }

    fn request(&self, sm: Sm) -> Request {
        if self.style.submits { Request::SubmitSm(sm) } else { Request::DeliverSm(sm) }
    }

    /// So much of the stream has left: what begins before it is no longer certain not to have arrived.
    pub(crate) fn wrote(&mut self, written: u64) {
        while self.unwritten.front().is_some_and(|(start, _)| *start < written) {
            self.unwritten.pop_front();
        }
    }

    fn class(&self, status: Status) -> ErrorClass {
        self.classes.get(&status.0).copied().unwrap_or_else(|| status.class())
    }

    /// The peer's answer, in time or late.
    pub(crate) fn answered(
        &mut self,
        record: &LinkRecord,
        now: Instant,
        mark: u64,
        status: Status,
        response: &Response,
        late: bool,
    ) -> Option<Event> {
        record.inbound.answer(status);
        if let Some((sampled, at)) = self.sample
            && sampled == mark
        {
            self.sample = None;
            record.round_trip(now.saturating_duration_since(at));
        }
        if matches!(status, Status::RTHROTTLED | Status::RMSGQFUL) {
            self.throttled_at = Some(now);
        }
        let serial = mark & !mark::KIND;
        match mark & mark::KIND {
            mark::PART => self.part_answered(serial, status, response, late),
            mark::QUESTION => self.told(serial, status, response),
            _ => {
                let id = MessageId(mark);
                let outcome = if status.is_ok() {
                    Outcome::Accepted { ids: vec![self.form.of_answer(response.message_id())] }
                } else {
                    Outcome::Refused { class: self.class(status), code: status.0, taken: Vec::new() }
                };
                Some(Event::Outcome { link: self.link, id, outcome })
            }
        }
    }

    fn part_answered(
        &mut self,
        serial: u64,
        status: Status,
        response: &Response,
        late: bool,
    ) -> Option<Event> {
        let class = self.class(status);
        let parted = self.parted.get_mut(&serial)?;
        let id = parted.id;
        if status.is_ok() {
            parted.taken.push(self.form.of_answer(response.message_id()));
            if !parted.parts.is_empty() {
                if late || parted.given_up {
                    // The engine already knows it as unanswered; the rest is sent when that doubt is settled.
                    self.parted.remove(&serial);
                    return None;
                }
                self.jobs.push_front(Job::Part(serial));
                return None;
            }
            let parted = self.parted.remove(&serial)?;
            let outcome = Outcome::Accepted { ids: parted.taken };
            return Some(Event::Outcome { link: self.link, id, outcome });
        }
        let parted = self.parted.remove(&serial)?;
        let outcome = Outcome::Refused { class, code: status.0, taken: parted.taken };
        Some(Event::Outcome { link: self.link, id, outcome })
    }

    /// The answer to query_sm. Only "unknown message" is told as such: any other refusal says nothing about the message,
    /// and what the engine hears as unknown it sends again.
    fn told(&mut self, serial: u64, status: Status, response: &Response) -> Option<Event> {
        let id = self.questions.remove(&serial)?;
        if status == Status::RINVMSGID {
            return Some(Event::Told { id, receipt: None });
        }
        let (true, Response::Query(query)) = (status.is_ok(), response) else { return None };
        let state = ReceiptState::from_octet(query.message_state)?;
        let receipt = Receipt {
            id: self.form.of_answer(&query.message_id),
            state,
            intermediate: !state.is_final(),
            error: query.error_code.into(),
            network_error: None,
            done_at: time::parse(&query.final_date, Timestamp::default()).ok().flatten(),
            from: model::AddressBytes::new(),
            to: model::AddressBytes::new(),
        };
        Some(Event::Told { id, receipt: Some(receipt) })
    }

    /// The peer did not answer in time.
    pub(crate) fn unanswered(&mut self, mark: u64) -> Option<Event> {
        if self.sample.is_some_and(|(sampled, _)| sampled == mark) {
            self.sample = None;
        }
        let (id, taken) = self.give_up(mark)?;
        Some(Event::Outcome {
            link: self.link,
            id,
            outcome: Outcome::Unanswered { taken, known: Vec::new() },
        })
    }

    fn give_up(&mut self, mark: u64) -> Option<(MessageId, Vec<PeerMessageId>)> {
        let serial = mark & !mark::KIND;
        match mark & mark::KIND {
            mark::PART => {
                if self.parted.len() > GIVEN_UP_KEPT {
                    self.parted.retain(|_, parted| !parted.given_up);
                }
                let parted = self.parted.get_mut(&serial)?;
                parted.given_up = true;
                Some((parted.id, parted.taken.clone()))
            }
            mark::QUESTION => {
                // A question that is not answered leaves everything as it was.
                self.questions.remove(&serial);
                None
            }
            _ => Some((MessageId(mark), Vec::new())),
        }
    }

    /// The outcome of a request that was not made, or whose octets did not leave.
    fn never_sent(&mut self, mark: u64) -> Option<Outcome> {
        let serial = mark & !mark::KIND;
        match mark & mark::KIND {
            mark::PART => {
                let parted = self.parted.remove(&serial)?;
                Some(rest_not_sent(parted.taken))
            }
            mark::QUESTION => {
                self.questions.remove(&serial);
                None
            }
            _ => Some(Outcome::NotSent),
        }
    }

    /// What limits this link now.
    pub(crate) fn brake(&self, session: &Session, now: Instant) -> LinkBrake {
        if self.throttled_at.is_some_and(|at| now.saturating_duration_since(at) < THROTTLE_SHOWN) {
            LinkBrake::PeerThrottles
        } else if session.window_free() == 0 {
            LinkBrake::PeerWindow
        } else {
            LinkBrake::None
        }
    }

    /// The connection is gone. `pending` are the marks of all requests without an answer.
    pub(crate) fn close(&mut self, pending: Vec<u64>, events: &mut Vec<Event>) {
        let unwritten: rustc_hash::FxHashSet<u64> = self.unwritten.drain(..).map(|(_, mark)| mark).collect();
        let link = self.link;
        for mark in pending {
            if unwritten.contains(&mark) {
                let id = match mark & mark::KIND {
                    mark::PART => self.parted.get(&(mark & !mark::KIND)).map(|parted| parted.id),
                    _ => Some(MessageId(mark)),
                };
                if let (Some(outcome), Some(id)) = (self.never_sent(mark), id) {
                    events.push(Event::Outcome { link, id, outcome });
                }
            } else if let Some(event) = self.unanswered(mark) {
                events.push(event);
            }
        }
        while let Some(job) = self.jobs.pop_front() {
            match job {
                Job::Send { message, .. } => {
                    events.push(Event::Outcome { link, id: message.id, outcome: Outcome::NotSent });
                }
                Job::Part(serial) => {
                    if let Some(parted) = self.parted.remove(&serial).filter(|parted| !parted.given_up) {
                        let outcome = rest_not_sent(parted.taken);
                        events.push(Event::Outcome { link, id: parted.id, outcome });
                    }
                }
                Job::Ask { .. } => {}
            }
        }
    }
}

/// The outcome of a message whose next part did not leave: nothing is in doubt, and what was taken must not be sent
/// again, which only a (temporary) refusal can say.
fn rest_not_sent(taken: Vec<PeerMessageId>) -> Outcome {
    if taken.is_empty() {
        return Outcome::NotSent;
    }
    Outcome::Refused { class: ErrorClass::Temporary, code: Status::RSYSERR.0, taken }
}

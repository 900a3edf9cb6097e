//! The send queue of one link: from a command of the engine to the outcome.

use crate::message_to_pdu::{MessagePdus, PduStyle, ValidityFormatter};
use crate::request_context::pdu_kind;
use engine::Event;
use model::{
    Address, Dlr, DlrState, ErrorClass, LinkId, Message, MessageId, Outcome, PeerMessageId, Timestamp,
};
use ports::link::{Link, LinkBlocker, LinkRecord};
use rustc_hash::FxHashMap;
use smpp::message_id::MessageIdForm;
use smpp::{CommandStatus, QuerySm, Request, RequestError, Response, Session, Sm, time};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Kinds of request tokens. The token of a message with one PDU, the common case, is the message id and needs no
/// table.
mod token_kind {
    pub(super) const MASK: u64 = 0xFF << 56;
    pub(super) const SEGMENT: u64 = 1 << 56;
    pub(super) const QUERY: u64 = 2 << 56;
}

/// A concatenated message. Its segments are sent one after the other, each after the answer to the previous one, so the
/// next segment to send is always known.
#[derive(Debug)]
struct SegmentedMessage {
    id: MessageId,
    segments: VecDeque<Sm>,
    taken: Vec<PeerMessageId>,
    /// Whether the outcome "unanswered" is reported already, so that only a late answer matters.
    given_up: bool,
}

#[derive(Debug)]
enum SendJob {
    Send { message: Arc<Message>, leg: u8, taken: u16, want_dlr: bool },
    Segment(u64),
    Query { id: MessageId, peer_id: PeerMessageId, source: Address },
}

/// The messages in progress on one link.
#[derive(Debug)]
pub(crate) struct SendQueue {
    link: LinkId,
    style: PduStyle,
    message_id_form: MessageIdForm,
    error_classes: HashMap<u32, ErrorClass>,
    jobs: VecDeque<SendJob>,
    segmented: FxHashMap<u64, SegmentedMessage>,
    queries: FxHashMap<u64, MessageId>,
    serial: u64,
    /// Requests in the session's output that are not written at all: their offset in the stream, and their token.
    unwritten: VecDeque<(u64, u64)>,
    validity_formatter: ValidityFormatter,
    round_trip_sample: Option<(u64, Instant)>,
    throttled_at: Option<Instant>,
}

/// Time for which "throttled" is reported as the link's blocker after the peer sent it.
const THROTTLE_REPORT_PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of concatenated messages whose late answers are awaited.
const MAX_GIVEN_UP: usize = 1000;

impl SendQueue {
    pub(crate) fn new(
        link: LinkId,
        style: PduStyle,
        message_id_form: MessageIdForm,
        error_classes: HashMap<u32, ErrorClass>,
    ) -> Self {
        Self {
            link,
            style,
            message_id_form,
            error_classes,
            jobs: VecDeque::new(),
            segmented: FxHashMap::default(),
            queries: FxHashMap::default(),
            serial: 0,
            unwritten: VecDeque::new(),
            validity_formatter: ValidityFormatter::default(),
            round_trip_sample: None,
            throttled_at: None,
        }
    }

    /// Enqueues a [`ports::LinkCommand::Send`].
    pub(crate) fn send(&mut self, message: Arc<Message>, leg: u8, taken: u16, want_dlr: bool) {
        self.jobs.push_back(SendJob::Send { message, leg, taken, want_dlr });
    }

    /// Enqueues a [`ports::LinkCommand::QueryPeer`].
    pub(crate) fn query(&mut self, id: MessageId, peer_id: PeerMessageId, message: &Message, leg: u8) {
        let source = message.addresses_on(leg).0.clone();
        self.jobs.push_back(SendJob::Query { id, peer_id, source });
    }

    /// Whether nothing waits to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Passes as many requests to the session as its window and the output limit permit. Returns whether anything was
    /// sent.
    pub(crate) fn fill_window(&mut self, session: &mut Session, link: &mut Link) -> bool {
        let (now, wall, max_output) = (link.now, link.wall, link.deps.output_limit());
        let events = &mut link.events;
        let mut sent = false;
        while session.window_free() > 0
            && session.output().len() < max_output
            && let Some(job) = self.jobs.pop_front()
        {
            let (token, request, id) = match job {
                SendJob::Send { message, leg, taken, want_dlr } => {
                    let id = message.id;
                    match self.style.compose(&message, leg, want_dlr, wall, &mut self.validity_formatter) {
                        Ok(MessagePdus::Single(sm)) => (id.0, self.request(sm), id),
                        Ok(MessagePdus::Segments(segments)) => {
                            let segments: VecDeque<Sm> =
                                segments.into_iter().skip(usize::from(taken)).collect();
                            self.serial += 1;
                            let segmented =
                                SegmentedMessage { id, segments, taken: Vec::new(), given_up: false };
                            self.segmented.insert(self.serial, segmented);
                            self.jobs.push_front(SendJob::Segment(self.serial));
                            continue;
                        }
                        Err(status) => {
                            // The refusal is ours, not the peer's: no form of the message fits the link.
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
                SendJob::Segment(serial) => {
                    let Some(segmented) = self.segmented.get_mut(&serial) else { continue };
                    let id = segmented.id;
                    match segmented.segments.pop_front() {
                        Some(sm) => (token_kind::SEGMENT | serial, self.request(sm), id),
                        None => {
                            self.segmented.remove(&serial);
                            let outcome = Outcome::Accepted { ids: Vec::new() };
                            events.push(Event::Outcome { link: self.link, id, outcome });
                            continue;
                        }
                    }
                }
                SendJob::Query { id, peer_id, source } => {
                    self.serial += 1;
                    self.queries.insert(self.serial, id);
                    let query = QuerySm { message_id: bytes::Bytes::copy_from_slice(&peer_id.0), source };
                    (token_kind::QUERY | self.serial, Request::QuerySm(query), id)
                }
            };
            let start = link.written + session.output().len() as u64;
            match session.request(now, token, &request) {
                Ok(_) => {
                    sent = true;
                    link.record.outbound.count(pdu_kind(request.command()));
                    self.unwritten.push_back((start, token));
                    if self.round_trip_sample.is_none() {
                        self.round_trip_sample = Some((token, now));
                    }
                }
                Err(RequestError::WindowFull | RequestError::WrongState) => {
                    if let Some(outcome) = self.not_sent_outcome(token) {
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

    /// Records that `written` octets of the stream are written: requests that begin before that offset may have
    /// arrived.
    pub(crate) fn on_written(&mut self, written: u64) {
        while self.unwritten.front().is_some_and(|(start, _)| *start < written) {
            self.unwritten.pop_front();
        }
    }

    fn class(&self, status: CommandStatus) -> ErrorClass {
        self.error_classes.get(&status.0).copied().unwrap_or_else(|| status.class())
    }

    /// Handles the peer's answer, on time or late.
    pub(crate) fn on_response(
        &mut self,
        record: &LinkRecord,
        now: Instant,
        token: u64,
        status: CommandStatus,
        response: &Response,
        late: bool,
    ) -> Option<Event> {
        record.inbound.count_answer(status.0);
        if let Some((sampled, at)) = self.round_trip_sample
            && sampled == token
        {
            self.round_trip_sample = None;
            record.record_round_trip(now.saturating_duration_since(at));
        }
        if matches!(status, CommandStatus::RTHROTTLED | CommandStatus::RMSGQFUL) {
            self.throttled_at = Some(now);
        }
        let serial = token & !token_kind::MASK;
        match token & token_kind::MASK {
            token_kind::SEGMENT => self.segment_answered(serial, status, response, late),
            token_kind::QUERY => self.query_answered(serial, status, response),
            _ => {
                let id = MessageId(token);
                let outcome = if status.is_ok() {
                    Outcome::Accepted { ids: vec![self.message_id_form.from_response(response.message_id())] }
                } else {
                    Outcome::Refused { class: self.class(status), code: status.0, taken: Vec::new() }
                };
                Some(Event::Outcome { link: self.link, id, outcome })
            }
        }
    }

    fn segment_answered(
        &mut self,
        serial: u64,
        status: CommandStatus,
        response: &Response,
        late: bool,
    ) -> Option<Event> {
        let class = self.class(status);
        let segmented = self.segmented.get_mut(&serial)?;
        let id = segmented.id;
        if status.is_ok() {
            segmented.taken.push(self.message_id_form.from_response(response.message_id()));
            if !segmented.segments.is_empty() {
                if late || segmented.given_up {
                    // The engine has counted the message as unanswered. The other segments are sent after that
                    // uncertainty is settled.
                    self.segmented.remove(&serial);
                    return None;
                }
                self.jobs.push_front(SendJob::Segment(serial));
                return None;
            }
            let segmented = self.segmented.remove(&serial)?;
            let outcome = Outcome::Accepted { ids: segmented.taken };
            return Some(Event::Outcome { link: self.link, id, outcome });
        }
        let segmented = self.segmented.remove(&serial)?;
        let outcome = Outcome::Refused { class, code: status.0, taken: segmented.taken };
        Some(Event::Outcome { link: self.link, id, outcome })
    }

    /// Handles the answer to query_sm. Only "unknown message" is reported as unknown, since the engine then sends the
    /// message again. Any other refusal says nothing about the message.
    fn query_answered(&mut self, serial: u64, status: CommandStatus, response: &Response) -> Option<Event> {
        let id = self.queries.remove(&serial)?;
        if status == CommandStatus::RINVMSGID {
            return Some(Event::QueryResult { id, dlr: None });
        }
        let (true, Response::Query(query)) = (status.is_ok(), response) else { return None };
        let state = DlrState::from_octet(query.message_state)?;
        let dlr = Dlr {
            id: self.message_id_form.from_response(&query.message_id),
            state,
            intermediate: !state.is_final(),
            error: query.error_code.into(),
            network_error: None,
            done_at: time::parse(&query.final_date, Timestamp::default()).ok().flatten(),
            from: model::AddressBytes::new(),
            to: model::AddressBytes::new(),
        };
        Some(Event::QueryResult { id, dlr: Some(dlr) })
    }

    /// Handles a request that the peer did not answer in time.
    pub(crate) fn on_response_timeout(&mut self, token: u64) -> Option<Event> {
        if self.round_trip_sample.is_some_and(|(sampled, _)| sampled == token) {
            self.round_trip_sample = None;
        }
        let (id, taken) = self.give_up(token)?;
        Some(Event::Outcome {
            link: self.link,
            id,
            outcome: Outcome::Unanswered { taken, known: Vec::new() },
        })
    }

    fn give_up(&mut self, token: u64) -> Option<(MessageId, Vec<PeerMessageId>)> {
        let serial = token & !token_kind::MASK;
        match token & token_kind::MASK {
            token_kind::SEGMENT => {
                if self.segmented.len() > MAX_GIVEN_UP {
                    self.segmented.retain(|_, segmented| !segmented.given_up);
                }
                let segmented = self.segmented.get_mut(&serial)?;
                segmented.given_up = true;
                Some((segmented.id, segmented.taken.clone()))
            }
            token_kind::QUERY => {
                // An unanswered query changes nothing.
                self.queries.remove(&serial);
                None
            }
            _ => Some((MessageId(token), Vec::new())),
        }
    }

    /// The outcome of a request that was not made, or of which no octet was written.
    fn not_sent_outcome(&mut self, token: u64) -> Option<Outcome> {
        let serial = token & !token_kind::MASK;
        match token & token_kind::MASK {
            token_kind::SEGMENT => {
                let segmented = self.segmented.remove(&serial)?;
                Some(unsent_segments_outcome(segmented.taken))
            }
            token_kind::QUERY => {
                self.queries.remove(&serial);
                None
            }
            _ => Some(Outcome::NotSent),
        }
    }

    /// The present blocker of this link.
    pub(crate) fn blocked_by(&self, session: &Session, now: Instant) -> LinkBlocker {
        if self.throttled_at.is_some_and(|at| now.saturating_duration_since(at) < THROTTLE_REPORT_PERIOD) {
            LinkBlocker::PeerThrottles
        } else if session.window_free() == 0 {
            LinkBlocker::PeerWindow
        } else {
            LinkBlocker::None
        }
    }

    /// After the end of the connection: reports the outcome of all messages. `pending` are the tokens of the unanswered
    /// requests.
    pub(crate) fn close(&mut self, pending: Vec<u64>, events: &mut Vec<Event>) {
        let unwritten: rustc_hash::FxHashSet<u64> =
            self.unwritten.drain(..).map(|(_, token)| token).collect();
        let link = self.link;
        for token in pending {
            if unwritten.contains(&token) {
                let id = match token & token_kind::MASK {
                    token_kind::SEGMENT => {
                        self.segmented.get(&(token & !token_kind::MASK)).map(|segmented| segmented.id)
                    }
                    _ => Some(MessageId(token)),
                };
                if let (Some(outcome), Some(id)) = (self.not_sent_outcome(token), id) {
                    events.push(Event::Outcome { link, id, outcome });
                }
            } else if let Some(event) = self.on_response_timeout(token) {
                events.push(event);
            }
        }
        while let Some(job) = self.jobs.pop_front() {
            match job {
                SendJob::Send { message, .. } => {
                    events.push(Event::Outcome { link, id: message.id, outcome: Outcome::NotSent });
                }
                SendJob::Segment(serial) => {
                    if let Some(segmented) =
                        self.segmented.remove(&serial).filter(|segmented| !segmented.given_up)
                    {
                        let outcome = unsent_segments_outcome(segmented.taken);
                        events.push(Event::Outcome { link, id: segmented.id, outcome });
                    }
                }
                SendJob::Query { .. } => {}
            }
        }
    }
}

/// The outcome of a message whose next segment was not sent. Nothing is uncertain, and the accepted segments must not
/// be sent again; only a temporary refusal can express that.
fn unsent_segments_outcome(taken: Vec<PeerMessageId>) -> Outcome {
    if taken.is_empty() {
        return Outcome::NotSent;
    }
    Outcome::Refused { class: ErrorClass::Temporary, code: CommandStatus::RSYSERR.0, taken }
}

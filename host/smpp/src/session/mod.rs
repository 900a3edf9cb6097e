//! One SMPP connection, seen from our side of the socket.

mod input;
mod options;
mod timer;

pub use options::{ClientOptions, Options, Version};
pub use timer::Timer;

use crate::pdu::{self, AlertNotification, Bind, BindMode, CommandId, Header, Outbind, Request, Response};
use crate::{Status, Tlvs, tag};
use bytes::{Bytes, BytesMut};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::Instant;
use timer::TimerTable;

/// Something the owner must know.
#[derive(Debug)]
pub enum Event {
    /// Server: a bind to judge, by [`Session::accept_bind`] or [`Session::refuse_bind`].
    Bind(Bind),
    /// Client: the bind was accepted.
    Bound {
        /// What the peer calls itself.
        system_id: Bytes,
        /// Its sc_interface_version, where it showed one.
        version: Option<Version>,
    },
    /// Client: the bind was refused. [`Event::Closing`] follows.
    BindRefused(Status),
    /// Client: the SMSC asked us to bind, with the right password; our bind has been sent.
    Outbind(Outbind),
    /// A request to answer with [`Session::respond`].
    Request {
        /// The number to answer with.
        sequence: u32,
        /// What is asked.
        request: Request,
    },
    /// The answer to a request of ours.
    Answer {
        /// The owner's mark of the request.
        token: u64,
        /// How it went.
        status: Status,
        /// The body.
        response: Response,
        /// It comes after [`Event::Unanswered`].
        late: bool,
    },
    /// A request of ours was not answered in time. Its answer may still come.
    Unanswered {
        /// The owner's mark of the request.
        token: u64,
    },
    /// A subscriber has become available; there is nothing to answer.
    Alert(AlertNotification),
    /// Something odd, for the log.
    Noted(Note),
    /// The session has ended: write what is in [`Session::output`], then close the connection.
    Closing(CloseReason),
}

/// Something odd that a peer did. Never carries message text or numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// What was wrong.
    pub what: &'static str,
    /// In which PDU.
    pub command: CommandId,
    /// Its sequence number.
    pub sequence: u32,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The peer unbound.
    PeerUnbound,
    /// We unbound.
    Unbound,
    /// A length that no PDU can have.
    BadLength,
    /// No bind in time.
    NoBind,
    /// A PDU that never became whole.
    Partial,
    /// No sign of life.
    Dead,
    /// Silence.
    Inactive,
    /// The bind was refused.
    Refused,
    /// An outbind with a wrong password.
    WrongOutbind,
}

impl CloseReason {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PeerUnbound => "the peer unbound",
            Self::Unbound => "we unbound",
            Self::BadLength => "impossible PDU length",
            Self::NoBind => "no bind in time",
            Self::Partial => "a PDU stayed incomplete",
            Self::Dead => "no sign of life",
            Self::Inactive => "silent for too long",
            Self::Refused => "bind refused",
            Self::WrongOutbind => "outbind with a wrong password",
        }
    }
}

/// Where a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionState {
    /// Connected; nobody has bound.
    Open,
    /// Client: our bind is sent.
    Binding {
        /// Its sequence number.
        sequence: u32,
    },
    /// Server: a bind waits for the owner's judgement.
    Judging {
        /// What it asks for.
        mode: BindMode,
        /// Its sequence number.
        sequence: u32,
    },
    /// Bound.
    Bound {
        /// As what.
        mode: BindMode,
        /// What the peer speaks.
        version: Version,
    },
    /// We have sent unbind; `mode` still says what may come in.
    Unbinding {
        /// As what it was bound.
        mode: BindMode,
        /// The unbind's sequence number.
        sequence: u32,
    },
    /// The peer has sent unbind; its earlier requests are being answered.
    PeerUnbinding {
        /// The unbind's sequence number.
        sequence: u32,
    },
    /// Over.
    Closed(CloseReason),
}

/// Why a request cannot be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// As many requests are unanswered as may be.
    #[error("the window is full")]
    WindowFull,
    /// Not bound, or not in the mode that allows it, or already unbinding.
    #[error("the session's state does not allow it")]
    WrongState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Server,
    Client,
}

/// One SMPP connection, seen from our side of the socket.
///
/// Feed it bytes and the time; it answers with events for the owner and bytes for the peer. It never blocks, never reads
/// a clock, holds at most `window_out` unanswered requests of ours, `window_in` of the peer's, and a bounded backlog.
#[derive(Debug)]
pub struct Session {
    role: Role,
    options: Options,
    client: Option<ClientOptions>,
    state: SessionState,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event>,
    timers: TimerTable,
    next_sequence: u32,
    pending: FxHashMap<u32, u64>,
    /// Requests of ours in the order in which they were sent; answered ones are passed over.
    sent: VecDeque<(Instant, u32)>,
    /// Requests that were given up, whose answers may still come.
    late: FxHashMap<u32, u64>,
    late_order: VecDeque<u32>,
    enquiry: Option<u32>,
    misses: u32,
    heard_at: Instant,
    /// Requests of the peer's that our owner has not answered.
    unanswered_in: usize,
    backlog: VecDeque<(Header, Bytes)>,
    backlog_octets: usize,
}

/// Answers that are still looked for after they were given up.
const LATE_LIMIT: usize = 10_000;

impl Session {
    /// A connection that a peer made to us.
    #[must_use]
    pub fn server(now: Instant, options: Options) -> Self {
        let mut session = Self::new(Role::Server, now, options, None);
        session.timers.set(Timer::Init, now + session.options.init_timeout);
        session
    }

    /// A connection that we made to a peer; our bind is in the output at once, unless an outbind is awaited.
    #[must_use]
    pub fn client(now: Instant, options: ClientOptions) -> Self {
        let waits = options.await_outbind.is_some();
        let mut session = Self::new(Role::Client, now, options.options.clone(), Some(options));
        session.timers.set(Timer::Init, now + session.options.init_timeout);
        if !waits {
            session.send_bind();
        }
        session
    }

    fn new(role: Role, now: Instant, options: Options, client: Option<ClientOptions>) -> Self {
        Self {
            role,
            options,
            client,
            state: SessionState::Open,
            input: BytesMut::new(),
            output: BytesMut::new(),
            events: VecDeque::new(),
            timers: TimerTable::default(),
            next_sequence: 1,
            pending: FxHashMap::default(),
            sent: VecDeque::new(),
            late: FxHashMap::default(),
            late_order: VecDeque::new(),
            enquiry: None,
            misses: 0,
            heard_at: now,
            unanswered_in: 0,
            backlog: VecDeque::new(),
            backlog_octets: 0,
        }
    }

    fn send_bind(&mut self) {
        let Some(bind) = self.client.as_ref().map(|client| client.bind.clone()) else { return };
        let sequence = self.take_sequence();
        self.state = SessionState::Binding { sequence };
        pdu::encode_request(&mut self.output, sequence, &Request::Bind(bind));
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// As what it is bound, if it is.
    #[must_use]
    pub fn bound_as(&self) -> Option<BindMode> {
        match self.state {
            SessionState::Bound { mode, .. } => Some(mode),
            _ => None,
        }
    }

    /// What the peer speaks; 3.4 while that is not known.
    #[must_use]
    pub fn version(&self) -> Version {
        match self.state {
            SessionState::Bound { version, .. } => version,
            _ => Version::V34,
        }
    }

    /// The next thing the owner must know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Bytes for the peer. The owner takes out what it has written.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Requests of ours that are unanswered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Requests that may still be sent before the window is full.
    #[must_use]
    pub fn window_free(&self) -> usize {
        self.options.window_out.saturating_sub(self.pending.len())
    }

    /// Changes how many requests of ours may be unanswered.
    pub fn set_window_out(&mut self, window: usize) {
        self.options.window_out = window.max(1);
    }

    /// Changes how many requests of the peer's may be unanswered.
    pub fn set_window_in(&mut self, window: usize) {
        self.options.window_in = window.max(1);
    }

    /// Requests of the peer's that wait for our owner's answer.
    #[must_use]
    pub fn unanswered_in(&self) -> usize {
        self.unanswered_in
    }

    /// When [`Session::on_timeout`] wants to be called, at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn take_sequence(&mut self) -> u32 {
        let sequence = self.next_sequence;
        self.next_sequence = if sequence >= 0x7FFF_FFFF { 1 } else { sequence + 1 };
        sequence
    }

    /// Sends a request. `token` is the owner's mark for it and comes back with the answer.
    ///
    /// # Errors
    /// When the window is full, or the state does not allow the request.
    pub fn request(&mut self, now: Instant, token: u64, request: &Request) -> Result<u32, RequestError> {
        let SessionState::Bound { mode, version } = self.state else { return Err(RequestError::WrongState) };
        let allowed = match (self.role, request) {
            (Role::Server, Request::DeliverSm(_)) => mode.receives(),
            (_, Request::DataSm(_)) => true,
            (
                Role::Client,
                Request::SubmitSm(_)
                | Request::SubmitMulti(_)
                | Request::QuerySm(_)
                | Request::CancelSm(_)
                | Request::ReplaceSm(_)
                | Request::BroadcastSm(_)
                | Request::QueryBroadcastSm(_)
                | Request::CancelBroadcastSm(_),
            ) => mode.transmits(),
            _ => false,
        };
        if !allowed {
            return Err(RequestError::WrongState);
        }
        if self.pending.len() >= self.options.window_out {
            return Err(RequestError::WindowFull);
        }
        let mut sequence = self.take_sequence();
        while self.pending.contains_key(&sequence) {
            sequence = self.take_sequence();
        }
        // The entry is made before the bytes exist: no answer can come before it.
        self.pending.insert(sequence, token);
        self.sent.push_back((now, sequence));
        self.timers.set_if_stopped(Timer::Response, now + self.options.response_timeout);
        match request {
            Request::SubmitSm(sm) | Request::DeliverSm(sm)
                if !version.takes_tlvs() && !sm.tlvs.is_empty() =>
            {
                let mut plain = sm.clone();
                plain.tlvs = Tlvs::default();
                let plain = match request {
                    Request::DeliverSm(_) => Request::DeliverSm(plain),
                    _ => Request::SubmitSm(plain),
                };
                pdu::encode_request(&mut self.output, sequence, &plain);
            }
            _ => pdu::encode_request(&mut self.output, sequence, request),
        }
        Ok(sequence)
    }

    /// Answers a request of the peer's.
    pub fn respond(&mut self, command: CommandId, sequence: u32, status: Status, response: &Response) {
        self.unanswered_in = self.unanswered_in.saturating_sub(1);
        if matches!(self.state, SessionState::Closed(_)) {
            return;
        }
        self.put_response(command, sequence, status, response);
        if let SessionState::PeerUnbinding { sequence } = self.state
            && self.unanswered_in == 0
            && self.backlog.is_empty()
        {
            self.answer_unbind(sequence);
        }
    }

    fn put_response(&mut self, command: CommandId, sequence: u32, status: Status, response: &Response) {
        let stripped = match response {
            Response::MessageId { id, tlvs } if !tlvs.is_empty() && !self.version().takes_tlvs() => {
                Some(Response::id(id.clone()))
            }
            _ => None,
        };
        let response = stripped.as_ref().unwrap_or(response);
        pdu::encode_response(&mut self.output, command.response(), status, sequence, response);
    }

    fn answer_unbind(&mut self, sequence: u32) {
        pdu::encode_response(
            &mut self.output,
            CommandId::UNBIND.response(),
            Status::ROK,
            sequence,
            &Response::Empty,
        );
        self.end(CloseReason::PeerUnbound);
    }

    /// Server: accepts the bind that was reported.
    pub fn accept_bind(&mut self, now: Instant, version: Version) {
        let SessionState::Judging { mode, sequence } = self.state else { return };
        self.state = SessionState::Bound { mode, version };
        let tlvs = if version.takes_tlvs() {
            Tlvs::default().with(tag::SC_INTERFACE_VERSION, &[self.options.interface_version])
        } else {
            Tlvs::default()
        };
        let response = Response::Bind { system_id: self.options.system_id.clone(), tlvs };
        pdu::encode_response(&mut self.output, mode.command().response(), Status::ROK, sequence, &response);
        self.start_watching(now);
    }

    /// Server: refuses the bind that was reported, and ends the session.
    pub fn refuse_bind(&mut self, status: Status) {
        let SessionState::Judging { mode, sequence } = self.state else { return };
        pdu::encode_response(&mut self.output, mode.command().response(), status, sequence, &Response::Empty);
        self.end(CloseReason::Refused);
    }

    fn start_watching(&mut self, now: Instant) {
        self.timers.stop(Timer::Init);
        self.heard_at = now;
        self.timers.set(Timer::Enquire, now + self.options.enquire_interval);
        self.timers.set(Timer::Inactivity, now + self.options.inactivity);
    }

    /// Takes leave: no new requests from here on, what comes is still answered.
    pub fn unbind(&mut self, now: Instant) {
        match self.state {
            SessionState::Bound { mode, .. } => {
                let sequence = self.take_sequence();
                self.state = SessionState::Unbinding { mode, sequence };
                pdu::encode_request(&mut self.output, sequence, &Request::Unbind);
                self.timers.set(Timer::Unbind, now + self.options.unbind_timeout);
            }
            SessionState::Open | SessionState::Binding { .. } | SessionState::Judging { .. } => {
                self.end(CloseReason::Unbound);
            }
            SessionState::Unbinding { .. } | SessionState::PeerUnbinding { .. } | SessionState::Closed(_) => {
            }
        }
    }

    fn end(&mut self, reason: CloseReason) {
        if matches!(self.state, SessionState::Closed(_)) {
            return;
        }
        self.state = SessionState::Closed(reason);
        self.timers.stop_all();
        self.input.clear();
        self.backlog.clear();
        self.backlog_octets = 0;
        self.events.push_back(Event::Closing(reason));
    }

    /// The connection is gone: the marks of all requests of ours that nobody has answered.
    pub fn close(&mut self) -> Vec<u64> {
        let mut tokens: Vec<(u32, u64)> = self.pending.drain().collect();
        tokens.sort_unstable();
        self.timers.stop_all();
        tokens.into_iter().map(|(_, token)| token).collect()
    }

    /// Does what is due.
    pub fn on_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Init => self.end(CloseReason::NoBind),
                Timer::Partial => self.end(CloseReason::Partial),
                Timer::Unbind => {
                    let reason = match self.state {
                        SessionState::PeerUnbinding { .. } => CloseReason::PeerUnbound,
                        _ => CloseReason::Unbound,
                    };
                    self.end(reason);
                }
                Timer::Enquire => self.enquire(now),
                Timer::Response => self.give_up(now),
                Timer::Inactivity => {
                    let until = self.heard_at + self.options.inactivity;
                    if until > now {
                        self.timers.set(Timer::Inactivity, until);
                    } else {
                        let sequence = self.take_sequence();
                        pdu::encode_request(&mut self.output, sequence, &Request::Unbind);
                        self.end(CloseReason::Inactive);
                    }
                }
            }
        }
    }

    fn enquire(&mut self, now: Instant) {
        if self.enquiry.is_some()
            && now.saturating_duration_since(self.heard_at) >= self.options.enquire_timeout
        {
            self.misses += 1;
            if self.misses >= self.options.enquire_misses {
                self.end(CloseReason::Dead);
                return;
            }
        }
        let silent_until = self.heard_at + self.options.enquire_interval;
        if self.misses == 0 && silent_until > now {
            self.timers.set(Timer::Enquire, silent_until);
            return;
        }
        if self.bound_as().is_some() {
            let sequence = self.take_sequence();
            self.enquiry = Some(sequence);
            pdu::encode_request(&mut self.output, sequence, &Request::EnquireLink);
            self.timers.set(Timer::Enquire, now + self.options.enquire_timeout);
        }
    }

    /// Gives up requests that have waited too long; what they became is now uncertain.
    fn give_up(&mut self, now: Instant) {
        while let Some((at, sequence)) = self.sent.front().copied() {
            if self.pending.contains_key(&sequence) {
                let until = at + self.options.response_timeout;
                if until > now {
                    self.timers.set(Timer::Response, until);
                    return;
                }
                if let Some(token) = self.pending.remove(&sequence) {
                    self.late.insert(sequence, token);
                    self.late_order.push_back(sequence);
                    self.events.push_back(Event::Unanswered { token });
                }
                if self.late_order.len() > LATE_LIMIT
                    && let Some(oldest) = self.late_order.pop_front()
                {
                    self.late.remove(&oldest);
                }
            }
            self.sent.pop_front();
        }
    }
}

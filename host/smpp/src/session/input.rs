//! What comes in: cutting out PDUs, and what each may do in which state.

use super::state::Role;
use super::window::Answered;
use super::{CloseReason, Event, Note, Session, SessionState, Timer, Version, WhenFull};
use crate::pdu::{self, BindMode, CommandId, Frame, Header, Request, Response};
use crate::{Status, tag};
use bytes::{Bytes, BytesMut};
use std::time::Instant;

impl Session {
    /// The buffer that the owner may read the socket into; [`Session::process`] then looks at it.
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Takes bytes as they came off the socket, in any split.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.process(now);
    }

    /// Whether the owner should go on reading. If not, a bind is being judged, or the peer's window and our backlog are
    /// full: its next bytes wait in its own socket.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        match self.state {
            SessionState::Judging { .. } | SessionState::Closed(_) => false,
            _ => self.backlog_octets < self.options.backlog,
        }
    }

    /// Looks at what is in the input. To be called again after answers were given: requests may wait for the window.
    pub fn process(&mut self, now: Instant) {
        self.work_off_backlog();
        while self.wants_input() {
            let limit = self.limit();
            match Frame::cut(&mut self.input, limit) {
                Frame::Whole(header, body) => {
                    self.watch.heard(now);
                    self.timers.stop(Timer::Partial);
                    self.handle(now, header, body);
                }
                Frame::Incomplete => {
                    if !self.input.is_empty() && !self.timers.is_set(Timer::Partial) {
                        self.timers.set_after(Timer::Partial, now, self.options.partial_timeout);
                    }
                    return;
                }
                Frame::Impossible(header) => {
                    self.note("impossible PDU length", header);
                    if !header.command.is_response() {
                        self.nack(Status::RINVCMDLEN, header.sequence);
                    }
                    self.end(CloseReason::BadLength);
                }
            }
        }
        if self.state.is_closed() {
            // Whatever still comes is ignored, and not kept.
            self.input.clear();
        }
    }

    /// The longest PDU that is taken now.
    fn limit(&self) -> u32 {
        match self.state {
            SessionState::Open | SessionState::Binding { .. } | SessionState::Judging { .. } => {
                self.options.limit_before_bind
            }
            _ => self.options.limit_after_bind,
        }
    }

    fn work_off_backlog(&mut self) {
        while self.unanswered_in < self.options.window_in
            && let Some((header, body)) = self.backlog.pop_front()
        {
            self.backlog_octets = self.backlog_octets.saturating_sub(header.length as usize);
            self.message_request(header, body);
        }
        self.answer_unbind_when_idle();
    }

    fn note(&mut self, what: &'static str, header: Header) {
        self.events.push_back(Event::Noted(Note {
            what,
            command: header.command,
            sequence: header.sequence,
        }));
    }

    fn nack(&mut self, status: Status, sequence: u32) {
        pdu::encode_response(&mut self.output, CommandId::GENERIC_NACK, status, sequence, &Response::Empty);
    }

    /// Answers with a header and nothing more.
    fn answer(&mut self, header: Header, status: Status) {
        let command = header.command.response();
        pdu::encode_response(&mut self.output, command, status, header.sequence, &Response::Empty);
    }

    fn handle(&mut self, now: Instant, header: Header, body: Bytes) {
        if header.command.is_response() {
            self.response(now, header, body);
            return;
        }
        match header.command {
            CommandId::ENQUIRE_LINK => self.answer(header, Status::ROK),
            CommandId::UNBIND => self.peer_unbinds(now, header),
            CommandId::BIND_RECEIVER | CommandId::BIND_TRANSMITTER | CommandId::BIND_TRANSCEIVER => {
                self.peer_binds(header, body);
            }
            CommandId::OUTBIND => self.peer_outbinds(header, body),
            command if !command.is_known_request() => {
                self.note("unknown command", header);
                self.nack(Status::RINVCMDID, header.sequence);
            }
            _ if matches!(self.state, SessionState::PeerUnbinding { .. }) => {
                self.note("request after unbind", header);
            }
            // Those that wait have filled the window before anything new is looked at, so nothing is overtaken here.
            _ if self.unanswered_in < self.options.window_in => self.message_request(header, body),
            _ if self.options.when_full == WhenFull::Throttle => {
                self.note("over the window", header);
                self.answer(header, Status::RTHROTTLED);
            }
            _ => {
                // What must wait for the window waits behind those before it. An enquire_link never does.
                self.backlog_octets += header.length as usize;
                self.backlog.push_back((header, body));
            }
        }
    }

    fn peer_unbinds(&mut self, now: Instant, header: Header) {
        match self.state {
            SessionState::Open | SessionState::Binding { .. } | SessionState::Judging { .. } => {
                self.answer(header, Status::RINVBNDSTS);
                self.end(CloseReason::PeerUnbound);
            }
            SessionState::Bound { mode, version } | SessionState::Unbinding { mode, version, .. } => {
                let sequence = header.sequence;
                self.state = SessionState::PeerUnbinding { mode, version, sequence };
                self.timers.set_after(Timer::Unbind, now, self.options.unbind_timeout);
                self.answer_unbind_when_idle();
            }
            SessionState::PeerUnbinding { .. } | SessionState::Closed(_) => {}
        }
    }

    fn peer_binds(&mut self, header: Header, body: Bytes) {
        if self.role == Role::Client {
            self.answer(header, Status::RINVBNDSTS);
            return;
        }
        if self.state != SessionState::Open {
            self.answer(header, Status::RALYBND);
            return;
        }
        match pdu::decode_request(header.command, body) {
            Ok(Request::Bind(bind)) => {
                self.state = SessionState::Judging { mode: bind.mode, sequence: header.sequence };
                self.events.push_back(Event::Bind(bind));
            }
            Ok(_) => {}
            Err(error) => {
                self.note(error.what, header);
                self.answer(header, error.status);
                self.end(CloseReason::Refused);
            }
        }
    }

    fn peer_outbinds(&mut self, header: Header, body: Bytes) {
        let expected = self.client.as_ref().and_then(|client| client.await_outbind.clone());
        match (expected, self.state, pdu::decode_request(header.command, body)) {
            (Some(password), SessionState::Open, Ok(Request::Outbind(outbind)))
                if outbind.password == password =>
            {
                self.events.push_back(Event::Outbind(outbind));
                self.send_bind();
            }
            (Some(_), SessionState::Open, _) => {
                self.note("outbind with a wrong password", header);
                self.end(CloseReason::WrongOutbind);
            }
            _ => self.note("outbind on a link that expects none", header),
        }
    }

    /// Whether the peer may send this now (34 §2.2.1, table 2-1).
    fn is_allowed(&self, command: CommandId) -> bool {
        use CommandId as C;
        let Some((mode, _)) = self.state.binding() else { return false };
        match (self.role, command) {
            (_, C::DATA_SM) => true,
            (Role::Server, C::DELIVER_SM | C::ALERT_NOTIFICATION) => false,
            (Role::Server, _) => mode.transmits(),
            (Role::Client, C::DELIVER_SM | C::ALERT_NOTIFICATION) => mode.receives(),
            (Role::Client, _) => false,
        }
    }

    fn message_request(&mut self, header: Header, body: Bytes) {
        // alert_notification has no answer, so none tells of an error in it either (34 §4.12).
        let silent = header.command == CommandId::ALERT_NOTIFICATION;
        if !self.is_allowed(header.command) {
            self.note("not allowed in this state", header);
            if !silent {
                self.answer(header, Status::RINVBNDSTS);
            }
            return;
        }
        match pdu::decode_request(header.command, body) {
            Ok(Request::AlertNotification(alert)) => self.events.push_back(Event::Alert(alert)),
            Ok(request) => {
                self.unanswered_in += 1;
                self.events.push_back(Event::Request { sequence: header.sequence, request });
            }
            Err(error) => {
                self.note(error.what, header);
                if !silent {
                    self.answer(header, error.status);
                }
            }
        }
    }

    fn response(&mut self, now: Instant, header: Header, body: Bytes) {
        if self.watch.is_answered_by(header.sequence) {
            // enquire_link_resp of any status, or even a nack: the peer lives.
            return;
        }
        let nack = header.command == CommandId::GENERIC_NACK;
        match self.state {
            SessionState::Binding { sequence } if nack && header.sequence == 0 => {
                // A nack belongs to nobody but the only request there is.
                self.bind_answered(now, Header { sequence, ..header }, body);
                return;
            }
            SessionState::Binding { sequence } if header.sequence == sequence => {
                let asked = self.client.as_ref().map(|client| client.bind.mode);
                if nack || BindMode::of(header.command.request()) == asked {
                    self.bind_answered(now, header, body);
                } else {
                    self.note("answer of another kind", header);
                }
                return;
            }
            SessionState::Unbinding { sequence, .. }
                if header.sequence == sequence
                    && (nack || header.command == CommandId::UNBIND.response()) =>
            {
                self.end(CloseReason::Unbound);
                return;
            }
            SessionState::Closed(_) => return,
            _ => {}
        }
        let (token, late) = match self.window.answered(header.sequence, header.command) {
            Answered::InTime(token) => (token, false),
            Answered::Late(token) => (token, true),
            Answered::WrongCommand => {
                self.note("answer of another kind", header);
                return;
            }
            Answered::Nobody => {
                if header.command != CommandId::ENQUIRE_LINK.response() {
                    self.note("answer to nothing", header);
                }
                return;
            }
        };
        let status = match (nack, header.status) {
            (true, Status::ROK) => Status::RSYSERR,
            (_, status) => status,
        };
        let response = pdu::decode_response(header.command, body);
        if let Some(state) = response.tlvs().and_then(|tlvs| tlvs.u8(tag::CONGESTION_STATE)) {
            self.congestion = Some(state);
        }
        self.events.push_back(Event::Answer { token, status, response, late });
    }

    fn bind_answered(&mut self, now: Instant, header: Header, body: Bytes) {
        let Some(bind) = self.client.as_ref().map(|client| &client.bind) else { return };
        if !header.status.is_ok() || header.command == CommandId::GENERIC_NACK {
            let status = if header.status.is_ok() { Status::RBINDFAIL } else { header.status };
            self.events.push_back(Event::BindRefused(status));
            self.end(CloseReason::Refused);
            return;
        }
        let (mode, ours) = (bind.mode, Version(bind.interface_version));
        let (system_id, shown) = match pdu::decode_response(header.command, body) {
            Response::Bind { system_id, tlvs } => {
                (system_id, tlvs.u8(tag::SC_INTERFACE_VERSION).map(Version))
            }
            _ => (Bytes::new(), None),
        };
        // Whoever of the two is the older decides what the link carries.
        let theirs = shown.unwrap_or(Version::V34);
        let version = if ours.takes_tlvs() { theirs } else { ours };
        self.state = SessionState::Bound { mode, version };
        self.events.push_back(Event::Bound { system_id, version: shown });
        self.start_watching(now);
    }
}

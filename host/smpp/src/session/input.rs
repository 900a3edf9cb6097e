//! What comes in: cutting out PDUs, and what each may do in which state.

use super::{CloseReason, Event, Note, Role, Session, SessionState, Timer, Version};
use crate::pdu::{self, CommandId, Header, Request, Response};
use crate::wire::HEADER_LENGTH;
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

    /// Whether the owner should go on reading. If not, the peer's window and our backlog are full: its next bytes wait
    /// in its own socket.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.backlog_octets < self.options.backlog && !matches!(self.state, SessionState::Closed(_))
    }

    /// Looks at what is in the input. To be called again after answers were given: requests may wait for the window.
    pub fn process(&mut self, now: Instant) {
        self.work_off_backlog();
        loop {
            if !self.wants_input() {
                return;
            }
            let Some(header) = Header::decode(&self.input) else { break };
            let limit = match self.state {
                SessionState::Open | SessionState::Binding { .. } | SessionState::Judging { .. } => {
                    self.options.limit_before_bind
                }
                _ => self.options.limit_after_bind,
            };
            if header.length < HEADER_LENGTH as u32 || header.length > limit {
                self.heard_at = now;
                self.nack(Status::RINVCMDLEN, header.sequence);
                self.note("impossible PDU length", header);
                self.end(CloseReason::BadLength);
                return;
            }
            let length = header.length as usize;
            if self.input.len() < length {
                break;
            }
            let mut frame = self.input.split_to(length).freeze();
            let body = frame.split_off(HEADER_LENGTH);
            self.heard_at = now;
            self.misses = 0;
            self.timers.stop(Timer::Partial);
            self.handle(now, header, body);
        }
        if !self.input.is_empty() && !matches!(self.state, SessionState::Closed(_)) {
            self.timers.set_if_stopped(Timer::Partial, now + self.options.partial_timeout);
        }
    }

    fn work_off_backlog(&mut self) {
        while self.unanswered_in < self.options.window_in
            && let Some((header, body)) = self.backlog.pop_front()
        {
            self.backlog_octets = self.backlog_octets.saturating_sub(header.length as usize);
            self.message_request(header, body);
        }
        if let SessionState::PeerUnbinding { sequence } = self.state
            && self.unanswered_in == 0
            && self.backlog.is_empty()
        {
            self.answer_unbind(sequence);
        }
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

    fn refuse(&mut self, header: Header, status: Status) {
        pdu::encode_response(
            &mut self.output,
            header.command.response(),
            status,
            header.sequence,
            &Response::Empty,
        );
    }

    fn handle(&mut self, now: Instant, header: Header, body: Bytes) {
        if header.command.is_response() {
            self.response(now, header, body);
            return;
        }
        match header.command {
            CommandId::ENQUIRE_LINK => self.refuse(header, Status::ROK),
            CommandId::UNBIND => self.peer_unbinds(now, header),
            CommandId::BIND_RECEIVER | CommandId::BIND_TRANSMITTER | CommandId::BIND_TRANSCEIVER => {
                self.peer_binds(header, body);
            }
            CommandId::OUTBIND => self.outbind(header, body),
            command if !command.is_known_request() => {
                self.note("unknown command", header);
                self.nack(Status::RINVCMDID, header.sequence);
            }
            _ if matches!(self.state, SessionState::PeerUnbinding { .. }) => {
                self.note("request after unbind", header);
            }
            _ => {
                // A request that must wait for the window waits behind those before it, never an enquire_link.
                if self.unanswered_in >= self.options.window_in || !self.backlog.is_empty() {
                    self.backlog_octets += header.length as usize;
                    self.backlog.push_back((header, body));
                } else {
                    self.message_request(header, body);
                }
            }
        }
    }

    fn peer_unbinds(&mut self, now: Instant, header: Header) {
        match self.state {
            SessionState::Open | SessionState::Binding { .. } | SessionState::Judging { .. } => {
                self.refuse(header, Status::RINVBNDSTS);
                self.end(CloseReason::PeerUnbound);
            }
            SessionState::Bound { .. } | SessionState::Unbinding { .. } => {
                if self.unanswered_in == 0 && self.backlog.is_empty() {
                    self.answer_unbind(header.sequence);
                } else {
                    self.state = SessionState::PeerUnbinding { sequence: header.sequence };
                    self.timers.set(Timer::Unbind, now + self.options.unbind_timeout);
                }
            }
            SessionState::PeerUnbinding { .. } | SessionState::Closed(_) => {}
        }
    }

    fn peer_binds(&mut self, header: Header, body: Bytes) {
        if self.role == Role::Client {
            self.refuse(header, Status::RINVBNDSTS);
            return;
        }
        if self.state != SessionState::Open {
            self.refuse(header, Status::RALYBND);
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
                self.refuse(header, error.status);
                self.end(CloseReason::Refused);
            }
        }
    }

    fn outbind(&mut self, header: Header, body: Bytes) {
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

    fn message_request(&mut self, header: Header, body: Bytes) {
        use CommandId as C;
        let mode = match self.state {
            SessionState::Bound { mode, .. } | SessionState::Unbinding { mode, .. } => Some(mode),
            _ => None,
        };
        let allowed = match (self.role, header.command) {
            (_, C::DATA_SM) => mode.is_some(),
            (Role::Server, C::DELIVER_SM | C::ALERT_NOTIFICATION) => false,
            (Role::Server, _) => mode.is_some_and(pdu::BindMode::transmits),
            (Role::Client, C::DELIVER_SM | C::ALERT_NOTIFICATION) => {
                mode.is_some_and(pdu::BindMode::receives)
            }
            (Role::Client, _) => false,
        };
        let silent = header.command == C::ALERT_NOTIFICATION;
        if !allowed {
            self.note("not allowed in this state", header);
            if !silent {
                self.refuse(header, Status::RINVBNDSTS);
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
                    self.refuse(header, error.status);
                }
            }
        }
    }

    fn response(&mut self, now: Instant, header: Header, body: Bytes) {
        if self.enquiry == Some(header.sequence) {
            // enquire_link_resp of any status, or even a nack: the peer lives.
            self.enquiry = None;
            return;
        }
        match self.state {
            SessionState::Binding { sequence } => {
                let nack = header.command == CommandId::GENERIC_NACK;
                if header.sequence == sequence || (nack && header.sequence == 0) {
                    self.bind_answered(now, header, body);
                    return;
                }
            }
            SessionState::Unbinding { sequence, .. } if header.sequence == sequence => {
                self.end(CloseReason::Unbound);
                return;
            }
            SessionState::Closed(_) => return,
            _ => {}
        }
        let (token, late) = match self.pending.remove(&header.sequence) {
            Some(token) => (token, false),
            None => match self.late.remove(&header.sequence) {
                Some(token) => (token, true),
                None => {
                    if header.command != CommandId::ENQUIRE_LINK.response() {
                        self.note("answer to nothing", header);
                    }
                    return;
                }
            },
        };
        while let Some((_, sequence)) = self.sent.front()
            && !self.pending.contains_key(sequence)
        {
            self.sent.pop_front();
        }
        let status = match (header.command, header.status) {
            (CommandId::GENERIC_NACK, Status::ROK) => Status::RSYSERR,
            (_, status) => status,
        };
        let response = pdu::decode_response(header.command, status, body);
        self.events.push_back(Event::Answer { token, status, response, late });
    }

    fn bind_answered(&mut self, now: Instant, header: Header, body: Bytes) {
        let mode = self.client.as_ref().map(|client| client.bind.mode);
        let (Some(mode), true) = (mode, header.status.is_ok() && header.command != CommandId::GENERIC_NACK)
        else {
            let status = if header.status.is_ok() { Status::RBINDFAIL } else { header.status };
            self.events.push_back(Event::BindRefused(status));
            self.end(CloseReason::Refused);
            return;
        };
        let (system_id, version) = match pdu::decode_response(header.command, header.status, body) {
            Response::Bind { system_id, tlvs } => {
                (system_id, tlvs.u8(tag::SC_INTERFACE_VERSION).map(Version))
            }
            _ => (Bytes::new(), None),
        };
        self.state = SessionState::Bound { mode, version: version.unwrap_or(Version::V34) };
        self.events.push_back(Event::Bound { system_id, version });
        self.start_watching(now);
    }
}

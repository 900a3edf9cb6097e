//! Input: cuts PDUs out of the stream and checks that the state allows them.

use super::session_state::SessionRole;
use super::window::WindowMatch;
use super::{
    CloseReason, Event, InterfaceVersion, ProtocolAnomaly, Session, SessionState, Timer, WindowFullPolicy,
};
use crate::pdu::{self, BindMode, CommandId, Header, PduFrame, Request, Response};
use crate::{CommandStatus, tag};
use bytes::{Bytes, BytesMut};
use std::time::Instant;

impl Session {
    /// The input buffer, which the owner may read the socket into before [`Session::process`].
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Receives bytes of the stream, split at any place.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.process(now);
    }

    /// Whether the owner should read more: not while a bind waits for its decision, nor while the backlog is full.
    /// The peer's next bytes then stay in the socket.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        match self.state {
            SessionState::BindPending { .. } | SessionState::Closed(_) => false,
            _ => self.backlog_octets < self.options.backlog,
        }
    }

    /// Processes the input buffer. Call it again after answers: requests may wait for the window.
    pub fn process(&mut self, now: Instant) {
        self.process_backlog();
        while self.wants_input() {
            let limit = self.limit();
            match PduFrame::cut(&mut self.input, limit) {
                PduFrame::Complete(header, body) => {
                    self.enquire_link.on_pdu(now);
                    self.timers.stop(Timer::Partial);
                    self.handle(now, header, body);
                }
                PduFrame::Incomplete => {
                    if !self.input.is_empty() && !self.timers.is_set(Timer::Partial) {
                        self.timers.set_after(Timer::Partial, now, self.options.partial_timeout);
                    }
                    return;
                }
                PduFrame::InvalidLength(header) => {
                    self.report_anomaly("invalid PDU length", header);
                    if !header.command.is_response() {
                        self.nack(CommandStatus::RINVCMDLEN, header.sequence);
                    }
                    self.end(CloseReason::BadLength);
                }
            }
        }
        if self.state.is_closed() {
            // Later input is ignored.
            self.input.clear();
        }
    }

    /// The longest PDU accepted in this state.
    fn limit(&self) -> u32 {
        match self.state {
            SessionState::Open | SessionState::Binding { .. } | SessionState::BindPending { .. } => {
                self.options.limit_before_bind
            }
            _ => self.options.limit_after_bind,
        }
    }

    fn process_backlog(&mut self) {
        while self.unanswered_in < self.options.window_in
            && let Some((header, body)) = self.backlog.pop_front()
        {
            self.backlog_octets = self.backlog_octets.saturating_sub(header.length as usize);
            self.on_message_request(header, body);
        }
        self.answer_unbind_when_idle();
    }

    fn report_anomaly(&mut self, description: &'static str, header: Header) {
        self.events.push_back(Event::Anomaly(ProtocolAnomaly {
            description,
            command: header.command,
            sequence: header.sequence,
        }));
    }

    fn nack(&mut self, status: CommandStatus, sequence: u32) {
        pdu::encode_response(&mut self.output, CommandId::GENERIC_NACK, status, sequence, &Response::Empty);
    }

    /// Answers with a header only.
    fn answer(&mut self, header: Header, status: CommandStatus) {
        let command = header.command.response();
        pdu::encode_response(&mut self.output, command, status, header.sequence, &Response::Empty);
    }

    fn handle(&mut self, now: Instant, header: Header, body: Bytes) {
        if header.command.is_response() {
            self.response(now, header, body);
            return;
        }
        match header.command {
            CommandId::ENQUIRE_LINK => self.answer(header, CommandStatus::ROK),
            CommandId::UNBIND => self.on_unbind(now, header),
            CommandId::BIND_RECEIVER | CommandId::BIND_TRANSMITTER | CommandId::BIND_TRANSCEIVER => {
                self.on_bind(header, body);
            }
            CommandId::OUTBIND => self.on_outbind(header, body),
            command if !command.is_known_request() => {
                self.report_anomaly("unknown command", header);
                self.nack(CommandStatus::RINVCMDID, header.sequence);
            }
            _ if matches!(self.state, SessionState::PeerUnbinding { .. }) => {
                self.report_anomaly("request after unbind", header);
            }
            // A free slot means that no earlier request waits, so the new one overtakes none.
            _ if self.unanswered_in < self.options.window_in => self.on_message_request(header, body),
            _ if self.options.window_full_policy == WindowFullPolicy::Throttle => {
                self.report_anomaly("over the window", header);
                self.answer(header, CommandStatus::RTHROTTLED);
            }
            _ => {
                // A request that must wait for the window is queued behind earlier ones. An enquire_link never waits.
                self.backlog_octets += header.length as usize;
                self.backlog.push_back((header, body));
            }
        }
    }

    fn on_unbind(&mut self, now: Instant, header: Header) {
        match self.state {
            SessionState::Open | SessionState::Binding { .. } | SessionState::BindPending { .. } => {
                self.answer(header, CommandStatus::RINVBNDSTS);
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

    fn on_bind(&mut self, header: Header, body: Bytes) {
        if self.role == SessionRole::Client {
            self.answer(header, CommandStatus::RINVBNDSTS);
            return;
        }
        if self.state != SessionState::Open {
            self.answer(header, CommandStatus::RALYBND);
            return;
        }
        match pdu::decode_request(header.command, body) {
            Ok(Request::Bind(bind)) => {
                self.state = SessionState::BindPending { mode: bind.mode, sequence: header.sequence };
                self.events.push_back(Event::Bind(bind));
            }
            Ok(_) => {}
            Err(error) => {
                self.report_anomaly(error.what, header);
                self.answer(header, error.status);
                self.end(CloseReason::Refused);
            }
        }
    }

    fn on_outbind(&mut self, header: Header, body: Bytes) {
        let expected = self.client.as_ref().and_then(|client| client.await_outbind.clone());
        match (expected, self.state, pdu::decode_request(header.command, body)) {
            (Some(password), SessionState::Open, Ok(Request::Outbind(outbind)))
                if outbind.password == password =>
            {
                self.events.push_back(Event::Outbind(outbind));
                self.send_bind();
            }
            (Some(_), SessionState::Open, _) => {
                self.report_anomaly("outbind with a wrong password", header);
                self.end(CloseReason::WrongOutbind);
            }
            _ => self.report_anomaly("unexpected outbind", header),
        }
    }

    /// Whether the peer may send this command in this state (34 §2.2.1, table 2-1).
    fn is_allowed(&self, command: CommandId) -> bool {
        use CommandId as C;
        let Some((mode, _)) = self.state.binding() else { return false };
        match (self.role, command) {
            (_, C::DATA_SM) => true,
            (SessionRole::Server, C::DELIVER_SM | C::ALERT_NOTIFICATION) => false,
            (SessionRole::Server, _) => mode.transmits(),
            (SessionRole::Client, C::DELIVER_SM | C::ALERT_NOTIFICATION) => mode.receives(),
            (SessionRole::Client, _) => false,
        }
    }

    fn on_message_request(&mut self, header: Header, body: Bytes) {
        // alert_notification has no response, so an error in it is not reported to the peer (34 §4.12).
        let silent = header.command == CommandId::ALERT_NOTIFICATION;
        if !self.is_allowed(header.command) {
            self.report_anomaly("not allowed in this state", header);
            if !silent {
                self.answer(header, CommandStatus::RINVBNDSTS);
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
                self.report_anomaly(error.what, header);
                if !silent {
                    self.answer(header, error.status);
                }
            }
        }
    }

    fn response(&mut self, now: Instant, header: Header, body: Bytes) {
        if self.enquire_link.is_answered_by(header.sequence) {
            // An enquire_link_resp of any status, or even a nack, is a sign of life.
            return;
        }
        let nack = header.command == CommandId::GENERIC_NACK;
        match self.state {
            SessionState::Binding { sequence } if nack && header.sequence == 0 => {
                // A nack with sequence number 0 can only belong to the bind.
                self.on_bind_response(now, Header { sequence, ..header }, body);
                return;
            }
            SessionState::Binding { sequence } if header.sequence == sequence => {
                let bind_mode = self.client.as_ref().map(|client| client.bind.mode);
                if nack || BindMode::of(header.command.request()) == bind_mode {
                    self.on_bind_response(now, header, body);
                } else {
                    self.report_anomaly("response to another command", header);
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
            WindowMatch::InTime(token) => (token, false),
            WindowMatch::Late(token) => (token, true),
            WindowMatch::WrongCommand => {
                self.report_anomaly("response to another command", header);
                return;
            }
            WindowMatch::Unknown => {
                if header.command != CommandId::ENQUIRE_LINK.response() {
                    self.report_anomaly("unexpected response", header);
                }
                return;
            }
        };
        let status = match (nack, header.status) {
            (true, CommandStatus::ROK) => CommandStatus::RSYSERR,
            (_, status) => status,
        };
        let response = pdu::decode_response(header.command, body);
        if let Some(state) = response.tlvs().and_then(|tlvs| tlvs.u8(tag::CONGESTION_STATE)) {
            self.congestion = Some(state);
        }
        self.events.push_back(Event::Answer { token, status, response, late });
    }

    fn on_bind_response(&mut self, now: Instant, header: Header, body: Bytes) {
        let Some(bind) = self.client.as_ref().map(|client| &client.bind) else { return };
        if !header.status.is_ok() || header.command == CommandId::GENERIC_NACK {
            let status = if header.status.is_ok() { CommandStatus::RBINDFAIL } else { header.status };
            self.events.push_back(Event::BindRefused(status));
            self.end(CloseReason::Refused);
            return;
        }
        let (mode, ours) = (bind.mode, InterfaceVersion(bind.interface_version));
        let (system_id, shown) = match pdu::decode_response(header.command, body) {
            Response::Bind { system_id, tlvs } => {
                (system_id, tlvs.u8(tag::SC_INTERFACE_VERSION).map(InterfaceVersion))
            }
            _ => (Bytes::new(), None),
        };
        // If we bound with a version without TLVs, the session has our version, otherwise the peer's.
        let theirs = shown.unwrap_or(InterfaceVersion::V34);
        let version = if ours.takes_tlvs() { theirs } else { ours };
        self.state = SessionState::Bound { mode, version };
        self.events.push_back(Event::Bound { system_id, version: shown });
        self.start_supervision(now);
    }
}

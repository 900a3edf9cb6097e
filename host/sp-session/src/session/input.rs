//! Input: cuts PDUs out of the stream and handles requests and answers.

use super::answers::Arrival;
use super::{Event, Session, SessionRole, SpCloseReason, State, after};
use crate::{DecodeError, HEADER_LENGTH, Header, PduRole, SpProtocol};
use bytes::BytesMut;
use std::time::Instant;

impl<P: SpProtocol> Session<P> {
    /// The input buffer, which the owner may read the socket into before [`Session::process`].
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Whether the owner should read more: not while a login waits for its decision, nor while the window is full.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.is_closed() && (!self.is_input_held() || self.input.len() < HEADER_LENGTH)
    }

    fn is_input_held(&self) -> bool {
        matches!(self.state, State::LoginPending { .. })
            || self.answers.waiting() >= self.options.window_in.max(1)
    }

    /// Receives bytes of the stream, split at any place.
    pub fn receive(&mut self, now: Instant, octets: &[u8]) {
        if self.is_closed() {
            return;
        }
        self.input.extend_from_slice(octets);
        self.process(now);
    }

    /// Processes the input buffer. Call it again after answers, which may have freed the window.
    pub fn process(&mut self, now: Instant) {
        while !self.is_closed() && !self.is_input_held() {
            let Some(header) = Header::peek(&self.input) else { break };
            let length = usize::try_from(header.length).unwrap_or(usize::MAX);
            if length < HEADER_LENGTH || header.length > self.options.limit {
                return self.end(SpCloseReason::Malformed("Total_Length is out of range"));
            }
            if self.input.len() < length {
                break;
            }
            let pdu = self.input.split_to(length);
            self.last_received_at = now;
            self.test = None;
            self.partial_by = None;
            self.on_pdu(now, header, pdu.get(HEADER_LENGTH..).unwrap_or_default());
        }
        // A PDU must be complete in time, except while this side takes no input.
        if self.input.is_empty() || self.is_input_held() {
            self.partial_by = None;
        } else if self.partial_by.is_none() {
            self.partial_by = after(now, self.options.partial_timeout);
        }
        if self.input.is_empty() && self.input.capacity() > 64 * 1024 {
            self.input = BytesMut::new();
        }
    }

    fn on_pdu(&mut self, now: Instant, header: Header, body: &[u8]) {
        let pdu = match P::decode(self.version, header, body) {
            Ok(pdu) => pdu,
            Err(DecodeError::Unknown(_)) => return self.end(SpCloseReason::Malformed("unknown command id")),
            Err(DecodeError::Short { field }) => return self.end(SpCloseReason::Malformed(field)),
            Err(DecodeError::Invalid(status)) => return self.on_invalid(header, status, body),
        };
        match P::role(&pdu) {
            PduRole::LoginAnswer(status) => self.on_login_answer(header.sequence, pdu, status),
            PduRole::LogoutAnswer => {
                if self.state == (State::LoggingOut { sequence: header.sequence }) {
                    self.end(SpCloseReason::LoggedOut);
                }
            }
            PduRole::LinkTestAnswer => {}
            PduRole::Answer(_) => self.on_answer(header.sequence, pdu),
            PduRole::Login => self.on_login(header.sequence, header.command, pdu),
            _ if matches!(self.state, State::Open { .. }) => self.end(SpCloseReason::RequestBeforeLogin),
            PduRole::LinkTest => self.write(&P::link_test(true), header.sequence),
            PduRole::Logout => self.on_logout(now, header.sequence),
            PduRole::Request => {
                if self.arrives(header, body) {
                    self.events.push_back(Event::Request { sequence: header.sequence, pdu });
                }
            }
        }
    }

    /// A PDU that is whole, with a wrong content.
    fn on_invalid(&mut self, header: Header, status: u32, body: &[u8]) {
        if !matches!(self.state, State::LoggedIn | State::LoggingOut { .. }) {
            return self.end(SpCloseReason::Malformed("a wrong field before the login"));
        }
        if self.arrives(header, body) {
            self.refuse(header.sequence, status, true);
        }
    }

    /// Whether a request is new; a repetition is answered as the request was.
    fn arrives(&mut self, header: Header, body: &[u8]) -> bool {
        match self.answers.arrive(header.command, header.sequence, body) {
            Arrival::New => return true,
            Arrival::Waiting => {}
            Arrival::Answered(octets) => self.output.extend_from_slice(&octets),
            Arrival::Conflict => {
                if let Some(answer) = P::refusal(header.command, P::STATUS.sequence) {
                    self.write(&answer, header.sequence);
                }
            }
        }
        false
    }

    fn on_login(&mut self, sequence: u32, command: u32, pdu: P::Pdu) {
        match (self.role, self.state) {
            (SessionRole::Gateway, State::Open { .. }) => {
                self.state = State::LoginPending { sequence };
                self.events.push_back(Event::Login(pdu));
            }
            // A second login; the session stays.
            (SessionRole::Gateway, _) => {
                if let Some(answer) = P::refusal(command, P::STATUS.login_repeated) {
                    self.write(&answer, sequence);
                }
            }
            (SessionRole::Sp, _) => self.end(SpCloseReason::Malformed("a gateway does not log in")),
        }
    }

    fn on_login_answer(&mut self, sequence: u32, pdu: P::Pdu, status: u32) {
        if self.state != (State::Open { login: Some(sequence) }) {
            return self.events.push_back(Event::UnexpectedAnswer { sequence });
        }
        self.login_by = None;
        if status == 0 {
            self.version = P::accepted_version(&pdu, self.version);
            self.state = State::LoggedIn;
            self.events.push_back(Event::LoggedIn(pdu));
        } else {
            self.events.push_back(Event::LoginRefused(pdu));
            self.end(SpCloseReason::Refused(status));
        }
    }

    fn on_answer(&mut self, sequence: u32, pdu: P::Pdu) {
        match self.window.take(sequence) {
            Some((token, late)) => self.events.push_back(Event::Answer { token, pdu, late }),
            None => self.events.push_back(Event::UnexpectedAnswer { sequence }),
        }
        self.finish_peer_logout();
    }

    fn on_logout(&mut self, now: Instant, sequence: u32) {
        match self.state {
            State::LoggedIn => {
                self.state = State::PeerLoggingOut { sequence };
                self.logout_by = after(now, self.options.response_timeout);
                self.finish_peer_logout();
            }
            // Both ends at once, or a repetition.
            State::LoggingOut { .. } | State::PeerLoggingOut { .. } => self.write(&P::logout(true), sequence),
            State::Open { .. } | State::LoginPending { .. } | State::Closed => {}
        }
    }
}

//! What comes in.

use super::{CloseReason, Event, Role, Session, State, after};
use crate::{
    CheckUserAnswer, Command, DecodeError, HEADER_LENGTH, Header, Pdu, ResultCode, Sequence, TraceAnswer,
};
use std::time::Instant;

/// The answer of a command with a code; a Trace has none, and is answered with no node at all.
pub(super) fn answer_to(command: Command, result: ResultCode) -> Pdu {
    match command {
        Command::Unbind => Pdu::UnbindAnswer,
        Command::Trace => Pdu::TraceAnswer(TraceAnswer::default()),
        Command::CheckUser => Pdu::CheckUserAnswer(CheckUserAnswer { result, ..CheckUserAnswer::default() }),
        other => Pdu::answer(other, result),
    }
}

impl Session {
    /// Whether more should be read: not while a login is judged, nor while as many commands are unanswered as may be.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.is_closed() && (!self.is_held() || self.input.len() < HEADER_LENGTH)
    }

    fn is_held(&self) -> bool {
        matches!(self.state, State::Judging { .. } | State::PeerUnbinding { .. })
            || self.owed.len() >= self.options.window_in.max(1)
    }

    /// Takes bytes as they came off the socket, in any split.
    pub fn receive(&mut self, now: Instant, octets: &[u8]) {
        if self.is_closed() {
            return;
        }
        self.input.extend_from_slice(octets);
        self.process(now);
    }

    /// Goes on with what was received: to be called after answers, which may have made room.
    pub fn process(&mut self, now: Instant) {
        while !self.is_closed() && !self.is_held() {
            let Some(header) = Header::peek(&self.input) else { break };
            if header.length < 20 || header.length > self.options.limit {
                return self.end(CloseReason::Broken("MessageLength is out of range"));
            }
            let length = usize::try_from(header.length).unwrap_or(usize::MAX);
            if self.input.len() < length {
                break;
            }
            let pdu = self.input.split_to(length);
            self.heard_at = now;
            self.partial_by = None;
            self.take(now, header, pdu.get(HEADER_LENGTH..).unwrap_or_default());
        }
        // A started PDU must be completed; while we do not look, that is not the peer's fault.
        if self.input.is_empty() || self.is_held() {
            self.partial_by = None;
        } else if self.partial_by.is_none() {
            self.partial_by = after(now, self.options.partial_timeout);
        }
        if self.input.is_empty() && self.input.capacity() > 64 * 1024 {
            self.input = bytes::BytesMut::new();
        }
    }

    fn take(&mut self, now: Instant, header: Header, body: &[u8]) {
        let pdu = match Pdu::decode(header.command, body) {
            Ok(pdu) => pdu,
            Err(error) => {
                return self.end(CloseReason::Broken(match error {
                    DecodeError::Unknown(_) => "unknown command id",
                    DecodeError::Short { .. } => "a body shorter than its fields",
                    DecodeError::Long { .. } => "a body longer than its fields",
                }));
            }
        };
        match Command::of(header.command) {
            Some((command, true)) => self.take_answer(command, header.sequence, &pdu),
            Some((command, false)) => self.take_command(now, command, header.sequence, pdu),
            None => self.end(CloseReason::Broken("unknown command id")),
        }
    }

    fn take_answer(&mut self, command: Command, sequence: Sequence, pdu: &Pdu) {
        let result = match pdu {
            Pdu::Answer { result, .. } | Pdu::RouteAnswer { result, .. } => *result,
            Pdu::CheckUserAnswer(answer) => answer.result,
            _ => ResultCode::OK,
        };
        match (self.state, command) {
            (State::Open { bind: Some(bind) }, Command::Bind) if bind == sequence => {
                self.init_by = None;
                if result.is_ok() {
                    self.state = State::Bound;
                    self.events.push_back(Event::Bound);
                } else {
                    self.events.push_back(Event::BindRefused(result));
                    self.end(CloseReason::Refused(result));
                }
            }
            (State::Unbinding { sequence: unbind }, Command::Unbind) if unbind == sequence => {
                self.end(CloseReason::Unbound);
            }
            _ => match self.window.take(sequence, self.options.loose_match) {
                Some((token, late)) => self.events.push_back(Event::Answer { token, result, late }),
                None => self.events.push_back(Event::Unasked(sequence)),
            },
        }
    }

    fn take_command(&mut self, now: Instant, command: Command, sequence: Sequence, pdu: Pdu) {
        match (self.role, self.state, pdu) {
            (_, State::Closed, _) => {}
            (Role::Acceptor, State::Open { .. }, Pdu::Bind(bind)) => {
                self.state = State::Judging { bind: sequence };
                self.init_by = after(now, self.options.bind_timeout);
                self.events.push_back(Event::Bind(bind));
            }
            (Role::Acceptor, State::Open { .. }, _) => self.end(CloseReason::Unbidden),
            (Role::Acceptor, _, Pdu::Bind(_)) => {
                Pdu::answer(command, ResultCode::REPEATED_LOGIN).encode(sequence, &mut self.output);
            }
            (_, _, Pdu::Unbind) => {
                self.state = State::PeerUnbinding { sequence };
                self.finish_peer_unbind();
            }
            (_, _, pdu) => {
                let refused = if self.options.accepts.contains(&command) {
                    pdu.fault()
                } else {
                    Some(ResultCode::MESSAGE_ID)
                };
                if let Some(code) = refused {
                    answer_to(command, code).encode(sequence, &mut self.output);
                    return;
                }
                let number = self.next_number;
                self.next_number += 1;
                self.owed.insert(number, (command, sequence));
                self.events.push_back(Event::Command { number, sequence, pdu });
            }
        }
    }
}

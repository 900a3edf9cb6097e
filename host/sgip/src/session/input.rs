//! Input: cuts PDUs out of the stream and handles commands and answers.

use super::{Event, Session, SgipCloseReason, SgipRole, State, after};
use crate::{
    CheckUserAnswer, DecodeError, HEADER_LENGTH, Header, Pdu, ResultCode, Sequence, SgipCommand, TraceAnswer,
};
use bytes::BytesMut;
use std::time::Instant;

/// The answer to a command, with a result code. The answer to a Trace has no code; it names no node.
pub(super) fn answer_for(command: SgipCommand, result: ResultCode) -> Pdu {
    match command {
        SgipCommand::Unbind => Pdu::UnbindAnswer,
        SgipCommand::Trace => Pdu::TraceAnswer(TraceAnswer::default()),
        SgipCommand::CheckUser => {
            Pdu::CheckUserAnswer(CheckUserAnswer { result, ..CheckUserAnswer::default() })
        }
        other => Pdu::answer(other, result),
    }
}

impl Session {
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
        matches!(self.state, State::BindPending { .. } | State::PeerUnbinding { .. })
            || self.unanswered_in.len() >= self.options.window_in.max(1)
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
            if header.length < 20 || header.length > self.options.limit {
                return self.end(SgipCloseReason::Malformed("MessageLength is out of range"));
            }
            let length = usize::try_from(header.length).unwrap_or(usize::MAX);
            if self.input.len() < length {
                break;
            }
            let pdu = self.input.split_to(length);
            self.last_pdu_at = now;
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
        let pdu = match Pdu::decode(header.command, body) {
            Ok(pdu) => pdu,
            Err(error) => {
                return self.end(SgipCloseReason::Malformed(match error {
                    DecodeError::Unknown(_) => "unknown command id",
                    DecodeError::Short { .. } => "a body shorter than its fields",
                    DecodeError::Long { .. } => "a body longer than its fields",
                }));
            }
        };
        match SgipCommand::of(header.command) {
            Some((command, true)) => self.on_answer(command, header.sequence, &pdu),
            Some((command, false)) => self.on_command(now, command, header.sequence, pdu),
            None => self.end(SgipCloseReason::Malformed("unknown command id")),
        }
    }

    fn on_answer(&mut self, command: SgipCommand, sequence: Sequence, pdu: &Pdu) {
        let result = match pdu {
            Pdu::Answer { result, .. } | Pdu::RouteAnswer { result, .. } => *result,
            Pdu::CheckUserAnswer(answer) => answer.result,
            _ => ResultCode::OK,
        };
        match (self.state, command) {
            (State::Open { bind: Some(bind) }, SgipCommand::Bind) if bind == sequence => {
                self.init_by = None;
                if result.is_ok() {
                    self.state = State::Bound;
                    self.events.push_back(Event::Bound);
                } else {
                    self.events.push_back(Event::BindRefused(result));
                    self.end(SgipCloseReason::Refused(result));
                }
            }
            (State::Unbinding { sequence: unbind }, SgipCommand::Unbind) if unbind == sequence => {
                self.end(SgipCloseReason::Unbound);
            }
            _ => match self.window.take(sequence, self.options.loose_match) {
                Some((token, late)) => self.events.push_back(Event::Answer { token, result, late }),
                None => self.events.push_back(Event::UnexpectedAnswer(sequence)),
            },
        }
    }

    fn on_command(&mut self, now: Instant, command: SgipCommand, sequence: Sequence, pdu: Pdu) {
        match (self.role, self.state, pdu) {
            (_, State::Closed, _) => {}
            (SgipRole::Acceptor, State::Open { .. }, Pdu::Bind(bind)) => {
                self.state = State::BindPending { bind: sequence };
                self.init_by = after(now, self.options.bind_timeout);
                self.events.push_back(Event::Bind(bind));
            }
            (SgipRole::Acceptor, State::Open { .. }, _) => self.end(SgipCloseReason::CommandBeforeBind),
            (SgipRole::Acceptor, _, Pdu::Bind(_)) => {
                Pdu::answer(command, ResultCode::REPEATED_LOGIN).encode(sequence, &mut self.output);
            }
            (_, _, Pdu::Unbind) => {
                self.state = State::PeerUnbinding { sequence };
                self.finish_peer_unbind();
            }
            (_, _, pdu) => {
                let refused = if self.options.accepts.contains(&command) {
                    pdu.validation_error()
                } else {
                    Some(ResultCode::MESSAGE_ID)
                };
                if let Some(code) = refused {
                    answer_for(command, code).encode(sequence, &mut self.output);
                    return;
                }
                let number = self.next_number;
                self.next_number += 1;
                self.unanswered_in.insert(number, (command, sequence));
                self.events.push_back(Event::Command { number, sequence, pdu });
            }
        }
    }
}

//! Output: our requests, and our answers to the peer's requests.

use super::session_state::SessionRole;
use super::{CloseReason, Event, InterfaceVersion, RequestError, Session, SessionState, Timer};
use crate::pdu::{self, AlertNotification, CommandId, Outbind, Request, Response};
use crate::wire::BodyError;
use crate::{CommandStatus, MAX_SHORT_MESSAGE, Tlvs, tag};
use bytes::Bytes;
use std::borrow::Cow;
use std::time::Instant;

/// The last sequence number; 1 follows (34 §5.1.4).
const LAST_SEQUENCE: u32 = 0x7FFF_FFFF;

impl Session {
    fn take_sequence(&mut self) -> u32 {
        let sequence = self.next_sequence;
        self.next_sequence = if sequence >= LAST_SEQUENCE { 1 } else { sequence + 1 };
        sequence
    }

    pub(super) fn send_bind(&mut self) {
        let Some(bind) = self.client.as_ref().map(|client| client.bind.clone()) else { return };
        let sequence = self.take_sequence();
        self.state = SessionState::Binding { sequence };
        pdu::encode_request(&mut self.output, sequence, &Request::Bind(bind));
    }

    pub(super) fn send_enquire_link(&mut self) -> u32 {
        let sequence = self.take_sequence();
        pdu::encode_request(&mut self.output, sequence, &Request::EnquireLink);
        sequence
    }

    pub(super) fn send_unbind(&mut self) -> u32 {
        let sequence = self.take_sequence();
        pdu::encode_request(&mut self.output, sequence, &Request::Unbind);
        sequence
    }

    fn may_request(&self, request: &Request) -> bool {
        let SessionState::Bound { mode, version } = self.state else { return false };
        match (self.role, request) {
            (SessionRole::Server, Request::DeliverSm(_)) => mode.receives(),
            // The text of a data_sm is in a TLV, so a peer without TLVs cannot get it.
            (_, Request::DataSm(_)) => version.takes_tlvs(),
            (
                SessionRole::Client,
                Request::SubmitSm(_)
                | Request::SubmitMulti(_)
                | Request::QuerySm(_)
                | Request::CancelSm(_)
                | Request::ReplaceSm(_),
            ) => mode.transmits(),
            (
                SessionRole::Client,
                Request::BroadcastSm(_) | Request::QueryBroadcastSm(_) | Request::CancelBroadcastSm(_),
            ) => mode.transmits() && version.takes_tlvs(),
            _ => false,
        }
    }

    /// Sends a request and returns its sequence number. `token` is the owner's token, which the events about the
    /// request contain.
    ///
    /// A request with a field that does not fit is not sent, and nothing of it is cut: its [`Event::Answer`] comes at
    /// once, with the status that a peer would give. If the peer takes no TLVs, they are left out, and
    /// message_payload becomes short_message.
    ///
    /// # Errors
    /// If the window is full, or the state does not allow the request.
    pub fn request(&mut self, now: Instant, token: u64, request: &Request) -> Result<u32, RequestError> {
        if !self.may_request(request) {
            return Err(RequestError::WrongState);
        }
        if self.window_free() == 0 {
            return Err(RequestError::WindowFull);
        }
        let mut sequence = self.take_sequence();
        while self.window.contains(sequence) {
            sequence = self.take_sequence();
        }
        match request_for_version(request, self.version()) {
            Ok(request) => {
                // The entry is added before the bytes are written, so no answer can come before it.
                self.window.add(now, sequence, token, request.command());
                if !self.timers.is_set(Timer::Response) {
                    self.timers.set_after(Timer::Response, now, self.options.response_timeout);
                }
                pdu::encode_request(&mut self.output, sequence, &request);
            }
            Err(BodyError { status, .. }) => {
                let response = Response::Empty;
                self.events.push_back(Event::Answer { token, status, response, late: false });
            }
        }
        Ok(sequence)
    }

    /// Server: notifies an ESME that a subscriber has become available. There is no response.
    ///
    /// # Errors
    /// If the session is not bound to receive.
    pub fn alert(&mut self, alert: AlertNotification) -> Result<(), RequestError> {
        match self.state {
            SessionState::Bound { mode, version } if self.role == SessionRole::Server && mode.receives() => {
                let mut alert = alert;
                if !version.takes_tlvs() {
                    alert.tlvs = Tlvs::default();
                }
                let sequence = self.take_sequence();
                pdu::encode_request(&mut self.output, sequence, &Request::AlertNotification(alert));
                Ok(())
            }
            _ => Err(RequestError::WrongState),
        }
    }

    /// Server, on an outgoing connection: asks the ESME to bind (34 §2.2.1). The only answer is the bind.
    ///
    /// # Errors
    /// If the session has bound already.
    pub fn outbind(&mut self, outbind: Outbind) -> Result<(), RequestError> {
        if self.role != SessionRole::Server || self.state != SessionState::Open {
            return Err(RequestError::WrongState);
        }
        let sequence = self.take_sequence();
        pdu::encode_request(&mut self.output, sequence, &Request::Outbind(outbind));
        Ok(())
    }

    /// Answers a request of the peer. Every [`Event::Request`] must be answered exactly once.
    pub fn respond(&mut self, command: CommandId, sequence: u32, status: CommandStatus, response: &Response) {
        self.unanswered_in = self.unanswered_in.saturating_sub(1);
        if self.state.is_closed() {
            return;
        }
        let plain = if self.version().takes_tlvs() { None } else { without_tlvs(response) };
        let response = plain.as_ref().unwrap_or(response);
        pdu::encode_response(&mut self.output, command.response(), status, sequence, response);
        self.answer_unbind_when_idle();
    }

    /// The unbind_resp is sent after all other answers.
    pub(super) fn answer_unbind_when_idle(&mut self) {
        if let SessionState::PeerUnbinding { sequence, .. } = self.state
            && self.unanswered_in == 0
            && self.backlog.is_empty()
        {
            self.answer_unbind(sequence);
        }
    }

    pub(super) fn answer_unbind(&mut self, sequence: u32) {
        let (command, status) = (CommandId::UNBIND.response(), CommandStatus::ROK);
        pdu::encode_response(&mut self.output, command, status, sequence, &Response::Empty);
        self.end(CloseReason::PeerUnbound);
    }

    /// Server: accepts the pending bind. Call [`Session::process`] for the input that followed it.
    pub fn accept_bind(&mut self, now: Instant, version: InterfaceVersion) {
        let SessionState::BindPending { mode, sequence } = self.state else { return };
        self.state = SessionState::Bound { mode, version };
        let tlvs = if version.takes_tlvs() {
            Tlvs::default().with(tag::SC_INTERFACE_VERSION, &[self.options.interface_version])
        } else {
            Tlvs::default()
        };
        let response = Response::Bind { system_id: self.options.system_id.clone(), tlvs };
        pdu::encode_response(
            &mut self.output,
            mode.command().response(),
            CommandStatus::ROK,
            sequence,
            &response,
        );
        self.start_supervision(now);
    }

    /// Server: refuses the pending bind and ends the session.
    pub fn refuse_bind(&mut self, status: CommandStatus) {
        let SessionState::BindPending { mode, sequence } = self.state else { return };
        pdu::encode_response(&mut self.output, mode.command().response(), status, sequence, &Response::Empty);
        self.end(CloseReason::Refused);
    }

    /// Unbinds: no new requests from here on; incoming requests are still answered.
    pub fn unbind(&mut self, now: Instant) {
        match self.state {
            SessionState::Bound { mode, version } => {
                let sequence = self.send_unbind();
                self.state = SessionState::Unbinding { mode, version, sequence };
                self.timers.set_after(Timer::Unbind, now, self.options.unbind_timeout);
            }
            SessionState::Open | SessionState::Binding { .. } | SessionState::BindPending { .. } => {
                self.end(CloseReason::Unbound);
            }
            SessionState::Unbinding { .. } | SessionState::PeerUnbinding { .. } | SessionState::Closed(_) => {
            }
        }
    }
}

/// Adapts a request to the peer's interface version.
fn request_for_version(request: &Request, version: InterfaceVersion) -> Result<Cow<'_, Request>, BodyError> {
    let request = match request.tlvs() {
        Some(tlvs) if !tlvs.is_empty() && !version.takes_tlvs() => {
            let mut plain = request.clone();
            match &mut plain {
                Request::SubmitSm(sm) | Request::DeliverSm(sm) => {
                    payload_to_short_message(&mut sm.short_message, &mut sm.tlvs)?;
                }
                Request::SubmitMulti(multi) => {
                    payload_to_short_message(&mut multi.sm.short_message, &mut multi.sm.tlvs)?;
                }
                Request::ReplaceSm(replace) => {
                    payload_to_short_message(&mut replace.short_message, &mut replace.tlvs)?;
                }
                _ => {}
            }
            Cow::Owned(plain)
        }
        _ => Cow::Borrowed(request),
    };
    request.fits()?;
    Ok(request)
}

fn payload_to_short_message(short_message: &mut Bytes, tlvs: &mut Tlvs) -> Result<(), BodyError> {
    if short_message.is_empty() {
        *short_message = tlvs.get(tag::MESSAGE_PAYLOAD).unwrap_or_default();
    }
    *tlvs = Tlvs::default();
    if short_message.len() > MAX_SHORT_MESSAGE {
        return Err(BodyError::new(CommandStatus::RINVMSGLEN, "no short_message holds this message_payload"));
    }
    Ok(())
}

/// The response without its TLVs; `None` if it has none.
fn without_tlvs(response: &Response) -> Option<Response> {
    if response.tlvs().is_none_or(Tlvs::is_empty) {
        return None;
    }
    let tlvs = Tlvs::default();
    Some(match response.clone() {
        Response::Bind { system_id, .. } => Response::Bind { system_id, tlvs },
        Response::MessageId { id, .. } => Response::MessageId { id, tlvs },
        Response::QueryBroadcast { id, .. } => Response::QueryBroadcast { id, tlvs },
        Response::SubmitMulti(multi) => Response::SubmitMulti(pdu::SubmitMultiResp { tlvs, ..multi }),
        other @ (Response::Empty | Response::Query(_)) => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bind, BindMode, PduFrame, Sm, SmppClientOptions, SmppOptions};

    fn bound_client(now: Instant) -> Session {
        let bind = Bind {
            mode: BindMode::Transceiver,
            system_id: Bytes::new(),
            password: Bytes::new(),
            system_type: Bytes::new(),
            interface_version: 0x34,
            addr_ton: 0,
            addr_npi: 0,
            address_range: Bytes::new(),
        };
        let options = SmppClientOptions { options: SmppOptions::default(), bind, await_outbind: None };
        let mut session = Session::client(now, options);
        session.receive(now, b"\0\0\0\x10\x80\0\0\x09\0\0\0\0\0\0\0\x01");
        while session.poll_event().is_some() {}
        session.output().clear();
        session
    }

    fn numbers_written(session: &mut Session) -> Vec<u32> {
        let mut output = std::mem::take(session.output());
        std::iter::from_fn(|| match PduFrame::cut(&mut output, u32::MAX) {
            PduFrame::Complete(header, _) => Some(header.sequence),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn check_112_sequence_numbers_wrap_to_1_and_skip_pending_ones() {
        let now = Instant::now();
        let mut session = bound_client(now);
        let request = Request::SubmitSm(Sm::default());
        // Numbers 2 and 3 are pending when the numbers restart.
        session.request(now, 1, &request).unwrap();
        session.request(now, 2, &request).unwrap();
        session.next_sequence = LAST_SEQUENCE - 1;
        for token in 3..=6 {
            session.request(now, token, &request).unwrap();
        }
        assert_eq!(numbers_written(&mut session), [2, 3, LAST_SEQUENCE - 1, LAST_SEQUENCE, 1, 4]);
        session.receive(now, b"\0\0\0\x10\x80\0\0\x04\0\0\0\x08\0\0\0\x02");
        assert!(matches!(session.poll_event(), Some(Event::Answer { token: 1, .. })));
        assert_eq!(session.close(), [2, 3, 4, 5, 6]);
    }
}

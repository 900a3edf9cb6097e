//! SGIP on a link. The side that connected sends commands, the other answers.

use super::bind_authenticator::{BindAuthenticator, BindDecision};
use super::incoming::IncomingSource;
use super::options::{GatewayOptions, SgipListenerOptions, SgipNodeOptions, SpOptions};
use super::outgoing::{Outgoing, OutgoingTarget};
use crate::pending_answers::PendingAnswers;
use crate::shared::Shared;
use bytes::{Bytes, BytesMut};
use model::{PeerId, Timestamp};
use ports::link::{
    BoundLink, DialTarget, DialedPeer, IncomingPeer, Link, LinkBlocker, LinkProtocol, LinkStep, LoginRefusal,
    PeerError, dial,
};
use ports::{FirstRequest, LinkCommand, LoginInterface, Protocol, clock};
use sgip::{
    Bind, HEADER_LENGTH, Header, LoginType, Pdu, ResultCode, Sequence, Session, SgipCloseReason, SgipCommand,
    SgipOptions,
};
use smpp::BindMode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The direction of the commands.
enum ConnectionSide {
    /// An incoming connection that has not logged in.
    Unbound(BindAuthenticator),
    /// The peer sends commands.
    Receives(IncomingSource),
    /// We send commands.
    Sends(Box<Outgoing>),
}

/// One SGIP connection.
pub(crate) struct SgipLink {
    session: Session,
    side: ConnectionSide,
    pending_answers: PendingAnswers,
}

impl SgipLink {
    /// An incoming connection of a listener.
    pub(crate) fn server(shared: &Arc<Shared>, options: &SgipListenerOptions, peer: IncomingPeer) -> Self {
        let session =
            SgipOptions { bind_timeout: options.bind_timeout, idle: options.idle, ..SgipOptions::default() };
        let authenticator = BindAuthenticator {
            shared: shared.clone(),
            any_login_type: options.any_login_type,
            timeout: options.bind_timeout / 2,
            incoming: peer,
        };
        Self {
            session: Session::acceptor(clock::now(), session),
            side: ConnectionSide::Unbound(authenticator),
            pending_answers: PendingAnswers::default(),
        }
    }
}

/// Starts to dial a gateway, to Submit.
pub(crate) fn dial_gateway(shared: &Shared, options: &Arc<GatewayOptions>) -> Result<DialedPeer, PeerError> {
    let to = dial_target(&options.name, options.peer, &options.address, &options.node, options.bind_timeout);
    dial_node(shared, to, OutgoingTarget::Gateway(options.clone()), &options.node, LoginType::SP)
}

/// Starts to dial an SP's listener, to Deliver and Report.
pub(crate) fn dial_sp(
    shared: &Shared,
    name: &str,
    peer: PeerId,
    options: &Arc<SpOptions>,
) -> Result<DialedPeer, PeerError> {
    let to = dial_target(name, peer, &options.address, &options.node, Duration::from_secs(10));
    let target = OutgoingTarget::Sp { peer, options: options.clone() };
    dial_node(shared, to, target, &options.node, LoginType::GATEWAY)
}

fn dial_target(
    name: &str,
    peer: PeerId,
    address: &str,
    node: &SgipNodeOptions,
    connect_timeout: Duration,
) -> DialTarget {
    DialTarget {
        name: name.to_owned(),
        peer,
        address: address.to_owned(),
        partition: None,
        links: node.connections,
        connect_timeout,
        redial_interval: Duration::from_secs(30),
        // SGIP expects short connections: gateways close an idle one and expect an immediate reconnect
        // (SGIP 1.2 §3.1).
        redial_stable_after: Some(Duration::from_millis(100)),
        tls: None,
    }
}

fn dial_node(
    shared: &Shared,
    to: DialTarget,
    target: OutgoingTarget,
    options: &SgipNodeOptions,
    login_type: LoginType,
) -> Result<DialedPeer, PeerError> {
    let session = SgipOptions {
        window_out: options.window.max(1),
        response_timeout: options.response_timeout,
        tries: options.tries.max(1),
        bind_timeout: to.connect_timeout,
        limit: options.quirks.limit,
        loose_match: options.quirks.loose_match,
        ..SgipOptions::default()
    };
    let bind = Bind {
        login_type,
        name: options.login_name.clone(),
        password: options.login_password.0.clone(),
        reserve: [0; 8],
    };
    let node = options.node;
    // Part 3 of the sequences of our own Binds.
    let counter = AtomicU32::new(0);
    dial(&shared.deps, to, move |now| {
        let sequence = Sequence::new(node, Timestamp::now(), counter.fetch_add(1, Relaxed));
        SgipLink {
            session: Session::connector(now, session.clone(), &bind, sequence),
            side: ConnectionSide::Sends(Box::new(Outgoing::new(target.clone()))),
            pending_answers: PendingAnswers::default(),
        }
    })
}

/// Octets of a Bind before its login name: the header and the login type (SGIP 1.2 §4.2.3.1).
const BEFORE_LOGIN_NAME: usize = HEADER_LENGTH + 1;
/// Octets of the field of the login name.
const LOGIN_NAME: usize = 16;

impl LinkProtocol for SgipLink {
    const PROTOCOL: Protocol = Protocol::Sgip;
    type Login = BindDecision;

    fn input(&mut self) -> &mut BytesMut {
        self.session.input()
    }

    fn output(&mut self) -> &mut BytesMut {
        self.session.output()
    }

    fn wants_input(&self) -> bool {
        self.session.wants_input()
    }

    fn process(&mut self, now: Instant) {
        self.session.process(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.session.deadline()
    }

    fn on_timeout(&mut self, now: Instant) {
        self.session.on_timeout(now);
    }

    fn is_bound(&self) -> bool {
        self.session.is_bound()
    }

    fn in_flight(&self) -> usize {
        self.session.in_flight()
    }

    fn unanswered_in(&self) -> usize {
        self.session.unanswered_in()
    }

    fn next_event(&mut self, link: &mut Link) -> LinkStep<BindDecision> {
        let Some(event) = self.session.poll_event() else { return LinkStep::Idle };
        match (event, &mut self.side) {
            (sgip::Event::Bind(bind), ConnectionSide::Unbound(authenticator)) => {
                return LinkStep::Login(authenticator.authenticate(bind));
            }
            (sgip::Event::Bound, ConnectionSide::Sends(outgoing)) => link.bind(BoundLink {
                peer: outgoing.peer(),
                mode: BindMode::Transmitter,
                version: outgoing.version(),
                window: outgoing.window(),
                takes_messages: true,
            }),
            (sgip::Event::BindRefused(code), _) => link.refused(refusal(code)),
            (sgip::Event::Command { number, sequence, pdu }, ConnectionSide::Receives(source)) => {
                match source.on_command(link, number, sequence, pdu) {
                    Ok(pending) => self.pending_answers.add(number, pending),
                    Err(code) => {
                        link.record.outbound.count_answer(u32::from(code.0));
                        self.session.respond(number, code);
                    }
                }
            }
            (sgip::Event::Answer { token, result, late }, ConnectionSide::Sends(outgoing)) => {
                link.record.inbound.count_answer(u32::from(result.0));
                if late && link.deps.log.take(link.now).is_some() {
                    tracing::info!(peer = %link.record.name, %result, "late answer");
                }
                let outcome = outgoing.on_answer(&link.record, link.now, token, result, link.id());
                link.events.extend(outcome);
            }
            (sgip::Event::Unanswered { token }, ConnectionSide::Sends(outgoing)) => {
                if link.deps.log.take(link.now).is_some() {
                    tracing::warn!(peer = %link.record.name, "command not answered");
                }
                let outcome = outgoing.on_answer_timeout(token, link.id());
                link.events.extend(outcome);
            }
            (sgip::Event::UnexpectedAnswer(sequence), _) => {
                tracing::debug!(peer = %link.record.name, ?sequence, "unexpected answer");
            }
            (sgip::Event::Closing(reason), _) => link.end(close_reason_text(reason), true),
            // Events that cannot occur on this side of the connection.
            _ => {}
        }
        LinkStep::Handled
    }

    fn on_login(&mut self, link: &mut Link, decision: BindDecision) {
        match decision {
            BindDecision::Refuse { code, reason } => {
                link.refuse(reason);
                self.session.refuse_bind(code);
            }
            BindDecision::Accept { source, session: (record, permit), window_in } => {
                link.identify(record, permit);
                self.session.set_window_in(window_in);
                self.session.set_accepts(source.accepts());
                self.session.accept_bind(link.now);
                if !self.is_bound() {
                    // The connection ended during the authentication.
                    return;
                }
                link.bind(BoundLink {
                    peer: source.peer(),
                    mode: source.mode(),
                    version: source.version(),
                    window: 0,
                    takes_messages: false,
                });
                self.side = ConnectionSide::Receives(source);
            }
        }
    }

    fn on_command(&mut self, link: &mut Link, command: LinkCommand) {
        match (command, &mut self.side) {
            (
                LinkCommand::Send { message, leg, taken, want_dlr, ticket, .. },
                ConnectionSide::Sends(outgoing),
            ) => {
                let outcome = outgoing.enqueue(message, leg, taken, want_dlr, ticket, link.id());
                link.events.extend(outcome);
            }
            (LinkCommand::Answer { token, answer }, ConnectionSide::Receives(source)) => {
                let code = |refusal| source.code(refusal);
                let (events, answered) =
                    self.pending_answers.on_engine_answer(link.id(), token, answer, code);
                link.events.extend(events);
                if let Some((number, code)) = answered {
                    link.record.outbound.count_answer(code);
                    self.session.respond(number, ResultCode(u8::try_from(code).unwrap_or(u8::MAX)));
                }
            }
            _ => {}
        }
    }

    fn fill_window(&mut self, link: &mut Link) -> bool {
        match &mut self.side {
            ConnectionSide::Sends(outgoing) => outgoing.fill_window(&mut self.session, link),
            ConnectionSide::Unbound(_) | ConnectionSide::Receives(_) => false,
        }
    }

    fn blocked_by(&self, _: Instant) -> LinkBlocker {
        let is_full = matches!(self.side, ConnectionSide::Sends(_)) && self.session.window_free() == 0;
        if is_full { LinkBlocker::PeerWindow } else { LinkBlocker::None }
    }

    fn is_idle(&self) -> bool {
        match &self.side {
            ConnectionSide::Sends(outgoing) => outgoing.is_idle(),
            ConnectionSide::Unbound(_) | ConnectionSide::Receives(_) => true,
        }
    }

    fn first_request(octets: &[u8]) -> FirstRequest {
        let Some(header) = Header::peek(octets) else { return FirstRequest::Incomplete };
        let is_bind = header.command == SgipCommand::Bind.id();
        let can_hold_name = header.length as usize >= BEFORE_LOGIN_NAME + LOGIN_NAME;
        if !is_bind || !can_hold_name {
            return FirstRequest::Other;
        }
        let Some(field) = octets.get(BEFORE_LOGIN_NAME..BEFORE_LOGIN_NAME + LOGIN_NAME) else {
            return FirstRequest::Incomplete;
        };
        let name = field.split(|octet| *octet == 0).next().unwrap_or_default();
        FirstRequest::Login(LoginInterface::Sgip, Bytes::copy_from_slice(name))
    }

    fn is_accepted(octets: &[u8]) -> Option<bool> {
        let header = Header::peek(octets)?;
        let result = ResultCode(*octets.get(HEADER_LENGTH)?);
        Some(header.command == SgipCommand::Bind.answer_id() && result.is_ok())
    }

    fn refuse_for_now(first_request: &[u8]) -> Vec<u8> {
        let Some(Header { sequence, .. }) = Header::peek(first_request) else { return Vec::new() };
        Pdu::answer(SgipCommand::Bind, ResultCode::BUSY).to_bytes(sequence).to_vec()
    }

    /// Only the side that connected unbinds; the other side just closes, which counts as an unbind.
    fn unbind(&mut self, now: Instant) -> bool {
        if !matches!(self.side, ConnectionSide::Sends(_)) {
            return false;
        }
        self.session.unbind(now, Sequence::new(0, Timestamp::now(), 0));
        true
    }

    fn close(mut self, link: &mut Link) {
        self.session.close();
        if let ConnectionSide::Sends(outgoing) = self.side {
            outgoing.close(link.written, link.id(), &mut link.events);
        }
    }
}

/// The effect of a refused login on the dialer.
fn refusal(code: ResultCode) -> LoginRefusal {
    let least_wait = match code {
        ResultCode::LOGIN | ResultCode::LOGIN_TYPE => Duration::from_secs(30),
        _ => Duration::ZERO,
    };
    let check = (code == ResultCode::LOGIN).then_some("login-name and login-password");
    LoginRefusal { reason: format!("login refused: {code}"), least_wait, check }
}

fn close_reason_text(reason: SgipCloseReason) -> String {
    match reason {
        SgipCloseReason::BindRefused(code) => format!("login of the peer refused: {code}"),
        SgipCloseReason::Refused(code) => format!("login refused: {code}"),
        SgipCloseReason::NoBind => "login timeout".to_owned(),
        SgipCloseReason::CommandBeforeBind => "command before login".to_owned(),
        SgipCloseReason::Malformed(what) => format!("malformed command: {what}"),
        SgipCloseReason::Partial => "incomplete PDU".to_owned(),
        SgipCloseReason::Idle => "idle timeout".to_owned(),
        SgipCloseReason::Unbound => "we unbound".to_owned(),
        SgipCloseReason::PeerUnbound => "the peer unbound".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(name: &'static [u8], login_type: LoginType) -> Bytes {
        let password = Bytes::from_static(b"secret");
        let bind = Bind { login_type, name: Bytes::from_static(name), password, reserve: [0; 8] };
        Pdu::Bind(bind).to_bytes(Sequence::new(3_010_000_007, Timestamp(0), 9))
    }

    #[test]
    fn the_name_of_a_bind_is_read_as_soon_as_it_is_there() {
        for (name, login_type) in
            [(&b"901234"[..], LoginType::SP), (b"a-name-of-16-oct", LoginType::GATEWAY), (b"", LoginType::SP)]
        {
            let octets = bind(name, login_type);
            for cut in 0..BEFORE_LOGIN_NAME + LOGIN_NAME {
                assert_eq!(SgipLink::first_request(&octets[..cut]), FirstRequest::Incomplete, "{cut}");
            }
            let login = FirstRequest::Login(LoginInterface::Sgip, Bytes::from_static(name));
            for cut in BEFORE_LOGIN_NAME + LOGIN_NAME..=octets.len() {
                assert_eq!(SgipLink::first_request(&octets[..cut]), login, "{cut}");
            }
        }
    }

    #[test]
    fn other_first_requests_are_served_locally() {
        let sequence = Sequence::new(1, Timestamp(0), 1);
        assert_eq!(SgipLink::first_request(&Pdu::Unbind.to_bytes(sequence)), FirstRequest::Other);
        assert_eq!(SgipLink::first_request(&[0xFF; 100]), FirstRequest::Other);
        let mut short = bind(b"901234", LoginType::SP).to_vec();
        short[3] = 21;
        assert_eq!(SgipLink::first_request(&short), FirstRequest::Other);
    }

    #[test]
    fn a_bind_whose_partition_has_no_leader_is_refused_for_now() {
        let octets = bind(b"901234", LoginType::SP);
        let refusal = SgipLink::refuse_for_now(&octets);
        let header = Header::peek(&refusal).unwrap();
        assert_eq!(header.sequence, Header::peek(&octets).unwrap().sequence);
        let answer = Pdu::decode(header.command, &refusal[HEADER_LENGTH..]).unwrap();
        assert_eq!(answer, Pdu::answer(SgipCommand::Bind, ResultCode::BUSY));
        assert_eq!(SgipLink::is_accepted(&refusal[..HEADER_LENGTH]), None);
        assert_eq!(SgipLink::is_accepted(&refusal), Some(false));
        let accepted = Pdu::answer(SgipCommand::Bind, ResultCode::OK).to_bytes(header.sequence);
        assert_eq!(SgipLink::is_accepted(&accepted), Some(true));
    }
}

//! One CMPP or SMGP connection, of either role.

use super::LinkedProtocol;
use super::incoming::Incoming;
use super::login::{LoginAuthenticator, LoginDecision};
use super::options::{SpListenerOptions, session_options};
use super::outgoing::{LinkPeer, Outgoing};
use crate::shared::Shared;
use bytes::BytesMut;
use ports::link::{BoundLink, IncomingPeer, Link, LinkBlocker, LinkProtocol, LinkStep, LoginRefusal};
use ports::{FirstRequest, LinkCommand, Protocol, clock};
use smpp::BindMode;
use sp_session::{
    DecodeError, Event, HEADER_LENGTH, Header, Meaning, PduRole, Session, SessionOptions, SpCloseReason,
};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The peer of a connection, before and after the login.
enum LinkSide<P: LinkedProtocol> {
    /// An incoming connection that has not logged in.
    Unbound(LoginAuthenticator<P>),
    /// Logged in; requests are exchanged.
    Known(LinkPeer),
}

/// One connection.
pub(crate) struct SpLink<P: LinkedProtocol> {
    session: Session<P>,
    side: LinkSide<P>,
    shared: Arc<Shared>,
    /// Our login, needed to check the gateway's proof of the password.
    login: Option<P::Pdu>,
    outgoing: Outgoing<P>,
    incoming: Incoming,
    /// Whether the SP may submit; a login may be for Delivers only.
    submits: bool,
}

impl<P: LinkedProtocol> SpLink<P> {
    /// An incoming connection of a listener.
    pub(crate) fn server(shared: &Arc<Shared>, options: &SpListenerOptions, peer: IncomingPeer) -> Self {
        let session = SessionOptions {
            login_timeout: options.bind_timeout,
            limit: P::MAX_LENGTH,
            ..SessionOptions::default()
        };
        let authenticator = LoginAuthenticator {
            shared: shared.clone(),
            timeout: options.bind_timeout / 2,
            incoming: Arc::new(peer),
            protocol: PhantomData,
        };
        Self {
            session: Session::gateway(clock::now(), session),
            side: LinkSide::Unbound(authenticator),
            shared: shared.clone(),
            login: None,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            submits: true,
        }
    }

    /// A connection to a gateway.
    pub(super) fn client(
        now: Instant,
        shared: &Arc<Shared>,
        options: SessionOptions,
        version: u8,
        login: P::Pdu,
        link_peer: LinkPeer,
    ) -> Self {
        Self {
            session: Session::sp(now, options, version, &login),
            side: LinkSide::Known(link_peer),
            shared: shared.clone(),
            login: Some(login),
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            submits: true,
        }
    }

    /// The gateway has accepted our login.
    fn on_logged_in(&mut self, link: &mut Link, answer: &P::Pdu) {
        let LinkSide::Known(LinkPeer::Gateway(options)) = &self.side else { return };
        let secret = &options.login_password.0;
        let proves = self.login.as_ref().is_some_and(|login| P::proves_secret(answer, login, secret));
        if !proves && options.gateway_proof {
            let check = Some("login-password, and whether the gateway can prove it: gateway-proof");
            let reason = "the gateway does not prove the password".to_owned();
            link.refused(LoginRefusal { reason: reason.clone(), least_wait: Duration::from_secs(60), check });
            return link.end(reason, false);
        }
        if !proves && link.deps.log.take(link.now).is_some() {
            tracing::warn!(peer = %link.record.name, "the gateway does not prove the password");
        }
        link.bind(BoundLink {
            peer: options.peer,
            mode: BindMode::Transceiver,
            version: self.session.version(),
            window: options.node.window,
            takes_messages: true,
        });
    }
}

/// The first PDU of a connection, with its sequence number; `None` if it is incomplete.
fn first_pdu<P: LinkedProtocol>(octets: &[u8]) -> Option<Result<(P::Pdu, u32), DecodeError>> {
    let header = Header::peek(octets)?;
    let length = usize::try_from(header.length.min(P::MAX_LENGTH)).unwrap_or(HEADER_LENGTH);
    if header.length > P::MAX_LENGTH {
        return Some(Err(DecodeError::Unknown(header.command)));
    }
    let body = octets.get(HEADER_LENGTH..length.max(HEADER_LENGTH))?;
    Some(P::decode(0, header, body).map(|pdu| (pdu, header.sequence)))
}

impl<P: LinkedProtocol> LinkProtocol for SpLink<P> {
    const PROTOCOL: Protocol = P::PROTOCOL;
    type Login = LoginDecision;

    fn first_request(octets: &[u8]) -> FirstRequest {
        match first_pdu::<P>(octets).map(|pdu| pdu.map(|(pdu, _)| P::meaning(&pdu))) {
            None => FirstRequest::Incomplete,
            Some(Ok(Meaning::Login(login))) => FirstRequest::Login(P::INTERFACE, login.name),
            Some(_) => FirstRequest::Other,
        }
    }

    fn is_accepted(octets: &[u8]) -> Option<bool> {
        let pdu = first_pdu::<P>(octets)?;
        Some(pdu.is_ok_and(|(pdu, _)| P::role(&pdu) == PduRole::LoginAnswer(0)))
    }

    fn refuse_for_now(first_request: &[u8]) -> Vec<u8> {
        let mut answer = BytesMut::new();
        if let Some(Ok((pdu, sequence))) = first_pdu::<P>(first_request)
            && let Meaning::Login(login) = P::meaning(&pdu)
        {
            let refusal = P::login_answer(P::STATUS.login_busy, &login, login.version, b"");
            // All fields of a login answer have a fixed length.
            let _ = P::encode(&refusal, login.version, sequence, &mut answer);
        }
        answer.to_vec()
    }

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
        self.session.is_logged_in()
    }

    fn in_flight(&self) -> usize {
        self.session.in_flight()
    }

    fn unanswered_in(&self) -> usize {
        self.session.unanswered_in()
    }

    fn next_event(&mut self, link: &mut Link) -> LinkStep<LoginDecision> {
        let Some(event) = self.session.poll_event() else { return LinkStep::Idle };
        match (event, &self.side) {
            (Event::Login(pdu), LinkSide::Unbound(authenticator)) => {
                if let Meaning::Login(login) = P::meaning(&pdu) {
                    return LinkStep::Login(authenticator.authenticate(login));
                }
            }
            (Event::LoggedIn(answer), _) => self.on_logged_in(link, &answer),
            (Event::LoginRefused(answer), _) => {
                if let PduRole::LoginAnswer(status) = P::role(&answer) {
                    link.refused(refusal::<P>(status));
                }
            }
            (Event::Request { sequence, pdu }, LinkSide::Known(link_peer)) => {
                if self.submits {
                    let session = &mut self.session;
                    self.incoming.on_request(session, link_peer, &self.shared, link, sequence, &pdu);
                } else {
                    link.record.outbound.count_answer(P::STATUS.command);
                    self.session.refuse(sequence, P::STATUS.command, true);
                }
            }
            (Event::Answer { token, pdu, late }, LinkSide::Known(link_peer)) => {
                if late && link.deps.log.take(link.now).is_some() {
                    tracing::info!(peer = %link.record.name, "late response");
                }
                self.outgoing.on_answer(link_peer, link, token, &pdu);
            }
            (Event::Unanswered { token }, _) => {
                if link.deps.log.take(link.now).is_some() {
                    tracing::warn!(peer = %link.record.name, "request timed out");
                }
                let outcome = self.outgoing.on_answer_timeout(token, link.id());
                link.events.extend(outcome);
            }
            (Event::UnexpectedAnswer { sequence }, _) => {
                tracing::debug!(peer = %link.record.name, sequence, "unexpected response");
            }
            (Event::Closing(reason), _) => {
                link.end(close_reason_text::<P>(reason), reason != SpCloseReason::Dead);
            }
            // Events that the side of the connection excludes.
            (Event::Login(_) | Event::Request { .. } | Event::Answer { .. }, _) => {}
        }
        LinkStep::Handled
    }

    fn on_login(&mut self, link: &mut Link, decision: LoginDecision) {
        match decision {
            LoginDecision::Refuse { status, reason, login, highest } => {
                link.refuse(reason);
                // The client expects the answer in the layout of the version that it offered.
                let answer = P::login_answer(status, &login, highest, &[]);
                self.session.refuse_login(&answer, login.version, status);
            }
            LoginDecision::Accept { sp, session: (record, permit), login } => {
                link.identify(record, permit);
                let options = sp.options.clone();
                let answer = P::login_answer(0, &login, login.version, &options.inbound_password.0);
                let session = session_options::<P>(&options.node);
                self.session.set_options(SessionOptions { window_in: options.window_in, ..session });
                self.session.accept_login(link.now, &answer, login.version);
                if !self.is_bound() {
                    // The connection ended during the authentication.
                    return;
                }
                self.submits = login.submits;
                link.bind(BoundLink {
                    peer: sp.account.options().peer,
                    mode: match (login.submits, login.receives) {
                        (true, false) => BindMode::Transmitter,
                        (false, _) => BindMode::Receiver,
                        (true, true) => BindMode::Transceiver,
                    },
                    version: login.version,
                    window: options.node.window,
                    takes_messages: login.receives,
                });
                self.side = LinkSide::Known(LinkPeer::Sp(sp));
            }
        }
    }

    fn on_command(&mut self, link: &mut Link, command: LinkCommand) {
        let LinkSide::Known(link_peer) = &self.side else { return };
        match command {
            LinkCommand::Send { message, leg, taken, want_dlr, ticket, .. } => {
                let (version, id) = (self.session.version(), link.id());
                let outcome =
                    self.outgoing.enqueue(link_peer, version, message, leg, taken, want_dlr, ticket, id);
                link.events.extend(outcome);
            }
            LinkCommand::Answer { token, answer } => {
                self.incoming.on_engine_answer(&mut self.session, link_peer, link, token, answer);
            }
            // These protocols have no query for a single message.
            LinkCommand::QueryPeer { .. }
            | LinkCommand::SubscriberReachable { .. }
            | LinkCommand::Flushed => {}
        }
    }

    fn fill_window(&mut self, link: &mut Link) -> bool {
        match &self.side {
            LinkSide::Known(link_peer) => self.outgoing.fill_window(&mut self.session, link_peer, link),
            LinkSide::Unbound(_) => false,
        }
    }

    fn blocked_by(&self, _: Instant) -> LinkBlocker {
        let is_full = self.session.is_logged_in() && self.session.window_free() == 0;
        if is_full { LinkBlocker::PeerWindow } else { LinkBlocker::None }
    }

    fn is_idle(&self) -> bool {
        self.outgoing.is_idle()
    }

    fn probe(&mut self) -> bool {
        self.session.test_link(clock::now());
        true
    }

    fn unbind(&mut self, now: Instant) -> bool {
        self.session.logout(now);
        true
    }

    fn close(mut self, link: &mut Link) {
        self.session.close();
        self.outgoing.close(link.written, link.id(), &mut link.events);
    }
}

/// The effect of a refused login on the dialer.
fn refusal<P: LinkedProtocol>(status: u32) -> LoginRefusal {
    // Only an admin can correct these, and gateways lock accounts that try too often.
    let wrong = [P::STATUS.login_name, P::STATUS.login_secret, P::STATUS.login_version];
    let is_wrong = wrong.contains(&status);
    LoginRefusal {
        reason: format!("login refused: {}", login_status_text::<P>(status)),
        least_wait: Duration::from_secs(if is_wrong { 60 } else { 5 }),
        check: is_wrong.then_some("login-name, login-password and version, and the clock of this machine"),
    }
}

/// Meaning of a status in the answer to a login.
pub(super) fn login_status_text<P: LinkedProtocol>(status: u32) -> String {
    let status_of = P::STATUS;
    let text = match status {
        status if status == status_of.login_version => "version not served",
        status if status == status_of.login_secret => "authentication failed",
        status if status == status_of.login_name => "source address wrong",
        status if status == status_of.login_busy => "not now, or too many connections",
        status if status == status_of.structure => "structure wrong",
        _ => "refused",
    };
    format!("{status}: {text}")
}

fn close_reason_text<P: LinkedProtocol>(reason: SpCloseReason) -> String {
    match reason {
        SpCloseReason::LoginRefused(status) => {
            format!("login of the peer refused: {}", login_status_text::<P>(status))
        }
        SpCloseReason::Refused(status) => format!("login refused: {}", login_status_text::<P>(status)),
        SpCloseReason::NoLogin => "login timeout".to_owned(),
        SpCloseReason::RequestBeforeLogin => "request before login".to_owned(),
        SpCloseReason::Malformed(what) => format!("malformed PDU: {what}"),
        SpCloseReason::Partial => "incomplete PDU".to_owned(),
        SpCloseReason::Dead => "no answer to link tests".to_owned(),
        SpCloseReason::LoggedOut => "we logged out".to_owned(),
        SpCloseReason::PeerLoggedOut => "the peer logged out".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cmpp::Cmpp;
    use smgp::Smgp;

    /// The login of `acme` is read and temporarily refused.
    fn passes_on<P: LinkedProtocol>(version: u8) {
        let login = P::login(&sp_session::OwnLogin {
            name: b"901234",
            secret: b"secret",
            timestamp: 1_129_080_000,
            version,
            unpadded: false,
        });
        let mut octets = BytesMut::new();
        P::encode(&login, version, 7, &mut octets).unwrap();
        for cut in 0..octets.len() {
            assert_eq!(SpLink::<P>::first_request(&octets[..cut]), FirstRequest::Incomplete, "{cut}");
        }
        let named = FirstRequest::Login(P::INTERFACE, bytes::Bytes::from_static(b"901234"));
        assert_eq!(SpLink::<P>::first_request(&octets), named);
        let refusal = SpLink::<P>::refuse_for_now(&octets);
        let answer = P::decode(version, Header::peek(&refusal).unwrap(), &refusal[HEADER_LENGTH..]).unwrap();
        assert_eq!(P::role(&answer), PduRole::LoginAnswer(P::STATUS.login_busy));
        assert_eq!(SpLink::<P>::is_accepted(&refusal[..refusal.len() - 1]), None);
        assert_eq!(SpLink::<P>::is_accepted(&refusal), Some(false));
        let Meaning::Login(offered) = P::meaning(&login) else { panic!("no login") };
        let mut accepted = BytesMut::new();
        P::encode(&P::login_answer(0, &offered, version, b"secret"), version, 7, &mut accepted).unwrap();
        assert_eq!(SpLink::<P>::is_accepted(&accepted), Some(true));
        octets.clear();
        P::encode(&P::link_test(false), version, 1, &mut octets).unwrap();
        assert_eq!(SpLink::<P>::first_request(&octets), FirstRequest::Other);
        assert_eq!(SpLink::<P>::first_request(&[0xFF; 5000]), FirstRequest::Other);
    }

    #[test]
    fn the_logins_of_other_partitions_are_passed_on_or_refused_for_now() {
        passes_on::<Cmpp>(0x20);
        passes_on::<Cmpp>(0x30);
        passes_on::<Smgp>(0x30);
    }

    #[test]
    fn check_34_a_refused_login_is_not_repeated_at_once() {
        for status in [2, 3, 4] {
            assert_eq!(refusal::<Cmpp>(status).least_wait, Duration::from_secs(60));
        }
        for status in [21, 22] {
            assert_eq!(refusal::<Smgp>(status).least_wait, Duration::from_secs(60));
        }
        for status in [5, 6, 200, 0x0100_0000] {
            assert_eq!(refusal::<Cmpp>(status).least_wait, Duration::from_secs(5));
            assert!(refusal::<Cmpp>(status).check.is_none());
        }
    }
}

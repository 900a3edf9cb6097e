//! One connection between an SP and a gateway, seen from either end.

mod answers;
mod event;
mod input;
mod window;

use event::SessionRole;
pub use event::{Event, SessionOptions, SpCloseReason, SpRequestError};

use crate::SpProtocol;
use answers::Answers;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use window::{Due, Window};

/// One connection between an SP and a gateway, seen from either end.
///
/// Pass bytes and the time to it; it returns events for the owner and bytes for the peer. It never blocks, never reads
/// a clock, and holds at most `window_out` unanswered requests of ours, `window_in` of the peer, and one incomplete PDU.
///
/// The owner repeats these steps: read into [`Session::input`] while [`Session::wants_input`], call
/// [`Session::process`], take all events, answer, call [`Session::process`] after answers, and write
/// [`Session::output`].
#[derive(Debug)]
pub struct Session<P: SpProtocol> {
    role: SessionRole,
    options: SessionOptions,
    state: State,
    /// The version that determines the layout of PDUs: the offered one, until a login is accepted.
    version: u8,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event<P>>,
    window: Window,
    answers: Answers,
    sequence: u32,
    /// Time of the peer's last PDU.
    last_received_at: Instant,
    /// The unanswered link test.
    test: Option<LinkTest>,
    login_by: Option<Instant>,
    partial_by: Option<Instant>,
    logout_by: Option<Instant>,
}

#[derive(Debug)]
struct LinkTest {
    octets: Bytes,
    sent: u32,
    due: Option<Instant>,
}

/// The state of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// SP: our login is sent, with this sequence id. Gateway: no login has come.
    Open {
        login: Option<u32>,
    },
    /// Gateway: a login waits for the owner's decision; later input waits too.
    LoginPending {
        sequence: u32,
    },
    LoggedIn,
    /// Our logout is sent.
    LoggingOut {
        sequence: u32,
    },
    /// The peer has logged out. Earlier requests are still answered, on both sides.
    PeerLoggingOut {
        sequence: u32,
    },
    Closed,
}

impl<P: SpProtocol> Session<P> {
    /// Creates the connection of an SP; our login is in the output at once. `version` is the offered one. The name in
    /// the login must fit its field: otherwise nothing is sent, and the session ends.
    #[must_use]
    pub fn sp(now: Instant, options: SessionOptions, version: u8, login: &P::Pdu) -> Self {
        let mut session = Self::new(SessionRole::Sp, now, options, version);
        let sequence = session.next_sequence();
        session.state = State::Open { login: Some(sequence) };
        if P::encode(login, version, sequence, &mut session.output).is_err() {
            session.end(SpCloseReason::Malformed("the login name is longer than its field"));
        }
        session
    }

    /// Creates the connection of a gateway.
    #[must_use]
    pub fn gateway(now: Instant, options: SessionOptions) -> Self {
        Self::new(SessionRole::Gateway, now, options, 0)
    }

    fn new(role: SessionRole, now: Instant, options: SessionOptions, version: u8) -> Self {
        let login_by = after(now, options.login_timeout);
        Self {
            role,
            options,
            state: State::Open { login: None },
            version,
            input: BytesMut::new(),
            output: BytesMut::new(),
            events: VecDeque::new(),
            window: Window::default(),
            answers: Answers::default(),
            sequence: 0,
            last_received_at: now,
            test: None,
            login_by,
            partial_by: None,
            logout_by: None,
        }
    }

    /// The version of the session, once it is logged in.
    #[must_use]
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Whether the login was accepted and no side logs out.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        self.state == State::LoggedIn
    }

    /// Whether the session has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The next event for the owner.
    pub fn poll_event(&mut self) -> Option<Event<P>> {
        self.events.pop_front()
    }

    /// The output for the peer, in whole PDUs; the owner may write it in any portions.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Number of unanswered requests of ours.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.window.len()
    }

    /// The number of requests that may still be sent before the window is full.
    #[must_use]
    pub fn window_free(&self) -> usize {
        if self.is_logged_in() { self.options.window_out.saturating_sub(self.window.len()) } else { 0 }
    }

    /// Number of the peer's requests that wait for the owner's answer.
    #[must_use]
    pub fn unanswered_in(&self) -> usize {
        self.answers.waiting()
    }

    /// Sets the options of the peer, which is known after its login.
    pub fn set_options(&mut self, options: SessionOptions) {
        self.options = options;
    }

    /// Accepts a login, with this answer. Later PDUs have the layout of `version`.
    pub fn accept_login(&mut self, now: Instant, answer: &P::Pdu, version: u8) {
        if let State::LoginPending { sequence } = self.state {
            self.state = State::LoggedIn;
            self.version = version;
            self.login_by = None;
            self.last_received_at = now;
            self.write(answer, sequence);
            self.process(now);
        }
    }

    /// Refuses a login, with this answer in the layout of `version`, and ends the session.
    pub fn refuse_login(&mut self, answer: &P::Pdu, version: u8, status: u32) {
        if let State::LoginPending { sequence } = self.state {
            self.version = version;
            self.write(answer, sequence);
            self.end(SpCloseReason::LoginRefused(status));
        }
    }

    /// Sends a request. `token` identifies it in later events.
    ///
    /// # Errors
    /// If the session is not logged in, the window is full, or a field does not fit.
    pub fn send(&mut self, now: Instant, token: u64, pdu: &P::Pdu) -> Result<(), SpRequestError> {
        if !self.is_logged_in() {
            return Err(SpRequestError::NotLoggedIn);
        }
        if self.window.len() >= self.options.window_out {
            return Err(SpRequestError::WindowFull);
        }
        let sequence = self.next_sequence();
        let start = self.output.len();
        P::encode(pdu, self.version, sequence, &mut self.output)?;
        let octets = Bytes::copy_from_slice(&self.output[start..]);
        self.window.add(sequence, token, octets, now, &self.options);
        Ok(())
    }

    /// Answers a request of the peer, once. An unknown sequence id is ignored. With `remember` a repetition of the
    /// request gets the same answer; without, it is a new request.
    pub fn respond(&mut self, sequence: u32, pdu: &P::Pdu, remember: bool) {
        let mut octets = BytesMut::new();
        // An answer contains only fields of fixed length, so it can be encoded.
        if P::encode(pdu, self.version, sequence, &mut octets).is_ok() {
            let octets = octets.freeze();
            for _ in 0..self.answers.answered(sequence, &octets, remember) {
                self.output.extend_from_slice(&octets);
            }
        }
        self.finish_peer_logout();
    }

    /// Answers a request with a status and nothing else.
    pub fn refuse(&mut self, sequence: u32, status: u32, remember: bool) {
        let answer = self.answers.command(sequence).and_then(|command| P::refusal(command, status));
        match answer {
            Some(answer) => self.respond(sequence, &answer, remember),
            None => {
                self.answers.answered(sequence, &Bytes::new(), false);
                self.finish_peer_logout();
            }
        }
    }

    /// Logs out: nothing more may be sent; unanswered requests may still be answered.
    pub fn logout(&mut self, now: Instant) {
        match self.state {
            State::LoggedIn => {
                let sequence = self.next_sequence();
                self.state = State::LoggingOut { sequence };
                self.logout_by = after(now, self.options.response_timeout);
                self.write(&P::logout(false), sequence);
            }
            State::Open { .. } | State::LoginPending { .. } => self.end(SpCloseReason::LoggedOut),
            State::LoggingOut { .. } | State::PeerLoggingOut { .. } | State::Closed => {}
        }
    }

    /// Sends a link test at once, without waiting for the idle time. Has no effect while one is unanswered.
    pub fn test_link(&mut self, now: Instant) {
        if self.test.is_some() || !self.is_logged_in() {
            return;
        }
        let sequence = self.next_sequence();
        let start = self.output.len();
        self.write(&P::link_test(false), sequence);
        let octets = Bytes::copy_from_slice(&self.output[start..]);
        let due = after(now, self.options.response_timeout);
        self.test = Some(LinkTest { octets, sent: 1, due });
    }

    /// Closes the session after the connection has ended. Returns the tokens of our unanswered requests, in the order
    /// in which they were sent.
    pub fn close(&mut self) -> Vec<u64> {
        self.state = State::Closed;
        self.window.drain()
    }

    /// The time at which [`Session::on_timeout`] must be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if self.is_closed() {
            return None;
        }
        [self.login_by, self.partial_by, self.logout_by, self.link_test_due(), self.window.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn link_test_due(&self) -> Option<Instant> {
        match &self.test {
            Some(test) => test.due,
            None if self.is_logged_in() => after(self.last_received_at, self.options.idle),
            None => None,
        }
    }

    /// Handles the deadlines that have passed.
    pub fn on_timeout(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.is_closed() {
            return;
        }
        if is_due(self.login_by) {
            return self.end(SpCloseReason::NoLogin);
        }
        if is_due(self.partial_by) {
            return self.end(SpCloseReason::Partial);
        }
        if is_due(self.logout_by) {
            if let State::PeerLoggingOut { sequence } = self.state {
                self.write(&P::logout(true), sequence);
                return self.end(SpCloseReason::PeerLoggedOut);
            }
            return self.end(SpCloseReason::LoggedOut);
        }
        if is_due(self.link_test_due()) {
            let (wait, tries) = (self.options.response_timeout, self.options.tries);
            match &mut self.test {
                None => self.test_link(now),
                Some(test) if test.sent < tries => {
                    test.sent += 1;
                    test.due = after(now, wait);
                    self.output.extend_from_slice(&test.octets);
                }
                Some(_) => return self.end(SpCloseReason::Dead),
            }
        }
        while let Some(due) = self.window.pop_due(now, &self.options) {
            match due {
                // The same octets: the peer recognizes the repetition by its sequence id.
                Due::Resend(octets) => self.output.extend_from_slice(&octets),
                Due::GivenUp(token) => self.events.push_back(Event::Unanswered { token }),
            }
        }
        self.finish_peer_logout();
    }

    fn next_sequence(&mut self) -> u32 {
        loop {
            self.sequence = self.sequence.wrapping_add(1);
            if !self.window.contains(self.sequence) {
                return self.sequence;
            }
        }
    }

    /// Writes a PDU of ours whose fields always fit.
    fn write(&mut self, pdu: &P::Pdu, sequence: u32) {
        let encoded = P::encode(pdu, self.version, sequence, &mut self.output);
        debug_assert!(encoded.is_ok(), "{encoded:?}");
    }

    fn end(&mut self, reason: SpCloseReason) {
        if self.is_closed() {
            return;
        }
        self.state = State::Closed;
        self.input = BytesMut::new();
        self.answers.clear();
        self.events.push_back(Event::Closing(reason));
    }

    /// Answers the peer's logout once all requests before it are answered, on both sides.
    fn finish_peer_logout(&mut self) {
        if let State::PeerLoggingOut { sequence } = self.state
            && self.answers.waiting() == 0
            && self.window.len() == 0
        {
            self.write(&P::logout(true), sequence);
            self.end(SpCloseReason::PeerLoggedOut);
        }
    }
}

/// The moment `wait` after `at`; `None` for a wait of zero, which means never.
fn after(at: Instant, wait: Duration) -> Option<Instant> {
    if wait.is_zero() { None } else { at.checked_add(wait) }
}

//! One SMPP connection, seen from our side of the socket.

mod enquire_link;
mod event;
mod input;
mod outgoing;
mod session_state;
mod smpp_options;
mod timer;
mod window;

pub use event::{CloseReason, Event, ProtocolAnomaly};
pub use session_state::{RequestError, SessionState};
pub use smpp_options::{InterfaceVersion, SmppClientOptions, SmppOptions, WindowFullPolicy};
pub use timer::Timer;

use crate::pdu::{BindMode, Header};
use bytes::{Bytes, BytesMut};
use enquire_link::{EnquireAction, EnquireLinkMonitor};
use session_state::SessionRole;
use std::collections::VecDeque;
use std::time::Instant;
use timer::{TimerTable, after};
use window::Window;

/// One SMPP connection, seen from our side of the socket.
///
/// Pass bytes and the time to it; it returns events for the owner and bytes for the peer. It never blocks, never
/// reads a clock, and holds at most `window_out` unanswered requests of ours, `window_in` of the peer, and a bounded
/// backlog.
///
/// The owner repeats these steps: read into [`Session::input`] if [`Session::wants_input`], call
/// [`Session::process`], take all events, answer the requests, call `process` again after answers, and write
/// [`Session::output`]. It calls [`Session::on_timeout`] at [`Session::deadline`], and closes a connection whose peer
/// leaves too much of the output unread.
#[derive(Debug)]
pub struct Session {
    role: SessionRole,
    options: SmppOptions,
    client: Option<SmppClientOptions>,
    state: SessionState,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event>,
    timers: TimerTable,
    enquire_link: EnquireLinkMonitor,
    next_sequence: u32,
    window: Window,
    /// Requests of the peer that the owner has not answered.
    unanswered_in: usize,
    /// Requests of the peer that wait for the window.
    backlog: VecDeque<(Header, Bytes)>,
    backlog_octets: usize,
    congestion: Option<u8>,
}

impl Session {
    /// Creates the session of an incoming connection.
    #[must_use]
    pub fn server(now: Instant, options: SmppOptions) -> Self {
        Self::new(SessionRole::Server, now, options, None)
    }

    /// Creates the session of an outgoing connection. Our bind is in the output at once, unless an outbind is
    /// awaited.
    #[must_use]
    pub fn client(now: Instant, options: SmppClientOptions) -> Self {
        let waits = options.await_outbind.is_some();
        let mut session = Self::new(SessionRole::Client, now, options.options.clone(), Some(options));
        if !waits {
            session.send_bind();
        }
        session
    }

    fn new(role: SessionRole, now: Instant, options: SmppOptions, client: Option<SmppClientOptions>) -> Self {
        let mut timers = TimerTable::default();
        timers.set_after(Timer::Init, now, options.init_timeout);
        Self {
            role,
            options,
            client,
            state: SessionState::Open,
            input: BytesMut::new(),
            output: BytesMut::new(),
            events: VecDeque::new(),
            timers,
            enquire_link: EnquireLinkMonitor::new(now),
            next_sequence: 1,
            window: Window::default(),
            unanswered_in: 0,
            backlog: VecDeque::new(),
            backlog_octets: 0,
            congestion: None,
        }
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// The bind mode, while bound.
    #[must_use]
    pub fn bound_as(&self) -> Option<BindMode> {
        match self.state {
            SessionState::Bound { mode, .. } => Some(mode),
            _ => None,
        }
    }

    /// The interface version of the peer; 3.4 while unknown.
    #[must_use]
    pub fn version(&self) -> InterfaceVersion {
        self.state.binding().map_or(InterfaceVersion::V34, |(_, version)| version)
    }

    /// The next event for the owner.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The output for the peer. The owner removes what it has written, and limits the length: it grows if the peer
    /// does not read.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Requests of ours that are unanswered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.window.len()
    }

    /// The number of requests that may still be sent before the window is full.
    #[must_use]
    pub fn window_free(&self) -> usize {
        self.options.window_out.saturating_sub(self.window.len())
    }

    /// Changes the window of our requests.
    pub fn set_window_out(&mut self, window: usize) {
        self.options.window_out = window.max(1);
    }

    /// Changes the window of the peer's requests.
    pub fn set_window_in(&mut self, window: usize) {
        self.options.window_in = window.max(1);
    }

    /// Requests of the peer that wait for the owner's answer.
    #[must_use]
    pub fn unanswered_in(&self) -> usize {
        self.unanswered_in
    }

    /// The last congestion_state of the peer (5.0): 0 idle to 100 congested.
    #[must_use]
    pub fn congestion(&self) -> Option<u8> {
        self.congestion
    }

    /// The time at which [`Session::on_timeout`] must be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.next_timeout()
    }

    /// Closes the session after the connection has ended. Returns the tokens of all unanswered requests, in the order
    /// in which they were sent.
    pub fn close(&mut self) -> Vec<u64> {
        self.timers.stop_all();
        self.window.drain()
    }

    /// Handles the timers that are due.
    pub fn on_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Init => self.end(CloseReason::NoBind),
                // While the session takes no input, it cannot see whether the peer is silent: the timers start again.
                Timer::Enquire if !self.wants_input() => {
                    self.enquire_link.on_pdu(now);
                    self.start_enquire_timer(now);
                }
                Timer::Inactivity if !self.wants_input() => {
                    self.timers.set_after(Timer::Inactivity, now, self.options.inactivity);
                }
                Timer::Partial => self.end(CloseReason::Partial),
                Timer::Enquire => self.enquire(now),
                Timer::Response => self.expire_requests(now),
                Timer::Inactivity => self.check_inactivity(now),
                Timer::Unbind => {
                    let reason = match self.state {
                        SessionState::PeerUnbinding { .. } => CloseReason::PeerUnbound,
                        _ => CloseReason::Unbound,
                    };
                    self.end(reason);
                }
            }
        }
    }

    /// Starts the timers that supervise a bound peer.
    fn start_supervision(&mut self, now: Instant) {
        self.timers.stop(Timer::Init);
        self.enquire_link.on_pdu(now);
        self.start_enquire_timer(now);
        if !self.options.inactivity.is_zero() {
            self.timers.set_after(Timer::Inactivity, now, self.options.inactivity);
        }
    }

    fn start_enquire_timer(&mut self, now: Instant) {
        if !self.options.enquire_interval.is_zero() {
            self.timers.set_after(Timer::Enquire, now, self.options.enquire_interval);
        }
    }

    fn enquire(&mut self, now: Instant) {
        if self.bound_as().is_none() {
            return;
        }
        match self.enquire_link.check(now, &self.options) {
            EnquireAction::CheckAgain(at) => self.timers.set(Timer::Enquire, at),
            EnquireAction::SendEnquireLink => {
                let sequence = self.send_enquire_link();
                self.enquire_link.on_enquire_link_sent(now, sequence);
                self.timers.set_after(Timer::Enquire, now, self.options.enquire_timeout);
            }
            EnquireAction::PeerDead => self.end(CloseReason::Dead),
        }
    }

    fn check_inactivity(&mut self, now: Instant) {
        let until = after(self.enquire_link.last_pdu_at(), self.options.inactivity);
        if until > now {
            self.timers.set(Timer::Inactivity, until);
        } else {
            self.send_unbind();
            self.end(CloseReason::Inactive);
        }
    }

    /// Expires the requests that have waited too long; their outcome is uncertain.
    fn expire_requests(&mut self, now: Instant) {
        while let Some(token) = self.window.expire_oldest(now, self.options.response_timeout) {
            self.events.push_back(Event::Unanswered { token });
        }
        if let Some(oldest) = self.window.oldest() {
            self.timers.set_after(Timer::Response, oldest, self.options.response_timeout);
        }
    }

    fn end(&mut self, reason: CloseReason) {
        if self.state.is_closed() {
            return;
        }
        self.state = SessionState::Closed(reason);
        self.timers.stop_all();
        self.input = BytesMut::new();
        self.backlog = VecDeque::new();
        self.backlog_octets = 0;
        self.events.push_back(Event::Closing(reason));
    }
}

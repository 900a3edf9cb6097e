//! One SMPP connection, seen from our side of the socket.

mod event;
mod input;
mod options;
mod outgoing;
mod state;
mod timer;
mod watch;
mod window;

pub use event::{CloseReason, Event, Note};
pub use options::{ClientOptions, Options, Version, WhenFull};
pub use state::{RequestError, SessionState};
pub use timer::Timer;

use crate::pdu::{BindMode, Header};
use bytes::{Bytes, BytesMut};
use state::Role;
use std::collections::VecDeque;
use std::time::Instant;
use timer::{TimerTable, after};
use watch::{Sign, Watch};
use window::Window;

/// One SMPP connection, seen from our side of the socket.
///
/// Feed it bytes and the time; it answers with events for the owner and bytes for the peer. It never blocks, never reads
/// a clock, holds at most `window_out` unanswered requests of ours, `window_in` of the peer's, and a bounded backlog.
///
/// The owner's turn is always the same: read into [`Session::input`] if [`Session::wants_input`], call
/// [`Session::process`], take all events, answer what has an answer, call `process` again where answers were given, and
/// write [`Session::output`]. It calls [`Session::on_timeout`] when [`Session::deadline`] has come, and drops a peer
/// that leaves too much of the output unread.
#[derive(Debug)]
pub struct Session {
    role: Role,
    options: Options,
    client: Option<ClientOptions>,
    state: SessionState,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event>,
    timers: TimerTable,
    watch: Watch,
    next_sequence: u32,
    window: Window,
    /// Requests of the peer's that our owner has not answered.
    unanswered_in: usize,
    /// Requests of the peer's that wait for a place among those.
    backlog: VecDeque<(Header, Bytes)>,
    backlog_octets: usize,
    congestion: Option<u8>,
}

impl Session {
    /// A connection that a peer made to us.
    #[must_use]
    pub fn server(now: Instant, options: Options) -> Self {
        Self::new(Role::Server, now, options, None)
    }

    /// A connection that we made to a peer; our bind is in the output at once, unless an outbind is awaited.
    #[must_use]
    pub fn client(now: Instant, options: ClientOptions) -> Self {
        let waits = options.await_outbind.is_some();
        let mut session = Self::new(Role::Client, now, options.options.clone(), Some(options));
        if !waits {
            session.send_bind();
        }
        session
    }

    fn new(role: Role, now: Instant, options: Options, client: Option<ClientOptions>) -> Self {
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
            watch: Watch::new(now),
            next_sequence: 1,
            window: Window::default(),
            unanswered_in: 0,
            backlog: VecDeque::new(),
            backlog_octets: 0,
            congestion: None,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// As what it is bound, if it is.
    #[must_use]
    pub fn bound_as(&self) -> Option<BindMode> {
        match self.state {
            SessionState::Bound { mode, .. } => Some(mode),
            _ => None,
        }
    }

    /// What the peer speaks; 3.4 while that is not known.
    #[must_use]
    pub fn version(&self) -> Version {
        self.state.binding().map_or(Version::V34, |(_, version)| version)
    }

    /// The next thing the owner must know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Bytes for the peer. The owner takes out what it has written, and watches the length: a peer that does not read
    /// lets it grow.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Requests of ours that are unanswered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.window.len()
    }

    /// Requests that may still be sent before the window is full.
    #[must_use]
    pub fn window_free(&self) -> usize {
        self.options.window_out.saturating_sub(self.window.len())
    }

    /// Changes how many requests of ours may be unanswered.
    pub fn set_window_out(&mut self, window: usize) {
        self.options.window_out = window.max(1);
    }

    /// Changes how many requests of the peer's may be unanswered.
    pub fn set_window_in(&mut self, window: usize) {
        self.options.window_in = window.max(1);
    }

    /// Requests of the peer's that wait for our owner's answer.
    #[must_use]
    pub fn unanswered_in(&self) -> usize {
        self.unanswered_in
    }

    /// The congestion_state that the peer last showed in an answer (5.0): 0 idle to 100 congested.
    #[must_use]
    pub fn congestion(&self) -> Option<u8> {
        self.congestion
    }

    /// When [`Session::on_timeout`] wants to be called, at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.next_timeout()
    }

    /// The connection is gone: the marks of all requests of ours that nobody has answered, in the order in which they
    /// were sent.
    pub fn close(&mut self) -> Vec<u64> {
        self.timers.stop_all();
        self.window.drain()
    }

    /// Does what is due.
    pub fn on_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Init => self.end(CloseReason::NoBind),
                // While we do not read, silence is our doing: the peer is not to be judged by it.
                Timer::Enquire if !self.wants_input() => {
                    self.watch.heard(now);
                    self.watch_from(now);
                }
                Timer::Inactivity if !self.wants_input() => {
                    self.timers.set_after(Timer::Inactivity, now, self.options.inactivity);
                }
                Timer::Partial => self.end(CloseReason::Partial),
                Timer::Enquire => self.enquire(now),
                Timer::Response => self.give_up(now),
                Timer::Inactivity => self.look_for_activity(now),
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

    /// From the bind on the peer must show that it lives.
    fn start_watching(&mut self, now: Instant) {
        self.timers.stop(Timer::Init);
        self.watch.heard(now);
        self.watch_from(now);
        if !self.options.inactivity.is_zero() {
            self.timers.set_after(Timer::Inactivity, now, self.options.inactivity);
        }
    }

    fn watch_from(&mut self, now: Instant) {
        if !self.options.enquire_interval.is_zero() {
            self.timers.set_after(Timer::Enquire, now, self.options.enquire_interval);
        }
    }

    fn enquire(&mut self, now: Instant) {
        if self.bound_as().is_none() {
            return;
        }
        match self.watch.look(now, &self.options) {
            Sign::LookAgain(at) => self.timers.set(Timer::Enquire, at),
            Sign::Ask => {
                let sequence = self.send_enquire_link();
                self.watch.asked(now, sequence);
                self.timers.set_after(Timer::Enquire, now, self.options.enquire_timeout);
            }
            Sign::Dead => self.end(CloseReason::Dead),
        }
    }

    fn look_for_activity(&mut self, now: Instant) {
        let until = after(self.watch.heard_at(), self.options.inactivity);
        if until > now {
            self.timers.set(Timer::Inactivity, until);
        } else {
            self.send_unbind();
            self.end(CloseReason::Inactive);
        }
    }

    /// Gives up requests that have waited too long; what became of them is now uncertain.
    fn give_up(&mut self, now: Instant) {
        while let Some(token) = self.window.give_up(now, self.options.response_timeout) {
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

//! One SGIP connection, seen from either end.

mod event;
mod input;
mod options;
mod window;

pub use event::{CloseReason, Event, RequestError};
pub use options::{Options, Role};

use crate::{Bind, Command, Pdu, ResultCode, Sequence};
use bytes::BytesMut;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use window::{Due, Window};

/// One SGIP connection, seen from either end.
///
/// Feed it bytes and the time; it answers with events for the owner and bytes for the peer. It never blocks, never reads
/// a clock, holds at most `window_out` unanswered commands of ours and `window_in` of the peer's, and one incomplete PDU.
///
/// The owner's turn is always the same: hand over what was read with [`Session::receive`] while [`Session::wants_input`],
/// take all events, answer, call [`Session::process`] where answers were given, and write [`Session::output`].
#[derive(Debug)]
pub struct Session {
    role: Role,
    options: Options,
    state: State,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event>,
    window: Window,
    /// Commands of the peer's that the owner has not answered, by number.
    owed: BTreeMap<u64, (Command, Sequence)>,
    next_number: u64,
    heard_at: Instant,
    /// Login, or the rest of a PDU, or the answer to our Unbind, is due.
    init_by: Option<Instant>,
    partial_by: Option<Instant>,
    unbind_by: Option<Instant>,
}

/// Where the connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Connector: our Bind is sent. Acceptor: none has come.
    Open {
        bind: Option<Sequence>,
    },
    /// Acceptor: a Bind waits for the owner's judgement, and what follows it waits too.
    Judging {
        bind: Sequence,
    },
    Bound,
    /// Our Unbind is sent.
    Unbinding {
        sequence: Sequence,
    },
    /// The peer's Unbind has come; what stands before it is being answered.
    PeerUnbinding {
        sequence: Sequence,
    },
    Closed,
}

impl Session {
    /// A connection that we made: our login is in the output at once.
    #[must_use]
    pub fn connector(now: Instant, options: Options, bind: &Bind, sequence: Sequence) -> Self {
        let mut session = Self::new(Role::Connector, now, options);
        session.state = State::Open { bind: Some(sequence) };
        Pdu::Bind(bind.clone()).encode(sequence, &mut session.output);
        session
    }

    /// A connection that a peer made to us.
    #[must_use]
    pub fn acceptor(now: Instant, options: Options) -> Self {
        Self::new(Role::Acceptor, now, options)
    }

    fn new(role: Role, now: Instant, options: Options) -> Self {
        let init_by = after(now, options.bind_timeout);
        Self {
            role,
            options,
            state: State::Open { bind: None },
            input: BytesMut::new(),
            output: BytesMut::new(),
            events: VecDeque::new(),
            window: Window::default(),
            owed: BTreeMap::new(),
            next_number: 0,
            heard_at: now,
            init_by,
            partial_by: None,
            unbind_by: None,
        }
    }

    /// Which end we are.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether commands may flow.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.state == State::Bound
    }

    /// Whether it is over: nothing more comes of it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The next thing the owner must know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Bytes for the peer; whole PDUs, however much of them the owner writes at a time.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Commands of ours that are unanswered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.window.len()
    }

    /// Commands of ours that may still be sent before the window is full.
    #[must_use]
    pub fn window_free(&self) -> usize {
        if self.is_bound() { self.options.window_out.saturating_sub(self.window.len()) } else { 0 }
    }

    /// Commands of the peer's that wait for our owner's answer.
    #[must_use]
    pub fn owed(&self) -> usize {
        self.owed.len()
    }

    /// Changes how many commands of the peer's may be unanswered.
    pub fn set_window_in(&mut self, window: usize) {
        self.options.window_in = window.max(1);
    }

    /// Changes which commands the owner handles; known once the login is.
    pub fn set_accepts(&mut self, accepts: Vec<Command>) {
        self.options.accepts = accepts;
    }

    /// Judges a login well: the peer may send commands.
    pub fn accept_bind(&mut self, now: Instant) {
        if let State::Judging { bind } = self.state {
            self.state = State::Bound;
            self.init_by = None;
            self.heard_at = now;
            Pdu::answer(Command::Bind, ResultCode::OK).encode(bind, &mut self.output);
            self.process(now);
        }
    }

    /// Refuses a login; the connection ends (SGIP 1.2 §3.7.2.1).
    pub fn refuse_bind(&mut self, code: ResultCode) {
        if let State::Judging { bind } = self.state {
            Pdu::answer(Command::Bind, code).encode(bind, &mut self.output);
            self.end(CloseReason::BindRefused(code));
        }
    }

    /// Sends a command under a sequence of the owner's choice; `token` is the owner's mark for it.
    ///
    /// # Errors
    /// When the connection is not bound, the window is full, or a command with this sequence is unanswered.
    pub fn send(
        &mut self,
        now: Instant,
        token: u64,
        sequence: Sequence,
        pdu: &Pdu,
    ) -> Result<(), RequestError> {
        if !self.is_bound() {
            return Err(RequestError::NotBound);
        }
        if self.window.len() >= self.options.window_out {
            return Err(RequestError::WindowFull);
        }
        if self.window.holds(sequence) {
            return Err(RequestError::SequenceInUse);
        }
        let octets = pdu.to_bytes(sequence);
        self.output.extend_from_slice(&octets);
        let until = after(now, self.options.response_timeout);
        self.window.put(sequence, token, octets, until);
        Ok(())
    }

    /// Answers a command of the peer's. Each is answered once; an unknown number is left alone.
    pub fn respond(&mut self, number: u64, result: ResultCode) {
        if let Some((command, sequence)) = self.owed.remove(&number) {
            input::answer_to(command, result).encode(sequence, &mut self.output);
            self.finish_peer_unbind();
        }
    }

    /// Takes leave: nothing more may be sent; what is unanswered may still be answered.
    pub fn unbind(&mut self, now: Instant, sequence: Sequence) {
        match self.state {
            State::Bound => {
                self.state = State::Unbinding { sequence };
                self.unbind_by = after(now, self.options.unbind_timeout);
                Pdu::Unbind.encode(sequence, &mut self.output);
            }
            State::Open { .. } | State::Judging { .. } => self.end(CloseReason::Unbound),
            State::Unbinding { .. } | State::PeerUnbinding { .. } | State::Closed => {}
        }
    }

    /// The connection is gone: the marks of the commands of ours that nobody has answered, in the order in which they
    /// were sent.
    pub fn close(&mut self) -> Vec<u64> {
        self.state = State::Closed;
        self.window.drain()
    }

    /// When [`Session::on_timeout`] wants to be called, at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if self.is_closed() {
            return None;
        }
        [self.init_by, self.partial_by, self.unbind_by, self.idle_by(), self.window.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn idle_by(&self) -> Option<Instant> {
        let watched = self.is_bound() && self.owed.is_empty() && self.window.len() == 0;
        if watched { after(self.heard_at, self.options.idle) } else { None }
    }

    /// Does what is due.
    pub fn on_timeout(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.is_closed() {
            return;
        }
        if is_due(self.init_by) {
            return self.end(CloseReason::NoBind);
        }
        if is_due(self.partial_by) {
            return self.end(CloseReason::Partial);
        }
        if is_due(self.unbind_by) {
            return self.end(CloseReason::Unbound);
        }
        if is_due(self.idle_by()) {
            return self.end(CloseReason::Idle);
        }
        while let Some(due) = self.window.pop_due(now, &self.options) {
            match due {
                // The same octets: the peer tells by the sequence whether it has them already (SGIP 1.2 §3.1).
                Due::Again(octets) => self.output.extend_from_slice(&octets),
                Due::GivenUp(token) => self.events.push_back(Event::Unanswered { token }),
            }
        }
    }

    fn end(&mut self, reason: CloseReason) {
        if self.is_closed() {
            return;
        }
        self.state = State::Closed;
        self.input = BytesMut::new();
        self.owed.clear();
        self.events.push_back(Event::Closing(reason));
    }

    /// The peer's Unbind is answered once everything before it is.
    fn finish_peer_unbind(&mut self) {
        if let State::PeerUnbinding { sequence } = self.state
            && self.owed.is_empty()
        {
            Pdu::UnbindAnswer.encode(sequence, &mut self.output);
            self.end(CloseReason::PeerUnbound);
        }
    }
}

/// The moment `wait` after `at`; none for a wait of zero, which means never.
fn after(at: Instant, wait: Duration) -> Option<Instant> {
    if wait.is_zero() { None } else { at.checked_add(wait) }
}

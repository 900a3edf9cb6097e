//! One SGIP connection, seen from either end.

mod event;
mod input;
mod sgip_options;
mod window;

pub use event::{Event, SgipCloseReason, SgipRequestError};
pub use sgip_options::{SgipOptions, SgipRole};

use crate::{Bind, Pdu, ResultCode, Sequence, SgipCommand};
use bytes::BytesMut;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use window::{Due, Window};

/// One SGIP connection, seen from either end.
///
/// Pass bytes and the time to it; it returns events for the owner and bytes for the peer. It never blocks, never
/// reads a clock, and holds at most `window_out` unanswered commands of ours, `window_in` of the peer, and one
/// incomplete PDU.
///
/// The owner repeats these steps: pass the octets read to [`Session::receive`] while [`Session::wants_input`], take
/// all events, answer, call [`Session::process`] after answers, and write [`Session::output`].
#[derive(Debug)]
pub struct Session {
    role: SgipRole,
    options: SgipOptions,
    state: State,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event>,
    window: Window,
    /// Commands of the peer that the owner has not answered, by number.
    unanswered_in: BTreeMap<u64, (SgipCommand, Sequence)>,
    next_number: u64,
    last_pdu_at: Instant,
    /// The deadline of the login, of the rest of a PDU, and of the answer to our Unbind.
    init_by: Option<Instant>,
    partial_by: Option<Instant>,
    unbind_by: Option<Instant>,
}

/// The state of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Connector: our Bind is sent. Acceptor: no Bind has come.
    Open {
        bind: Option<Sequence>,
    },
    /// Acceptor: a Bind waits for the owner's decision; later input waits too.
    BindPending {
        bind: Sequence,
    },
    Bound,
    /// Our Unbind is sent.
    Unbinding {
        sequence: Sequence,
    },
    /// The peer has sent Unbind; its earlier commands are still answered.
    PeerUnbinding {
        sequence: Sequence,
    },
    Closed,
}

impl Session {
    /// Creates an outgoing connection; our login is in the output at once.
    #[must_use]
    pub fn connector(now: Instant, options: SgipOptions, bind: &Bind, sequence: Sequence) -> Self {
        let mut session = Self::new(SgipRole::Connector, now, options);
        session.state = State::Open { bind: Some(sequence) };
        Pdu::Bind(bind.clone()).encode(sequence, &mut session.output);
        session
    }

    /// Creates an incoming connection.
    #[must_use]
    pub fn acceptor(now: Instant, options: SgipOptions) -> Self {
        Self::new(SgipRole::Acceptor, now, options)
    }

    fn new(role: SgipRole, now: Instant, options: SgipOptions) -> Self {
        let init_by = after(now, options.bind_timeout);
        Self {
            role,
            options,
            state: State::Open { bind: None },
            input: BytesMut::new(),
            output: BytesMut::new(),
            events: VecDeque::new(),
            window: Window::default(),
            unanswered_in: BTreeMap::new(),
            next_number: 0,
            last_pdu_at: now,
            init_by,
            partial_by: None,
            unbind_by: None,
        }
    }

    /// Our side of the connection.
    #[must_use]
    pub fn role(&self) -> SgipRole {
        self.role
    }

    /// Whether the connection is bound.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.state == State::Bound
    }

    /// Whether the session has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The next event for the owner.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The output for the peer, in whole PDUs; the owner may write it in any portions.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Commands of ours that are unanswered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.window.len()
    }

    /// The number of commands that may still be sent before the window is full.
    #[must_use]
    pub fn window_free(&self) -> usize {
        if self.is_bound() { self.options.window_out.saturating_sub(self.window.len()) } else { 0 }
    }

    /// Commands of the peer that wait for the owner's answer.
    #[must_use]
    pub fn unanswered_in(&self) -> usize {
        self.unanswered_in.len()
    }

    /// Changes the window of the peer's commands.
    pub fn set_window_in(&mut self, window: usize) {
        self.options.window_in = window.max(1);
    }

    /// Changes the commands that the owner handles, which the login determines.
    pub fn set_accepts(&mut self, accepts: Vec<SgipCommand>) {
        self.options.accepts = accepts;
    }

    /// Accepts a login: the peer may send commands.
    pub fn accept_bind(&mut self, now: Instant) {
        if let State::BindPending { bind } = self.state {
            self.state = State::Bound;
            self.init_by = None;
            self.last_pdu_at = now;
            Pdu::answer(SgipCommand::Bind, ResultCode::OK).encode(bind, &mut self.output);
            self.process(now);
        }
    }

    /// Refuses a login and ends the session (SGIP 1.2 §3.7.2.1).
    pub fn refuse_bind(&mut self, code: ResultCode) {
        if let State::BindPending { bind } = self.state {
            Pdu::answer(SgipCommand::Bind, code).encode(bind, &mut self.output);
            self.end(SgipCloseReason::BindRefused(code));
        }
    }

    /// Sends a command under a sequence that the owner chooses; `token` is the owner's token.
    ///
    /// # Errors
    /// If the connection is not bound, the window is full, or a command with this sequence is unanswered.
    pub fn send(
        &mut self,
        now: Instant,
        token: u64,
        sequence: Sequence,
        pdu: &Pdu,
    ) -> Result<(), SgipRequestError> {
        if !self.is_bound() {
            return Err(SgipRequestError::NotBound);
        }
        if self.window.len() >= self.options.window_out {
            return Err(SgipRequestError::WindowFull);
        }
        if self.window.contains(sequence) {
            return Err(SgipRequestError::SequenceInUse);
        }
        let octets = pdu.to_bytes(sequence);
        self.output.extend_from_slice(&octets);
        let until = after(now, self.options.response_timeout);
        self.window.add(sequence, token, octets, until);
        Ok(())
    }

    /// Answers a command of the peer, once. An unknown number is ignored.
    pub fn respond(&mut self, number: u64, result: ResultCode) {
        if let Some((command, sequence)) = self.unanswered_in.remove(&number) {
            input::answer_for(command, result).encode(sequence, &mut self.output);
            self.finish_peer_unbind();
        }
    }

    /// Unbinds: nothing more may be sent; unanswered commands may still be answered.
    pub fn unbind(&mut self, now: Instant, sequence: Sequence) {
        match self.state {
            State::Bound => {
                self.state = State::Unbinding { sequence };
                self.unbind_by = after(now, self.options.unbind_timeout);
                Pdu::Unbind.encode(sequence, &mut self.output);
            }
            State::Open { .. } | State::BindPending { .. } => self.end(SgipCloseReason::Unbound),
            State::Unbinding { .. } | State::PeerUnbinding { .. } | State::Closed => {}
        }
    }

    /// Closes the session after the connection has ended. Returns the tokens of our unanswered commands, in the order
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
        [self.init_by, self.partial_by, self.unbind_by, self.idle_by(), self.window.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn idle_by(&self) -> Option<Instant> {
        let watched = self.is_bound() && self.unanswered_in.is_empty() && self.window.len() == 0;
        if watched { after(self.last_pdu_at, self.options.idle) } else { None }
    }

    /// Handles the deadlines that have passed.
    pub fn on_timeout(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.is_closed() {
            return;
        }
        if is_due(self.init_by) {
            return self.end(SgipCloseReason::NoBind);
        }
        if is_due(self.partial_by) {
            return self.end(SgipCloseReason::Partial);
        }
        if is_due(self.unbind_by) {
            return self.end(SgipCloseReason::Unbound);
        }
        if is_due(self.idle_by()) {
            return self.end(SgipCloseReason::Idle);
        }
        while let Some(due) = self.window.pop_due(now, &self.options) {
            match due {
                // The repetition has the same octets: the peer recognizes it by the sequence (SGIP 1.2 §3.1).
                Due::Resend(octets) => self.output.extend_from_slice(&octets),
                Due::GivenUp(token) => self.events.push_back(Event::Unanswered { token }),
            }
        }
    }

    fn end(&mut self, reason: SgipCloseReason) {
        if self.is_closed() {
            return;
        }
        self.state = State::Closed;
        self.input = BytesMut::new();
        self.unanswered_in.clear();
        self.events.push_back(Event::Closing(reason));
    }

    /// Answers the peer's Unbind once all earlier commands are answered.
    fn finish_peer_unbind(&mut self) {
        if let State::PeerUnbinding { sequence } = self.state
            && self.unanswered_in.is_empty()
        {
            Pdu::UnbindAnswer.encode(sequence, &mut self.output);
            self.end(SgipCloseReason::PeerUnbound);
        }
    }
}

/// The moment `wait` after `at`; `None` for a wait of zero, which means never.
fn after(at: Instant, wait: Duration) -> Option<Instant> {
    if wait.is_zero() { None } else { at.checked_add(wait) }
}

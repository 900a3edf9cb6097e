//! One SGIP connection: the task that moves octets, commands, answers and outcomes until the connection ends.

use super::bind_authenticator::{BindAuthenticator, BindDecision, PendingBind};
use super::incoming::{IncomingSource, PendingAnswers};
use super::outgoing::{Outgoing, OutgoingTarget};
use crate::accounts::LinkControl;
use crate::clock;
use crate::link_handle::ListedRecord;
use crate::link_record::{LinkBlocker, LinkPhase, LinkRecord, LinkRole};
use crate::shared::Shared;
use crate::tracked_socket::{Socket, TrackedSocket};
use bytes::BytesMut;
use engine::Event;
use ports::{LinkCommand, LinkHandle, Protocol};
use sgip::{ResultCode, Sequence, Session, SgipCloseReason};
use smpp::BindMode;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

/// The direction of the commands. The side that connected sends commands.
enum ConnectionSide {
    /// An incoming connection that has not logged in.
    Unbound(Arc<BindAuthenticator>),
    /// The peer sends commands.
    Receives(IncomingSource),
    /// We send commands.
    Sends(Box<Outgoing>),
}

/// The end of a connection.
#[derive(Debug)]
pub(super) struct ConnectionEnd {
    pub(super) reason: String,
    /// The peer refused our login.
    pub(super) refused: Option<ResultCode>,
    /// The time of the login, if there was one.
    pub(super) bound_at: Option<Instant>,
    /// The connection was told to close.
    pub(super) requested: bool,
}

struct Closing {
    unbind_at: Instant,
    until: Instant,
    unbound: bool,
}

/// One SGIP connection.
pub(super) struct Connection {
    shared: Arc<Shared>,
    record: Arc<LinkRecord>,
    socket: TrackedSocket,
    input: BytesMut,
    session: Session,
    control: UnboundedReceiver<LinkControl>,
    side: ConnectionSide,
    pending_bind: Option<PendingBind>,
    bound: Option<(LinkHandle, ListedRecord)>,
    pending_answers: PendingAnswers,
    events: Vec<Event>,
    closing: Option<Closing>,
    refused: Option<ResultCode>,
    bound_at: Option<Instant>,
}

#[derive(Default)]
struct Wakeup {
    batches: Vec<Vec<LinkCommand>>,
    control: Option<LinkControl>,
    decision: Option<BindDecision>,
    read: Option<io::Result<usize>>,
    write_error: Option<io::Error>,
}

impl Connection {
    /// Creates an incoming connection.
    pub(super) fn incoming(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        socket: Socket,
        session: Session,
        control: UnboundedReceiver<LinkControl>,
        authenticator: Arc<BindAuthenticator>,
    ) -> Self {
        Self::new(shared, record, socket, session, control, ConnectionSide::Unbound(authenticator))
    }

    /// Creates an outgoing connection.
    pub(super) fn outgoing(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        socket: Socket,
        session: Session,
        control: UnboundedReceiver<LinkControl>,
        target: OutgoingTarget,
    ) -> Self {
        let side = ConnectionSide::Sends(Box::new(Outgoing::new(target)));
        Self::new(shared, record, socket, session, control, side)
    }

    fn new(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        socket: Socket,
        session: Session,
        control: UnboundedReceiver<LinkControl>,
        side: ConnectionSide,
    ) -> Self {
        Self {
            shared,
            record,
            socket: TrackedSocket::new(socket),
            input: BytesMut::new(),
            session,
            control,
            side,
            pending_bind: None,
            bound: None,
            pending_answers: PendingAnswers::default(),
            events: Vec::new(),
            closing: None,
            refused: None,
            bound_at: None,
        }
    }

    /// Runs until the connection has ended and every message on it has an outcome.
    pub(super) async fn run(mut self) -> ConnectionEnd {
        let (reason, orderly) = loop {
            let now = clock::now();
            let waiting = self.session.output().len();
            let slow = self.socket.write_deadline(now, waiting, self.shared.options.write_timeout);
            if slow.is_some_and(|limit| limit <= now) {
                break ("write timeout: the peer does not read".to_owned(), false);
            }
            if waiting > self.shared.options.output_limit.saturating_mul(4) {
                break ("output limit exceeded: the peer does not read".to_owned(), false);
            }
            let closing = self
                .closing
                .as_ref()
                .map(|closing| if closing.unbound { closing.until } else { closing.unbind_at });
            let deadline = [self.session.deadline(), slow, closing].into_iter().flatten().min();
            let wakeup = self.wait(deadline).await;
            if let Some(end) = self.handle_wakeup(wakeup) {
                break end;
            }
        };
        self.finish(reason, orderly).await
    }

    async fn wait(&mut self, deadline: Option<Instant>) -> Wakeup {
        let Self { socket, input, session, control, pending_bind, bound, shared, .. } = self;
        let reads = session.wants_input() && session.output().len() <= shared.options.output_limit;
        let far = Instant::now() + Duration::from_secs(86_400);
        let mut sleep = Box::pin(tokio::time::sleep_until(deadline.unwrap_or(far).into()));
        poll_fn(|cx| {
            let mut wakeup = Wakeup::default();
            let mut ready = false;
            match socket.poll_write(cx, session.output()) {
                Poll::Ready(Ok(())) => ready = true,
                Poll::Ready(Err(error)) => {
                    wakeup.write_error = Some(error);
                    ready = true;
                }
                Poll::Pending => {}
            }
            if let Some((handle, _)) = bound.as_mut() {
                while let Poll::Ready(batch) = handle.poll_recv(cx) {
                    wakeup.batches.push(batch);
                    ready = true;
                }
            }
            if let Poll::Ready(Some(order)) = control.poll_recv(cx) {
                wakeup.control = Some(order);
                ready = true;
            }
            if let Some(future) = pending_bind.as_mut()
                && let Poll::Ready(decision) = future.as_mut().poll(cx)
            {
                *pending_bind = None;
                wakeup.decision = Some(decision);
                ready = true;
            }
            if reads && let Poll::Ready(read) = socket.poll_read(cx, input) {
                wakeup.read = Some(read);
                ready = true;
            }
            ready |= sleep.as_mut().poll(cx).is_ready();
            if ready { Poll::Ready(wakeup) } else { Poll::Pending }
        })
        .await
    }

    /// Handles the events of one wakeup. Returns the reason, and whether the end is orderly, if the connection has
    /// ended.
    fn handle_wakeup(&mut self, wakeup: Wakeup) -> Option<(String, bool)> {
        let now = clock::now();
        let mut ending = wakeup.write_error.map(|error| (format!("write failed: {error}"), false));
        match wakeup.read {
            Some(Ok(0)) => ending = Some(("the peer closed the connection".to_owned(), true)),
            Some(Ok(_)) => {
                self.record.record_heard(now);
                let octets = self.input.split();
                self.session.receive(now, &octets);
            }
            Some(Err(error)) => ending = Some((format!("read failed: {error}"), false)),
            None => {}
        }
        if let Some(LinkControl::Close(until)) = wakeup.control {
            self.begin_close(now, until);
        }
        if let Some(decision) = wakeup.decision {
            self.on_bind_decision(now, decision);
        }
        for command in wakeup.batches.into_iter().flatten() {
            self.on_command(command);
        }
        if self.session.deadline().is_some_and(|deadline| deadline <= now) {
            self.session.on_timeout(now);
        }
        let close_reason = self.process_session(now);
        self.update_record();
        if !self.events.is_empty() {
            self.shared.core.push(std::mem::take(&mut self.events));
        }
        close_reason.or(ending).or_else(|| self.continue_close(now))
    }

    fn process_session(&mut self, now: Instant) -> Option<(String, bool)> {
        let mut close_reason = None;
        loop {
            self.session.process(now);
            let mut any = false;
            while let Some(event) = self.session.poll_event() {
                any = true;
                match event {
                    sgip::Event::Closing(reason) => close_reason = Some((close_reason_text(reason), true)),
                    event => self.on_session_event(now, event),
                }
            }
            if let ConnectionSide::Sends(outgoing) = &mut self.side
                && let Some((handle, _)) = &mut self.bound
            {
                if !self.session.is_bound() {
                    handle.pause(&mut self.events);
                }
                let written = self.socket.written();
                any |= outgoing.fill_window(
                    &mut self.session,
                    &self.record,
                    now,
                    written,
                    &mut self.events,
                    handle.link(),
                );
            }
            if !any {
                return close_reason;
            }
        }
    }

    fn on_session_event(&mut self, now: Instant, event: sgip::Event) {
        match event {
            sgip::Event::Bind(bind) => {
                if let ConnectionSide::Unbound(authenticator) = &self.side {
                    self.pending_bind = Some(authenticator.authenticate(bind));
                }
            }
            sgip::Event::Bound => self.on_bound(now),
            sgip::Event::BindRefused(code) => self.refused = Some(code),
            sgip::Event::Command { number, sequence, pdu } => {
                let (ConnectionSide::Receives(source), Some((handle, _))) = (&self.side, &self.bound) else {
                    return;
                };
                let taken =
                    source.on_command(&self.shared, &self.record, handle.link(), number, sequence, pdu);
                match taken {
                    Ok((events, pending)) => {
                        self.events.extend(events);
                        self.pending_answers.add(number, pending);
                    }
                    Err(code) => {
                        self.record.outbound.count_answer_code(u32::from(code.0));
                        self.session.respond(number, code);
                    }
                }
            }
            sgip::Event::Answer { token, result, late } => {
                if let (ConnectionSide::Sends(outgoing), Some((handle, _))) = (&mut self.side, &self.bound) {
                    self.record.inbound.count_answer_code(u32::from(result.0));
                    if late && self.shared.log.take(now).is_some() {
                        tracing::info!(peer = %self.record.name, %result, "late answer");
                    }
                    let outcome = outgoing.on_answer(&self.record, now, token, result, handle.link());
                    self.events.extend(outcome);
                }
            }
            sgip::Event::Unanswered { token } => {
                if let (ConnectionSide::Sends(outgoing), Some((handle, _))) = (&mut self.side, &self.bound) {
                    if self.shared.log.take(now).is_some() {
                        tracing::warn!(peer = %self.record.name, "command not answered");
                    }
                    self.events.extend(outgoing.on_answer_timeout(token, handle.link()));
                }
            }
            sgip::Event::UnexpectedAnswer(sequence) => {
                tracing::debug!(peer = %self.record.name, ?sequence, "unexpected answer");
            }
            sgip::Event::Closing(_) => {}
        }
    }

    fn on_command(&mut self, command: LinkCommand) {
        match (command, &mut self.side) {
            (
                LinkCommand::Send { message, leg, taken, want_dlr, ticket, .. },
                ConnectionSide::Sends(outgoing),
            ) => {
                let Some((handle, _)) = &self.bound else { return };
                let outcome = outgoing.enqueue(message, leg, taken, want_dlr, ticket, handle.link());
                self.events.extend(outcome);
            }
            (LinkCommand::Answer { token, answer }, ConnectionSide::Receives(source)) => {
                let Some((handle, _)) = &self.bound else { return };
                let (events, answered) =
                    self.pending_answers.on_engine_answer(source, handle.link(), token, answer);
                self.events.extend(events);
                if let Some((number, code)) = answered {
                    self.record.outbound.count_answer_code(u32::from(code.0));
                    self.session.respond(number, code);
                }
            }
            _ => {}
        }
    }

    fn on_bind_decision(&mut self, now: Instant, decision: BindDecision) {
        match decision {
            BindDecision::Refuse { code, reason } => {
                self.refused = Some(code);
                self.record.set_error(reason);
                self.session.refuse_bind(code);
            }
            BindDecision::Accept { source, record, window_in } => {
                self.record = record;
                self.session.set_window_in(window_in);
                self.session.set_accepts(source.accepts());
                let (handle, listed) = self.register();
                self.record.set_bound(handle.link(), source.mode(), source.version(), 0);
                tracing::info!(link = handle.link().0, peer = %self.record.name, protocol = "sgip", "bound");
                self.bound = Some((handle, listed));
                self.side = ConnectionSide::Receives(source);
                self.bound_at = Some(now);
                self.session.accept_bind(now);
            }
        }
    }

    fn register(&self) -> (LinkHandle, ListedRecord) {
        let (core, registry) = (self.shared.core.clone(), self.shared.registry.clone());
        let handle = LinkHandle::register(core, registry, Protocol::Sgip);
        (handle, ListedRecord::list(self.shared.clone(), self.record.clone()))
    }

    fn on_bound(&mut self, now: Instant) {
        let ConnectionSide::Sends(outgoing) = &self.side else { return };
        let (mut handle, listed) = self.register();
        let (peer, window) = (outgoing.peer(), outgoing.window());
        self.record.set_bound(handle.link(), BindMode::Transmitter, outgoing.version(), window);
        tracing::info!(link = handle.link().0, peer = %self.record.name, protocol = "sgip", "bound");
        handle.announce(peer, window, &mut self.events);
        self.bound = Some((handle, listed));
        self.bound_at = Some(now);
    }

    fn update_record(&self) {
        let Some(_) = &self.bound else { return };
        let in_flight = u32::try_from(self.session.in_flight()).unwrap_or(u32::MAX);
        let pending_answers = u32::try_from(self.session.unanswered_in()).unwrap_or(u32::MAX);
        self.record.in_flight.store(in_flight, Relaxed);
        self.record.unanswered_in.store(pending_answers, Relaxed);
        let full = matches!(self.side, ConnectionSide::Sends(_)) && self.session.window_free() == 0;
        self.record.set_blocked_by(if self.socket.is_stalled() {
            LinkBlocker::SlowReader
        } else if full {
            LinkBlocker::PeerWindow
        } else if !self.session.wants_input() {
            LinkBlocker::OurWindow
        } else {
            LinkBlocker::None
        });
    }

    fn begin_close(&mut self, now: Instant, until: Instant) {
        if self.closing.is_some() {
            return;
        }
        let half = until.saturating_duration_since(now) / 2;
        self.closing = Some(Closing { unbind_at: now + half, until, unbound: false });
        self.record.set_phase(LinkPhase::Unbinding);
        if let Some((handle, _)) = &mut self.bound {
            handle.pause(&mut self.events);
        }
    }

    /// Unbinds when no command is in progress, or after half of the time. Gives up when the time is over.
    fn continue_close(&mut self, now: Instant) -> Option<(String, bool)> {
        let closing = self.closing.as_mut()?;
        if now >= closing.until {
            return Some(("close timeout".to_owned(), true));
        }
        let idle = match &self.side {
            ConnectionSide::Sends(outgoing) => outgoing.is_idle() && self.session.in_flight() == 0,
            ConnectionSide::Receives(_) | ConnectionSide::Unbound(_) => self.session.unanswered_in() == 0,
        };
        if closing.unbound || !(idle || now >= closing.unbind_at) {
            return None;
        }
        closing.unbound = true;
        // Only the side that connected unbinds; the other side just closes, which counts as an unbind.
        if !matches!(self.side, ConnectionSide::Sends(_)) {
            return Some(("closed on request".to_owned(), true));
        }
        let sequence = Sequence::new(0, clock::wall(), 0);
        self.session.unbind(now, sequence);
        None
    }

    /// Writes the last octets, and reports an outcome for every message on the connection.
    async fn finish(mut self, reason: String, orderly: bool) -> ConnectionEnd {
        if self.bound_at.is_some() {
            self.record.set_phase(LinkPhase::Unbinding);
        }
        let timeout = self.shared.options.write_timeout.min(Duration::from_secs(5));
        if orderly {
            self.socket.flush_and_shutdown(self.session.output(), timeout).await;
        }
        self.session.close();
        let Self { shared, record, socket, bound, mut events, closing, refused, bound_at, side, .. } = self;
        let end = ConnectionEnd { reason, refused, bound_at, requested: closing.is_some() };
        let written = socket.written();
        let lingering = orderly.then_some(socket);
        if let Some((handle, _listed)) = bound {
            if let ConnectionSide::Sends(outgoing) = side {
                outgoing.close(written, handle.link(), &mut events);
            }
            handle.close(events, shared.options.close_timeout).await;
        }
        if let Some(socket) = lingering {
            socket.linger().await;
        }
        // If the link is dialed again, the dialer logs its end, with the wait.
        if end.bound_at.is_some() && (record.role == LinkRole::Server || end.requested) {
            tracing::info!(peer = %record.name, protocol = "sgip", reason = %end.reason, "link closed");
        }
        end
    }
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

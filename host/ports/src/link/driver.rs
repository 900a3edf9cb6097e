//! The driver of one link: the task that moves octets, events, commands and outcomes until the connection ends.

use super::bound_link::{Link, SessionEnd};
use super::link_control::LinkControl;
use super::link_handle::LEASE_INTERVAL;
use super::link_record::LinkRecord;
use super::tracked_socket::TrackedSocket;
use super::{
    LinkBlocker, LinkDeps, LinkPhase, LinkProtocol, LinkRole, LinkStep, LoginRefusal, PendingLogin, Socket,
};
use crate::{LinkCommand, clock};
use model::Timestamp;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

/// The receiver of the [`LinkControl`] messages of one link.
pub(crate) type ControlReceiver = UnboundedReceiver<LinkControl>;

/// The end of a link.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    /// The reason, as text.
    pub(crate) reason: String,
    /// A login was refused, ours or the peer's.
    pub(crate) refused: Option<LoginRefusal>,
    /// The time of the login, if there was one.
    pub(crate) bound_at: Option<Instant>,
    /// The link was told to close.
    pub(crate) requested: bool,
}

struct Closing {
    unbind_at: Instant,
    until: Instant,
    is_unbound: bool,
}

/// The events that woke a link.
struct Wakeup<L> {
    batches: Vec<Vec<LinkCommand>>,
    control: Option<LinkControl>,
    login: Option<L>,
    read: Option<io::Result<usize>>,
    write_error: Option<io::Error>,
}

impl<L> Wakeup<L> {
    const fn empty() -> Self {
        Self { batches: Vec::new(), control: None, login: None, read: None, write_error: None }
    }
}

/// The driver of one connection.
pub(crate) struct Driver<P: LinkProtocol> {
    link: Link,
    socket: TrackedSocket,
    protocol: P,
    control: ControlReceiver,
    pending_login: Option<PendingLogin<P::Login>>,
    closing: Option<Closing>,
    /// The moment until which the peer must show a sign of life.
    alive_deadline: Option<Instant>,
}

impl<P: LinkProtocol> Driver<P> {
    pub(crate) fn new(
        deps: Arc<LinkDeps>,
        record: Arc<LinkRecord>,
        socket: Socket,
        protocol: P,
        control: ControlReceiver,
    ) -> Self {
        Self {
            link: Link::new(deps, record, P::PROTOCOL),
            socket: TrackedSocket::new(socket),
            protocol,
            control,
            pending_login: None,
            closing: None,
            alive_deadline: None,
        }
    }

    /// Runs until the connection has ended and every message on it has an outcome.
    pub(crate) async fn run(mut self) -> LinkEnd {
        let limits = self.link.deps.limits;
        let mut sleep = Box::pin(tokio::time::sleep_until(tokio::time::Instant::now()));
        let mut timer_at: Option<Instant> = None;
        // The listener may have read the login already.
        if !self.protocol.input().is_empty()
            && let Some(end) = self.handle_wakeup(Wakeup::empty())
        {
            return self.finish(end).await;
        }
        let end = loop {
            let now = clock::now();
            let waiting = self.protocol.output().len();
            let slow = self.socket.write_deadline(now, waiting, limits.write_timeout);
            if slow.is_some_and(|limit| limit <= now) {
                break ending("write timeout: the peer does not read", false);
            }
            if waiting > limits.output_limit.saturating_mul(4) {
                break ending("output limit exceeded: the peer does not read", false);
            }
            let closing = self
                .closing
                .as_ref()
                .map(|closing| if closing.is_unbound { closing.until } else { closing.unbind_at });
            let held = (waiting > 0 && !self.may_write()).then(|| now + LEASE_INTERVAL);
            let deadlines = [self.protocol.deadline(), slow, closing, self.alive_deadline, held];
            // A timer that fires early costs one iteration; resetting the timer in every iteration costs much more.
            if let Some(deadline) = deadlines.into_iter().flatten().min()
                && timer_at.is_none_or(|at| deadline < at)
            {
                sleep.as_mut().reset(deadline.into());
                timer_at = Some(deadline);
            }
            let wakeup = self.wait(sleep.as_mut(), &mut timer_at).await;
            if let Some(end) = self.handle_wakeup(wakeup) {
                break end;
            }
        };
        self.finish(end).await
    }

    /// Waits until there is something to do.
    async fn wait(
        &mut self,
        mut sleep: Pin<&mut tokio::time::Sleep>,
        timer_at: &mut Option<Instant>,
    ) -> Wakeup<P::Login> {
        let Self { link, socket, protocol, control, pending_login, .. } = self;
        let reads = protocol.wants_input() && protocol.output().len() <= link.deps.limits.output_limit;
        poll_fn(|cx| {
            let mut wakeup = Wakeup::empty();
            let mut ready = false;
            // The output may have messages that another node submits too by now.
            let written = if link.deps.registry.lease().holds() {
                socket.poll_write(cx, protocol.output())
            } else {
                Poll::Pending
            };
            match written {
                Poll::Ready(Ok(())) => {
                    link.written = socket.written();
                    protocol.on_written(link.written);
                    ready = true;
                }
                Poll::Ready(Err(error)) => {
                    wakeup.write_error = Some(error);
                    ready = true;
                }
                Poll::Pending => {}
            }
            if let Some(handle) = &mut link.handle {
                while let Poll::Ready(batch) = handle.poll_recv(cx) {
                    wakeup.batches.push(batch);
                    ready = true;
                }
            }
            if let Poll::Ready(Some(order)) = control.poll_recv(cx) {
                wakeup.control = Some(order);
                ready = true;
            }
            if let Some(future) = pending_login.as_mut()
                && let Poll::Ready(login) = future.as_mut().poll(cx)
            {
                *pending_login = None;
                wakeup.login = Some(login);
                ready = true;
            }
            if reads && let Poll::Ready(read) = socket.poll_read(cx, protocol.input()) {
                wakeup.read = Some(read);
                ready = true;
            }
            if timer_at.is_some() && sleep.as_mut().poll(cx).is_ready() {
                *timer_at = None;
                ready = true;
            }
            if ready { Poll::Ready(wakeup) } else { Poll::Pending }
        })
        .await
    }

    /// Handles the events of one wakeup. Returns the end, if the link has ended.
    fn handle_wakeup(&mut self, wakeup: Wakeup<P::Login>) -> Option<SessionEnd> {
        let now = clock::now();
        (self.link.now, self.link.wall) = (now, Timestamp::now());
        let mut end = wakeup.write_error.map(|error| ending(format!("write failed: {error}"), false));
        match wakeup.read {
            Some(Ok(0)) => end = Some(ending("the peer closed the connection", true)),
            Some(Ok(_)) => {
                self.link.record.record_received(now);
                if self.alive_deadline.take().is_some()
                    && let Some(permit) = &self.link.permit
                {
                    permit.report_alive();
                }
            }
            Some(Err(error)) => end = Some(ending(format!("read failed: {error}"), false)),
            None => {}
        }
        match wakeup.control {
            Some(LinkControl::Close(until)) => self.begin_close(now, until),
            Some(LinkControl::ProveAlive(until)) if self.alive_deadline.is_none() => {
                self.alive_deadline = self.protocol.probe().then_some(until);
            }
            Some(LinkControl::ProveAlive(_)) | None => {}
        }
        if let Some(login) = wakeup.login {
            self.protocol.on_login(&mut self.link, login);
        }
        for command in wakeup.batches.into_iter().flatten() {
            self.protocol.on_command(&mut self.link, command);
        }
        if self.protocol.deadline().is_some_and(|deadline| deadline <= now) {
            self.protocol.on_timeout(now);
        }
        loop {
            self.protocol.process(now);
            // Answers free the window for more, and the session itself answers a request that fits no PDU.
            if !(self.handle_events() | self.fill_window()) {
                break;
            }
        }
        self.update_record(now);
        if !self.link.events.is_empty() {
            let events = self.link.take_events();
            self.link.deps.core.push(events);
        }
        if end.is_none() && self.alive_deadline.is_some_and(|until| until <= now) {
            end = Some(ending("no sign of life while a new bind waited for its session", false));
        }
        self.link.end.take().or(end).or_else(|| self.continue_close(now))
    }

    /// Handles the session's events. Returns whether there were any.
    fn handle_events(&mut self) -> bool {
        let mut any = false;
        loop {
            match self.protocol.next_event(&mut self.link) {
                LinkStep::Idle => return any,
                LinkStep::Handled => {}
                LinkStep::Login(login) => self.pending_login = Some(login),
            }
            any = true;
        }
    }

    /// Gives the session as many messages as its window takes. Returns whether there were any.
    fn fill_window(&mut self) -> bool {
        let Some(handle) = &mut self.link.handle else { return false };
        if !self.protocol.is_bound() {
            // One of the two ends is unbinding: a message given to this link would only be returned.
            handle.pause(&mut self.link.events);
        }
        self.protocol.fill_window(&mut self.link)
    }

    /// Whether the lease of the leader lets this link write.
    fn may_write(&self) -> bool {
        self.link.deps.registry.lease().holds()
    }

    fn update_record(&self, now: Instant) {
        let Link { record, handle: Some(_), .. } = &self.link else { return };
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        record.in_flight.store(count(self.protocol.in_flight()), Relaxed);
        record.unanswered_in.store(count(self.protocol.unanswered_in()), Relaxed);
        let blocked_by = match self.protocol.blocked_by(now) {
            LinkBlocker::None if self.socket.is_stalled() => LinkBlocker::SlowReader,
            LinkBlocker::None if record.role == LinkRole::Server && !self.protocol.wants_input() => {
                LinkBlocker::OurWindow
            }
            blocked_by => blocked_by,
        };
        record.set_blocked_by(blocked_by);
    }

    fn begin_close(&mut self, now: Instant, until: Instant) {
        if self.closing.is_some() {
            return;
        }
        let half = until.saturating_duration_since(now) / 2;
        self.closing = Some(Closing { unbind_at: now + half, until, is_unbound: false });
        self.link.record.set_phase(LinkPhase::Unbinding);
        if let Some(handle) = &mut self.link.handle {
            handle.pause(&mut self.link.events);
        }
    }

    /// Logs out when no request is in progress, or after half of the time. Gives up when the time is over.
    fn continue_close(&mut self, now: Instant) -> Option<SessionEnd> {
        let closing = self.closing.as_mut()?;
        if now >= closing.until {
            return Some(ending("close timeout", true));
        }
        let is_idle =
            self.protocol.is_idle() && self.protocol.in_flight() == 0 && self.protocol.unanswered_in() == 0;
        if closing.is_unbound || !(is_idle || now >= closing.unbind_at) {
            return None;
        }
        closing.is_unbound = true;
        if !self.protocol.unbind(now) {
            return Some(ending("closed on request", true));
        }
        // A session without a login ends at once.
        self.handle_events();
        self.link.end.take()
    }

    /// Writes the last octets, and reports an outcome for every message on the link.
    async fn finish(mut self, end: SessionEnd) -> LinkEnd {
        let limits = self.link.deps.limits;
        if self.link.bound_at.is_some() {
            self.link.record.set_phase(LinkPhase::Unbinding);
        }
        if end.is_orderly && self.may_write() {
            let timeout = limits.write_timeout.min(Duration::from_secs(5));
            self.socket.flush_and_shutdown(self.protocol.output(), timeout).await;
        }
        let Self { mut link, socket, protocol, closing, .. } = self;
        link.written = socket.written();
        protocol.close(&mut link);
        let events = link.take_events();
        let Link { record, handle, permit, listed, refused, bound_at, .. } = link;
        drop(permit);
        let lingering = end.is_orderly.then_some(socket);
        if let Some(handle) = handle {
            handle.close(events, limits.close_timeout).await;
        }
        drop(listed);
        if let Some(socket) = lingering {
            socket.linger().await;
        }
        let end = LinkEnd { reason: end.reason, refused, bound_at, requested: closing.is_some() };
        // If the link is dialed again, the dialer logs its end, with the wait.
        if bound_at.is_some() && (record.role == LinkRole::Server || end.requested) {
            tracing::info!(
                peer = %record.name, protocol = P::PROTOCOL.name(), role = ?record.role, reason = %end.reason,
                "link closed"
            );
        }
        end
    }
}

fn ending(reason: impl Into<String>, is_orderly: bool) -> SessionEnd {
    SessionEnd { reason: reason.into(), is_orderly }
}

//! One SMPP connection: the task that moves octets, requests, answers and outcomes until the connection ends.

use crate::accounts::LinkControl;
use crate::bind_authenticator::{BindAuthenticator, BindDecision, PendingBind};
use crate::esme_requests::EsmeRequests;
use crate::link_handle::ListedRecord;
use crate::link_record::{LinkBlocker, LinkPhase, LinkRecord, LinkRole};
use crate::message_to_pdu::PduStyle;
use crate::request_context::RequestContext;
use crate::request_token::unpack;
use crate::send_queue::SendQueue;
use crate::shared::Shared;
use crate::smsc_requests::SmscRequests;
use crate::tracked_socket::{Socket, TrackedSocket};
use crate::{LongText, clock};
use engine::Event;
use model::{PeerId, Timestamp};
use ports::{LinkCommand, LinkHandle, Protocol};
use smpp::message_id::MessageIdForm;
use smpp::{
    BindMode, CloseReason, CommandId, CommandStatus, InterfaceVersion, Request, Session, encode_request,
};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

/// The kind of the peer, which decides what its requests mean.
enum LinkSide {
    /// An incoming connection that has not bound.
    Unbound(Arc<BindAuthenticator>),
    Esme(EsmeRequests),
    Smsc(SmscRequests),
}

/// The state of a bound link.
struct BoundLink {
    handle: LinkHandle,
    _listed: ListedRecord,
    queue: SendQueue,
    version: InterfaceVersion,
}

/// The end of a link.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    /// The reason, as text.
    pub(crate) reason: String,
    /// The peer refused our bind.
    pub(crate) refused: Option<CommandStatus>,
    /// The link was bound.
    pub(crate) was_bound: bool,
    /// The link was told to close.
    pub(crate) requested: bool,
}

struct Closing {
    unbind_at: Instant,
    until: Instant,
    unbound: bool,
}

/// One SMPP connection.
pub(crate) struct Link {
    shared: Arc<Shared>,
    record: Arc<LinkRecord>,
    socket: TrackedSocket,
    session: Session,
    control: UnboundedReceiver<LinkControl>,
    side: LinkSide,
    pending_bind: Option<PendingBind>,
    bound: Option<BoundLink>,
    events: Vec<Event>,
    closing: Option<Closing>,
    /// The moment until which the peer must show a sign of life.
    alive_deadline: Option<Instant>,
    refused: Option<CommandStatus>,
    was_bound: bool,
}

/// The sequence number of an enquire_link that the session does not know of. It is farthest from the numbers that the
/// session uses. Its answer counts as a sign of life and as nothing else.
const PROBE_SEQUENCE: u32 = 0x7FFF_FFFF;

/// The events that woke a link.
#[derive(Default)]
struct Wakeup {
    batches: Vec<Vec<LinkCommand>>,
    control: Option<LinkControl>,
    decision: Option<BindDecision>,
    read: Option<io::Result<usize>>,
    write_error: Option<io::Error>,
}

impl Link {
    /// Creates the link of an incoming connection.
    pub(crate) fn incoming(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        socket: Socket,
        session: Session,
        control: UnboundedReceiver<LinkControl>,
        authenticator: Arc<BindAuthenticator>,
    ) -> Self {
        Self::new(shared, record, socket, session, control, LinkSide::Unbound(authenticator))
    }

    /// Creates the link of an outgoing connection.
    pub(crate) fn outgoing(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        socket: Socket,
        session: Session,
        control: UnboundedReceiver<LinkControl>,
        smsc: SmscRequests,
    ) -> Self {
        Self::new(shared, record, socket, session, control, LinkSide::Smsc(smsc))
    }

    fn new(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        socket: Socket,
        session: Session,
        control: UnboundedReceiver<LinkControl>,
        side: LinkSide,
    ) -> Self {
        Self {
            shared,
            record,
            socket: TrackedSocket::new(socket),
            session,
            control,
            side,
            pending_bind: None,
            bound: None,
            events: Vec::new(),
            closing: None,
            alive_deadline: None,
            refused: None,
            was_bound: false,
        }
    }

    /// Runs until the connection has ended and every message on it has an outcome.
    pub(crate) async fn run(mut self) -> LinkEnd {
        let mut sleep = Box::pin(tokio::time::sleep_until(tokio::time::Instant::now()));
        let mut timer_at: Option<Instant> = None;
        let (reason, orderly) = loop {
            let now = clock::now();
            let waiting = self.session.output().len();
            let timeout = self.shared.options.write_timeout;
            let slow = self.socket.write_deadline(now, waiting, timeout);
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
            let deadline =
                [self.session.deadline(), slow, closing, self.alive_deadline].into_iter().flatten().min();
            // A timer that fires early costs one iteration; resetting the timer in every iteration costs much more.
            if let Some(deadline) = deadline
                && timer_at.is_none_or(|at| deadline < at)
            {
                sleep.as_mut().reset(deadline.into());
                timer_at = Some(deadline);
            }
            let wakeup = self.wait(sleep.as_mut(), &mut timer_at).await;
            if let Some((reason, orderly)) = self.handle_wakeup(wakeup) {
                break (reason, orderly);
            }
        };
        self.finish(reason, orderly).await
    }

    /// Waits until there is something to do.
    async fn wait(
        &mut self,
        mut sleep: Pin<&mut tokio::time::Sleep>,
        timer_at: &mut Option<Instant>,
    ) -> Wakeup {
        let Self { socket, session, control, pending_bind, bound, shared, .. } = self;
        let reads = session.wants_input() && session.output().len() <= shared.options.output_limit;
        poll_fn(|cx| {
            let mut wakeup = Wakeup::default();
            let mut ready = false;
            match socket.poll_write(cx, session.output()) {
                Poll::Ready(Ok(())) => {
                    if let Some(bound) = bound.as_mut() {
                        bound.queue.on_written(socket.written());
                    }
                    ready = true;
                }
                Poll::Ready(Err(error)) => {
                    wakeup.write_error = Some(error);
                    ready = true;
                }
                Poll::Pending => {}
            }
            if let Some(bound) = bound.as_mut() {
                while let Poll::Ready(batch) = bound.handle.poll_recv(cx) {
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
            if reads && let Poll::Ready(read) = socket.poll_read(cx, session.input()) {
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

    /// Handles the events of one wakeup. Returns the reason, and whether the end is orderly, if the link has ended.
    fn handle_wakeup(&mut self, wakeup: Wakeup) -> Option<(String, bool)> {
        let now = clock::now();
        let wall = clock::wall();
        let mut ending = None;
        if let Some(error) = wakeup.write_error {
            ending = Some((format!("write failed: {error}"), false));
        }
        match wakeup.read {
            Some(Ok(0)) => ending = Some(("the peer closed the connection".to_owned(), true)),
            Some(Ok(_)) => {
                self.record.record_heard(now);
                if self.alive_deadline.take().is_some()
                    && let LinkSide::Esme(esme) = &self.side
                {
                    esme.report_alive();
                }
            }
            Some(Err(error)) => ending = Some((format!("read failed: {error}"), false)),
            None => {}
        }
        match wakeup.control {
            Some(LinkControl::Close(until)) => self.begin_close(now, until),
            Some(LinkControl::ProveAlive(until)) if self.alive_deadline.is_none() => {
                encode_request(self.session.output(), PROBE_SEQUENCE, &Request::EnquireLink);
                self.alive_deadline = Some(until);
            }
            Some(LinkControl::ProveAlive(_)) => {}
            None => {}
        }
        if let Some(decision) = wakeup.decision {
            self.on_bind_decision(now, decision);
        }
        for command in wakeup.batches.into_iter().flatten() {
            self.on_command(now, wall, command);
        }
        if self.session.deadline().is_some_and(|deadline| deadline <= now) {
            self.session.on_timeout(now);
        }
        let mut close_reason = None;
        loop {
            self.session.process(now);
            let mut any = false;
            while let Some(event) = self.session.poll_event() {
                any = true;
                if let smpp::Event::Closing(reason) = event {
                    close_reason = Some(reason);
                } else {
                    self.on_session_event(now, wall, event);
                }
            }
            // Answers free the window for more, and the session itself answers a request that fits no PDU.
            if !self.fill_window(now, wall) && !any {
                break;
            }
        }
        self.update_record(now);
        self.push_events();
        if let Some(reason) = close_reason {
            return Some((reason.name().to_owned(), !matches!(reason, CloseReason::Dead)));
        }
        if ending.is_none() && self.alive_deadline.is_some_and(|until| until <= now) {
            ending = Some(("no sign of life while a new bind waited for its session".to_owned(), false));
        }
        if ending.is_some() {
            return ending;
        }
        self.continue_close(now)
    }

    /// Gives the session as many requests as its window takes. Returns whether there were any.
    fn fill_window(&mut self, now: Instant, wall: Timestamp) -> bool {
        let Some(bound) = &mut self.bound else { return false };
        if self.session.bound_as().is_none() {
            // One of the two ends is unbinding: a message given to this link would only be returned.
            bound.handle.pause(&mut self.events);
        }
        bound.queue.fill_window(
            &mut self.session,
            &self.record,
            now,
            wall,
            self.socket.written(),
            self.shared.options.output_limit,
            &mut self.events,
        )
    }

    fn push_events(&mut self) {
        if !self.events.is_empty() {
            self.shared.core.push(std::mem::take(&mut self.events));
        }
    }

    fn update_record(&self, now: Instant) {
        let Some(bound) = &self.bound else { return };
        let in_flight = u32::try_from(self.session.in_flight()).unwrap_or(u32::MAX);
        let unanswered = u32::try_from(self.session.unanswered_in()).unwrap_or(u32::MAX);
        self.record.in_flight.store(in_flight, Relaxed);
        self.record.unanswered_in.store(unanswered, Relaxed);
        let mut blocked_by = bound.queue.blocked_by(&self.session, now);
        if blocked_by == LinkBlocker::None && self.socket.is_stalled() {
            blocked_by = LinkBlocker::SlowReader;
        }
        if let LinkSide::Esme(esme) = &self.side
            && blocked_by == LinkBlocker::None
        {
            if esme.is_rate_limited(now) {
                blocked_by = LinkBlocker::AccountRate;
            } else if !self.session.wants_input() {
                blocked_by = LinkBlocker::OurWindow;
            }
        }
        self.record.set_blocked_by(blocked_by);
    }

    fn on_session_event(&mut self, now: Instant, wall: Timestamp, event: smpp::Event) {
        match event {
            smpp::Event::Bind(bind) => {
                if let LinkSide::Unbound(authenticator) = &self.side {
                    self.pending_bind = Some(authenticator.authenticate(bind));
                }
            }
            smpp::Event::Bound { system_id, version } => self.on_bound(&system_id, version),
            smpp::Event::BindRefused(status) => self.refused = Some(status),
            smpp::Event::Outbind(_) => tracing::info!(peer = %self.record.name, "outbind"),
            smpp::Event::Request { sequence, request } => {
                self.record.inbound.count_request(&request);
                let Some(bound) = &self.bound else { return };
                let mut context = RequestContext {
                    shared: &self.shared,
                    session: &mut self.session,
                    record: &self.record,
                    events: &mut self.events,
                    link: bound.handle.link(),
                    now,
                    wall,
                };
                match &mut self.side {
                    LinkSide::Esme(esme) => esme.request(&mut context, sequence, request),
                    LinkSide::Smsc(smsc) => smsc.request(&mut context, sequence, request),
                    LinkSide::Unbound(_) => {}
                }
            }
            smpp::Event::Answer { token, status, response, late } => {
                if let Some(bound) = &mut self.bound {
                    if late && self.shared.log.take(now).is_some() {
                        tracing::info!(peer = %self.record.name, %status, "late response");
                    }
                    let outcome = bound.queue.on_response(&self.record, now, token, status, &response, late);
                    self.events.extend(outcome);
                }
            }
            smpp::Event::Unanswered { token } => {
                if let Some(bound) = &mut self.bound {
                    if self.shared.log.take(now).is_some() {
                        tracing::warn!(peer = %self.record.name, "request timed out");
                    }
                    self.events.extend(bound.queue.on_response_timeout(token));
                }
            }
            smpp::Event::Alert(alert) => {
                self.record.inbound.count_command(CommandId::ALERT_NOTIFICATION);
                if let LinkSide::Smsc(smsc) = &self.side {
                    let event = smsc.alert(alert);
                    self.events.push(event);
                }
            }
            smpp::Event::Anomaly(anomaly) => tracing::debug!(
                peer = %self.record.name,
                what = anomaly.what,
                command = format_args!("{:#010x}", anomaly.command.0),
                sequence = anomaly.sequence,
                "protocol anomaly"
            ),
            smpp::Event::Closing(_) => {}
        }
    }

    fn on_command(&mut self, now: Instant, wall: Timestamp, command: LinkCommand) {
        let Some(bound) = &mut self.bound else { return };
        match command {
            LinkCommand::Send { message, leg, taken, want_dlr, .. } => {
                bound.queue.send(message, leg, taken, want_dlr);
            }
            LinkCommand::QueryPeer { id, peer_id, message, leg } => {
                bound.queue.query(id, peer_id, &message, leg);
            }
            LinkCommand::Flushed => {}
            LinkCommand::Answer { token, answer } => {
                let Some((kind, slot, sequence)) = unpack(token) else { return };
                let mut context = RequestContext {
                    shared: &self.shared,
                    session: &mut self.session,
                    record: &self.record,
                    events: &mut self.events,
                    link: bound.handle.link(),
                    now,
                    wall,
                };
                match &mut self.side {
                    LinkSide::Esme(esme) => esme.answer(&mut context, kind, slot, sequence, answer),
                    LinkSide::Smsc(_) => SmscRequests::answer(&mut context, kind, sequence, &answer),
                    LinkSide::Unbound(_) => {}
                }
            }
        }
    }

    /// Applies the decision on an ESME's bind.
    fn on_bind_decision(&mut self, now: Instant, decision: BindDecision) {
        match decision {
            BindDecision::Refuse { status, reason } => {
                self.refused = Some(status);
                self.session.refuse_bind(status);
                self.record.set_error(reason);
            }
            BindDecision::Accept { account, permit, record, version, mode } => {
                let options = account.options();
                self.record = record;
                self.session.set_window_in(options.window);
                self.session.set_window_out(options.deliver_window);
                self.session.accept_bind(now, version);
                if self.session.bound_as().is_none() {
                    // The connection ended during the authentication.
                    return;
                }
                let style = PduStyle {
                    submits: false,
                    tlvs: version.takes_tlvs(),
                    long: LongText::Payload,
                    validity: false,
                };
                let window = options.deliver_window;
                self.register(style, MessageIdForm::AsIs, HashMap::new(), version);
                self.announce_bound(mode, mode.receives(), version.0, options.peer, window);
                self.side = LinkSide::Esme(EsmeRequests::new(account, permit, version));
            }
        }
    }

    /// The peer has accepted our bind.
    fn on_bound(&mut self, system_id: &[u8], version: Option<InterfaceVersion>) {
        let LinkSide::Smsc(smsc) = &self.side else { return };
        let options = smsc.options.clone();
        let ours = InterfaceVersion(options.interface_version).takes_tlvs();
        let theirs = options.tlvs.unwrap_or_else(|| version.is_none_or(InterfaceVersion::takes_tlvs));
        let style = PduStyle {
            submits: true,
            tlvs: ours && theirs,
            long: options.long_text,
            validity: options.pass_validity,
        };
        tracing::debug!(peer = %options.name, name = %String::from_utf8_lossy(system_id), "bind accepted");
        let offered_version = version.unwrap_or(InterfaceVersion::V34);
        self.register(style, options.message_id, options.error_classes.clone(), offered_version);
        self.announce_bound(
            options.bind,
            options.bind.transmits(),
            offered_version.0,
            options.peer,
            options.window,
        );
    }

    fn register(
        &mut self,
        style: PduStyle,
        message_id_form: MessageIdForm,
        error_classes: HashMap<u32, model::ErrorClass>,
        version: InterfaceVersion,
    ) {
        let (core, registry) = (self.shared.core.clone(), self.shared.registry.clone());
        let handle = LinkHandle::register(core, registry, Protocol::Smpp);
        let queue = SendQueue::new(handle.link(), style, message_id_form, error_classes);
        self.bound = Some(BoundLink {
            handle,
            _listed: ListedRecord::list(self.shared.clone(), self.record.clone()),
            queue,
            version,
        });
        self.was_bound = true;
    }

    fn announce_bound(
        &mut self,
        mode: BindMode,
        takes_messages: bool,
        version: u8,
        peer: PeerId,
        window: usize,
    ) {
        let Some(bound) = &mut self.bound else { return };
        self.record.set_bound(bound.handle.link(), mode, version, window);
        tracing::info!(
            link = bound.handle.link().0,
            peer = %self.record.name,
            role = ?self.record.role,
            bind = mode.name(),
            version = format_args!("{:#04x}", bound.version.0),
            "bound"
        );
        if takes_messages {
            bound.handle.announce(peer, window, &mut self.events);
        }
    }

    fn begin_close(&mut self, now: Instant, until: Instant) {
        if self.closing.is_some() {
            return;
        }
        let half = until.saturating_duration_since(now) / 2;
        self.closing = Some(Closing { unbind_at: now + half, until, unbound: false });
        self.record.set_phase(LinkPhase::Unbinding);
        if let Some(bound) = &mut self.bound {
            bound.handle.pause(&mut self.events);
        }
    }

    /// Unbinds when no request is in progress, or after half of the time. Gives up when the time is over.
    fn continue_close(&mut self, now: Instant) -> Option<(String, bool)> {
        let closing = self.closing.as_mut()?;
        if now >= closing.until {
            return Some(("close timeout".to_owned(), true));
        }
        let idle = self.bound.as_ref().is_none_or(|bound| bound.queue.is_idle())
            && self.session.in_flight() == 0
            && self.session.unanswered_in() == 0;
        if !closing.unbound && (idle || now >= closing.unbind_at) {
            closing.unbound = true;
            self.session.unbind(now);
            while let Some(event) = self.session.poll_event() {
                if let smpp::Event::Closing(reason) = event {
                    return Some((reason.name().to_owned(), true));
                }
            }
        }
        None
    }

    /// Writes the last octets, and reports an outcome for every message on the link.
    async fn finish(mut self, reason: String, orderly: bool) -> LinkEnd {
        if self.was_bound {
            self.record.set_phase(LinkPhase::Unbinding);
        }
        let timeout = self.shared.options.write_timeout.min(Duration::from_secs(5));
        if orderly {
            self.socket.flush_and_shutdown(self.session.output(), timeout).await;
        }
        let pending = self.session.close();
        let Self { shared, record, socket, bound, mut events, closing, refused, was_bound, side, .. } = self;
        let end = LinkEnd { reason, refused, was_bound, requested: closing.is_some() };
        // This releases the session permit of the account.
        drop(side);
        let written = socket.written();
        let lingering = orderly.then_some(socket);
        if let Some(mut bound) = bound {
            bound.queue.on_written(written);
            bound.queue.close(pending, &mut events);
            bound.handle.close(events, shared.options.close_timeout).await;
        }
        if let Some(socket) = lingering {
            socket.linger().await;
        }
        // If the link is dialed again, the dialer logs its end, with the wait.
        if was_bound && (record.role == LinkRole::Server || end.requested) {
            tracing::info!(peer = %record.name, role = ?record.role, reason = %end.reason, "link closed");
        }
        end
    }
}

//! One SGIP connection: the task that moves octets, commands, answers and outcomes until it ends.

use super::outgoing::{Outgoing, Target};
use super::taking::{Owed, Source};
use crate::accounts::Control;
use crate::clock;
use crate::place::Place;
use crate::shared::Shared;
use crate::socket::{Socket, Wire};
use crate::state::{LinkBrake, LinkRecord, LinkRole, Phase};
use bytes::BytesMut;
use doors::{Deliveries, Delivery, Protocol};
use engine::Event;
use sgip::{Bind, CloseReason, ResultCode, Sequence, Session};
use smpp::BindMode;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

/// What became of a login that was judged.
pub(super) enum Judgement {
    Accept { source: Source, record: Arc<LinkRecord>, window_in: usize },
    Refuse { code: ResultCode, why: &'static str },
}

pub(super) type Judging = Pin<Box<dyn Future<Output = Judgement> + Send>>;
pub(super) type Judge = Box<dyn Fn(Bind) -> Judging + Send>;

/// What the connection is for; whoever connected is the one who sends commands.
enum Role {
    /// A connection of which nothing is known yet.
    Unknown(Judge),
    /// The far end sends commands.
    Takes(Source),
    /// We do.
    Sends(Box<Outgoing>),
}

/// How a connection ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) why: String,
    /// The far end refused our login.
    pub(super) refused: Option<ResultCode>,
    /// Since when it was bound, if it was.
    pub(super) bound_at: Option<Instant>,
    /// We were told to go.
    pub(super) wanted: bool,
}

struct Leave {
    unbind_at: Instant,
    until: Instant,
    unbound: bool,
}

/// One connection.
pub(super) struct Connection {
    shared: Arc<Shared>,
    record: Arc<LinkRecord>,
    wire: Wire,
    input: BytesMut,
    session: Session,
    control: UnboundedReceiver<Control>,
    role: Role,
    judging: Option<Judging>,
    attached: Option<(Place, Deliveries)>,
    owed: Owed,
    events: Vec<Event>,
    leave: Option<Leave>,
    refused: Option<ResultCode>,
    bound_at: Option<Instant>,
}

#[derive(Default)]
struct Turn {
    batches: Vec<Vec<Delivery>>,
    control: Option<Control>,
    judgement: Option<Judgement>,
    read: Option<io::Result<usize>>,
    write_error: Option<io::Error>,
}

impl Connection {
    /// A connection that came in.
    pub(super) fn incoming(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        socket: Socket,
        session: Session,
        control: UnboundedReceiver<Control>,
        judge: Judge,
    ) -> Self {
        Self::new(shared, record, socket, session, control, Role::Unknown(judge))
    }

    /// A connection that we made.
    pub(super) fn outgoing(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        socket: Socket,
        session: Session,
        control: UnboundedReceiver<Control>,
        target: Target,
    ) -> Self {
        let role = Role::Sends(Box::new(Outgoing::new(target)));
        Self::new(shared, record, socket, session, control, role)
    }

    fn new(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        socket: Socket,
        session: Session,
        control: UnboundedReceiver<Control>,
        role: Role,
    ) -> Self {
        Self {
            shared,
            record,
            wire: Wire::new(socket),
            input: BytesMut::new(),
            session,
            control,
            role,
            judging: None,
            attached: None,
            owed: Owed::default(),
            events: Vec::new(),
            leave: None,
            refused: None,
            bound_at: None,
        }
    }

    /// Runs until the connection has ended and everything that was on it is accounted for.
    pub(super) async fn run(mut self) -> Ended {
        let (why, orderly) = loop {
            let now = clock::now();
            let waiting = self.session.output().len();
            let slow = self.wire.watch(now, waiting, self.shared.options.write_timeout);
            if slow.is_some_and(|limit| limit <= now) {
                break ("the far end does not read what we write".to_owned(), false);
            }
            if waiting > self.shared.options.output_limit.saturating_mul(4) {
                break ("too much waits for a far end that does not read".to_owned(), false);
            }
            let leave =
                self.leave.as_ref().map(|leave| if leave.unbound { leave.until } else { leave.unbind_at });
            let deadline = [self.session.deadline(), slow, leave].into_iter().flatten().min();
            let turn = self.turn(deadline).await;
            if let Some(end) = self.work(turn) {
                break end;
            }
        };
        self.finish(why, orderly).await
    }

    async fn turn(&mut self, deadline: Option<Instant>) -> Turn {
        let Self { wire, input, session, control, judging, attached, shared, .. } = self;
        let reads = session.wants_input() && session.output().len() <= shared.options.output_limit;
        let far = Instant::now() + Duration::from_secs(86_400);
        let mut sleep = Box::pin(tokio::time::sleep_until(deadline.unwrap_or(far).into()));
        poll_fn(|cx| {
            let mut turn = Turn::default();
            let mut ready = false;
            match wire.poll_write(cx, session.output()) {
                Poll::Ready(Ok(())) => ready = true,
                Poll::Ready(Err(error)) => {
                    turn.write_error = Some(error);
                    ready = true;
                }
                Poll::Pending => {}
            }
            if let Some((_, deliveries)) = attached.as_mut() {
                while let Poll::Ready(Some(batch)) = deliveries.poll_recv(cx) {
                    turn.batches.push(batch);
                    ready = true;
                }
            }
            if let Poll::Ready(Some(order)) = control.poll_recv(cx) {
                turn.control = Some(order);
                ready = true;
            }
            if let Some(future) = judging.as_mut()
                && let Poll::Ready(judgement) = future.as_mut().poll(cx)
            {
                *judging = None;
                turn.judgement = Some(judgement);
                ready = true;
            }
            if reads && let Poll::Ready(read) = wire.poll_read(cx, input) {
                turn.read = Some(read);
                ready = true;
            }
            ready |= sleep.as_mut().poll(cx).is_ready();
            if ready { Poll::Ready(turn) } else { Poll::Pending }
        })
        .await
    }

    /// Does what there is to do. Says why, and whether in good order, when that was the last of it.
    fn work(&mut self, turn: Turn) -> Option<(String, bool)> {
        let now = clock::now();
        let mut ending = turn.write_error.map(|error| (format!("writing failed: {error}"), false));
        match turn.read {
            Some(Ok(0)) => ending = Some(("the far end closed the connection".to_owned(), true)),
            Some(Ok(_)) => {
                self.record.heard(now);
                let octets = self.input.split();
                self.session.receive(now, &octets);
            }
            Some(Err(error)) => ending = Some((format!("reading failed: {error}"), false)),
            None => {}
        }
        if let Some(Control::Leave(until)) = turn.control {
            self.begin_leaving(now, until);
        }
        if let Some(judgement) = turn.judgement {
            self.judged(now, judgement);
        }
        for delivery in turn.batches.into_iter().flatten() {
            self.deliver(delivery);
        }
        if self.session.deadline().is_some_and(|deadline| deadline <= now) {
            self.session.on_timeout(now);
        }
        let closing = self.drain(now);
        self.show();
        if !self.events.is_empty() {
            self.shared.core.push(std::mem::take(&mut self.events));
        }
        closing.or(ending).or_else(|| self.go_on_leaving(now))
    }

    fn drain(&mut self, now: Instant) -> Option<(String, bool)> {
        let mut closing = None;
        loop {
            self.session.process(now);
            let mut any = false;
            while let Some(event) = self.session.poll_event() {
                any = true;
                match event {
                    sgip::Event::Closing(reason) => closing = Some((describe(reason), true)),
                    event => self.event(now, event),
                }
            }
            if let Role::Sends(outgoing) = &mut self.role
                && let Some((place, _)) = &mut self.attached
            {
                if !self.session.is_bound() {
                    place.pause(&mut self.events);
                }
                let written = self.wire.written();
                any |= outgoing.pump(
                    &mut self.session,
                    &self.record,
                    now,
                    written,
                    &mut self.events,
                    place.link(),
                );
            }
            if !any {
                return closing;
            }
        }
    }

    fn event(&mut self, now: Instant, event: sgip::Event) {
        match event {
            sgip::Event::Bind(bind) => {
                if let Role::Unknown(judge) = &self.role {
                    self.judging = Some(judge(bind));
                }
            }
            sgip::Event::Bound => self.bound(now),
            sgip::Event::BindRefused(code) => self.refused = Some(code),
            sgip::Event::Command { number, sequence, pdu } => {
                let (Role::Takes(source), Some((place, _))) = (&self.role, &self.attached) else { return };
                let taken = source.take(&self.shared, &self.record, place.link(), number, sequence, pdu);
                match taken {
                    Ok((events, waits)) => {
                        self.events.extend(events);
                        self.owed.add(number, waits);
                    }
                    Err(code) => {
                        self.record.outbound.answered(u32::from(code.0));
                        self.session.respond(number, code);
                    }
                }
            }
            sgip::Event::Answer { token, result, late } => {
                if let (Role::Sends(outgoing), Some((place, _))) = (&mut self.role, &self.attached) {
                    self.record.inbound.answered(u32::from(result.0));
                    if late && self.shared.lines.allow(now) {
                        tracing::info!(peer = %self.record.name, %result, "an answer came late");
                    }
                    let told = outgoing.answered(&self.record, now, token, result, place.link());
                    self.events.extend(told);
                }
            }
            sgip::Event::Unanswered { token } => {
                if let (Role::Sends(outgoing), Some((place, _))) = (&mut self.role, &self.attached) {
                    if self.shared.lines.allow(now) {
                        tracing::warn!(peer = %self.record.name, "a command was sent as often as it may, and not answered");
                    }
                    self.events.extend(outgoing.unanswered(token, place.link()));
                }
            }
            sgip::Event::Unasked(sequence) => {
                tracing::debug!(peer = %self.record.name, ?sequence, "an answer that nobody asked for");
            }
            sgip::Event::Closing(_) => {}
        }
    }

    fn deliver(&mut self, delivery: Delivery) {
        match (delivery, &mut self.role) {
            (Delivery::Send { message, leg, taken, want_receipt, ticket, .. }, Role::Sends(outgoing)) => {
                let Some((place, _)) = &self.attached else { return };
                let told = outgoing.take(message, leg, taken, want_receipt, ticket, place.link());
                self.events.extend(told);
            }
            (Delivery::Answer { token, answer }, Role::Takes(source)) => {
                let Some((place, _)) = &self.attached else { return };
                let (events, answered) = self.owed.answered(source, place.link(), token, answer);
                self.events.extend(events);
                if let Some((number, code)) = answered {
                    self.record.outbound.answered(u32::from(code.0));
                    self.session.respond(number, code);
                }
            }
            _ => {}
        }
    }

    fn judged(&mut self, now: Instant, judgement: Judgement) {
        match judgement {
            Judgement::Refuse { code, why } => {
                self.refused = Some(code);
                self.record.error(why);
                self.session.refuse_bind(code);
            }
            Judgement::Accept { source, record, window_in } => {
                self.record = record;
                self.session.set_window_in(window_in);
                self.session.set_accepts(source.accepts());
                let (place, deliveries) =
                    Place::take(self.shared.clone(), self.record.clone(), Protocol::Sgip);
                self.record.bound(place.link(), source.mode(), source.version(), 0);
                tracing::info!(link = place.link().0, peer = %self.record.name, protocol = "sgip", "bound");
                self.attached = Some((place, deliveries));
                self.role = Role::Takes(source);
                self.bound_at = Some(now);
                self.session.accept_bind(now);
            }
        }
    }

    fn bound(&mut self, now: Instant) {
        let Role::Sends(outgoing) = &self.role else { return };
        let (mut place, deliveries) = Place::take(self.shared.clone(), self.record.clone(), Protocol::Sgip);
        let (peer, window) = (outgoing.peer(), outgoing.window());
        self.record.bound(place.link(), BindMode::Transmitter, outgoing.version(), window);
        tracing::info!(link = place.link().0, peer = %self.record.name, protocol = "sgip", "bound");
        place.up(peer, window, &mut self.events);
        self.attached = Some((place, deliveries));
        self.bound_at = Some(now);
    }

    fn show(&self) {
        let Some(_) = &self.attached else { return };
        let in_flight = u32::try_from(self.session.in_flight()).unwrap_or(u32::MAX);
        let owed = u32::try_from(self.session.owed()).unwrap_or(u32::MAX);
        self.record.in_flight.store(in_flight, Relaxed);
        self.record.unanswered_in.store(owed, Relaxed);
        let full = matches!(self.role, Role::Sends(_)) && self.session.window_free() == 0;
        self.record.brake(if self.wire.is_stuck() {
            LinkBrake::SlowReader
        } else if full {
            LinkBrake::PeerWindow
        } else if !self.session.wants_input() {
            LinkBrake::OurWindow
        } else {
            LinkBrake::None
        });
    }

    fn begin_leaving(&mut self, now: Instant, until: Instant) {
        if self.leave.is_some() {
            return;
        }
        let half = until.saturating_duration_since(now) / 2;
        self.leave = Some(Leave { unbind_at: now + half, until, unbound: false });
        self.record.phase(Phase::Leaving);
        if let Some((place, _)) = &mut self.attached {
            place.pause(&mut self.events);
        }
    }

    /// Unbinds once nothing is under way any more, or when half of the time is over; gives up when all of it is.
    fn go_on_leaving(&mut self, now: Instant) -> Option<(String, bool)> {
        let leave = self.leave.as_mut()?;
        if now >= leave.until {
            return Some(("told to go, and time is up".to_owned(), true));
        }
        let idle = match &self.role {
            Role::Sends(outgoing) => outgoing.is_idle() && self.session.in_flight() == 0,
            Role::Takes(_) | Role::Unknown(_) => self.session.owed() == 0,
        };
        if leave.unbound || !(idle || now >= leave.unbind_at) {
            return None;
        }
        leave.unbound = true;
        // Only the one who connected takes leave; the other end just closes, which counts as leave.
        if !matches!(self.role, Role::Sends(_)) {
            return Some(("told to go".to_owned(), true));
        }
        let sequence = Sequence::new(0, clock::wall(), 0);
        self.session.unbind(now, sequence);
        None
    }

    /// The last words, and the account of what was under way.
    async fn finish(mut self, why: String, orderly: bool) -> Ended {
        if self.bound_at.is_some() {
            self.record.phase(Phase::Leaving);
        }
        let patience = self.shared.options.write_timeout.min(Duration::from_secs(5));
        if orderly {
            self.wire.say_goodbye(self.session.output(), patience).await;
        }
        self.session.close();
        let Self { record, wire, attached, mut events, leave, refused, bound_at, role, .. } = self;
        let ended = Ended { why, refused, bound_at, wanted: leave.is_some() };
        let written = wire.written();
        let lingering = orderly.then_some(wire);
        if let Some((place, deliveries)) = attached {
            if let Role::Sends(outgoing) = role {
                outgoing.close(written, place.link(), &mut events);
            }
            place.leave(deliveries, events).await;
        }
        if let Some(wire) = lingering {
            wire.linger().await;
        }
        // The dialler logs the end of a link that it dials again, with the wait.
        if ended.bound_at.is_some() && (record.role == LinkRole::Server || ended.wanted) {
            tracing::info!(peer = %record.name, protocol = "sgip", why = %ended.why, "link closed");
        }
        ended
    }
}

fn describe(reason: CloseReason) -> String {
    match reason {
        CloseReason::BindRefused(code) => format!("its login was refused: {code}"),
        CloseReason::Refused(code) => format!("our login was refused: {code}"),
        CloseReason::NoBind => "no login in time".to_owned(),
        CloseReason::Unbidden => "a command before the login".to_owned(),
        CloseReason::Broken(what) => format!("a broken command: {what}"),
        CloseReason::Partial => "the rest of a command did not come".to_owned(),
        CloseReason::Idle => "nothing was said for too long".to_owned(),
        CloseReason::Unbound => "we took leave".to_owned(),
        CloseReason::PeerUnbound => "the far end took leave".to_owned(),
    }
}

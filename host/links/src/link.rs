//! One connection: the task that moves octets, requests, answers and outcomes until it ends.

use crate::accounts::{Account, Control, Seat};
use crate::outbox::Outbox;
use crate::outgoing::Style;
use crate::place::Place;
use crate::reply::unpack;
use crate::scope::Scope;
use crate::serving::Serving;
use crate::shared::Shared;
use crate::socket::{Socket, Wire};
use crate::state::{LinkBrake, LinkRecord, LinkRole, Phase};
use crate::upstream::Upstream;
use crate::{LongText, clock};
use doors::{Deliveries, Delivery, Protocol};
use engine::Event;
use model::{PeerId, Timestamp};
use smpp::message_id::MessageIdForm;
use smpp::{Bind, BindMode, CloseReason, CommandId, Request, Session, Status, Version, encode_request};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

/// What became of a bind that was judged.
pub(crate) enum Judgement {
    /// The ESME may in.
    Accept { account: Arc<Account>, seat: Seat, record: Arc<LinkRecord>, version: Version, mode: BindMode },
    /// It may not.
    Refuse { status: Status, why: &'static str },
}

/// A judgement under way.
pub(crate) type Judging = Pin<Box<dyn Future<Output = Judgement> + Send>>;

/// Judges binds.
pub(crate) type Judge = Box<dyn Fn(Bind) -> Judging + Send>;

/// What a link does besides moving octets.
enum Role {
    /// A connection of which nothing is known yet.
    Unknown(Judge),
    Serving(Serving),
    Upstream(Upstream),
}

/// A link's place in the hub, from its bind on.
struct Attached {
    place: Place,
    deliveries: Deliveries,
    outbox: Outbox,
    version: Version,
}

/// How a link ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// In words.
    pub(crate) why: String,
    /// The peer refused our bind.
    pub(crate) refused: Option<Status>,
    /// It was bound.
    pub(crate) was_bound: bool,
    /// We were told to go.
    pub(crate) wanted: bool,
}

struct Leave {
    unbind_at: Instant,
    until: Instant,
    unbound: bool,
}

/// One connection.
pub(crate) struct Link {
    shared: Arc<Shared>,
    record: Arc<LinkRecord>,
    wire: Wire,
    session: Session,
    control: UnboundedReceiver<Control>,
    role: Role,
    judging: Option<Judging>,
    attached: Option<Attached>,
    events: Vec<Event>,
    leave: Option<Leave>,
    /// Until when it must show that it lives.
    prove: Option<Instant>,
    refused: Option<Status>,
    was_bound: bool,
}

/// The sequence number of an enquire_link that the session does not know of: the farthest from those that it gives out.
/// Whatever comes back counts as a sign of life and as nothing else.
const PROVE_SEQUENCE: u32 = 0x7FFF_FFFF;

/// What woke a link.
#[derive(Default)]
struct Turn {
    batches: Vec<Vec<Delivery>>,
    control: Option<Control>,
    judgement: Option<Judgement>,
    read: Option<io::Result<usize>>,
    write_error: Option<io::Error>,
}

impl Link {
    /// A connection that came in.
    pub(crate) fn incoming(
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
    pub(crate) fn outgoing(
        shared: Arc<Shared>,
        record: Arc<LinkRecord>,
        socket: Socket,
        session: Session,
        control: UnboundedReceiver<Control>,
        upstream: Upstream,
    ) -> Self {
        Self::new(shared, record, socket, session, control, Role::Upstream(upstream))
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
            session,
            control,
            role,
            judging: None,
            attached: None,
            events: Vec::new(),
            leave: None,
            prove: None,
            refused: None,
            was_bound: false,
        }
    }

    /// Runs until the connection has ended and everything that was on it is accounted for.
    pub(crate) async fn run(mut self) -> Ended {
        let mut sleep = Box::pin(tokio::time::sleep_until(tokio::time::Instant::now()));
        let mut armed: Option<Instant> = None;
        let (why, orderly) = loop {
            let now = clock::now();
            let waiting = self.session.output().len();
            let patience = self.shared.options.write_timeout;
            let slow = self.wire.watch(now, waiting, patience);
            if slow.is_some_and(|limit| limit <= now) {
                break ("the peer does not read what we write".to_owned(), false);
            }
            if waiting > self.shared.options.output_limit.saturating_mul(4) {
                break ("too much waits for a peer that does not read".to_owned(), false);
            }
            let leave =
                self.leave.as_ref().map(|leave| if leave.unbound { leave.until } else { leave.unbind_at });
            let deadline = [self.session.deadline(), slow, leave, self.prove].into_iter().flatten().min();
            // A timer that fires early costs a look around; one that is moved at every turn costs much more.
            if let Some(deadline) = deadline
                && armed.is_none_or(|at| deadline < at)
            {
                sleep.as_mut().reset(deadline.into());
                armed = Some(deadline);
            }
            let turn = self.turn(sleep.as_mut(), &mut armed).await;
            if let Some((why, orderly)) = self.work(turn) {
                break (why, orderly);
            }
        };
        self.finish(why, orderly).await
    }

    /// Waits until there is something to do.
    async fn turn(&mut self, mut sleep: Pin<&mut tokio::time::Sleep>, armed: &mut Option<Instant>) -> Turn {
        let Self { wire, session, control, judging, attached, shared, .. } = self;
        let reads = session.wants_input() && session.output().len() <= shared.options.output_limit;
        poll_fn(|cx| {
            let mut turn = Turn::default();
            let mut ready = false;
            match wire.poll_write(cx, session.output()) {
                Poll::Ready(Ok(())) => {
                    if let Some(attached) = attached.as_mut() {
                        attached.outbox.wrote(wire.written());
                    }
                    ready = true;
                }
                Poll::Ready(Err(error)) => {
                    turn.write_error = Some(error);
                    ready = true;
                }
                Poll::Pending => {}
            }
            if let Some(attached) = attached.as_mut() {
                while let Poll::Ready(Some(batch)) = attached.deliveries.poll_recv(cx) {
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
            if reads && let Poll::Ready(read) = wire.poll_read(cx, session.input()) {
                turn.read = Some(read);
                ready = true;
            }
            if armed.is_some() && sleep.as_mut().poll(cx).is_ready() {
                *armed = None;
                ready = true;
            }
            if ready { Poll::Ready(turn) } else { Poll::Pending }
        })
        .await
    }

    /// Does what there is to do. Says why, when that was the last of it.
    fn work(&mut self, turn: Turn) -> Option<(String, bool)> {
        let now = clock::now();
        let wall = clock::wall();
        let mut ending = None;
        if let Some(error) = turn.write_error {
            ending = Some((format!("writing failed: {error}"), false));
        }
        match turn.read {
            Some(Ok(0)) => ending = Some(("the peer closed the connection".to_owned(), true)),
            Some(Ok(_)) => {
                self.record.heard(now);
                if self.prove.take().is_some()
                    && let Role::Serving(serving) = &self.role
                {
                    serving.lives();
                }
            }
            Some(Err(error)) => ending = Some((format!("reading failed: {error}"), false)),
            None => {}
        }
        match turn.control {
            Some(Control::Leave(until)) => self.begin_leaving(now, until),
            Some(Control::Prove(until)) if self.prove.is_none() => {
                encode_request(self.session.output(), PROVE_SEQUENCE, &Request::EnquireLink);
                self.prove = Some(until);
            }
            Some(Control::Prove(_)) => {}
            None => {}
        }
        if let Some(judgement) = turn.judgement {
            self.judged(now, judgement);
        }
        for delivery in turn.batches.into_iter().flatten() {
            self.deliver(now, wall, delivery);
        }
        if self.session.deadline().is_some_and(|deadline| deadline <= now) {
            self.session.on_timeout(now);
        }
        let mut closing = None;
        loop {
            self.session.process(now);
            let mut any = false;
            while let Some(event) = self.session.poll_event() {
                any = true;
                if let smpp::Event::Closing(reason) = event {
                    closing = Some(reason);
                } else {
                    self.event(now, wall, event);
                }
            }
            // Answers make room for more, and a request that fits no PDU is answered by the session itself.
            if !self.pump(now, wall) && !any {
                break;
            }
        }
        self.show(now);
        self.push();
        if let Some(reason) = closing {
            return Some((reason.name().to_owned(), !matches!(reason, CloseReason::Dead)));
        }
        if ending.is_none() && self.prove.is_some_and(|until| until <= now) {
            ending = Some(("gave no sign of life while a new bind wanted its place".to_owned(), false));
        }
        if ending.is_some() {
            return ending;
        }
        self.go_on_leaving(now)
    }

    /// Gives the session what it can take; says whether it took anything.
    fn pump(&mut self, now: Instant, wall: Timestamp) -> bool {
        let Some(attached) = &mut self.attached else { return false };
        if self.session.bound_as().is_none() {
            // One of us is unbinding: what is still given to this link would only come back.
            attached.place.pause(&mut self.events);
        }
        attached.outbox.pump(
            &mut self.session,
            &self.record,
            now,
            wall,
            self.wire.written(),
            self.shared.options.output_limit,
            &mut self.events,
        )
    }

    fn push(&mut self) {
        if !self.events.is_empty() {
            self.shared.core.push(std::mem::take(&mut self.events));
        }
    }

    fn show(&self, now: Instant) {
        let Some(attached) = &self.attached else { return };
        let in_flight = u32::try_from(self.session.in_flight()).unwrap_or(u32::MAX);
        let unanswered = u32::try_from(self.session.unanswered_in()).unwrap_or(u32::MAX);
        self.record.in_flight.store(in_flight, Relaxed);
        self.record.unanswered_in.store(unanswered, Relaxed);
        let mut brake = attached.outbox.brake(&self.session, now);
        if brake == LinkBrake::None && self.wire.is_stuck() {
            brake = LinkBrake::SlowReader;
        }
        if let Role::Serving(serving) = &self.role
            && brake == LinkBrake::None
        {
            if serving.hit_its_rate(now) {
                brake = LinkBrake::AccountRate;
            } else if !self.session.wants_input() {
                brake = LinkBrake::OurWindow;
            }
        }
        self.record.brake(brake);
    }

    fn event(&mut self, now: Instant, wall: Timestamp, event: smpp::Event) {
        match event {
            smpp::Event::Bind(bind) => {
                if let Role::Unknown(judge) = &self.role {
                    self.judging = Some(judge(bind));
                }
            }
            smpp::Event::Bound { system_id, version } => self.bound_upstream(&system_id, version),
            smpp::Event::BindRefused(status) => self.refused = Some(status),
            smpp::Event::Outbind(_) => tracing::info!(peer = %self.record.name, "outbind"),
            smpp::Event::Request { sequence, request } => {
                self.record.inbound.request(&request);
                let Some(attached) = &self.attached else { return };
                let mut scope = Scope {
                    shared: &self.shared,
                    session: &mut self.session,
                    record: &self.record,
                    events: &mut self.events,
                    link: attached.place.link(),
                    now,
                    wall,
                };
                match &mut self.role {
                    Role::Serving(serving) => serving.request(&mut scope, sequence, request),
                    Role::Upstream(upstream) => upstream.request(&mut scope, sequence, request),
                    Role::Unknown(_) => {}
                }
            }
            smpp::Event::Answer { token, status, response, late } => {
                if let Some(attached) = &mut self.attached {
                    if late && self.shared.lines.allow(now) {
                        tracing::info!(peer = %self.record.name, %status, "an answer came late");
                    }
                    let told = attached.outbox.answered(&self.record, now, token, status, &response, late);
                    self.events.extend(told);
                }
            }
            smpp::Event::Unanswered { token } => {
                if let Some(attached) = &mut self.attached {
                    if self.shared.lines.allow(now) {
                        tracing::warn!(peer = %self.record.name, "a request was not answered in time");
                    }
                    self.events.extend(attached.outbox.unanswered(token));
                }
            }
            smpp::Event::Alert(alert) => {
                self.record.inbound.command(CommandId::ALERT_NOTIFICATION);
                if let Role::Upstream(upstream) = &self.role {
                    let event = upstream.alert(alert);
                    self.events.push(event);
                }
            }
            smpp::Event::Noted(note) => tracing::debug!(
                peer = %self.record.name,
                what = note.what,
                command = format_args!("{:#010x}", note.command.0),
                sequence = note.sequence,
                "odd PDU"
            ),
            smpp::Event::Closing(_) => {}
        }
    }

    fn deliver(&mut self, now: Instant, wall: Timestamp, delivery: Delivery) {
        let Some(attached) = &mut self.attached else { return };
        match delivery {
            Delivery::Send { message, leg, taken, want_receipt, .. } => {
                attached.outbox.send(message, leg, taken, want_receipt);
            }
            Delivery::Ask { id, peer_id, message, leg } => attached.outbox.ask(id, peer_id, &message, leg),
            Delivery::Answer { token, answer } => {
                let Some((asked, slot, sequence)) = unpack(token) else { return };
                let mut scope = Scope {
                    shared: &self.shared,
                    session: &mut self.session,
                    record: &self.record,
                    events: &mut self.events,
                    link: attached.place.link(),
                    now,
                    wall,
                };
                match &mut self.role {
                    Role::Serving(serving) => serving.answer(&mut scope, asked, slot, sequence, answer),
                    Role::Upstream(_) => Upstream::answer(&mut scope, asked, sequence, &answer),
                    Role::Unknown(_) => {}
                }
            }
        }
    }

    /// The bind of an ESME was judged.
    fn judged(&mut self, now: Instant, judgement: Judgement) {
        match judgement {
            Judgement::Refuse { status, why } => {
                self.refused = Some(status);
                self.session.refuse_bind(status);
                self.record.error(why);
            }
            Judgement::Accept { account, seat, record, version, mode } => {
                let options = account.options();
                self.record = record;
                self.session.set_window_in(options.window);
                self.session.set_window_out(options.deliver_window);
                self.session.accept_bind(now, version);
                if self.session.bound_as().is_none() {
                    // The connection ended while the bind was judged.
                    return;
                }
                let style = Style {
                    submits: false,
                    tlvs: version.takes_tlvs(),
                    long: LongText::Payload,
                    validity: false,
                };
                let window = options.deliver_window;
                self.attach(style, MessageIdForm::AsIs, HashMap::new(), version);
                self.up(mode, mode.receives(), version.0, options.peer, window);
                self.role = Role::Serving(Serving::new(account, seat, version));
            }
        }
    }

    /// The peer took our bind.
    fn bound_upstream(&mut self, system_id: &[u8], version: Option<Version>) {
        let Role::Upstream(upstream) = &self.role else { return };
        let options = upstream.options.clone();
        let ours = Version(options.interface_version).takes_tlvs();
        let theirs = options.tlvs.unwrap_or_else(|| version.is_none_or(Version::takes_tlvs));
        let style = Style {
            submits: true,
            tlvs: ours && theirs,
            long: options.long_text,
            validity: options.pass_validity,
        };
        tracing::debug!(peer = %options.name, name = %String::from_utf8_lossy(system_id), "bind accepted");
        let shown = version.unwrap_or(Version::V34);
        self.attach(style, options.message_id, options.error_classes.clone(), shown);
        self.up(options.bind, options.bind.transmits(), shown.0, options.peer, options.window);
    }

    fn attach(
        &mut self,
        style: Style,
        form: MessageIdForm,
        classes: HashMap<u32, model::ErrorClass>,
        version: Version,
    ) {
        let (place, deliveries) = Place::take(self.shared.clone(), self.record.clone(), Protocol::Smpp);
        let outbox = Outbox::new(place.link(), style, form, classes);
        self.attached = Some(Attached { place, deliveries, outbox, version });
        self.was_bound = true;
    }

    fn up(&mut self, mode: BindMode, takes_messages: bool, version: u8, peer: PeerId, window: usize) {
        let Some(attached) = &mut self.attached else { return };
        self.record.bound(attached.place.link(), mode, version, window);
        tracing::info!(
            link = attached.place.link().0,
            peer = %self.record.name,
            role = ?self.record.role,
            bind = mode.name(),
            version = format_args!("{:#04x}", attached.version.0),
            "bound"
        );
        if takes_messages {
            attached.place.up(peer, window, &mut self.events);
        }
    }

    fn begin_leaving(&mut self, now: Instant, until: Instant) {
        if self.leave.is_some() {
            return;
        }
        let half = until.saturating_duration_since(now) / 2;
        self.leave = Some(Leave { unbind_at: now + half, until, unbound: false });
        self.record.phase(Phase::Leaving);
        if let Some(attached) = &mut self.attached {
            attached.place.pause(&mut self.events);
        }
    }

    /// Unbinds once nothing is under way any more, or when half of the time is over; gives up when all of it is.
    fn go_on_leaving(&mut self, now: Instant) -> Option<(String, bool)> {
        let leave = self.leave.as_mut()?;
        if now >= leave.until {
            return Some(("told to go, and time is up".to_owned(), true));
        }
        let idle = self.attached.as_ref().is_none_or(|attached| attached.outbox.is_idle())
            && self.session.in_flight() == 0
            && self.session.unanswered_in() == 0;
        if !leave.unbound && (idle || now >= leave.unbind_at) {
            leave.unbound = true;
            self.session.unbind(now);
            while let Some(event) = self.session.poll_event() {
                if let smpp::Event::Closing(reason) = event {
                    return Some((reason.name().to_owned(), true));
                }
            }
        }
        None
    }

    /// The last words, and the account of what was under way.
    async fn finish(mut self, why: String, orderly: bool) -> Ended {
        if self.was_bound {
            self.record.phase(Phase::Leaving);
        }
        let patience = self.shared.options.write_timeout.min(Duration::from_secs(5));
        if orderly {
            self.wire.say_goodbye(self.session.output(), patience).await;
        }
        let pending = self.session.close();
        let Self { record, wire, attached, mut events, leave, refused, was_bound, role, .. } = self;
        let ended = Ended { why, refused, was_bound, wanted: leave.is_some() };
        // The place among the account's sessions is free from here on.
        drop(role);
        let written = wire.written();
        let lingering = orderly.then_some(wire);
        if let Some(mut attached) = attached {
            attached.outbox.wrote(written);
            attached.outbox.close(pending, &mut events);
            attached.place.leave(attached.deliveries, events).await;
        }
        if let Some(wire) = lingering {
            wire.linger().await;
        }
        // The dialler logs the end of a link that it dials again, with the wait.
        if was_bound && (record.role == LinkRole::Server || ended.wanted) {
            tracing::info!(peer = %record.name, role = ?record.role, why = %ended.why, "link closed");
        }
        ended
    }
}

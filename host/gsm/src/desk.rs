//! The link of a core network: between the engine, which knows messages, and the connections, which know GSUP.
//!
//! One task. It is up for the engine while any connection is; what the engine hands over it writes to the MSC that serves
//! the subscriber, and what MSCs bring it hands to the engine, answering only when the engine has.

mod sender;

use crate::absent::Absent;
use crate::mo::{self, Asked, MoBook};
use crate::mt::{ConnId, Mt, MtBook, Next, Request, Said, Taken};
use crate::options::GsmOptions;
use crate::register::Located;
use crate::state::{ConnectionState, Counts};
use crate::subscribers::{Numbered, Sign, Subscribers};
use crate::whereabouts::{Held, Place, Whereabouts};
use crate::{mapping, outcome};
use doors::{Core, Deliveries, Delivery, Hub, Protocol, Routing, take_leave};
use engine::{Answer, Event, QueriedState, ReplyTo};
use gsup::{GmmCause, Imsi, MessageType, Name, Reporter};
use model::{ErrorClass, Kind, LinkId, Message, MessageId, Outcome, Verdict};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;

/// What a connection tells the desk.
#[derive(Debug)]
pub(crate) enum Input {
    /// Messages can go through it from now on.
    Ready {
        /// The MSC's name; `None`: it is the HLR, and all subscribers are behind it.
        name: Option<Arc<str>>,
        remote: SocketAddr,
        out: Out,
    },
    /// A short message, or an answer to one.
    Message(gsup::Message),
    /// A subscriber is at this MSC.
    Attached(Imsi),
    /// The HLR was asked where the subscriber of this message is.
    Asked(MessageId),
    /// The HLR was asked where an absent subscriber is.
    Located(Imsi, Located),
    /// The HLR was asked where the sender of this MO is.
    Sender(gsup::Message, Located),
    /// It is closed.
    Gone,
}

/// Messages for a connection, in order.
pub(crate) type Out = UnboundedSender<Vec<gsup::Message>>;

/// Inputs of one connection, in order.
pub(crate) type Inputs = (ConnId, Vec<Input>);

#[derive(Debug)]
struct Conn {
    name: Option<Arc<str>>,
    out: Out,
}

/// What the network and those who look at it share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) connections: Mutex<BTreeMap<ConnId, ConnectionState>>,
}

pub(crate) struct Desk {
    pub(crate) options: Arc<GsmOptions>,
    pub(crate) core: Arc<dyn Core>,
    pub(crate) routing: Arc<dyn Routing>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) shared: Arc<Shared>,
    /// Our name towards the HLR.
    pub(crate) name: Name,
    /// Our service centre's number.
    centre: gsup::Number,
    conns: BTreeMap<ConnId, Conn>,
    link: Option<LinkId>,
    mts: MtBook,
    mos: MoBook,
    whereabouts: Whereabouts,
    /// Who is asked about, where nothing else tells of their return.
    absent: Option<Absent>,
    out: FxHashMap<ConnId, Vec<gsup::Message>>,
    events: Vec<Event>,
    leaving: bool,
}

/// Should the desk die by a fault of ours, the engine still hears that its link is gone.
impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            self.hub.remove(link);
            self.core.push(vec![Event::LinkDown { link }]);
        }
    }
}

/// The mark of the question that shows that nothing more is on its way; MOs have smaller ones.
const BARRIER: u64 = u64::MAX;

/// Stands for a message that the engine does not know: the status report that a handset has asked for by command. It is
/// tried once; the handset may ask again.
const ANSWER: MessageId = MessageId(0);

/// What an admin has to know of two connections with one name.
const DOUBLE_NAME: &str = "another MSC is connected under this name; give each MSC an `ipa-name` of its own. Each subscriber is \
                           served where its location update came from";

/// How much is done before its consequences leave.
const ROUND: usize = 256;

fn imsi_of_model(imsi: Imsi) -> model::Imsi {
    model::Imsi(model::AddressBytes::from_slice(imsi.as_str().as_bytes()))
}

fn numbered(learnt: Numbered) -> Event {
    let Numbered { msisdn, imsi, before } = learnt;
    Event::Numbered { msisdn, imsi: imsi_of_model(imsi), before: before.map(imsi_of_model) }
}

fn without_plus(number: &[u8]) -> &[u8] {
    number.strip_prefix(b"+").unwrap_or(number)
}

pub(crate) fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The way to the engine and back.
pub(crate) struct EnginePorts {
    pub(crate) core: Arc<dyn Core>,
    pub(crate) routing: Arc<dyn Routing>,
    pub(crate) hub: Arc<Hub>,
}

impl Desk {
    pub(crate) fn new(
        options: Arc<GsmOptions>,
        name: Name,
        ports: EnginePorts,
        shared: Arc<Shared>,
        whereabouts: Whereabouts,
        absent: Option<Absent>,
    ) -> Self {
        let EnginePorts { core, routing, hub } = ports;
        Self {
            whereabouts,
            absent,
            centre: gsup::Number::international(&options.service_centre.text()),
            mts: MtBook::new(options.guard),
            mos: MoBook::new(options.repetition),
            options,
            core,
            routing,
            hub,
            shared,
            name,
            conns: BTreeMap::new(),
            link: None,
            out: FxHashMap::default(),
            events: Vec::new(),
            leaving: false,
        }
    }

    /// Works until told to stop and every message on its way has come to its end, or the time given is up.
    pub(crate) async fn run(
        mut self,
        mut inputs: UnboundedReceiver<Inputs>,
        mut stop: watch::Receiver<Option<Instant>>,
    ) {
        let mut deliveries: Option<Deliveries> = None;
        let mut until: Option<Instant> = None;
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if until.is_some_and(|until| until <= Instant::now() || self.mts.len() == 0) {
                break;
            }
            let delivered = async {
                match &mut deliveries {
                    Some(deliveries) => deliveries.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                batch = delivered => self.deliver(batch.unwrap_or_default()),
                input = inputs.recv() => match input {
                    Some((conn, input)) => self.take(conn, input),
                    None => break,
                },
                _ = tick.tick() => self.tick(),
                changed = stop.changed(), if until.is_none() => {
                    let deadline = if changed.is_ok() { *stop.borrow() } else { None };
                    until = Some(deadline.unwrap_or_else(Instant::now));
                    self.leaving = true;
                    if let Some(link) = self.link {
                        self.events.push(Event::LinkPaused { link });
                    }
                }
            }
            for _ in 0..ROUND {
                if let Some(batch) = deliveries.as_mut().and_then(|deliveries| deliveries.try_recv().ok()) {
                    self.deliver(batch);
                } else if let Ok((conn, input)) = inputs.try_recv() {
                    self.take(conn, input);
                } else {
                    break;
                }
            }
            if self.conns.is_empty() {
                self.go_down(&mut deliveries);
            } else if self.link.is_none() && !self.leaving {
                self.go_up(&mut deliveries);
            }
            self.flush();
        }
        self.end_all(None);
        self.flush();
        if let Some((link, deliveries)) = self.link.take().zip(deliveries.take()) {
            take_leave(&*self.core, &self.hub, link, BARRIER, deliveries, Vec::new(), Duration::from_secs(5))
                .await;
        }
    }

    fn go_up(&mut self, deliveries: &mut Option<Deliveries>) {
        let (link, receiver) = self.hub.add_for(Protocol::Gsup);
        *deliveries = Some(receiver);
        self.link = Some(link);
        let window = self.options.window.max(1);
        self.events.push(Event::LinkUp { link, peer: self.options.peer, window });
        // What came before could not be answered: it is looked at now.
        for (conn, request) in self.mos.take_early() {
            self.incoming(conn, request);
        }
    }

    /// Nobody is there any more: what was written is in doubt, and the rest goes back to the first queue.
    fn go_down(&mut self, deliveries: &mut Option<Deliveries>) {
        let Some((link, receiver)) = self.link.zip(deliveries.take()) else { return };
        self.end_all(None);
        self.mos.clear();
        self.link = None;
        let events = std::mem::take(&mut self.events);
        let (core, hub) = (self.core.clone(), self.hub.clone());
        tokio::spawn(async move {
            take_leave(&*core, &hub, link, BARRIER, receiver, events, Duration::from_secs(5)).await;
        });
    }

    fn flush(&mut self) {
        self.mts.leave();
        for (conn, messages) in self.out.drain() {
            if let Some(conn) = self.conns.get(&conn) {
                // A closed channel is a connection that is just going: what was written to it is in doubt when it has.
                let _ = conn.out.send(messages);
            }
        }
        self.shared.counts.in_flight.store(self.mts.len() as u64, Relaxed);
        let mut events: Vec<Event> = self.shared.subscribers.take_news().into_iter().map(numbered).collect();
        events.append(&mut self.events);
        if !events.is_empty() {
            self.core.push(events);
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        if let Some(absent) = &mut self.absent {
            // Before they are given up: an MSC before 1.14 does not say that paging has failed.
            for imsi in self.mts.silent(now) {
                absent.watch(now, imsi, false);
            }
            absent.ask(now);
            self.shared.counts.asked_about.store(absent.len() as u64, Relaxed);
        }
        let overdue = self.mts.overdue(now);
        let counts = self.shared.counts.clone();
        let doubts = overdue.iter().filter(|next| matches!(next, Next::Ended(_, Outcome::Unanswered { .. })));
        counts.unanswered.fetch_add(doubts.count() as u64, Relaxed);
        self.follow(overdue);
        self.mos.tidy(now);
    }

    fn end_all(&mut self, conn: Option<ConnId>) {
        if conn.is_none() {
            for id in self.whereabouts.give_up() {
                self.outcome(id, Outcome::NotSent);
            }
        }
        let ended = self.mts.gone(conn);
        self.follow(ended);
    }

    // From the engine.

    fn deliver(&mut self, batch: Vec<Delivery>) {
        for delivery in batch {
            match delivery {
                Delivery::Send { message, leg, taken, more, .. } => {
                    self.send(Held { message, leg, taken, more }, true);
                }
                Delivery::Answer { token, answer } => self.answered(token, &answer),
                // There is no way to ask a handset.
                Delivery::Ask { id, .. } => self.events.push(Event::Told { id, receipt: None }),
            }
        }
    }

    fn outcome(&mut self, id: MessageId, outcome: Outcome) {
        if id == ANSWER {
            return;
        }
        if let Some(link) = self.link {
            self.events.push(Event::Outcome { link, id, outcome });
        }
    }

    fn refuse(&mut self, message: &Message, class: ErrorClass, code: u32) {
        self.shared.counts.refused(outcome::words(code));
        self.outcome(message.id, Outcome::Refused { class, code, taken: Vec::new() });
    }

    /// Where nobody knows the subscriber's place, the HLR may be asked.
    fn send(&mut self, held: Held, may_ask: bool) {
        let Held { message, leg, taken, more } = &held;
        let (leg, taken, more) = (*leg, *taken, *more);
        let Some(imsi) = self.imsi_of(message, leg) else {
            return self.refuse(message, ErrorClass::Absent, outcome::NOBODY_KNOWN);
        };
        if self.has_moved(message, leg, &imsi) {
            return self.refuse(message, ErrorClass::NumberMoved, outcome::NUMBER_MOVED);
        }
        let conn = match self.place_of(&imsi) {
            Place::At(conn) => conn,
            Place::Away(msc) => {
                self.whereabouts.missed(msc, imsi);
                return self.refuse(message, ErrorClass::Absent, outcome::NO_MSC);
            }
            Place::Unknown if may_ask => {
                let number = without_plus(&message.addresses_on(leg).1.value).to_vec();
                if let Err(held) = self.whereabouts.ask(held, &number) {
                    self.send(held, false);
                }
                return;
            }
            Place::Unknown => match self.only_conn() {
                Some(conn) => conn,
                None => return self.refuse(message, ErrorClass::Absent, outcome::NO_MSC),
            },
        };
        let message = &**message;
        let parts = match mapping::parts(message, leg, more, &self.options) {
            Ok(parts) => parts,
            Err(error) => {
                tracing::info!(id = %message.id, network = self.options.name, %error, "no short message can be made of it");
                return self.refuse(message, ErrorClass::Permanent, outcome::NOT_SAYABLE);
            }
        };
        if matches!(message.kind, Kind::Receipt(_)) {
            self.shared.counts.status_reports.fetch_add(1, Relaxed);
        }
        self.begin(Mt { id: message.id, imsi, conn, parts, done: usize::from(taken), more });
    }

    fn begin(&mut self, mt: Mt) {
        if self.mts.is_busy(&mt.imsi) {
            self.mts.wait(mt);
        } else {
            let next = self.mts.begin(Instant::now(), mt);
            self.follow(vec![next]);
        }
    }

    fn imsi_of(&self, message: &Message, leg: u8) -> Option<Imsi> {
        let resolved = match &message.routed.verdict {
            Verdict::Forward(legs) => legs.get(usize::from(leg)).and_then(|leg| leg.imsi.as_ref()),
            Verdict::Hold(_) | Verdict::Reject(_) => None,
        };
        if let Some(imsi) = resolved {
            return std::str::from_utf8(&imsi.0).ok()?.parse().ok();
        }
        let number = &message.addresses_on(leg).1.value;
        self.shared.subscribers.imsi_of(without_plus(number))
    }

    /// Whether the number has been seen to be another subscriber's since the resolver told whose it was: a SIM card was
    /// exchanged. Its exchange would say of the old one just what it says of one who is switched off.
    fn has_moved(&self, message: &Message, leg: u8, imsi: &Imsi) -> bool {
        let number = &message.addresses_on(leg).1.value;
        let learnt = self.shared.subscribers.imsi_of(without_plus(number));
        learnt.is_some_and(|learnt| learnt != *imsi)
    }

    /// Where a subscriber is reached, as far as is known.
    fn place_of(&self, imsi: &Imsi) -> Place {
        if let Some((conn, _)) = self.conns.iter().find(|(_, conn)| conn.name.is_none()) {
            // The HLR knows the way.
            return Place::At(*conn);
        }
        let Some((msc, seen)) = self.shared.subscribers.place_of(imsi) else { return Place::Unknown };
        if let Some(conn) = seen.filter(|conn| self.conns.contains_key(conn)) {
            return Place::At(conn);
        }
        // Of two that call themselves alike the older one keeps its subscribers until it is gone.
        let found = self.conns.iter().find(|(_, conn)| conn.name.as_ref() == Some(&msc));
        found.map_or(Place::Away(msc), |(conn, _)| Place::At(*conn))
    }

    /// The connection by which a subscriber is sought of whom nobody knows more.
    fn only_conn(&self) -> Option<ConnId> {
        let mut conns = self.conns.keys();
        conns.next().copied().filter(|_| conns.next().is_none())
    }

    fn follow(&mut self, next: Vec<Next>) {
        for next in next {
            match next {
                Next::Ended(id, outcome) => {
                    match &outcome {
                        Outcome::Accepted { .. } => {
                            self.shared.counts.delivered.fetch_add(1, Relaxed);
                        }
                        Outcome::Refused { code, .. } => self.shared.counts.refused(outcome::words(*code)),
                        Outcome::NotSent | Outcome::Unanswered { .. } => {}
                    }
                    self.outcome(id, outcome);
                }
                Next::Write(request) => self.write(&request),
            }
        }
    }

    fn write(&mut self, request: &Request) {
        let Some(conn) = self.conns.get(&request.conn) else { return };
        // Behind an HLR the name is the way back. An MSC gives it back as it is, so each request gets one of its own.
        let marked;
        let name = match &conn.name {
            None => Some(&self.name),
            Some(_) => {
                marked = format!("{}#{:x}", self.name, request.tag).parse().ok();
                marked.as_ref()
            }
        };
        match gsup::Message::mt_forward(request.imsi, &self.centre, &request.tpdu, request.more, name) {
            Ok(message) => {
                self.shared.counts.mt.fetch_add(1, Relaxed);
                self.reply(request.conn, message);
            }
            // Its answer will not come, and the guard finds it; with parts of at most 175 octets it does not happen.
            Err(error) => tracing::error!(network = self.options.name, %error, "an MT cannot be written"),
        }
    }

    // From the network.

    fn take(&mut self, conn: ConnId, inputs: Vec<Input>) {
        for input in inputs {
            match input {
                Input::Ready { name, remote, out } => {
                    tracing::info!(network = self.options.name, msc = name.as_deref(), %remote, "connected");
                    let state =
                        ConnectionState { name: name.as_deref().map(str::to_owned), remote, ready: true };
                    self.shared.connections.lock().insert(conn, state);
                    if name.is_some() && self.conns.values().any(|other| other.name == name) {
                        let msc = name.as_deref();
                        tracing::warn!(network = self.options.name, msc, %remote, "{DOUBLE_NAME}");
                        self.shared.counts.error(format!("MSC {remote}: {DOUBLE_NAME}"));
                    }
                    if name.is_none() {
                        self.shared.counts.observed.hlr(None);
                    }
                    let missed = name.as_deref().map_or(Vec::new(), |name| self.whereabouts.back(name));
                    self.conns.insert(conn, Conn { name, out });
                    for imsi in missed {
                        self.reachable(imsi);
                    }
                }
                Input::Gone => self.gone(conn),
                Input::Attached(imsi) => self.attached(conn, imsi),
                Input::Asked(id) => {
                    if let Some(held) = self.whereabouts.asked(id) {
                        self.send(held, false);
                    }
                }
                Input::Located(imsi, answer) => {
                    let came = |absent: &mut Absent| absent.located(Instant::now(), imsi, answer);
                    if self.absent.as_mut().is_some_and(came) {
                        self.reachable(imsi);
                    }
                }
                Input::Sender(request, answer) => self.sender_looked_up(conn, request, answer),
                Input::Message(message) => self.message(conn, message),
            }
        }
    }

    fn gone(&mut self, conn: ConnId) {
        let Some(known) = self.conns.remove(&conn) else { return };
        tracing::info!(network = self.options.name, msc = known.name.as_deref(), "disconnected");
        self.shared.connections.lock().remove(&conn);
        if let Some(name) = &known.name {
            self.shared.counts.observed.msc_gone(name);
        }
        self.out.remove(&conn);
        self.mos.gone(conn);
        self.end_all(Some(conn));
    }

    fn attached(&mut self, conn: ConnId, imsi: Imsi) {
        self.shared.counts.attached.fetch_add(1, Relaxed);
        self.seen_at(conn, &imsi, Sign::LocationUpdate);
        self.reachable(imsi);
    }

    /// A subscriber has been heard of by this connection.
    fn seen_at(&self, conn_id: ConnId, imsi: &Imsi, sign: Sign) {
        self.shared.subscribers.present(imsi, wall(), sign);
        if let Some(name) = self.conns.get(&conn_id).and_then(|conn| conn.name.as_ref()) {
            self.shared.subscribers.at(imsi, name, Some(conn_id));
        }
    }

    fn reachable(&mut self, imsi: Imsi) {
        if let Some(absent) = &mut self.absent {
            absent.forget(&imsi);
        }
        self.events.push(Event::Reachable { imsi: imsi_of_model(imsi) });
    }

    fn message(&mut self, conn: ConnId, message: gsup::Message) {
        match message.kind {
            MessageType::MT_FORWARD_SM_RESULT
            | MessageType::MT_FORWARD_SM_ERROR
            | MessageType::ROUTING_ERROR => {
                self.mt_answer(conn, &message);
            }
            MessageType::MO_FORWARD_SM_REQUEST => {
                self.shared.counts.mo.fetch_add(1, Relaxed);
                self.incoming(conn, message);
            }
            MessageType::READY_FOR_SM_REQUEST => {
                self.shared.counts.ready_for_sm.fetch_add(1, Relaxed);
                // It has been answered: by the HLR, or by us where we stand before it.
                self.alerted(conn, message.imsi);
            }
            other => tracing::debug!(network = self.options.name, kind = %other, "not awaited"),
        }
    }

    fn reply(&mut self, conn: ConnId, message: gsup::Message) {
        self.out.entry(conn).or_default().push(message);
    }

    fn mt_answer(&mut self, conn: ConnId, message: &gsup::Message) {
        let from_msc = self.conns.get(&conn).is_some_and(|conn| conn.name.is_some());
        let reporter = if from_msc { Reporter::Msc } else { Reporter::Hlr };
        let mark = message.destination_name().filter(|_| from_msc);
        let tag = mark.and_then(|name| u32::from_str_radix(name.rsplit_once('#')?.1, 16).ok());
        let refused = outcome::refusal(message, reporter);
        let name = self.conns.get(&conn).and_then(|conn| conn.name.as_deref());
        if let Some(msc) = name.or(message.source_name()) {
            let takes_sms = !outcome::is_without_sms(message, reporter);
            self.shared.counts.observed.msc_answered(msc, takes_sms);
        }
        if let Some((_, code)) = refused
            && let Some(warning) = outcome::warning(message, reporter)
        {
            tracing::warn!(network = self.options.name, code, "{warning}");
            self.shared.counts.error(warning);
        }
        if refused.is_none() {
            self.shared.subscribers.present(&message.imsi, wall(), Sign::Delivery);
        }
        if refused.is_some_and(|(class, _)| class == ErrorClass::UnknownSubscriber) {
            self.shared.subscribers.forget(&message.imsi);
        }
        if let Some(absent) = &mut self.absent {
            match refused {
                None => absent.forget(&message.imsi),
                Some((ErrorClass::Absent, _)) => {
                    let by_hlr = message.source_name().is_none();
                    let nowhere = by_hlr && message.cause() == Some(GmmCause::IMPLICITLY_DETACHED);
                    absent.watch(Instant::now(), message.imsi, nowhere);
                }
                Some(_) => {}
            }
        }
        let said = Said { conn, tag, refused };
        match self.mts.answer(Instant::now(), &message.imsi, said) {
            Taken::Awaited(next) => self.follow(next),
            Taken::Late(next) => {
                self.shared.counts.late.fetch_add(1, Relaxed);
                self.follow(next);
            }
            Taken::Twice => {
                self.shared.counts.twice.fetch_add(1, Relaxed);
                tracing::warn!(network = self.options.name, "an MSC has answered twice");
            }
            Taken::NotOurs => {
                tracing::debug!(network = self.options.name, "an answer to nothing that was asked");
            }
        }
    }

    /// A short message from a handset.
    fn submission(&mut self, conn: ConnId, request: gsup::Message) {
        let Some(link) = self.link else { return };
        let known = &self.shared.subscribers;
        match mo::read(&request, &self.options, known, wall()) {
            Ok(mut submission) => {
                submission.message.routed = self.routing.route(&submission.message);
                let now = Instant::now();
                match self.mos.ask(now, conn, request, &submission) {
                    Asked::New { token, key, repeated } => {
                        if repeated {
                            self.shared.counts.mo_repeated.fetch_add(1, Relaxed);
                        }
                        let reply = ReplyTo { link, token };
                        let messages = vec![submission.message];
                        self.events.push(Event::AcceptMany {
                            messages,
                            shared_id: false,
                            key: Some(key),
                            reply,
                        });
                    }
                    Asked::Refused(request, no) => self.refuse_mo(conn, &request, no),
                }
            }
            Err(mo::Unread::Refused(no)) => self.refuse_mo(conn, &request, no),
            Err(mo::Unread::Command(command)) => self.command(conn, request, &command),
        }
    }

    fn refuse_mo(&mut self, conn: ConnId, request: &gsup::Message, no: mo::No) {
        self.shared.counts.mo_refused(no.cause.0);
        tracing::info!(network = self.options.name, cause = %no.cause, why = no.why, "an MO was refused");
        let answer = mo::refused(request, no, &self.name, wall(), self.options.zone);
        self.reply(conn, answer);
    }

    /// A handset asks for, or takes back, what it sent before.
    fn command(&mut self, conn: ConnId, request: gsup::Message, command: &tpdu::Command) {
        let Some(link) = self.link else { return };
        match self.mos.command(conn, request, command, self.options.peer, |token| ReplyTo { link, token }) {
            Ok(event) => self.events.push(event),
            Err((request, no)) => self.refuse_mo(conn, &request, no),
        }
    }

    /// The answer to an enquiry: a status report about the message (3GPP TS 23.040 §9.2.2.3).
    fn tell_state(&mut self, conn: ConnId, imsi: Imsi, command: &tpdu::Command, state: &QueriedState) {
        let now = model::Timestamp(wall());
        let stamp = |at| mapping::stamp(at, self.options.zone);
        let report = || {
            tpdu::StatusReport {
                more_messages: false,
                loop_prevention: false,
                about_command: true,
                message_reference: command.message_reference,
                recipient: command.destination.clone(),
                service_centre_time: stamp(now)?,
                discharge_time: stamp(state.final_at.unwrap_or(now))?,
                status: mapping::status(state.state),
                parameters: tpdu::Parameters::default(),
            }
            .encode()
        };
        let Ok(tpdu) = report() else { return };
        self.shared.counts.status_reports.fetch_add(1, Relaxed);
        self.begin(Mt { id: ANSWER, imsi, conn, parts: vec![tpdu.into()], done: 0, more: false });
    }

    /// The engine's word on an MO.
    fn answered(&mut self, token: u64, answer: &Answer) {
        let Some(waiting) = self.mos.answered(token, answer) else { return };
        match waiting.said {
            Ok(()) => {
                let answer = waiting.request.accepted(Some(&self.name));
                self.reply(waiting.conn, answer);
                if let Some((command, state)) = waiting.state {
                    self.tell_state(waiting.conn, waiting.request.imsi, &command, &state);
                }
            }
            Err(no) => self.refuse_mo(waiting.conn, &waiting.request, no),
        }
    }
}

//! The core network link: connects the engine, which handles messages, with the connections, which handle GSUP.
//!
//! The link is one task. It is up for the engine while any connection is ready. It writes submitted messages to the MSC
//! that serves the subscriber, and passes MOs to the engine; an MO is answered after the engine's answer.

mod sender_check;

use crate::absence_monitor::AbsenceMonitor;
use crate::link_input::{ConnectionSender, LinkInput, LinkInputs};
use crate::location_lookups::{LocationLookups, SubscriberLocation, UnsentMessage};
use crate::mo::{self, MoAdmission, MoTransactions};
use crate::mt::{ConnId, Mt, MtAnswer, MtAnswerResult, MtRequest, MtStep, MtTransactions};
use crate::options::GsmOptions;
use crate::state::Shared;
use crate::subscribers::MsisdnChange;
use crate::{mapping, mt_refusal};
use api::{CoreConnectionView, PresenceSign};
use engine::{EngineAnswer, Event, QueriedState, ReplyTo};
use gsup::{GmmCause, GsupImsi, IpaName, MessageType, Reporter};
use model::{ErrorClass, LinkId, Message, MessageId, MessageKind, Outcome, Timestamp};
use ports::{EventSink, LinkCommand, LinkHandle, LinkRegistry, Protocol, Routing};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

#[derive(Debug)]
struct Conn {
    name: Option<Arc<str>>,
    out: ConnectionSender,
}

pub(crate) struct CoreNetworkLink {
    pub(crate) options: Arc<GsmOptions>,
    pub(crate) core: Arc<dyn EventSink>,
    pub(crate) routing: Arc<dyn Routing>,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) shared: Arc<Shared>,
    /// The IPA name of the SMSC.
    pub(crate) own_name: IpaName,
    /// The number of the service centre.
    service_centre: gsup::IsdnNumber,
    conns: BTreeMap<ConnId, Conn>,
    /// The registration, while any connection is ready.
    handle: Option<LinkHandle>,
    mt_transactions: MtTransactions,
    mo_transactions: MoTransactions,
    location_lookups: LocationLookups,
    /// Monitors absent subscribers; present only if no other event reports their return.
    absence_monitor: Option<AbsenceMonitor>,
    out: FxHashMap<ConnId, Vec<gsup::GsupMessage>>,
    events: Vec<Event>,
    stopping: bool,
}

/// Time for the engine to answer when the link closes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The id of a status report that a handset requested by command; the engine does not know it. It is tried once, since
/// the handset can repeat its command.
const STATUS_REPORT_ID: MessageId = MessageId(0);

/// The warning about two connections with the same name.
const DUPLICATE_NAME_WARNING: &str = "another MSC is connected under this name; give each MSC an `ipa-name` of its own. Each subscriber is \
                           served where its location update came from";

/// Maximum number of inputs that are handled before output is flushed.
const MAX_INPUTS_PER_ROUND: usize = 256;

fn to_model_imsi(imsi: GsupImsi) -> model::Imsi {
    model::Imsi(model::AddressBytes::from_slice(imsi.as_str().as_bytes()))
}

fn msisdn_change_event(change: MsisdnChange) -> Event {
    let MsisdnChange { msisdn, imsi, previous } = change;
    Event::SubscriberLearned { msisdn, imsi: to_model_imsi(imsi), before: previous.map(to_model_imsi) }
}

fn without_plus(number: &[u8]) -> &[u8] {
    number.strip_prefix(b"+").unwrap_or(number)
}

/// Handles to the engine.
pub(crate) struct EngineHandles {
    pub(crate) core: Arc<dyn EventSink>,
    pub(crate) routing: Arc<dyn Routing>,
    pub(crate) registry: Arc<LinkRegistry>,
}

impl CoreNetworkLink {
    pub(crate) fn new(
        options: Arc<GsmOptions>,
        own_name: IpaName,
        ports: EngineHandles,
        shared: Arc<Shared>,
        location_lookups: LocationLookups,
        absence_monitor: Option<AbsenceMonitor>,
    ) -> Self {
        let EngineHandles { core, routing, registry } = ports;
        Self {
            location_lookups,
            absence_monitor,
            service_centre: gsup::IsdnNumber::international(&options.service_centre.text()),
            mt_transactions: MtTransactions::new(options.response_timeout),
            mo_transactions: MoTransactions::new(options.repetition_window),
            options,
            core,
            routing,
            registry,
            shared,
            own_name,
            conns: BTreeMap::new(),
            handle: None,
            out: FxHashMap::default(),
            events: Vec::new(),
            stopping: false,
        }
    }

    /// Runs until it is stopped and every message in flight is finished, or the deadline has passed.
    pub(crate) async fn run(
        mut self,
        mut inputs: UnboundedReceiver<LinkInputs>,
        mut stop: watch::Receiver<Option<Instant>>,
    ) {
        let mut deadline: Option<Instant> = None;
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if deadline.is_some_and(|deadline| deadline <= Instant::now() || self.mt_transactions.len() == 0)
            {
                break;
            }
            let next_commands = async {
                match &mut self.handle {
                    Some(handle) => handle.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                batch = next_commands => self.handle_link_commands(batch),
                input = inputs.recv() => match input {
                    Some((conn, input)) => self.handle_inputs(conn, input),
                    None => break,
                },
                _ = tick.tick() => self.tick(),
                changed = stop.changed(), if deadline.is_none() => {
                    let requested = if changed.is_ok() { *stop.borrow() } else { None };
                    deadline = Some(requested.unwrap_or_else(Instant::now));
                    self.stopping = true;
                    if let Some(handle) = &mut self.handle {
                        handle.pause(&mut self.events);
                    }
                }
            }
            for _ in 0..MAX_INPUTS_PER_ROUND {
                if let Some(batch) = self.handle.as_mut().and_then(LinkHandle::try_recv) {
                    self.handle_link_commands(batch);
                } else if let Ok((conn, input)) = inputs.try_recv() {
                    self.handle_inputs(conn, input);
                } else {
                    break;
                }
            }
            if self.conns.is_empty() {
                self.link_down();
            } else if self.handle.is_none() && !self.stopping {
                self.link_up();
            }
            self.flush();
        }
        self.abort_all(None);
        self.flush();
        if let Some(handle) = self.handle.take() {
            handle.close(Vec::new(), CLOSE_TIMEOUT).await;
        }
    }

    fn link(&self) -> Option<LinkId> {
        self.handle.as_ref().map(LinkHandle::link)
    }

    fn link_up(&mut self) {
        let mut handle = LinkHandle::register(self.core.clone(), self.registry.clone(), Protocol::Gsup);
        let window = usize::try_from(self.options.window).unwrap_or(usize::MAX);
        handle.announce(self.options.peer, window, &mut self.events);
        self.handle = Some(handle);
        // Requests that arrived before the link was up could not be answered; handle them now.
        for (conn, request) in self.mo_transactions.take_queued() {
            self.handle_mo(conn, request);
        }
    }

    /// Closes the link after the last connection was lost: written messages become uncertain, all others return to the
    /// engine's queue.
    fn link_down(&mut self) {
        if self.handle.is_none() {
            return;
        }
        self.abort_all(None);
        self.mo_transactions.drop_all();
        if let Some(handle) = self.handle.take() {
            let events = std::mem::take(&mut self.events);
            tokio::spawn(handle.close(events, CLOSE_TIMEOUT));
        }
    }

    fn flush(&mut self) {
        self.mt_transactions.mark_sent();
        for (conn, messages) in self.out.drain() {
            if let Some(conn) = self.conns.get(&conn) {
                // A closed channel belongs to a closing connection. Its messages become uncertain when the connection
                // is removed.
                let _ = conn.out.send(messages);
            }
        }
        self.shared.counts.in_flight.store(self.mt_transactions.len() as u64, Relaxed);
        let mut events: Vec<Event> =
            self.shared.subscribers.take_msisdn_changes().into_iter().map(msisdn_change_event).collect();
        events.append(&mut self.events);
        if !events.is_empty() {
            self.core.push(events);
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        if let Some(absence_monitor) = &mut self.absence_monitor {
            // Query before the messages expire: MSCs older than 1.14 do not report failed paging.
            for imsi in self.mt_transactions.timed_out_subscribers(now) {
                absence_monitor.watch(now, imsi, false);
            }
            absence_monitor.query_due(now);
        }
        let expired = self.mt_transactions.expire_unanswered(now);
        let counts = self.shared.counts.clone();
        let unanswered =
            expired.iter().filter(|next| matches!(next, MtStep::Finished(_, Outcome::Unanswered { .. })));
        counts.unanswered.fetch_add(unanswered.count() as u64, Relaxed);
        self.perform(expired);
        self.mo_transactions.remove_expired(now);
    }

    fn abort_all(&mut self, conn: Option<ConnId>) {
        if conn.is_none() {
            for id in self.location_lookups.take_pending() {
                self.report_outcome(id, Outcome::NotSent);
            }
        }
        let finished = self.mt_transactions.connection_closed(conn);
        self.perform(finished);
    }

    // Inputs from the engine.

    fn handle_link_commands(&mut self, batch: Vec<LinkCommand>) {
        for command in batch {
            match command {
                LinkCommand::Send { message, leg, taken, more, .. } => {
                    self.send_mt(UnsentMessage { message, leg, taken, more }, true);
                }
                LinkCommand::Answer { token, answer } => self.handle_engine_answer(token, &answer),
                // GSUP has no query for a message.
                LinkCommand::QueryPeer { id, .. } => self.events.push(Event::QueryResult { id, dlr: None }),
                LinkCommand::SubscriberReachable { .. } | LinkCommand::Flushed => {}
            }
        }
    }

    fn report_outcome(&mut self, id: MessageId, outcome: Outcome) {
        if id == STATUS_REPORT_ID {
            return;
        }
        if let Some(link) = self.link() {
            self.events.push(Event::Outcome { link, id, outcome });
        }
    }

    fn refuse_mt(&mut self, message: &Message, class: ErrorClass, code: u32) {
        self.shared.counts.refused(mt_refusal::describe(code));
        self.report_outcome(message.id, Outcome::Refused { class, code, taken: Vec::new() });
    }

    /// Sends a message to its recipient. If `may_query` is set and the location is unknown, the HLR is queried first.
    fn send_mt(&mut self, unsent: UnsentMessage, may_query: bool) {
        let UnsentMessage { message, leg, taken, more } = &unsent;
        let (leg, taken, more) = (*leg, *taken, *more);
        let Some(imsi) = self.imsi_of(message, leg) else {
            return self.refuse_mt(message, ErrorClass::Absent, mt_refusal::UNKNOWN_NUMBER);
        };
        if self.number_has_moved(message, leg, &imsi) {
            return self.refuse_mt(message, ErrorClass::NumberMoved, mt_refusal::NUMBER_MOVED);
        }
        let conn = match self.location_of(&imsi) {
            SubscriberLocation::Connection(conn) => conn,
            SubscriberLocation::DisconnectedMsc(msc) => {
                self.location_lookups.note_missed(msc, imsi);
                return self.refuse_mt(message, ErrorClass::Absent, mt_refusal::NO_MSC);
            }
            SubscriberLocation::Unknown if may_query => {
                let number = without_plus(&message.addresses_on(leg).1.value).to_vec();
                if let Err(unsent) = self.location_lookups.find_recipient(unsent, &number) {
                    self.send_mt(unsent, false);
                }
                return;
            }
            SubscriberLocation::Unknown => match self.single_connection() {
                Some(conn) => conn,
                None => return self.refuse_mt(message, ErrorClass::Absent, mt_refusal::NO_MSC),
            },
        };
        let message = &**message;
        let segments = match mapping::segments(message, leg, more, &self.options) {
            Ok(segments) => segments,
            Err(error) => {
                tracing::info!(id = %message.id, network = self.options.name, %error, "message cannot be encoded as short message");
                return self.refuse_mt(message, ErrorClass::Permanent, mt_refusal::NOT_ENCODABLE);
            }
        };
        if matches!(message.kind, MessageKind::Dlr(_)) {
            self.shared.counts.status_reports.fetch_add(1, Relaxed);
        }
        self.start_mt(Mt {
            id: message.id,
            imsi,
            conn,
            segments,
            segments_delivered: usize::from(taken),
            more,
        });
    }

    fn start_mt(&mut self, mt: Mt) {
        if self.mt_transactions.is_busy(&mt.imsi) {
            self.mt_transactions.enqueue_behind(mt);
        } else {
            let next = self.mt_transactions.start(Instant::now(), mt);
            self.perform(vec![next]);
        }
    }

    fn imsi_of(&self, message: &Message, leg: u8) -> Option<GsupImsi> {
        let resolved = message.routed.verdict.leg(leg);
        if let Some(imsi) = resolved.and_then(|leg| leg.imsi.as_ref()) {
            return std::str::from_utf8(&imsi.0).ok()?.parse().ok();
        }
        let number = &message.addresses_on(leg).1.value;
        self.shared.subscribers.imsi_of(without_plus(number))
    }

    /// Whether signalling has shown that the number belongs to another IMSI than the resolver returned, for example
    /// after a SIM swap. The MSC's answer for the old IMSI is the same as for an absent subscriber.
    fn number_has_moved(&self, message: &Message, leg: u8, imsi: &GsupImsi) -> bool {
        let number = &message.addresses_on(leg).1.value;
        let current = self.shared.subscribers.imsi_of(without_plus(number));
        current.is_some_and(|current| current != *imsi)
    }

    /// The last known location of a subscriber.
    fn location_of(&self, imsi: &GsupImsi) -> SubscriberLocation {
        if let Some((conn, _)) = self.conns.iter().find(|(_, conn)| conn.name.is_none()) {
            // The HLR routes the message itself.
            return SubscriberLocation::Connection(*conn);
        }
        let Some((msc, seen)) = self.shared.subscribers.location_of(imsi) else {
            return SubscriberLocation::Unknown;
        };
        if let Some(conn) = seen.filter(|conn| self.conns.contains_key(conn)) {
            return SubscriberLocation::Connection(conn);
        }
        // If two MSCs have the same name, the older connection keeps its subscribers until it is closed.
        let found = self.conns.iter().find(|(_, conn)| conn.name.as_ref() == Some(&msc));
        found.map_or(SubscriberLocation::DisconnectedMsc(msc), |(conn, _)| {
            SubscriberLocation::Connection(*conn)
        })
    }

    /// The only connection, if there is exactly one; used for subscribers with unknown location.
    fn single_connection(&self) -> Option<ConnId> {
        let mut conns = self.conns.keys();
        conns.next().copied().filter(|_| conns.next().is_none())
    }

    fn perform(&mut self, next: Vec<MtStep>) {
        for next in next {
            match next {
                MtStep::Finished(id, outcome) => {
                    match &outcome {
                        Outcome::Accepted { .. } => {
                            self.shared.counts.delivered.fetch_add(1, Relaxed);
                        }
                        Outcome::Refused { code, .. } => {
                            self.shared.counts.refused(mt_refusal::describe(*code));
                        }
                        Outcome::NotSent | Outcome::Unanswered { .. } => {}
                    }
                    self.report_outcome(id, outcome);
                }
                MtStep::Write(request) => self.write_mt(&request),
            }
        }
    }

    fn write_mt(&mut self, request: &MtRequest) {
        let Some(conn) = self.conns.get(&request.conn) else { return };
        // Behind an HLR, the name is the return route. An MSC returns it unchanged, so each request gets a unique one.
        let tagged;
        let name = match &conn.name {
            None => Some(&self.own_name),
            Some(_) => {
                tagged = format!("{}#{:x}", self.own_name, request.tag).parse().ok();
                tagged.as_ref()
            }
        };
        match gsup::GsupMessage::mt_forward(
            request.imsi,
            &self.service_centre,
            &request.tpdu,
            request.more,
            name,
        ) {
            Ok(message) => {
                self.shared.counts.mt.fetch_add(1, Relaxed);
                self.queue_for(request.conn, message);
            }
            // The request gets no answer and times out. It cannot happen with segments of at most 175 octets.
            Err(error) => {
                tracing::error!(network = self.options.name, %error, "mt request cannot be encoded");
            }
        }
    }

    // Inputs from the network.

    fn handle_inputs(&mut self, conn: ConnId, inputs: Vec<LinkInput>) {
        for input in inputs {
            match input {
                LinkInput::Ready { name, remote, out } => {
                    tracing::info!(network = self.options.name, msc = name.as_deref(), %remote, "msc connected");
                    let state = CoreConnectionView {
                        name: name.as_deref().map(str::to_owned),
                        remote: remote.to_string(),
                        ready: true,
                    };
                    self.shared.connections.lock().insert(conn, state);
                    if name.is_some() && self.conns.values().any(|other| other.name == name) {
                        let msc = name.as_deref();
                        tracing::warn!(network = self.options.name, msc, %remote, "{DUPLICATE_NAME_WARNING}");
                        self.shared.counts.error(format!("MSC {remote}: {DUPLICATE_NAME_WARNING}"));
                    }
                    if name.is_none() {
                        self.shared.counts.observed_faults.set_hlr_error(None);
                    }
                    let missed =
                        name.as_deref().map_or(Vec::new(), |name| self.location_lookups.take_missed(name));
                    self.conns.insert(conn, Conn { name, out });
                    for imsi in missed {
                        self.subscriber_reachable(imsi);
                    }
                }
                LinkInput::Closed => self.connection_closed(conn),
                LinkInput::LocationUpdate(imsi) => self.location_updated(conn, imsi),
                LinkInput::LocationLookedUp(id) => {
                    if let Some(unsent) = self.location_lookups.take(id) {
                        self.send_mt(unsent, false);
                    }
                }
                LinkInput::AbsentLookedUp(imsi, answer) => {
                    let arrived = |absence_monitor: &mut AbsenceMonitor| {
                        absence_monitor.handle_location(Instant::now(), imsi, answer)
                    };
                    if self.absence_monitor.as_mut().is_some_and(arrived) {
                        self.subscriber_reachable(imsi);
                    }
                }
                LinkInput::SenderLookedUp(request, answer) => {
                    self.handle_sender_lookup(conn, request, answer);
                }
                LinkInput::Message(message) => self.handle_message(conn, message),
            }
        }
    }

    fn connection_closed(&mut self, conn: ConnId) {
        let Some(known) = self.conns.remove(&conn) else { return };
        tracing::info!(network = self.options.name, msc = known.name.as_deref(), "msc disconnected");
        self.shared.connections.lock().remove(&conn);
        if let Some(name) = &known.name {
            self.shared.counts.observed_faults.msc_gone(name);
        }
        self.out.remove(&conn);
        self.mo_transactions.drop_connection(conn);
        self.abort_all(Some(conn));
    }

    fn location_updated(&mut self, conn: ConnId, imsi: GsupImsi) {
        self.shared.counts.attached.fetch_add(1, Relaxed);
        self.note_presence(conn, &imsi, PresenceSign::LocationUpdate);
        self.subscriber_reachable(imsi);
    }

    /// Records that a subscriber was seen on this connection.
    fn note_presence(&self, conn_id: ConnId, imsi: &GsupImsi, sign: PresenceSign) {
        self.shared.subscribers.set_presence(imsi, Timestamp::now().0, sign);
        if let Some(name) = self.conns.get(&conn_id).and_then(|conn| conn.name.as_ref()) {
            self.shared.subscribers.set_msc(imsi, name, Some(conn_id));
        }
    }

    fn subscriber_reachable(&mut self, imsi: GsupImsi) {
        if let Some(absence_monitor) = &mut self.absence_monitor {
            absence_monitor.remove(&imsi);
        }
        let (network, imsi) = (self.options.peer, to_model_imsi(imsi));
        self.events.push(Event::SubscriberReachable { network, imsi });
    }

    fn handle_message(&mut self, conn: ConnId, message: gsup::GsupMessage) {
        match message.kind {
            MessageType::MT_FORWARD_SM_RESULT
            | MessageType::MT_FORWARD_SM_ERROR
            | MessageType::ROUTING_ERROR => {
                self.handle_mt_answer(conn, &message);
            }
            MessageType::MO_FORWARD_SM_REQUEST => {
                self.shared.counts.mo.fetch_add(1, Relaxed);
                self.handle_mo(conn, message);
            }
            MessageType::READY_FOR_SM_REQUEST => {
                self.shared.counts.ready_for_sm.fetch_add(1, Relaxed);
                // The request was already answered, by the HLR or by the proxy.
                self.handle_ready_for_sm(conn, message.imsi);
            }
            other => tracing::debug!(network = self.options.name, kind = %other, "unexpected gsup message"),
        }
    }

    fn queue_for(&mut self, conn: ConnId, message: gsup::GsupMessage) {
        self.out.entry(conn).or_default().push(message);
    }

    fn handle_mt_answer(&mut self, conn: ConnId, message: &gsup::GsupMessage) {
        let from_msc = self.conns.get(&conn).is_some_and(|conn| conn.name.is_some());
        let reporter = if from_msc { Reporter::Msc } else { Reporter::Hlr };
        let destination = message.destination_name().filter(|_| from_msc);
        let tag = destination.and_then(|name| u32::from_str_radix(name.rsplit_once('#')?.1, 16).ok());
        let refusal = mt_refusal::refusal(message, reporter);
        let name = self.conns.get(&conn).and_then(|conn| conn.name.as_deref());
        if let Some(msc) = name.or(message.source_name()) {
            let takes_sms = !mt_refusal::is_without_sms(message, reporter);
            self.shared.counts.observed_faults.msc_answered(msc, takes_sms);
        }
        if let Some((_, code)) = refusal
            && let Some(warning) = mt_refusal::warning(message, reporter)
        {
            tracing::warn!(network = self.options.name, code, "{warning}");
            self.shared.counts.error(warning);
        }
        if refusal.is_none() {
            self.shared.subscribers.set_presence(&message.imsi, Timestamp::now().0, PresenceSign::Delivery);
        }
        if refusal.is_some_and(|(class, _)| class == ErrorClass::UnknownSubscriber) {
            self.shared.subscribers.remove(&message.imsi);
        }
        if let Some(absence_monitor) = &mut self.absence_monitor {
            match refusal {
                None => absence_monitor.remove(&message.imsi),
                Some((ErrorClass::Absent, _)) => {
                    let by_hlr = message.source_name().is_none();
                    let detached = by_hlr && message.cause() == Some(GmmCause::IMPLICITLY_DETACHED);
                    absence_monitor.watch(Instant::now(), message.imsi, detached);
                }
                Some(_) => {}
            }
        }
        let answer = MtAnswer { conn, tag, refusal };
        match self.mt_transactions.handle_answer(Instant::now(), &message.imsi, answer) {
            MtAnswerResult::Expected(next) => self.perform(next),
            MtAnswerResult::Late(next) => {
                self.shared.counts.late_answers.fetch_add(1, Relaxed);
                self.perform(next);
            }
            MtAnswerResult::Duplicate => {
                self.shared.counts.duplicate_answers.fetch_add(1, Relaxed);
                tracing::warn!(network = self.options.name, "duplicate mt answer");
            }
            MtAnswerResult::Unrelated => {
                tracing::debug!(network = self.options.name, "mt answer without request");
            }
        }
    }

    /// Submits a short message from a handset to the engine.
    fn submit_mo(&mut self, conn: ConnId, request: gsup::GsupMessage) {
        let Some(link) = self.link() else { return };
        let subscribers = &self.shared.subscribers;
        match mo::read_mo(&request, &self.options, subscribers, Timestamp::now().0) {
            Ok(mut submission) => {
                self.routing.route(&mut submission.message);
                let now = Instant::now();
                match self.mo_transactions.begin(now, conn, request, &submission) {
                    MoAdmission::Submit { token, key, repeated } => {
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
                    MoAdmission::Refused(request, refusal) => self.refuse_mo(conn, &request, refusal),
                }
            }
            Err(mo::MoReadError::Refused(refusal)) => self.refuse_mo(conn, &request, refusal),
            Err(mo::MoReadError::Command(command)) => self.handle_command(conn, request, &command),
        }
    }

    fn refuse_mo(&mut self, conn: ConnId, request: &gsup::GsupMessage, refusal: mo::MoRefusal) {
        self.shared.counts.mo_refused(refusal.cause.0);
        tracing::info!(network = self.options.name, cause = %refusal.cause, reason = refusal.reason, "mo refused");
        let answer =
            mo::refusal_message(request, refusal, &self.own_name, Timestamp::now().0, self.options.zone);
        self.queue_for(conn, answer);
    }

    /// Handles a query or a cancellation of an earlier message.
    fn handle_command(&mut self, conn: ConnId, request: gsup::GsupMessage, command: &tpdu::Command) {
        let Some(link) = self.link() else { return };
        match self
            .mo_transactions
            .begin_command(conn, request, command, self.options.peer, |token| ReplyTo { link, token })
        {
            Ok(event) => self.events.push(event),
            Err((request, refusal)) => self.refuse_mo(conn, &request, refusal),
        }
    }

    /// Answers an enquiry with a status report about the message (3GPP TS 23.040 §9.2.2.3).
    fn send_status_report(
        &mut self,
        conn: ConnId,
        imsi: GsupImsi,
        command: &tpdu::Command,
        state: &QueriedState,
    ) {
        let now = Timestamp::now();
        let timestamp = |at| mapping::timestamp(at, self.options.zone);
        let report = || {
            tpdu::StatusReport {
                more_messages: false,
                loop_prevention: false,
                about_command: true,
                message_reference: command.message_reference,
                recipient: command.destination.clone(),
                service_centre_time: timestamp(now)?,
                discharge_time: timestamp(state.final_at.unwrap_or(now))?,
                status: mapping::dlr_status(state.state),
                parameters: tpdu::Parameters::default(),
            }
            .encode()
        };
        let Ok(tpdu) = report() else { return };
        self.shared.counts.status_reports.fetch_add(1, Relaxed);
        self.start_mt(Mt {
            id: STATUS_REPORT_ID,
            imsi,
            conn,
            segments: vec![tpdu.into()],
            segments_delivered: 0,
            more: false,
        });
    }

    /// Handles the engine's answer to an MO.
    fn handle_engine_answer(&mut self, token: u64, answer: &EngineAnswer) {
        let Some(reply) = self.mo_transactions.complete(token, answer) else { return };
        match reply.result {
            Ok(()) => {
                let answer = reply.request.accepted(Some(&self.own_name));
                self.queue_for(reply.conn, answer);
                if let Some((command, state)) = reply.state {
                    self.send_status_report(reply.conn, reply.request.imsi, &command, &state);
                }
            }
            Err(refusal) => self.refuse_mo(reply.conn, &reply.request, refusal),
        }
    }
}

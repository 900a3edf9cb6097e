use crate::pool_disk::PoolDisk;
use bytes::Bytes;
use engine::{
    Answer, Command, Engine, Event, Handed, Output, PeerSettings, PeerStatus, Progress, Recovered,
    Remembered, ReplyTo, Settings, Uncertainty,
};
use model::{
    Address, AddressBytes, Attempt, DecidedBy, Final, Imsi, Kind, Leg, LinkId, Message, MessageId, Moment,
    Now, Order, OrderId, Outcome, PeerId, Priority, ReceiptRequest, Refusal, Resolution, Routed, StepKind,
    Subscriber, Text, Ticket, Timestamp, Verdict,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ACCOUNT: PeerId = PeerId(0);
pub(crate) const FIRST: PeerId = PeerId(1);
pub(crate) const SECOND: PeerId = PeerId(2);
/// One message at a time for a subscriber.
pub(crate) const SERIAL: PeerId = PeerId(3);
/// Of every message.
pub(crate) const VALIDITY: Duration = Duration::from_secs(7_200);
pub(crate) const REPLY: ReplyTo = ReplyTo { link: LinkId(9), token: 1 };

/// An engine, a disk, and what has left.
pub(crate) struct House {
    pub(crate) engine: Engine,
    settings: Settings,
    pub(crate) now: Now,
    messages: BTreeMap<MessageId, Arc<Message>>,
    progress: HashMap<MessageId, Progress>,
    handed: BTreeMap<u64, Vec<Handed>>,
    pub(crate) finished: BTreeMap<MessageId, Final>,
    next_id: MessageId,
    pub(crate) pools: PoolDisk,
    /// Pairs of which the one has told the other to stop.
    stopped: Vec<engine::Consent>,
    /// Held messages that wait for another verdict.
    pub(crate) routes: Vec<Arc<Message>>,
    /// Numbers that the resolver has been asked about and has not answered.
    pub(crate) questions: Vec<AddressBytes>,
    /// Attempts that the policy has been asked about.
    pub(crate) decisions: Vec<(MessageId, Attempt)>,
    /// What was given to links, in order.
    pub(crate) sent: Vec<(PeerId, Arc<Message>, u8)>,
    /// Of these, whether more is known to wait for the subscriber, and the hand-over's name.
    pub(crate) left: Vec<(MessageId, bool, Ticket)>,
    pub(crate) answers: Vec<Answer>,
    /// Questions about messages that are not in memory.
    pub(crate) look_ups: Vec<Command>,
    /// How many messages were asked for at a time.
    pub(crate) loads: Vec<usize>,
    pub(crate) orders: BTreeMap<OrderId, Order>,
    /// The most messages that ended, and that were written anew, in one batch.
    pub(crate) most: (usize, usize),
    /// The disk is slow: what is read back stays here.
    pub(crate) held: Option<Vec<Event>>,
}

impl House {
    pub(crate) fn new(settings: Settings) -> Self {
        let now = Now { wall: Timestamp(1_795_000_000_000), mono: Moment(1_000_000) };
        let mut house = Self {
            engine: Engine::new(settings.clone()),
            settings,
            now,
            messages: BTreeMap::new(),
            progress: HashMap::new(),
            handed: BTreeMap::new(),
            finished: BTreeMap::new(),
            next_id: MessageId::FIRST,
            pools: PoolDisk::default(),
            stopped: Vec::new(),
            routes: Vec::new(),
            questions: Vec::new(),
            decisions: Vec::new(),
            sent: Vec::new(),
            left: Vec::new(),
            answers: Vec::new(),
            look_ups: Vec::new(),
            loads: Vec::new(),
            orders: BTreeMap::new(),
            most: (0, 0),
            held: None,
        };
        house.boot();
        house
    }

    fn boot(&mut self) {
        self.engine = Engine::new(self.settings.clone());
        let mut account = PeerSettings::new(ACCOUNT);
        (account.addressee, account.receipts, account.opt_out) = (true, false, true);
        let mut out = Output::default();
        self.engine.apply(self.now, Event::Peer(account), &mut out);
        for peer in [FIRST, SECOND, SERIAL] {
            let mut settings = PeerSettings::new(peer);
            settings.receipts = false;
            settings.uncertainty = Uncertainty::SendAgain;
            settings.retry = vec![Duration::from_secs(10)];
            settings.serial = peer == SERIAL;
            self.engine.apply(self.now, Event::Peer(settings), &mut out);
        }
        let newest: HashMap<MessageId, (Handed, u64)> = self
            .handed
            .iter()
            .flat_map(|(seq, row)| row.iter().map(|handed| (handed.id, (*handed, *seq))))
            .collect();
        let stopped = self.stopped.iter().cloned().map(Remembered::Stopped);
        let orders = self.orders.values().cloned().map(Remembered::Order);
        for found in stopped.chain(orders).chain(self.pools.remembered()) {
            self.engine.recover_remembered(self.now, found);
        }
        for (id, message) in &self.messages {
            let progress = self.progress.get(id).cloned();
            let message = Message::clone(message);
            let handed = newest.get(id).map(|(handed, _)| *handed);
            let handed_seq = newest.get(id).map_or(0, |(_, seq)| *seq);
            let found = Recovered { message, progress, handed, handed_seq };
            self.engine.recover(self.now, found, &mut out);
        }
        let rows: Vec<u64> = self.handed.keys().copied().collect();
        let next = rows.last().map_or(1, |last| last + 1);
        self.engine.recovered(self.next_id, next, &rows, &mut out);
        self.carry_on(out);
    }

    /// Loses everything but the disk.
    pub(crate) fn crash(&mut self) {
        self.sent.clear();
        self.left.clear();
        self.questions.clear();
        self.decisions.clear();
        self.routes.clear();
        self.boot();
    }

    /// As no disk of ours can: messages are gone, and what else was written with them is there.
    pub(crate) fn lose_messages(&mut self) {
        self.messages.clear();
        self.progress.clear();
        self.handed.clear();
    }

    pub(crate) fn run(&mut self, events: impl IntoIterator<Item = Event>) {
        let mut out = Output::default();
        for event in events {
            self.engine.apply(self.now, event, &mut out);
        }
        self.carry_on(out);
    }

    pub(crate) fn carry_on(&mut self, mut out: Output) {
        loop {
            self.engine.settle(self.now, &mut out);
            self.engine.seal(&mut out);
            let mut next = Output::default();
            for event in self.commit(std::mem::take(&mut out)) {
                self.engine.apply(self.now, event, &mut next);
            }
            if next.is_empty() && self.engine.deadline().is_none_or(|at| at > self.now.mono) {
                // What was read back may have moved something.
                self.engine.settle(self.now, &mut next);
                if next.is_empty() {
                    break;
                }
            }
            out = next;
        }
    }

    fn commit(&mut self, out: Output) -> Vec<Event> {
        let Output { batch, commands } = out;
        self.pools.commit(batch.pools);
        self.most.0 = self.most.0.max(batch.finished.len());
        self.most.1 = self.most.1.max(batch.replaced.len());
        self.orders.extend(batch.orders.into_iter().map(|order| (order.id, order)));
        for id in batch.orders_done {
            self.orders.remove(&id);
        }
        for (consent, stop) in batch.consents {
            self.stopped.retain(|other| *other != consent);
            self.stopped.extend(stop.then_some(consent));
        }
        if !batch.accepted.is_empty() {
            self.next_id = batch.next_id;
        }
        for message in batch.accepted.into_iter().chain(batch.replaced) {
            self.messages.insert(message.id, message);
        }
        self.progress.extend(batch.progress);
        if !batch.handed.is_empty() {
            self.handed.insert(batch.handed_seq, batch.handed);
        }
        for seq in batch.handed_done {
            self.handed.remove(&seq);
        }
        for id in batch.dropped {
            assert!(self.messages.remove(&id).is_some(), "{id:?} dropped without being there");
            self.progress.remove(&id);
        }
        for (id, ended) in batch.finished {
            assert!(self.messages.remove(&id).is_some(), "{id:?} ended without being there");
            self.progress.remove(&id);
            assert!(self.finished.insert(id, ended).is_none(), "{id:?} ended twice");
        }
        let mut events = Vec::new();
        for command in commands {
            match command {
                Command::Send { link, message, leg, more, ticket, .. } => {
                    self.left.push((message.id, more, ticket));
                    self.sent.push((PeerId(u32::try_from(link.0).unwrap()), message, leg));
                }
                Command::Resolve { msisdn } => {
                    assert!(!self.questions.contains(&msisdn), "{msisdn:?} is asked about twice at a time");
                    self.questions.push(msisdn);
                }
                Command::Decide { message, attempt } => self.decisions.push((message.id, attempt)),
                Command::Load { ids } => {
                    self.loads.push(ids.len());
                    for id in ids {
                        events.push(Event::Loaded { id, message: self.messages.get(&id).cloned() });
                    }
                }
                Command::Answer { answer, .. } => self.answers.push(answer),
                Command::Reroute { message } => self.routes.push(message),
                look_up @ Command::LookUp { .. } => self.look_ups.push(look_up),
                Command::Refused(_) => {}
                other => panic!("{other:?} was not to be expected"),
            }
        }
        match &mut self.held {
            Some(held) => {
                held.append(&mut events);
                Vec::new()
            }
            None => events,
        }
    }

    /// Links have the number of their peer.
    pub(crate) fn link_up(&mut self, peer: PeerId, window: u32) {
        self.run([Event::LinkUp { link: LinkId(peer.0.into()), peer, window }]);
    }

    /// Lets time go by, from one thing that is due to the next.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now.mono + time;
        while self.now.mono < end {
            let next = self.engine.deadline().map_or(end, |at| at.min(end)).max(Moment(self.now.mono.0 + 1));
            let step = next - self.now.mono;
            self.now = Now { wall: self.now.wall + step, mono: next };
            self.run([]);
        }
    }

    pub(crate) fn submit(&mut self, message: Message) -> Result<MessageId, Refusal> {
        self.run([Event::Accept { message: Box::new(message), reply: REPLY }]);
        match self.answers.pop() {
            Some(Answer::Accepted(id)) => Ok(id),
            Some(Answer::Refused(refusal)) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    /// Every open question is answered so.
    pub(crate) fn answer_all(&mut self, subscriber: &Subscriber) {
        let questions = std::mem::take(&mut self.questions);
        self.run(questions.into_iter().map(|msisdn| resolved(&msisdn, subscriber.clone())));
    }

    /// The peers' word on all that is on links.
    pub(crate) fn outcome_of_all(&mut self, outcome: &Outcome) -> Vec<MessageId> {
        let sent = std::mem::take(&mut self.sent);
        let ids = sent.iter().map(|(_, message, _)| message.id).collect();
        self.run(sent.into_iter().map(|(peer, message, _)| Event::Outcome {
            link: LinkId(peer.0.into()),
            id: message.id,
            outcome: outcome.clone(),
        }));
        ids
    }

    /// Where everything goes until nothing is left, with all peers and the resolver at their best.
    pub(crate) fn deliver_all(&mut self) -> Vec<MessageId> {
        let mut order = Vec::new();
        for _ in 0..10_000 {
            if self.engine.live() == 0 {
                return order;
            }
            self.answer_all(&found("262011234567890"));
            order.extend(self.outcome_of_all(&Outcome::Accepted { ids: Vec::new() }));
            if self.sent.is_empty() && self.questions.is_empty() {
                self.pass(Duration::from_secs(1));
            }
        }
        panic!("{} messages are stuck", self.engine.live());
    }

    /// The kinds of the steps of a message that has ended.
    pub(crate) fn steps(&self, id: MessageId) -> Vec<StepKind> {
        self.finished[&id].steps.iter().map(|step| step.kind.clone()).collect()
    }

    pub(crate) fn message_on_disk(&self, id: MessageId) -> &Message {
        &self.messages[&id]
    }

    pub(crate) fn progress_on_disk(&self, id: MessageId) -> Option<&Progress> {
        self.progress.get(&id)
    }

    pub(crate) fn status(&self, peer: PeerId) -> PeerStatus {
        self.engine.peers().into_iter().find(|status| status.peer == peer).unwrap()
    }

    /// The peer's word on one message, which must be on its link.
    pub(crate) fn answer(&mut self, id: MessageId, outcome: Outcome) {
        let index = self.sent.iter().position(|(_, message, _)| message.id == id).unwrap();
        let (peer, _, _) = self.sent.remove(index);
        self.run([Event::Outcome { link: LinkId(peer.0.into()), id, outcome }]);
    }

    /// Ids of what is on links, in the order in which it left.
    pub(crate) fn on_links(&self) -> Vec<MessageId> {
        self.sent.iter().map(|(_, message, _)| message.id).collect()
    }

    pub(crate) fn all_different(&self) -> bool {
        let ids: HashSet<_> = self.sent.iter().map(|(_, message, _)| message.id).collect();
        ids.len() == self.sent.len()
    }
}

pub(crate) fn by() -> Arc<DecidedBy> {
    Arc::new(DecidedBy { plugin: "test".to_owned(), version: "1".to_owned() })
}

pub(crate) fn imsi(digits: &str) -> Imsi {
    Imsi(AddressBytes::from_slice(digits.as_bytes()))
}

pub(crate) fn found(digits: &str) -> Subscriber {
    Subscriber::Found { imsi: imsi(digits), peer: None, valid: None }
}

pub(crate) fn resolved(msisdn: &[u8], subscriber: Subscriber) -> Event {
    let resolution = Resolution { subscriber, by: by(), note: Some("because".into()) };
    Event::Resolved { msisdn: AddressBytes::from_slice(msisdn), resolution }
}

/// A leg that needs the subscriber.
pub(crate) fn subscriber_leg(peer: PeerId) -> Leg {
    Leg { resolve: true, ..Leg::to(peer) }
}

/// Legs are tried in the order in which they are given.
pub(crate) fn message(number: &str, mut legs: Vec<Leg>) -> Message {
    for (rank, leg) in legs.iter_mut().enumerate() {
        leg.rank = u8::try_from(rank).unwrap();
    }
    Message {
        id: MessageId(0),
        kind: Kind::Text,
        origin: ACCOUNT,
        source: Address::new(0, 1, b"10655"),
        destination: Address::international(number),
        service_type: Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::default(),
        receipts: ReceiptRequest::NONE,
        replace_if_present: false,
        submission: None,
        text: Text { octets: Bytes::from_static(b"text"), ..Text::default() },
        tlvs: Bytes::new(),
        accepted_at: Timestamp(0),
        scheduled: None,
        expires_at: Timestamp(1_795_000_000_000 + u64::try_from(VALIDITY.as_millis()).unwrap()),
        routed: Routed::new(Verdict::Forward(legs), by()),
    }
}

use crate::custody::{Witness, is_text, subscriber};
use crate::disk::Disk;
use crate::money::Till;
use crate::plugins::{self, Plugins};
use crate::{Plan, Random};
use bytes::Bytes;
use engine::{
    Answer, Command, Engine, Event, Handed, Output, PeerSettings, Recovered, Remembered, ReplyTo, Settings,
    Uncertainty,
};
use model::{
    Address, AddressBytes, DecidedBy, ErrorClass, FinalState, Kind, Leg, LinkId, Message, MessageId, Moment,
    Now, Outcome, PeerId, PeerMessageId, Priority, Receipt, ReceiptRequest, ReceiptState, Refusal, Routed,
    SubmissionKey, Text, Ticket, Timestamp, Verdict,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// How many numbers there are where subscribers take turns; one more than the silent one.
const FEW: usize = 14;

/// A message on a link, as the peer sees it.
struct OnLink {
    link: LinkId,
    message: Arc<Message>,
    leg: u8,
    want_receipt: bool,
}

const LONG: Duration = Duration::from_secs(3 * 86_400);
const ACCOUNT: PeerId = PeerId(0);
const PEERS: [PeerId; 3] = [PeerId(1), PeerId(2), PeerId(3)];
/// One message at a time for a subscriber, where the plan has such a peer.
const SERIAL: PeerId = PEERS[2];

pub(crate) struct World {
    random: Random,
    plan: Plan,
    seed: u64,
    engine: Engine,
    disk: Disk,
    out: Output,
    mono: u64,
    wall: u64,
    links: Vec<(LinkId, PeerId)>,
    next_link: u64,
    on_links: Vec<OnLink>,
    /// Unanswered questions of the engine's.
    loads: Vec<MessageId>,
    routes: Vec<Arc<Message>>,
    till: Till,
    plugins: Plugins,
    /// Receipts that peers still have to send: peer, id, message.
    receipts: Vec<(PeerId, PeerMessageId, Arc<Message>)>,
    next_peer_id: u64,
    /// How often each message was taken, by peers in all.
    taken: HashMap<MessageId, u32>,
    /// Messages that a doubt or a crash may have doubled.
    doubted: HashSet<MessageId>,
    told_accepted: Vec<MessageId>,
    /// Submissions under a key: what was asked under which token, and what was answered first.
    asked: HashMap<u64, u64>,
    keyed: HashMap<u64, Vec<Result<MessageId, Refusal>>>,
    /// Receipts that the engine has not answered, by token.
    unanswered: HashMap<u64, (PeerId, Receipt)>,
    next_token: u64,
    /// Hand-overs by message, leg and ticket.
    tickets: HashSet<(MessageId, u8, Ticket)>,
    /// Our receipts that the account has taken, by the message they speak of; the last word only.
    told_final: HashMap<MessageId, u32>,
    submitted: u64,
    wants_final: HashSet<MessageId>,
    healthy: bool,
    witness: Witness,
    /// Answers that come though they were given up.
    late: Vec<(LinkId, MessageId)>,
    told_late: HashSet<MessageId>,
    pub(crate) commits: usize,
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan) -> Self {
        let mut world = Self {
            random: Random(seed),
            plan,
            seed,
            engine: Engine::new(Settings::default()),
            disk: Disk::default(),
            out: Output::default(),
            mono: 1_000_000,
            wall: 1_795_000_000_000,
            links: Vec::new(),
            next_link: 1,
            on_links: Vec::new(),
            loads: Vec::new(),
            routes: Vec::new(),
            till: Till::default(),
            plugins: Plugins::new(plan.plugins),
            receipts: Vec::new(),
            next_peer_id: 1,
            taken: HashMap::new(),
            doubted: HashSet::new(),
            told_accepted: Vec::new(),
            asked: HashMap::new(),
            keyed: HashMap::new(),
            unanswered: HashMap::new(),
            next_token: 1_000_000,
            tickets: HashSet::new(),
            told_final: HashMap::new(),
            submitted: 0,
            wants_final: HashSet::new(),
            healthy: false,
            witness: Witness::default(),
            late: Vec::new(),
            told_late: HashSet::new(),
            commits: 0,
        };
        world.boot();
        world
    }

    fn now(&self) -> Now {
        Now { wall: Timestamp(self.wall), mono: Moment(self.mono) }
    }

    pub(crate) fn apply(&mut self, event: Event) {
        let now = self.now();
        self.engine.apply(now, event, &mut self.out);
    }

    /// Starts an engine on what the disk has.
    fn boot(&mut self) {
        let settings = Settings {
            seed: self.random.next(),
            body_cache: self.plan.body_cache,
            receipt_parking: LONG,
            biller: true,
            resolver: self.plugins.resolver,
            delivery_policy: self.plugins.policy,
            resolve_in_flight: plugins::IN_FLIGHT,
            resolve_cache_limit: 20,
            ..Settings::default()
        };
        self.engine = Engine::new(settings);
        self.out = Output::default();
        self.links.clear();
        self.loads.clear();
        self.routes.clear();
        self.late.clear();
        self.witness.begin();
        self.till.crashed();
        self.plugins.gone();
        let mut account = PeerSettings::new(ACCOUNT);
        account.addressee = true;
        account.receipts = false;
        account.uncertainty = Uncertainty::SendAgain;
        account.retry = vec![Duration::from_secs(2)];
        self.apply(Event::Peer(account));
        for peer in PEERS {
            let mut settings = PeerSettings::new(peer);
            settings.uncertainty = self.plan.uncertainty;
            settings.uncertain_limit = Duration::from_secs(600);
            // Longer than all jumps of the wall clock together.
            settings.receipt_limit = LONG;
            settings.retry = vec![Duration::from_secs(1), Duration::from_secs(5)];
            settings.receipts = peer != PEERS[2];
            settings.serial = self.plan.serial && peer == SERIAL;
            settings.rate = (peer == PEERS[1]).then_some(50.0);
            settings.group = 7;
            settings.max_attempts = if peer == PEERS[1] { 4 } else { 0 };
            self.apply(Event::Peer(settings));
        }
        let mut newest: HashMap<MessageId, (Handed, u64)> = HashMap::new();
        for (seq, row) in &self.disk.handed {
            for handed in row {
                newest.insert(handed.id, (*handed, *seq));
            }
        }
        let found: Vec<Recovered> = self
            .disk
            .messages
            .iter()
            .map(|(id, message)| Recovered {
                message: Message::clone(message),
                progress: self.disk.progress.get(id).cloned(),
                handed: newest.get(id).map(|(handed, _)| *handed),
                handed_seq: newest.get(id).map_or(0, |(_, seq)| *seq),
            })
            .collect();
        let now = self.now();
        for record in self.disk.keys.values() {
            self.engine.recover_remembered(now, Remembered::Key(record.clone()));
        }
        for record in self.disk.parked.values() {
            self.engine.recover_remembered(now, Remembered::Parked(record.clone()));
        }
        for consent in &self.disk.stopped {
            self.engine.recover_remembered(now, Remembered::Stopped(consent.clone()));
        }
        for found in self.disk.remembered_money() {
            self.engine.recover_remembered(now, found);
        }
        for one in found {
            self.engine.recover(now, one, &mut self.out);
        }
        let rows: Vec<u64> = self.disk.handed.keys().copied().collect();
        self.engine.recovered(self.disk.next_id, self.disk.next_handed, &rows, &mut self.out);
    }

    /// Loses everything but the disk.
    fn crash(&mut self) {
        for flight in std::mem::take(&mut self.on_links) {
            self.doubted.insert(flight.message.id);
        }
        // What was taken and whose outcome had not been committed is in doubt too.
        for id in self.disk.handed.values().flatten().map(|handed| handed.id) {
            self.doubted.insert(id);
        }
        self.asked.clear();
        self.boot();
        // Peers send again what they got no answer for.
        let mut again: Vec<_> = std::mem::take(&mut self.unanswered).into_iter().collect();
        again.sort_by_key(|(token, _)| *token);
        for (_, (peer, receipt)) in again {
            self.give_receipt(peer, receipt);
        }
    }

    fn give_receipt(&mut self, peer: PeerId, receipt: Receipt) {
        let token = self.token();
        self.unanswered.insert(token, (peer, receipt.clone()));
        self.apply(Event::Receipt { peer, receipt, reply: ReplyTo { link: LinkId(0), token } });
    }

    pub(crate) fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    /// Writes what has gathered, and lets its commands leave.
    /// Ends a run of events.
    fn settle(&mut self) {
        let now = self.now();
        self.engine.settle(now, &mut self.out);
        if self.plan.serial {
            self.witness.check(&self.engine, &self.disk, &self.out, SERIAL, &self.links, self.seed);
        }
    }

    pub(crate) fn commit(&mut self) {
        self.settle();
        if self.out.is_empty() {
            return;
        }
        self.engine.seal(&mut self.out);
        let Output { batch, commands } = std::mem::take(&mut self.out);
        self.witness.begin();
        self.disk.commit(batch);
        self.commits += 1;
        let crash = self.plan.crash_at.filter(|(commit, _)| commit + 1 == self.commits);
        match crash {
            Some((_, true)) => {
                // Whoever was not told does not know that it was accepted, and what was handed over never left.
                self.crash();
            }
            Some((_, false)) => {
                self.leave(commands);
                self.crash();
            }
            None => self.leave(commands),
        }
    }

    /// Commands leave, being durable.
    fn leave(&mut self, commands: Vec<Command>) {
        for command in commands {
            match command {
                Command::Send { link, message, want_receipt, ticket, leg, .. } => {
                    let peer = self.links.iter().find(|(known, _)| *known == link).map(|(_, peer)| *peer);
                    Plugins::sent(&message, leg, peer);
                    if !self.tickets.insert((message.id, leg, ticket)) {
                        let (id, seed) = (message.id, self.seed);
                        let own = matches!(message.kind, Kind::Receipt(_));
                        assert!(own || self.doubted.contains(&id), "seed {seed}: {id:?} repeats {ticket:?}");
                    }
                    if self.links.iter().any(|(known, _)| *known == link) {
                        if self.told_late.contains(&message.id) {
                            // It was on its way to the link when its answer came.
                            let outcome = Outcome::Accepted { ids: Vec::new() };
                            self.apply(Event::Outcome { link, id: message.id, outcome });
                            continue;
                        }
                        self.one_at_a_time(&message, leg, link);
                        self.on_links.push(OnLink { link, message, leg, want_receipt });
                    } else {
                        // Its link went first: the engine cannot know that it was never written.
                        self.doubted.insert(message.id);
                    }
                }
                Command::Answer { to, answer } => match answer {
                    Answer::Accepted(id) => self.told_accepted.push(id),
                    Answer::AcceptedMany(results) => {
                        let Some(key) = self.asked.remove(&to.token) else { continue };
                        if results.iter().all(Result::is_err) {
                            continue;
                        }
                        if let Some(first) = self.keyed.get(&key) {
                            assert_eq!(first, &results, "seed {}: key {key} answered twice", self.seed);
                        } else {
                            self.told_accepted.extend(results.iter().flatten());
                            self.keyed.insert(key, results);
                        }
                    }
                    Answer::ReceiptTaken => {
                        assert!(self.unanswered.remove(&to.token).is_some(), "a receipt answered twice");
                    }
                    Answer::Refused(refusal) => {
                        assert!(!matches!(refusal, Refusal::Internal), "an internal fault");
                    }
                    Answer::Ledger(answer) => self.till.answered(to.token, answer, &self.disk),
                    _ => {}
                },
                Command::Settle { settlements } => self.till.told(settlements),
                Command::Resolve { msisdn } => self.plugins.asked_about(msisdn),
                Command::Decide { message, attempt } => {
                    self.plugins.asked_to_decide(&message, attempt, &self.disk);
                }
                Command::Load { ids } => self.loads.extend(ids),
                Command::Reroute { message } => self.routes.push(message),
                Command::Ask { id, message, .. } => {
                    let known = self.taken.get(&message.id).is_some_and(|count| *count > 0);
                    let receipt = known.then(|| {
                        self.receipt_of(&message, PeerMessageId::default(), ReceiptState::Delivered)
                    });
                    self.apply(Event::Told { id, receipt });
                }
                Command::LookUp { .. } => {}
            }
        }
    }

    fn receipt_of(&self, message: &Message, id: PeerMessageId, state: ReceiptState) -> Receipt {
        Receipt {
            id,
            state,
            intermediate: false,
            error: 0,
            network_error: None,
            done_at: Some(Timestamp(self.wall)),
            from: message.destination.value.clone(),
            to: message.source.value.clone(),
        }
    }

    fn link_up(&mut self, peer: PeerId) {
        let link = LinkId(self.next_link);
        self.next_link += 1;
        self.links.push((link, peer));
        let window = 1 + self.random.below(8) as u32;
        self.apply(Event::LinkUp { link, peer, window });
    }

    fn link_down(&mut self, index: usize) {
        let (link, _) = self.links.remove(index);
        let (gone, kept): (Vec<OnLink>, Vec<OnLink>) =
            std::mem::take(&mut self.on_links).into_iter().partition(|flight| flight.link == link);
        self.on_links = kept;
        for flight in gone {
            // Written, and nobody will ever know; the peer may have taken it all the same.
            self.doubted.insert(flight.message.id);
            if self.random.chance(50) {
                self.take(&flight);
            }
        }
        self.apply(Event::LinkDown { link });
    }

    /// The peer takes a message; gives back its id for it.
    fn take(&mut self, flight: &OnLink) -> PeerMessageId {
        let id = PeerMessageId::new(format!("p{}", self.next_peer_id).as_bytes());
        self.next_peer_id += 1;
        if let Kind::Receipt(text) = &flight.message.kind {
            if !text.intermediate {
                *self.told_final.entry(text.of).or_default() += 1;
            }
            return id;
        }
        *self.taken.entry(flight.message.id).or_default() += 1;
        if flight.want_receipt {
            let peer = self.links.iter().find(|(link, _)| *link == flight.link).map(|(_, peer)| *peer);
            let peer = peer.unwrap_or(PEERS[0]);
            self.receipts.push((peer, id.clone(), flight.message.clone()));
        }
        id
    }

    fn answer(&mut self, index: usize) {
        let flight = self.on_links.swap_remove(index);
        let (link, id) = (flight.link, flight.message.id);
        let kind = if self.healthy { 100 } else { self.random.below(100) };
        if self.is_serial(link) && !self.healthy && kind < 50 {
            self.answer_of_serial(&flight, kind);
            return;
        }
        let outcome = match kind {
            0..8 => Outcome::Refused { class: ErrorClass::Throttled, code: 0x58, taken: Vec::new() },
            8..16 => Outcome::Refused { class: ErrorClass::Temporary, code: 8, taken: Vec::new() },
            // An ESME that refuses a receipt for good has been told; only the others must be told again.
            16..20 if flight.message.kind == Kind::Text => {
                Outcome::Refused { class: ErrorClass::Permanent, code: 0x0B, taken: Vec::new() }
            }
            20..24 => Outcome::NotSent,
            24..32 if self.plan.silence => {
                self.doubted.insert(id);
                if self.random.chance(50) {
                    self.take(&flight);
                }
                Outcome::Unanswered { taken: Vec::new(), known: Vec::new() }
            }
            _ => {
                let peer_id = self.take(&flight);
                // A receipt that overtakes its answer.
                if self.random.chance(20) && !self.receipts.is_empty() {
                    let last = self.receipts.len() - 1;
                    self.send_receipt(last);
                }
                Outcome::Accepted { ids: vec![peer_id] }
            }
        };
        self.apply(Event::Outcome { link, id, outcome });
    }

    fn is_serial(&self, link: LinkId) -> bool {
        self.plan.serial && self.links.contains(&(link, SERIAL))
    }

    /// As the peer itself sees it.
    fn one_at_a_time(&self, message: &Message, leg: u8, link: LinkId) {
        if !self.is_serial(link) {
            return;
        }
        let name = subscriber(message, leg);
        let other = self
            .on_links
            .iter()
            .find(|flight| self.is_serial(flight.link) && subscriber(&flight.message, flight.leg) == name);
        let other = other.map(|flight| flight.message.id);
        assert_eq!(other, None, "seed {}: {:?} comes to {name:?} as well", self.seed, message.id);
    }

    /// An attempt that fails, in one of the ways of a mobile network.
    fn answer_of_serial(&mut self, flight: &OnLink, kind: usize) {
        let (link, id) = (flight.link, flight.message.id);
        let refused = |class| Outcome::Refused { class, code: 9, taken: Vec::new() };
        let outcome = match kind {
            0..4 => refused(ErrorClass::Throttled),
            4..14 => refused(ErrorClass::Absent),
            14..22 => refused(ErrorClass::MemoryFull),
            22..28 => refused(ErrorClass::Temporary),
            28..31 if is_text(&flight.message) => refused(ErrorClass::Permanent),
            31..37 => refused(ErrorClass::UnknownSubscriber),
            37..50 if self.plan.silence => {
                self.doubted.insert(id);
                if self.random.chance(50) {
                    self.take(flight);
                    if self.random.chance(50) {
                        self.late.push((link, id));
                    }
                }
                Outcome::Unanswered { taken: Vec::new(), known: Vec::new() }
            }
            _ => Outcome::NotSent,
        };
        if self.random.chance(20) {
            self.heard_of(&flight.message, flight.leg);
        }
        self.apply(Event::Outcome { link, id, outcome });
        if self.random.chance(20) {
            self.heard_of(&flight.message, flight.leg);
        }
    }

    /// The addressee of a message is heard of.
    fn heard_of(&mut self, message: &Message, leg: u8) {
        match subscriber(message, leg) {
            Some((true, imsi)) => self.apply(Event::Reachable { imsi: model::Imsi(imsi) }),
            Some((false, msisdn)) => self.apply(Event::Alert { msisdn }),
            None => {}
        }
    }

    /// Somebody is heard of: one of the few, or nobody.
    fn somebody_heard_of(&mut self) {
        let number = format!("861{}", self.random.below(FEW + 2));
        let (heard, event) = if self.plan.plugins && self.random.chance(70) {
            let imsi = plugins::imsi(&mut self.random, number.as_bytes());
            ((true, imsi.0.clone()), Event::Reachable { imsi })
        } else {
            let msisdn = AddressBytes::from_slice(number.as_bytes());
            ((false, msisdn.clone()), Event::Alert { msisdn })
        };
        self.settle();
        self.apply(event);
        Witness::check_heard(&self.engine, &self.disk, &self.out, SERIAL, &heard, self.seed);
    }

    /// An answer that was given up comes after all. The network tells by the subscriber what it is an answer to: if the
    /// message is on its way once more, to that.
    fn late_answer(&mut self) {
        let index = self.random.below(self.late.len());
        let (link, id) = self.late.swap_remove(index);
        if self.links.iter().any(|(known, _)| *known == link) {
            self.on_links.retain(|flight| flight.message.id != id || flight.link != link);
            self.told_late.insert(id);
            self.apply(Event::Outcome { link, id, outcome: Outcome::Accepted { ids: Vec::new() } });
        }
    }

    fn send_receipt(&mut self, index: usize) {
        let (peer, id, message) = self.receipts.swap_remove(index);
        // On another bind of the same group, now and then.
        let peer = if self.random.chance(30) { PEERS[self.random.below(2)] } else { peer };
        let state = if self.healthy || self.random.chance(80) {
            ReceiptState::Delivered
        } else {
            ReceiptState::Undeliverable
        };
        let receipt = self.receipt_of(&message, id, state);
        let twice = self.random.chance(10);
        if twice {
            self.give_receipt(peer, receipt.clone());
        }
        self.give_receipt(peer, receipt);
    }

    /// Some messages under a key; now and then under one that was used before.
    fn submit_keyed(&mut self) {
        let fresh = self.submitted;
        let key = if self.random.chance(40) { self.random.below(fresh as usize + 1) as u64 } else { fresh };
        let count = 1 + key as usize % 3;
        let messages = (0..count).map(|_| self.message(false)).collect();
        self.submitted += 1;
        let token = self.token();
        self.asked.insert(token, key);
        let key = SubmissionKey { octets: key.to_be_bytes().as_slice().into(), digest: key };
        let reply = ReplyTo { link: LinkId(0), token };
        self.apply(Event::AcceptMany { messages, key: Some(key), reply });
    }

    fn submit(&mut self) {
        // Some come from a subscriber's handset: receipts go back to it.
        let mobile = self.plan.serial && self.random.chance(10);
        let message = self.message(mobile);
        self.submitted += 1;
        let reply = ReplyTo { link: LinkId(0), token: self.submitted };
        self.apply(Event::Accept { message: Box::new(message), reply });
    }

    fn message(&mut self, mobile: bool) -> Message {
        let mut legs = Vec::new();
        for _ in 0..=self.random.below(2) {
            let mut leg = Leg::to(PEERS[self.random.below(3)]);
            leg.rank = self.random.below(2) as u8;
            leg.longest_wait = self.random.chance(20).then(|| Duration::from_secs(3));
            if self.plan.plugins {
                Plugins::touch(&mut self.random, &mut leg);
            }
            legs.push(leg);
        }
        if mobile {
            legs.iter_mut().for_each(|leg| leg.peer = PEERS[self.random.below(2)]);
        }
        let numbers = if self.plan.serial { FEW } else { 50 };
        let destination = format!("861{}", self.random.below(numbers));
        let source = if mobile { format!("861{}", self.random.below(FEW)) } else { "10655".to_owned() };
        let verdict = if self.random.chance(5) {
            Verdict::Hold(Timestamp(self.wall + 5_000))
        } else {
            Verdict::Forward(legs)
        };
        let receipts = if self.random.chance(60) { ReceiptRequest::FINAL } else { ReceiptRequest::NONE };
        let mut message = Message {
            id: MessageId(0),
            kind: Kind::Text,
            origin: if mobile { SERIAL } else { ACCOUNT },
            source: Address::international(&source),
            destination: Address::international(&destination),
            service_type: Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::new(self.random.below(4) as u8),
            receipts,
            replace_if_present: self.random.chance(2),
            text: Text { octets: Bytes::from_static(b"text"), ..Text::default() },
            tlvs: Bytes::new(),
            accepted_at: Timestamp(0),
            scheduled: self.random.chance(10).then(|| Timestamp(self.wall + 4_000)),
            expires_at: Timestamp(self.wall + 3_000_000 + self.random.below(10_000_000) as u64),
            routed: Routed {
                verdict,
                by: Arc::new(DecidedBy { plugin: "sim".to_owned(), version: "1".to_owned() }),
                note: None,
                quote: None,
                seen: None,
            },
        };
        if self.plan.money {
            message.routed.quote = self.till.quote(&mut self.random);
        }
        message
    }

    fn operate(&mut self) {
        let operation = self.till.operation(&mut self.random);
        let token = self.token();
        self.till.asked(token, operation.clone());
        self.apply(Event::Ledger { operation, reply: ReplyTo { link: LinkId(0), token } });
    }

    fn answer_biller(&mut self) {
        if let Some((upto, ok)) = self.till.answer(&mut self.random, self.healthy) {
            self.apply(Event::Settled { upto, ok });
        }
    }

    /// A word of a plugin's, or another plugin.
    fn some_word(&mut self) {
        let event = match self.random.below(20) {
            0..9 => return self.resolve(),
            9..18 => self.plugins.decide(&mut self.random, false),
            18 => Some(Plugins::alert(&mut self.random)),
            _ => {
                let (resolver, policy) = (self.random.chance(70), self.random.chance(70));
                return self.rebind(resolver, policy);
            }
        };
        if let Some(event) = event {
            self.apply(event);
        }
    }

    /// A word of the resolver's. What it lets go leaves in order.
    fn resolve(&mut self) {
        self.commit();
        let Some(event) = self.plugins.resolve(&mut self.random, self.healthy) else { return };
        let Event::Resolved { msisdn, .. } = &event else { return };
        let waiting = Plugins::those_of(msisdn, &self.disk, &self.engine);
        self.apply(event);
        self.settle();
        let mut newest: HashMap<(PeerId, Priority), MessageId> = HashMap::new();
        for command in &self.out.commands {
            let Command::Send { link, message, .. } = command else { continue };
            if let Some((_, peer)) = self.links.iter().find(|(known, _)| known == link)
                && waiting.contains(&message.id)
                && let Some(before) = newest.insert((*peer, message.priority), message.id)
            {
                assert!(before < message.id, "seed {}: {before:?} before {:?}", self.seed, message.id);
            }
        }
    }

    /// Plugins come and go. What the last ones were asked must have left.
    fn rebind(&mut self, resolver: bool, policy: bool) {
        self.commit();
        if (self.plugins.resolver, self.plugins.policy) != (resolver, policy) {
            (self.plugins.resolver, self.plugins.policy) = (resolver, policy);
            self.plugins.gone();
            // Both are exchanged: each begins anew.
            self.apply(Event::Hooks { resolver: false, delivery_policy: false, biller: true });
        }
        self.apply(Event::Hooks { resolver, delivery_policy: policy, biller: true });
    }

    fn some_request(&mut self) {
        let Some(id) = self.told_accepted.last().copied() else { return };
        let reply = ReplyTo { link: LinkId(0), token: 0 };
        let source = Some(Address::international("10655"));
        let event = match self.random.below(4) {
            0 => Event::Cancel { origin: ACCOUNT, id, source, reply },
            1 => Event::Query { origin: ACCOUNT, id, source, reply },
            2 => Event::Replace {
                origin: ACCOUNT,
                id,
                source: Address::international("10655"),
                text: Text { octets: Bytes::from_static(b"new text"), ..Text::default() },
                scheduled: None,
                expires_at: None,
                receipts: ReceiptRequest::FINAL,
                reply,
            },
            _ => Event::CancelMatching {
                origin: ACCOUNT,
                source: Address::international("10655"),
                destination: Address::international("8617"),
                service_type: Bytes::new(),
                reply,
            },
        };
        self.apply(event);
    }

    fn answer_questions(&mut self) {
        let loads = std::mem::take(&mut self.loads);
        for id in loads {
            let message = self.disk.messages.get(&id).cloned();
            self.apply(Event::Loaded { id, message });
        }
        for message in std::mem::take(&mut self.routes) {
            let mut leg = Leg::to(PEERS[self.random.below(3)]);
            if self.plan.plugins {
                Plugins::touch(&mut self.random, &mut leg);
            }
            let mut routed = Routed { verdict: Verdict::Forward(vec![leg]), ..message.routed.clone() };
            if self.plan.money {
                routed.quote = self.till.quote(&mut self.random);
            }
            self.apply(Event::Rerouted { id: message.id, routed });
        }
    }

    pub(crate) fn step(&mut self) {
        match self.random.below(100) {
            0..2 if self.plan.money => self.operate(),
            2..6 if self.plan.serial => self.somebody_heard_of(),
            6..8 if !self.late.is_empty() => self.late_answer(),
            0..24 => self.submit(),
            24..30 => self.submit_keyed(),
            30..55 if !self.on_links.is_empty() => {
                let index = self.random.below(self.on_links.len());
                self.answer(index);
            }
            55..65 if !self.receipts.is_empty() => {
                let index = self.random.below(self.receipts.len());
                self.send_receipt(index);
            }
            65..70 => {
                let peer = [ACCOUNT, PEERS[0], PEERS[1], PEERS[2]][self.random.below(4)];
                if self.links.iter().filter(|(_, of)| *of == peer).count() < 3 {
                    self.link_up(peer);
                }
            }
            70..72 if self.plan.drops && !self.links.is_empty() => {
                let index = self.random.below(self.links.len());
                self.link_down(index);
            }
            72..74 if self.plan.crashes => self.crash(),
            74..76 => self.some_request(),
            76..78 => {
                let jump = self.random.below(7_200_000) as u64;
                self.wall = if self.random.chance(50) { self.wall + jump } else { self.wall - jump };
            }
            78..85 => self.answer_questions(),
            86 => self.answer_biller(),
            87..93 if self.plan.plugins => self.some_word(),
            85 => {
                let ids = self.disk.finished.keys().take(5).copied().collect();
                let reply = ReplyTo { link: LinkId(0), token: 0 };
                self.apply(Event::Archived { ids, reply });
            }
            _ => {
                let step = self.random.below(1_500) as u64;
                self.mono += step;
                self.wall += step;
            }
        }
        if self.random.chance(60) {
            self.commit();
        } else {
            self.settle();
        }
        for id in &self.told_accepted {
            if let Some(message) = self.disk.messages.get(id)
                && message.receipts.any()
                && message.origin == ACCOUNT
            {
                self.wants_final.insert(*id);
            }
        }
    }

    pub(crate) fn finish(&mut self) {
        self.healthy = true;
        for peer in [ACCOUNT, PEERS[0], PEERS[1], PEERS[2]] {
            self.link_up(peer);
        }
        if self.plan.plugins {
            self.rebind(true, true);
        }
        for _ in 0..60_000 {
            self.answer_questions();
            self.answer_biller();
            for _ in 0..plugins::IN_FLIGHT {
                self.resolve();
            }
            while let Some(event) = self.plugins.decide(&mut self.random, true) {
                self.apply(event);
            }
            while !self.on_links.is_empty() {
                self.answer(0);
            }
            while !self.receipts.is_empty() {
                self.send_receipt(0);
            }
            self.commit();
            if self.engine.live() == 0 && self.engine.unsettled() == 0 && self.out.is_empty() {
                break;
            }
            // To the next thing that waits, and a little at a time.
            let next =
                self.engine.deadline().map_or(1_000, |at| at.0.saturating_sub(self.mono).clamp(1, 60_000));
            let quiet = self.on_links.is_empty() && self.loads.is_empty() && self.routes.is_empty();
            // Some numbers are never answered: what waits for them waits until its validity ends.
            let longest = if self.plan.plugins { 60_000 } else { 10_000 };
            let next = if quiet { next.max(longest) } else { next };
            self.mono += next;
            self.wall += next;
        }
        let seed = self.seed;
        self.till.check_end(&self.disk, seed);
        assert_eq!(self.engine.live(), 0, "seed {seed}: messages are stuck");
        assert!(self.disk.messages.is_empty(), "seed {seed}: messages are left on disk");
        assert!(self.disk.progress.is_empty(), "seed {seed}: progress is left on disk");
        assert!(self.disk.handed.is_empty(), "seed {seed}: {} handed rows are left", self.disk.handed.len());
        assert_eq!((self.engine.resolving().messages, self.engine.deciding()), (0, 0), "seed {seed}");
        let left = self.engine.peers().iter().map(|peer| peer.aside + peer.parked).sum::<u64>();
        assert_eq!(left, 0, "seed {seed}: aside or parked");
        for (id, ended) in self.disk.finished.iter().chain(&self.disk.archived) {
            plugins::check_trace(*id, ended, self.plan.serial);
        }
        for id in &self.told_accepted {
            let ended = self.disk.finished.get(id).or_else(|| self.disk.archived.get(id));
            let ended =
                ended.unwrap_or_else(|| panic!("seed {seed}: {id:?} was accepted and has no final record"));
            let taken = self.taken.get(id).copied().unwrap_or(0);
            // Receipts come again until they are answered, and what was in doubt is sent again.
            if self.plan.uncertainty == Uncertainty::SendAgain {
                assert!(ended.state != FinalState::Unknown, "seed {seed}: nobody knows of {id:?}: {ended:?}");
            }
            // Doubt may be settled by a receipt that names the same two addresses and not the message itself.
            if matches!(ended.state, FinalState::Delivered | FinalState::Relayed)
                && !self.doubted.contains(id)
            {
                assert!(taken > 0, "seed {seed}: {id:?} is called {:?} and no peer has it", ended.state);
            }
            if !self.doubted.contains(id) {
                assert!(taken <= 1, "seed {seed}: {id:?} went out {taken} times without a doubt");
            }
        }
        let unique: HashSet<_> = self.told_accepted.iter().collect();
        assert_eq!(unique.len(), self.told_accepted.len(), "seed {seed}: an id was given out twice");
        for (of, count) in &self.told_final {
            assert!(
                *count == 1 || self.plan.crashes || self.plan.drops || self.plan.silence,
                "seed {seed}: {count} final receipts for {of:?}"
            );
        }
        for id in &self.wants_final {
            assert!(
                self.told_final.contains_key(id),
                "seed {seed}: {id:?} ended and its submitter was not told"
            );
        }
    }
}

mod peers;
mod submitters;

use crate::custody::Witness;
use crate::disk::Disk;
use crate::money::Till;
use crate::orders;
use crate::plugins::{self, Plugins};
use crate::senders;
use crate::{Plan, Random};
use engine::{
    Answer, Command, Engine, Event, Handed, Output, PeerSettings, Recovered, Remembered, ReplyTo, Settings,
    Uncertainty,
};
use model::{
    FinalState, Kind, LinkId, Message, MessageId, Moment, Now, Outcome, PeerId, PeerMessageId, Receipt,
    ReceiptState, Refusal, Ticket, Timestamp,
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
    /// Messages that a crash found as they were accepted: whatever had happened to them by then is in no trace.
    untold: HashSet<MessageId>,
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
    overseer: orders::Witness,
    /// Answers that come though they were given up.
    late: Vec<(LinkId, MessageId)>,
    /// Messages that were answered so while they were on their way to that link once more.
    told_late: HashSet<(LinkId, MessageId)>,
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
            untold: HashSet::new(),
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
            overseer: orders::Witness::default(),
            late: Vec::new(),
            told_late: HashSet::new(),
            commits: 0,
        };
        world.boot();
        if plan.senders {
            senders::set_up().into_iter().for_each(|event| world.apply(event));
        }
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
        self.told_late.clear();
        self.witness.begin();
        self.overseer.begin();
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
        for order in self.disk.orders.values() {
            self.engine.recover_remembered(now, Remembered::Order(order.clone()));
        }
        for found in self.disk.remembered_money() {
            self.engine.recover_remembered(now, found);
        }
        for found in self.disk.pools.remembered() {
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
        let accepted = self.disk.messages.keys().filter(|id| !self.disk.progress.contains_key(id));
        self.untold.extend(accepted);
        self.asked.clear();
        self.boot();
        // Peers send again what they got no answer for.
        let mut again: Vec<_> = std::mem::take(&mut self.unanswered).into_iter().collect();
        again.sort_by_key(|(token, _)| *token);
        for (_, (peer, receipt)) in again {
            self.give_receipt(peer, receipt);
        }
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
        if self.plan.orders {
            let when = (Timestamp(self.wall), self.seed);
            self.overseer.check(&self.engine, &self.disk, &self.out, &self.links, when);
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
        self.overseer.begin();
        self.disk.commit(batch);
        senders::check(&self.disk, self.seed);
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
                        if self.told_late.remove(&(link, message.id)) {
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
                Command::LookUp { id, .. } => {
                    assert!(!self.disk.waits(id), "seed {}: {id:?} is looked for, and waits", self.seed);
                }
                Command::Refused(_) => {}
            }
        }
    }

    pub(crate) fn step(&mut self) {
        match self.random.below(100) {
            0..2 if self.plan.money => self.operate(),
            2..8 if self.plan.orders => self.some_order(),
            2 if self.plan.serial && self.plan.plugins => self.number_learnt(),
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
            93..96 if self.plan.senders => {
                let event = senders::somebody(&mut self.random);
                self.apply(event);
            }
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
        orders::withdraw_all(&self.engine).into_iter().for_each(|event| self.apply(event));
        for peer in [ACCOUNT, PEERS[0], PEERS[1], PEERS[2]] {
            self.link_up(peer);
        }
        if self.plan.plugins {
            self.rebind(true, true);
        }
        if self.plan.senders {
            senders::set_up().into_iter().for_each(|event| self.apply(event));
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
        senders::check_end(&self.disk, seed);
        orders::check_end(&self.disk, seed);
        assert_eq!(self.engine.senders(), (0, 0), "seed {seed}");
        assert_eq!(self.engine.live(), 0, "seed {seed}: messages are stuck");
        assert!(self.disk.messages.is_empty(), "seed {seed}: messages are left on disk");
        assert!(self.disk.progress.is_empty(), "seed {seed}: progress is left on disk");
        assert!(self.disk.handed.is_empty(), "seed {seed}: {} handed rows are left", self.disk.handed.len());
        assert_eq!((self.engine.resolving().messages, self.engine.deciding()), (0, 0), "seed {seed}");
        let left =
            self.engine.peers().iter().map(|peer| peer.aside + peer.parked + peer.suspended).sum::<u64>();
        assert_eq!(left, 0, "seed {seed}: aside or parked");
        for (id, ended) in self.disk.finished.iter().chain(&self.disk.archived) {
            plugins::check_trace(*id, ended, self.plan.serial, self.untold.contains(id));
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
        for id in self.wants_final.iter().filter(|_| !self.purges()) {
            assert!(
                self.told_final.contains_key(id),
                "seed {seed}: {id:?} ended and its submitter was not told"
            );
        }
    }
}

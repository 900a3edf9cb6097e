mod peers;
mod submitters;

use crate::simulation::cluster::Cluster;
use crate::simulation::disk::Disk;
use crate::simulation::journal::SimulatedJournal;
use crate::simulation::ledger::LedgerClients;
use crate::simulation::plugins::{self, Plugins};
use crate::simulation::receipts::Receipts;
use crate::simulation::sender_numbers;
use crate::simulation::serial_delivery::Witness;
use crate::simulation::{Plan, Random};
use crate::simulation::{ledger, lookups, pace_limits, queue_actions, screens};
use engine::{
    BranchLimits, Engine, EngineAnswer, EngineCommand, Event, Output, PeerSettings, ReplyTo, Settings,
    UncertainPolicy,
};
use model::{
    Dlr, DlrState, FinalState, LinkId, Message, MessageId, MessageKind, Moment, Now, Outcome, PeerId,
    PeerMessageId, RecoveredMessage, RecoveredRecord, Refusal, SubmitAttempt, SubmitTicket, Timestamp,
    WaitState,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// The number of subscriber numbers with serial delivery, the silent one included.
const FEW: usize = 14;

/// A message on a link, as the peer sees it.
struct OnLink {
    link: LinkId,
    message: Arc<Message>,
    leg: u8,
    want_dlr: bool,
}

/// A submission that a node that no longer leads may still write to its link, until a time.
struct StaleSend {
    until: u64,
    on_link: OnLink,
}

/// How long a leader may write to links after its last append, and how long its successor waits before it sends
/// uncertain messages again: milliseconds.
const STALE_LEADER_SENDS: u64 = 1_500;
const PREVIOUS_LEADER_SENDS: u64 = 1_650;

const LONG: Duration = Duration::from_secs(3 * 86_400);
const ACCOUNT: PeerId = PeerId(0);
const PEERS: [PeerId; 3] = [PeerId(1), PeerId(2), PeerId(3)];
/// The serial peer, if the plan has one.
const SERIAL: PeerId = PEERS[2];

pub(crate) struct World {
    random: Random,
    plan: Plan,
    seed: u64,
    engine: Engine,
    /// The tables, with all batches of the journal.
    disk: Disk,
    journal: SimulatedJournal,
    /// Used instead of `journal` if the plan has a cluster.
    cluster: Option<Cluster>,
    out: Output,
    mono: u64,
    wall: u64,
    links: Vec<(LinkId, PeerId)>,
    next_link: u64,
    on_links: Vec<OnLink>,
    stale_sends: Vec<StaleSend>,
    /// Pending load commands of the engine.
    loads: Vec<MessageId>,
    routes: Vec<Arc<Message>>,
    ledger_clients: LedgerClients,
    plugins: Plugins,
    receipts: Receipts,
    lookups: lookups::Lookups,
    /// DLRs that peers still have to send: peer, id, message.
    dlrs: Vec<(PeerId, PeerMessageId, Arc<Message>)>,
    next_peer_id: u64,
    /// The number of times that peers took each message.
    taken: HashMap<MessageId, u32>,
    /// The same for each leg.
    accepted_on_leg: HashMap<(MessageId, u8), u32>,
    /// Messages that may have been duplicated by uncertainty or a crash.
    possibly_duplicated: HashSet<MessageId>,
    /// Messages that a crash found as accepted: their earlier steps are in no trace.
    truncated: HashSet<MessageId>,
    acknowledged: Vec<MessageId>,
    /// Submissions under a key: the key of each token, and the first answer.
    keys_by_token: HashMap<u64, u64>,
    keyed: HashMap<u64, Vec<Result<MessageId, Refusal>>>,
    /// DLRs without an answer of the engine, by token.
    unanswered: HashMap<u64, (PeerId, Dlr)>,
    next_token: u64,
    /// Submit attempts by message, leg and ticket.
    tickets: HashSet<(MessageId, u8, SubmitTicket)>,
    /// Final DLRs that the account has taken, by message.
    final_dlrs: HashMap<MessageId, u32>,
    submitted: u64,
    final_dlr_requested: HashSet<MessageId>,
    healthy: bool,
    witness: Witness,
    queue_action_witness: queue_actions::Witness,
    screen_witness: screens::Witness,
    /// Late answers.
    late: Vec<(LinkId, MessageId)>,
    /// Messages answered late while another attempt was on that link.
    answered_late: HashSet<(LinkId, MessageId)>,
    pub(crate) commits: usize,
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan) -> Self {
        let mut world = Self {
            random: Random::new(seed),
            plan,
            seed,
            engine: Engine::new(Settings::default()),
            disk: Disk::default(),
            journal: SimulatedJournal::new(seed),
            cluster: plan.cluster.then(|| Cluster::new(seed)),
            out: Output::default(),
            mono: 1_000_000,
            wall: 1_795_000_000_000,
            links: Vec::new(),
            next_link: 1,
            on_links: Vec::new(),
            stale_sends: Vec::new(),
            loads: Vec::new(),
            routes: Vec::new(),
            ledger_clients: LedgerClients::default(),
            plugins: Plugins::new(plan.plugins),
            receipts: Receipts::new(plan.receipts),
            lookups: lookups::Lookups::default(),
            dlrs: Vec::new(),
            next_peer_id: 1,
            taken: HashMap::new(),
            accepted_on_leg: HashMap::new(),
            possibly_duplicated: HashSet::new(),
            truncated: HashSet::new(),
            acknowledged: Vec::new(),
            keys_by_token: HashMap::new(),
            keyed: HashMap::new(),
            unanswered: HashMap::new(),
            next_token: 1_000_000,
            tickets: HashSet::new(),
            final_dlrs: HashMap::new(),
            submitted: 0,
            final_dlr_requested: HashSet::new(),
            healthy: false,
            witness: Witness::default(),
            queue_action_witness: queue_actions::Witness::default(),
            screen_witness: screens::Witness::default(),
            late: Vec::new(),
            answered_late: HashSet::new(),
            commits: 0,
        };
        world.boot();
        if plan.senders {
            sender_numbers::set_up().into_iter().for_each(|event| world.apply(event));
        }
        world
    }

    fn now(&self) -> Now {
        Now { wall: Timestamp(self.wall), mono: Moment(self.mono) }
    }

    pub(crate) fn apply(&mut self, event: Event) {
        let now = self.now();
        self.screen_witness.note(&self.engine, &event);
        self.engine.apply(now, event, &mut self.out);
    }

    /// Starts an engine from the disk.
    fn boot(&mut self) {
        let settings = Settings {
            seed: self.random.next(),
            body_cache: self.plan.body_cache,
            orphan_dlr_retention: LONG,
            biller: true,
            resolver: self.plugins.resolver,
            delivery_policy: self.plugins.policy,
            receipt: self.receipts.bound,
            resolve_in_flight: plugins::IN_FLIGHT,
            resolve_cache_limit: 20,
            lookups_in_flight: lookups::IN_FLIGHT,
            previous_leader_sends: Duration::from_millis(
                self.cluster.as_ref().map_or(0, |_| PREVIOUS_LEADER_SENDS),
            ),
            ..Settings::default()
        };
        self.engine = Engine::new(settings);
        self.out = Output::default();
        self.links.clear();
        self.loads.clear();
        self.routes.clear();
        self.late.clear();
        self.answered_late.clear();
        self.witness.begin();
        self.queue_action_witness.begin();
        self.ledger_clients.crashed();
        self.plugins.unbind_all();
        self.receipts.crashed();
        self.lookups.crashed();
        if self.plan.pace {
            self.apply(Event::Pace(pace_limits::settings()));
        }
        let is_shop_charged = !self.plan.ledger || self.random.chance(70);
        let mut account = PeerSettings::new(ACCOUNT);
        account.addressee = true;
        account.sends_dlrs = false;
        account.uncertainty = UncertainPolicy::SendAgain;
        account.retry = vec![Duration::from_secs(2)];
        if self.plan.pace {
            account.submit_pace = pace_limits::of_account();
        }
        account.branch = self.branch_of(ACCOUNT, is_shop_charged);
        self.apply(Event::Peer(account));
        for peer in PEERS {
            let mut settings = PeerSettings::new(peer);
            settings.uncertainty = self.plan.uncertainty;
            settings.uncertain_limit = Duration::from_secs(600);
            // Longer than all jumps of the wall clock together.
            settings.dlr_timeout = LONG;
            settings.retry = vec![Duration::from_secs(1), Duration::from_secs(5)];
            settings.sends_dlrs = peer != PEERS[2];
            settings.serial = self.plan.serial && peer == SERIAL;
            settings.rate = (peer == PEERS[1]).then_some(50.0);
            settings.group = 7;
            if self.plan.pace {
                settings.send_pace = pace_limits::of_peer(peer);
            }
            settings.branch = self.branch_of(peer, is_shop_charged);
            settings.max_attempts = if peer == PEERS[1] { 4 } else { 0 };
            self.apply(Event::Peer(settings));
        }
        let mut newest: HashMap<MessageId, (SubmitAttempt, u64)> = HashMap::new();
        for (seq, row) in &self.disk.submit_attempts {
            for handed in row {
                newest.insert(handed.id, (*handed, *seq));
            }
        }
        let found: Vec<RecoveredMessage> = self
            .disk
            .messages
            .iter()
            .map(|(id, message)| RecoveredMessage {
                message: Message::clone(message),
                progress: self.disk.progress.get(id).cloned(),
                attempt: newest.get(id).map(|(handed, _)| *handed),
                submit_row: newest.get(id).map_or(0, |(_, seq)| *seq),
            })
            .collect();
        let now = self.now();
        for record in self.disk.idempotency_keys.values() {
            self.engine.recover_record(now, RecoveredRecord::IdempotencyKey(record.clone()));
        }
        for record in self.disk.orphan_dlrs.values() {
            self.engine.recover_record(now, RecoveredRecord::OrphanDlr(record.clone()));
        }
        for opt_out in &self.disk.stopped {
            self.engine.recover_record(now, RecoveredRecord::OptOut(opt_out.clone()));
        }
        for order in self.disk.queue_actions.values() {
            self.engine.recover_record(now, RecoveredRecord::QueueAction(order.clone()));
        }
        for day in self.disk.pace_days.values() {
            self.engine.recover_record(now, RecoveredRecord::PaceDay(day.clone()));
        }
        for found in self.disk.ledger_records() {
            self.engine.recover_record(now, found);
        }
        for found in self.disk.pools.records() {
            self.engine.recover_record(now, found);
        }
        for one in found {
            self.engine.recover(now, one, &mut self.out);
        }
        let rows: Vec<u64> = self.disk.submit_attempts.keys().copied().collect();
        self.engine.finish_recovery(self.disk.next_id, self.disk.next_submit_row, &rows, &mut self.out);
    }

    /// The limits of a submitter's branch.
    fn branch_of(&self, submitter: PeerId, is_shop_charged: bool) -> BranchLimits {
        let mut branch =
            if self.plan.pace { pace_limits::branch_of(submitter) } else { BranchLimits::default() };
        if self.plan.ledger {
            ledger::charge_branch(submitter, is_shop_charged, &mut branch);
        }
        branch
    }

    /// Loses everything but the disk.
    fn crash(&mut self) {
        if let Some(cluster) = &mut self.cluster {
            let paused = self.random.chance(40).then(|| {
                let engine = std::mem::replace(&mut self.engine, Engine::new(Settings::default()));
                (engine, std::mem::take(&mut self.out))
            });
            cluster.take_over(&mut self.disk, &mut self.random, paused);
        } else {
            let power_cut = self.plan.disk_faults && self.random.chance(50);
            for batch in self.journal.restart(power_cut) {
                self.disk.commit(batch);
                sender_numbers::check(&self.disk, self.seed);
            }
        }
        for flight in std::mem::take(&mut self.on_links) {
            self.possibly_duplicated.insert(flight.message.id);
        }
        // Messages taken without a committed outcome are uncertain too.
        for id in self.disk.submit_attempts.values().flatten().map(|handed| handed.id) {
            self.possibly_duplicated.insert(id);
        }
        // So are those whose link closed in the batch that took them, and whose commands never left.
        for (id, progress) in &self.disk.progress {
            if matches!(progress.waiting, WaitState::Uncertain { .. }) {
                self.possibly_duplicated.insert(*id);
            }
        }
        let accepted = self.disk.messages.keys().filter(|id| !self.disk.progress.contains_key(id));
        self.truncated.extend(accepted);
        self.keys_by_token.clear();
        self.boot();
        // Peers repeat unanswered DLRs.
        let mut again: Vec<_> = std::mem::take(&mut self.unanswered).into_iter().collect();
        again.sort_by_key(|(token, _)| *token);
        for (_, (peer, dlr)) in again {
            self.report_dlr(peer, dlr);
        }
    }

    pub(crate) fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    /// Commits the gathered batch, and releases its commands. Ends a run of events.
    fn settle(&mut self) {
        let now = self.now();
        self.engine.advance(now, &mut self.out);
        if self.plan.serial {
            self.witness.check(&self.engine, &self.disk, &self.out, SERIAL, &self.links, self.seed);
        }
        if self.plan.queue_actions {
            let when = (Timestamp(self.wall), self.seed);
            self.queue_action_witness.check(&self.engine, &self.disk, &self.out, &self.links, when);
        }
    }

    pub(crate) fn commit(&mut self) {
        self.settle();
        if self.out.is_empty() {
            return;
        }
        self.engine.seal(&mut self.out);
        let Output { batch, commands, .. } = std::mem::take(&mut self.out);
        self.witness.begin();
        self.queue_action_witness.begin();
        if self.plan.disk_faults && !self.healthy && self.random.chance(4) {
            self.journal.plan_fault(self.random.next() % 4, self.random.chance(50));
        }
        self.commits += 1;
        let appended = match &mut self.cluster {
            Some(cluster) => {
                if !self.healthy && self.random.chance(6) {
                    cluster.plan_faults(&mut self.random);
                }
                if self.random.chance(10) {
                    cluster.wake_stale(&mut self.random);
                }
                cluster.append(&batch)
            }
            None => self.journal.append(&batch),
        };
        match appended {
            Ok(batch) => self.disk.commit(batch),
            // Nothing of the batch leaves; the next start finds it in the journal, or not.
            Err(_) => return self.crash(),
        }
        sender_numbers::check(&self.disk, self.seed);
        if let Some(cluster) = &mut self.cluster
            && self.random.chance(50)
        {
            cluster.follow(self.random.below(8), &self.disk);
        }
        if self.commits.is_multiple_of(7) && self.journal.checkpoint().is_err() {
            return self.crash();
        }
        let crash = self.plan.crash_at.filter(|(commit, _)| commit + 1 == self.commits);
        match crash {
            // Submitters without an answer do not know of the acceptance, and uncommitted attempts never left.
            Some((_, true)) => self.crash_holding(commands),
            Some((_, false)) => {
                self.leave(commands);
                self.crash();
            }
            None if self.cluster.is_some() && self.plan.crashes && !self.healthy && self.random.chance(2) => {
                self.crash_holding(commands);
            }
            None => self.leave(commands),
        }
    }

    /// A crash before the commands of a durable batch leave. In a cluster, a leader that has lost its place may have
    /// them on its links for a while and write some of them, while another node has taken over.
    fn crash_holding(&mut self, commands: Vec<EngineCommand>) {
        // A link that closed before the commit writes nothing.
        let open: Vec<LinkId> = self.links.iter().map(|(link, _)| *link).collect();
        self.crash();
        if self.cluster.is_none() {
            return;
        }
        for command in commands {
            if self.random.chance(50) {
                continue;
            }
            match command {
                EngineCommand::Send { link, message, leg, want_dlr, .. } if open.contains(&link) => {
                    let is_dlr = matches!(message.kind, MessageKind::Dlr(_));
                    let (id, seed) = (message.id, self.seed);
                    assert!(
                        is_dlr || self.possibly_duplicated.contains(&id),
                        "seed {seed}: {id:?} left and is not in doubt"
                    );
                    // Its last append was now.
                    let until = self.mono + STALE_LEADER_SENDS;
                    let on_link = OnLink { link, message, leg, want_dlr };
                    self.stale_sends.push(StaleSend { until, on_link });
                }
                EngineCommand::Answer { answer: EngineAnswer::Accepted(id), .. } => {
                    self.acknowledged.push(id);
                }
                _ => {}
            }
        }
    }

    /// A leader that has lost its place writes a message to a link, if it may still do so.
    fn stale_send(&mut self) {
        let now = self.mono;
        self.stale_sends.retain(|send| send.until >= now);
        if !self.stale_sends.is_empty() {
            let send = self.stale_sends.swap_remove(self.random.below(self.stale_sends.len()));
            self.take(&send.on_link);
        }
    }

    /// Releases the commands of a durable batch.
    fn leave(&mut self, commands: Vec<EngineCommand>) {
        for command in commands {
            match command {
                EngineCommand::Send { link, message, want_dlr, ticket, leg, .. } => {
                    let peer = self.links.iter().find(|(known, _)| *known == link).map(|(_, peer)| *peer);
                    Plugins::sent(&message, leg, peer);
                    self.screen_witness.sent(&message);
                    lookups::sent(&message);
                    assert!(
                        !self
                            .stale_sends
                            .iter()
                            .any(|stale| stale.until >= self.mono && stale.on_link.message.id == message.id),
                        "seed {}: {:?} is sent while the previous leader may send it",
                        self.seed,
                        message.id
                    );
                    if !self.tickets.insert((message.id, leg, ticket)) {
                        let (id, seed) = (message.id, self.seed);
                        let own = matches!(message.kind, MessageKind::Dlr(_));
                        assert!(
                            own || self.possibly_duplicated.contains(&id),
                            "seed {seed}: {id:?} repeats {ticket:?}"
                        );
                    }
                    if self.links.iter().any(|(known, _)| *known == link) {
                        if self.answered_late.remove(&(link, message.id)) {
                            let outcome = Outcome::Accepted { ids: Vec::new() };
                            self.apply(Event::Outcome { link, id: message.id, outcome });
                            continue;
                        }
                        self.one_at_a_time(&message, leg, link);
                        self.on_links.push(OnLink { link, message, leg, want_dlr });
                    } else {
                        // Its link went down first: the engine cannot know that it was never sent.
                        self.possibly_duplicated.insert(message.id);
                    }
                }
                EngineCommand::Answer { to, answer } => match answer {
                    EngineAnswer::Accepted(id) => self.acknowledged.push(id),
                    EngineAnswer::AcceptedMany(results) => {
                        let Some(key) = self.keys_by_token.remove(&to.token) else { continue };
                        if results.iter().all(Result::is_err) {
                            continue;
                        }
                        if let Some(first) = self.keyed.get(&key) {
                            assert_eq!(first, &results, "seed {}: key {key} answered twice", self.seed);
                        } else {
                            self.acknowledged.extend(results.iter().flatten());
                            self.keyed.insert(key, results);
                        }
                    }
                    EngineAnswer::DlrRecorded => {
                        assert!(self.unanswered.remove(&to.token).is_some(), "a DLR answered twice");
                    }
                    EngineAnswer::Refused(refusal) => {
                        assert!(!matches!(refusal, Refusal::Internal), "an internal fault");
                    }
                    EngineAnswer::Ledger(answer) => {
                        self.ledger_clients.answered(to.token, answer, &self.disk);
                    }
                    _ => {}
                },
                EngineCommand::NotifyBiller { settlements } => self.ledger_clients.notify(settlements),
                EngineCommand::AskLookup { number } => self.lookups.note_question(number),
                EngineCommand::Resolve { msisdn } => self.plugins.note_query(msisdn),
                EngineCommand::Decide { message, attempt } => {
                    self.plugins.note_decision_request(&message, attempt, &self.disk);
                }
                EngineCommand::AskReceipt { message, question, submission, event } => {
                    self.receipts.note(&message, question, submission, event);
                }
                EngineCommand::Load { ids } => self.loads.extend(ids),
                EngineCommand::Reroute { message } => self.routes.push(message),
                EngineCommand::QueryPeer { id, message, .. } => {
                    let known = self.taken.get(&message.id).is_some_and(|count| *count > 0);
                    let dlr = known
                        .then(|| self.receipt_of(&message, PeerMessageId::default(), DlrState::Delivered));
                    self.apply(Event::QueryResult { id, dlr });
                }
                EngineCommand::LookUp { id, .. } => {
                    assert!(!self.disk.waits(id), "seed {}: {id:?} is looked for, and waits", self.seed);
                }
                EngineCommand::Refused(_)
                | EngineCommand::SubscriberReachable { .. }
                | EngineCommand::Flushed { .. } => {}
            }
        }
    }

    pub(crate) fn step(&mut self) {
        match self.random.below(100) {
            0..2 if self.plan.ledger => self.operate(),
            2..8 if self.plan.queue_actions => self.random_queue_action(),
            8..12 if self.plan.screens => {
                let event = screens::random_event(&mut self.random, &self.engine);
                self.apply(event);
            }
            2 if self.plan.serial && self.plan.plugins => self.number_learnt(),
            2..6 if self.plan.serial => self.random_alert(),
            6..8 if !self.late.is_empty() => self.late_answer(),
            0..24 => self.submit(),
            24..30 => self.submit_keyed(),
            30..55 if !self.on_links.is_empty() => {
                let index = self.random.below(self.on_links.len());
                self.answer(index);
            }
            55..65 if !self.dlrs.is_empty() => {
                let index = self.random.below(self.dlrs.len());
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
            74..76 => self.send_random_request(),
            76..78 => {
                let jump = self.random.below(7_200_000) as u64;
                self.wall = if self.random.chance(50) { self.wall + jump } else { self.wall - jump };
            }
            84 if !self.stale_sends.is_empty() => self.stale_send(),
            78..83 if self.plan.receipts => {
                if let Some(event) = self.receipts.decide(&mut self.random, false) {
                    self.apply(event);
                }
            }
            78..85 => self.answer_questions(),
            86 => self.answer_biller(),
            93..96 if self.plan.senders => {
                let event = sender_numbers::random_event(&mut self.random);
                self.apply(event);
            }
            87..90 if self.plan.lookups => self.answer_lookup(),
            87..93 if self.plan.plugins => self.random_plugin_event(),
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
        for id in &self.acknowledged {
            if let Some(message) = self.disk.messages.get(id)
                && message.dlr_request.any()
                && message.origin == ACCOUNT
            {
                self.final_dlr_requested.insert(*id);
            }
        }
    }

    /// The numbers of days on which a pace bucket, and a day quota, was exhausted.
    pub(crate) fn exhausted_days(&self) -> (usize, usize) {
        self.disk.pace.exhausted()
    }

    pub(crate) fn finish(&mut self) {
        self.healthy = true;
        if self.plan.disk_faults {
            // A fault of which no append has failed yet would end the process later and close the links.
            self.crash();
        }
        self.journal.recover();
        if let Some(cluster) = &self.cluster {
            cluster.recover();
        }
        while !self.stale_sends.is_empty() {
            self.stale_send();
        }
        queue_actions::withdraw_all(&self.engine).into_iter().for_each(|event| self.apply(event));
        for peer in [ACCOUNT, PEERS[0], PEERS[1], PEERS[2]] {
            self.link_up(peer);
        }
        if self.plan.plugins {
            self.reroute(true, true);
        }
        if self.plan.senders {
            sender_numbers::set_up().into_iter().for_each(|event| self.apply(event));
        }
        for _ in 0..60_000 {
            screens::release_all(&self.engine).into_iter().for_each(|event| self.apply(event));
            self.answer_questions();
            self.answer_biller();
            for _ in 0..plugins::IN_FLIGHT {
                self.resolve();
            }
            for _ in 0..lookups::IN_FLIGHT {
                self.answer_lookup();
            }
            while let Some(event) = self.plugins.decide(&mut self.random, true) {
                self.apply(event);
            }
            while let Some(event) = self.receipts.decide(&mut self.random, true) {
                self.apply(event);
            }
            while !self.on_links.is_empty() {
                self.answer(0);
            }
            while !self.dlrs.is_empty() {
                self.send_receipt(0);
            }
            self.commit();
            if self.engine.live() == 0 && self.engine.unsettled() == 0 && self.out.is_empty() {
                break;
            }
            // To the next deadline, and a little at a time.
            let next =
                self.engine.deadline().map_or(1_000, |at| at.0.saturating_sub(self.mono).clamp(1, 60_000));
            let quiet = self.on_links.is_empty() && self.loads.is_empty() && self.routes.is_empty();
            // Some numbers are never answered: their messages wait until their validity ends.
            let longest = if self.plan.plugins { 60_000 } else { 10_000 };
            let next = if quiet { next.max(longest) } else { next };
            self.mono += next;
            self.wall += next;
        }
        let seed = self.seed;
        if let Some(cluster) = &mut self.cluster {
            cluster.check_end(&self.disk);
        }
        self.ledger_clients.check_end(&self.disk, seed);
        sender_numbers::check_end(&self.disk, seed);
        queue_actions::check_end(&self.disk, seed);
        assert_eq!(self.engine.senders(), (0, 0), "seed {seed}");
        assert_eq!(self.engine.live(), 0, "seed {seed}: messages are stuck");
        assert!(self.disk.messages.is_empty(), "seed {seed}: messages are left on disk");
        assert!(self.disk.progress.is_empty(), "seed {seed}: progress is left on disk");
        assert!(
            self.disk.submit_attempts.is_empty(),
            "seed {seed}: {} attempt rows are left",
            self.disk.submit_attempts.len()
        );
        assert_eq!(
            (
                self.engine.resolver_status().messages,
                self.engine.pending_decisions(),
                self.engine.pending_receipts(),
                self.engine.lookup_status().messages,
            ),
            (0, 0, 0, 0),
            "seed {seed}"
        );
        let left = self
            .engine
            .peers()
            .iter()
            .map(|peer| peer.subscriber_locked + peer.blocked_subscribers + peer.suspended)
            .sum::<u64>();
        assert_eq!(left, 0, "seed {seed}: behind a lock or blocked");
        for (id, ended) in self.disk.finished.iter().chain(&self.disk.archived) {
            plugins::check_trace(*id, ended, self.plan.serial, self.truncated.contains(id));
        }
        for id in &self.acknowledged {
            let ended = self.disk.finished.get(id).or_else(|| self.disk.archived.get(id));
            let ended =
                ended.unwrap_or_else(|| panic!("seed {seed}: {id:?} was accepted and has no final record"));
            let taken = self.taken.get(id).copied().unwrap_or(0);
            // DLRs are repeated until they are answered, and uncertain messages are sent again.
            // A receipt policy may disbelieve the only DLR.
            if self.plan.uncertainty == UncertainPolicy::SendAgain && !self.plan.receipts {
                assert!(
                    ended.state != FinalState::Unknown,
                    "seed {seed}: {id:?} ended as unknown: {ended:?}"
                );
            }
            // A DLR of another message with the same two addresses may settle an uncertain one.
            if matches!(ended.state, FinalState::Delivered | FinalState::Relayed)
                && !self.possibly_duplicated.contains(id)
            {
                assert!(taken > 0, "seed {seed}: {id:?} is called {:?} and no peer has it", ended.state);
            }
            if !self.possibly_duplicated.contains(id) {
                let on_leg = |leg| self.accepted_on_leg.get(&(*id, leg)).copied().unwrap_or(0);
                let most = if self.plan.receipts { (0..8).map(on_leg).max().unwrap_or(0) } else { taken };
                assert!(most <= 1, "seed {seed}: {id:?} went out {most} times without being uncertain");
            }
        }
        let unique: HashSet<_> = self.acknowledged.iter().collect();
        assert_eq!(unique.len(), self.acknowledged.len(), "seed {seed}: an id was given out twice");
        for (of, count) in &self.final_dlrs {
            assert!(
                *count == 1 || self.plan.crashes || self.plan.drops || self.plan.silence || self.plan.cluster,
                "seed {seed}: {count} final DLRs for {of:?}"
            );
        }
        for id in self.final_dlr_requested.iter().filter(|_| !self.purges()) {
            assert!(
                self.final_dlrs.contains_key(id),
                "seed {seed}: {id:?} ended and its submitter was not told"
            );
        }
    }
}

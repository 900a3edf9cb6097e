use crate::pool_disk::PoolDisk;
use bytes::Bytes;
use engine::{
    BranchLimits, Engine, EngineAnswer, EngineCommand, Event, Output, PaceNames, PaceSettings, PeerSettings,
    PeerStatus, ReplyTo, Settings, UncertainPolicy,
};
use model::{
    AcceptedSubmission, Address, AddressBytes, Attempt, FinalRecord, Imsi, Leg, LinkId, LookupNumber,
    Message, MessageId, MessageProgress, Moment, Now, OrphanDlrRecord, Outcome, PaceDay, PeerId,
    PluginVersion, QueueAction, QueueActionId, ReceiptEvent, RecoveredMessage, RecoveredRecord, Refusal,
    Resolution, RoutingDecision, StepKind, SubmitAttempt, SubmitTicket, Subscriber, Text, Timestamp, Verdict,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ACCOUNT: PeerId = PeerId(0);
pub(crate) const FIRST: PeerId = PeerId(1);
pub(crate) const SECOND: PeerId = PeerId(2);
/// A serial peer.
pub(crate) const SERIAL: PeerId = PeerId(3);
/// The validity of every message.
pub(crate) const VALIDITY: Duration = Duration::from_secs(7_200);
pub(crate) const REPLY: ReplyTo = ReplyTo { link: LinkId(9), token: 1 };

/// An engine, its disk, and the commands that left.
pub(crate) struct EngineFixture {
    pub(crate) engine: Engine,
    settings: Settings,
    pub(crate) now: Now,
    pub(crate) messages: BTreeMap<MessageId, Arc<Message>>,
    progress: HashMap<MessageId, MessageProgress>,
    submit_attempts: BTreeMap<u64, Vec<SubmitAttempt>>,
    pub(crate) finished: BTreeMap<MessageId, FinalRecord>,
    next_id: MessageId,
    pub(crate) pools: PoolDisk,
    /// Orphan DLRs on disk, by number.
    orphan_dlrs: BTreeMap<u64, OrphanDlrRecord>,
    /// Opt-outs on disk.
    stopped: Vec<model::OptOut>,
    /// Held messages that wait for routing.
    pub(crate) routes: Vec<Arc<Message>>,
    /// Pending queries of the resolver.
    pub(crate) questions: Vec<AddressBytes>,
    /// Pending questions of the lookups.
    pub(crate) lookups: Vec<LookupNumber>,
    /// Pending decisions of the policy.
    pub(crate) decisions: Vec<(MessageId, Attempt)>,
    /// Questions to the receipt policy without an answer.
    pub(crate) receipts: Vec<(MessageId, u64, AcceptedSubmission, ReceiptEvent)>,
    /// Peers send DLRs.
    sends_dlrs: bool,
    /// Messages sent on links, in order.
    pub(crate) sent: Vec<(PeerId, Arc<Message>, u8)>,
    /// The same messages: whether another message waits, and the ticket.
    pub(crate) left: Vec<(MessageId, bool, SubmitTicket)>,
    /// The times at which messages left, across restarts.
    pub(crate) left_at: Vec<Timestamp>,
    pub(crate) answers: Vec<EngineAnswer>,
    /// The requests whose DLRs are recorded.
    pub(crate) recorded_dlrs: Vec<ReplyTo>,
    /// The alerts for other partitions, with the peer of the link.
    pub(crate) alerts: Vec<(PeerId, Imsi)>,
    /// Lookups of messages that are not in memory.
    pub(crate) look_ups: Vec<EngineCommand>,
    /// The number of messages per load command.
    pub(crate) loads: Vec<usize>,
    /// The counts of pace buckets on disk.
    pub(crate) pace_days: BTreeMap<Arc<str>, PaceDay>,
    /// Pace buckets and send windows, from the next start on; the peers that name them for messages sent to them, and the
    /// accounts for messages that they submit.
    pub(crate) pace: PaceSettings,
    pub(crate) send_pace: HashMap<PeerId, PaceNames>,
    pub(crate) submit_pace: HashMap<PeerId, PaceNames>,
    /// Other peers, or other settings, from the next start on.
    pub(crate) peers: Vec<PeerSettings>,
    /// Limits of submitters and of their tenants.
    pub(crate) branches: HashMap<PeerId, BranchLimits>,
    pub(crate) queue_actions: BTreeMap<QueueActionId, QueueAction>,
    /// The greatest numbers of finished and of replaced messages in one batch.
    pub(crate) most: (usize, usize),
    /// With a slow disk, loaded content waits here.
    pub(crate) held: Option<Vec<Event>>,
}

impl EngineFixture {
    pub(crate) fn new(settings: Settings) -> Self {
        Self::with_dlrs(settings, false)
    }

    /// A fixture whose peers send DLRs, or do not.
    pub(crate) fn with_dlrs(settings: Settings, sends_dlrs: bool) -> Self {
        let now = Now { wall: Timestamp(1_795_000_000_000), mono: Moment(1_000_000) };
        let mut fixture = Self {
            engine: Engine::new(settings.clone()),
            settings,
            now,
            messages: BTreeMap::new(),
            progress: HashMap::new(),
            submit_attempts: BTreeMap::new(),
            finished: BTreeMap::new(),
            next_id: MessageId::FIRST,
            pools: PoolDisk::default(),
            orphan_dlrs: BTreeMap::new(),
            stopped: Vec::new(),
            routes: Vec::new(),
            questions: Vec::new(),
            lookups: Vec::new(),
            decisions: Vec::new(),
            receipts: Vec::new(),
            sends_dlrs,
            sent: Vec::new(),
            left: Vec::new(),
            left_at: Vec::new(),
            answers: Vec::new(),
            recorded_dlrs: Vec::new(),
            alerts: Vec::new(),
            look_ups: Vec::new(),
            loads: Vec::new(),
            pace_days: BTreeMap::new(),
            pace: PaceSettings::default(),
            send_pace: HashMap::new(),
            submit_pace: HashMap::new(),
            peers: Vec::new(),
            branches: HashMap::new(),
            queue_actions: BTreeMap::new(),
            most: (0, 0),
            held: None,
        };
        fixture.boot();
        fixture
    }

    fn boot(&mut self) {
        self.engine = Engine::new(self.settings.clone());
        let mut account = PeerSettings::new(ACCOUNT);
        (account.addressee, account.sends_dlrs, account.opt_out) = (true, false, true);
        let mut out = Output::default();
        account.submit_pace = self.submit_pace.get(&ACCOUNT).cloned().unwrap_or_default();
        account.branch = self.branches.get(&ACCOUNT).cloned().unwrap_or_default();
        self.engine.apply(self.now, Event::Pace(self.pace.clone()), &mut out);
        self.engine.apply(self.now, Event::Peer(account), &mut out);
        for peer in [FIRST, SECOND, SERIAL] {
            let mut settings = PeerSettings::new(peer);
            settings.sends_dlrs = self.sends_dlrs;
            settings.uncertainty = UncertainPolicy::SendAgain;
            settings.retry = vec![Duration::from_secs(10)];
            settings.serial = peer == SERIAL;
            settings.send_pace = self.send_pace.get(&peer).cloned().unwrap_or_default();
            settings.branch = self.branches.get(&peer).cloned().unwrap_or_default();
            self.engine.apply(self.now, Event::Peer(settings), &mut out);
        }
        for settings in &self.peers {
            self.engine.apply(self.now, Event::Peer(settings.clone()), &mut out);
        }
        let newest: HashMap<MessageId, (SubmitAttempt, u64)> = self
            .submit_attempts
            .iter()
            .flat_map(|(seq, row)| row.iter().map(|handed| (handed.id, (*handed, *seq))))
            .collect();
        let stopped = self.stopped.iter().cloned().map(RecoveredRecord::OptOut);
        let queue_actions = self.queue_actions.values().cloned().map(RecoveredRecord::QueueAction);
        let pace_days = self.pace_days.values().cloned().map(RecoveredRecord::PaceDay);
        let orphan_dlrs = self.orphan_dlrs.values().cloned().map(RecoveredRecord::OrphanDlr);
        let records = stopped.chain(queue_actions).chain(pace_days).chain(orphan_dlrs);
        for found in records.chain(self.pools.records()) {
            self.engine.recover_record(self.now, found);
        }
        for (id, message) in &self.messages {
            let progress = self.progress.get(id).cloned();
            let message = Message::clone(message);
            let handed = newest.get(id).map(|(handed, _)| *handed);
            let submit_row = newest.get(id).map_or(0, |(_, seq)| *seq);
            let found = RecoveredMessage { message, progress, attempt: handed, submit_row };
            self.engine.recover(self.now, found, &mut out);
        }
        let rows: Vec<u64> = self.submit_attempts.keys().copied().collect();
        let next = rows.last().map_or(1, |last| last + 1);
        self.engine.finish_recovery(self.next_id, next, &rows, &mut out);
        self.apply_output(out);
    }

    /// Restarts the engine from the disk.
    pub(crate) fn crash(&mut self) {
        self.sent.clear();
        self.left.clear();
        self.questions.clear();
        self.lookups.clear();
        self.decisions.clear();
        self.receipts.clear();
        self.routes.clear();
        self.boot();
    }

    /// Loses the messages but keeps the other records, as no real disk does.
    pub(crate) fn lose_messages(&mut self) {
        self.messages.clear();
        self.progress.clear();
        self.submit_attempts.clear();
    }

    pub(crate) fn run(&mut self, events: impl IntoIterator<Item = Event>) {
        let mut out = Output::default();
        for event in events {
            self.engine.apply(self.now, event, &mut out);
        }
        self.apply_output(out);
    }

    pub(crate) fn apply_output(&mut self, mut out: Output) {
        loop {
            self.engine.advance(self.now, &mut out);
            self.engine.seal(&mut out);
            let mut next = Output::default();
            for event in self.commit(std::mem::take(&mut out)) {
                self.engine.apply(self.now, event, &mut next);
            }
            if next.is_empty() && self.engine.deadline().is_none_or(|at| at > self.now.mono) {
                // Loaded content may have moved messages.
                self.engine.advance(self.now, &mut next);
                if next.is_empty() {
                    break;
                }
            }
            out = next;
        }
    }

    fn commit(&mut self, out: Output) -> Vec<Event> {
        let Output { batch, commands, .. } = out;
        self.pools.commit(batch.pools);
        self.most.0 = self.most.0.max(batch.finished.len());
        self.most.1 = self.most.1.max(batch.replaced.len());
        self.queue_actions.extend(batch.queue_actions.into_iter().map(|action| (action.id, action)));
        for id in batch.queue_actions_done {
            self.queue_actions.remove(&id);
        }
        self.orphan_dlrs.extend(batch.orphan_dlrs.into_iter().map(|record| (record.number, record)));
        for number in batch.orphan_dlrs_done {
            self.orphan_dlrs.remove(&number);
        }
        for day in batch.pace_days {
            if day.used == 0 {
                self.pace_days.remove(&day.bucket);
            } else {
                self.pace_days.insert(day.bucket.clone(), day);
            }
        }
        for (opt_out, stop) in batch.opt_outs {
            self.stopped.retain(|other| *other != opt_out);
            self.stopped.extend(stop.then_some(opt_out));
        }
        if !batch.accepted.is_empty() {
            self.next_id = batch.next_id;
        }
        for message in batch.accepted.into_iter().chain(batch.replaced) {
            self.messages.insert(message.id, message);
        }
        self.progress.extend(batch.progress);
        if !batch.submit_attempts.is_empty() {
            self.submit_attempts.insert(batch.submit_row, batch.submit_attempts);
        }
        for seq in batch.submit_rows_done {
            self.submit_attempts.remove(&seq);
        }
        for id in batch.dropped {
            assert!(self.messages.remove(&id).is_some(), "{id:?} dropped and not on disk");
            self.progress.remove(&id);
        }
        for (id, ended) in batch.finished {
            assert!(self.messages.remove(&id).is_some(), "{id:?} ended and not on disk");
            self.progress.remove(&id);
            assert!(self.finished.insert(id, ended).is_none(), "{id:?} ended twice");
        }
        let mut events = Vec::new();
        for command in commands {
            match command {
                EngineCommand::Send { link, message, leg, more, ticket, .. } => {
                    self.left.push((message.id, more, ticket));
                    self.left_at.push(self.now.wall);
                    self.sent.push((PeerId(u32::try_from(link.0).unwrap()), message, leg));
                }
                EngineCommand::Resolve { msisdn } => {
                    assert!(!self.questions.contains(&msisdn), "{msisdn:?} has two queries at a time");
                    self.questions.push(msisdn);
                }
                EngineCommand::AskLookup { number } => {
                    assert!(!self.lookups.contains(&number), "{number:?} is asked twice at a time");
                    self.lookups.push(number);
                }
                EngineCommand::Decide { message, attempt } => self.decisions.push((message.id, attempt)),
                EngineCommand::AskReceipt { message, question, submission, event } => {
                    self.receipts.push((message.id, question, submission, event));
                }
                EngineCommand::Load { ids } => {
                    self.loads.push(ids.len());
                    for id in ids {
                        events.push(Event::Loaded { id, message: self.messages.get(&id).cloned() });
                    }
                }
                EngineCommand::Answer { to, answer } => {
                    if answer == EngineAnswer::DlrRecorded {
                        self.recorded_dlrs.push(to);
                    }
                    self.answers.push(answer);
                }
                EngineCommand::SubscriberReachable { link, imsi } => {
                    self.alerts.push((PeerId(u32::try_from(link.0).unwrap()), imsi));
                }
                EngineCommand::Reroute { message } => self.routes.push(message),
                look_up @ EngineCommand::LookUp { .. } => self.look_ups.push(look_up),
                EngineCommand::Refused(_) => {}
                other => panic!("{other:?} is unexpected"),
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

    /// The id of a link is the number of its peer.
    pub(crate) fn link_up(&mut self, peer: PeerId, window: u32) {
        self.run([Event::LinkUp { link: LinkId(peer.0.into()), peer, window }]);
    }

    /// Advances the time, from one deadline to the next.
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
            Some(EngineAnswer::Accepted(id)) => Ok(id),
            Some(EngineAnswer::Refused(refusal)) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    /// Answers every pending query with this result.
    pub(crate) fn answer_all(&mut self, subscriber: &Subscriber) {
        let questions = std::mem::take(&mut self.questions);
        self.run(questions.into_iter().map(|msisdn| resolved(&msisdn, subscriber.clone())));
    }

    /// Applies the outcome to all messages on links.
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

    /// Delivers all messages, with all peers and the resolver well-behaved.
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

    /// The steps of a finished message.
    pub(crate) fn steps(&self, id: MessageId) -> Vec<StepKind> {
        self.finished[&id].steps.iter().map(|step| step.kind.clone()).collect()
    }

    pub(crate) fn message_on_disk(&self, id: MessageId) -> &Message {
        &self.messages[&id]
    }

    pub(crate) fn progress_on_disk(&self, id: MessageId) -> Option<&MessageProgress> {
        self.progress.get(&id)
    }

    pub(crate) fn status(&self, peer: PeerId) -> PeerStatus {
        self.engine.peers().into_iter().find(|status| status.peer == peer).unwrap()
    }

    /// Applies the outcome to one message, which must be on its link.
    pub(crate) fn answer(&mut self, id: MessageId, outcome: Outcome) {
        let index = self.sent.iter().position(|(_, message, _)| message.id == id).unwrap();
        let (peer, _, _) = self.sent.remove(index);
        self.run([Event::Outcome { link: LinkId(peer.0.into()), id, outcome }]);
    }

    /// The ids of the messages on links, in the order of sending.
    pub(crate) fn on_links(&self) -> Vec<MessageId> {
        self.sent.iter().map(|(_, message, _)| message.id).collect()
    }

    pub(crate) fn all_different(&self) -> bool {
        let ids: HashSet<_> = self.sent.iter().map(|(_, message, _)| message.id).collect();
        ids.len() == self.sent.len()
    }
}

pub(crate) fn by() -> Arc<PluginVersion> {
    Arc::new(PluginVersion { plugin: "test".to_owned(), version: "1".to_owned() })
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

/// A leg that requires the subscriber.
pub(crate) fn subscriber_leg(peer: PeerId) -> Leg {
    Leg { resolve: true, ..Leg::to(peer) }
}

/// The legs are tried in the given order.
pub(crate) fn message(number: &str, mut legs: Vec<Leg>) -> Message {
    for (rank, leg) in legs.iter_mut().enumerate() {
        leg.rank = u8::try_from(rank).unwrap();
    }
    Message::new(
        ACCOUNT,
        Address::new(0, 1, b"10655"),
        Address::international(number),
        Text { octets: Bytes::from_static(b"text"), ..Text::default() },
        Timestamp(1_795_000_000_000 + u64::try_from(VALIDITY.as_millis()).unwrap()),
        RoutingDecision::new(Verdict::Forward(legs), by()),
    )
}

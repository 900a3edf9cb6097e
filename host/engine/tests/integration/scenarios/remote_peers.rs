//! Two engines: the messages are in one partition, and the links to their peer in another, its home. The peer is an SMSC or a
//! core network.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, REPLY, SECOND, imsi, message};
use crate::simulation::seeds_of;
use engine::{EngineAnswer, Event, PeerSettings, ReplyTo, Settings, UncertainPolicy};
use model::{
    AddressBytes, Dlr, DlrRequest, DlrState, ErrorClass, FinalState, Imsi, Leg, LinkId, Message, MessageId,
    MessageKind, Outcome, PeerId, PeerMessageId, Random, RemoteAttempt, RoutingDecision,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The account of the partition at the home.
const PARTITION: PeerId = PeerId(4);
/// The links to the peer at the home and to the home in the partition, and the link of the account.
const PEER_LINK: LinkId = LinkId(1);
const ACCOUNT_LINK: LinkId = LinkId(4);
const ORIGIN_LINK: LinkId = LinkId(1);

/// Both partitions, the connection between them, and the peer.
struct World {
    origin: EngineFixture,
    home: EngineFixture,
    random: Random,
    /// The peer is a core network: it sends no DLRs, and gets one message at a time for each subscriber.
    is_network: bool,
    is_connected: bool,
    /// The messages that the peer has accepted, by the id at the origin.
    accepted: BTreeSet<MessageId>,
    /// The last message that a subscriber of the core network has accepted.
    last: BTreeMap<AddressBytes, MessageId>,
    /// DLRs that the peer still has to send.
    dlrs: Vec<Dlr>,
    /// DLRs that the home has not answered, by the number of their request. The peer sends them again when its link is lost.
    unanswered_dlrs: BTreeMap<u64, Dlr>,
    /// Outcomes and DLRs that the home has sent on the connection, and the origin has not confirmed.
    unconfirmed: BTreeSet<MessageId>,
    next_request: u64,
    submitted: u32,
}

impl World {
    fn new(seed: u64, is_network: bool) -> Self {
        // Longer than all faults together: a DLR that is not matched in time would end its message as unknown.
        let settings =
            || Settings { orphan_dlr_retention: Duration::from_secs(1_000), ..Settings::default() };
        let mut origin = EngineFixture::with_dlrs(settings(), true);
        origin.peers = vec![
            // It wants no DLRs itself.
            PeerSettings::new(ACCOUNT),
            PeerSettings {
                remote: true,
                uncertainty: UncertainPolicy::SendAgain,
                retry: vec![Duration::from_secs(10)],
                ..peer(is_network)
            },
        ];
        let mut home = EngineFixture::with_dlrs(settings(), true);
        home.peers = vec![
            peer(is_network),
            PeerSettings {
                addressee: true,
                sends_dlrs: false,
                partition_account: true,
                alerts_of: is_network.then_some(FIRST),
                uncertainty: UncertainPolicy::SendAgain,
                queue_limit: u64::MAX,
                segment_dlrs: true,
                retry: vec![Duration::from_secs(1)],
                ..PeerSettings::new(PARTITION)
            },
        ];
        origin.crash();
        home.crash();
        home.link_up(FIRST, 10);
        let mut world = Self {
            origin,
            home,
            random: Random::new(seed),
            is_network,
            is_connected: false,
            accepted: BTreeSet::new(),
            last: BTreeMap::new(),
            dlrs: Vec::new(),
            unanswered_dlrs: BTreeMap::new(),
            unconfirmed: BTreeSet::new(),
            next_request: 0,
            submitted: 0,
        };
        world.connect();
        world
    }

    fn connect(&mut self) {
        if !self.is_connected {
            self.is_connected = true;
            self.home.link_up(PARTITION, 20);
            self.origin.link_up(FIRST, 20);
        }
    }

    fn disconnect(&mut self) {
        if self.is_connected {
            self.is_connected = false;
            self.unconfirmed.clear();
            self.origin.sent.clear();
            self.home.sent.retain(|(peer, ..)| *peer != PARTITION);
            self.origin.run([Event::LinkDown { link: PEER_LINK }]);
            self.home.run([Event::LinkDown { link: ACCOUNT_LINK }]);
        }
    }

    fn submit(&mut self) {
        // A core network has few subscribers, so that messages wait for each other.
        let number = if self.is_network { self.submitted % 5 } else { self.submitted };
        self.submitted += 1;
        let leg = Leg { imsi: self.is_network.then(|| subscriber(number)), ..Leg::to(FIRST) };
        let dlr_request = DlrRequest::FINAL;
        let asks = Message { dlr_request, ..message(&format!("4917{number:08}"), vec![leg]) };
        self.origin.submit(asks).unwrap();
    }

    /// The attempt of the ticket with which a message was sent last.
    fn attempt_of(&self, id: MessageId) -> u16 {
        let (.., ticket) = self.origin.left.iter().rev().find(|(left, ..)| *left == id).unwrap();
        ticket.attempt
    }

    /// The home gets the oldest message that the partition has sent.
    fn hand_over(&mut self) {
        if !self.origin.sent.is_empty() {
            self.forward_at(0);
        }
    }

    fn forward_at(&mut self, at: usize) {
        let (_, message, _) = self.origin.sent.remove(at);
        let id = message.id;
        let attempt = self.attempt_of(id);
        let mut fields = Vec::new();
        RemoteAttempt { id, attempt, taken: 0, accepted_at: message.accepted_at }.append_to(&mut fields);
        let by = message.routed.by.clone();
        let carried = Message {
            origin: PARTITION,
            protocol_fields: fields.into(),
            routed: RoutingDecision::new(message.routed.verdict.clone(), by),
            ..Message::clone(&message)
        };
        let messages = vec![carried];
        self.home.run([Event::AcceptMany { messages, shared_id: false, key: None, reply: REPLY }]);
        let Some(EngineAnswer::AcceptedMany(results)) = self.home.answers.pop() else { panic!() };
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }

    /// The peer answers a message, or does not.
    fn answer(&mut self) {
        let Some(at) = self.home.sent.iter().position(|(peer, ..)| *peer == FIRST) else { return };
        let message = self.home.sent[at].1.clone();
        let lot = self.random.below(10);
        if lot == 9 {
            let class = if self.is_network { ErrorClass::Absent } else { ErrorClass::Temporary };
            let outcome = Outcome::Refused { class, code: 8, taken: Vec::new() };
            self.home.answer(message.id, outcome);
            return;
        }
        if lot < 7 && self.is_network {
            self.accept(&message);
            let number = message.destination.value.clone();
            let (id, _) = message.first_acceptance();
            let before = self.last.insert(number, id);
            assert!(before < Some(id), "out of order: {before:?}, {id:?}");
            self.home.answer(message.id, Outcome::Accepted { ids: vec![PeerMessageId::default()] });
            return;
        }
        if lot < 8 && !self.is_network {
            self.accept(&message);
            let id = PeerMessageId::new(format!("p{}", message.id.0).as_bytes());
            self.dlrs.push(Dlr {
                id: id.clone(),
                state: DlrState::Delivered,
                intermediate: false,
                error: 0,
                network_error: None,
                done_at: None,
                from: message.destination.value.clone(),
                to: message.source.value.clone(),
            });
            if lot < 7 {
                self.home.answer(message.id, Outcome::Accepted { ids: vec![id] });
                return;
            }
        }
        // The link is lost, with or without the message.
        self.home.sent.retain(|(peer, ..)| *peer != FIRST);
        self.home.run([Event::LinkDown { link: PEER_LINK }]);
        self.link_of_peer_is_new();
    }

    fn accept(&mut self, message: &Message) {
        let (id, _) = message.first_acceptance();
        assert!(self.accepted.insert(id), "submitted twice: {id:?}");
    }

    /// A subscriber of the core network is reachable again.
    fn alert(&mut self) {
        let imsi = subscriber(u32::try_from(self.random.below(6)).unwrap());
        self.home.run([Event::SubscriberReachable { network: FIRST, imsi: imsi.clone() }]);
        let alerts = std::mem::take(&mut self.home.alerts);
        if !self.is_connected {
            assert_eq!(alerts, []);
        } else if self.is_network {
            assert_eq!(alerts, [(PARTITION, imsi.clone())]);
            self.origin.run([Event::SubscriberReachable { network: FIRST, imsi }]);
            assert_eq!(self.origin.alerts, [], "the origin has no account of another partition");
        }
    }

    fn link_of_peer_is_new(&mut self) {
        self.dlrs.extend(std::mem::take(&mut self.unanswered_dlrs).into_values());
        self.home.link_up(FIRST, 10);
    }

    /// The peer sends a DLR.
    fn send_dlr(&mut self) {
        if !self.dlrs.is_empty() {
            let at = self.random.below(self.dlrs.len() as u64) as usize;
            let dlr = self.dlrs.swap_remove(at);
            self.next_request += 1;
            self.unanswered_dlrs.insert(self.next_request, dlr.clone());
            let reply = ReplyTo { link: PEER_LINK, token: self.next_request };
            self.home.run([Event::Dlr { peer: FIRST, dlr, reply }]);
        }
    }

    /// Passes on the answers to DLRs: the home's to the peer, and the origin's to the home.
    fn answer_dlrs(&mut self) {
        for reply in self.home.recorded_dlrs.drain(..) {
            self.unanswered_dlrs.remove(&reply.token);
        }
        for reply in std::mem::take(&mut self.origin.recorded_dlrs) {
            if self.unconfirmed.remove(&MessageId(reply.token)) {
                self.confirm(MessageId(reply.token));
            }
        }
    }

    fn confirm(&mut self, id: MessageId) {
        if let Some(at) = self.home.sent.iter().position(|(_, message, _)| message.id == id) {
            self.home.sent.remove(at);
            let outcome = Outcome::Accepted { ids: Vec::new() };
            self.home.run([Event::Outcome { link: ACCOUNT_LINK, id, outcome }]);
        }
    }

    /// The origin gets an outcome or a DLR. Its confirmation may be lost with the connection.
    fn receive_from_home(&mut self, may_fail: bool) {
        let is_new = |(peer, message, _): &(PeerId, Arc<Message>, u8)| {
            *peer == PARTITION && !self.unconfirmed.contains(&message.id)
        };
        let Some(at) = self.home.sent.iter().position(is_new) else { return };
        let notice = self.home.sent[at].1.clone();
        self.unconfirmed.insert(notice.id);
        let MessageKind::Dlr(content) = &notice.kind else { panic!("{notice:?}") };
        if let Some(outcome) = Outcome::read(&notice.protocol_fields) {
            let RemoteAttempt { id, attempt, .. } = RemoteAttempt::read(&notice.protocol_fields).unwrap();
            self.origin.run([Event::AttemptOutcome { id, attempt, outcome }]);
            // A repetition that has crossed the outcome leaves before the answer to it, or not at all.
            let crossed = self.origin.sent.iter().position(|(_, message, _)| message.id == id);
            if let Some(crossed) = crossed
                && self.attempt_of(id) == attempt
            {
                if self.random.below(2) == 0 {
                    self.forward_at(crossed);
                } else {
                    self.origin.sent.remove(crossed);
                }
            }
        } else {
            let dlr = Dlr {
                id: content.peer_id.clone(),
                state: content.state,
                intermediate: content.intermediate,
                error: content.error,
                network_error: content.network_error,
                done_at: Some(content.done_at),
                from: notice.source.value.clone(),
                to: notice.destination.value.clone(),
            };
            // Confirmed when the origin answers.
            let reply = ReplyTo { link: ORIGIN_LINK, token: notice.id.0 };
            self.origin.run([Event::Dlr { peer: FIRST, dlr, reply }]);
            return;
        }
        if may_fail && self.random.below(5) == 0 {
            self.disconnect();
        } else if self.unconfirmed.remove(&notice.id) {
            self.confirm(notice.id);
        }
    }

    fn crash_origin(&mut self) {
        self.disconnect();
        self.origin.crash();
    }

    fn crash_home(&mut self) {
        self.disconnect();
        self.home.crash();
        self.link_of_peer_is_new();
    }

    fn pass(&mut self, time: Duration) {
        self.origin.pass(time);
        self.home.pass(time);
    }

    fn step(&mut self) {
        match self.random.below(if self.is_network { 42 } else { 40 }) {
            0..8 => self.submit(),
            8..18 => self.hand_over(),
            18..25 => self.answer(),
            25..29 => self.send_dlr(),
            29..35 => self.receive_from_home(true),
            35 => self.disconnect(),
            36 => self.crash_origin(),
            37 => self.crash_home(),
            38 => self.pass(Duration::from_secs(20)),
            40.. => self.alert(),
            _ => self.connect(),
        }
        self.answer_dlrs();
        self.check();
    }

    fn check(&self) {
        if self.is_network {
            let of_peer = self.home.sent.iter().filter(|(peer, ..)| *peer == FIRST);
            let numbers: Vec<_> = of_peer.map(|(_, message, _)| &message.destination.value).collect();
            let different: BTreeSet<_> = numbers.iter().collect();
            assert_eq!(different.len(), numbers.len(), "two messages to a subscriber at a time: {numbers:?}");
        }
    }

    /// Without faults from now on, until nothing is left.
    fn settle(&mut self) {
        for _ in 0..2_000 {
            if self.origin.engine.live() == 0 && self.home.engine.live() == 0 {
                return;
            }
            self.connect();
            self.hand_over();
            self.answer();
            self.send_dlr();
            self.receive_from_home(false);
            self.answer_dlrs();
            self.check();
            let is_waiting =
                self.home.sent.iter().all(|(_, message, _)| self.unconfirmed.contains(&message.id));
            if self.origin.sent.is_empty() && is_waiting && self.dlrs.is_empty() {
                self.pass(Duration::from_secs(60));
            }
        }
        let left: Vec<_> = self.origin.messages.keys().map(|id| self.origin.engine.message(*id)).collect();
        panic!("stuck: {left:?}; {} at the home", self.home.engine.live());
    }
}

/// The peer, as its home has it.
fn peer(is_network: bool) -> PeerSettings {
    PeerSettings {
        serial: is_network,
        addressee: is_network,
        sends_dlrs: !is_network,
        // A handset recognises a repetition.
        uncertainty: if is_network { UncertainPolicy::SendAgain } else { UncertainPolicy::AwaitDlr },
        // So that no message waits behind another one until its validity ends.
        retry: vec![Duration::from_secs(10)],
        ..PeerSettings::new(FIRST)
    }
}

fn subscriber(number: u32) -> Imsi {
    imsi(&format!("26201{number:010}"))
}

/// Runs a world for each seed; `SEED` and `SEEDS` select other seeds.
fn run(is_network: bool) {
    for seed in seeds_of(300) {
        let mut world = World::new(seed, is_network);
        for _ in 0..400 {
            world.step();
        }
        world.settle();
        assert_eq!(world.origin.finished.len() as u32, world.submitted, "seed {seed}");
        let delivered = world.origin.finished.values().filter(|ended| ended.state == FinalState::Delivered);
        // What the peer has accepted is delivered: every DLR finds its message.
        assert_eq!(delivered.count(), world.accepted.len(), "seed {seed}");
        let states = world.origin.finished.values().map(|ended| ended.state);
        let others = states.filter(|state| *state != FinalState::Delivered);
        assert!(
            others.clone().all(|state| state == FinalState::Unknown),
            "seed {seed}: {:?}",
            others.collect::<Vec<_>>()
        );
    }
}

#[test]
fn an_attempt_is_submitted_once_and_its_outcome_reported_whatever_fails() {
    run(false);
}

#[test]
fn a_core_network_gets_the_messages_to_a_subscriber_one_by_one_and_in_order() {
    run(true);
}

#[test]
fn an_alert_goes_to_the_partitions_with_messages_for_the_core_network() {
    let mut world = World::new(0, true);
    world.home.run([Event::SubscriberReachable { network: SECOND, imsi: subscriber(1) }]);
    assert_eq!(world.home.alerts, [], "another core network");
    world.alert();

    // A message whose subscriber was absent is retried at once.
    world.submit();
    world.hand_over();
    let id = world.home.sent[0].1.id;
    let taken = vec![PeerMessageId::default()];
    world.home.answer(id, Outcome::Refused { class: ErrorClass::Absent, code: 27, taken });
    world.receive_from_home(false);
    assert!(world.origin.sent.is_empty());
    world.origin.run([Event::SubscriberReachable { network: FIRST, imsi: subscriber(0) }]);
    assert_eq!(world.origin.sent.len(), 1);
}

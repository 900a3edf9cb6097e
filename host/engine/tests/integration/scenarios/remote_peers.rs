//! Two engines: the messages are in one partition, and the links to their peer in another, its home.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, REPLY, message};
use engine::{EngineAnswer, Event, PeerSettings, ReplyTo, Settings, UncertainPolicy};
use model::{
    AddressBytes, Dlr, DlrRequest, DlrState, ErrorClass, FinalState, Leg, LinkId, Message, MessageId,
    MessageKind, Outcome, PeerId, PeerMessageId, Random, RemoteAttempt, RoutingDecision, Verdict,
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
    is_connected: bool,
    /// How often the peer has accepted the message to a number.
    accepted: BTreeMap<AddressBytes, u32>,
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
    fn new(seed: u64) -> Self {
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
                ..PeerSettings::new(FIRST)
            },
        ];
        let mut home = EngineFixture::with_dlrs(settings(), true);
        home.peers = vec![
            PeerSettings::new(FIRST),
            PeerSettings {
                addressee: true,
                sends_dlrs: false,
                partition_account: true,
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
            is_connected: false,
            accepted: BTreeMap::new(),
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
        let number = format!("4917{:08}", self.submitted);
        self.submitted += 1;
        let asks = Message { dlr_request: DlrRequest::FINAL, ..message(&number, vec![Leg::to(FIRST)]) };
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
        RemoteAttempt { id, attempt, taken: 0 }.append_to(&mut fields);
        let by = message.routed.by.clone();
        let carried = Message {
            origin: PARTITION,
            protocol_fields: fields.into(),
            routed: RoutingDecision::new(Verdict::Forward(vec![Leg::to(FIRST)]), by),
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
            let outcome = Outcome::Refused { class: ErrorClass::Temporary, code: 8, taken: Vec::new() };
            self.home.answer(message.id, outcome);
            return;
        }
        if lot < 8 {
            let number = message.destination.value.clone();
            *self.accepted.entry(number.clone()).or_default() += 1;
            let id = PeerMessageId::new(format!("p{}", message.id.0).as_bytes());
            self.dlrs.push(Dlr {
                id: id.clone(),
                state: DlrState::Delivered,
                intermediate: false,
                error: 0,
                network_error: None,
                done_at: None,
                from: number,
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
        match self.random.below(40) {
            0..8 => self.submit(),
            8..18 => self.hand_over(),
            18..25 => self.answer(),
            25..29 => self.send_dlr(),
            29..35 => self.receive_from_home(true),
            35 => self.disconnect(),
            36 => self.crash_origin(),
            37 => self.crash_home(),
            38 => self.pass(Duration::from_secs(20)),
            _ => self.connect(),
        }
        self.answer_dlrs();
        self.check();
    }

    fn check(&self) {
        assert!(self.accepted.values().all(|count| *count == 1), "submitted twice: {:?}", self.accepted);
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

#[test]
fn an_attempt_is_submitted_once_and_its_outcome_reported_whatever_fails() {
    let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    for seed in 0..seeds {
        let mut world = World::new(seed);
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

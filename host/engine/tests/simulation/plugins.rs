//! A resolver and a delivery policy of every mood, and a witness of what they are asked.

use crate::Random;
use crate::disk::Disk;
use engine::{Event, Waiting};
use model::{
    Address, AddressBytes, Attempt, DecidedBy, Final, FinalState, Hook, Imsi, Kind, Leg, Message, MessageId,
    Next, NextStep, PeerAdvice, PeerId, Resolution, StepKind, Subscriber, Verdict,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How many questions the resolver is asked at a time.
pub(crate) const IN_FLIGHT: usize = 4;

/// The resolver never says anything of this number.
const SILENT: &[u8] = b"86113";

pub(crate) struct Plugins {
    pub(crate) resolver: bool,
    pub(crate) policy: bool,
    questions: Vec<AddressBytes>,
    decisions: Vec<(MessageId, Attempt)>,
    /// Attempts that were ever asked about.
    asked: HashSet<(MessageId, u16)>,
    /// What was answered before: some words are said twice, or to nobody.
    said: Vec<AddressBytes>,
    said_of: Vec<(MessageId, u16)>,
}

/// Subscribers change their cards now and then.
fn imsis(number: &[u8]) -> [Imsi; 2] {
    [&b"26201"[..], b"26202"].map(|network| Imsi(AddressBytes::from_slice(&[network, number].concat())))
}

pub(crate) fn imsi(random: &mut Random, number: &[u8]) -> Imsi {
    imsis(number)[usize::from(random.chance(15))].clone()
}

fn by() -> Arc<DecidedBy> {
    Arc::new(DecidedBy { plugin: "sim".to_owned(), version: "1".to_owned() })
}

pub(crate) fn leg_of(message: &Message, leg: u8) -> Option<&Leg> {
    match &message.routed.verdict {
        Verdict::Forward(legs) => legs.get(usize::from(leg)),
        Verdict::Hold(_) | Verdict::Reject(_) => None,
    }
}

pub(crate) fn number_on(message: &Message, leg: &Leg) -> AddressBytes {
    leg.destination.as_ref().unwrap_or(&message.destination).value.clone()
}

impl Plugins {
    pub(crate) fn new(bound: bool) -> Self {
        Self {
            resolver: bound,
            policy: bound,
            questions: Vec::new(),
            decisions: Vec::new(),
            asked: HashSet::new(),
            said: Vec::new(),
            said_of: Vec::new(),
        }
    }

    /// What was asked of plugins that have gone is answered by nobody, or too late.
    pub(crate) fn gone(&mut self) {
        self.said.append(&mut self.questions);
        self.said_of.extend(self.decisions.drain(..).map(|(id, attempt)| (id, attempt.number)));
    }

    /// Legs of which some need their subscriber, some under another number.
    pub(crate) fn touch(random: &mut Random, leg: &mut Leg) {
        leg.resolve = random.chance(60);
        if random.chance(20) {
            leg.destination = Some(Address::international(&format!("861{}", random.below(50))));
        }
    }

    pub(crate) fn asked_about(&mut self, number: AddressBytes) {
        assert!(self.resolver, "{number:?}: nobody is bound to be asked");
        assert!(!self.questions.contains(&number), "{number:?} is asked about twice at a time");
        self.questions.push(number);
        assert!(self.questions.len() <= IN_FLIGHT, "{:?} at a time", self.questions);
    }

    /// A crash from here on leaves the built-in schedule.
    pub(crate) fn asked_to_decide(&mut self, message: &Message, attempt: Attempt, disk: &Disk) {
        let id = message.id;
        assert!(self.policy && message.kind == Kind::Text, "{id:?}: nobody is to be asked");
        assert!(self.asked.insert((id, attempt.number)), "{id:?} is asked about twice: {attempt:?}");
        if disk.messages.contains_key(&id) {
            let progress = &disk.progress[&id];
            assert_eq!(progress.attempts, attempt.number, "{id:?}");
            assert!(matches!(progress.waiting, Waiting::Deferred { .. }), "{id:?}: {progress:?}");
        }
        let leg = leg_of(message, attempt.leg.0).map(|leg| leg.peer);
        assert_eq!(leg, Some(attempt.peer), "{id:?}: {attempt:?}");
        self.decisions.push((id, attempt));
    }

    /// A message goes to the peer of its leg, and not without its subscriber.
    pub(crate) fn sent(message: &Message, leg: u8, peer: Option<PeerId>) {
        let Some(leg) = leg_of(message, leg).filter(|_| message.kind == Kind::Text) else { return };
        assert!(peer.is_none_or(|peer| peer == leg.peer), "{:?} went to {peer:?}: {leg:?}", message.id);
        let found = leg.imsi.as_ref().is_some_and(|imsi| imsis(&number_on(message, leg)).contains(imsi));
        assert_eq!(found, leg.resolve, "{:?} went out: {leg:?}", message.id);
    }

    /// A word of the resolver's, mostly an answer to a question.
    pub(crate) fn resolve(&mut self, random: &mut Random, healthy: bool) -> Option<Event> {
        let open: Vec<usize> =
            (0..self.questions.len()).filter(|index| &self.questions[*index][..] != SILENT).collect();
        let number = if !healthy && random.chance(5) && !self.said.is_empty() {
            let number = self.said[random.below(self.said.len())].clone();
            self.questions.retain(|other| *other != number);
            number
        } else {
            let number = self.questions.swap_remove(*open.get(random.below(open.len()))?);
            self.said.push(number.clone());
            number
        };
        let time = |random: &mut Random| match random.below(3) {
            0 => None,
            1 => Some(Duration::ZERO),
            _ => Some(Duration::from_millis(random.below(20_000) as u64)),
        };
        let kind = if healthy { 0 } else { random.below(100) };
        let subscriber = match kind {
            0..60 => Subscriber::Found {
                imsi: imsi(random, &number),
                // Now and then one that is not there, or where it came from.
                peer: random.chance(30).then(|| PeerId(random.below(6) as u32)),
                valid: time(random),
            },
            60..75 => Subscriber::Unknown { valid: time(random) },
            _ => Subscriber::TryLater { after: time(random) },
        };
        let note = random.chance(50).then(|| "found so".into());
        Some(Event::Resolved { msisdn: number, resolution: Resolution { subscriber, by: by(), note } })
    }

    /// A word of the policy's.
    pub(crate) fn decide(&mut self, random: &mut Random, healthy: bool) -> Option<Event> {
        let (id, attempt) = if !healthy && random.chance(10) && !self.said_of.is_empty() {
            let (id, attempt) = self.said_of[random.below(self.said_of.len())];
            (id, attempt)
        } else {
            let index = random.below(self.decisions.len());
            (index < self.decisions.len()).then(|| self.decisions.swap_remove(index)).map(
                |(id, attempt)| {
                    self.said_of.push((id, attempt.number));
                    (id, attempt.number)
                },
            )?
        };
        // What is still open is not answered by the words on another attempt.
        self.decisions.retain(|(other, open)| *other != id || open.number != attempt);
        let kind = if healthy { 0 } else { random.below(100) };
        let step = match kind {
            0..20 => NextStep::RetryAfter(Duration::ZERO),
            20..45 => NextStep::RetryAfter(Duration::from_millis(random.below(10_000) as u64)),
            45..60 => NextStep::NextLeg,
            60..80 => NextStep::AwaitAlert(Duration::from_millis(random.below(60_000) as u64)),
            80..85 => NextStep::Fail,
            _ => return Some(Event::Decided { id, attempt, next: None }),
        };
        let mut advice = PeerAdvice::default();
        if random.chance(10) && !healthy {
            advice = PeerAdvice {
                pause: random.chance(50).then(|| Duration::from_millis(random.below(3_000) as u64)),
                rate: random.chance(50).then(|| 5.0 + random.below(100) as f64),
                window: random.chance(50).then(|| random.below(6) as u32),
            };
        }
        let next = Next { step, advice, by: by(), note: None };
        Some(Event::Decided { id, attempt, next: Some(next) })
    }

    /// A subscriber is heard of.
    pub(crate) fn alert(random: &mut Random) -> Event {
        let number = format!("{}861{}", ["", "+"][random.below(2)], random.below(50));
        Event::Alert { msisdn: AddressBytes::from_slice(number.as_bytes()) }
    }

    /// The messages that are waiting for this number, oldest first.
    pub(crate) fn those_of(
        number: &AddressBytes,
        disk: &Disk,
        engine: &engine::Engine,
    ) -> HashSet<MessageId> {
        let waits = |message: &&Arc<Message>| {
            engine.message(message.id).is_some_and(|status| {
                status.doing == engine::Doing::Resolving
                    && leg_of(message, status.leg).is_some_and(|leg| number_on(message, leg) == *number)
            })
        };
        disk.messages.values().filter(waits).map(|message| message.id).collect()
    }
}

/// What a trace says must be a way that a message can go. Where `untold`, its subscriber may have been remembered when it was
/// accepted: that costs no second write, and a crash forgets who said so.
pub(crate) fn check_trace(id: MessageId, ended: &Final, serial: bool, untold: bool) {
    // An admin's deeds may come between any two others.
    let others = ended.steps.iter().filter(|step| !matches!(step.kind, StepKind::ByHand { .. }));
    let steps: Vec<&StepKind> = others.map(|step| &step.kind).collect();
    if ended.steps.len() >= Final::MAX_STEPS {
        return;
    }
    let resolver = |kind: &StepKind| matches!(kind, StepKind::Decided { hook: Hook::Resolver, .. });
    let policy = |kind: &StepKind| matches!(kind, StepKind::Decided { hook: Hook::DeliveryPolicy, .. });
    let (mut resolved, mut forgotten) = (false, untold);
    for (index, step) in steps.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| steps[before]);
        let after = steps.get(index + 1).copied();
        match step {
            StepKind::Resolved { .. } => {
                assert!(before.is_some_and(resolver), "{id:?}: found by nobody: {steps:#?}");
                assert!(!resolved, "{id:?}: found twice on a leg: {steps:#?}");
                (resolved, forgotten) = (true, false);
            }
            StepKind::UnknownSubscriber { .. } => {
                assert!(before.is_some_and(resolver), "{id:?}: unknown to nobody: {steps:#?}");
                let on = matches!(after, Some(StepKind::NextLeg { .. }));
                let over = (ended.state, ended.error) == (FinalState::Failed, 1);
                assert!(on || over, "{id:?}: unknown, and then: {steps:#?}");
            }
            StepKind::NextLeg { .. } | StepKind::Rerouted { .. } => (resolved, forgotten) = (false, false),
            StepKind::AskedAnew { .. } => {
                let refused = matches!(before, Some(StepKind::Refused { .. }));
                let found = resolved || forgotten;
                assert!(refused && found, "{id:?}: asked anew without a cause: {steps:#?}");
                (resolved, forgotten) = (false, false);
            }
            step if resolver(step) => assert!(
                matches!(after, Some(StepKind::Resolved { .. } | StepKind::UnknownSubscriber { .. })),
                "{id:?}: decided, and then: {steps:#?}"
            ),
            // Its submitter may replace the text while it is decided.
            step if policy(step) => {
                let mut earlier = steps[..index].iter().rev();
                let cause = earlier.find(|step| !matches!(step, StepKind::Replaced));
                let refused = matches!(cause, Some(StepKind::Refused { .. }))
                    || serial && matches!(cause, Some(StepKind::Unanswered));
                assert!(refused, "{id:?}: decided without a cause: {steps:#?}");
            }
            StepKind::AwaitingAlert { .. } => {
                let failed = matches!(before, Some(StepKind::Refused { .. } | StepKind::Unanswered));
                let replaced = matches!(before, Some(StepKind::Replaced));
                assert!(
                    before.is_some_and(policy) || serial && (failed || replaced),
                    "{id:?}: waits by nobody's will: {steps:#?}"
                );
            }
            _ => {}
        }
    }
    if ended.state == FinalState::Failed {
        let money = |step: &&&StepKind| {
            !matches!(step, StepKind::Charged { .. } | StepKind::Refunded { .. } | StepKind::Replaced)
        };
        let last = steps.iter().rev().find(money);
        let unanswered = serial && matches!(last, Some(StepKind::Unanswered));
        let why = matches!(
            last,
            Some(
                StepKind::Refused { .. }
                    | StepKind::SentAgain
                    | StepKind::UnknownSubscriber { .. }
                    | StepKind::Decided { hook: Hook::DeliveryPolicy, .. }
                    | StepKind::Reported { .. }
            )
        );
        assert!(why || unanswered, "{id:?} failed, and nobody knows why: {steps:#?}");
    }
}

//! A resolver and a delivery policy with faults, and the witness of their questions.

use crate::simulation::Random;
use crate::simulation::disk::Disk;
use engine::Event;
use model::{
    Address, AddressBytes, Attempt, DeliveryDecision, FinalRecord, FinalState, Hook, Imsi, Leg, Message,
    MessageId, MessageKind, NextStep, PeerAdvice, PeerId, PluginVersion, Resolution, StepKind, Subscriber,
    WaitState,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The limit of pending queries.
pub(crate) const IN_FLIGHT: usize = 4;

/// The resolver never answers for this number.
const SILENT: &[u8] = b"86113";

pub(crate) struct Plugins {
    pub(crate) resolver: bool,
    pub(crate) policy: bool,
    questions: Vec<AddressBytes>,
    decisions: Vec<(MessageId, Attempt)>,
    /// Attempts with a requested decision.
    decision_requests: HashSet<(MessageId, u16)>,
    /// Previous answers: some are repeated, or come unasked.
    answered_numbers: Vec<AddressBytes>,
    answered_decisions: Vec<(MessageId, u16)>,
}

/// The subscriber of a number changes at times.
fn imsis(number: &[u8]) -> [Imsi; 2] {
    [&b"26201"[..], b"26202"].map(|network| Imsi(AddressBytes::from_slice(&[network, number].concat())))
}

pub(crate) fn imsi(random: &mut Random, number: &[u8]) -> Imsi {
    imsis(number)[usize::from(random.chance(15))].clone()
}

fn by() -> Arc<PluginVersion> {
    Arc::new(PluginVersion { plugin: "sim".to_owned(), version: "1".to_owned() })
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
            decision_requests: HashSet::new(),
            answered_numbers: Vec::new(),
            answered_decisions: Vec::new(),
        }
    }

    /// Queries of unbound plugins are never answered, or too late.
    pub(crate) fn unbind_all(&mut self) {
        self.answered_numbers.append(&mut self.questions);
        self.answered_decisions.extend(self.decisions.drain(..).map(|(id, attempt)| (id, attempt.number)));
    }

    /// Lets some legs require their subscriber, and gives some legs another number.
    pub(crate) fn touch(random: &mut Random, leg: &mut Leg) {
        leg.resolve = random.chance(60);
        if random.chance(20) {
            leg.destination = Some(Address::international(&format!("861{}", random.below(50))));
        }
    }

    pub(crate) fn note_query(&mut self, number: AddressBytes) {
        assert!(self.resolver, "{number:?}: no resolver is bound");
        assert!(!self.questions.contains(&number), "{number:?} has two queries at a time");
        self.questions.push(number);
        assert!(self.questions.len() <= IN_FLIGHT, "{:?} at a time", self.questions);
    }

    /// Notes the request: if the engine crashes from now on, the built-in schedule applies.
    pub(crate) fn note_decision_request(&mut self, message: &Message, attempt: Attempt, disk: &Disk) {
        let id = message.id;
        assert!(
            self.policy && message.kind == MessageKind::Text,
            "{id:?}: no policy is bound, or the message is a DLR"
        );
        assert!(
            self.decision_requests.insert((id, attempt.number)),
            "{id:?} has two decision requests: {attempt:?}"
        );
        if disk.messages.contains_key(&id) {
            let progress = &disk.progress[&id];
            assert_eq!(progress.attempts, attempt.number, "{id:?}");
            assert!(matches!(progress.waiting, WaitState::Deferred { .. }), "{id:?}: {progress:?}");
        }
        let leg = message.routed.verdict.leg(attempt.leg.0).map(|leg| leg.peer);
        assert_eq!(leg, Some(attempt.peer), "{id:?}: {attempt:?}");
        self.decisions.push((id, attempt));
    }

    /// A message goes to the peer of its leg, and not without its subscriber.
    pub(crate) fn sent(message: &Message, leg: u8, peer: Option<PeerId>) {
        let Some(leg) = message.routed.verdict.leg(leg).filter(|_| message.kind == MessageKind::Text) else {
            return;
        };
        assert!(peer.is_none_or(|peer| peer == leg.peer), "{:?} went to {peer:?}: {leg:?}", message.id);
        let found = leg.imsi.as_ref().is_some_and(|imsi| imsis(&number_on(message, leg)).contains(imsi));
        assert_eq!(found, leg.resolve, "{:?} went out: {leg:?}", message.id);
    }

    /// An answer of the resolver, mostly to a pending query.
    pub(crate) fn resolve(&mut self, random: &mut Random, healthy: bool) -> Option<Event> {
        let open: Vec<usize> =
            (0..self.questions.len()).filter(|index| &self.questions[*index][..] != SILENT).collect();
        let number = if !healthy && random.chance(5) && !self.answered_numbers.is_empty() {
            let number = self.answered_numbers[random.below(self.answered_numbers.len())].clone();
            self.questions.retain(|other| *other != number);
            number
        } else {
            let number = self.questions.swap_remove(*open.get(random.below(open.len()))?);
            self.answered_numbers.push(number.clone());
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
                // At times an unconfigured peer, or the origin.
                peer: random.chance(30).then(|| PeerId(random.below(6) as u32)),
                valid: time(random),
            },
            60..75 => Subscriber::Unknown { valid: time(random) },
            _ => Subscriber::TryLater { after: time(random) },
        };
        let note = random.chance(50).then(|| "found so".into());
        Some(Event::Resolved { msisdn: number, resolution: Resolution { subscriber, by: by(), note } })
    }

    /// A decision of the policy.
    pub(crate) fn decide(&mut self, random: &mut Random, healthy: bool) -> Option<Event> {
        let (id, attempt) = if !healthy && random.chance(10) && !self.answered_decisions.is_empty() {
            let (id, attempt) = self.answered_decisions[random.below(self.answered_decisions.len())];
            (id, attempt)
        } else {
            let index = random.below(self.decisions.len());
            (index < self.decisions.len()).then(|| self.decisions.swap_remove(index)).map(
                |(id, attempt)| {
                    self.answered_decisions.push((id, attempt.number));
                    (id, attempt.number)
                },
            )?
        };
        // Decisions on other attempts leave it pending.
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
        let next = DeliveryDecision { step, advice, by: by(), note: None };
        Some(Event::Decided { id, attempt, next: Some(next) })
    }

    /// An alert.
    pub(crate) fn alert(random: &mut Random) -> Event {
        let number = format!("{}861{}", ["", "+"][random.below(2)], random.below(50));
        Event::Alert { msisdn: AddressBytes::from_slice(number.as_bytes()) }
    }

    /// The messages that wait for this number, oldest first.
    pub(crate) fn waiting_messages(
        number: &AddressBytes,
        disk: &Disk,
        engine: &engine::Engine,
    ) -> HashSet<MessageId> {
        let waits = |message: &&Arc<Message>| {
            engine.message(message.id).is_some_and(|status| {
                status.state == engine::MessageState::Resolving
                    && message
                        .routed
                        .verdict
                        .leg(status.leg)
                        .is_some_and(|leg| number_on(message, leg) == *number)
            })
        };
        disk.messages.values().filter(waits).map(|message| message.id).collect()
    }
}

/// Checks that a trace is possible. With `truncated`, its subscriber may have been cached at acceptance: that costs no
/// second write, and a crash loses the step.
pub(crate) fn check_trace(id: MessageId, ended: &FinalRecord, serial: bool, truncated: bool) {
    // An admin's actions may come between any two others.
    let others = ended.steps.iter().filter(|step| !matches!(step.kind, StepKind::AdminAction { .. }));
    let steps: Vec<&StepKind> = others.map(|step| &step.kind).collect();
    if ended.steps.len() >= FinalRecord::MAX_STEPS {
        return;
    }
    let resolver = |kind: &StepKind| matches!(kind, StepKind::Decided { hook: Hook::Resolver, .. });
    let policy = |kind: &StepKind| matches!(kind, StepKind::Decided { hook: Hook::DeliveryPolicy, .. });
    let (mut resolved, mut forgotten) = (false, truncated);
    for (index, step) in steps.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| steps[before]);
        let after = steps.get(index + 1).copied();
        match step {
            StepKind::Resolved { .. } => {
                assert!(before.is_some_and(resolver), "{id:?}: resolved without a resolver: {steps:#?}");
                assert!(!resolved, "{id:?}: found twice on a leg: {steps:#?}");
                (resolved, forgotten) = (true, false);
            }
            StepKind::UnknownSubscriber { .. } => {
                assert!(before.is_some_and(resolver), "{id:?}: unknown without a resolver: {steps:#?}");
                let on = matches!(after, Some(StepKind::NextLeg { .. }));
                let over = (ended.state, ended.error) == (FinalState::Failed, 1);
                assert!(on || over, "{id:?}: unknown, and then: {steps:#?}");
            }
            StepKind::NextLeg { .. } | StepKind::Rerouted { .. } => (resolved, forgotten) = (false, false),
            StepKind::SubscriberRequeried { .. } => {
                let refused = matches!(before, Some(StepKind::Refused { .. }));
                let found = resolved || forgotten;
                assert!(refused && found, "{id:?}: requeried without a cause: {steps:#?}");
                (resolved, forgotten) = (false, false);
            }
            step if resolver(step) => assert!(
                matches!(after, Some(StepKind::Resolved { .. } | StepKind::UnknownSubscriber { .. })),
                "{id:?}: decided, and then: {steps:#?}"
            ),
            // Its submitter may replace the text while the decision is pending.
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
        let is_ledger_step = |step: &&&StepKind| {
            !matches!(step, StepKind::Charged { .. } | StepKind::Refunded { .. } | StepKind::Replaced)
        };
        let last = steps.iter().rev().find(is_ledger_step);
        let unanswered = serial && matches!(last, Some(StepKind::Unanswered));
        let why = matches!(
            last,
            Some(
                StepKind::Refused { .. }
                    | StepKind::SentAgain
                    | StepKind::UnknownSubscriber { .. }
                    | StepKind::Decided { hook: Hook::DeliveryPolicy, .. }
                    | StepKind::DlrReceived { .. }
                    | StepKind::DlrRemapped { .. }
                    | StepKind::Decided { hook: Hook::Receipt, .. }
            )
        );
        assert!(why || unanswered, "{id:?} failed without a cause: {steps:#?}");
    }
}

//! Subscribers: a leg may need to know who stands behind the destination before the message takes it.
//!
//! One entry for a number, the messages that wait for it under it in their order; one question at a time for a number.
//! The answer moves all of them, those whose content is no longer in memory as it is read back, run by run.

use crate::engine::Engine;
use crate::slab::{Slot, State, flag};
use crate::subscribers::{Answer, Subscribers};
use crate::timer::Timer;
use crate::{Command, Output};
use model::{
    AddressBytes, DecidedBy, Hook, Imsi, Kind, Message, MessageId, Moment, Now, PeerId, Resolution, StepKind,
    Subscriber, Verdict,
};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// How much content is read back at a time for messages whose subscriber is known.
const LOAD_RUN: usize = 1024;

/// The longest that an answer holds, and the bounds within which a resolver may ask for time.
const LONGEST_HOLD: Duration = Duration::from_secs(7 * 86_400);
const SHORTEST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(3600);

/// 3GPP TS 24.011 §8.2.5.4, RP-cause 1: unassigned number.
const UNASSIGNED_NUMBER: u32 = 1;

/// What is said of a number where nobody can be asked.
static NO_RESOLVER: LazyLock<Arc<Answer>> = LazyLock::new(|| {
    let by = Arc::new(DecidedBy { plugin: "resolver".to_owned(), version: String::new() });
    Arc::new(Answer { subscriber: None, by, note: Some("no resolver is bound".into()) })
});

/// What has become of a message that was to begin a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subscription {
    /// The leg needs no subscriber, or knows it: the message may join its queue.
    NotNeeded,
    /// It waits for the subscriber.
    Waits,
    /// The answer was there: it stands in a queue, waits on another leg, or has ended, and that is recorded.
    Settled,
}

/// All numbers that messages wait for, and what is known of others.
#[derive(Debug, Default)]
pub(crate) struct Resolving {
    numbers: HashMap<AddressBytes, Number>,
    known: Subscribers,
    /// Numbers to be asked about, in order. One without an answer stands here, in `asked` or in `later`.
    queue: VecDeque<AddressBytes>,
    /// Numbers with a question under way; they stay until it is answered, also where nobody waits any more.
    asked: HashSet<AddressBytes>,
    /// Numbers that are to be asked about again, and when.
    later: BTreeSet<(Moment, AddressBytes)>,
    /// Answered numbers with messages that can move.
    ready: VecDeque<AddressBytes>,
    /// Messages whose content is being read because their number is answered.
    loading: HashSet<MessageId>,
    messages: u64,
    hits: u64,
    questions: u64,
    /// The resolver went away since the last run.
    orphaned: bool,
}

/// A number that messages wait for.
#[derive(Debug, Default)]
struct Number {
    /// Who waits, in order. Those that left by themselves are passed over when their turn comes.
    waiting: SmallVec<[MessageId; 2]>,
    /// How many of `waiting` have been dealt with.
    done: usize,
    answer: Option<Arc<Answer>>,
    /// When it is asked about again, where the resolver wanted time.
    again: Option<Moment>,
    /// Who wanted time, and why.
    said: Option<Arc<Answer>>,
    /// Stands in [`Resolving::ready`].
    ready: bool,
}

impl Number {
    fn left(&self) -> &[MessageId] {
        self.waiting.get(self.done..).unwrap_or_default()
    }
}

/// Counts of what waits for a resolver, and of what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResolvingStatus {
    /// Numbers that messages wait for.
    pub numbers: u64,
    /// Messages that wait.
    pub messages: u64,
    /// Answers that are remembered.
    pub cached: u64,
    /// Messages that found their answer remembered, since the start.
    pub hits: u64,
    /// Questions to the resolver since the start.
    pub questions: u64,
    /// Of these, unanswered ones.
    pub in_flight: u64,
}

impl Resolving {
    pub(crate) fn new(seed: u64) -> Self {
        Self { known: Subscribers::new(seed), ..Self::default() }
    }

    /// Whether the sweep has to come by.
    pub(crate) fn remembers(&self) -> bool {
        self.known.len() > 0
    }

    pub(crate) fn forget(&mut self, now: Moment) {
        self.known.forget(now);
    }

    /// Numbers whose time to be asked about again has come go to the queue.
    pub(crate) fn asked_again(&mut self, now: Moment) {
        while self.later.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, number)) = self.later.pop_first()
        {
            if let Some(waiting) = self.numbers.get_mut(&number) {
                waiting.again = None;
            }
            self.queue.push_back(number);
        }
    }

    fn make_ready(&mut self, number: &AddressBytes) {
        if let Some(waiting) = self.numbers.get_mut(number)
            && waiting.answer.is_some()
            && !waiting.ready
        {
            waiting.ready = true;
            self.ready.push_back(number.clone());
        }
    }

    /// A message begins to wait for a number.
    fn wait(&mut self, number: AddressBytes, id: MessageId) {
        match self.numbers.get_mut(&number) {
            Some(waiting) => {
                waiting.waiting.push(id);
                self.make_ready(&number);
            }
            None => {
                self.queue.push_back(number.clone());
                let waiting = SmallVec::from_slice(&[id]);
                self.numbers.insert(number, Number { waiting, ..Number::default() });
            }
        }
    }

    /// The messages that wait for a number, in order; some may have left by themselves.
    pub(crate) fn waiting_for(&self, number: &AddressBytes) -> &[MessageId] {
        self.numbers.get(number).map(Number::left).unwrap_or_default()
    }

    /// The IMSI that is remembered of a number.
    pub(crate) fn remembered_imsi(&self, number: &AddressBytes, now: Moment) -> Option<Imsi> {
        let answer = self.known.get(number, now)?;
        answer.subscriber.as_ref().map(|(imsi, _)| imsi.clone())
    }

    /// What is remembered of a number holds no longer, if it is this subscriber.
    pub(crate) fn forget_answer(&mut self, number: &AddressBytes, imsi: &Imsi) {
        self.known.forget_answer(number, imsi);
    }

    /// A number is this subscriber's: another answer that is remembered of it holds no longer. Gives back the subscriber
    /// that it named.
    pub(crate) fn learn(&mut self, number: &AddressBytes, imsi: &Imsi) -> Option<Imsi> {
        self.known.learn(number, imsi)
    }

    /// When a number is asked about again, if it waits for that; and who wanted time.
    pub(crate) fn delay(&self, number: &AddressBytes) -> (Option<Moment>, Option<&Answer>) {
        self.numbers.get(number).map_or((None, None), |waiting| (waiting.again, waiting.said.as_deref()))
    }
}

/// The number behind which a leg's subscriber stands.
pub(crate) fn number_on_leg(message: &Message, leg: u8) -> AddressBytes {
    without_plus(&message.addresses_on(leg).1.value)
}

/// Plus signs in front are left out: all of them, so that doing it twice changes nothing and a question is known by its
/// answer.
pub(crate) fn without_plus(number: &[u8]) -> AddressBytes {
    number.iter().copied().skip_while(|octet| *octet == b'+').collect()
}

/// Whether a leg is closed to a message as long as nobody knows the subscriber.
pub(crate) fn needs_subscriber(message: &Message, leg: u8) -> bool {
    match &message.routed.verdict {
        Verdict::Forward(legs) => {
            legs.get(usize::from(leg)).is_some_and(|leg| leg.resolve && leg.imsi.is_none())
        }
        Verdict::Hold(_) | Verdict::Reject(_) => false,
    }
}

impl Engine {
    /// Fills in the leg of a submission before it is first written, where the subscriber is remembered. The steps that
    /// tell of it are the caller's to add.
    pub(crate) fn resolve_at_once(&mut self, now: Now, message: &mut Message, leg: u8) -> Vec<StepKind> {
        if !self.settings.resolver || message.scheduled.is_some() || !needs_subscriber(message, leg) {
            return Vec::new();
        }
        let number = number_on_leg(message, leg);
        // Behind those that wait for the same number, it waits for its turn.
        if self.resolving.numbers.contains_key(&number) {
            return Vec::new();
        }
        let Some(answer) = self.resolving.known.get(&number, now.mono) else { return Vec::new() };
        let Some((imsi, serving)) = &answer.subscriber else { return Vec::new() };
        self.resolving.hits += 1;
        let peer = self.fill_in(message, leg, imsi, *serving);
        vec![decided(&answer), StepKind::Resolved { peer, cached: true }]
    }

    /// Sets the subscriber of a leg; gives back the peer that the leg now leads to.
    fn fill_in(&self, message: &mut Message, leg: u8, imsi: &Imsi, serving: Option<PeerId>) -> PeerId {
        // Never back to where it came from, and to nobody that is not there.
        let serving = serving.filter(|peer| *peer != message.origin && self.is_configured(*peer));
        // A receipt of ours is for a handset.
        let receipt = matches!(message.kind, Kind::Receipt(_));
        let serving = serving.filter(|peer| !receipt || self.peers[peer.0 as usize].settings.serial);
        let Verdict::Forward(legs) = &mut message.routed.verdict else { return message.origin };
        let Some(leg) = legs.get_mut(usize::from(leg)) else { return message.origin };
        leg.imsi = Some(imsi.clone());
        leg.peer = serving.unwrap_or(leg.peer);
        leg.peer
    }

    /// Finds the subscriber of a message's leg before it may join the leg's queue. The message stands in no queue.
    pub(crate) fn resolve_first(
        &mut self,
        now: Now,
        slot: Slot,
        message: &Arc<Message>,
        out: &mut Output,
    ) -> Subscription {
        let (id, leg) = (self.slab[slot].id, self.slab[slot].leg);
        if !needs_subscriber(message, leg) {
            return Subscription::NotNeeded;
        }
        self.begin_resolving(slot);
        self.watch_longest_wait(now, slot, message);
        if !self.settings.resolver {
            self.take_answer(now, slot, message, &NO_RESOLVER, false, out);
            return Subscription::Settled;
        }
        let number = number_on_leg(message, leg);
        if !self.resolving.numbers.contains_key(&number)
            && let Some(answer) = self.resolving.known.get(&number, now.mono)
        {
            self.resolving.hits += 1;
            self.take_answer(now, slot, message, &answer, true, out);
            return Subscription::Settled;
        }
        self.resolving.wait(number, id);
        self.fresh.push(slot);
        let last = self.slab[slot].side().steps.last();
        if last.is_none_or(|step| step.kind != StepKind::Resolving) {
            self.step(now, slot, StepKind::Resolving);
        }
        Subscription::Waits
    }

    fn begin_resolving(&mut self, slot: Slot) {
        let entry = &mut self.slab[slot];
        entry.state = State::Resolving;
        entry.due = Moment(u64::MAX);
        self.peer_of(slot).resolving += 1;
        self.resolving.messages += 1;
    }

    /// Takes a message out of waiting for its subscriber; it is then where one is whose attempt has just ended.
    pub(crate) fn leave_resolving(&mut self, slot: Slot) {
        self.slab[slot].state = State::Submitted;
        self.peer_of(slot).resolving -= 1;
        self.resolving.messages -= 1;
    }

    /// Lets a message go on that waits for its subscriber.
    fn take_answer(
        &mut self,
        now: Now,
        slot: Slot,
        message: &Arc<Message>,
        answer: &Answer,
        cached: bool,
        out: &mut Output,
    ) {
        self.leave_resolving(slot);
        self.step(now, slot, decided(answer));
        let Some((imsi, serving)) = &answer.subscriber else {
            self.step(now, slot, StepKind::UnknownSubscriber { cached });
            self.leg_failed(now, slot, UNASSIGNED_NUMBER, out);
            return;
        };
        let (leg, longest_wait) = (self.slab[slot].leg, self.slab[slot].due);
        let mut message = Message::clone(message);
        let peer = self.fill_in(&mut message, leg, imsi, *serving);
        self.step(now, slot, StepKind::Resolved { peer, cached });
        self.slab[slot].peer = peer;
        let message = self.replace_content(slot, message, out);
        self.name_subscriber(slot, &message);
        self.requeue(slot);
        // Waiting for the subscriber was waiting for the leg.
        self.slab[slot].due = longest_wait;
        self.record(now, slot, out);
        self.fresh.push(slot);
    }

    /// A resolver's answer.
    pub(crate) fn resolved(&mut self, now: Now, msisdn: &AddressBytes, resolution: Resolution) {
        let number = without_plus(msisdn);
        // Nobody asked, or somebody who is no longer bound.
        if !self.resolving.asked.remove(&number) {
            return;
        }
        let Resolution { subscriber, by, note } = resolution;
        let (subscriber, holds) = match subscriber {
            Subscriber::Found { imsi, peer, valid } => {
                (Some((imsi, peer)), valid.unwrap_or(self.settings.resolve_found_for))
            }
            Subscriber::Unknown { valid } => (None, valid.unwrap_or(self.settings.resolve_unknown_for)),
            Subscriber::TryLater { after } => {
                if let Some(waiting) = self.resolving.numbers.get_mut(&number) {
                    let after = after.unwrap_or(self.settings.resolve_retry_after);
                    let at = now.mono + after.clamp(SHORTEST_RETRY, LONGEST_RETRY);
                    waiting.again = Some(at);
                    waiting.said = Some(Arc::new(Answer { subscriber: None, by, note }));
                    self.resolving.later.insert((at, number));
                    self.timers.set(at, Timer::Resolve);
                }
                return;
            }
        };
        let answer = Arc::new(Answer { subscriber, by, note });
        if !holds.is_zero() {
            let (until, limit) = (now.mono + holds.min(LONGEST_HOLD), self.settings.resolve_cache_limit);
            self.resolving.known.insert(number.clone(), until, answer.clone(), limit);
        }
        if let Some(waiting) = self.resolving.numbers.get_mut(&number) {
            waiting.answer = Some(answer);
            self.resolving.make_ready(&number);
        }
    }

    /// A resolver is bound, or none is any more. What was asked of one that has gone is asked of nobody else: its numbers
    /// are looked at when the run ends, since the next resolver may be part of it.
    pub(crate) fn resolver_changed(&mut self) {
        let resolving = &mut self.resolving;
        resolving.asked.clear();
        resolving.queue.clear();
        resolving.later.clear();
        resolving.known.clear();
        resolving.orphaned = true;
    }

    fn adopt_orphans(&mut self) {
        if !std::mem::take(&mut self.resolving.orphaned) {
            return;
        }
        let resolving = &mut self.resolving;
        let open =
            |number: &Number| number.answer.as_ref().is_none_or(|answer| Arc::ptr_eq(answer, &NO_RESOLVER));
        let orphans = resolving.numbers.iter().filter(|(_, number)| open(number));
        let mut orphans: Vec<_> =
            orphans.map(|(key, number)| (number.left().first().copied(), key.clone())).collect();
        orphans.sort_unstable();
        // Numbers that messages have come to wait for since the change stand there already.
        resolving.queue.clear();
        for (_, number) in orphans {
            let Some(waiting) = resolving.numbers.get_mut(&number) else { continue };
            (waiting.again, waiting.said) = (None, None);
            if self.settings.resolver {
                waiting.answer = None;
                resolving.queue.push_back(number);
            } else {
                waiting.answer = Some(NO_RESOLVER.clone());
                resolving.make_ready(&number);
            }
        }
    }

    /// Moves what waits for numbers that are answered.
    pub(crate) fn move_resolved(&mut self, now: Now, out: &mut Output) {
        self.adopt_orphans();
        while let Some(number) = self.resolving.ready.pop_front() {
            if let Some(waiting) = self.resolving.numbers.get_mut(&number) {
                waiting.ready = false;
            }
            if !self.move_those_of(now, &number, out) {
                break;
            }
        }
    }

    /// Moves what waits for a number, up to the first message whose content must be read; false if nothing more may be read
    /// at present, and then the number comes again.
    fn move_those_of(&mut self, now: Now, number: &AddressBytes, out: &mut Output) -> bool {
        while let Some(waiting) = self.resolving.numbers.get_mut(number) {
            let Some(answer) = waiting.answer.clone() else { break };
            let Some(id) = waiting.left().first().copied() else {
                self.resolving.numbers.remove(number);
                break;
            };
            waiting.done += 1;
            let Some(slot) = self.ids.get(&self.slab, id) else { continue };
            if self.slab[slot].state != State::Resolving {
                continue;
            }
            let Some(message) = self.slab[slot].message.clone() else {
                waiting.done -= 1;
                return self.slab[slot].has(flag::LOADING) || self.load_those_of(number, out);
            };
            // Else it waits for another number by now, having left this one by itself.
            if number_on_leg(&message, self.slab[slot].leg) == *number {
                self.take_answer(now, slot, &message, &answer, false, out);
            }
        }
        true
    }

    /// Asks for the content of the first messages that wait for a number.
    fn load_those_of(&mut self, number: &AddressBytes, out: &mut Output) -> bool {
        let room = LOAD_RUN.saturating_sub(self.resolving.loading.len());
        let Some(waiting) = self.resolving.numbers.get_mut(number) else { return true };
        if room == 0 {
            waiting.ready = true;
            self.resolving.ready.push_front(number.clone());
            return false;
        }
        let mut ids = Vec::new();
        for id in waiting.left().iter().take(room) {
            let Some(slot) = self.ids.get(&self.slab, *id) else { continue };
            let entry = &mut self.slab[slot];
            if entry.state == State::Resolving && entry.message.is_none() && !entry.has(flag::LOADING) {
                entry.set(flag::LOADING, true);
                ids.push(*id);
            }
        }
        self.resolving.loading.extend(&ids);
        out.commands.push(Command::Load { ids });
        true
    }

    /// The content of a message was read back, of whatever state.
    pub(crate) fn loaded_for_answer(&mut self, id: MessageId) {
        self.resolving.loading.remove(&id);
        if let Some(slot) = self.ids.get(&self.slab, id)
            && self.slab[slot].state == State::Resolving
            && let Some(message) = &self.slab[slot].message
        {
            let number = number_on_leg(message, self.slab[slot].leg);
            self.resolving.make_ready(&number);
        }
    }

    /// Asks the resolver about as many numbers as it may be asked about at a time.
    pub(crate) fn ask_resolver(&mut self, out: &mut Output) {
        if !self.settings.resolver || self.draining {
            return;
        }
        while self.resolving.asked.len() < self.settings.resolve_in_flight
            && let Some(number) = self.resolving.queue.pop_front()
        {
            let Some(waiting) = self.resolving.numbers.get_mut(&number) else { continue };
            let (ids, slab) = (&self.ids, &self.slab);
            let waits =
                |id: &MessageId| ids.get(slab, *id).is_some_and(|slot| slab[slot].state == State::Resolving);
            waiting.waiting.retain(|id| waits(id));
            if waiting.waiting.is_empty() {
                self.resolving.numbers.remove(&number);
                continue;
            }
            self.resolving.questions += 1;
            self.resolving.asked.insert(number.clone());
            out.commands.push(Command::Resolve { msisdn: number });
        }
    }

    /// What waits for a resolver, and what it was asked.
    #[must_use]
    pub fn resolving(&self) -> ResolvingStatus {
        ResolvingStatus {
            numbers: self.resolving.numbers.len() as u64,
            messages: self.resolving.messages,
            cached: self.resolving.known.len() as u64,
            hits: self.resolving.hits,
            questions: self.resolving.questions,
            in_flight: self.resolving.asked.len() as u64,
        }
    }
}

fn decided(answer: &Answer) -> StepKind {
    StepKind::Decided { hook: Hook::Resolver, by: answer.by.clone(), note: answer.note.clone() }
}

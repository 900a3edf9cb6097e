//! Lookups: messages whose number is looked up before they are routed.
//!
//! Each number has one entry with its waiting messages, and at most one pending question. The answer routes all these
//! messages. A message waits for a limited time; then it is routed without an answer. After a restart the messages are
//! routed again, which repeats the lookups.

use crate::engine::Engine;
use crate::slab::{Slot, State};
use crate::timer::Timer;
use crate::{EngineCommand, Output};
use model::{
    Hook, Lookup, LookupNumber, LookupResult, Message, MessageId, Moment, Now, PluginVersion, StepKind,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, LazyLock};

/// The answer for a message whose time ended before any answer came.
static NO_ANSWER: LazyLock<Arc<Lookup>> = LazyLock::new(|| {
    Arc::new(Lookup {
        result: LookupResult::Failed,
        attributes: Vec::new(),
        by: Arc::new(PluginVersion { plugin: "lookup".to_owned(), version: String::new() }),
        note: Some("no answer in time".into()),
        cached: false,
        host_calls: None,
    })
});

/// The numbers that messages wait for.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    numbers: FxHashMap<LookupNumber, PendingLookup>,
    /// Numbers to look up, in order.
    queue: VecDeque<LookupNumber>,
    /// Numbers to look up again, with the time of the repetition.
    retry_times: BTreeSet<(Moment, LookupNumber)>,
    in_flight: usize,
    /// Messages that wait.
    messages: usize,
    questions: u64,
    failed: u64,
}

/// A number that messages wait for.
#[derive(Debug, Default)]
struct PendingLookup {
    /// Waiting messages, in order of arrival. Some may no longer wait.
    waiting: Vec<MessageId>,
    is_asked: bool,
    /// The answer to the last question, if it failed.
    failed: Option<Arc<Lookup>>,
}

/// Counters of the lookups, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LookupStatus {
    /// Messages that wait.
    pub messages: u64,
    /// Numbers for which messages wait.
    pub numbers: u64,
    /// Lookups since the start.
    pub questions: u64,
    /// Messages that were routed without an answer, since the start.
    pub failed: u64,
}

impl Engine {
    /// Lets a message wait for the lookup of its number.
    pub(crate) fn await_lookup(&mut self, now: Now, slot: Slot, message: &Message) {
        let id = self.slab[slot].id;
        let Some(number) = LookupNumber::of(&message.destination) else {
            // Routing requests lookups of numbers only: it decides again.
            self.hold(slot, now.mono);
            return;
        };
        let due = now.mono + self.settings.lookup_timeout;
        let entry = &mut self.slab[slot];
        entry.state = State::AwaitingLookup;
        entry.due = due;
        self.timers.set(due, Timer::Message(slot, id));
        let lookups = &mut self.lookups;
        lookups.messages += 1;
        let is_new = !lookups.numbers.contains_key(&number);
        lookups.numbers.entry(number.clone()).or_default().waiting.push(id);
        if is_new {
            lookups.queue.push_back(number);
        }
    }

    /// Ends the wait of a message for its lookup.
    pub(crate) fn stop_awaiting_lookup(&mut self, slot: Slot) {
        self.slab[slot].state = State::Held;
        self.lookups.messages -= 1;
    }

    /// The time of a message is over: it is routed without an answer.
    pub(crate) fn lookup_timed_out(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let number =
            self.slab[slot].message.as_ref().and_then(|message| LookupNumber::of(&message.destination));
        let failed = number.and_then(|number| self.lookups.numbers.get(&number)?.failed.clone());
        let lookup = failed.unwrap_or_else(|| NO_ANSWER.clone());
        self.route_looked_up(now, slot, &lookup, out);
    }

    /// Applies the answer about a number.
    pub(crate) fn looked_up(
        &mut self,
        now: Now,
        number: LookupNumber,
        lookup: &Arc<Lookup>,
        out: &mut Output,
    ) {
        let lookups = &mut self.lookups;
        let Some(pending) = lookups.numbers.get_mut(&number).filter(|pending| pending.is_asked) else {
            return;
        };
        pending.is_asked = false;
        lookups.in_flight -= 1;
        if lookup.result == LookupResult::Failed {
            pending.failed = Some(lookup.clone());
            let at = now.mono + self.settings.lookup_retry_after;
            lookups.retry_times.insert((at, number));
            self.timers.set(at, Timer::Lookup);
            return;
        }
        let waiting = lookups.numbers.remove(&number).unwrap_or_default().waiting;
        for id in waiting {
            if let Some(slot) = self.ids.get(&self.slab, id)
                && self.slab[slot].state == State::AwaitingLookup
            {
                self.route_looked_up(now, slot, lookup, out);
            }
        }
    }

    /// Routes a message whose lookup has ended.
    fn route_looked_up(&mut self, now: Now, slot: Slot, lookup: &Arc<Lookup>, out: &mut Output) {
        self.stop_awaiting_lookup(slot);
        self.lookups.failed += u64::from(lookup.result == LookupResult::Failed);
        let kind = StepKind::Decided { hook: Hook::Lookup, by: lookup.by.clone(), note: lookup.note.clone() };
        self.add_step(now, slot, kind);
        if let Some(message) = &self.slab[slot].message {
            // The result is written with the routing. After a crash before that, the number is looked up again.
            let mut message = Message::clone(message);
            message.routed.lookup = Some(lookup.clone());
            self.cache(slot, Arc::new(message));
        }
        self.request_routing(now, slot, out);
    }

    /// Queues the failed lookups whose repetition is due.
    pub(crate) fn requeue_lookups(&mut self, now: Now) {
        while let Some((at, _)) = self.lookups.retry_times.first()
            && *at <= now.mono
            && let Some((_, number)) = self.lookups.retry_times.pop_first()
        {
            self.lookups.queue.push_back(number);
        }
    }

    /// Sends lookups, up to the limit of pending lookups.
    pub(crate) fn ask_lookups(&mut self, out: &mut Output) {
        if self.draining {
            return;
        }
        while self.lookups.in_flight < self.settings.lookups_in_flight
            && let Some(number) = self.lookups.queue.pop_front()
        {
            let Some(pending) = self.lookups.numbers.get_mut(&number) else { continue };
            let (ids, slab) = (&self.ids, &self.slab);
            pending.waiting.retain(|id| {
                ids.get(slab, *id).is_some_and(|slot| slab[slot].state == State::AwaitingLookup)
            });
            if pending.waiting.is_empty() {
                self.lookups.numbers.remove(&number);
                continue;
            }
            pending.is_asked = true;
            self.lookups.in_flight += 1;
            self.lookups.questions += 1;
            out.commands.push(EngineCommand::AskLookup { number });
        }
    }

    /// Counters of the lookups.
    #[must_use]
    pub fn lookup_status(&self) -> LookupStatus {
        LookupStatus {
            messages: self.lookups.messages as u64,
            numbers: self.lookups.numbers.len() as u64,
            questions: self.lookups.questions,
            failed: self.lookups.failed,
        }
    }
}

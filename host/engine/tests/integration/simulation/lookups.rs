//! Lookups with faults in the simulation, and the witness of their questions.

use crate::simulation::Random;
use engine::Event;
use model::{
    Lookup, LookupNumber, LookupResult, Message, MessageKind, PluginVersion, RoutingDecision, Verdict,
};
use std::sync::Arc;

/// The limit of pending questions.
pub(crate) const IN_FLIGHT: usize = 3;

/// There is never an answer about this number.
const SILENT: &str = "86113";

/// The pending questions.
#[derive(Default)]
pub(crate) struct Lookups {
    questions: Vec<LookupNumber>,
    /// Earlier questions: some answers are repeated, or come unasked.
    answered: Vec<LookupNumber>,
}

/// Lets some messages wait for their lookup; the numbers of the others are cached.
pub(crate) fn look_up(random: &mut Random, message: &Message, routed: RoutingDecision) -> RoutingDecision {
    if message.routed.lookup.is_some() {
        return RoutingDecision { lookup: message.routed.lookup.clone(), ..routed };
    }
    let goes_on = matches!(routed.verdict, Verdict::Forward(_));
    if !goes_on || random.chance(40) {
        return routed;
    }
    let RoutingDecision { screening, by, .. } = routed;
    RoutingDecision { screening, ..RoutingDecision::new(Verdict::AwaitLookup, by) }
}

fn answer(result: LookupResult) -> Arc<Lookup> {
    let found = result == LookupResult::Found;
    Arc::new(Lookup {
        result,
        attributes: if found { vec![("mnc".into(), "01".into())] } else { Vec::new() },
        by: Arc::new(PluginVersion { plugin: "sim".to_owned(), version: "1".to_owned() }),
        note: None,
        cached: false,
        host_calls: None,
    })
}

impl Lookups {
    /// A crash: pending questions are never answered, or too late.
    pub(crate) fn crashed(&mut self) {
        self.answered.append(&mut self.questions);
    }

    pub(crate) fn note_question(&mut self, number: LookupNumber) {
        assert!(!self.questions.contains(&number), "{number:?} is asked twice at a time");
        self.questions.push(number);
        assert!(self.questions.len() <= IN_FLIGHT, "{:?} at a time", self.questions);
    }

    /// An answer, mostly to a pending question.
    pub(crate) fn answer(&mut self, random: &mut Random, healthy: bool) -> Option<Event> {
        if !healthy && random.chance(5) && !self.answered.is_empty() {
            let number = self.answered[random.below(self.answered.len())].clone();
            self.questions.retain(|other| *other != number);
            return Some(Event::LookedUp { number, lookup: answer(LookupResult::Found) });
        }
        let open: Vec<usize> = (0..self.questions.len())
            .filter(|index| healthy || self.questions[*index].text() != SILENT)
            .collect();
        let number = self.questions.swap_remove(*open.get(random.below(open.len()))?);
        self.answered.push(number.clone());
        let result = match random.below(100) {
            _ if healthy => LookupResult::Found,
            0..40 => LookupResult::Found,
            40..60 => LookupResult::Unknown,
            _ => LookupResult::Failed,
        };
        Some(Event::LookedUp { number, lookup: answer(result) })
    }
}

/// Checks a message that is sent: one that waited was routed since.
pub(crate) fn sent(message: &Message) {
    let waits = message.routed.verdict == Verdict::AwaitLookup;
    assert!(message.kind != MessageKind::Text || !waits, "{:?} was sent and is not routed", message.id);
}

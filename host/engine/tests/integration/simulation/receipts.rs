//! A receipt policy with faults in the simulation.

use crate::simulation::Random;
use engine::Event;
use model::{
    AcceptedSubmission, DlrState, Message, MessageId, PluginVersion, ReceiptDecision, ReceiptEvent,
    ReceiptVerdict,
};
use std::sync::Arc;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Receipts {
    pub(crate) bound: bool,
    questions: Vec<(MessageId, u64, ReceiptEvent)>,
    /// Earlier answers: some are repeated.
    answered: Vec<(MessageId, u64)>,
}

impl Receipts {
    pub(crate) fn new(bound: bool) -> Self {
        Self { bound, ..Self::default() }
    }

    /// The engine crashed: its questions are never answered, or to another engine.
    pub(crate) fn crashed(&mut self) {
        self.questions.clear();
    }

    pub(crate) fn note(
        &mut self,
        message: &Message,
        question: u64,
        submission: AcceptedSubmission,
        event: ReceiptEvent,
    ) {
        assert!(self.bound, "{:?}: no receipt policy is bound", message.id);
        assert!(
            self.questions.iter().all(|(id, ..)| *id != message.id),
            "{:?} has two questions at a time",
            message.id
        );
        assert!(submission.leg.0 < submission.leg.1, "{:?}: {submission:?}", message.id);
        self.questions.push((message.id, question, event));
    }

    /// A decision, mostly on a question that has none.
    pub(crate) fn decide(&mut self, random: &mut Random, healthy: bool) -> Option<Event> {
        if !healthy && random.chance(5) && !self.answered.is_empty() {
            let (id, question) = self.answered[random.below(self.answered.len())];
            self.questions.retain(|(other, number, _)| (*other, *number) != (id, question));
            return Some(Event::ReceiptDecided { id, question, decision: None });
        }
        if self.questions.is_empty() {
            return None;
        }
        let (id, question, event) = self.questions.swap_remove(random.below(self.questions.len()));
        self.answered.push((id, question));
        let fault = !healthy && random.chance(10);
        let decision = (!fault).then(|| decision(random, healthy, event));
        Some(Event::ReceiptDecided { id, question, decision })
    }
}

fn decision(random: &mut Random, healthy: bool, event: ReceiptEvent) -> ReceiptDecision {
    let remap = |random: &mut Random| ReceiptVerdict::Remap {
        state: [DlrState::Delivered, DlrState::Undeliverable, DlrState::Enroute][random.below(3)],
        error: random.below(1_000) as u16,
    };
    let verdict = match (event, random.below(100)) {
        (ReceiptEvent::Accepted, _) => ReceiptVerdict::Accept,
        _ if healthy => ReceiptVerdict::Accept,
        (ReceiptEvent::Dlr(_), 0..40) => ReceiptVerdict::Accept,
        (ReceiptEvent::Dlr(_), 40..65) | (ReceiptEvent::Timeout, 0..60) => ReceiptVerdict::NextLeg,
        (ReceiptEvent::Dlr(_), 65..80) | (ReceiptEvent::Timeout, 60..65) => ReceiptVerdict::Suspect,
        (ReceiptEvent::Dlr(_), _) | (ReceiptEvent::Timeout, 65..80) => remap(random),
        (ReceiptEvent::Timeout, _) => ReceiptVerdict::Accept,
    };
    ReceiptDecision {
        verdict,
        wait: random.chance(60).then(|| Duration::from_millis(random.below(20_000) as u64)),
        by: Arc::new(PluginVersion { plugin: "receipts".to_owned(), version: "1".to_owned() }),
        note: random.chance(30).then(|| "so".into()),
    }
}

//! Observations of peers, for the statistics that routers ask for. They do not influence the engine.

use crate::Output;
use crate::engine::Engine;
use crate::slab::{Slot, flag};
use model::{FinalState, Now, ObservationKind, Outcome, PeerObservation, StepKind};
use std::time::Duration;

impl Engine {
    /// Records an observation of a message at its peer; DLRs for submitters do not count.
    pub(crate) fn observe(&self, now: Now, slot: Slot, kind: ObservationKind, out: &mut Output) {
        let entry = &self.slab[slot];
        if entry.has(flag::OWN_DLR) {
            return;
        }
        let (peer, origin, message) = (entry.peer, entry.origin, entry.message.clone());
        out.observations.push(PeerObservation { peer, origin, at: now.wall, message, kind });
    }

    pub(crate) fn observe_outcome(&self, now: Now, slot: Slot, outcome: &Outcome, out: &mut Output) {
        let kind = match outcome {
            Outcome::Accepted { .. } => ObservationKind::Accepted,
            Outcome::Refused { class, .. } => ObservationKind::Refused(*class),
            Outcome::Unanswered { .. } => ObservationKind::Unanswered,
            Outcome::NotSent => return,
        };
        self.observe(now, slot, kind, out);
    }

    /// Records the final state that the DLRs of a message report.
    pub(crate) fn observe_dlr(&self, now: Now, slot: Slot, state: FinalState, out: &mut Output) {
        let steps = self.slab[slot].history.as_ref().map_or(&[][..], |history| &history.steps);
        let submitted = steps
            .iter()
            .rev()
            .find(|step| matches!(step.kind, StepKind::Submitted { .. }))
            .map(|step| step.at);
        let after =
            Duration::from_millis(submitted.map_or(0, |submitted| now.wall.0.saturating_sub(submitted.0)));
        let kind = match state {
            FinalState::Delivered => ObservationKind::Delivered { after },
            _ => ObservationKind::Failed { after: Some(after) },
        };
        self.observe(now, slot, kind, out);
    }
}

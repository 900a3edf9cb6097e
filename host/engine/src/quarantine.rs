//! Messages that a screen stopped: in quarantine until an admin decides, or dropped.

use crate::Output;
use crate::engine::Engine;
use crate::slab::{Slot, State};
use model::{FinalState, Hook, Message, MessageId, Moment, Now, PeerId, StepKind, Verdict};
use std::ops::Bound::{Excluded, Unbounded};

impl Engine {
    /// Puts a message into quarantine. Without an admin's decision, it stays until its validity ends.
    pub(crate) fn enter_quarantine(&mut self, slot: Slot) {
        let entry = &mut self.slab[slot];
        entry.state = State::Quarantined;
        entry.due = Moment(u64::MAX);
        self.quarantined_ids.insert(entry.id);
    }

    /// Applies a verdict that prevents or delays routing, if the message has one.
    pub(crate) fn stop_before_routing(
        &mut self,
        now: Now,
        slot: Slot,
        message: &Message,
        out: &mut Output,
    ) -> bool {
        match message.routed.verdict {
            Verdict::Quarantine => {
                self.totals.quarantined += 1;
                self.add_screen_step(now, slot, message);
                self.add_step(now, slot, StepKind::Quarantined);
                self.enter_quarantine(slot);
                self.write_progress(now, slot, out);
                true
            }
            Verdict::Drop(_) => {
                self.totals.dropped_by_screens += 1;
                self.add_screen_step(now, slot, message);
                self.end(now, slot, FinalState::Rejected, None, out);
                true
            }
            Verdict::AwaitLookup => {
                self.await_lookup(now, slot, message);
                self.write_progress(now, slot, out);
                true
            }
            Verdict::Forward(_) | Verdict::Hold(_) | Verdict::Reject(_) => false,
        }
    }

    /// Adds the decision of the screens to the trace.
    fn add_screen_step(&mut self, now: Now, slot: Slot, message: &Message) {
        if let Some(screening) = &message.routed.screening {
            let kind = StepKind::Decided {
                hook: Hook::Screen,
                by: screening.by.clone(),
                note: screening.note.clone(),
            };
            self.add_step(now, slot, kind);
        }
    }

    /// Releases a message from quarantine: it is routed.
    pub(crate) fn release_from_quarantine(&mut self, now: Now, slot: Slot, out: &mut Output) {
        let id = self.slab[slot].id;
        self.quarantined_ids.remove(&id);
        // After a crash the message is routed too.
        self.hold(slot, now.mono);
        self.write_progress(now, slot, out);
        self.request_routing(now, slot, out);
    }

    /// Messages in quarantine with ids greater than `after`, by id, at most `most`, of one origin or of all.
    #[must_use]
    pub fn quarantined(&self, origin: Option<PeerId>, after: MessageId, most: usize) -> Vec<MessageId> {
        let of = |id: &&MessageId| {
            origin.is_none_or(|origin| {
                self.ids.get(&self.slab, **id).is_some_and(|slot| self.slab[slot].origin == origin)
            })
        };
        self.quarantined_ids.range((Excluded(after), Unbounded)).filter(of).take(most).copied().collect()
    }

    /// The number of messages in quarantine.
    #[must_use]
    pub fn quarantine_length(&self) -> usize {
        self.quarantined_ids.len()
    }
}

//! Records of plugin calls, for replays: steps of the trace that are not shown.
//!
//! The record of a call precedes the event that results from the call, and becomes durable with the writes of that event.

use crate::engine::Engine;
use crate::peer::InFlight;
use crate::slab::{Slot, State, flag};
use model::{CallRecord, FinalRecord, Hook, MessageId, Now};

impl Engine {
    pub(crate) fn call_recorded(&mut self, now: Now, id: MessageId, hook: Hook, record: CallRecord) {
        let Some(slot) = self.ids.get(&self.slab, id) else { return };
        if hook == Hook::Peer {
            if self.slab[slot].state == State::Submitted {
                self.submit_records.insert(id, record);
            }
        } else if self.slab[slot].history.is_some() {
            self.add_record(now, slot, hook, record);
        }
    }

    /// The record of the attempt whose outcome is applied, if there is one.
    pub(crate) fn take_submit_record(&mut self, id: MessageId) -> Option<CallRecord> {
        // Nearly always empty, so that links of other protocols pay nothing.
        if self.submit_records.is_empty() { None } else { self.submit_records.remove(&id) }
    }

    pub(crate) fn keep_submit_record(&mut self, now: Now, slot: Slot, flight: InFlight, record: CallRecord) {
        if !self.slab[slot].has(flag::OWN_DLR) {
            self.start_history(slot, flight);
            self.add_record(now, slot, Hook::Peer, record);
        }
    }

    fn add_record(&mut self, now: Now, slot: Slot, hook: Hook, record: CallRecord) {
        let kind = record.into_step(hook);
        let steps = &self.slab[slot].history_mut().steps;
        let sizes = steps.iter().filter_map(|step| step.kind.recorded_octets());
        let (count, octets) = sizes.fold((0, 0), |(count, octets), size| (count + 1, octets + size));
        if count < FinalRecord::MAX_RECORDED_CALLS
            && octets + kind.recorded_octets().unwrap_or(0) <= FinalRecord::MAX_RECORDED_OCTETS
        {
            self.add_step(now, slot, kind);
        }
    }
}

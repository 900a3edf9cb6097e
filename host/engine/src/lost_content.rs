//! Messages whose content is encrypted with a key that is missing.

use crate::Output;
use crate::engine::Engine;
use crate::slab::{Slot, State};
use model::{FinalState, Now, PeerMessageId, StepKind};

/// The error of messages that fail because the key of their content is missing. No network uses it: it has three digits, as
/// DLRs show it, and is above the codes of SMPP, MAP and RP errors.
pub const CONTENT_LOST_ERROR: u32 = 900;

impl Engine {
    /// Ends a message that cannot be submitted, since its content is unreadable.
    pub(crate) fn end_without_content(&mut self, now: Now, slot: Slot, out: &mut Output) {
        self.add_step(now, slot, StepKind::ContentErased { by: "destruction of its key".into() });
        let id = PeerMessageId::default();
        self.end_with(now, slot, FinalState::Failed, CONTENT_LOST_ERROR, id, None, out);
    }

    /// Ends a recovered message whose content is unreadable, unless it may have been delivered: what is known of that is told
    /// first. If it has to be submitted again, it ends then.
    pub(crate) fn end_recovered_without_content(&mut self, now: Now, slot: Slot, out: &mut Output) {
        if !matches!(self.slab[slot].state, State::AwaitingDlr | State::Uncertain | State::Submitted) {
            self.end_without_content(now, slot, out);
        }
    }
}

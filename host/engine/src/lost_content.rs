//! Messages whose content is encrypted with a key that is missing.

use crate::Output;
use crate::engine::Engine;
use crate::slab::{Slot, State};
use model::{FinalState, Now, PeerMessageId, StepKind};

/// The error code of messages that fail because the key of their content is missing. It has three digits, as in DLRs, and is
/// above the error codes of SMPP, MAP and RP, so no network uses it.
pub const CONTENT_LOST_ERROR: u32 = 900;

impl Engine {
    /// Ends a message that cannot be submitted, since its content is unreadable.
    pub(crate) fn end_without_content(&mut self, now: Now, slot: Slot, out: &mut Output) {
        self.add_step(now, slot, StepKind::ContentErased { by: "destruction of its key".into() });
        let id = PeerMessageId::default();
        self.end_with(now, slot, FinalState::Failed, CONTENT_LOST_ERROR, id, None, out);
    }

    /// Ends a recovered message whose content is unreadable, unless a peer may have it: then the outcome or the DLR is
    /// awaited first. If the message must be submitted again, it ends at that time.
    pub(crate) fn end_recovered_without_content(&mut self, now: Now, slot: Slot, out: &mut Output) {
        if !matches!(self.slab[slot].state, State::AwaitingDlr | State::Uncertain | State::Submitted) {
            self.end_without_content(now, slot, out);
        }
    }
}

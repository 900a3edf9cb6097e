use crate::{FinalRecord, Message, MessageId, Step, StepKind, Timestamp};
use std::sync::Arc;

/// The erasure of the content of a finished message.
///
/// The content is the text, the text as submitted if a screen replaced it, and the recorded host calls of plugins with their
/// results, which can quote the text. Addresses, states, prices and notes stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentErasure {
    /// The message.
    pub id: MessageId,
    /// The time of the erasure.
    pub at: Timestamp,
    /// The admin, or the rule that required it.
    pub by: Arc<str>,
}

impl ContentErasure {
    /// Erases the content of the message. Without effect if that was done before.
    pub fn apply(&self, message: &mut Message, ended: &mut FinalRecord) {
        message.sealed = None;
        if ended.content_erased_at().is_some() {
            return;
        }
        message.clear_content();
        ended.steps.retain(|step| !step.kind.is_record());
        ended.steps.push(Step { at: self.at, kind: StepKind::ContentErased { by: self.by.clone() } });
    }
}

impl Message {
    /// Removes the text, the text as submitted, and host calls.
    pub fn clear_content(&mut self) {
        self.text.octets = bytes::Bytes::new();
        let routed = &mut self.routed;
        routed.host_calls = None;
        if let Some(screening) = &mut routed.screening {
            screening.host_calls = None;
            if let Some(submitted) = &mut screening.submitted_text {
                submitted.octets = bytes::Bytes::new();
            }
        }
        if let Some(lookup) = &mut routed.lookup
            && lookup.host_calls.is_some()
        {
            Arc::make_mut(lookup).host_calls = None;
        }
    }
}

//! Preview of a queue action: the messages that it would match. Read-only.

use crate::engine::Engine;
use crate::queue_actions::rules::{initial_state, matches_entry};
use crate::slab::Slot;
use crate::{MessageState, NewQueueAction};
use model::{MessageId, Now, QueueAction, QueueActionId};
use std::collections::BTreeMap;

/// The result of one part of a preview.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueActionSurvey {
    /// Matching messages, by state.
    pub concerned: BTreeMap<MessageState, u64>,
    /// The oldest matching messages, by id; at most [`QueueActionSurvey::SAMPLE`].
    pub oldest: Vec<MessageId>,
    /// Messages whose match depends on content that is not cached; by id.
    pub unknown: Vec<(MessageId, MessageState)>,
    /// The start of the next part; `None` after the last one.
    pub next: Option<u32>,
}

impl QueueActionSurvey {
    /// Maximum number of messages listed.
    pub const SAMPLE: usize = 20;
}

impl Engine {
    /// Scans `looks` slab entries from `at` on for waiting messages that the action would match.
    #[must_use]
    pub fn survey(&self, now: Now, request: &NewQueueAction, at: u32, looks: usize) -> QueueActionSurvey {
        let action = QueueAction {
            id: QueueActionId(0),
            kind: request.kind,
            scope: request.scope.clone(),
            to: request.to,
            by: request.by.clone(),
            reason: request.reason.clone(),
            at: now.wall,
            before_id: self.next_id,
            undo_until: None,
            state: initial_state(request.kind),
            affected: 0,
        };
        let capacity = Slot::try_from(self.slab.capacity()).unwrap_or(Slot::MAX);
        let end = at.saturating_add(u32::try_from(looks).unwrap_or(u32::MAX)).min(capacity);
        let mut survey =
            QueueActionSurvey { next: (end < capacity).then_some(end), ..QueueActionSurvey::default() };
        for slot in at..end {
            let entry = &self.slab[slot];
            if !entry.state.waits() || !matches_entry(&action, entry, now.wall) {
                continue;
            }
            let Some(status) = self.message(entry.id) else { continue };
            match &entry.message {
                None if action.scope.prefix.is_some() => survey.unknown.push((entry.id, status.state)),
                Some(message) if !action.scope.matches_destination(message) => {}
                _ => {
                    *survey.concerned.entry(status.state).or_default() += 1;
                    survey.oldest.push(entry.id);
                }
            }
        }
        survey.oldest.sort_unstable();
        survey.oldest.truncate(QueueActionSurvey::SAMPLE);
        survey.unknown.sort_unstable();
        survey
    }
}

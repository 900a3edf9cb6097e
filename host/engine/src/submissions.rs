//! Submissions to several destinations: messages that share one id towards their submitter.

use model::MessageId;
use std::collections::BTreeMap;

/// The live messages of a submission.
#[derive(Debug)]
struct LiveSubmission {
    /// The greatest id of the submission's messages.
    last: MessageId,
    count: u32,
}

/// Submissions with live messages. The messages of a submission have consecutive ids, so no index is needed.
#[derive(Debug, Default)]
pub(crate) struct Submissions {
    /// By the submission's id, which is the id of its first accepted message. The id ranges of submissions do not overlap.
    live: BTreeMap<MessageId, LiveSubmission>,
}

impl Submissions {
    /// Adds a message to a submission.
    pub(crate) fn join(&mut self, submission: MessageId, id: MessageId) {
        let live = self.live.entry(submission).or_insert(LiveSubmission { last: id, count: 0 });
        live.last = live.last.max(id);
        live.count += 1;
    }

    /// Removes a message that has left memory, if it belongs to a submission.
    pub(crate) fn leave(&mut self, id: MessageId) {
        let Some((submission, live)) = self.live.range_mut(..=id).next_back() else { return };
        if id > live.last {
            return;
        }
        live.count -= 1;
        if live.count == 0 {
            let submission = *submission;
            self.live.remove(&submission);
        }
    }

    /// The id of the last message of a live submission.
    pub(crate) fn last(&self, submission: MessageId) -> Option<MessageId> {
        self.live.get(&submission).map(|live| live.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submission_is_known_until_its_last_message_has_ended() {
        let mut all = Submissions::default();
        all.join(MessageId(10), MessageId(10));
        all.join(MessageId(10), MessageId(11));
        all.join(MessageId(10), MessageId(12));
        all.join(MessageId(20), MessageId(20));
        for single in [9, 13, 19, 21] {
            all.leave(MessageId(single));
        }
        all.leave(MessageId(10));
        all.leave(MessageId(12));
        assert_eq!(all.last(MessageId(10)), Some(MessageId(12)));
        assert_eq!(all.last(MessageId(11)), None);
        all.leave(MessageId(11));
        assert_eq!((all.last(MessageId(10)), all.live.len()), (None, 1));
        all.leave(MessageId(20));
        assert!(all.live.is_empty());
    }

    #[test]
    fn after_a_restart_a_submission_consists_of_its_remaining_messages() {
        let mut all = Submissions::default();
        all.join(MessageId(10), MessageId(12));
        assert_eq!(all.last(MessageId(10)), Some(MessageId(12)));
        all.leave(MessageId(12));
        assert_eq!(all.last(MessageId(10)), None);
    }
}

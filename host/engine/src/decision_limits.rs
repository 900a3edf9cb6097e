//! The limits that the decisions of plugins name, by message. Most messages have none.

use crate::pace_limits::LimitIndex;
use model::MessageId;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The limits of messages. Messages with the same limits share one set.
#[derive(Debug, Default)]
pub(crate) struct DecisionLimits {
    of: FxHashMap<MessageId, Arc<[LimitIndex]>>,
    sets: BTreeSet<Arc<[LimitIndex]>>,
}

impl DecisionLimits {
    /// The limits of a message.
    pub(crate) fn get(&self, id: MessageId) -> &[LimitIndex] {
        if self.of.is_empty() {
            return &[];
        }
        self.of.get(&id).map_or(&[], |set| set)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Sets the limits of a message. Returns the set, if it is new: no message had it before.
    pub(crate) fn set(&mut self, id: MessageId, limits: Vec<LimitIndex>) -> Option<Arc<[LimitIndex]>> {
        if let Some(known) = self.sets.get(limits.as_slice()) {
            self.of.insert(id, known.clone());
            return None;
        }
        let set: Arc<[LimitIndex]> = limits.into();
        self.sets.insert(set.clone());
        self.of.insert(id, set.clone());
        Some(set)
    }

    /// Removes the limits of a message. Returns the set, if no message has it any more.
    pub(crate) fn remove(&mut self, id: MessageId) -> Option<Arc<[LimitIndex]>> {
        let set = self.of.remove(&id)?;
        // Two references: this one, and the one in `sets`.
        if Arc::strong_count(&set) > 2 {
            return None;
        }
        self.sets.remove(&set);
        if self.of.is_empty() {
            self.of.shrink_to_fit();
        }
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_share_sets_of_limits() {
        let mut limits = DecisionLimits::default();
        assert!(limits.set(MessageId(1), vec![1, 2]).is_some());
        assert!(limits.set(MessageId(2), vec![1, 2]).is_none());
        assert_eq!((limits.get(MessageId(2)), limits.get(MessageId(3))), (&[1, 2][..], &[][..]));
        assert_eq!(limits.remove(MessageId(1)), None);
        assert_eq!(limits.remove(MessageId(1)), None);
        assert_eq!(limits.remove(MessageId(2)).as_deref(), Some(&[1, 2][..]));
        assert!(limits.is_empty() && limits.sets.is_empty());
    }
}

//! The index of submit attempts of other partitions.

use model::{MessageId, PeerId};
use rustc_hash::FxHashMap;

/// An attempt: the account of its partition, the message there, and the number of the attempt.
type AttemptKey = (PeerId, MessageId, u16);

/// Index of the attempts of other partitions by their live entries.
#[derive(Debug, Default)]
pub(crate) struct RemoteAttempts {
    /// The message of this partition, and the number of live entries: the message, its outcomes and its DLRs.
    pub(crate) messages: FxHashMap<AttemptKey, (MessageId, u32)>,
    entries: FxHashMap<MessageId, AttemptKey>,
}

impl RemoteAttempts {
    pub(crate) fn add(&mut self, key: AttemptKey, entry: MessageId, message: MessageId) {
        if self.entries.insert(entry, key).is_none() {
            self.messages.entry(key).or_insert((message, 0)).1 += 1;
        }
    }

    /// Removes a live entry.
    pub(crate) fn remove(&mut self, entry: MessageId) {
        let Some(key) = self.entries.remove(&entry) else { return };
        if let Some((_, live)) = self.messages.get_mut(&key) {
            *live -= 1;
            if *live == 0 {
                self.messages.remove(&key);
            }
        }
    }
}

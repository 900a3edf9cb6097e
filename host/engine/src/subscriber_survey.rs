//! Survey of one subscriber: the messages that wait, and the message that blocks them. Read-only.

use crate::engine::Engine;
use crate::leg_subscriber::without_plus;
use crate::slab::{NONE, Slot, State};
use crate::subscriber_lock::SubscriberKey;
use crate::{MessageState, MessageStatus};
use model::{AddressBytes, Imsi, MessageId, Now, Timestamp};
use std::collections::BTreeMap;

/// The identity of a subscriber at serial peers and at the resolver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriberIdentity {
    /// The IMSI.
    pub imsi: Option<Imsi>,
    /// The number; a leading plus sign makes no difference.
    pub msisdn: Option<AddressBytes>,
}

/// The result of one part of a survey.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriberSurvey {
    /// Live messages to the subscriber, by state.
    pub messages: BTreeMap<MessageState, u64>,
    /// The oldest of these messages, and its time of acceptance in whole seconds.
    pub oldest: Option<(MessageId, Timestamp)>,
    /// Messages in back-off after a failed attempt, by id; at most [`SubscriberSurvey::MAX_FAILED`].
    pub failed: Vec<MessageId>,
    /// The start of the next part; `None` after the last one.
    pub next: Option<u32>,
}

/// The holder of a subscriber's lock at a serial peer.
#[derive(Debug, Clone)]
pub struct SubscriberLockStatus {
    /// The message: being sent, being decided, or in back-off.
    pub holder: MessageStatus,
    /// It is in back-off, and nothing else is sent to the subscriber until then.
    pub backing_off: bool,
}

impl SubscriberSurvey {
    /// Maximum number of failed messages listed.
    pub const MAX_FAILED: usize = 1000;

    fn add(&mut self, id: MessageId, accepted: u32, state: MessageState) {
        *self.messages.entry(state).or_default() += 1;
        if self.oldest.is_none_or(|(oldest, _)| id < oldest) {
            self.oldest = Some((id, Timestamp(u64::from(accepted) * 1000)));
        }
    }
}

impl Engine {
    /// The subscriber's lock keys: one per serial peer and identity.
    fn lock_keys(&self, names: &SubscriberIdentity) -> Vec<u64> {
        let number = names.msisdn.as_ref().map(|number| without_plus(number));
        let mut keys = Vec::new();
        for (peer, state) in (0_u32..).zip(&self.peers) {
            if state.settings.serial {
                keys.extend(
                    names
                        .imsi
                        .as_ref()
                        .map(|imsi| self.subscriber_locks.key(peer, SubscriberKey::Imsi(&imsi.0))),
                );
                keys.extend(
                    number
                        .as_ref()
                        .map(|number| self.subscriber_locks.key(peer, SubscriberKey::Number(number))),
                );
            }
        }
        keys
    }

    /// The cached subscriber of a number.
    #[must_use]
    pub fn cached_imsi(&self, now: Now, msisdn: &AddressBytes) -> Option<Imsi> {
        self.resolver_state.cached_imsi(&without_plus(msisdn), now.mono)
    }

    /// The holders of a subscriber's locks.
    #[must_use]
    pub fn subscriber_locks_of(&self, names: &SubscriberIdentity) -> Vec<SubscriberLockStatus> {
        let of_key = |key: u64| {
            let lock = self.subscriber_locks.get(key)?;
            Some(SubscriberLockStatus { holder: self.message(lock.holder?)?, backing_off: lock.backing_off })
        };
        self.lock_keys(names).into_iter().filter_map(of_key).collect()
    }

    /// Scans `looks` slab entries from `at` on for messages to a subscriber at serial peers. The first part also
    /// includes messages whose subscriber is being looked up.
    #[must_use]
    pub fn survey_subscriber(&self, names: &SubscriberIdentity, at: u32, looks: usize) -> SubscriberSurvey {
        let keys = self.lock_keys(names);
        let capacity = Slot::try_from(self.slab.capacity()).unwrap_or(Slot::MAX);
        let end = at.saturating_add(u32::try_from(looks).unwrap_or(u32::MAX)).min(capacity);
        let mut survey = SubscriberSurvey { next: (end < capacity).then_some(end), ..Default::default() };
        for slot in at..end {
            let entry = &self.slab[slot];
            let is_live =
                !matches!(entry.state, State::Free | State::Tombstone | State::AwaitingDlr | State::Ending);
            if entry.subscriber == 0 || !is_live || !keys.contains(&entry.subscriber) {
                continue;
            }
            let Some(status) = self.message(entry.id) else { continue };
            survey.add(entry.id, entry.accepted, status.state);
            // A message without attempts waits for its scheduled time.
            if entry.state == State::Deferred
                && entry.attempts > 0
                && survey.failed.len() < SubscriberSurvey::MAX_FAILED
            {
                survey.failed.push(entry.id);
            }
        }
        if at == 0
            && let Some(number) = &names.msisdn
        {
            for id in self.resolver_state.waiting_for(&without_plus(number)) {
                let slot = self.ids.get(&self.slab, *id).unwrap_or(NONE);
                if slot != NONE && self.slab[slot].state == State::Resolving {
                    survey.add(*id, self.slab[slot].accepted, MessageState::Resolving);
                }
            }
        }
        survey
    }
}

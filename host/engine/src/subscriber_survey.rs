//! What waits for one subscriber, and who stands in the way. Reading changes nothing.

use crate::engine::Engine;
use crate::resolving::without_plus;
use crate::slab::{NONE, Slot, State};
use crate::turns::Name;
use crate::{Doing, MessageStatus};
use model::{AddressBytes, Imsi, MessageId, Now, Timestamp};
use std::collections::BTreeMap;

/// By what a subscriber is known to serial peers and to the resolver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriberNames {
    /// The IMSI.
    pub imsi: Option<Imsi>,
    /// The number; a leading plus sign makes no difference.
    pub msisdn: Option<AddressBytes>,
}

/// What a look at a part of all messages has found of one subscriber.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriberSurvey {
    /// Messages to the subscriber that have not ended, by what they do.
    pub messages: BTreeMap<Doing, u64>,
    /// The oldest of them, and when it was accepted; seconds are whole.
    pub oldest: Option<(MessageId, Timestamp)>,
    /// Messages that wait for their next attempt after one that failed, by id; at most [`SubscriberSurvey::MOST`].
    pub failed: Vec<MessageId>,
    /// Where the next look begins; `None` once all were looked at.
    pub next: Option<u32>,
}

/// The message that has a subscriber's turn at a serial peer.
#[derive(Debug, Clone)]
pub struct SubscriberTurn {
    /// The message: on its way, being decided on, or waiting after a failure.
    pub holder: MessageStatus,
    /// It waits after a failure, and nothing is sent to the subscriber until then.
    pub parked: bool,
}

impl SubscriberSurvey {
    /// How many failed messages are named.
    pub const MOST: usize = 1000;

    fn add(&mut self, id: MessageId, accepted: u32, doing: Doing) {
        *self.messages.entry(doing).or_default() += 1;
        if self.oldest.is_none_or(|(oldest, _)| id < oldest) {
            self.oldest = Some((id, Timestamp(u64::from(accepted) * 1000)));
        }
    }
}

impl Engine {
    /// The keys of a subscriber's turns: one for each serial peer and name.
    fn turn_keys(&self, names: &SubscriberNames) -> Vec<u64> {
        let number = names.msisdn.as_ref().map(|number| without_plus(number));
        let mut keys = Vec::new();
        for (peer, state) in (0_u32..).zip(&self.peers) {
            if state.settings.serial {
                keys.extend(names.imsi.as_ref().map(|imsi| self.turns.key(peer, Name::Imsi(&imsi.0))));
                keys.extend(number.as_ref().map(|number| self.turns.key(peer, Name::Number(number))));
            }
        }
        keys
    }

    /// The subscriber that a resolver has found behind a number, while that answer is remembered.
    #[must_use]
    pub fn remembered_imsi(&self, now: Now, msisdn: &AddressBytes) -> Option<Imsi> {
        self.resolving.remembered_imsi(&without_plus(msisdn), now.mono)
    }

    /// Who has a subscriber's turn, at each serial peer where somebody has it.
    #[must_use]
    pub fn turns_of(&self, names: &SubscriberNames) -> Vec<SubscriberTurn> {
        let of_key = |key: u64| {
            let turn = self.turns.get(key)?;
            Some(SubscriberTurn { holder: self.message(turn.holder?)?, parked: turn.parked })
        };
        self.turn_keys(names).into_iter().filter_map(of_key).collect()
    }

    /// Looks at `looks` places in memory, from `at` on, for messages to a subscriber: those that serial peers are to deliver,
    /// and, in the first look, those that wait for the subscriber behind the number to be found.
    #[must_use]
    pub fn survey_subscriber(&self, names: &SubscriberNames, at: u32, looks: usize) -> SubscriberSurvey {
        let keys = self.turn_keys(names);
        let capacity = Slot::try_from(self.slab.capacity()).unwrap_or(Slot::MAX);
        let end = at.saturating_add(u32::try_from(looks).unwrap_or(u32::MAX)).min(capacity);
        let mut survey = SubscriberSurvey { next: (end < capacity).then_some(end), ..Default::default() };
        for slot in at..end {
            let entry = &self.slab[slot];
            let is_live = !matches!(entry.state, State::Free | State::Ghost | State::Receipt | State::Ending);
            if entry.subscriber == 0 || !is_live || !keys.contains(&entry.subscriber) {
                continue;
            }
            let Some(status) = self.message(entry.id) else { continue };
            survey.add(entry.id, entry.accepted, status.doing);
            // What has not been tried waits for its scheduled time.
            if entry.state == State::Deferred
                && entry.attempts > 0
                && survey.failed.len() < SubscriberSurvey::MOST
            {
                survey.failed.push(entry.id);
            }
        }
        if at == 0
            && let Some(number) = &names.msisdn
        {
            for id in self.resolving.waiting_for(&without_plus(number)) {
                let slot = self.ids.get(&self.slab, *id).unwrap_or(NONE);
                if slot != NONE && self.slab[slot].state == State::Resolving {
                    survey.add(*id, self.slab[slot].accepted, Doing::Resolving);
                }
            }
        }
        survey
    }
}

//! What an order would concern, told without giving it. Reading changes nothing.

use crate::engine::Engine;
use crate::orders::{first_state, fits_entry};
use crate::slab::Slot;
use crate::{Doing, OrderWish};
use model::{MessageId, Now, Order, OrderId};
use std::collections::BTreeMap;

/// What a look at a part of all messages has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Messages that are concerned, by what they do.
    pub concerned: BTreeMap<Doing, u64>,
    /// The oldest of them, by id; at most [`Survey::SAMPLE`].
    pub oldest: Vec<MessageId>,
    /// Messages of which only their content can tell, which is not in memory; by id.
    pub unknown: Vec<(MessageId, Doing)>,
    /// Where the next look begins; `None` once all were looked at.
    pub next: Option<u32>,
}

impl Survey {
    /// How many are named.
    pub const SAMPLE: usize = 20;
}

impl Engine {
    /// Looks at `looks` places in memory, from `at` on, for messages that wait and that an order would concern.
    #[must_use]
    pub fn survey(&self, now: Now, wish: &OrderWish, at: u32, looks: usize) -> Survey {
        let order = Order {
            id: OrderId(0),
            kind: wish.kind,
            scope: wish.scope.clone(),
            to: wish.to,
            by: wish.by.clone(),
            why: wish.why.clone(),
            at: now.wall,
            upto: self.next_id,
            undo_until: None,
            state: first_state(wish.kind),
            touched: 0,
        };
        let capacity = Slot::try_from(self.slab.capacity()).unwrap_or(Slot::MAX);
        let end = at.saturating_add(u32::try_from(looks).unwrap_or(u32::MAX)).min(capacity);
        let mut survey = Survey { next: (end < capacity).then_some(end), ..Survey::default() };
        for slot in at..end {
            let entry = &self.slab[slot];
            if !entry.state.waits() || !fits_entry(&order, entry, now.wall) {
                continue;
            }
            let Some(status) = self.message(entry.id) else { continue };
            match &entry.message {
                None if order.scope.prefix.is_some() => survey.unknown.push((entry.id, status.doing)),
                Some(message) if !order.scope.fits_destination(message) => {}
                _ => {
                    *survey.concerned.entry(status.doing).or_default() += 1;
                    survey.oldest.push(entry.id);
                }
            }
        }
        survey.oldest.sort_unstable();
        survey.oldest.truncate(Survey::SAMPLE);
        survey.unknown.sort_unstable();
        survey
    }
}

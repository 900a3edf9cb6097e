//! Pending decisions of the delivery policy, and messages that wait for a subscriber alert.

use model::{AddressBytes, ErrorClass, Imsi, MessageId};
use std::collections::{BTreeSet, HashMap};

/// A failed attempt with a pending decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailedAttempt {
    pub(crate) attempt: u16,
    pub(crate) class: ErrorClass,
    pub(crate) code: u32,
}

/// Pending decisions, and messages that wait for a subscriber alert.
#[derive(Debug, Default)]
pub(crate) struct DeliveryPolicyState {
    pub(crate) pending: HashMap<MessageId, FailedAttempt>,
    by_number: HashMap<AddressBytes, BTreeSet<MessageId>>,
    by_imsi: HashMap<Imsi, BTreeSet<MessageId>>,
    names: HashMap<MessageId, (AddressBytes, Option<Imsi>)>,
}

impl DeliveryPolicyState {
    pub(crate) fn await_alert(&mut self, number: AddressBytes, imsi: Option<Imsi>, id: MessageId) {
        self.by_number.entry(number.clone()).or_default().insert(id);
        if let Some(imsi) = &imsi {
            self.by_imsi.entry(imsi.clone()).or_default().insert(id);
        }
        self.names.insert(id, (number, imsi));
    }

    /// Ends the wait of a message for an alert, if it has one.
    pub(crate) fn forget_alert(&mut self, id: MessageId) {
        let Some((number, imsi)) = self.names.remove(&id) else { return };
        if let Some(ids) = self.by_number.get_mut(&number) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_number.remove(&number);
            }
        }
        if let Some(imsi) = imsi
            && let Some(ids) = self.by_imsi.get_mut(&imsi)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_imsi.remove(&imsi);
            }
        }
    }

    /// The messages that wait for an alert under a number, oldest first.
    pub(crate) fn waiting_for_number(&self, number: &AddressBytes) -> Vec<MessageId> {
        self.by_number.get(number).into_iter().flatten().copied().collect()
    }

    /// The messages to a number that wait for another subscriber than this one, oldest first.
    pub(crate) fn waiting_for_other_imsi(&self, number: &AddressBytes, imsi: &Imsi) -> Vec<MessageId> {
        let other = |id: &MessageId| {
            let named = self.names.get(id).and_then(|(_, named)| named.as_ref());
            named.is_some_and(|named| named != imsi)
        };
        self.by_number.get(number).into_iter().flatten().copied().filter(other).collect()
    }

    /// The messages that wait for an alert under an IMSI, oldest first.
    pub(crate) fn waiting_for_imsi(&self, imsi: &Imsi) -> Vec<MessageId> {
        self.by_imsi.get(imsi).into_iter().flatten().copied().collect()
    }
}

//! Known subscribers, learnt from relayed signalling and from HLR answers.

use crate::mt::ConnId;
use api::PresenceSign;
use gsup::GsupImsi;
use model::AddressBytes;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Maximum number of subscribers, about 150 octets each. Above the limit, the HLR is queried, as it is for all
/// subscribers after a start.
const MAX_SUBSCRIBERS: usize = 1_000_000;

/// Locations and MSISDNs of subscribers.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    by_imsi: FxHashMap<GsupImsi, SubscriberRecord>,
    by_number: FxHashMap<AddressBytes, GsupImsi>,
    /// Changes that the engine has not received yet.
    msisdn_changes: Vec<MsisdnChange>,
}

/// An MSISDN that is now assigned to another IMSI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MsisdnChange {
    pub(crate) msisdn: AddressBytes,
    pub(crate) imsi: GsupImsi,
    /// The previous IMSI.
    pub(crate) previous: Option<GsupImsi>,
}

#[derive(Debug, Default)]
struct SubscriberRecord {
    msisdn: Option<AddressBytes>,
    /// The name of the current or last MSC.
    msc: Option<Arc<str>>,
    /// The connection on which the subscriber was seen. Two MSCs may have the same name.
    conn: Option<ConnId>,
    /// The last sign of presence, with its time in milliseconds since the epoch.
    presence: Option<(u64, PresenceSign)>,
}

impl Inner {
    fn record(&mut self, imsi: &GsupImsi) -> Option<&mut SubscriberRecord> {
        if !self.by_imsi.contains_key(imsi) {
            if self.by_imsi.len() >= MAX_SUBSCRIBERS {
                return None;
            }
            self.by_imsi.insert(*imsi, SubscriberRecord::default());
        }
        self.by_imsi.get_mut(imsi)
    }
}

impl Subscribers {
    /// Sets the MSC of a subscriber, as seen on this connection or reported by the HLR (`None`).
    pub(crate) fn set_msc(&self, imsi: &GsupImsi, msc: &Arc<str>, conn: Option<ConnId>) {
        let mut inner = self.inner.lock();
        if let Some(record) = inner.record(imsi) {
            (record.msc, record.conn) = (Some(msc.clone()), conn);
        }
    }

    /// Records a sign of presence; `at` is in milliseconds since the epoch.
    pub(crate) fn set_presence(&self, imsi: &GsupImsi, at: u64, sign: PresenceSign) {
        let mut inner = self.inner.lock();
        if let Some(record) = inner.record(imsi) {
            record.presence = Some((at, sign));
        }
    }

    /// The last sign of presence and its time.
    pub(crate) fn presence_of(&self, imsi: &GsupImsi) -> Option<(u64, PresenceSign)> {
        self.inner.lock().by_imsi.get(imsi)?.presence
    }

    /// Whether the subscriber is known.
    pub(crate) fn is_known(&self, imsi: &GsupImsi) -> bool {
        self.inner.lock().by_imsi.contains_key(imsi)
    }

    /// Assigns an MSISDN to a subscriber. It is removed from the subscriber that had it before.
    pub(crate) fn set_msisdn(&self, imsi: &GsupImsi, msisdn: &AddressBytes) {
        let mut inner = self.inner.lock();
        let Some(record) = inner.record(imsi) else { return };
        let previous = record.msisdn.replace(msisdn.clone());
        if previous.as_ref() == Some(msisdn) {
            return;
        }
        if let Some(previous) = previous
            && inner.by_number.get(&previous) == Some(imsi)
        {
            inner.by_number.remove(&previous);
        }
        let previous = inner.by_number.insert(msisdn.clone(), *imsi);
        if let Some(other) = previous
            && let Some(record) = inner.by_imsi.get_mut(&other)
        {
            record.msisdn = None;
        }
        if inner.msisdn_changes.len() < MAX_SUBSCRIBERS {
            inner.msisdn_changes.push(MsisdnChange { msisdn: msisdn.clone(), imsi: *imsi, previous });
        }
    }

    /// Takes the changes since the last call, in order.
    pub(crate) fn take_msisdn_changes(&self) -> Vec<MsisdnChange> {
        std::mem::take(&mut self.inner.lock().msisdn_changes)
    }

    /// The last known MSC of a subscriber.
    pub(crate) fn msc_of(&self, imsi: &GsupImsi) -> Option<Arc<str>> {
        self.location_of(imsi).map(|(msc, _)| msc)
    }

    /// The last known MSC, and the connection on which the subscriber was seen.
    pub(crate) fn location_of(&self, imsi: &GsupImsi) -> Option<(Arc<str>, Option<ConnId>)> {
        let inner = self.inner.lock();
        let record = inner.by_imsi.get(imsi)?;
        Some((record.msc.clone()?, record.conn))
    }

    /// The subscriber with this MSISDN, if known.
    pub(crate) fn imsi_of(&self, msisdn: &[u8]) -> Option<GsupImsi> {
        self.inner.lock().by_number.get(msisdn).copied()
    }

    /// The MSISDN of a subscriber, if known.
    pub(crate) fn msisdn_of(&self, imsi: &GsupImsi) -> Option<AddressBytes> {
        self.inner.lock().by_imsi.get(imsi)?.msisdn.clone()
    }

    /// Removes a subscriber that the HLR does not know.
    pub(crate) fn remove(&self, imsi: &GsupImsi) {
        let mut inner = self.inner.lock();
        if let Some(record) = inner.by_imsi.remove(imsi)
            && let Some(msisdn) = record.msisdn
            && inner.by_number.get(&msisdn) == Some(imsi)
        {
            inner.by_number.remove(&msisdn);
        }
    }

    /// Number of known subscribers.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().by_imsi.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imsi(digits: &str) -> GsupImsi {
        digits.parse().unwrap()
    }

    fn number(digits: &str) -> AddressBytes {
        AddressBytes::from_slice(digits.as_bytes())
    }

    #[test]
    fn msisdn_and_imsi_map_one_to_one() {
        let subscribers = Subscribers::default();
        let (a, b) = (imsi("001010000000001"), imsi("001010000000002"));
        subscribers.set_msisdn(&a, &number("15551"));
        subscribers.set_msisdn(&b, &number("15552"));
        assert_eq!(subscribers.imsi_of(b"15551"), Some(a));
        let change = |digits, imsi, previous| MsisdnChange { msisdn: number(digits), imsi, previous };
        assert_eq!(subscribers.take_msisdn_changes(), [change("15551", a, None), change("15552", b, None)]);
        subscribers.set_msisdn(&b, &number("15552"));
        assert_eq!(subscribers.take_msisdn_changes(), [], "that was known");
        subscribers.set_msisdn(&b, &number("15551"));
        assert_eq!(subscribers.imsi_of(b"15551"), Some(b), "the SIM was exchanged");
        assert_eq!(subscribers.take_msisdn_changes(), [change("15551", b, Some(a))]);
        assert_eq!((subscribers.imsi_of(b"15552"), subscribers.msisdn_of(&a)), (None, None));
        subscribers.set_msisdn(&b, &number("15551"));
        assert_eq!(subscribers.msisdn_of(&b), Some(number("15551")));
        subscribers.remove(&b);
        assert_eq!((subscribers.imsi_of(b"15551"), subscribers.len()), (None, 1));
    }

    #[test]
    fn latest_presence_sign_is_kept() {
        let subscribers = Subscribers::default();
        let a = imsi("001010000000001");
        assert_eq!((subscribers.is_known(&a), subscribers.presence_of(&a)), (false, None));
        subscribers.set_presence(&a, 1000, PresenceSign::LocationUpdate);
        subscribers.set_msc(&a, &"MSC-1".into(), Some(1));
        subscribers.set_presence(&a, 2000, PresenceSign::Delivery);
        assert_eq!(
            (subscribers.is_known(&a), subscribers.presence_of(&a)),
            (true, Some((2000, PresenceSign::Delivery)))
        );
        subscribers.remove(&a);
        assert_eq!(subscribers.presence_of(&a), None);
    }

    #[test]
    fn latest_msc_is_kept() {
        let subscribers = Subscribers::default();
        let a = imsi("001010000000001");
        assert_eq!(subscribers.msc_of(&a), None);
        subscribers.set_msc(&a, &"MSC-1".into(), Some(1));
        subscribers.set_msc(&a, &"MSC-2".into(), Some(2));
        assert_eq!(subscribers.location_of(&a), Some(("MSC-2".into(), Some(2))));
    }
}

//! What is known of subscribers without asking anybody: learnt from the signalling that passes by, and from the HLR's
//! answers.

use crate::mt::ConnId;
use gsup::Imsi;
use model::AddressBytes;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How many subscribers are remembered; some 150 octets each. A small network never comes near it, and beyond it the HLR
/// is asked, as it is for everybody after a start.
const LIMIT: usize = 1_000_000;

/// Who is where, and under which number.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    by_imsi: FxHashMap<Imsi, Known>,
    by_number: FxHashMap<AddressBytes, Imsi>,
    /// What the engine has not been told yet.
    news: Vec<Numbered>,
}

/// A number that is another subscriber's than was known before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) msisdn: AddressBytes,
    pub(crate) imsi: Imsi,
    /// Whose it was.
    pub(crate) before: Option<Imsi>,
}

#[derive(Debug, Default)]
struct Known {
    msisdn: Option<AddressBytes>,
    /// The name of the MSC that serves the subscriber, or did last.
    msc: Option<Arc<str>>,
    /// The connection on which that was seen. Two MSCs may call themselves alike.
    conn: Option<ConnId>,
    /// The last sign of the handset's presence: when, in milliseconds since the epoch, and what it was.
    presence: Option<(u64, Sign)>,
}

/// What shows that a handset is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    LocationUpdate,
    /// It has sent a short message.
    Message,
    /// It has said that it is ready for short messages.
    ReadyForSm,
    /// It has taken a short message.
    Delivery,
}

impl Inner {
    fn known(&mut self, imsi: &Imsi) -> Option<&mut Known> {
        if !self.by_imsi.contains_key(imsi) {
            if self.by_imsi.len() >= LIMIT {
                return None;
            }
            self.by_imsi.insert(*imsi, Known::default());
        }
        self.by_imsi.get_mut(imsi)
    }
}

impl Subscribers {
    /// A subscriber is at this MSC, as was seen on this connection, or as the HLR says.
    pub(crate) fn at(&self, imsi: &Imsi, msc: &Arc<str>, conn: Option<ConnId>) {
        let mut inner = self.inner.lock();
        if let Some(known) = inner.known(imsi) {
            (known.msc, known.conn) = (Some(msc.clone()), conn);
        }
    }

    /// A handset has shown that it is there, at this time in milliseconds since the epoch.
    pub(crate) fn present(&self, imsi: &Imsi, at: u64, sign: Sign) {
        let mut inner = self.inner.lock();
        if let Some(known) = inner.known(imsi) {
            known.presence = Some((at, sign));
        }
    }

    /// When a handset has last shown that it is there, and how.
    pub(crate) fn presence_of(&self, imsi: &Imsi) -> Option<(u64, Sign)> {
        self.inner.lock().by_imsi.get(imsi)?.presence
    }

    /// Whether anything is known of a subscriber.
    pub(crate) fn is_known(&self, imsi: &Imsi) -> bool {
        self.inner.lock().by_imsi.contains_key(imsi)
    }

    /// A subscriber has this number. A number has one subscriber: whoever had it before has it no longer.
    pub(crate) fn numbered(&self, imsi: &Imsi, msisdn: &AddressBytes) {
        let mut inner = self.inner.lock();
        let Some(known) = inner.known(imsi) else { return };
        let before = known.msisdn.replace(msisdn.clone());
        if before.as_ref() == Some(msisdn) {
            return;
        }
        if let Some(before) = before
            && inner.by_number.get(&before) == Some(imsi)
        {
            inner.by_number.remove(&before);
        }
        let before = inner.by_number.insert(msisdn.clone(), *imsi);
        if let Some(other) = before
            && let Some(known) = inner.by_imsi.get_mut(&other)
        {
            known.msisdn = None;
        }
        if inner.news.len() < LIMIT {
            inner.news.push(Numbered { msisdn: msisdn.clone(), imsi: *imsi, before });
        }
    }

    /// Numbers whose subscriber was learnt since the last call, in order.
    pub(crate) fn take_news(&self) -> Vec<Numbered> {
        std::mem::take(&mut self.inner.lock().news)
    }

    /// The MSC that serves the subscriber, as far as is known.
    pub(crate) fn msc_of(&self, imsi: &Imsi) -> Option<Arc<str>> {
        self.place_of(imsi).map(|(msc, _)| msc)
    }

    /// The same, and the connection on which the subscriber was last seen there.
    pub(crate) fn place_of(&self, imsi: &Imsi) -> Option<(Arc<str>, Option<ConnId>)> {
        let inner = self.inner.lock();
        let known = inner.by_imsi.get(imsi)?;
        Some((known.msc.clone()?, known.conn))
    }

    /// Who has this number, as far as is known.
    pub(crate) fn imsi_of(&self, msisdn: &[u8]) -> Option<Imsi> {
        self.inner.lock().by_number.get(msisdn).copied()
    }

    /// Under which number the subscriber is known.
    pub(crate) fn msisdn_of(&self, imsi: &Imsi) -> Option<AddressBytes> {
        self.inner.lock().by_imsi.get(imsi)?.msisdn.clone()
    }

    /// The HLR does not know this subscriber: nothing that was learnt of it holds.
    pub(crate) fn forget(&self, imsi: &Imsi) {
        let mut inner = self.inner.lock();
        if let Some(known) = inner.by_imsi.remove(imsi)
            && let Some(msisdn) = known.msisdn
            && inner.by_number.get(&msisdn) == Some(imsi)
        {
            inner.by_number.remove(&msisdn);
        }
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().by_imsi.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imsi(digits: &str) -> Imsi {
        digits.parse().unwrap()
    }

    fn number(digits: &str) -> AddressBytes {
        AddressBytes::from_slice(digits.as_bytes())
    }

    #[test]
    fn a_number_has_one_subscriber_and_a_subscriber_one_number() {
        let known = Subscribers::default();
        let (a, b) = (imsi("001010000000001"), imsi("001010000000002"));
        known.numbered(&a, &number("15551"));
        known.numbered(&b, &number("15552"));
        assert_eq!(known.imsi_of(b"15551"), Some(a));
        let learnt = |digits, imsi, before| Numbered { msisdn: number(digits), imsi, before };
        assert_eq!(known.take_news(), [learnt("15551", a, None), learnt("15552", b, None)]);
        known.numbered(&b, &number("15552"));
        assert_eq!(known.take_news(), [], "that was known");
        known.numbered(&b, &number("15551"));
        assert_eq!(known.imsi_of(b"15551"), Some(b), "the SIM was exchanged");
        assert_eq!(known.take_news(), [learnt("15551", b, Some(a))]);
        assert_eq!((known.imsi_of(b"15552"), known.msisdn_of(&a)), (None, None));
        known.numbered(&b, &number("15551"));
        assert_eq!(known.msisdn_of(&b), Some(number("15551")));
        known.forget(&b);
        assert_eq!((known.imsi_of(b"15551"), known.len()), (None, 1));
    }

    #[test]
    fn the_last_sign_of_presence_counts() {
        let known = Subscribers::default();
        let a = imsi("001010000000001");
        assert_eq!((known.is_known(&a), known.presence_of(&a)), (false, None));
        known.present(&a, 1000, Sign::LocationUpdate);
        known.at(&a, &"MSC-1".into(), Some(1));
        known.present(&a, 2000, Sign::Delivery);
        assert_eq!((known.is_known(&a), known.presence_of(&a)), (true, Some((2000, Sign::Delivery))));
        known.forget(&a);
        assert_eq!(known.presence_of(&a), None);
    }

    #[test]
    fn the_last_msc_counts() {
        let known = Subscribers::default();
        let a = imsi("001010000000001");
        assert_eq!(known.msc_of(&a), None);
        known.at(&a, &"MSC-1".into(), Some(1));
        known.at(&a, &"MSC-2".into(), Some(2));
        assert_eq!(known.place_of(&a), Some(("MSC-2".into(), Some(2))));
    }
}

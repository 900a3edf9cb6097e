//! A test guest: a resolver whose document sets its behaviour on numbers that begin with 666. Any other number is a
//! subscriber with IMSI 00101 and the number's last ten digits.

use switchyard_sdk::{Resolved, Resolver, clock, found, try_later, unknown};
use test_mood::{Document, Mood, is_bad};

struct Guest(Document);

/// 00101 and the last ten digits of the number, padded with zeros.
fn imsi(msisdn: &str) -> String {
    let last = msisdn.get(msisdn.len().saturating_sub(10)..).unwrap_or_default();
    format!("00101{last:0>10}")
}

impl Resolver for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        Document::read(document).map(Self)
    }

    fn resolve(&self, msisdn: &str) -> Resolved {
        let mood = self.0.mood;
        if !is_bad("", msisdn) {
            return found(imsi(msisdn));
        }
        mood.act(|| {
            clock::now();
        });
        let mut resolved = match mood {
            Mood::UnknownPeer => found(imsi(msisdn)).served_by("no-such-peer"),
            Mood::TryLater => try_later(None),
            Mood::Absurd => found("not an IMSI").valid_for(std::time::Duration::from_millis(u64::MAX)),
            Mood::Giant => found(test_mood::giant()),
            _ => unknown(None),
        };
        resolved.note = mood.note();
        resolved
    }
}

switchyard_sdk::export_resolver!(Guest);

//! A test guest: a biller whose document sets its behaviour on bad messages, and in `settle` for the amount 666.
//! Everything else costs a thousandth per segment, charged to the origin, with a settlement.

use switchyard_sdk::{Biller, FirstLeg, Message, Quote, Settlement, charge, clock, refuse};
use test_mood::{Document, Mood, is_bad};

struct Guest(Document);

impl Biller for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        Document::read(document).map(Self)
    }

    fn price(&self, message: &Message, _leg: Option<&FirstLeg>) -> Quote {
        let mood = self.0.mood;
        if !is_bad(&message.source.value, &message.destination.value) {
            return charge(&message.origin, 1_000 * u64::from(message.parts)).settled();
        }
        mood.act(|| {
            clock::now();
        });
        let mut quote = match mood {
            Mood::UnknownPeer => charge("no-such-account", 1_000),
            Mood::TryLater => refuse(),
            Mood::Absurd => charge(&message.origin, u64::MAX),
            Mood::Giant => charge(test_mood::giant(), 1_000),
            // Accepted, so that `settle` sees it.
            _ => charge(&message.origin, 666).settled(),
        };
        quote.note = mood.note();
        quote
    }

    fn settle(&self, settlements: &[Settlement]) -> Result<(), String> {
        if settlements.iter().any(|settlement| settlement.amount == 666) {
            let mood = self.0.mood;
            mood.act(|| {
                clock::now();
            });
            match mood {
                Mood::TryLater => return Err("not now".to_owned()),
                Mood::Giant => return Err(test_mood::giant()),
                Mood::BadUtf8 => return Err(test_mood::bad_utf8()),
                _ => {}
            }
        }
        Ok(())
    }
}

switchyard_sdk::export_biller!(Guest);

//! A test guest: a router whose document sets its behaviour on bad messages; everything else is forwarded to the peer
//! in the document.

use switchyard_sdk::{Decision, Message, RejectReason, Router, clock, forward, hold, leg, reject};
use test_mood::{Document, Mood, bad_utf8, is_bad};

struct Guest(Document);

impl Router for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        Document::read(document).map(Self)
    }

    fn route(&self, message: &Message) -> Decision {
        let Document { mood, name } = &self.0;
        if !is_bad(&message.source.value, &message.destination.value) {
            return forward(vec![leg(name)]);
        }
        mood.act(|| {
            clock::now();
        });
        let mut decision = match mood {
            Mood::UnknownPeer => forward(vec![leg("no-such-peer")]),
            Mood::ManyLegs => forward(vec![leg(name); 100_000]),
            Mood::BadUtf8Peer => forward(vec![leg(&bad_utf8())]),
            Mood::TryLater => reject(RejectReason::TryLater),
            Mood::Absurd => hold(u64::MAX),
            _ => forward(vec![leg(name)]),
        };
        decision.note = mood.note();
        decision
    }
}

switchyard_sdk::export_router!(Guest);

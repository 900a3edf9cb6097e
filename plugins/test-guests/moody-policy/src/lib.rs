//! A test guest: a delivery policy whose document sets its behaviour on bad messages. Everything else is retried after
//! a second.

use std::time::Duration;
use switchyard_sdk::{Attempt, DeliveryPolicy, Message, NextStep, await_alert, clock, next_leg, retry_after};
use test_mood::{Document, Mood, is_bad};

struct Guest(Document);

impl DeliveryPolicy for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        Document::read(document).map(Self)
    }

    fn next(&self, message: &Message, _attempt: &Attempt) -> NextStep {
        let mood = self.0.mood;
        if !is_bad(&message.source.value, &message.destination.value) {
            return retry_after(Duration::from_secs(1));
        }
        mood.act(|| {
            clock::now();
        });
        let mut next = match mood {
            Mood::UnknownPeer => next_leg(),
            Mood::TryLater => await_alert(Duration::from_secs(1)),
            Mood::Absurd => {
                let long = Duration::from_millis(u64::MAX);
                retry_after(long).pause(long).rate(f64::NAN).window(0)
            }
            _ => retry_after(Duration::from_secs(1)),
        };
        next.note = mood.note();
        next
    }
}

switchyard_sdk::export_delivery_policy!(Guest);

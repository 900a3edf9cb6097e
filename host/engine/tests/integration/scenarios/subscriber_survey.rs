//! The survey of one subscriber.

use crate::scenarios::fixture::{EngineFixture, SERIAL, found, imsi, message, subscriber_leg};
use crate::scenarios::serial_delivery::{refused, to};
use engine::{MessageState, Settings, SubscriberIdentity, SubscriberSurvey};
use model::{AddressBytes, ErrorClass, Message, MessageId, Timestamp};
use std::collections::BTreeMap;

const ANNE: &str = "4917100001";
const BOB: &str = "4917100002";
const IMSI: &str = "262011234567890";

fn by_number(number: &str) -> SubscriberIdentity {
    SubscriberIdentity { imsi: None, msisdn: Some(AddressBytes::from_slice(number.as_bytes())) }
}

/// A survey in parts of `looks` entries.
fn survey(fixture: &EngineFixture, names: &SubscriberIdentity, looks: usize) -> SubscriberSurvey {
    let mut all = SubscriberSurvey::default();
    let mut at = 0;
    loop {
        let part = fixture.engine.survey_subscriber(names, at, looks);
        for (state, count) in part.messages {
            *all.messages.entry(state).or_default() += count;
        }
        all.oldest = [all.oldest, part.oldest].into_iter().flatten().min();
        all.failed.extend(part.failed);
        match part.next {
            Some(next) => at = next,
            None => return all,
        }
    }
}

fn counts<const N: usize>(counts: [(MessageState, u64); N]) -> BTreeMap<MessageState, u64> {
    counts.into()
}

#[test]
fn survey_of_a_blocked_subscriber() {
    let mut fixture = EngineFixture::new(Settings::default());
    fixture.link_up(SERIAL, 10);
    let ids: Vec<MessageId> = (0..3).map(|_| fixture.submit(to(ANNE)).unwrap()).collect();
    let later = Timestamp(fixture.now.wall.0 + 3_600_000);
    fixture.submit(Message { scheduled: Some(later), ..to(ANNE) }).unwrap();
    fixture.submit(to(BOB)).unwrap();
    let anne = by_number(&format!("+{ANNE}"));
    let turns = fixture.engine.subscriber_locks_of(&anne);
    assert_eq!(
        (turns[0].holder.id, turns[0].holder.state, turns[0].backing_off),
        (ids[0], MessageState::Submitted, false)
    );
    fixture.answer(ids[0], refused(ErrorClass::Absent));
    let turns = fixture.engine.subscriber_locks_of(&anne);
    assert_eq!((turns.len(), turns[0].holder.id, turns[0].backing_off), (1, ids[0], true));
    assert!(turns[0].holder.until.is_some());
    for looks in [1, 2, 1000] {
        let found = survey(&fixture, &anne, looks);
        // A message that waits for its schedule has not failed.
        assert_eq!((&found.failed[..], found.oldest.map(|(id, _)| id)), (&ids[..1], Some(ids[0])));
        assert_eq!(found.messages[&MessageState::SubscriberLocked], 2);
        assert!(found.messages[&MessageState::Deferred] <= 2);
    }
    let bob = survey(&fixture, &by_number(BOB), 1000);
    assert_eq!((bob.messages, bob.failed), (counts([(MessageState::Submitted, 1)]), Vec::new()));
    assert_eq!(survey(&fixture, &by_number("49171000"), 1000), SubscriberSurvey::default());
    assert_eq!(survey(&fixture, &SubscriberIdentity::default(), 1000), SubscriberSurvey::default());
}

#[test]
fn a_subscriber_is_surveyed_by_number_before_it_is_found_and_by_imsi_afterwards() {
    let mut fixture = EngineFixture::new(Settings { resolver: true, ..Settings::default() });
    fixture.link_up(SERIAL, 10);
    let first = fixture.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap();
    fixture.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap();
    let anne = by_number(ANNE);
    let waiting = survey(&fixture, &anne, 1);
    assert_eq!(
        (waiting.messages, waiting.oldest.map(|(id, _)| id)),
        (counts([(MessageState::Resolving, 2)]), Some(first))
    );
    fixture.answer_all(&found(IMSI));
    let by_imsi = SubscriberIdentity { imsi: Some(imsi(IMSI)), msisdn: None };
    let expected = counts([(MessageState::SubscriberLocked, 1), (MessageState::Submitted, 1)]);
    assert_eq!(survey(&fixture, &by_imsi, 1000).messages, expected);
    assert_eq!(survey(&fixture, &anne, 1000).messages, counts([]));
    assert_eq!(fixture.engine.subscriber_locks_of(&by_imsi)[0].holder.id, first);
}

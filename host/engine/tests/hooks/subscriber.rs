//! What waits for one subscriber.

use crate::house::{House, SERIAL, found, imsi, message, subscriber_leg};
use crate::serial::{refused, to};
use engine::{Doing, Settings, SubscriberNames, SubscriberSurvey};
use model::{AddressBytes, ErrorClass, Message, MessageId, Timestamp};
use std::collections::BTreeMap;

const ANNE: &str = "4917100001";
const BOB: &str = "4917100002";
const IMSI: &str = "262011234567890";

fn by_number(number: &str) -> SubscriberNames {
    SubscriberNames { imsi: None, msisdn: Some(AddressBytes::from_slice(number.as_bytes())) }
}

/// The survey in parts of so many looks.
fn survey(house: &House, names: &SubscriberNames, looks: usize) -> SubscriberSurvey {
    let mut all = SubscriberSurvey::default();
    let mut at = 0;
    loop {
        let part = house.engine.survey_subscriber(names, at, looks);
        for (doing, count) in part.messages {
            *all.messages.entry(doing).or_default() += count;
        }
        all.oldest = [all.oldest, part.oldest].into_iter().flatten().min();
        all.failed.extend(part.failed);
        match part.next {
            Some(next) => at = next,
            None => return all,
        }
    }
}

fn doings<const N: usize>(doings: [(Doing, u64); N]) -> BTreeMap<Doing, u64> {
    doings.into()
}

#[test]
fn a_parked_subscriber_shows_what_failed_and_what_waits_behind_it() {
    let mut house = House::new(Settings::default());
    house.link_up(SERIAL, 10);
    let ids: Vec<MessageId> = (0..3).map(|_| house.submit(to(ANNE)).unwrap()).collect();
    let later = Timestamp(house.now.wall.0 + 3_600_000);
    house.submit(Message { scheduled: Some(later), ..to(ANNE) }).unwrap();
    house.submit(to(BOB)).unwrap();
    let anne = by_number(&format!("+{ANNE}"));
    let turns = house.engine.turns_of(&anne);
    assert_eq!(
        (turns[0].holder.id, turns[0].holder.doing, turns[0].parked),
        (ids[0], Doing::Submitted, false)
    );
    house.answer(ids[0], refused(ErrorClass::Absent));
    let turns = house.engine.turns_of(&anne);
    assert_eq!((turns.len(), turns[0].holder.id, turns[0].parked), (1, ids[0], true));
    assert!(turns[0].holder.until.is_some());
    for looks in [1, 2, 1000] {
        let found = survey(&house, &anne, looks);
        // What waits for its scheduled time has not failed.
        assert_eq!((&found.failed[..], found.oldest.map(|(id, _)| id)), (&ids[..1], Some(ids[0])));
        assert_eq!(found.messages[&Doing::Aside], 2);
        assert!(found.messages[&Doing::Deferred] <= 2);
    }
    let bob = survey(&house, &by_number(BOB), 1000);
    assert_eq!((bob.messages, bob.failed), (doings([(Doing::Submitted, 1)]), Vec::new()));
    assert_eq!(survey(&house, &by_number("49171000"), 1000), SubscriberSurvey::default());
    assert_eq!(survey(&house, &SubscriberNames::default(), 1000), SubscriberSurvey::default());
}

#[test]
fn a_subscriber_is_surveyed_by_number_before_it_is_found_and_by_imsi_afterwards() {
    let mut house = House::new(Settings { resolver: true, ..Settings::default() });
    house.link_up(SERIAL, 10);
    let first = house.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap();
    house.submit(message(ANNE, vec![subscriber_leg(SERIAL)])).unwrap();
    let anne = by_number(ANNE);
    let waiting = survey(&house, &anne, 1);
    assert_eq!(
        (waiting.messages, waiting.oldest.map(|(id, _)| id)),
        (doings([(Doing::Resolving, 2)]), Some(first))
    );
    house.answer_all(&found(IMSI));
    let by_imsi = SubscriberNames { imsi: Some(imsi(IMSI)), msisdn: None };
    let expected = doings([(Doing::Aside, 1), (Doing::Submitted, 1)]);
    assert_eq!(survey(&house, &by_imsi, 1000).messages, expected);
    assert_eq!(survey(&house, &anne, 1000).messages, doings([]));
    assert_eq!(house.engine.turns_of(&by_imsi)[0].holder.id, first);
}

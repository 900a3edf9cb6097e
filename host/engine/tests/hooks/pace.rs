//! Peers that say "too fast".

use crate::house::{FIRST, House, message};
use crate::serial::refused;
use engine::{Brake, Event, Settings};
use model::{ErrorClass, Leg, LinkId, MessageId, Outcome};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const WINDOW: u32 = 100;

fn queue(house: &mut House, messages: usize) {
    for _ in 0..messages {
        house.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
    }
}

/// Lets time go by before a peer that takes so many messages in each second of the clock: how many it has taken.
fn seconds(house: &mut House, seconds: u64, allowed: usize) -> usize {
    let mut all = 0;
    for _ in 0..seconds {
        let mut taken = 0;
        for _ in 0..20 {
            let answers: Vec<Event> = std::mem::take(&mut house.sent)
                .into_iter()
                .map(|(peer, message, _)| {
                    let outcome = if taken < allowed { ACCEPTED } else { refused(ErrorClass::Throttled) };
                    taken += 1;
                    Event::Outcome { link: LinkId(peer.0.into()), id: message.id, outcome }
                })
                .collect();
            house.run(answers);
            house.pass(Duration::from_millis(50));
        }
        all += taken.min(allowed);
    }
    all
}

#[test]
fn a_peer_that_throttles_gets_what_it_allows_and_the_rate_is_shown() {
    for allowed in [1, 10, 200] {
        let mut house = House::new(Settings::default());
        house.link_up(FIRST, WINDOW);
        queue(&mut house, 130 * allowed);
        assert_eq!(house.status(FIRST).learnt_rate, None);
        seconds(&mut house, 60, allowed);
        let taken = seconds(&mut house, 60, allowed);
        assert!(taken >= 60 * allowed * 9 / 10, "{allowed} a second: {taken} in a minute");
        let status = house.status(FIRST);
        let rate = status.learnt_rate.unwrap();
        assert!((0.7..1.6).contains(&(rate / allowed as f64)), "{allowed} a second: {rate}");
        assert!(
            matches!(status.brake, Brake::Throttled { rate: shown, .. } if shown == rate),
            "{:?}",
            status.brake
        );
    }
}

#[test]
fn in_slow_start_one_missing_answer_stalls_nothing() {
    let mut house = House::new(Settings::default());
    house.link_up(FIRST, WINDOW);
    queue(&mut house, 500);
    // The peer takes none of a full window at first.
    house.outcome_of_all(&refused(ErrorClass::Throttled));
    assert!(matches!(house.status(FIRST).brake, Brake::SlowStart { .. }), "{:?}", house.status(FIRST).brake);
    let mut silent: Option<MessageId> = None;
    let mut taken = 0;
    for _ in 0..100 {
        house.pass(Duration::from_millis(100));
        if silent.is_none() {
            silent = house.on_links().first().copied();
        }
        let answered: Vec<MessageId> =
            house.on_links().into_iter().filter(|id| Some(*id) != silent).collect();
        taken += answered.len();
        for id in answered {
            house.answer(id, ACCEPTED);
        }
    }
    assert!(house.on_links().contains(&silent.unwrap()) && taken > 200, "{taken} taken in ten seconds");
}

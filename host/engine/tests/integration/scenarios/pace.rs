//! Throttling peers.

use crate::scenarios::fixture::{EngineFixture, FIRST, message};
use crate::scenarios::serial_delivery::refused;
use engine::{BlockedBy, Event, Settings};
use model::{ErrorClass, Leg, LinkId, MessageId, Outcome};
use std::time::Duration;

const ACCEPTED: Outcome = Outcome::Accepted { ids: Vec::new() };
const WINDOW: u32 = 100;

fn queue(fixture: &mut EngineFixture, messages: usize) {
    for _ in 0..messages {
        fixture.submit(message("1", vec![Leg::to(FIRST)])).unwrap();
    }
}

/// Advances the time before a peer that accepts a fixed number of messages per second; returns the number accepted.
fn seconds(fixture: &mut EngineFixture, seconds: u64, allowed: usize) -> usize {
    let mut all = 0;
    for _ in 0..seconds {
        let mut taken = 0;
        for _ in 0..20 {
            let answers: Vec<Event> = std::mem::take(&mut fixture.sent)
                .into_iter()
                .map(|(peer, message, _)| {
                    let outcome = if taken < allowed { ACCEPTED } else { refused(ErrorClass::Throttled) };
                    taken += 1;
                    Event::Outcome { link: LinkId(peer.0.into()), id: message.id, outcome }
                })
                .collect();
            fixture.run(answers);
            fixture.pass(Duration::from_millis(50));
        }
        all += taken.min(allowed);
    }
    all
}

#[test]
fn a_peer_that_throttles_gets_what_it_allows_and_the_rate_is_shown() {
    for allowed in [1, 10, 200] {
        let mut fixture = EngineFixture::new(Settings::default());
        fixture.link_up(FIRST, WINDOW);
        queue(&mut fixture, 130 * allowed);
        assert_eq!(fixture.status(FIRST).learnt_rate, None);
        seconds(&mut fixture, 60, allowed);
        let taken = seconds(&mut fixture, 60, allowed);
        assert!(taken >= 60 * allowed * 9 / 10, "{allowed} a second: {taken} in a minute");
        let status = fixture.status(FIRST);
        let rate = status.learnt_rate.unwrap();
        assert!((0.7..1.6).contains(&(rate / allowed as f64)), "{allowed} a second: {rate}");
        assert!(
            matches!(status.blocked_by, BlockedBy::Throttled { rate: shown, .. } if shown == rate),
            "{:?}",
            status.blocked_by
        );
    }
}

#[test]
fn in_slow_start_one_missing_answer_stalls_nothing() {
    let mut fixture = EngineFixture::new(Settings::default());
    fixture.link_up(FIRST, WINDOW);
    queue(&mut fixture, 500);
    // The peer accepts none of the first full window.
    fixture.outcome_of_all(&refused(ErrorClass::Throttled));
    assert!(
        matches!(fixture.status(FIRST).blocked_by, BlockedBy::SlowStart { .. }),
        "{:?}",
        fixture.status(FIRST).blocked_by
    );
    let mut silent: Option<MessageId> = None;
    let mut taken = 0;
    for _ in 0..100 {
        fixture.pass(Duration::from_millis(100));
        if silent.is_none() {
            silent = fixture.on_links().first().copied();
        }
        let answered: Vec<MessageId> =
            fixture.on_links().into_iter().filter(|id| Some(*id) != silent).collect();
        taken += answered.len();
        for id in answered {
            fixture.answer(id, ACCEPTED);
        }
    }
    assert!(fixture.on_links().contains(&silent.unwrap()) && taken > 200, "{taken} taken in ten seconds");
}

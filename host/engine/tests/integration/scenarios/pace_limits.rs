//! Pace buckets and send windows.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, SECOND, SERIAL, VALIDITY, message};
use calendar::{WeeklyWindow, Zone};
use engine::{
    BlockedBy, Event, MessageState, PaceBucketSettings, PaceNames, PacePeriod, PaceSettings,
    SendWindowSettings, Settings,
};
use model::{ErrorClass, FinalState, Leg, MessageId, Outcome, PaceUnit, PeerId, Priority};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
/// The fixture begins at 11:06:40 UTC, which is 23:06:40 in this zone.
const ZONE: &str = "Asia/Kamchatka";

fn zone(name: &str) -> Zone {
    Zone::find(name).unwrap()
}

fn per_day(name: &str, amount: u64) -> PaceBucketSettings {
    PaceBucketSettings {
        name: name.into(),
        amount,
        per: PacePeriod::Day(zone(ZONE)),
        counts: PaceUnit::Messages,
    }
}

fn per_time(name: &str, amount: u64, period: Duration) -> PaceBucketSettings {
    PaceBucketSettings {
        name: name.into(),
        amount,
        per: PacePeriod::Time(period),
        counts: PaceUnit::Messages,
    }
}

/// Open every day between two minutes of the day, in UTC.
fn window(name: &str, from: u16, to: u16) -> SendWindowSettings {
    let window = WeeklyWindow::new(zone("UTC"), [true; 7], from, to).unwrap();
    SendWindowSettings { name: name.into(), window }
}

fn buckets(names: &[&str]) -> PaceNames {
    PaceNames { buckets: names.iter().map(|name| Arc::from(*name)).collect(), windows: Vec::new() }
}

fn windows(names: &[&str]) -> PaceNames {
    PaceNames { buckets: Vec::new(), windows: names.iter().map(|name| Arc::from(*name)).collect() }
}

/// With all content cached, and with none.
fn fixtures(
    pace: &PaceSettings,
    send: &[(PeerId, PaceNames)],
    submit: &[(PeerId, PaceNames)],
) -> [EngineFixture; 2] {
    [64 << 20, 0].map(|body_cache| {
        let mut fixture = EngineFixture::new(Settings { body_cache, ..Settings::default() });
        fixture.pace = pace.clone();
        fixture.send_pace = send.iter().cloned().collect();
        fixture.submit_pace = submit.iter().cloned().collect();
        fixture.crash();
        for peer in [FIRST, SECOND, SERIAL] {
            fixture.link_up(peer, 10);
        }
        fixture
    })
}

fn to(fixture: &mut EngineFixture, peer: PeerId) -> MessageId {
    fixture.submit(message("8613", vec![Leg::to(peer)])).unwrap()
}

fn accept_all(fixture: &mut EngineFixture) -> Vec<MessageId> {
    fixture.outcome_of_all(&Outcome::Accepted { ids: Vec::new() })
}

#[test]
fn a_days_bucket_lets_its_amount_pass_and_holds_up_nothing_else() {
    let pace = PaceSettings { buckets: vec![per_day("brand", 3)], ..PaceSettings::default() };
    for mut fixture in fixtures(&pace, &[(FIRST, buckets(&["brand"]))], &[]) {
        let ids: Vec<_> = (0..5).map(|_| to(&mut fixture, FIRST)).collect();
        let other = to(&mut fixture, SECOND);
        assert_eq!(accept_all(&mut fixture), [&ids[..3], &[other]].concat());
        let status = fixture.status(FIRST);
        assert_eq!((status.queued, status.paced, status.blocked_by), (0, 2, BlockedBy::Paced));
        let by = status.paced_by.unwrap();
        assert_eq!((&*by.name, by.is_window), ("brand", false));
        let until = fixture.now.wall_of(by.until.unwrap());
        assert_eq!(until.0, zone(ZONE).day(fixture.now.wall.0).end, "midnight in the zone of the bucket");
        let waiting = fixture.engine.message(ids[4]).unwrap();
        assert_eq!(waiting.state, MessageState::Paced);
        assert_eq!(&*waiting.paced_by.unwrap().name, "brand");
        let shown = &fixture.engine.pace_buckets(fixture.now)[0];
        assert_eq!((shown.amount, shown.tokens, shown.waiting), (3, 0, 2));

        // A crash grants nothing.
        fixture.crash();
        fixture.link_up(FIRST, 10);
        assert_eq!(accept_all(&mut fixture), []);
        fixture.pass(MINUTE * 50);
        assert_eq!(accept_all(&mut fixture), [], "before midnight");
        let late = to(&mut fixture, FIRST);
        fixture.pass(MINUTE * 4);
        assert_eq!(accept_all(&mut fixture), [ids[3], ids[4], late]);
        assert_eq!(fixture.engine.pace_buckets(fixture.now)[0].tokens, 0);
    }
}

#[test]
fn an_account_and_a_peer_share_a_bucket_and_a_message_takes_one_token() {
    let pace = PaceSettings { buckets: vec![per_day("campaign", 3)], ..PaceSettings::default() };
    let shared = buckets(&["campaign"]);
    let send = [(FIRST, shared.clone()), (SECOND, shared.clone())];
    for mut fixture in fixtures(&pace, &send, &[(ACCOUNT, shared.clone())]) {
        let ids: Vec<_> = [FIRST, SECOND, FIRST, SECOND].map(|peer| to(&mut fixture, peer)).into();
        assert_eq!(accept_all(&mut fixture), ids[..3]);
        assert_eq!((fixture.status(FIRST).paced, fixture.status(SECOND).paced), (0, 1));
    }
}

#[test]
fn a_bucket_fills_evenly_and_is_empty_after_a_start() {
    let pace = PaceSettings { buckets: vec![per_time("rate", 6, MINUTE)], ..PaceSettings::default() };
    for mut fixture in fixtures(&pace, &[(FIRST, buckets(&["rate"]))], &[]) {
        let ids: Vec<_> = (0..4).map(|_| to(&mut fixture, FIRST)).collect();
        assert_eq!(accept_all(&mut fixture), []);
        fixture.pass(Duration::from_secs(10));
        assert_eq!(accept_all(&mut fixture), ids[..1]);
        fixture.pass(Duration::from_secs(20));
        assert_eq!(accept_all(&mut fixture), ids[1..3]);
        fixture.crash();
        fixture.link_up(FIRST, 10);
        fixture.pass(Duration::from_secs(9));
        assert_eq!(accept_all(&mut fixture), []);
        fixture.pass(Duration::from_secs(1));
        assert_eq!(accept_all(&mut fixture), ids[3..]);
    }
}

#[test]
fn messages_pass_their_window_in_order_and_urgent_ones_first() {
    // Closed until 12:00 UTC, and open until 12:30.
    let pace = PaceSettings { windows: vec![window("noon", 720, 750)], ..PaceSettings::default() };
    for mut fixture in fixtures(&pace, &[], &[(ACCOUNT, windows(&["noon"]))]) {
        let first: Vec<_> = (0..3).map(|_| to(&mut fixture, FIRST)).collect();
        let mut urgent = message("8614", vec![Leg::to(FIRST)]);
        urgent.priority = Priority::new(3);
        let urgent = fixture.submit(urgent).unwrap();
        let serial = to(&mut fixture, SERIAL);
        assert_eq!(accept_all(&mut fixture), []);
        let by = fixture.status(FIRST).paced_by.unwrap();
        assert_eq!((&*by.name, by.is_window), ("noon", true));
        fixture.pass(MINUTE * 54);
        let sent = accept_all(&mut fixture);
        let on_first: Vec<_> = sent.into_iter().filter(|id| *id != serial).collect();
        assert_eq!(on_first, [&[urgent], &first[..]].concat());
        fixture.pass(MINUTE * 30);
        let late = to(&mut fixture, FIRST);
        assert_eq!(accept_all(&mut fixture), [], "closed again");
        fixture.pass(VALIDITY);
        assert_eq!(fixture.finished[&late].state, FinalState::Expired);
        assert_eq!(fixture.status(FIRST).paced, 0);
    }
}

#[test]
fn a_refused_message_takes_another_token_and_keeps_its_place() {
    let pace = PaceSettings { buckets: vec![per_day("brand", 1)], ..PaceSettings::default() };
    for mut fixture in fixtures(&pace, &[(FIRST, buckets(&["brand"]))], &[]) {
        let ids: Vec<_> = (0..2).map(|_| to(&mut fixture, FIRST)).collect();
        fixture.outcome_of_all(&Outcome::Refused {
            class: ErrorClass::Temporary,
            code: 8,
            taken: Vec::new(),
        });
        fixture.pass(MINUTE);
        assert_eq!(fixture.status(FIRST).paced, 2);
        fixture.pass(MINUTE * 53);
        assert_eq!(accept_all(&mut fixture), ids[..1]);
    }
}

#[test]
fn messages_go_on_when_their_bucket_is_taken_out_of_the_configuration() {
    let pace = PaceSettings { buckets: vec![per_day("brand", 1)], ..PaceSettings::default() };
    for mut fixture in fixtures(&pace, &[(FIRST, buckets(&["brand"]))], &[]) {
        let ids: Vec<_> = (0..9).map(|_| to(&mut fixture, FIRST)).collect();
        assert_eq!(accept_all(&mut fixture), ids[..1]);
        fixture.run([Event::Pace(PaceSettings::default())]);
        fixture.pass(Duration::from_secs(1));
        assert_eq!(accept_all(&mut fixture), ids[1..]);
        // The bucket comes back with the tokens that it had.
        fixture.run([Event::Pace(pace.clone())]);
        let again = to(&mut fixture, FIRST);
        fixture.pass(Duration::from_secs(1));
        assert_eq!(accept_all(&mut fixture), []);
        // The peer no longer names it.
        let mut settings = engine::PeerSettings::new(FIRST);
        settings.sends_dlrs = false;
        fixture.run([Event::Peer(settings)]);
        fixture.pass(Duration::from_secs(1));
        assert_eq!(accept_all(&mut fixture), [again]);
    }
}

/// Random submissions, outcomes, waits and crashes over some days, among them those on which the clocks change. A failure
/// prints the seed.
#[test]
fn no_day_gets_more_than_its_amount_whatever_crashes() {
    // Midnight in Berlin, two days before the clocks change in spring and in autumn.
    for (start, seeds) in [(1_774_566_000_000, 0..12_u64), (1_792_706_400_000, 12..24)] {
        for seed in seeds {
            run_days(start, seed);
        }
    }
}

fn run_days(start: u64, seed: u64) {
    const AMOUNT: usize = 7;
    let berlin = zone("Europe/Berlin");
    let open = WeeklyWindow::new(berlin.clone(), [true; 7], 0, 23 * 60).unwrap();
    let bucket = PaceBucketSettings {
        name: "brand".into(),
        amount: AMOUNT as u64,
        per: PacePeriod::Day(berlin.clone()),
        counts: PaceUnit::Messages,
    };
    let hours = SendWindowSettings { name: "hours".into(), window: open.clone() };
    let mut random = model::Random::new(seed);
    let mut fixture = EngineFixture::new(Settings::default());
    fixture.now.wall = model::Timestamp(start);
    fixture.pace = PaceSettings { buckets: vec![bucket], windows: vec![hours], ..PaceSettings::default() };
    let brand = buckets(&["brand"]);
    fixture.send_pace = [(FIRST, brand.clone()), (SECOND, brand.clone())].into_iter().collect();
    let submit = PaceNames { windows: vec!["hours".into()], ..brand };
    fixture.submit_pace = [(ACCOUNT, submit)].into_iter().collect();
    fixture.crash();
    let mut up: BTreeSet<PeerId> = BTreeSet::new();
    let end = start + 5 * 86_400_000;
    while fixture.now.wall.0 < end {
        match random.below(12) {
            0..4 => {
                let peer = if random.chance(50) { FIRST } else { SECOND };
                let mut new = message("8613", vec![Leg::to(peer)]);
                new.priority = Priority::new(u8::try_from(random.below(4)).unwrap());
                new.expires_at = fixture.now.wall + Duration::from_secs(2 * 86_400);
                fixture.submit(new).unwrap();
            }
            4 | 5 => {
                let peer = if random.chance(50) { FIRST } else { SECOND };
                if up.insert(peer) {
                    fixture.link_up(peer, 10);
                }
            }
            6 | 7 => drop(accept_all(&mut fixture)),
            8 => {
                let refused = Outcome::Refused { class: ErrorClass::Temporary, code: 8, taken: Vec::new() };
                fixture.outcome_of_all(&refused);
            }
            9 => {
                fixture.crash();
                up.clear();
            }
            _ => fixture.pass(MINUTE * u32::try_from(random.below(180) + 1).unwrap()),
        }
    }
    let mut attempts: BTreeMap<u64, usize> = BTreeMap::new();
    for at in &fixture.left_at {
        assert!(open.is_open(at.0), "seed {seed}: sent at {at:?}");
        *attempts.entry(berlin.day(at.0).start).or_default() += 1;
    }
    assert!(attempts.values().all(|count| *count <= AMOUNT), "seed {seed}: {attempts:?}");
    assert!(attempts.values().any(|count| *count == AMOUNT), "seed {seed}: {attempts:?}");
}
